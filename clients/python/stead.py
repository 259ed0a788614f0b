# SPDX-License-Identifier: Apache-2.0
"""A client for `stead serve`, with nothing but Python's own library.

    from stead import Stead

    stead = Stead("http://127.0.0.1:7777", token="...")
    files = stead.workspace("research").files
    files.write("notes/plan.md", b"# Plan")
    board = stead.workspace("research").board()
    item = board.create("Compare the drafts", description="Say which one is better.")

Every failure is a SteadError with the sentence that Stead gives, its kind and its status. Downloads are streams; nothing
is held in memory as a whole unless you ask for it.
"""

import http.client
import io
import json
import urllib.parse
import uuid

__all__ = ["Stead", "SteadError"]

_CHUNK = 256 * 1024


class SteadError(Exception):
    """What Stead answered in place of a result. Decide by `kind`; show the text."""

    def __init__(self, status, problem):
        super().__init__(problem.get("detail") or problem.get("title") or f"status {status}")
        self.status = status
        self.kind = problem.get("kind", "")
        self.retryable = bool(problem.get("retryable"))
        self.problem = problem


class Download(io.RawIOBase):
    """The bytes of a file as they come. `content_type`, `version` and `size` are known from the start."""

    def __init__(self, connection, response):
        self._connection, self._response = connection, response
        self.content_type = response.getheader("Content-Type") or "application/octet-stream"
        self.version = (response.getheader("ETag") or "").strip('"')
        length = response.getheader("Content-Length")
        self.size = int(length) if length is not None else None

    def readable(self):
        return True

    def readinto(self, buffer):
        return self._response.readinto(buffer)

    def close(self):
        self._connection.close()
        super().close()


class Stead:
    """A server. `user` is whom the requests act as, if the token may act as several users."""

    def __init__(self, url, token=None, user=None, timeout=60):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"not the URL of a server: {url}")
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connect = lambda: kind(parts.hostname, parts.port, timeout=timeout)
        self._base = parts.path.rstrip("/")
        self._headers = {}
        if token:
            self._headers["Authorization"] = "Bearer " + token
        if user:
            self._headers["Stead-User"] = urllib.parse.quote(user)

    def request(self, method, path, query=None, body=None, headers=None):
        """One request; gives the connection and its answer, whose body is not read yet."""
        target = self._base + path
        query = {k: _text(v) for k, v in (query or {}).items() if v is not None}
        if query:
            target += "?" + urllib.parse.urlencode(query)
        connection = self._connect()
        try:
            connection.request(method, target, body=body, headers={**self._headers, **(headers or {})})
            response = connection.getresponse()
            if response.status >= 400:
                raise _error(response)
        except BaseException:
            connection.close()
            raise
        return connection, response

    def json(self, method, path, query=None, value=None):
        """One request whose body and answer are JSON."""
        body = None if value is None else json.dumps(value).encode()
        headers = {"Content-Type": "application/json"} if body is not None else None
        connection, response = self.request(method, path, query, body, headers)
        try:
            data = response.read()
        finally:
            connection.close()
        return json.loads(data) if data else None

    def workspaces(self):
        return [w["name"] for w in self._pages("/v1/workspaces", "workspaces")]

    def workspace(self, name):
        return Workspace(self, name)

    def create_workspace(self, name):
        self.json("PUT", "/v1/workspaces/" + _part(name))
        return Workspace(self, name)

    def _pages(self, path, key, query=None, cursor="next"):
        query = dict(query or {})
        while True:
            page = self.json("GET", path, query)
            yield from page[key]
            query["cursor"] = page.get(cursor)
            if not query["cursor"]:
                return


class Workspace:
    def __init__(self, stead, name):
        self.stead, self.name = stead, name
        self.path = "/v1/workspaces/" + _part(name)
        self.files = Files(stead, self.path)

    def call(self, tool, **arguments):
        """Calls a tool; gives its structured result, or its text where it has none."""
        answer = self.stead.json("POST", f"{self.path}/tools/{_part(tool)}", value=arguments)
        return answer.get("result", answer["text"])

    def tools(self):
        return self.stead.json("GET", self.path + "/tools")["tools"]

    def search(self, query, **options):
        return self.stead.json("GET", self.path + "/search", {"query": query, **options})

    def prompt(self):
        return self.stead.json("GET", self.path + "/prompt")

    def changes(self, since=0, wait=0, path=None):
        """Changes after a revision: {"changes", "next", "more"}; waits up to `wait` seconds for the first."""
        return self.stead.json("GET", self.path + "/events", {"since": since, "wait": wait, "path": path})

    def boards(self):
        return self.stead.json("GET", self.path + "/boards")["boards"]

    def board(self, name="main"):
        return Board(self.stead, f"{self.path}/boards/{_part(name)}")


