#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every database that packaging/stead.yaml names, in comments too, has a URL that Stead accepts: it tries to connect (and
# finds nothing on that port) instead of refusing the URL. packaging_test.sh PROGRAM STEAD.YAML
set -u
stead=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
printf 'REDIS_PASSWORD=x\nPGPASSWORD=x\n' >"$dir/.env"
number=0 failures=0
while read -r url; do
	number=$((number + 1))
	printf 'store: "%s"\n' "$(sed -E 's#[a-z]+\.internal(:[0-9]+)?#127.0.0.1:9#' <<<"$url")" >"$dir/stead.yaml"
	"$stead" --config "$dir/stead.yaml" list >"$dir/out" 2>&1
	code=$?
	[ $code = 13 ] || { failures=$((failures + 1)); echo -n "not "; }
	echo "ok $number - $url is accepted: exit $code, $(head -1 "$dir/out")"
done < <(grep -oE '(redis|postgres)://[^"]+' "$2")
[ $number -ge 2 ] || { echo "not ok - $number URLs were found"; failures=1; }
echo "1..$number"
exit $((failures > 0))
