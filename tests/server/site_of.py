# SPDX-License-Identifier: Apache-2.0
"""What the tests of the server in Python share: a server of their own, a plain client on a socket, TAP."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile


def number(name, fallback):
    return int(os.environ.get(name, fallback))


def seed():
    value = number("STEAD_TEST_SEED", random.SystemRandom().randrange(1, 1_000_000))
    print(f"# STEAD_TEST_SEED={value}", flush=True)
    return value


class Site:
    """A store in a directory of its own, and a server over it that can be killed and started again."""

    def __init__(self, options=("--open", "--relaxed")):
        self.program = sys.argv[1]
        self.directory = tempfile.TemporaryDirectory(prefix="stead-test-")
        self.env = {**os.environ, "STEAD_STORE": f"disk:{self.directory.name}/ws"}
        self.options = list(options)
        self.server = None

    def run(self, *args):
        done = subprocess.run([self.program, *args], env=self.env, check=True, capture_output=True)
        return done.stdout.decode()

    def start(self):
        command = [self.program, "serve", *self.options, "--listen", "127.0.0.1:0", "--json"]
        self.server = subprocess.Popen(command, env=self.env, stdout=subprocess.PIPE)
        self.port = int(json.loads(self.server.stdout.readline())["url"].rsplit(":", 1)[1])

    def is_alive(self):
        return not isinstance(self.server.poll(), int)

    def kill(self):
        self.server.send_signal(signal.SIGKILL)
        self.server.wait()
        self.server.stdout.close()

    def memory_kib(self):
        with open(f"/proc/{self.server.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("RssAnon:"))

    def end(self):
        if self.server and self.is_alive():
            self.server.terminate()
            self.server.wait(60)
        self.directory.cleanup()


class Client:
    """One connection that is opened again when the server has closed it."""

    def __init__(self, port, seconds=60):
        self.port, self.seconds, self.sock, self.rest = port, seconds, None, b""

    def close(self):
        if self.sock:
            self.sock.close()
        self.sock, self.rest = None, b""

    def _more(self):
        piece = self.sock.recv(1 << 18)
        if not piece:
            raise ConnectionError("the server has closed the connection")
        self.rest += piece

    def _take(self, count):
        while len(self.rest) < count:
            self._more()
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def _line(self):
        while b"\r\n" not in self.rest:
            self._more()
        line, self.rest = self.rest.split(b"\r\n", 1)
        return line

    def _body(self, method, status, headers):
        if method == "HEAD" or status in (204, 304):
            return b""
        if b"chunked" not in headers.get(b"transfer-encoding", b""):
            return self._take(int(headers.get(b"content-length", b"0")))
        pieces = []
        while size := int(self._line(), 16):
            pieces.append(self._take(size))
            self._line()
        self._line()
        return b"".join(pieces)

    def ask(self, method, target, body=None, headers=()):
        """(status, headers, body). ConnectionError or OSError: there was no whole answer."""
        lines = [f"{method} {target} HTTP/1.1", "Host: 127.0.0.1", *headers]
        if isinstance(body, bytes):
            lines.append(f"Content-Length: {len(body)}")
        request = ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape") + (body or b"")
        if not self.sock:
            self.sock = socket.create_connection(("127.0.0.1", self.port), self.seconds)
            self.rest = b""
        try:
            self.sock.sendall(request)
            status = int(self._line().split(b" ")[1])
            got = {}
            while line := self._line():
                name, _, value = line.partition(b":")
                got[name.lower()] = value.strip()
            answer = self._body(method, status, got)
        except (ConnectionError, OSError):
            self.close()
            raise
        if got.get(b"connection", b"").lower() == b"close":
            self.close()
        return status, got, answer

    def json(self, method, target, value=None, headers=(), status=None):
        body = json.dumps(value).encode() if isinstance(value, dict) else None
        code, _, answer = self.ask(method, target, body, headers)
        if status and code != status:
            raise AssertionError(f"{method} {target} gives {code}: {answer[:300]!r}")
        return json.loads(answer) if answer else None


def run_tests(tests):
    """Prints TAP; ends the program."""
    failed = 0
    for at, test in enumerate(tests, 1):
        try:
            test()
            print(f"ok {at} - {test.__name__}", flush=True)
        except Exception as error:  # noqa: BLE001
            failed += 1
            where = error.__traceback__
            while where.tb_next:
                where = where.tb_next
            text = repr(error).replace("\n", " ")
            print(f"# line {where.tb_lineno}: {text}\nnot ok {at} - {test.__name__}", flush=True)
    print(f"1..{len(tests)}")
    sys.exit(failed > 0)
