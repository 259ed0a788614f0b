#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `stead serve` and `stead token` as commands: the line when it is ready, signals, tokens, and kill -9 in the middle of
# uploads. serve_test.sh PROGRAM [ROUNDS]
set -u
stead=$(realpath "$1") rounds=${2:-15}
home=$(mktemp -d)
server=
cleanup() {
	[ -z "$server" ] || kill -9 "$server" 2>/dev/null
	rm -rf "$home"
}
trap cleanup EXIT
export HOME=$home STEAD_STORE=disk:$home/ws TMPDIR=$home
unset XDG_DATA_HOME STEAD_WORKSPACE STEAD_USER STEAD_AGENT STEAD_CONFIG
cd "$home" || exit 1
number=0 failures=0
check() { # what, expected, got
	number=$((number + 1))
	[ "$2" = "$3" ] && { echo "ok $number - $1"; return; }
	echo "not ok $number - $1: expected '$2', got '$3'"
	failures=$((failures + 1))
}
start() { # options
	: >out
	env --default-signal=INT "$stead" serve --listen 127.0.0.1:0 "$@" >out 2>err &
	server=$!
	for _ in $(seq 400); do
		[ -s out ] && break
		sleep 0.025
	done
	url=$(sed -n 's/^listening on //p; s/^{"url":"\(.*\)"}$/\1/p' out)
}
stop() { # signal
	kill -"$1" "$server"
	wait "$server"
	code=$?
	server=
}
status() { curl -s -o /dev/null -w '%{http_code}' "$@"; }

"$stead" init demo >/dev/null
for signal in TERM INT; do
	start --open
	check "it says where it listens ($signal)" "listening on $url" "$(cat out)"
	check "it answers" ok "$(curl -s "$url/healthz")"
	stop $signal
	check "SIG$signal ends it with exit code 0" 0 $code
done
start --open --json --verbose
check "with --json it prints its address as JSON" "{\"url\":\"$url\"}" "$(cat out)"
curl -s -H 'X-Request-Id: one' "$url/v1/workspaces/demo/files/none" >/dev/null
stop TERM
check "--verbose writes a line for a request" 1 "$(grep -c ' GET /v1/workspaces/demo/files/none 404 .* one -$' err)"

mkdir -p ws/demo/crons
printf 'schedule: "0 9 * * 1-5"\nprompt: report\n' >ws/demo/crons/daily.yaml
printf 'heartbeat: {enabled: true, interval_minutes: 10080}\nmodel: "replay:missing"\n' >>ws/demo/agent.yaml
check "status names what is next, the earliest first" "true daily heartbeat" \
	"$("$stead" status -w demo --json | jq -r '.workspaces[0].next | (map(.at) == (map(.at) | sort)), (map(.schedule) | sort | join(" "))' | xargs)"
"$stead" -w demo call schedule_at run_at="$(date -u -d '2 seconds' +%Y-%m-%dT%H:%M:%SZ)" prompt=now >/dev/null
start --open --agents
for _ in $(seq 400); do
	grep -q 'failed: ' err && break
	sleep 0.05
done
check "--agents runs what is due, and says how it ended" 1 "$(grep -c ' demo .*: failed: .*missing' err)"
stop TERM
check "and stops with the server" 0 $code
check "status shows what happened" error "$("$stead" status --all --json | jq -r '.workspaces[] | select(.workspace == "demo") | .recent[0].outcome')"
check "also for people" 1 "$("$stead" status -w demo | grep -c '^  recent .*error: ')"
rm -r ws/demo/crons

start
check "without a token it says what to do" 1 "$(grep -c 'stead token create' err)"
check "and refuses" 401 "$(status "$url/v1/workspaces")"
"$stead" token create --access read --for demo --json >token.json 2>/dev/null
token=$(sed -n 's/.*"token": "\(.*\)".*/\1/p' token.json) id=$(sed -n 's/.*"id": "\(.*\)".*/\1/p' token.json)
check "a new token is accepted at once" 200 "$(status -H "Authorization: Bearer $token" "$url/v1/workspaces/demo/files")"
check "for what it allows" 403 "$(status -X PUT -H "Authorization: Bearer $token" "$url/v1/workspaces/demo/files/a")"
check "it is listed without its secret" "$id 0" "$("$stead" token list | cut -d' ' -f1) $("$stead" token list --json | grep -c "$token")"
"$stead" token revoke "$id" >/dev/null
for _ in $(seq 200); do
	code=$(status -H "Authorization: Bearer $token" "$url/v1/workspaces/demo/files")
	[ "$code" = 401 ] && break
	sleep 0.02
done
check "a revoked token is refused" 401 "$code"
stop TERM
"$stead" serve --listen 0.0.0.0:0 >/dev/null 2>err
check "without a token it is not open to others" "6 1" "$? $(grep -c 'there is no token yet' err)"
"$stead" serve --listen nonsense >/dev/null 2>err
check "what is not an address is refused" 2 $?
"$stead" serve --open --listen 127.0.0.1:0 --origin app.example >/dev/null 2>err
check "what is not an origin is refused" "2 1" "$? $(grep -c 'such as https://app.example.org' err)"
"$stead" serve --open --listen 127.0.0.1:0 --host http://stead.example >/dev/null 2>err
check "what is not a name is refused" "2 1" "$? $(grep -c 'such as stead.example.org' err)"
start --open --origin https://app.example/ --host stead.example:443
check "an origin may end in a slash" 200 "$(status -H 'Origin: https://app.example' "$url/healthz")"
check "a name may have a port" 200 "$(status -H 'Host: stead.example' "$url/healthz")"
stop TERM

# Old and new content are recognizable by every byte; a mixture would be seen.
head -c 3000000 /dev/zero | tr '\0' a >a.bin
head -c 3000000 /dev/zero | tr '\0' b >b.bin
# "a3000000" when it is 3,000,000 times the letter a.
content() {
	cat >found
	[ ! -s found ] || echo "$(tr -s ab <found)$(stat -c %s found)"
}
torn=0 lost=0
"$stead" -w demo write big <a.bin >/dev/null
for i in $(seq "$rounds"); do
	start --open
	for n in 1 2 3; do
		curl -s --limit-rate $((n * 4))M -o "answer$n" -w '%{http_code}' -T "$([ $((i % 2)) = 0 ] && echo a.bin || echo b.bin)" \
			"$url/v1/workspaces/demo/files/big$n" >"status$n" &
		uploads[n]=$!
	done
	sleep "0.$((RANDOM % 90 + 10))"
	kill -9 "$server"
	wait "$server" 2>/dev/null
	server=
	wait "${uploads[@]}"
	for n in 1 2 3; do
		new=$([ $((i % 2)) = 0 ] && echo a || echo b)
		found=$("$stead" -w demo cat "big$n" 2>/dev/null | content)
		case $found in '' | a3000000 | b3000000) ;; *) torn=$((torn + 1)) ;; esac
		[ "$(cat "status$n")" = 200 ] && [ "$found" != "${new}3000000" ] && lost=$((lost + 1))
	done
done
check "kill -9 while uploading leaves nothing half-visible" 0 $torn
check "and loses nothing that was acknowledged" 0 $lost
check "and leaves no files behind" 0 "$(find "$home" -maxdepth 1 -name 'stead-body-*' | wc -l)"
echo "1..$number"
[ $failures = 0 ]
