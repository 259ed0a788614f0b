#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The completion scripts do complete: bash runs its own with the variables that readline would set; zsh and fish, where
# they are installed, at least load theirs. completion_test.sh PROGRAM
set -u
program=$(realpath "$1")
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
mkdir "$home/bin"
ln -s "$program" "$home/bin/stead"
export HOME=$home PATH=$home/bin:$PATH STEAD_STORE=disk:$home/ws
unset XDG_DATA_HOME STEAD_WORKSPACE STEAD_USER STEAD_AGENT
stead init research >/dev/null && stead init review >/dev/null
stead -w research write notes/day.md --content x >/dev/null
stead -w research write 'notes/my plan.md' --content x >/dev/null
# shellcheck disable=SC1090
source <(stead completion bash)
compopt() { :; } # only readline may call the real one
number=0 failures=0

completes() { # what is typed (the last word is completed); then the replies expected
	local typed=$1
	shift
	read -ra COMP_WORDS <<<"$typed"
	[ "${typed% }" = "$typed" ] || COMP_WORDS+=('')
	COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
	_stead
	number=$((number + 1))
	if [ "$(printf '%s\n' "${COMPREPLY[@]}" | sort)" = "$(printf '%s\n' "$@" | sort)" ]; then
		echo "ok $number - '$typed'"
	else
		echo "not ok $number - '$typed' gives: ${COMPREPLY[*]}; expected: $*"
		failures=$((failures + 1))
	fi
}
completes "stead gr" grep
completes "stead --store x in" init info
completes "stead ls --lo" --long
completes "stead --work" --workspace
completes "stead -w re" research review
completes "stead doctor res" research
completes "stead -w research call read_f" read_file read_files
completes "stead -w research cat no" notes/
completes "stead -w research cat notes/" notes/day.md 'notes/my\ plan.md'
completes "stead write x --mode a" append
completes "stead completion z" zsh
completes "stead tools --dialect nat" native
completes "stead help comp" completion
completes "stead -w missing cat x" ''
for shell in zsh fish; do
	number=$((number + 1))
	if ! command -v $shell >/dev/null; then
		echo "ok $number - $shell loads its script # SKIP $shell is not installed"
		continue
	fi
	stead completion $shell >"$home/script"
	case $shell in
	zsh) zsh -f -c 'autoload -Uz compinit && compinit -u -D && source "$1" && [[ $_comps[stead] == _stead ]]' - "$home/script" ;;
	fish) fish -c 'source $argv[1]; complete -C "stead gre" | string match -q "grep*"' "$home/script" ;;
	esac && echo "ok $number - $shell loads its script" ||
		{ echo "not ok $number - $shell loads its script"; failures=$((failures + 1)); }
done
echo "1..$number"
[ $failures = 0 ]
