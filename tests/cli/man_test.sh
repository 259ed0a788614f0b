#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# docs/man/stead.1 is what the program prints; STEAD_GOLDEN=write rewrites it. man_test.sh PROGRAM PAGE
set -u
echo "1..1"
if "$1" help --man | diff "$2" - >/dev/null; then
	echo "ok 1 - the manual page agrees with the command table"
elif [ "${STEAD_GOLDEN:-}" = write ]; then
	"$1" help --man >"$2"
	echo "ok 1 - the manual page was rewritten"
else
	echo "not ok 1 - the manual page is behind; run: stead help --man > docs/man/stead.1"
	exit 1
fi
