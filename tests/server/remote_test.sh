#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The server over a store that is not on this machine: tokens are read by a worker before the body is accepted, large
# files come in pieces, and a change by another process arrives.
#   tests/servers/with redis -- tests/server/remote_test.sh PROGRAM
set -u
stead=$(realpath "$1")
home=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill -9 "$server" 2>/dev/null; rm -rf "$home"' EXIT
export HOME=$home STEAD_STORE=$STEAD_TEST_REDIS TMPDIR=$home
unset XDG_DATA_HOME STEAD_WORKSPACE STEAD_USER STEAD_AGENT STEAD_CONFIG
cd "$home" || exit 1
number=0 failures=0
check() { # what, expected, got
	number=$((number + 1))
	[ "$2" = "$3" ] && { echo "ok $number - $1"; return; }
	echo "not ok $number - $1: expected '$2', got '$3'"
	failures=$((failures + 1))
}
status() { curl -s -m 30 -o /dev/null -w '%{http_code}' "$@"; }

"$stead" init demo >/dev/null
token=$("$stead" token create --for demo --json 2>/dev/null | sed -n 's/.*"token": "\(.*\)".*/\1/p')
auth="Authorization: Bearer $token"
"$stead" serve --listen 127.0.0.1:0 >out 2>err &
server=$!
for _ in $(seq 400); do
	[ -s out ] && break
	sleep 0.025
done
url=$(sed 's/^listening on //' out) files=$(sed 's/^listening on //' out)/v1/workspaces/demo/files
head -c 3000001 /dev/urandom >big
check "a wrong token is refused, with a body on its way" 401 "$(status -H "${auth%????????}00000000" -T big "$files/big")"
check "a right one is accepted" 201 "$(status -H "$auth" -T big "$files/big")"
check "a token is known from then on" 200 "$(status -H "$auth" "$files")"
curl -s -m 60 -H "$auth" "$files/big" | cmp - big
check "a large file is whole" "0 0" "${PIPESTATUS[*]}"
curl -s -m 60 -H "$auth" -r 1000000-2499999 "$files/big" >part
check "a range of it is exact" "$(tail -c +1000001 big | head -c 1500000 | cksum)" "$(cksum <part)"
curl -s -m 60 -N -H "$auth" "$url/v1/workspaces/demo/events" >events &
watcher=$!
for _ in $(seq 400); do
	grep -q retry events && break
	sleep 0.025
done
"$stead" -w demo write by-another --content x >/dev/null
for _ in $(seq 400); do
	grep -q by-another events && break
	sleep 0.025
done
check "a change by another process arrives" 1 "$(grep -c '"path":"by-another"' events)"
kill -TERM "$server"
wait "$server"
check "it ends well, and its streams with it" "0 0" "$? $(wait $watcher; echo $?)"
server=
echo "1..$number"
[ $failures = 0 ]
