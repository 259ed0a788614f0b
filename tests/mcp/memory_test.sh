#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The memory that large calls needed is given back while the server runs on.
# memory_test.sh PROGRAM
set -u
stead=$(realpath "$1")
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
export HOME=$home STEAD_STORE=disk:$home/ws
unset XDG_DATA_HOME STEAD_WORKSPACE STEAD_USER STEAD_AGENT
cd "$home" || exit 1

coproc server { exec "$stead" mcp 2>err; }
exec 3>&"${server[1]}" 4<&"${server[0]}"
pid=$server_PID
write() { # path, bytes
	{
		printf '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write_file","arguments":{"path":"%s",' "$1"
		printf '"mode":"overwrite","content":"'
		head -c "$2" /dev/zero | tr '\0' x
		printf '"}}}\n'
	} >&3
	IFS= read -r answer <&4 && [[ $answer != *isError* ]]
}
resident() { awk '/^VmRSS/ { print $2 }' "/proc/$pid/status"; } # KiB

echo 1..1
write small 100 && before=$(resident) || exit 1
for size in 2000000 20000000 5000000 20000000 10000000; do
	write large $size && write small 100 || exit 1
done
after=$(resident)
exec 3>&- {server[1]}>&-
wait "$pid"
if [ $((after - before)) -lt 6000 ]; then
	echo "ok 1 - after calls of 20 MB the server is as large as before ($before KiB, $after KiB)"
else
	echo "not ok 1 - after calls of 20 MB the server has $after KiB, before it had $before KiB"
fi
