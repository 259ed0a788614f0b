#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Colours are for terminals: there, unless NO_COLOR is set, and never in a pipe. terminal_test.sh PROGRAM
set -u
stead=$(realpath "$1")
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
export HOME=$home STEAD_STORE=disk:$home/ws TERM=xterm
unset XDG_DATA_HOME STEAD_WORKSPACE NO_COLOR
"$stead" write dir/a.txt --content 'a line' >/dev/null
number=0 failures=0
escapes() { # yes or no, what, command
	local got=no
	grep -q $'\e\[' <<<"$3" && got=yes
	number=$((number + 1))
	[ $got = "$1" ] && { echo "ok $number - $2"; return; }
	echo "not ok $number - $2; the output is: $(printf %q "$3")"
	failures=$((failures + 1))
}
on_terminal() { script -qefc "$1" /dev/null </dev/null; }
if ! command -v script >/dev/null; then
	echo "1..0 # SKIP there is no script(1) to make a terminal with"
	exit 0
fi
escapes yes "grep colours paths on a terminal" "$(on_terminal "$stead grep line")"
escapes yes "ls colours directories on a terminal" "$(on_terminal "$stead ls")"
escapes yes "help has bold headings on a terminal" "$(on_terminal "$stead help")"
escapes yes "errors are marked on a terminal" "$(on_terminal "$stead cat none")"
"$stead" edit dir/a.txt line row >/dev/null
escapes yes "history and diff are coloured on a terminal" "$(on_terminal "$stead diff 1")"
escapes yes "diff marks words if asked to" "$(on_terminal "$stead diff 1 --word")"
number=$((number + 1))
case $(on_terminal "$stead diff 1 --word") in
*$'a \e[31mline\e[0m\e[32mrow\e[0m'*) echo "ok $number - a changed word is marked alone" ;;
*) echo "not ok $number - a changed word is marked alone"; failures=$((failures + 1)) ;;
esac
escapes no "NO_COLOR turns colours off" "$(NO_COLOR=1 on_terminal "$stead grep line; $stead ls; $stead help; $stead cat none")"
escapes no "a dumb terminal gets none" "$(TERM=dumb on_terminal "$stead grep line; $stead ls; $stead help")"
escapes no "a pipe gets none" "$("$stead" grep line; "$stead" ls; "$stead" help; "$stead" cat none 2>&1)"
escapes no "JSON has none on a terminal" "$(on_terminal "$stead grep --json line; $stead ls --json; $stead tools --json; $stead history --json; $stead diff 1 --json")"
# A command in the sandbox gets a terminal of its own, with the size of ours; ^C reaches it and ends nothing else.
inside='trap "echo caught; exit 7" INT; stty size; echo "$TERM"; tty; echo ready >/dev/tty; sleep 100 & wait'
printf %s "$inside" | "$stead" write inside.sh >/dev/null
if "$stead" exec -- true 2>/dev/null; then
	coproc terminal { script -qefc "stty rows 33 cols 101; $stead exec --tty -- sh inside.sh" /dev/null; }
	running=$terminal_PID got=
	while IFS= read -r line; do
		got+=$line
		case $line in *ready*) printf '\003' >&"${terminal[1]}" ;; esac
	done <&"${terminal[0]}"
	wait "$running"
	code=$?
	number=$((number + 1))
	case $code:$got in
	7:*"33 101"*xterm*/dev/*ready*caught*) echo "ok $number - a command has a terminal, its name, its size and its signals" ;;
	*) echo "not ok $number - a command has a terminal, its name, its size and its signals: $code $(printf %q "$got")"; failures=$((failures + 1)) ;;
	esac
fi
echo "1..$number"
[ $failures = 0 ]
