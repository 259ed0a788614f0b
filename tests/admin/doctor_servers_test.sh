#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `stead doctor` and `stead fsck` on a deployment of real servers. doctor_servers_test.sh PROGRAM
set -u
stead=$(realpath "$1")
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
export HOME=$home AWS_ACCESS_KEY_ID=$STEAD_TEST_S3_KEY AWS_SECRET_ACCESS_KEY=$STEAD_TEST_S3_SECRET AWS_REGION=us-east-1
unset XDG_DATA_HOME XDG_CACHE_HOME STEAD_WORKSPACE STEAD_STORE STEAD_CONFIG
cd "$home" || exit 1
number=0 failures=0
check() { # what, expected, got
	number=$((number + 1))
	[ "$2" = "$3" ] && { echo "ok $number - $1"; return; }
	echo "not ok $number - $1: expected '$2', got '$3'"
	failures=$((failures + 1))
}
deployment() { # store state
	mkdir -p templates
	cat >stead.yaml <<-Y
		store: "$1"
		state: "$2"
		templates: disk:./templates
		cache: {dir: ./cache}
		users:
		  ann: {store: "$STEAD_TEST_REDIS?prefix=ann"}
		replicas: 2
	Y
}
doctor() { "$stead" --config stead.yaml doctor 2>&1; }
fsck() { "$stead" fsck config:stead.yaml "$@" 2>&1; }
s3="s3://stead-test/doctor?create=1&endpoint=$STEAD_TEST_S3"
deployment "$s3" "$STEAD_TEST_POSTGRES?prefix=doctor"
"$stead" --config stead.yaml init one >/dev/null
"$stead" --config stead.yaml write -w one a.txt --content hello >/dev/null
"$stead" --config stead.yaml grep -w one hello >/dev/null

doctor >out.txt
check "stead.yaml is checked" 1 "$(grep -c '^ok *stead.yaml: .* for 2 replicas' out.txt)"
for key in store state users.ann.store; do
	check "$key answers, keeps conditions, and has our clock" 4 \
		"$(grep -c "^ok *$key\(: .* answers\| latency: \| conditions: \| clock: \)" out.txt)"
done
check "the schema of PostgreSQL is reported" 1 "$(grep -c '^ok *state schema: .* version [0-9]' out.txt)"
check "what Redis may lose is reported" 1 "$(grep -c '^wrong *users.ann.store server: .*appendfsync' out.txt)"
check "templates are read only and there" 1 "$(grep -c '^ok *templates: .* answers' out.txt)"
check "a probe leaves nothing behind" "" "$("$stead" --store "$s3" list | grep doctor)"
STEAD_TEST_CLOCK_NS=$(($(date +%s%N) + 7200000000000)) "$stead" --config stead.yaml doctor >late.txt 2>&1
check "a clock that is two hours off is reported" 1 "$(grep -c '^wrong *store clock: .*behind' late.txt)"

check "a store that is whole has nothing wrong" "" "$(fsck | grep -v ^ok)"
check "the cache is counted" 1 "$(fsck | grep -c '^ok *cache: [0-9]* files')"
for f in cache/*/*; do echo x >>"$f"; done
check "damaged entries of the cache are found" 1 "$(fsck | grep -c '^wrong *cache: .* damaged')"
check "and removed" 1 "$(fsck --repair | grep -c '^ok *cache: .* are removed')"
# A writer that is killed in the middle of a large file.
mkfifo pipe
"$stead" --store "$s3" write -w two big.bin <pipe >/dev/null 2>&1 &
writer=$!
exec 3>pipe
head -c 20000000 /dev/zero >&3
now=$(date +%s%N)
later=$((now + 172800000000000))
for _ in $(seq 100); do
	STEAD_TEST_CLOCK_NS=$later "$stead" fsck config:stead.yaml 2>&1 | grep -q '^wrong *uploads' && break
	sleep 0.1
done
kill -KILL $writer
exec 3>&-
check "an upload of today may still be going on" 1 "$(fsck | grep -c '^ok *uploads: 0 ')"
export STEAD_TEST_CLOCK_NS=$later
check "one that is older than a day is found" 1 "$(fsck | grep -c '^wrong *uploads: 1 ')"
check "and ended" "ok    uploads: 1 unfinished uploads are older than a day; they are removed" "$(fsck --repair | grep uploads)"
check "once" 1 "$(fsck | grep -c '^ok *uploads: 0 ')"
unset STEAD_TEST_CLOCK_NS

deployment "$s3" "redis://someone:s3cret@127.0.0.1:1/0"
doctor >out.txt
check "a server that is not there is named" 1 "$(grep -c '^wrong *state: .*127.0.0.1:1: cannot connect' out.txt)"
deployment "$s3" "redis://someone:s3cret@${STEAD_TEST_REDIS#redis://}/0"
doctor >>out.txt
AWS_SECRET_ACCESS_KEY=s3cret doctor >>out.txt
check "a refused key is reported" yes "$(grep -q '^wrong *store: .*secret' out.txt && echo yes)"
deployment "$s3" "disk:./state"
doctor >>out.txt
check "replicas with local state are reported" 1 "$(grep -c '^wrong *stead.yaml: .*set "state:" to a store that all can reach' out.txt)"
check "no secret is shown" 0 "$(grep -c s3cret out.txt)"
echo "1..$number"
exit $((failures > 0))
