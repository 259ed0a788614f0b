#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# stead replay: the same again is the same; a change of the model or of a result shows. replay_test.sh PROGRAM
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
	answer '[{"type":"tool_use","id":"a","name":"write_file","input":{"path":"x","content":"1\n"}},{"type":"tool_use","id":"b","name":"note","input":{"title":"N","content":"c"}}]'
	answer '[{"type":"tool_use","id":"c","name":"append_file","input":{"path":"x","content":"2\n"}}]'
	answer '"first"'
	answer '"second"'
} >"$dir/one"
{
	answer '[{"type":"tool_use","id":"c","name":"append_file","input":{"path":"x","content":"3\n"}}]'
	answer '"other"'
	answer '"second"'
} >"$dir/two"
$stead run -m "replay:$dir/one" --session s Go >/dev/null && $stead run -m "replay:$dir/one" --session s And >/dev/null
say "a session is recorded" $?
for from in 1 2 3 4; do
	out=$($stead replay s --from $from --json) && grep -q '"same": true,' <<<"$out"
	say "from step $from, with nothing changed, transcript and files are the same" $?
done
out=$($stead replay s --from 2 --model "replay:$dir/two")
[ $? = 1 ] && grep -q 'step 2: different' <<<"$out" && grep -q 'step 4: the same' <<<"$out" && grep -q 'file differs: x' <<<"$out"
say "another model gives other calls, answers and files" $?
fork=$(sed -n 's/.*in the workspace //p' <<<"$out")
[ "$($stead -w "$fork" cat x)" = $'1\n3' ] && [ "$($stead cat x)" = $'1\n2' ]
say "the new run is in a fork, and the original is as it was" $?
echo changed >"$dir/result"
$stead replay s --from 2 --set-result "1.2=$dir/result" >/dev/null && fork=$($stead list | awk '/replay/ { print $1 }' | tail -1) &&
	grep -rq '"output":"changed' "$dir/ws"/*replay*/agents
say "a result of a tool can be changed" $?
$stead replay s --from 9 2>"$dir/err"
[ $? = 3 ] && grep -q 'has 4 steps' "$dir/err"
say "a step that does not exist is an error" $?
answer '"third"' >"$dir/three"
$stead run -m "replay:$dir/three" --session t Go >/dev/null
out=$($stead replay s t none)
[ $? = 1 ] && grep -q $'^t\t1 of 1\t0\t.*\tthe same$' <<<"$out" && grep -q $'^none\t.*has no session' <<<"$out" &&
	grep -q $'^in all\t5 of 5\t0\t.*\t2 of 3 the same, 1 failed$' <<<"$out"
say "several sessions are compared in a table with their sum" $?
$stead fork branch >/dev/null && $stead -w branch run -m "replay:$dir/one" --session t More >/dev/null &&
	$stead run -m "replay:$dir/two" --session t Here >/dev/null && $stead sessions merge t branch | grep -q ': 1$' &&
	$stead sessions merge t branch | grep -q ': 0$' &&
	[ "$($stead sessions show t --json | grep -c '"role": "user"')" = 3 ]
say "what was said in a fork comes back, once" $?
echo "1..$number"
[ $failures = 0 ]
