#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# stead run, chat and sessions as they are typed: what is printed, where, and with which exit code. run_test.sh PROGRAM
set -u
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
stead="$1 --store disk:$dir/ws"
number=0 failures=0
say() { # name, 0: it holds
	number=$((number + 1))
	[ "$2" = 0 ] && { echo "ok $number - $1"; return; }
	echo "not ok $number - $1"
	failures=$((failures + 1))
}
answer() { printf '{"type":"message","role":"assistant","content":%s}\n' "$1"; }
{
	answer '[{"type":"tool_use","id":"a","name":"write_file","input":{"path":"x","content":"1"}}]'
	answer '"first"'
	answer '"second"'
	answer '"a summary"'
	answer '"third"'
} >"$dir/model"
model="-m replay:$dir/model"
nobody="-m openai:x --base-url http://127.0.0.1:9"
$stead run $model --stream --session s One >"$dir/out" 2>"$dir/err"
[ "$(od -An -c "$dir/out" | tr -d ' \n')" = 'first\n' ] && grep -q '^\[write_file ' "$dir/err"
say "a streamed answer ends with one newline, and its calls are on standard error" $?
[ -z "$($stead sessions show s | grep -E '\]: *$')" ]
say "no line of a session that is shown is empty" $?
OPENAI_API_KEY=k $stead run $nobody --session s Two >/dev/null 2>&1
$stead run $model --session s Three >"$dir/out" 2>"$dir/err"
grep -q 'finished first: Two$' "$dir/err" && [ "$(cat "$dir/out")" = "a summary" ]
say "a message that was cut off is finished first, and the person is told" $?
OPENAI_API_KEY=k $stead run $nobody --session t Two >/dev/null 2>&1
$stead run $model --session t Two >"$dir/out" 2>"$dir/err"
[ ! -s "$dir/err" ] && [ "$(cat "$dir/out")" = first ]
say "its own message again finishes it without a word" $?
for key in a a b; do $stead run $model --session k --key $key Again; done >"$dir/out" 2>"$dir/err"
[ "$(tr '\n' ' ' <"$dir/out")" = 'first first second ' ] && [ ! -s "$dir/err" ]
say "a message with a key is asked once, and its answer is printed each time" $?
$stead run $model --session k --key b Other 2>&1 >/dev/null | grep -q 'with another text; its answer follows$'
say "a person learns that a key belongs to another text" $?
printf 'policy: {rules: [{id: care, effect: ask, tool: write_file}]}\n' >"$dir/ws/default/agent.yaml"
$stead run $model --session p One >/dev/null 2>"$dir/err"
[ $? = 6 ] && grep -q 'is waiting for approval' "$dir/err" && $stead run $model --session p Other >/dev/null 2>"$dir/err"
[ $? = 6 ] && grep -q 'send this one again' "$dir/err"
say "a message after one whose call waits for approval is not taken, and the person is told" $?
rm "$dir/ws/default/agent.yaml"
{
	answer '"one"'
	answer '"two"'
	answer '"NO_REPLY"'
	answer '"three"'
} >"$dir/talk"
printf '%s\n' Hello Again /compact /status | $stead chat -m "replay:$dir/talk" --session c >"$dir/out" 2>"$dir/err"
grep -q ', 2 turns,' "$dir/out"
say "turns that are a summary now are still counted" $?
printf '%s\n' /undo "/fork branch" | $stead chat $model --session s >"$dir/out" 2>"$dir/err"
grep -q '^took back the last turn; it changed no files$' "$dir/out" && grep -q "stead chat -w branch --session s'" "$dir/out"
say "undo says what it took back, and a fork how its conversation goes on" $?
printf '%s\n' Go /undo /status | $stead chat $model --session u >"$dir/out" 2>&1
grep -q ', 0 turns,' "$dir/out"
say "a turn that was taken back is not counted" $?
printf '%s\n' /undo /redo /new | $stead chat $model --session s >/dev/null 2>&1
[ -z "$($stead sessions show s | grep -E '\]: *$')" ]
say "no line is empty of a turn that was taken back and brought back, and of a conversation that begins again" $?
answer '[{"type":"text","text":"one\u001b[2J\u009b31m\ttwo\u0007"}]' >"$dir/forged"
if command -v script >/dev/null; then
	script -qefc "$stead run -m replay:$dir/forged --session f1 Go; $stead run --stream -m replay:$dir/forged --session f2 Go; $stead sessions show f1" /dev/null </dev/null >"$dir/out"
	! grep -q $'[\e\a]' "$dir/out" && ! grep -q $'\xc2\x9b' "$dir/out" && [ "$(grep -c $'one\xef\xbf\xbd\\[2J\xef\xbf\xbd31m\ttwo\xef\xbf\xbd' "$dir/out")" = 3 ] &&
		$stead run -m "replay:$dir/forged" --session f3 Go | grep -q $'one\e\\[2J'
	say "a terminal shows what a model says without its control characters, and a pipe gets every byte" $?
	answer '[{"type":"text","text":"pay \u202e05\u202c \u2067now\u2069 \u200fok"}]' >"$dir/turned"
	script -qefc "$stead run -m replay:$dir/turned --session f4 Go" /dev/null </dev/null >"$dir/out"
	grep -q $'pay \xef\xbf\xbd05\xef\xbf\xbd \xef\xbf\xbdnow\xef\xbf\xbd \xe2\x80\x8fok' "$dir/out" &&
		$stead run -m "replay:$dir/turned" --session f5 Go | grep -q $'pay \xe2\x80\xae05'
	say "a terminal shows no characters that turn the order of what a model says around" $?
	$stead call create_task $'{"description":"do \xe2\x80\xaethis\xc2\x9b31m"}' >/dev/null
	script -qefc "$stead tasks; $stead status; $stead schedule next $'\xe2\x80\xae\xc2\x9b'" /dev/null </dev/null >"$dir/out"
	grep -q 'this' "$dir/out" && grep -q 'schedule' "$dir/out" && ! grep -q $'\xe2\x80\xae' "$dir/out" && ! grep -q $'\xc2\x9b' "$dir/out"
	say "nor do lists and errors" $?
	# exec: a shell that stays in between gets the Ctrl-C as well, and dies of it when the chat has ended
	coproc TERMINAL { TERM=xterm script -qefc "exec $stead chat -m replay:$dir/talk --session keys" /dev/null; }
	terminal=$TERMINAL_PID out=${TERMINAL[0]} in=${TERMINAL[1]}
	shows() { # text, seconds
		local seen='' char
		while [[ $seen != *"$1" ]] && IFS= read -r -t "$2" -N 1 char <&"$out"; do seen+=$char; done
		[[ $seen == *"$1" ]]
	}
	shows '> ' 60 && printf 'lost' >&"$in" && shows lost 60
	for _ in {1..60}; do # a signal that comes just before the line is waited for is not noticed
		printf '\003' >&"$in"
		shows $'\n' 1 && break
	done
	printf 'Go\r' >&"$in" && shows 'one' 60 && printf '/exit\r' >&"$in"
	exec {in}>&-
	wait "$terminal"
	[ $? = 0 ] && [ "$($stead sessions show keys | grep -c '^\[user\]: Go$')" = 1 ]
	say "Ctrl-C drops the line that is being typed, and the chat goes on" $?
