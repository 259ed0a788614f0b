# SPDX-License-Identifier: Apache-2.0
"""Directories as zip and tar, read by Python's own modules: download_test.py PROGRAM. Prints TAP."""

import hashlib
import io
import json
import os
import random
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile

SEED = int(os.environ.get("STEAD_TEST_SEED", "1"))
LARGE_MIB = int(os.environ.get("STEAD_DOWNLOAD_MIB", "24"))


def call(url, method="GET", body=None, status=200):
    request = urllib.request.Request(url, data=body, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            assert answer.status == status, answer.status
            return answer.read(), answer.headers
    except urllib.error.HTTPError as error:
        assert error.code == status, (url, error.code, error.read())
        return error.read(), error.headers


def memory_of(server):
    with open(f"/proc/{server.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon:"))


def make_files(url):
    """Files of all sizes and odd names, the same ones for one seed."""
    choice = random.Random(SEED)
    files = {"a.md": b"# a\n", "sub/empty": b"", "sub/deep/\u00e9 \u4e2d.txt": "\u00e9".encode(), "x" * 180 + "/y.txt": b"y"}
    files["sub/back\\slash.txt"] = b"slash"
    for i in range(40):
        size = choice.choice([0, 1, 511, 512, 513, 4096, 262143, 262144, 262145, 700001])
        files[f"many/{i:03}.bin"] = choice.randbytes(size)
    for name, content in files.items():
        call(f"{url}/files/top/{urllib.parse.quote(name)}", "PUT", content, status=201)
    call(f"{url}/files/other.md", "PUT", b"not in it", status=201)
    return {"top/" + name.replace("\\", "_"): content for name, content in files.items()}


def a_zip_has_every_file_of_the_directory(url, server, files):
    body, headers = call(f"{url}/download?path=top")
    assert headers["Content-Type"] == "application/zip" and 'filename="top.zip"' in headers["Content-Disposition"]
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        assert not archive.testzip()
        assert {name: archive.read(name) for name in archive.namelist()} == files


def a_tar_has_every_file_of_the_directory(url, server, files):
    body, headers = call(f"{url}/download?path=top&format=tar")
    assert headers["Content-Type"] == "application/x-tar"
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        assert {m.name: archive.extractfile(m).read() for m in archive.getmembers()} == files
        assert all(m.isfile() for m in archive.getmembers())


def what_tools_cannot_read_is_in_no_archive(url, server, files):
    for format in ["zip", "tar"]:
        body, _ = call(f"{url}/download?format={format}")
        assert b"TOP-SECRET" not in body and b"other.md" in body


def an_empty_directory_and_what_does_not_exist(url, server, files):
    call(f"{url}/download?path=none", status=404)
    call(f"{url}/download?path=top&format=rar", status=400)
    call(f"{url}/download?path=../other", status=400)
    body, headers = call(f"{url}/download?path=other.md")
    assert body == b"not in it" and "attachment" in headers["Content-Disposition"]


def a_link_to_a_directory_is_an_archive(url, server, files):
    made, _ = call(f"{url}/links", "POST", json.dumps({"path": "top", "format": "tar"}).encode(), 201)
    link = urllib.parse.urljoin(url, json.loads(made)["url"])
    with tarfile.open(fileobj=io.BytesIO(call(link)[0])) as archive:
        assert len(archive.getmembers()) == len(files)
    call(link, status=404)


def a_large_archive_costs_little_memory(url, server, files):
    block = random.Random(SEED).randbytes(1 << 20)
    parts = {}
    for i in range(4):
        content = block * (LARGE_MIB // 4)
        parts[f"large/{i}"] = hashlib.sha256(content).hexdigest()
        call(f"{url}/files/large/{i}", "PUT", content, status=201)
    before = memory_of(server)
    for format in ["zip", "tar"]:
        with urllib.request.urlopen(f"{url}/download?path=large&format={format}") as answer:
            with tempfile.TemporaryFile() as file:
                while piece := answer.read(1 << 20):
                    file.write(piece)
                file.seek(0)
                if format == "zip":
                    with zipfile.ZipFile(file) as archive:
                        got = {n: hashlib.sha256(archive.read(n)).hexdigest() for n in archive.namelist()}
                else:
                    with tarfile.open(fileobj=file) as archive:
                        got = {m.name: hashlib.sha256(archive.extractfile(m).read()).hexdigest() for m in archive}
                assert got == parts
    assert memory_of(server) - before < 6 * 1024, (before, memory_of(server))


def main():
    tests = [
        a_zip_has_every_file_of_the_directory,
        a_tar_has_every_file_of_the_directory,
        what_tools_cannot_read_is_in_no_archive,
        an_empty_directory_and_what_does_not_exist,
        a_link_to_a_directory_is_an_archive,
        a_large_archive_costs_little_memory,
    ]
    failed = 0
    print(f"# STEAD_TEST_SEED={SEED}")
    with tempfile.TemporaryDirectory() as directory:
        env = {**os.environ, "STEAD_STORE": f"disk:{directory}/ws"}
        subprocess.run([sys.argv[1], "init", "demo"], env=env, check=True, stdout=subprocess.DEVNULL)
        command = [sys.argv[1], "serve", "--open", "--relaxed", "--listen", "127.0.0.1:0", "--json"]
        server = subprocess.Popen(command, env=env, stdout=subprocess.PIPE)
        try:
            url = json.loads(server.stdout.readline())["url"] + "/v1/workspaces/demo"
            files = make_files(url)
            with open(f"{directory}/ws/demo/files/.env", "w") as secret:
                secret.write("KEY=TOP-SECRET\n")
            for number, test in enumerate(tests, 1):
                try:
                    test(url, server, files)
                    print(f"ok {number} - {test.__name__}")
                except Exception as error:  # noqa: BLE001
                    failed += 1
                    print(f"# {error!r}\nnot ok {number} - {test.__name__}")
        finally:
            server.terminate()
            server.wait(30)
    print(f"1..{len(tests)}")
    sys.exit(failed > 0)


main()
