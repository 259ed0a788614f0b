# SPDX-License-Identifier: Apache-2.0
# What the scripts of this directory share. Sourced, after `dir` (the server's directory) is set.

limit_s=${STEAD_TEST_START_S:-90} # a server that is not ready by then has failed

# A port of 127.0.0.1 where nobody listens, below the range that the kernel gives out; never the same twice in a script.
ports_given=" "
free_port() { # sets `port`
	while :; do
		port=$((RANDOM % 21000 + 11000))
		[[ $ports_given == *" $port "* ]] && continue
		(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && continue
		ports_given+="$port "
		return 0
	done
}

need() { # programs
	local program
	for program; do
		PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null && continue
		echo "$program is not installed; run tools/setup test" >&2
		exit 1
	done
}

fail() { # sentence, log files
	local log
	echo "$1" >&2
	shift
	for log; do
		[ ! -s "$log" ] || { echo "--- the end of $(basename "$log")" && tail -n 8 "$log"; } >&2
	done
	exit 1
}

# Runs a server in the background and notes its process id. Its output goes to DIR/log/NAME.
launch() { # name command...
	local log=$dir/log/$1
	mkdir -p "$dir/log"
	shift
	"$@" >"$log" 2>&1 </dev/null &
	echo $! >>"$dir/pids"
}

# Waits until a command succeeds; fails at once when a server has ended, and when the time is up.
await() { # what command...
	local what=$1 pid
	shift
	until "$@" >/dev/null 2>&1; do
		while read -r pid; do
			kill -0 "$pid" 2>/dev/null || fail "a server ended while waiting for $what" "$dir"/log/*
		done <"$dir/pids"
		[ $SECONDS -lt "$limit_s" ] || fail "$what was not there after $limit_s seconds" "$dir"/log/*
		sleep 0.05
	done
}

listening() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; } # port

# Ends what launch started: asks, then insists. With `now`, insists at once.
end_all() {
	local pids tries
	[ -e "$dir/pids" ] || return 0
	mapfile -t pids <"$dir/pids"
	[ ${#pids[@]} -gt 0 ] || return 0
	if [ "${1:-}" != now ]; then
		kill -TERM "${pids[@]}" 2>/dev/null
		for ((tries = 0; tries < 100; tries++)); do
			kill -0 "${pids[@]}" 2>/dev/null || break
			sleep 0.05
		done
	fi
	kill -KILL "${pids[@]}" 2>/dev/null
	for ((tries = 0; tries < 100; tries++)); do
		kill -0 "${pids[@]}" 2>/dev/null || break
		sleep 0.05
	done
	rm -f "$dir/pids"
}