class Files:
    """The files of a workspace, or of an item of a board."""

    def __init__(self, stead, path):
        self._stead, self._path = stead, path

    def _file(self, path):
        return self._path + "/files/" + "/".join(_part(p) for p in path.strip("/").split("/"))

    def list(self, path="", recursive=False):
        return self._stead._pages(self._path + "/files", "entries", {"path": path, "recursive": recursive})

    def open(self, path, offset=None, length=None):
        """The file as a stream, whole or a part of it."""
        headers = None
        if offset is not None or length is not None:
            first = offset or 0
            headers = {"Range": f"bytes={first}-{'' if length is None else first + length - 1}"}
        return Download(*self._stead.request("GET", self._file(path), headers=headers))

    def read(self, path):
        with self.open(path) as stream:
            return stream.read()

    def write(self, path, data, if_version=None, create_only=False):
        """`data` is bytes, text, or a file that is open for reading. Gives {"path", "size", "version"}."""
        headers = {"Content-Type": "application/octet-stream"}
        if if_version:
            headers["If-Match"] = f'"{if_version}"'
        if create_only:
            headers["If-None-Match"] = "*"
        if isinstance(data, str):
            data = data.encode()
        connection, response = self._stead.request("PUT", self._file(path), body=data, headers=headers)
        try:
            return json.loads(response.read())
        finally:
            connection.close()

    def delete(self, path, recursive=False):
        self._stead.json("DELETE", self._file(path), {"recursive": recursive})

    def preview(self, path):
        return self._stead.json("GET", self._path + "/preview", {"path": path})


class Board:
    def __init__(self, stead, path):
        self._stead, self._path = stead, path

    def items(self, **filters):
        return self._stead._pages(self._path + "/items", "items", filters, "next_cursor")

    def create(self, title, attachments=(), **fields):
        """A new item. `attachments` are pairs of a name and bytes."""
        answer = _send(self._stead, "POST", self._path + "/items", {"title": title, **fields}, attachments)
        return Item(self._stead, self._path, answer["item"])

    def item(self, ref):
        return Item(self._stead, self._path, self._stead.json("GET", f"{self._path}/items/{_part(ref)}")["item"])

    def threads(self):
        return self._stead.json("GET", self._path + "/threads")["threads"]

    def create_thread(self, title, responsibility=None, **fields):
        """A new lane; a conversation (purpose="conversation") needs no responsibility."""
        fields = {"title": title, **({"responsibility": responsibility} if responsibility else {}), **fields}
        return self._stead.json("POST", self._path + "/threads", value=fields)["thread"]

    def thread_files(self, thread_id):
        """The thread's own files, below workspace/ and uploads/."""
        return Files(self._stead, f"{self._path}/threads/{_part(thread_id)}")

    def notices(self, **filters):
        return self._stead._pages(self._path + "/notices", "notices", filters, "next_cursor")


class Item:
    """An item of a board: its fields as they were when it was last asked for, and its files."""

    def __init__(self, stead, board, fields):
        self._stead, self.fields = stead, fields
        self.id = fields["id"]
        self._path = f"{board}/items/{_part(self.id)}"
        self.files = Files(stead, self._path)

    def __getitem__(self, key):
        return self.fields[key]

    def _take(self, answer):
        self.fields = answer["item"]
        return self

    def refresh(self):
        return self._take(self._stead.json("GET", self._path))

    def update(self, attachments=(), **fields):
        return self._take(_send(self._stead, "PATCH", self._path, fields, attachments))

    def complete(self, result_summary, artifacts, **fields):
        """Checked by Stead: every artifact must exist, and the item's checks must pass."""
        return self.update(status="completed", result_summary=result_summary, artifacts=list(artifacts), **fields)

    def assign(self, thread_id, **fields):
        return self._take(self._stead.json("POST", self._path + "/assignments", value={"thread_id": thread_id, **fields}))

    def archive(self):
        return self._take(self._stead.json("POST", self._path + "/archive", value={}))

    def unarchive(self):
        return self._take(self._stead.json("POST", self._path + "/unarchive", value={}))

    def answer(self, *answers, text=None):
        """Answers are pairs of a question's id and a value; or one text for all questions."""
        value = {"freeform_text": text} if text else {"answers": [{"question_id": q, "value": v} for q, v in answers]}
        return self._take(self._stead.json("POST", self._path + "/answer", value=value))

    def comment(self, body, attachments=()):
        return _send(self._stead, "POST", self._path + "/comments", {"body": body}, attachments)["comment"]

    def comments(self):
        return self._stead.json("GET", self._path + "/comments")["comments"]

    def journal(self, whole=True):
        return self._stead.json("GET", self._path + "/journal", {"whole": whole})["journal"]

    def changes(self, since=0, wait=0):
        return self._stead.json("GET", self._path + "/events", {"since": since, "wait": wait})


def _part(text):
    return urllib.parse.quote(str(text), safe="")


def _text(value):
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _error(response):
    try:
        problem = json.loads(response.read(1 << 20))
    except ValueError:
        problem = {}
    return SteadError(response.status, problem if isinstance(problem, dict) else {})


def _send(stead, method, path, fields, attachments):
    """JSON, or with files a form."""
    if not attachments:
        return stead.json(method, path, value=fields)
    mark = uuid.uuid4().hex
    body = bytearray()
    for key, value in fields.items():
        text = value if isinstance(value, str) else json.dumps(value)
        body += f'--{mark}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{text}\r\n'.encode()
    for name, data in attachments:
        quoted = name.replace("\\", "\\\\").replace('"', '\\"')
        head = f'--{mark}\r\nContent-Disposition: form-data; name="attachments"; filename="{quoted}"\r\n\r\n'
        body += head.encode() + bytes(data) + b"\r\n"
    body += f"--{mark}--\r\n".encode()
    headers = {"Content-Type": f"multipart/form-data; boundary={mark}"}
    connection, response = stead.request(method, path, body=bytes(body), headers=headers)
    try:
        return json.loads(response.read())
    finally:
        connection.close()
