#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `stead mount`: programs work on a mounted workspace, under its rules, and nothing is left behind. mount_test.sh PROGRAM
set -u
stead=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
if [ ! -r /dev/fuse ] || [ ! -w /dev/fuse ]; then
	echo "1..0 # SKIP this machine has no /dev/fuse that the test may use"
	exit 0
fi
home=$(mktemp -d)
clean() {
	local dir
	cd /
	for dir in "$home"/m*; do
		"$stead" umount --force "$dir" 2>/dev/null
	done
	rm -rf --one-file-system "$home"
}
trap clean EXIT
export HOME=$home STEAD_STORE=disk:$home/ws GIT_CONFIG_NOSYSTEM=1
unset XDG_DATA_HOME STEAD_WORKSPACE
cd "$home" || exit 1
number=0 failures=0
check() { # what, expected, got
	number=$((number + 1))
	[ "$2" = "$3" ] && { echo "ok $number - $1"; return; }
	echo "not ok $number - $1: expected '$2', got '$3'"
	failures=$((failures + 1))
}
# Waits until a command prints what is wanted; ten seconds at most.
until_is() { # wanted, command
	local wanted=$1
	shift
	for _ in $(seq 200); do
		[ "$("$@" 2>/dev/null)" = "$wanted" ] && break
		sleep 0.05
	done
	"$@" 2>&1
}
pid_of() { sed -n "s|^stead:[^ ]*@\([0-9]*\) $home/$1 .*|\1|p" /proc/mounts; }
git() { command git -c user.name=Test -c user.email=test@example.com -c init.defaultBranch=main "$@"; }

mkdir m1 m2
check "it says where it is mounted" "mounted at $home/m1; to unmount it: stead umount $home/m1" "$("$stead" mount m1)"

check "the root directory is not mounted over" "2" "$("$stead" mount / 2>err; echo $?)"

# --- what programs write is in the workspace
echo hello >m1/a.txt
check "a file that a program closed can be read by another command" "hello" "$("$stead" cat a.txt)"
check "and it is one revision" "1" "$("$stead" history a.txt | wc -l)"
echo again >m1/a.txt.tmp && mv m1/a.txt.tmp m1/a.txt
check "an editor's write and rename replaces a file" "again" "$("$stead" cat a.txt)"
"$stead" undo >/dev/null
check "undo takes it back, and the mount shows it" "hello" "$(until_is hello cat m1/a.txt)"
rm m1/a.txt.tmp
"$stead" write other/b.txt --content theirs >/dev/null
check "what another process writes shows up" "theirs" "$(until_is theirs cat m1/other/b.txt)"
cat m1/a.txt >/dev/null
"$stead" write a.txt --mode overwrite --content changed >/dev/null
check "also when the kernel has the old bytes" "changed" "$(until_is changed cat m1/a.txt)"
"$stead" rm a.txt >/dev/null
check "and what it removes goes" "other" "$(until_is other ls m1)"
mkdir -p m1/empty/inner
check "a new directory is there without a file in it" "inner" "$(ls m1/empty)"
rmdir m1/empty/inner m1/empty
check "and goes again" "other" "$(ls m1)"

# --- programs
git init -q m1/repo
for i in $(seq 20); do echo "line $i" >"m1/repo/f$i"; done
(cd m1/repo && git add . && git commit -q -m one)
check "git commits" "" "$(cd m1/repo && git status --short && git fsck --full 2>&1 | grep -v '^Checking')"
(cd m1/repo && mkdir sub && git mv f1 f2 sub && git commit -q -m two && mv sub moved)
check "git sees a renamed directory" " D sub/f1 D sub/f2?? moved/" "$(cd m1/repo && git status --short | tr -d '\n')"
(cd m1/repo && mv moved sub && git gc -q && git clone -q . ../clone)
check "git clones a packed repository" "20" "$(find m1/clone -name .git -prune -o -name 'f*' -type f -print | wc -l)"
check "sqlite keeps a database" "6 ok wal 10" "$(sqlite3 m1/x.db 'create table t(a); insert into t values(1),(2),(3);
	select sum(a) from t; pragma integrity_check; pragma journal_mode=wal; insert into t values(4); select sum(a) from t' | tr '\n' ' ' | sed 's/ $//')"
