#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `stead watch` follows other processes, goes on where it ended, and ends well. watch_test.sh PROGRAM
set -u
stead=$(realpath "$1")
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
export HOME=$home STEAD_STORE=disk:$home/ws
unset XDG_DATA_HOME STEAD_WORKSPACE
cd "$home" || exit 1
number=0 failures=0
check() { # what, expected, got
	number=$((number + 1))
	[ "$2" = "$3" ] && { echo "ok $number - $1"; return; }
	echo "not ok $number - $1: expected '$2', got '$3'"
	failures=$((failures + 1))
}
# Waits until the file has so many lines; ten seconds at most.
lines_in() { # file count
	for _ in $(seq 200); do
		[ "$(wc -l <"$1")" -ge "$2" ] && return
		sleep 0.05
	done
}
revisions() { sed -n 's/^{"revision":\([0-9]*\),.*/\1/p' "$1" | tr '\n' ' '; }

"$stead" write first --content 1 >/dev/null
for signal in TERM INT; do
	: >"$signal.txt"
	# a shell ignores SIGINT for what it starts in the background; env puts that right
	env --default-signal=INT "$stead" watch --since 0 --json >"$signal.txt" &
	watcher=$!
	lines_in "$signal.txt" 1
	"$stead" write "by-$signal" --content x >/dev/null
	"$stead" write "by-$signal" --mode append --content y >/dev/null
	lines_in "$signal.txt" 3
	kill -"$signal" $watcher
	wait $watcher
	check "SIG$signal ends it with exit code 0" 0 $?
	[ $signal = TERM ] && check "it told what was there and what other processes did" "1 2 3 " "$(revisions TERM.txt)"
done
last=$(revisions TERM.txt | awk '{print $NF}')
"$stead" watch --since "$last" --once --json >again.txt
check "it goes on where it ended, with no gap and no repeat" "4 5 " "$(revisions again.txt)"
"$stead" watch --since "$last" by-INT --once --json >below.txt
check "a path limits it" "4 5 " "$(revisions below.txt)"
"$stead" watch --since head --once >none.txt
check "nothing new gives empty output" "" "$(cat none.txt)"
timeout 20 "$stead" watch --since 0 | head -1 >/dev/null
check "it ends when nobody reads" "0" "${PIPESTATUS[0]}"
echo "1..$number"
[ $failures = 0 ]
