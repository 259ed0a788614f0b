#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Arguments and circumstances that nobody means well: each gets an exit code of the table and, on failure, one line.
# hostile_test.sh PROGRAM
set -u
stead=$(realpath "$1")
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
export HOME=$home STEAD_STORE=disk:$home/ws
unset XDG_DATA_HOME STEAD_WORKSPACE STEAD_USER STEAD_AGENT
cd "$home" || exit 1
number=0 failures=0
report() { # whether it is right, what
	number=$((number + 1))
	[ "$1" = 0 ] && { echo "ok $number - $2"; return; }
	echo "not ok $number - $2"
	head -c 2000 err 2>/dev/null | sed 's/^/# /'
	failures=$((failures + 1))
}
refuses() { # what, exit code, arguments…
	local what=$1 code=$2 got
	shift 2
	"$stead" "$@" >out 2>err </dev/null
	got=$?
	[ $got = "$code" ] && [ "$(wc -l <err)" = 1 ] && [ "$(wc -c <err)" -lt 1000 ] && ! grep -qP '[\x00-\x08\x0b-\x1f]' err
	report $? "$what is refused with exit code $code (was $got)"
}
"$stead" init default >/dev/null
long=$(head -c 100000 /dev/zero | tr '\0' a)
bad=$'\xff\xfe' escape=$'\e[31mred'
refuses "a very long command" 2 "$long"
refuses "a very long option" 2 ls "--$long"
refuses "many letters" 2 ls "-l$long"
refuses "a very long path" 2 cat "$long"
refuses "a very long workspace" 2 -w "$long" ls
refuses "a very long pattern" 8 grep "$long"
refuses "a very long glob" 8 find "$long"
refuses "a command that is not UTF-8" 2 "$bad"
refuses "an option that is not UTF-8" 2 ls "--$bad"
refuses "a letter that is not ASCII" 2 ls "-$bad"
refuses "a path that is not UTF-8" 2 cat "$bad"
refuses "an argument of a tool that is not UTF-8" 2 call read_file "path=$bad"
refuses "an escape sequence" 2 "$escape"
refuses "a path with an escape sequence" 2 cat "$escape"
refuses "a path with a newline" 2 cat $'a\nb'
refuses "a path that leaves the root" 2 cat ../../etc/passwd
refuses "an empty command" 2 ''
refuses "an empty path" 2 cat ''
refuses "an empty workspace name of another case" 2 -w X ls
refuses "JSON that nests too deep" 2 call ls "$(printf '[%.0s' {1..1000})"
refuses "a directory of one's own that is missing" 3 ls --files "$home/none"
refuses "a memory limit in no unit" 2 exec --memory 1x true
refuses "an empty memory limit" 2 exec --memory '' true
refuses "a memory limit that no program fits into" 2 exec --memory 1000 true
refuses "a variable without a name" 2 exec --env =1 true
refuses "a name that cannot be a variable" 2 exec --env 'a b=1' true
refuses "a session that is not named" 2 exec --keep session true
refuses "a job that would end with the command" 9 call start_job 'command=sleep 1'
refuses "a mount over nothing" 2 mount ''
refuses "nothing to drop" 2 sandbox drop
refuses "JSON errors too" 2 --json "$escape"

head -c 50000000 /dev/urandom >big
"$stead" write big <big >out 2>err && "$stead" cat big 2>err | cmp - big
report $? "fifty megabytes go in and come out byte for byte"
# A sanitizer reserves terabytes of addresses, so a limit can only be set without one.
limit=40000
(ulimit -v $limit; "$stead" --version >out 2>&1) || limit=unlimited
(ulimit -v $limit; "$stead" write --mode append big <big >out 2>err && "$stead" cat big | cmp - <(cat big big) 2>err)
report $? "appending and printing stream: 40 MB of memory are enough for 100 MB"
(ulimit -f 1000; "$stead" write limited <big >out 2>err)
[ $? = 8 ] && [ "$(wc -l <err)" = 1 ] && grep -q 'would exceed the limit of the file system or the process' err && "$stead" write after <<<x >out
report $? "a limit on the size of files is an error, and does not end the program"
"$stead" cat big 2>err | head -c 1 >/dev/null
[ ! -s err ] && [ "${PIPESTATUS[0]}" = 0 ]
report $? "a reader that goes away is not an error"
yes 'a line to be found' | head -200000 | "$stead" write many.txt >out
"$stead" grep found 2>err | head -1 >/dev/null
[ ! -s err ]
report $? "nor is it for grep"
"$stead" cat big >/dev/full 2>err
[ $? = 15 ] && grep -q 'standard output' err
report $? "standard output to a full disk is an error"
"$stead" ls >&- 2>err
[ $? != 0 ] && [ -s err ]
report $? "a closed standard output is an error"
"$stead" write x <&- >out 2>err
[ $? != 0 ] && ! "$stead" info x >/dev/null 2>&1
report $? "a closed standard input leaves no file"
env -i "$stead" --store memory: ls >out 2>err
report $? "an empty environment is enough with a store"
(exec -a '' "$stead" --version >out 2>err)
report $? "argv[0] may be empty"
echo "1..$number"
[ $failures = 0 ]
