#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a transcript (see transcript.sh) against the server that tests/servers/with started. In the transcript $STORE is
# the URL of an empty store there, $ADDRESS the server's host and port, and $SERVER DIR the way to kill it.
#   tests/servers/with NAME -- tests/cli/remote.sh PROGRAM FILE
set -u
here=$(cd "$(dirname "$0")" && pwd)
if [ -n "${STEAD_TEST_S3:-}" ]; then
	export AWS_ACCESS_KEY_ID=$STEAD_TEST_S3_KEY AWS_SECRET_ACCESS_KEY=$STEAD_TEST_S3_SECRET AWS_REGION=us-east-1
	export AWS_ENDPOINT_URL=$STEAD_TEST_S3 STORE=s3://remote/one ADDRESS=${STEAD_TEST_S3#http://}
	export SERVER=$here/../servers/ceph SERVER_DIR=$STEAD_TEST_DIR_CEPH
	"$1" --store "$STORE?create=1" list >/dev/null || exit 1 # makes the bucket
elif [ -n "${STEAD_TEST_REDIS:-}" ]; then
	export STORE=$STEAD_TEST_REDIS ADDRESS=${STEAD_TEST_REDIS#redis://}
else
	export STORE=$STEAD_TEST_POSTGRES ADDRESS=${STEAD_TEST_POSTGRES#*@}
	ADDRESS=${ADDRESS%%/*}
fi
exec "$here/transcript.sh" "$@"
