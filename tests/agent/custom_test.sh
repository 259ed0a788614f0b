#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Custom tools: what is in tools/ becomes a tool, runs in the sandbox with its declared rights, and hurts nothing else.
# custom_test.sh PROGRAM
set -u
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
stead="$1 --store disk:$dir/ws"
home=$dir/ws/default
number=0 failures=0
say() { # name, 0: it holds
	number=$((number + 1))
	[ "$2" = 0 ] && { echo "ok $number - $1"; return; }
	echo "not ok $number - $1"
	failures=$((failures + 1))
}
use() { printf '{"type":"tool_use","id":"%s","name":"%s","input":%s}' "$1" "$2" "$3"; }
run() { # content of the first answer
	printf '{"type":"message","role":"assistant","content":%s}\n' "[$1]" '"done"' | sed 's/\["done"\]/"done"/' >"$dir/model"
	$stead run -m "replay:$dir/model" --session "s$((number))" --json Go
}
output() { grep -o '"output": "[^"]*"' | sed "$1q;d"; }
mkdir -p "$home/tools"
echo 'SECRET=hidden' >"$home/.env"
cat >"$home/tools/math.py" <<'PY'
# stead: files=none
from langchain_core.tools import tool

@tool
def add(a: int, b: int = 2) -> str:
    """Adds two numbers.

    Args:
        a: the first
    """
    return str(a + b)

@tool
def fails() -> str:
    """Fails."""
    raise ValueError("as it should")
PY
cat >"$home/tools/save.py" <<'PY'
# stead: files=write env=SECRET timeout=20
import os
from stead import tool

@tool("save_it")
def save(text: str) -> dict:
    """Saves a text."""
    open("saved.txt", "w").write(text)
    return {"secret": len(os.environ.get("SECRET", "")), "tools": os.path.exists("/workspace/../tools")}
PY
cat >"$home/tools/peek.py" <<'PY'
import os
from stead import tool

@tool
def peek() -> str:
    """Tries what it has no right to."""
    try:
        open("peeked.txt", "w").write("x")
    except OSError:
        pass
    return os.environ.get("SECRET", "no secret")
PY
echo 'import nothing_of_the_kind' >"$home/tools/broken.py"
echo 'raise SystemExit(1)' >"$home/tools/_ignored.py"
printf '#!/bin/sh\nread -r line\necho "got $line"\n' >"$home/tools/echo.sh"
echo '{"name":"echo_it","description":"Echoes.","file":"echo.sh","input_schema":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":false},"rights":{"files":"none"}}' >"$home/tools/echo.json"
echo '{"name":"write_file","description":"Taken.","command":["true"],"input_schema":{"type":"object"}}' >"$home/tools/taken.json"

