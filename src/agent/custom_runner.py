# SPDX-License-Identifier: Apache-2.0
# Runs in the sandbox: describes or calls the tools of one file of tools/. Standard input is one JSON object,
# {"file", "source", "call"?, "args"?}; the answer, one more, goes to descriptor 3.
#
# With the argument "worker", standard input is the source: what it imports is imported, and worker.py waits for calls. The
# source itself runs in the process of a call, so no call finds anything of another one.
import sys

sys.path[:] = [p for p in sys.path if p]  # files of the workspace are not code of a tool: agents write them
import json, os, types

WORDS = {str: "string", int: "integer", float: "number", bool: "boolean", dict: "object", list: "array"}


def arg_lines(doc):
    """The "Args:" part of a docstring: {name: text}."""
    found, inside, name = {}, False, None
    for line in (doc or "").splitlines():
        word = line.strip()
        if word in ("Args:", "Arguments:", "Parameters:"):
            inside = True
        elif inside and word in ("Returns:", "Raises:", "Yields:", "Example:", "Examples:"):
            inside = False
        elif inside and ":" in word and word.split(":")[0].split("(")[0].strip().isidentifier():
            name, text = word.split(":", 1)
            name = name.split("(")[0].strip()
            found[name] = text.strip()
        elif inside and word and name:
            found[name] += " " + word
    return found


def schema_of(hint):
    import typing

    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return {"enum": list(args)}
    if origin in (typing.Union, types.UnionType):
        some = [a for a in args if a is not type(None)]
        return schema_of(some[0]) if len(some) == 1 else {}
    if origin in (list, set, tuple):
        return {"type": "array", "items": schema_of(args[0])} if args else {"type": "array"}
    if origin is dict:
        return {"type": "object"}
    return {"type": WORDS[hint]} if hint in WORDS else {}


class Tool:
    def __init__(self, function, name=None, description=None):
        self.function, self.name = function, name or function.__name__
        self.description = description or function.__doc__ or ""

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)

    def schema(self):
        import inspect, typing

        hints, lines = typing.get_type_hints(self.function), arg_lines(self.function.__doc__)
        properties, required = {}, []
        for p in inspect.signature(self.function).parameters.values():
            properties[p.name] = schema_of(hints.get(p.name, str))
            if p.name in lines:
                properties[p.name]["description"] = lines[p.name]
            if p.default is inspect.Parameter.empty:
                required.append(p.name)
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    def invoke(self, args):
        result = self.function(**args)
        if not hasattr(result, "__await__"):
            return result
        import asyncio

        return asyncio.run(result)


def tool(*args, **kwargs):
    if len(args) == 1 and callable(args[0]):
        return Tool(args[0])
    name = args[0] if args else kwargs.get("name")
    return lambda function: Tool(function, name, kwargs.get("description"))


def offer_decorator():
    try:
        import langchain_core.tools  # noqa: F401  (the real one is there)
        return
    except ImportError:
        pass
    for name in ("langchain", "langchain.tools", "langchain_core", "langchain_core.tools"):
        sys.modules[name] = types.ModuleType(name)
    for name in ("langchain.tools", "langchain_core.tools"):
        sys.modules[name].tool = tool


def describe(t):
    if isinstance(t, Tool):
        import inspect

        return {"name": t.name, "description": inspect.cleandoc(t.description), "input_schema": t.schema()}
    model = t.args_schema
    schema = model.model_json_schema() if hasattr(model, "model_json_schema") else model
    keep = {"type": "object", "properties": {}, "required": schema.get("required", []), "additionalProperties": False}
    for name, value in schema.get("properties", {}).items():
        keep["properties"][name] = {k: v for k, v in value.items() if k in ("type", "description", "enum", "items")}
    return {"name": t.name, "description": t.description, "input_schema": keep}


def offer_modules():
    offer_decorator()
    stead = types.ModuleType("stead")
    stead.tool = tool
    sys.modules["stead"] = stead


def call():
    job = json.load(sys.stdin)
    out = {}
    try:
        space = {"__name__": "stead_tools", "__file__": job["file"]}
        exec(compile(job["source"], job["file"], "exec"), space)
        tools = [v for v in space.values() if isinstance(v, Tool) or (hasattr(v, "args_schema") and hasattr(v, "invoke") and not isinstance(v, type))]
        if "call" in job:
            result = next(t for t in tools if t.name == job["call"]).invoke(job.get("args") or {})
            out["text"] = result if isinstance(result, str) else json.dumps(result, default=str, ensure_ascii=False)
        else:
            out["tools"] = [describe(t) for t in tools]
    except BaseException as e:
        out["error"] = f"{type(e).__name__}: {e}"
    data = memoryview(json.dumps(out).encode())
    while data:
        data = data[os.write(3, data):]
    os.close(3)


def import_all(statements):
    """What the source imports when it runs, as far as it can be imported."""
    import _ast

    for s in statements:
        try:
            if isinstance(s, _ast.Import):
                for alias in s.names:
                    __import__(alias.name)
            elif isinstance(s, _ast.ImportFrom) and s.level == 0:
                __import__(s.module, fromlist=[alias.name for alias in s.names])
        except BaseException:
            pass
        if not isinstance(s, (_ast.FunctionDef, _ast.AsyncFunctionDef, _ast.ClassDef)):
            for part in ("body", "orelse", "finalbody", "handlers"):
                import_all(getattr(s, part, []))


def prepare():
    sys.dont_write_bytecode = True
    try:
        import_all(compile(sys.stdin.read(), "tool", "exec", 0x400).body)  # as a tree
    except SyntaxError:
        pass


def end():
    """What the end of an interpreter does that can be seen; to take it apart would copy all of it."""
    import atexit, threading

    for step in (threading._shutdown, atexit._run_exitfuncs, sys.stdout.flush):
        try:
            step()
        except BaseException:
            pass
    os._exit(0)


offer_modules()
if sys.argv[1:] == ["worker"]:
    wait_for_calls(prepare)
    os.chdir(os.environ["OPENPAW_WORKSPACE_PATH"])
    call()
    end()
call()
