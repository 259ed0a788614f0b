# SPDX-License-Identifier: Apache-2.0
"""The client against a running server: stead_test.py PROGRAM. Prints TAP."""

import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from stead import Stead, SteadError  # noqa: E402


def fails(kind, call):
    try:
        call()
    except SteadError as error:
        assert error.kind == kind and str(error), (error.kind, str(error))
        return
    raise AssertionError(f"it did not fail as {kind}")


def files_are_written_read_and_listed(stead):
    files = stead.create_workspace("research").files
    version = files.write("notes/a b.md", "# Plan")["version"]
    assert files.read("notes/a b.md") == b"# Plan"
    with files.open("notes/a b.md", offset=2, length=3) as part:
        assert part.read() == b"Pla" and part.content_type.startswith("text/markdown")
    fails("conflict", lambda: files.write("notes/a b.md", b"x", if_version="other"))
    files.write("notes/a b.md", b"changed", if_version=version)
    assert [e["path"] for e in files.list(recursive=True)] == ["notes/a b.md"]
    assert files.preview("notes/a b.md")["content"] == "changed"
    files.delete("notes", recursive=True)
    fails("not_found", lambda: files.read("notes/a b.md"))


def tools_and_changes_are_reached(stead):
    workspace = stead.workspace("research")
    assert "research" in stead.workspaces()
    workspace.call("write_file", path="x.md", content="one two")
    assert workspace.call("grep", pattern="two")["total_matches"] == 1
    changes = workspace.changes()
    assert changes["changes"][-1]["path"] == "x.md"
    assert workspace.changes(since=changes["next"])["changes"] == []
    fails("invalid", lambda: workspace.call("read_file", pth="x"))


def an_item_is_completed_when_its_artifacts_are_there(stead):
    board = stead.workspace("research").board()
    item = board.create("Compare", attachments=[("draft.txt", b"draft")], checks=[{"path": "artifacts/r.md"}])
    assert item["metadata"]["attachments"][0]["size_bytes"] == 5
    summary = "The second draft is the better one of the two."
    fails("invalid", lambda: item.complete(summary, ["/task/artifacts/r.md"]))
    item.files.write("artifacts/r.md", "result")
    assert item.complete(summary, ["/task/artifacts/r.md"])["status"] == "completed"
    assert len(item["deliverables"][0]["artifacts"][0]["sha256"]) == 64
    assert summary in item.journal()
    assert item.comment("fine", attachments=[("c.txt", b"c")])["metadata"]["attachments"]
    assert [c["body"] for c in item.comments()] == ["fine"]
    assert [i["id"] for i in board.items(status="completed")] == [item.id]
    assert "/task/artifacts/r.md" in [c["path"] for c in item.changes()["changes"]]
    item.archive()
    assert list(board.items()) == []
    assert item.unarchive().files.read("artifacts/r.md") == b"result"


def a_thread_has_files_of_its_own(stead):
    board = stead.workspace("research").board()
    thread = board.create_thread("Talk", purpose="conversation")
    files = board.thread_files(thread["id"])
    files.write("workspace/notes.md", "mine")
    assert files.read("workspace/notes.md") == b"mine"
    assert [f["path"] for f in files.list(recursive=True)] == ["workspace/notes.md"]
    fails("denied", lambda: files.write("notes.md", "mine"))


def main():
    with tempfile.TemporaryDirectory() as home:
        command = [sys.argv[1], "serve", "--open", "--listen", "127.0.0.1:0", "--json", "--store", f"disk:{home}/ws"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "HOME": home})
        try:
            stead = Stead(json.loads(server.stdout.readline())["url"])
            tests = [files_are_written_read_and_listed, tools_and_changes_are_reached,
                     an_item_is_completed_when_its_artifacts_are_there, a_thread_has_files_of_its_own]
            print(f"1..{len(tests)}")
            for number, test in enumerate(tests, 1):
                test(stead)
                print(f"ok {number} - {test.__name__}")
        finally:
            server.terminate()
            server.wait()
            server.stdout.close()


main()
