#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `stead copy` between kinds of stores: killed anywhere and run again, repeated, refused, shown.
#   copy_test.sh PROGRAM KIND:KIND...      KIND: disk, redis, postgres, s3
# Two workspaces are equal when their bundles are: files, history, checkpoints, to the byte.
set -u
stead=$(realpath "$1")
shift
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
export HOME=$home TERM=xterm
unset XDG_DATA_HOME STEAD_WORKSPACE STEAD_STORE NO_COLOR
cd "$home" || exit 1
number=0 failures=0
check() { # what, expected, got
	number=$((number + 1))
	[ "$2" = "$3" ] && { echo "ok $number - $1"; return; }
	echo "not ok $number - $1: expected '$2', got '$3'"
	failures=$((failures + 1))
}
url_of() { # kind name
	case $1 in
	disk) echo "disk:$home/$2" ;;
	redis) echo "$STEAD_TEST_REDIS?prefix=$2" ;;
	postgres) echo "$STEAD_TEST_POSTGRES?schema=$2" ;;
	s3) echo "s3://stead-test/$2?create=1&endpoint=$STEAD_TEST_S3" ;;
	esac
}
at() { "$stead" --store "$@"; }
put() { # url path; the content comes from standard input
	at "$1" write -w one "$2" --mode overwrite >/dev/null || echo "# cannot write $2 to $1"
}
fill() { # url
	at "$1" init one >/dev/null || exit 1
	for i in $(seq 12); do
		yes "file $i" | head -c $((i * 900)) | put "$1" "dir$((i % 3))/f$i.txt"
	done
	yes 'a larger file' | head -c 1500000 | put "$1" big.bin
	yes 'a larger file, again' | head -c 1700000 | put "$1" big.bin
	yes 'appended' | head -c 100000 | at "$1" write -w one big.bin --mode append >/dev/null
	at "$1" mv -w one dir1/f1.txt moved.txt >/dev/null
	at "$1" rm -w one dir2/f2.txt >/dev/null
	at "$1" checkpoint -w one before-refactor >/dev/null
}
more() { # url text
	for i in 3 4 5; do echo "$2 $i" | put "$1" "dir$((i % 3))/f$i.txt"; done
	yes "$2" | head -c 300000 | put "$1" "big-$2.bin"
	at "$1" rm -w one dir0/f6.txt >/dev/null 2>&1
	at "$1" checkpoint -w one "after-$2" >/dev/null
}
bundle() { at "$1" export -w one - 2>&1 | sha256sum | cut -c 1-16; }
# Starts the copy and kills it after a while, again and again, each time from another moment on.
killed() { # from to
	local ms
	for _ in $(seq 10); do
		ms=$((RANDOM % 120 + 5))
		"$stead" copy "$1" "$2" --delete >/dev/null 2>killed.err &
		sleep "$(printf '0.%03d' $ms)"
		kill -KILL $! 2>/dev/null
		wait $! 2>/dev/null
		grep . killed.err # a run that was not killed in time must not have failed either
	done
}
pair() { # kind kind
	local from to name="$1 to $2"
	from=$(url_of "$1" "from_$1_$2") to=$(url_of "$2" "to_$1_$2")
	fill "$from"
	check "$name: killed at any moment, no run fails" "" "$(killed "$from" "$to")"
	check "$name: run again, it ends well" 0 "$("$stead" copy "$from" "$to" --delete >out.txt 2>&1; echo $?)"
	check "$name: the copy is equal" "$(bundle "$from")" "$(bundle "$to")"
	more "$from" second
	check "$name: killed while the source goes on, no run fails" "" "$(killed "$from" "$to"; more "$from" third; killed "$from" "$to")"
	check "$name: new revisions are carried on" \
		"$(at "$from" history -w one --json | grep -o '"revision":[0-9]*' | head -n 1)" \
		"$("$stead" copy "$from" "$to" --delete --json | tr -d ' ' | grep -o '"head":[0-9]*' | sed 's/head/revision/')"
	check "$name: the copy is equal again" "$(bundle "$from")" "$(bundle "$to")"
	check "$name: a run with nothing to do copies nothing" '"copied":0' \
		"$("$stead" copy "$from" "$to" --delete --json | tr -d ' ' | grep -o '"copied":[0-9]*')"
	check "$name: it is whole" "" "$("$stead" fsck "$to" | grep -v ^ok)"
	at "$to" undo -w one --since 18 >/dev/null
	check "$name: history can be gone back in at the copy" "$(at "$from" cat -w one big.bin@14 | sha256sum)" \
		"$(at "$to" cat -w one big.bin@14 | sha256sum)"
	check "$name: undo works at the copy" "file 4" "$(at "$to" cat -w one dir1/f4.txt | head -n 1)"
	check "$name: a copy that was worked on is not touched" "[5] has been changed since" \
		"$("$stead" copy "$from" "$to" 2>err.txt; echo "[$?] $(grep -o 'has been changed since' err.txt)")"
	check "$name: and the message says what to do" "remove that workspace there and copy again" \
		"$(grep -o 'remove that workspace there and copy again' err.txt)"
}
if [ -n "${STEAD_TEST_S3:-}" ]; then
	export AWS_ACCESS_KEY_ID=$STEAD_TEST_S3_KEY AWS_SECRET_ACCESS_KEY=$STEAD_TEST_S3_SECRET AWS_REGION=us-east-1
