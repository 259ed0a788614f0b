#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a transcript against the real program and compares what it prints. In a transcript a line "$ command" is run (with
# the lines "> …" after it), the lines that follow are the output expected of it (standard output and error), "[exit N]"
# closes the output of a command that fails, and a line that starts with '#' before the first command is a comment.
# Commands run in one shell, in an empty home directory of their own.
#
#   transcript.sh PROGRAM FILE            a golden transcript; STEAD_GOLDEN=write rewrites it
#   transcript.sh --fenced PROGRAM FILE   the ```console blocks of a Markdown file; '…' stands for any text
#
# What differs from run to run is replaced before the comparison: the home directory, the program's path, versions,
# calls, times, and the server of remote.sh.
set -u
fenced=
[ "$1" = --fenced ] && { fenced=1; shift; }
program=$(realpath "$1") file=$(realpath "$2")
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
mkdir -p "$home/bin" "$home/work"
ln -s "$program" "$home/bin/stead"
for name in $(compgen -e STEAD_) XDG_DATA_HOME XDG_CONFIG_HOME XDG_CACHE_HOME NO_COLOR; do
	[ "$name" = STEAD_GOLDEN ] || unset "$name"
done
export HOME=$home PATH=$home/bin:$PATH LC_ALL=C.UTF-8 TZ=UTC
cd "$home/work" || exit 1

normalise() {
	sed -E -e "s#${STORE:-@STORE@}#@STORE@#g" -e "s#${ADDRESS:-@ADDRESS@}#@ADDRESS@#g" -e "s#$program#@STEAD@#g" -e "s#$home#@HOME@#g" \
		-e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(\.[0-9]+)?Z/@TIME@/g' \
		-e 's/\b[0-9a-f]{12}-[0-9]+\b/@CALL@/g' -e 's/[0-9.]+ ms$/@N@ ms/' -e 's/[0-9]+ files may be open/@N@ files may be open/' \
		-e 's/(version"?:? ?"?)[0-9a-z][-0-9a-z.:]{7,}/\1@VERSION@/g'
}

# The output of a command in the form of a transcript.
perform() { # command
	eval "$1" >"$home/.output" 2>&1 </dev/null
	local code=$?
	[ -s "$home/.output" ] && [ -n "$(tail -c 1 "$home/.output")" ] && echo >>"$home/.output"
	[ $code = 0 ] || echo "[exit $code]" >>"$home/.output"
	normalise <"$home/.output"
}

# A glob that matches the expected text, in which only '…' is special.
pattern_of() { # text
	local quoted
	[ -n "$1" ] || return 0
	printf -v quoted '%q' "$1"
	case $quoted in
	"\$'"*) eval "quoted=$quoted"; quoted=${quoted//\\/\\\\}; quoted=${quoted//\*/\\*}
		quoted=${quoted//\?/\\?}; quoted=${quoted//\[/\\[} ;;
	esac
	printf '%s' "${quoted//…/*}"
}

failures=0 number=0
compare() { # command expected actual
	number=$((number + 1))
	local pattern
	if [ -n "$fenced" ]; then
		pattern=$(pattern_of "$2")
		# shellcheck disable=SC2053
		[[ $3 == $pattern ]] && { echo "ok $number - ${1%%$'\n'*}"; return; }
	else
		[ "$2" = "$3" ] && { echo "ok $number - ${1%%$'\n'*}"; return; }
	fi
	failures=$((failures + 1))
	echo "not ok $number - ${1%%$'\n'*}"
	diff <(printf '%s\n' "$2") <(printf '%s\n' "$3") | sed 's/^/# /'
}

rewritten=$home/.rewritten
: >"$rewritten"
command= expected= open= inside=
[ -n "$fenced" ] || inside=1
finish() {
	[ -n "$open" ] || return 0
	open=
	# not in a subshell: "cd" and variables must last
	perform "$command" >"$home/.actual"
	local actual
	actual=$(cat "$home/.actual"; echo .)
	actual=${actual%.}
	printf '$ %s\n%s' "${command//$'\n'/$'\n'> }" "$actual" >>"$rewritten"
	compare "$command" "${expected%$'\n'}" "${actual%$'\n'}"
}
while IFS= read -r line || [ -n "$line" ]; do
	if [ -n "$fenced" ]; then
		case $line in
		'```console') inside=1; continue ;;
		'```'*) finish; inside=; continue ;;
		esac
	fi
	[ -n "$inside" ] || continue
	case $line in
	'$ '*) finish; command=${line#'$ '} expected= open=command ;;
	'> '*)
		if [ "$open" = command ]; then
			command+=$'\n'${line#'> '}
		else
			expected+=$line$'\n'
		fi ;;
	*)
		if [ -z "$open" ]; then
			printf '%s\n' "$line" >>"$rewritten"
		else
			open=output
			expected+=$line$'\n'
		fi ;;
	esac
done <"$file"
finish
echo "1..$number"
if [ "${STEAD_GOLDEN:-}" = write ] && [ -z "$fenced" ] && [ $failures -gt 0 ]; then
	cat "$rewritten" >"$file"
	echo "# rewrote $file"
	exit 0
fi
[ $failures = 0 ]