out=$(run "$(use 1 add '{"a":3}'),$(use 2 fails '{}'),$(use 3 echo_it '{"x":7}'),$(use 4 add '{"a":"x"}')")
[ "$(output 1 <<<"$out")" = '"output": "5"' ]
say "a Python function with @tool is called with its types and defaults" $?
grep -q 'ValueError: as it should' <<<"$out"
say "an exception is an error for the model" $?
grep -q 'got {\\"x\\":7}' <<<"$out"
say "an executable gets its arguments as JSON" $?
grep -q 'expected an integer' <<<"$out"
say "arguments are checked against the types" $?
log=$(cat "$home"/agents/default/sessions/*.log.jsonl)
grep -q 'broken.py are left out: ModuleNotFoundError' <<<"$log" && grep -q 'write_file.. is reserved' <<<"$log"
say "a broken file and a reserved name are reported, and the others work" $?
out=$(run "$(use 1 save_it '{"text":"kept"}'),$(use 2 peek '{}')")
[ "$($stead cat saved.txt)" = kept ] && grep -qF '\"secret\": 6' <<<"$out" && $stead history saved.txt | grep -q saved.txt
say "a tool with the right to write changes files, as revisions" $?
output 2 <<<"$out" | grep -q 'no secret' && ! $stead cat peeked.txt >/dev/null 2>&1
say "a tool without rights changes nothing and sees no variables" $?
describe() { printf '{"name":"%s","description":"Touches.","command":["sh","-c","%s"],"input_schema":{"type":"object"}}' "$1" "$2" >"$home/tools/$1.json"; }
describe touches 'touch saved.txt; cp saved.txt again; cp again saved.txt; rm again; echo told'
describe ruins 'rm saved.txt; echo x >one.txt; echo told'
out=$(run "$(use 1 peek '{}'),$(use 2 touches '{}'),$(use 3 ruins '{}')")
[ "$(output 1 <<<"$out")" = '"output": "no secret\n[not kept: peeked.txt; tools/peek.py may only read the files, a person can give it files=write]\n"' ] &&
	[ "$(output 2 <<<"$out")" = '"output": "told\n"' ] &&
	[ "$(output 3 <<<"$out")" = '"output": "told\n[not kept: one.txt and 1 more; tools/ruins.json may only read the files, a person can give it files=write]\n"' ] &&
	[ "$($stead cat saved.txt)" = kept ]
say "the model learns that what a tool without the right wrote is gone" $?
# Calls after each other in one worker: variables, directories and processes of one are not there for the next, files are.
cat >"$home/tools/count.py" <<'PY'
# stead: files=write
import json, os, sys
from stead import tool
calls = 0

@tool
def count() -> str:
    """Counts."""
    global calls
    calls += 1
    left = os.listdir("/tmp")
    open("/tmp/left", "w").close()
    with open("counted.txt", "a") as f:
        f.write("x")
    return "%d %s %d %s" % (calls, left, os.path.getsize("counted.txt"), os.getppid() if os.getppid() != 1 else "")
PY
echo 'raise SystemExit("taken")' | $stead write json.py >/dev/null
out=$(run "$(use 1 count '{}'),$(use 2 count '{}'),$(use 3 append_file '{"path":"counted.txt","content":"yy"}'),$(use 4 count '{}')")
parent() { sed -n 's/.* \([0-9]*\)"$/\1/p'; }
[ "$(output 1 <<<"$out" | cut -d' ' -f2-4)" = '"1 [] 1' ] && [ "$(output 2 <<<"$out" | cut -d' ' -f2-4)" = '"1 [] 2' ] &&
	[ "$(output 4 <<<"$out" | cut -d' ' -f2-4)" = '"1 [] 5' ]
say "a call finds the files as they are, and nothing else of an earlier call" $?
first=$(output 1 <<<"$out" | parent)
[ -n "$(output 4 <<<"$out")" ] && { [ -z "$first" ] || [ "$first" = "$(output 4 <<<"$out" | parent)" ]; }
say "calls after each other are made by one interpreter" $?
grep -q '"answer": "done"' <<<"$out" && ! grep -q 'taken' <<<"$out" && ! grep -q 'is_error": true' <<<"$out"
say "a file of the workspace is not imported in place of a module" $?
$stead rm json.py >/dev/null
out=$(run "$(use 1 write_file '{"path":"../tools/evil.py","content":"x"}'),$(use 2 write_file '{"path":"tools/evil.py","content":"x"}')")
[ ! -e "$home/tools/evil.py" ]
say "the agent cannot write tools/" $?
# A wheel is an archive; there is no network and none is needed.
wheel() { # version
	mkdir -p "$home/tools/wheels"
	rm -f "$home"/tools/wheels/*
	python3 - "$1" "$home/tools/wheels" <<-'PY'
		import sys, zipfile
		version, to = sys.argv[1:]
		info = "greeting-%s.dist-info/" % version
		with zipfile.ZipFile("%s/greeting-%s-py3-none-any.whl" % (to, version), "w") as z:
		    z.writestr("greeting.py", "version = %r\n" % version)
		    z.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: greeting\nVersion: %s\n" % version)
		    z.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
		    z.writestr(info + "RECORD", "greeting.py,,\n")
	PY
}
cat >"$home/tools/greet.py" <<'PY'
import greeting
from stead import tool

@tool
def greet() -> str:
    """Greets."""
    return "greeting " + greeting.version
PY
echo greeting >"$home/tools/requirements.txt"
wheel 1.0
out=$(run "$(use 1 greet '{}')")
[ "$(output 1 <<<"$out")" = '"output": "greeting 1.0"' ]
say "packages are installed from wheels, without a network" $?
wheel 2.0
out=$(run "$(use 1 greet '{}')")
[ "$(output 1 <<<"$out")" = '"output": "greeting 2.0"' ] && $stead sandbox list | grep -q tools
say "a new wheel is installed in place of the old one" $?
echo no_such_package >"$home/tools/requirements.txt"
run "$(use 1 greet '{}')" >/dev/null
grep -qh 'greet.py are left out: the packages of tools/requirements.txt cannot be installed' "$home"/agents/default/sessions/*.log.jsonl
say "requirements that cannot be met are reported" $?
echo "1..$number"
[ $failures = 0 ]
