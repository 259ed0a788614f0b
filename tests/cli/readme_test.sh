#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The ```console blocks of README.md do what the README says: readme_test.sh PROGRAM README
exec "$(dirname "$0")/transcript.sh" --fenced "$1" "$2"