tar -C $here -cf - golden | tar -C m1 -xf -
check "tar extracts a tree" "" "$(diff -r "$here/golden" m1/golden)"
check "a search finds as much as in a plain directory" "$(grep -rc stead "$here/golden" | wc -l)" "$(grep -rc stead m1/golden | wc -l)"
rm -r m1/golden m1/clone
check "rm -r removes a tree" "other repo x.db" "$(ls m1 | tr '\n' ' ' | sed 's/ $//')"
printf '#!/bin/sh\necho runs\n' >m1/script && chmod +x m1/script
check "a file can be made executable" "runs" "$(m1/script)"

# --- rules
for name in .env .stead sub/.env; do
	check "$name cannot be made" "1 refused" "$(mkdir -p m1/sub; echo x 2>/dev/null >m1/$name && echo 0 made || echo 1 refused)"
done
echo SECRET=1 >ws/default/files/.env
check "a protected file is not there" "0" "$(ls -a m1 | grep -c '^\.env$'; cat m1/.env 2>/dev/null)"
"$stead" umount m1
printf 'quota:\n  bytes: 4MiB\n' >>ws/default/agent.yaml
"$stead" mount m1 >/dev/null
dd if=/dev/zero of=m1/large bs=1M count=8 2>dd.txt
check "the quota refuses the bytes of a large file" "1 3" "$(grep -c quota dd.txt) $(($(stat -c %s m1/large) / 1048576))"
"$stead" umount m1
sed -i '/^quota:/,$d' ws/default/agent.yaml
"$stead" mount m1 >/dev/null
check "an agent cannot touch git's own directory" "1" "$(
	"$stead" mount --agent bot m2 >/dev/null
	echo x 2>/dev/null >m2/repo/.git/hooks/post-commit && echo 0 || echo 1
	"$stead" umount m2)"

# --- parts, the past, read-only
check "a part can be mounted" "b.txt" "$("$stead" mount --path other m2 >/dev/null && ls m2 && "$stead" umount m2)"
"$stead" checkpoint first >/dev/null
echo later >m1/other/b.txt
check "the past can be mounted, and stays" "theirs ro" "$("$stead" mount --at first m2 >/dev/null && echo "$(cat m2/other/b.txt)" \
	"$(touch m2/x 2>/dev/null && echo rw || echo ro)" && "$stead" umount m2)"
check "a read-only mount follows the present" "now ro" "$("$stead" mount --read-only m2 >/dev/null && cat m2/other/b.txt >/dev/null &&
	"$stead" write other/b.txt --mode overwrite --content now >/dev/null && echo "$(until_is now cat m2/other/b.txt)" \
	"$(touch m2/x 2>/dev/null && echo rw || echo ro)" && "$stead" umount m2)"
check "a mounted directory is not mounted again" "4" "$("$stead" mount m1 2>/dev/null; echo $?)"
check "a store is not mounted into itself" "2" "$("$stead" mount ws/default 2>/dev/null; echo $?)"
check "what is not mounted is not unmounted" "3" "$("$stead" umount m2 2>/dev/null; echo $?)"
check "a revision that does not exist is named in the error" "3" "$("$stead" mount --at never m2 2>/dev/null; echo $?)"

# --- a task, with another store mounted into it
mkdir other-store && head -c 3000000 /dev/urandom >other-store/input.bin
"$stead" board create Annotate --mount "/task/source=disk:$home/other-store" --check '{"command":"cmp source/input.bin copy.bin"}' >item.txt
item=$(grep -o 'TASK-[0-9]*' item.txt | head -1)
"$stead" mount --root "task:$item" m2 >/dev/null
check "what is mounted into a task is an ordinary file" "same" "$(cmp m2/source/input.bin other-store/input.bin && echo same)"
check "which cannot be changed" "refused refused" "$(echo x 2>/dev/null >>m2/source/input.bin && echo changed || echo refused) $(
	echo x 2>/dev/null >m2/source/new && echo made || echo refused)"