fi
for p in "$@"; do
	pair "${p%:*}" "${p#*:}"
done
at "disk:$home/early" init one >/dev/null
mkdir -p early-copy/one/.stead # what a copy leaves that is killed before its mark
check "a copy that was killed before its first file goes on" 0 "$("$stead" copy "disk:$home/early" "disk:$home/early-copy" >/dev/null 2>&1; echo $?)"
at "disk:$home/zoo" init zoo >/dev/null
echo one | at "disk:$home/zoo" write -w zoo a.md >/dev/null
at "disk:$home/zoo" fork -w zoo middle >/dev/null && at "disk:$home/zoo" fork -w middle ant >/dev/null
chmod 600 zoo/zoo/files/a.md
check "a fork whose name comes before its parent's is copied" 0 "$("$stead" copy "disk:$home/zoo" "disk:$home/zoo-copy" >/dev/null 2>&1; echo $?)"
check "and can be read there" one "$(at "disk:$home/zoo-copy" cat -w ant a.md)"
check "a copied file has the mode of the original" 600 "$(stat -c %a zoo-copy/zoo/files/a.md)"
mkdir -p share && cp -r zoo share/workspaces && mkdir plain && mkdir plain/photos && echo x >plain/photos/one.txt
check "a directory that has a store in it is refused with the right one" "[2] did you mean the store disk:$home/share/workspaces?" \
	"$("$stead" copy "disk:$home/share" "disk:$home/none" 2>err.txt; echo "[$?] $(grep -o 'did you mean.*' err.txt)")"
check "a directory that is not a store is refused" "[2] is not a store of workspaces" \
	"$("$stead" copy "disk:$home/plain" "disk:$home/none" 2>err.txt; echo "[$?] $(grep -o 'is not a store of workspaces' err.txt)")"
check "and nothing is made at the destination" no "$([ -e none ] && echo yes || echo no)"
at "disk:$home/lost" init one >/dev/null
head -c 100000 /dev/zero | at "disk:$home/lost" write -w one big.bin >/dev/null
at "disk:$home/lost" rm -w one big.bin >/dev/null
rm -r lost/one/.stead/rev/blobs
check "a copy says which contents it cannot have" "missing: 1 content of the history, already lost here; 'stead fsck' names them" \
	"$("$stead" copy "disk:$home/lost" "disk:$home/lost-copy" | grep ^missing)"
check "and so does a bundle" 1 "$(at "disk:$home/lost" export -w one lost.tar --json | grep -c '"missing": 1')"
at "disk:$home/hurt" init one >/dev/null
head -c 100000 /dev/zero | at "disk:$home/hurt" write -w one big.bin >/dev/null
at "disk:$home/hurt" rm -w one big.bin >/dev/null
for blob in $(find hurt/one/.stead/rev/blobs -type f); do printf x | dd of="$blob" conv=notrunc status=none; done
check "a damaged content is not put into a bundle" "[14] sets it aside, then export again, no" \
	"$(at "disk:$home/hurt" export -w one hurt.tar 2>err.txt; echo "[$?] $(grep -o 'sets it aside.*' err.txt), $([ -e hurt.tar ] && echo yes || echo no)")"
check "and not copied" "[14] sets it aside, then copy again" \
	"$("$stead" copy "disk:$home/hurt" "disk:$home/hurt-copy" 2>err.txt; echo "[$?] $(grep -o 'sets it aside.*' err.txt)")"
if command -v script >/dev/null; then # it is drawn from half a second on, so there has to be something to do
	at "disk:$home/many" init one >/dev/null
	(mkdir -p many/one/files && cd many/one/files && seq 4000 | split -a 4 -l 1)
	script -qefc "'$stead' copy disk:$home/many disk:$home/shown" shown.txt </dev/null >/dev/null
	check "progress is shown on a terminal" yes "$(tr '\r' '\n' <shown.txt | grep -q 'copied \[=*-*\] [0-9]* of [0-9]*' && echo yes)"
	check "and none in a pipe" 1 "$("$stead" copy "disk:$home/many" "disk:$home/shown" 2>&1 | wc -l)"
else
	number=$((number + 1))
	echo "ok $number - progress is shown on a terminal # SKIP there is no script(1) to make a terminal with"
fi
echo "1..$number"
exit $((failures > 0))
