#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A command asks only for options and tools that exist; asking for another aborts. Every command and action is run once,
# and the names that occur in the sources are compared with the tables. options_test.sh PROGRAM SOURCE-DIRECTORY
set -u
stead=$(realpath "$1") src=$(realpath "$2")
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
export HOME=$home STEAD_STORE=disk:$home/ws
unset XDG_DATA_HOME STEAD_WORKSPACE STEAD_USER STEAD_AGENT STEAD_CONFIG
number=0 failures=0
is() { # what, expected, got
	number=$((number + 1))
	[ "$2" = "$3" ] && { echo "ok $number - $1"; return; }
	echo "not ok $number - $1: expected '$2', got '$3'"
	failures=$((failures + 1))
}
# What a run says about a mistake in the program itself, and its exit code if a signal ended it.
bug_of() { # command and action, operands as in the usage line
	local operands=()
	for _ in ${2//[][]/}; do operands+=(x); done
	rm -rf "$home/ws" "$home/work"
	cp -r "$home/made" "$home/ws"
	mkdir "$home/work"
	echo x >"$home/work/x"
	# shellcheck disable=SC2086
	# in the foreground: otherwise a SIGCONT follows, and a leak checker that is stopping its threads waits for ever
	(cd "$home/work" && timeout --foreground -s INT 10 "$stead" $1 "${operands[@]}" </dev/null >/dev/null 2>"$home/err")
	local code=$?
	[ $code -lt 128 ] || echo "exit code $code: $(cat "$home/err")"
	grep 'bug:' "$home/err"
}

"$stead" write x --content x >/dev/null
mv "$home/ws" "$home/made"
"$stead" help --json | sed -n '/"commands"/,/^  \]/p' >"$home/help"
grep -E '^      "(name|operands)"' "$home/help" | cut -d'"' -f4 | while read -r name && read -r operands; do
	case $operands in
	'['*' | '*) tr '|' '\n' <<<"${operands:1:-1}" | while read -r action rest; do echo "$name $action:$rest"; done ;;
	*) echo "$name:$operands" ;;
	esac
done >"$home/list"
is "there are commands to run" yes "$([ "$(wc -l <"$home/list")" -gt 60 ] && echo yes)"
while IFS=: read -r command operands <&3; do
	[ "$command" = watch ] && command="watch --once" # it would wait for changes
	is "$command" "" "$(bug_of "$command" "$operands")"
done 3<"$home/list"

options_in() { # file, name of the table
	sed -n "/struct option $2\\[\\] = {/,/^};/s/^\\t{\"\\([a-z-]*\\)\".*/\\1/p" "$1"
}
common=$(options_in "$src/command/command.c" common_options)
while read -r file; do
	asked=$(grep -oE '(args_(has|get|each|number)\([^"]*|cli_setting\(cli, |option_rev\(cli, )"[a-z-]+"|=--[a-z-]+' "$file" |
		sed -E 's/.*"([a-z-]+)"/\1/; s/^=--//' | sort -u)
	declared=$({ options_in "$file" '[a-z_]*'; echo "$common"; } | sort -u)
	is "${file#"$src/"} declares its options" "" "$(comm -23 <(echo "$asked") <(echo "$declared") | tr -d '\n')"
done < <(find "$src" -name '*_commands.c' | sort)
echo "1..$number"
[ $failures = 0 ]