cp m2/source/input.bin m2/copy.bin && "$stead" umount m2
check "a command with the task as its root sees it" "same" "$("$stead" exec --root "task:$item" cat /task/source/input.bin | cmp - other-store/input.bin && echo same)"
check "and so do the commands over files" "source/ 1 same" "$("$stead" ls --root "task:$item" | grep source) $(
	"$stead" find --root "task:$item" '*.bin' source | wc -l) $("$stead" cat --root "task:$item" source/input.bin | cmp - other-store/input.bin && echo same)"
check "nothing is written below what is mounted" "6" "$(echo x | "$stead" write --root "task:$item" source/new 2>/dev/null; echo $?)"
check "what it would change there cannot be held" "9" "$("$stead" exec --root "task:$item" --hold true 2>/dev/null; echo $?)"
check "a task that does not exist is not mounted" "3" "$("$stead" mount --root task:TASK-1 m2 2>/dev/null; echo $?)"
check "a command of a check reads it too" "0" "$("$stead" board complete "$item" --artifact copy.bin --summary 'The input was compared with its copy.' >complete.txt 2>&1
	echo $?)"

# --- ends
exec 5<m1/other/b.txt
check "a mount in use is not ended" "13" "$("$stead" umount m1 2>/dev/null; echo $?)"
exec 5<&-
check "unmounting ends the process" "0 " "$(pid=$(pid_of m1); "$stead" umount m1
	echo $? "$(sed -n 's/^State:.\([^Z]\).*/\1/p' "/proc/$pid/status" 2>/dev/null)")"
"$stead" mount m1 >/dev/null
pid=$(pid_of m1)
kill -TERM "$pid"
check "SIGTERM unmounts" "" "$(until_is "" pid_of m1)"
"$stead" mount m1 >/dev/null
echo kept >m1/kept
pid=$(pid_of m1)
kill -KILL "$pid"
check "a killed process leaves a mount that does not answer" "1" "$(until_is 1 sh -c 'ls m1 2>&1 | grep -c "not connected"')"
check "which the next mount replaces" "kept" "$("$stead" mount m1 >/dev/null && cat m1/kept)"
kill -KILL "$(pid_of m1)"
check "and which umount removes" "0 " "$("$stead" umount m1; echo $? "$(pid_of m1)")"

# --- a user, through fusermount3. The device is open to users in a mount namespace of its own.
as_user() { # what a shell of the user "nobody" does
	unshare -m sh -c '{ [ -e fuse ] || mknod -m 666 fuse c 10 229; } && mount --bind fuse /dev/fuse && exec "$@"' sh \
		env HOME="$home/user" STEAD_STORE="disk:$home/user/ws" setpriv --reuid 65534 --regid 65534 --clear-groups sh -c "$1" 2>&1
}
if [ "$(id -u)" = 0 ] && [ -u "$(command -v fusermount3)" ] && id nobody >/dev/null 2>&1 && unshare -m true 2>/dev/null; then
	cp "$stead" user-stead
	mkdir user user/m9 && chown -R 65534:65534 user && chmod 755 "$home" user-stead
	check "a user mounts, writes and unmounts" "one two 0 2" "$(as_user 'cd user; s=../user-stead; echo one | $s write a >/dev/null
		$s mount m9 >/dev/null && cat m9/a && echo two >m9/b && $s umount m9 && $s cat b && echo $? $($s ls | wc -l)' | paste -sd' ')"
	check "what fusermount3 refuses is in the message" "1" "$(as_user 'cd user; ../user-stead mount /proc' | grep -c 'fusermount3 refused to mount "/proc" (.*proc')"
	rm -f fuse
fi
echo "1..$number"
[ $failures = 0 ]
