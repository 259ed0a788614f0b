# SPDX-License-Identifier: Apache-2.0
"""
Tenants of one server attack each other over HTTP: attack_test.py PROGRAM. Prints TAP.

Each tenant has a token for its own part alone, and has written a mark of its own wherever something can be written. Then each calls
every route of /openapi.json and every tool, over HTTP and over MCP, with the workspaces, users, ids and paths of the others. No answer
may have a mark of another tenant, and afterwards no mark may be found in the files of another workspace. STEAD_ATTEMPTS sets how
often; the store is made again after STEAD_ATTEMPTS_ROUND of them, so that it stays small.
"""

import base64
import json
import os
import random
import re
import time
import urllib.parse

from site_of import Client, Site, number, run_tests, seed

ATTEMPTS = number("STEAD_ATTEMPTS", 1500)
ROUND = number("STEAD_ATTEMPTS_ROUND", 20000)
WORKSPACES = ["alpha", "beta", "gamma"]
USERS = ["ann", "bob"]
MARK = re.compile(rb"qz(\d+)zq")
# These start processes or wait; they are called, but rarely.
COSTLY = {"execute", "start_job", "wait_job", "kill_job", "fork", "merge", "web_fetch", "web_search"}
MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


class Tenant:
    def __init__(self, at, workspace, user, token):
        self.at, self.workspace, self.user, self.token = at, workspace, user, token
        self.mark = f"qz{at}zq"
        self.ids = []

    def headers(self):
        return [f"Authorization: Bearer {self.token}"]


