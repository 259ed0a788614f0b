#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What `make start` runs, and what a build without Node embeds. start_test.sh PROGRAM SOURCE
set -u
stead=$(realpath "$1") source=$2
home=$(mktemp -d)
starter=
cleanup() {
	[ -z "$starter" ] || kill -9 "$starter" 2>/dev/null
	rm -rf "$home"
}
trap cleanup EXIT
export HOME=$home STEAD_STORE=disk:$home/ws TMPDIR=$home STEAD_LISTEN=127.0.0.1:0
unset XDG_DATA_HOME STEAD_WORKSPACE STEAD_USER STEAD_AGENT STEAD_CONFIG
number=0 failures=0
check() { # what, expected, got
	number=$((number + 1))
	[ "$2" = "$3" ] && { echo "ok $number - $1"; return; }
	echo "not ok $number - $1: expected '$2', got '$3'"
	failures=$((failures + 1))
}
start() {
	: >"$home/out"
	env --default-signal=INT "$source/tools/start" "$(dirname "$stead")" >"$home/out" 2>"$home/err" &
	starter=$!
	for _ in $(seq 1200); do
		grep -q 'Ctrl-C' "$home/out" && break
		sleep 0.025
	done
	url=$(sed -n 's|^ *\(http://127.0.0.1:[0-9]*\)$|\1|p' "$home/out")
}
stop() { # signal
	kill -"$1" "$starter"
	wait "$starter"
	code=$?
	starter=
}

start
check 'the address serves the page' 200 "$(curl -s -o /dev/null -w '%{http_code}' "$url/")"
check 'what to paste into an MCP client is printed' 1 "$(grep -c "\"url\": \"$url/mcp/sample\"" "$home/out")"
check 'there is something to look at' '# Harbour air study' "$(curl -s "$url/v1/workspaces/sample/files/README.md" | head -1)"
check 'the address for MCP answers' 200 "$(curl -s -o /dev/null -w '%{http_code}' -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
	-d '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' "$url/mcp/sample")"
stop INT
check 'Ctrl-C ends it without an error' 0 "$code"
check 'nothing serves after that' 000 "$(curl -s -o /dev/null -w '%{http_code}' "$url/")"
echo changed >"$home/ws/sample/files/README.md"
start
check 'an existing workspace is left as it is' changed "$(curl -s "$url/v1/workspaces/sample/files/README.md")"
stop TERM
check 'SIGTERM ends it without an error' 0 "$code"

mkdir -p "$home/tree/tools" "$home/tree/web"
cp "$source"/tools/{page,embed} "$home/tree/tools/"
cp "$source/web/without-node.html" "$home/tree/web/"
(cd "$home/tree" && tools/page page.c page.d)
check 'a build without Node embeds a page that says how to get the real one' 1 "$(grep -c '{"index.html", ' "$home/tree/page.c")"
check 'it is built again when the packages are there' 1 "$(grep -c "^page.c: $home/tree/web " "$home/tree/page.d")"
echo "1..$number"
exit $failures
