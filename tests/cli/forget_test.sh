#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A forgotten fact is gone from the server: from the files, from the journal, and from the contents that history keeps.
# Started by tests/servers/with redis. forget_test.sh PROGRAM
set -u
stead=$1
url=$STEAD_TEST_REDIS
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
export XDG_CACHE_HOME=$tmp
memory() { "$stead" --store "$url" -w forgetful memory "$@"; }

# All that the server has, whatever its type.
everything() {
	redis-cli -u "$url" --scan | while read -r key; do
		case $(redis-cli -u "$url" TYPE "$key" </dev/null) in
		string) redis-cli -u "$url" GET "$key" ;;
		hash) redis-cli -u "$url" HGETALL "$key" ;;
		stream) redis-cli -u "$url" XRANGE "$key" - + ;;
		zset) redis-cli -u "$url" ZRANGE "$key" 0 -1 ;;
		set) redis-cli -u "$url" SMEMBERS "$key" ;;
		list) redis-cli -u "$url" LRANGE "$key" 0 -1 ;;
		esac </dev/null
	done
}
n=0
is() { # FACT COMMAND…
	n=$((n + 1))
	local fact=$1
	shift
	if "$@"; then echo "ok $n - $fact"; else
		echo "not ok $n - $fact"
		failed=1
	fi
}
failed=
"$stead" --store "$url" init forgetful >/dev/null
for i in 1 2 3; do memory save "fact $i: the vault has number 99$i" >/dev/null; done
everything >"$tmp/before"
is "the server has the fact before" grep -qa "number 992" "$tmp/before"
memory forget "fact 2: the vault has number 992" >"$tmp/receipt"
is "the receipt covers history" grep -q "contents of [1-9][0-9]* revisions removed$" "$tmp/receipt"
everything >"$tmp/after"
is "the server has the fact nowhere" bash -c "! grep -qa 'number 992' '$tmp/after'"
is "the server has the other facts" grep -qa "number 993" "$tmp/after"
is "the log still says who changed what" test "$("$stead" --store "$url" -w forgetful --root workspace history MEMORY.md | wc -l)" -ge 4
echo "1..$n"
[ -z "$failed" ]
