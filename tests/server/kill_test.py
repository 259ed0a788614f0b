# SPDX-License-Identifier: Apache-2.0
"""
A server is killed (SIGKILL) while clients upload files, write journals and complete items: kill_test.py PROGRAM. Prints TAP.

After each start everything that was acknowledged is there, once, and nothing is half there. STEAD_KILL_ROUNDS sets how often.
"""

import hashlib
import random
import threading

from site_of import Client, Site, number, run_tests, seed

ROUNDS = number("STEAD_KILL_ROUNDS", 3)
BASE = "/v1/workspaces/demo"
ITEMS = f"{BASE}/boards/main/items"
SIZES = [10, 5000, 300_000, 1_500_000]  # in a line of the log, in a blob, in memory, in a file on the way


def content_of(name):
    return random.Random(name).randbytes(SIZES[hash_of(name) % len(SIZES)])


def hash_of(text):
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)


class Work:
    """What three clients did in one round: what was begun, and what was acknowledged."""

    def __init__(self, port, round, journal):
        self.port, self.round, self.journal = port, round, journal
        self.begun = {"file": [], "line": [], "item": []}
        self.acknowledged = {"file": [], "line": [], "item": []}
        self.wrong, self.ending, self.told = [], False, threading.Condition()
        self.threads = [threading.Thread(target=self.loop, args=(what,)) for what in (self.upload, self.write_line, self.complete)]
        for thread in self.threads:
            thread.start()

    def loop(self, what):
        client, at = Client(self.port, 20), 0
        try:
            while not self.ending:
                what(client, at)
                at += 1
        except (ConnectionError, OSError):
            pass
        except Exception as error:  # noqa: BLE001
            with self.told:
                self.wrong.append(repr(error))
                self.told.notify()
        client.close()

    def step(self, kind, name, call):
        self.begun[kind].append(name)
        call()
        with self.told:
            self.acknowledged[kind].append(name)
            self.told.notify()

    def wait(self, steps):
        """Until each client got something done, and so many steps were done by all of them."""
        done = self.acknowledged.values()
        with self.told:
            assert self.told.wait_for(lambda: self.wrong or all(done) and sum(map(len, done)) >= steps, 60), "nothing was done in a minute"

    def upload(self, client, at):
        name = f"up/{self.round}-{at % 7}-{at}"

        def call():
            status, _, answer = client.ask("PUT", f"{BASE}/files/{name}", content_of(name))
            assert status == 201, answer

        self.step("file", name, call)

    def write_line(self, client, at):
        name = f"line-{self.round}-{at}-"
        self.step("line", name, lambda: client.json("POST", f"{ITEMS}/{self.journal}/journal", {"text": name}, status=201))

    def complete(self, client, at):
        item = client.json("POST", ITEMS, {"title": f"t-{self.round}-{at}", "checks": [{"path": "artifacts/r.md", "min_size": 3}]}, status=201)["item"]["id"]
        status, _, answer = client.ask("PUT", f"{ITEMS}/{item}/files/artifacts/r.md", item.encode())
        assert status == 201, answer
        done = {"status": "completed", "result_summary": "The report says in detail what was found out.", "artifacts": ["artifacts/r.md"]}
        self.step("item", item, lambda: client.json("PATCH", f"{ITEMS}/{item}", done, status=200))


def check_files(client, work):
    found = 0
    for name in work.begun["file"]:
        status, _, body = client.ask("GET", f"{BASE}/files/{name}")
        if name in work.acknowledged["file"]:
            assert status == 200, f"{name} was acknowledged and is lost"
        assert status in (200, 404)
        assert status == 404 or body == content_of(name), f"{name} is half there"
        found += status == 200
    return found


def check_journal(client, work):
    text = client.json("GET", f"{ITEMS}/{work.journal}/journal?whole=true", status=200)["journal"]
    for name in work.begun["line"]:
        count = text.count(name)
        assert count <= 1, f"{name} is in the journal {count} times"
        assert count == 1 or name not in work.acknowledged["line"], f"{name} was acknowledged and is lost"


def check_items(client, work):
    for item in work.begun["item"]:
        got = client.json("GET", f"{ITEMS}/{item}", status=200)["item"]
        complete = got["status"] == "completed"
        assert complete or item not in work.acknowledged["item"], f"item {item} was acknowledged and is {got['status']}"
        artifacts = [a for d in got.get("deliverables", []) for a in d.get("artifacts", [])]
        if complete:
            want = hashlib.sha256(item.encode()).hexdigest()
            assert [a["sha256"] for a in artifacts] == [want], f"item {item} is completed with {got.get('deliverables')}"
        else:
            assert not artifacts, f"item {item} is {got['status']} and has deliverables"


def nothing_acknowledged_is_lost_and_nothing_is_half_there():
    choice = random.Random(seed())
    site, counts = Site(["--open"]), {"file": 0, "line": 0, "item": 0}
    try:
        site.run("init", "demo")
        site.start()
        client = Client(site.port)
        journal = client.json("POST", ITEMS, {"title": "journal"}, status=201)["item"]["id"]
        client.close()
        for round in range(ROUNDS):
            work = Work(site.port, round, journal)
            work.wait(choice.randrange(3, 30))
            site.kill()
            work.ending = True
            for thread in work.threads:
                thread.join()
            assert not work.wrong, work.wrong
            site.start()
            client = Client(site.port)
            check_files(client, work)
            check_journal(client, work)
            check_items(client, work)
            client.ask("DELETE", f"{BASE}/files/up?recursive=true")
            if round % 20 == 19:  # a journal of its own for the next rounds
                journal = client.json("POST", ITEMS, {"title": "journal"}, status=201)["item"]["id"]
            client.close()
            for kind in counts:
                counts[kind] += len(work.acknowledged[kind])
            if round % 100 == 99:
                print(f"# {round + 1} rounds, acknowledged: {counts}", flush=True)
    finally:
        site.end()
    print(f"# {ROUNDS} rounds, acknowledged: {counts}")


run_tests([nothing_acknowledged_is_lost_and_nothing_is_half_there])