class Field:
    def __init__(self, choice):
        self.choice = choice
        self.site = Site(["--relaxed", "--tools", "all"])
        self.tenants, self.leaks, self.statuses, self.seen = [], [], {}, set()

    def prepare(self):
        for name in [*WORKSPACES, "shared"]:
            self.site.run("init", name)
        for name in WORKSPACES:
            self.add(name, None)
        for user in USERS:
            self.add("shared", user)
        self.site.start()
        self.client = Client(self.site.port)
        self.document = self.client.json("GET", "/openapi.json", status=200)
        self.operations = [
            (method.upper(), path, operation)
            for path, item in self.document["paths"].items()
            for method, operation in item.items()
        ]
        for tenant in self.tenants:
            self.plant(tenant)
        listed = self.client.json("GET", "/v1/workspaces/alpha/tools", headers=self.tenants[0].headers(), status=200)
        self.tools = listed["tools"]

    def add(self, workspace, user):
        args = ["token", "create", "--access", "admin", "--for", workspace, "--json"] + (["--as", user] if user else [])
        token = json.loads(self.site.run(*args))["token"]
        self.tenants.append(Tenant(len(self.tenants), workspace, user, token))

    def plant(self, tenant):
        """The mark of the tenant in every place, and the ids of these places."""
        base = f"/v1/workspaces/{tenant.workspace}"
        ask = lambda method, path, value, status: self.client.json(method, base + path, value, tenant.headers(), status)
        self.client.ask("PUT", f"{base}/files/a.md", tenant.mark.encode(), tenant.headers())
        self.client.ask("PUT", f"{base}/files/deep/secret.md", tenant.mark.encode(), tenant.headers())
        ask("POST", "/notes", {"title": f"secret{tenant.at}", "content": tenant.mark}, None)
        ask("POST", "/memory", {"content": f"the code is {tenant.mark}"}, None)
        ask("POST", "/tools/create_task", {"description": tenant.mark}, None)
        ask("POST", "/tools/session_append", {"session": f"s{tenant.at}", "role": "user", "content": tenant.mark}, None)
        item = ask("POST", "/boards/main/items", {"title": tenant.mark, "description": tenant.mark}, 201)["item"]
        place = f"/boards/main/items/{item['id']}"
        lane = ask("POST", "/boards/main/threads", {"title": f"lane{tenant.at}", "responsibility": f"Does all of the work that {tenant.mark} needs"}, 201)
        thread = lane["thread"]["id"]
        self.client.ask("PUT", f"{base}/boards/main/threads/{thread}/files/workspace/a.md", tenant.mark.encode(), tenant.headers())
        ask("POST", "/tools/session_append", {"session": thread, "role": "user", "content": tenant.mark}, None)
        comment = ask("POST", f"{place}/comments", {"body": tenant.mark}, 201)
        ask("POST", f"{place}/journal", {"text": tenant.mark}, 201)
        self.client.ask("PUT", f"{base}{place}/files/artifacts/r.md", tenant.mark.encode(), tenant.headers())
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}
        _, headers, _ = self.client.ask("POST", f"/mcp/{tenant.workspace}", json.dumps(body).encode(), tenant.headers())
        tenant.session = headers[b"mcp-session-id"].decode()
        texts = [item["id"], item.get("key", ""), thread, f"s{tenant.at}", f"secret{tenant.at}", f"001-secret{tenant.at}"]
        texts.append(next(iter(comment.values())).get("id", "") if isinstance(next(iter(comment.values())), dict) else "")
        tenant.ids = [text for text in map(str, texts) if text] + [tenant.token.split("_")[1], tenant.session]

    # --- what an attacker sends ---

    def other(self):
        return self.choice.choice(self.tenants)

    def name(self):
        """A path or a name: one's own, another's, or a way out."""
        c, other = self.choice, self.other()
        leaf = c.choice(["a.md", "deep/secret.md", "MEMORY.md", "TASKS.yaml", "memory", "boards/main", ".stead/rev/log", "agent.yaml", ".env", "", ".", "1", "head", "notes", "sessions", "tokens", "workspace/a.md"])
        way = c.choice(
            ["{0}"] * 8 + ["../{1}/files/{0}", "../../{1}/{0}", "/{1}/files/{0}", "users/{2}/{0}", "../users/{2}/files/{0}",
             "stead:///../{1}/files/{0}", "stead:///{0}", "..%2f{1}%2ffiles%2f{0}", "\\..\\{1}\\files\\{0}", "{3}", "{3}", "disk:{4}/ws/{1}", "{4}/ws/{1}/files/{0}",
             "/task/../../{1}/{0}", "{1}", "{1}@1", "\u0000{0}", "//{1}/{0}"])
        return way.format(leaf, other.workspace, other.user or "ann", c.choice(other.ids), self.site.directory.name)

    def value(self, schema, depth=0):
        c = self.choice
        for key in ("anyOf", "oneOf"):
            if schema.get(key):
                return self.value(c.choice(schema[key]), depth + 1)
        if schema.get("enum"):
            return c.choice(schema["enum"])
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = c.choice(kind)
        if kind in ("integer", "number"):
            return c.choice([0, 1, 1, 2, 3])
        if kind == "boolean":
            return c.random() < 0.5
        if kind == "array" and depth < 4:
            return [self.value(schema.get("items", {}), depth + 1) for _ in range(c.randint(1, 2))]
        if kind == "object" and depth < 4:
            return self.arguments(schema, depth + 1)
        return self.name()

    def arguments(self, schema, depth=0):
        must = schema.get("required", [])
        return {name: self.value(part, depth) for name, part in schema.get("properties", {}).items() if name in must or self.choice.random() < 0.3}

    def tool(self):
        while True:
            tool = self.choice.choice(self.tools)
            if tool["name"] not in COSTLY or self.choice.random() < 0.01:
                arguments = self.arguments(tool.get("input_schema") or tool.get("inputSchema") or {})
                for wait in ("wait_ms", "wait", "timeout_seconds", "seconds"):
                    arguments.pop(wait, None)
                return tool["name"], arguments

    def element(self, name, me, tool):
        """What a name in the path of a route stands for."""
        c, other = self.choice, self.other()
        if name == "workspace":
            plain = c.choice([me.workspace, me.workspace, other.workspace])
            return c.choice([plain] * 8 + [plain.upper(), plain + "%00", f"..%2f{plain}", f"{plain}%2f..%2f{other.workspace}", f"{me.workspace}/../{other.workspace}"])
        if name == "board":
            return c.choice(["main", "main", "main", "..", "..%2f..%2f" + other.workspace])
        if name == "path":
            return urllib.parse.quote(self.name(), safe=c.choice(["", "/", "/.%"]))
        if name == "name" and tool:
            return tool
        if name == "secret":
            return urllib.parse.quote(c.choice(me.ids), safe="")
        return urllib.parse.quote(c.choice(other.ids + [self.name()]), safe="")

    def headers_of(self, me):
        c, other, headers = self.choice, self.other(), []
        dice = c.random()
        if dice < 0.94:
            headers += me.headers()
        elif dice < 0.97:  # a secret of one token under the id of another
            headers.append("Authorization: Bearer stead_" + other.token.split("_")[1] + "_" + me.token.split("_")[2])
        if c.random() < 0.3:
            headers.append("Stead-User: " + urllib.parse.quote(c.choice([me.user or "ann", other.user or "bob", "../" + other.workspace, "*"])))
        return headers

    def rpc(self, me):
        c = self.choice
        name, arguments = self.tool()
        method, params, about = c.choice(
            [("tools/call", {"name": name, "arguments": arguments}, name),
             ("tools/call", {"name": name, "arguments": arguments}, name),
             ("resources/read", {"uri": (uri := "stead:///" + self.name())}, uri),
             ("resources/list", {}, None),
             ("prompts/get", {"name": (prompt := c.choice(["workspace", self.name()]))}, prompt),
             ("completion/complete", {"ref": {"type": "ref/resource", "uri": "stead:///{+path}"}, "argument": {"name": "path", "value": self.name()}}, None)])
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        if c.random() < 0.3:  # the session of another
            return body, [f"Mcp-Session-Id: {self.other().session}"]
        params["_meta"] = MODERN
        headers = [f"Mcp-Method: {method}", "MCP-Protocol-Version: 2026-07-28"]
        if isinstance(about, str):
            headers.append("Mcp-Name: =?base64?" + base64.b64encode(about.encode()).decode() + "?=")
        return body, headers

    def attack(self):
        c, me = self.choice, self.choice.choice(self.tenants)
        method, path, operation = c.choice(self.operations)
        if c.random() < 0.35:  # most of what a tenant can do is in the tools
            method, path = "POST", "/v1/workspaces/{workspace}/tools/{name}"
            operation = self.document["paths"][path]["post"]
        headers, body, tool = self.headers_of(me), None, None
        if path.endswith("/tools/{name}"):
            tool, body = self.tool()
        if path == "/mcp/{workspace}" and method == "GET":  # one's own would be a stream that does not end
            headers.append(f"Mcp-Session-Id: {c.choice([t.session for t in self.tenants if t is not me])}")
        elif path == "/mcp/{workspace}" and method == "POST":
            body, more = self.rpc(me)
            headers += more
        elif "requestBody" in operation and not isinstance(body, dict):
            media = operation["requestBody"]["content"]
            schema = media.get("application/json", {}).get("schema")
            body = self.arguments(schema) if schema else {n: self.name() for n in c.sample(["path", "text", "title", "from", "to", "format", "id", "name", "workspaces", "users"], 3)}
        target = re.sub(r"\{(\w+)\}", lambda m: self.element(m[1], me, tool), path)
        query = {p["name"]: self.name() if p["schema"]["type"] == "string" else c.choice(["0", "1", "true"]) for p in operation.get("parameters", []) if p["in"] == "query" and c.random() < 0.6}
        if path.endswith("/events"):
            query["wait"] = "0"  # else it is a stream
        if query:
            target += "?" + urllib.parse.urlencode(query, errors="surrogateescape")
        data = json.dumps(body).encode() if isinstance(body, dict) else None
        if method == "PUT" and path.endswith("/files/{path}"):
            data = me.mark.encode()
        try:
            status, got, answer = self.client.ask(method, target, data, headers)
        except (ConnectionError, OSError) as error:
            if not self.site.is_alive():
                raise AssertionError(f"the server has ended after {method} {target} {data!r}") from error
            return
        self.statuses[status // 100] = self.statuses.get(status // 100, 0) + 1
        if status < 300:
            self.seen.add(tool or operation["operationId"])
        foreign = [m for m in MARK.findall(answer + b" ".join(got.values())) if int(m) != me.at]
        if foreign or status >= 500 and status not in (501, 503, 507):
            self.leaks.append(f"{me.workspace}/{me.user} {method} {target} {headers[:1]} {data!r}: {status} {answer[:400]!r}")

    def misplaced(self):
        """Marks in the files of another workspace, or of another user."""
        found = []
        for tenant in self.tenants:
            root = f"{self.site.directory.name}/ws/{tenant.workspace}" + (f"/users/{tenant.user}" if tenant.user else "")
            own = {t.at for t in self.tenants if t.workspace == tenant.workspace} if not tenant.user else {tenant.at}
            for directory, _, names in os.walk(root):
                for name in names:
                    with open(os.path.join(directory, name), "rb") as file:
                        if any(int(m) not in own for m in MARK.findall(file.read())):
                            found.append(os.path.join(directory, name))
        return found


def nothing_of_one_tenant_reaches_another():
    choice = random.Random(seed())
    left, attempts, began, statuses, seen = ATTEMPTS, 0, time.monotonic(), {}, set()
    while left > 0:
        field = Field(choice)
        try:
            field.prepare()
            for _ in range(min(left, ROUND)):
                field.attack()
                attempts += 1
                assert not field.leaks, field.leaks[0]
            assert not field.misplaced(), field.misplaced()
        finally:
            field.site.end()
        for key, count in field.statuses.items():
            statuses[key] = statuses.get(key, 0) + count
        seen |= field.seen
        left -= ROUND
        print(f"# {attempts} attempts, {time.monotonic() - began:.0f} s", flush=True)
    answered = statuses.get(2, 0)
    print(f"# answers by class: {statuses}; {len(seen)} of {len(field.operations) + len(field.tools)} routes and tools were let in at least once")
    assert answered > attempts / 20, statuses


run_tests([nothing_of_one_tenant_reaches_another])
