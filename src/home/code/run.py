# Runs the code of an agent. Standard input has {"code", "input", "root", "env"?}; the answer goes to descriptor 3 as one
# JSON object, so nothing that the code prints can be taken for it: {"result"?, "text"?, "results", "error"?}.
#
# With the argument "worker", standard input is a list of modules to import, and worker.py waits for calls.
import json
import os
import sys

RESULTS_MAX = 20
INLINE_MAX = 65536


def place_for(root, stem, ending):
    folder = os.path.join(root, "artifacts")
    os.makedirs(folder, exist_ok=True)
    number = 1
    while os.path.exists(os.path.join(folder, "%s-%d%s" % (stem, number, ending))):
        number += 1
    return "artifacts/%s-%d%s" % (stem, number, ending)


def shown(root, value):
    """What there is to see of a value: an image as a file, the rest as text."""
    for mime, method, ending in (("image/png", "_repr_png_", ".png"), ("image/jpeg", "_repr_jpeg_", ".jpg")):
        data = getattr(value, method, lambda: None)()
        if isinstance(data, bytes):
            path = place_for(root, "image", ending)
            with open(os.path.join(root, path), "wb") as file:
                file.write(data)
            return {"mime": mime, "path": path}
    for mime, method in (("image/svg+xml", "_repr_svg_"), ("text/html", "_repr_html_"),
                         ("text/markdown", "_repr_markdown_")):
        data = getattr(value, method, lambda: None)()
        if isinstance(data, str):
            return {"mime": mime, "data": data[:INLINE_MAX]}
    return {"mime": "text/plain", "data": (value if isinstance(value, str) else repr(value))[:INLINE_MAX]}


def save_figures(root, results):
    plot = sys.modules.get("matplotlib.pyplot")
    for number in plot.get_fignums() if plot else ():
        path = place_for(root, "figure", ".png")
        plot.figure(number).savefig(os.path.join(root, path))
        results.append({"mime": "image/png", "path": path})


def described(error, code):
    import linecache
    import traceback

    linecache.cache["<code>"] = (len(code), None, code.splitlines(True), "<code>")
    trace = error.__traceback__
    while trace and trace.tb_frame.f_code.co_filename != "<code>":
        trace = trace.tb_next
    lines = traceback.format_exception(type(error), error, trace)
    return {"name": type(error).__name__, "value": str(error)[:4096], "traceback": "".join(lines)[-16384:]}


def load(path, scope):
    """What earlier calls of the session left: modules, definitions by their source, and values."""
    import importlib
    import pickle

    try:
        with open(path, "rb") as file:
            state = pickle.load(file)
    except FileNotFoundError:
        return {}
    for name, module in state["modules"].items():
        try:
            scope[name] = importlib.import_module(module)
        except ImportError:
            pass
    for name, source in state["sources"].items():
        try:
            exec(compile(source, "<code>", "exec", 0, True), scope)
        except Exception as error:
            print("[%s is lost: %s]" % (name, error), file=sys.stderr)
    for data in state["values"]:
        try:
            scope.update(pickle.loads(data))
        except Exception as error:
            print("[a value is lost: %s]" % error, file=sys.stderr)
    return state["sources"]


def pickled(scope, names):
    """The values together, so that what they share stays shared, without those that cannot be kept."""
    import pickle

    try:
        return [pickle.dumps({name: scope[name] for name in names}, 5)], []
    except Exception:
        pass
    kept, lost = {}, []
    for name in names:
        try:
            pickle.dumps(scope[name], 5)
            kept[name] = scope[name]
        except Exception:
            lost.append(name)
    return [pickle.dumps(kept, 5)], lost


def save(path, scope, sources):
    import pickle
    import types

    names = [n for n in scope if not n.startswith("__") and n != "display"]
    modules = {n: scope[n].__name__ for n in names if isinstance(scope[n], types.ModuleType)}
    sources = {n: text for n, text in sources.items() if n in scope}
    values, lost = pickled(scope, [n for n in names if n not in modules and n not in sources])
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "wb") as file:
        pickle.dump({"modules": modules, "sources": sources, "values": values}, file, 5)
    os.replace(path + ".new", path)
    if lost:
        print("[not kept for the next call: %s]" % ", ".join(lost), file=sys.stderr)


def definitions(tree, code, sources):
    """Functions and classes are kept as text, because they cannot be kept as values."""
    import _ast
    import ast

    for node in tree.body:
        if isinstance(node, (_ast.FunctionDef, _ast.AsyncFunctionDef, _ast.ClassDef)):
            first = min([node.lineno] + [d.lineno for d in node.decorator_list])
            sources.pop(node.name, None)
            sources[node.name] = "\n".join(code.splitlines()[first - 1:node.end_lineno])
        else:
            for name in (n.id for n in ast.walk(node) if isinstance(n, _ast.Name) and isinstance(n.ctx, _ast.Store)):
                sources.pop(name, None)


def perform(job, answer):
    state = job.get("state")
    if not state:
        return perform_in({"__name__": "__main__"}, {}, job, answer)
    import types

    state = os.path.expanduser(state)
    main = sys.modules["__main__"] = types.ModuleType("__main__")  # where pickled values look for their classes
    sources = load(state, main.__dict__)
    main.__dict__.pop("run", None)  # an earlier call's own
    sources.pop("run", None)
    try:
        perform_in(main.__dict__, sources, job, answer)
    finally:
        save(state, main.__dict__, sources)


def perform_in(scope, sources, job, answer):
    import _ast

    root, results = job["root"], answer["results"]
    scope["display"] = lambda *values: results.extend(shown(root, v) for v in values)
    tree = compile(job["code"], "<code>", "exec", 0x400, True)  # as a tree
    if job.get("state"):
        definitions(tree, job["code"], sources)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], _ast.Expr) else None
    exec(compile(tree, "<code>", "exec", 0, True), scope)
    value = eval(compile(_ast.Expression(last.value), "<code>", "eval", 0, True), scope) if last else None
    if callable(scope.get("run")):
        answer["result"] = scope["run"](job.get("input"))
        json.dumps(answer["result"], allow_nan=False)
    elif value is not None:
        answer["text"] = repr(value)[:INLINE_MAX]
        if any(hasattr(value, m) for m in ("_repr_png_", "_repr_jpeg_", "_repr_svg_", "_repr_html_", "_repr_markdown_")):
            results.append(shown(root, value))
    save_figures(root, results)


def preload():
    """What calls import, so that they find it; what is missing, they report themselves."""
    import _ast, linecache, traceback, types  # noqa: F401  (the runner's own)

    for name in json.load(sys.stdin):
        try:
            __import__(name)
        except Exception:
            pass


def enter(job):
    """A process that was there before the call gets its directory and its variables now."""
    os.chdir(job["root"])
    os.environ.update(job.get("env", {}))
    if "TZ" in job.get("env", {}):
        import time

        time.tzset()


def main(has_waited=False):
    job = json.loads(sys.stdin.buffer.read())
    if has_waited:
        enter(job)
    job["root"] = os.getcwd()
    nothing = os.open("/dev/null", os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.path.insert(0, os.getcwd())
    answer, code = {"results": []}, 0
    try:
        perform(job, answer)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1 if error.code else 0
    except BaseException as error:
        answer.pop("result", None)
        answer["error"], code = described(error, job["code"]), 1
    answer["results"] = answer["results"][:RESULTS_MAX]
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
    data = memoryview(json.dumps(answer).encode())
    while data:
        data = data[os.write(3, data):]
    os._exit(code & 255)


if sys.argv[1:] == ["worker"]:
    wait_for_calls(preload)
    main(True)
main()