fi
answer '[]' >"$dir/empty"
$stead run -m "replay:$dir/empty" --session e Go >"$dir/out" 2>"$dir/err" && grep -q 'an empty answer$' "$dir/err"
say "a person learns that an answer is empty" $?
echo '{"type":"message","role":"assistant","content":"half","stop":"full"}' >"$dir/full"
$stead run -m "replay:$dir/full" --session full Go >/dev/null 2>"$dir/err" && grep -q "fills the model's window" "$dir/err" &&
	$stead run -m "replay:$dir/full" --session full2 --json Go | grep -q '"cut": true'
say "a person learns that an answer was cut at the end of the model's window" $?
printf 'model: {model: "openai:x", max_turns: 1}\n' >"$dir/ws/default/agent.yaml"
$stead run $model --session limit One >/dev/null 2>&1
[ $? = 15 ] && $stead run $model --session limit --resume >"$dir/out" 2>"$dir/err"
[ $? = 3 ] && [ ! -s "$dir/out" ] && grep -q 'ended without an answer (the turn ended after 1 call to' "$dir/err"
say "a turn that reached a limit has no answer to print" $?
rm "$dir/ws/default/agent.yaml"
printf '{"mcpServers":{"gone":{"command":"sh","args":["-c","echo no licence >&2; exit 3"]}}}' >"$dir/ws/default/tools.json"
$stead servers show gone >/dev/null 2>"$dir/err"
[ $? = 13 ] && grep -q '^no licence$' "$dir/err" && grep -q "with 'stead servers show gone'$" "$dir/err" &&
	$stead run $model --session gone Go 2>&1 >/dev/null | grep -v licence | grep -q '"gone" ended'
say "what a server that does not start writes to standard error is seen by the person who asks for it" $?
rm "$dir/ws/default/tools.json"
mkdir -p "$dir/ws/default/workflows"
printf 'input: the topic\nsteps: [{id: a, task: "about {{input}}"}]\n' >"$dir/ws/default/workflows/about.yaml"
$stead workflow run about $model >/dev/null 2>"$dir/err"
[ $? = 2 ] && grep -q 'needs an input: the topic$' "$dir/err" && [ "$($stead workflow run about cats $model 2>/dev/null)" = first ]
say "a workflow that wants an input does not begin without one" $?
echo "1..$number"
[ $failures = 0 ]
