# SPDX-License-Identifier: Apache-2.0
"""
Connections that are slow, wrong, cut off or idle: hostile_test.py PROGRAM. Prints TAP.

While they last, others are served, and the memory of the server stays bounded. STEAD_HOSTILE sets how many wrong connections are made,
STEAD_IDLE how many are idle at a time.
"""

import random
import resource
import select
import socket

from site_of import Client, Site, number, run_tests, seed

HOSTILE = number("STEAD_HOSTILE", 600)
IDLE = number("STEAD_IDLE", 1000)
AT_A_TIME = 40
TARGET = b"/v1/workspaces/demo/files/a.md"
HOST = b"Host: 127.0.0.1\r\n"
GOOD = [
    b"GET " + TARGET + b" HTTP/1.1\r\n" + HOST + b"\r\n",
    b"HEAD " + TARGET + b" HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET " + TARGET + b" HTTP/1.1\r\n" + HOST + b"Range: bytes=1-3\r\nIf-None-Match: \"x\"\r\n\r\n",
    b"PUT /v1/workspaces/demo/files/b.md HTTP/1.1\r\n" + HOST + b"Content-Length: 11\r\n\r\nhello world",
    b"PUT /v1/workspaces/demo/files/c.md HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nTrailer: x\r\n\r\n",
    b"POST /v1/workspaces/demo/tools/ls HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
    b"POST /mcp/demo HTTP/1.1\r\n" + HOST + b'Content-Length: 46\r\n\r\n{"jsonrpc":"2.0","id":1,"method":"initialize"}',
    b"POST /v1/workspaces/demo/boards/main/items HTTP/1.1\r\n" + HOST
    + b"Content-Type: multipart/form-data; boundary=q\r\nContent-Length: 62\r\n\r\n--q\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nx\r\n--q--\r\n",
    b"GET /v1/workspaces/demo/download?format=zip HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET /v1/workspaces/demo/events?since=0&wait=0 HTTP/1.1\r\n" + HOST + b"\r\n",
]
JUNK = [b"\0", b"\r\n", b"\n", b" ", b":", b"%", b"%00", b"%zz", b"\xff\xfe", b"/../", b"HTTP/1.1", b"HTTP/9.9", b"A" * 5000, b"Content-Length: 99999999999999999999\r\n",
        b"Content-Length: -1\r\n", b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n", b"ffffffffffffffff\r\n", b"X: " + b"y" * 40000 + b"\r\n", b"X: y\r\n" * 200, b"\x16\x03\x01\x02\x00\x01",
        b"Connection: upgrade\r\nUpgrade: websocket\r\n", b"Range: bytes=99999999999999999999-\r\n", b"[" * 3000, b"{\"a\":" * 200]


def mutate(choice, request):
    """Junk inserted, bytes changed, parts removed or doubled, the end cut off."""
    data = bytearray(request)
    for _ in range(choice.choice([0, 1, 1, 2, 4])):
        at = choice.randrange(len(data) + 1)
        kind = choice.randrange(5)
        if kind == 0:
            data[at:at] = choice.choice(JUNK)
        elif kind == 1 and at < len(data):
            data[at] = choice.randrange(256)
        elif kind == 2:
            del data[at : at + choice.randrange(1, 30)]
        elif kind == 3:
            data[at:at] = data[at : at + choice.randrange(1, 200)]
        else:
            data += choice.choice(GOOD)  # what follows on the same connection
    if choice.random() < 0.3:
        del data[choice.randrange(len(data) + 1) :]
    return bytes(data)


class Hostile:
    """One connection that sends its bytes in pieces and reads what comes, or does not."""

    def __init__(self, choice, port):
        self.choice, self.data = choice, mutate(choice, choice.choice(GOOD))
        self.reads, self.lingers, self.left = choice.random() < 0.7, choice.random() < 0.2, choice.randrange(3, 30)
        self.sock = socket.create_connection(("127.0.0.1", port), 20)
        self.sock.setblocking(False)

    def step(self):
        """False: it is done."""
        self.left -= 1
        try:
            if self.data:
                size = self.choice.choice([1, 7, 100, 100000])
                sent = self.sock.send(self.data[:size])
                self.data = self.data[sent:]
            if self.reads and select.select([self.sock], [], [], 0)[0] and not self.sock.recv(1 << 16):
                return False
        except BlockingIOError:
            pass
        except OSError:
            return False
        return self.left > 0 or (self.lingers and self.left > -200)

    def close(self):
        if self.choice.random() < 0.3:  # with a reset
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.sock.close()


def start():
    site = Site()
    site.run("init", "demo")
    site.start()
    client = Client(site.port, 20)
    for i in range(50):
        assert client.ask("PUT", "/v1/workspaces/demo/files/a.md", b"0123456789")[0] == (200 if i else 201)
    return site, client


def wrong_connections_harm_nobody_else():
    choice = random.Random(seed())
    site, client = start()
    open_ones, made, served, most = [], 0, 0, 0
    try:
        while made < HOSTILE or open_ones:
            while made < HOSTILE and len(open_ones) < AT_A_TIME:
                open_ones.append(Hostile(choice, site.port))
                made += 1
            for one in open_ones[:]:
                if not one.step():
                    one.close()
                    open_ones.remove(one)
            if choice.random() < 0.1:
                status, _, body = client.ask("GET", TARGET.decode())
                assert (status, body) == (200, b"0123456789") or status in (200, 404), (status, body)
                served += 1
            if made % 1000 == 0:
                most = max(most, site.memory_kib())
            assert site.is_alive(), "the server has ended"
        most = max(most, site.memory_kib())
        assert client.ask("GET", "/healthz")[0] == 200
        print(f"# {made} wrong connections, {served} requests of others, at most {most} KiB")
        assert most < 96 * 1024, most
    finally:
        site.end()


def idle_connections_cost_little_and_others_are_served():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    site, client = start()
    idle = []
    try:
        before = site.memory_kib()
        for i in range(IDLE):
            sock = socket.create_connection(("127.0.0.1", site.port), 20)
            if i % 3 == 1:
                sock.sendall(b"GET " + TARGET + b" HTTP/1.1\r\nHos")  # half a head
            if i % 3 == 2:
                sock.sendall(GOOD[0])  # one request, and then nothing
            idle.append(sock)
            if i % 100 == 0:
                assert client.ask("GET", "/healthz")[0] == 200
        for _ in range(100):
            assert client.ask("GET", TARGET.decode())[0] == 200
        each = (site.memory_kib() - before) / IDLE
        print(f"# {IDLE} idle connections: {before} KiB before, {site.memory_kib()} KiB with them, {each:.1f} KiB each")
        assert each < 48, each
    finally:
        for sock in idle:
            sock.close()
        site.end()


run_tests([wrong_connections_harm_nobody_else, idle_connections_cost_little_and_others_are_served])
