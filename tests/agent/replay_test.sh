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
{
	echo '{"type":"message","role":"assistant","content":"begun","stop":"paused"}'
	answer '"ended"'
} >"$dir/paused"
[ "$($stead run -m "replay:$dir/paused" --session paused Go)" = ended ] && $stead replay paused --json >"$dir/out" && grep -q '"same": true,' "$dir/out"
say "a turn that went on after an answer that was paused does so again" $?
out=$($stead replay s --from 2 --model "replay:$dir/two")
[ $? = 1 ] && grep -q 'step 2: different' <<<"$out" && grep -q 'step 4: the same' <<<"$out" && grep -q 'file differs: x' <<<"$out"
say "another model gives other calls, answers and files" $?
fork=$(sed -n 's/.*in the workspace //p' <<<"$out")
[ "$($stead -w "$fork" cat x)" = $'1\n3' ] && [ "$($stead cat x)" = $'1\n2' ]
say "the new run is in a fork, and the original is as it was" $?
echo changed >"$dir/result"
tail -n 3 "$dir/one" >"$dir/rest"
$stead replay s --from 2 --set-result "1.2=$dir/result" --model "replay:$dir/rest" >/dev/null && fork=$($stead list | awk '/replay/ { print $1 }' | tail -1) &&
	grep -rq '"output":"changed' "$dir/ws"/*replay*/agents
say "a result of a tool can be changed" $?
out=$($stead replay s --set-result "1.2=$dir/result" --model "replay:$dir/rest") && grep -q '^step 2: the same' <<<"$out" &&
	! grep -q '^step 1:' <<<"$out"
say "a changed result of a step makes the replay begin with the next one" $?
out=$($stead replay s --set-result "1=$dir/result" --model "replay:$dir/rest") && grep -q '^step 2: the same' <<<"$out" &&
	log=$(echo "$dir"/ws/"$(sed -n 's/.*in the workspace //p' <<<"$out")"/agents/*/sessions/s.log.jsonl) && [ "$(grep -c '"output":"changed' "$log")" = 1 ] &&
	[ "$(grep -c '"type":"tool_result"' "$log")" = 3 ] && grep -q '"name":"note","output":"[^c]' "$log"
say "the first of several results of a step can be changed, and the others stay" $?
tail -n 1 "$dir/one" >"$dir/last"
out=$($stead replay s --from 4 --set-result "1=$dir/result" --model "replay:$dir/last") && grep -q '^step 4: the same' <<<"$out" &&
	[ "$($stead -w "$(sed -n 's/.*in the workspace //p' <<<"$out")" cat x)" = $'1\n2' ]
say "a replay that begins later keeps what was done in between" $?
$stead replay s --set-result "1.2=$dir/result" 2>"$dir/err"
[ $? = 2 ] && grep -q 'model' "$dir/err"
say "after a change it is a model that answers, not the recording" $?
before=$($stead list | grep -c replay) bad=0
for wrong in foo 1=/nonexistent =x x=y 0=x 1.0=x; do
	$stead replay s --set-result "$wrong" -m "replay:$dir/rest" >/dev/null 2>&1 && bad=1
done
$stead replay s --prompt /nonexistent -m "replay:$dir/rest" >/dev/null 2>&1 && bad=1
$stead replay s --from 1 --set-result "1=$dir/result" >/dev/null 2>&1 && bad=1
[ $bad = 0 ] && [ "$($stead list | grep -c replay)" = "$before" ]
say "a wrong change is refused before anything is forked" $?
$stead replay s --set-result "1.7=$dir/result" -m "replay:$dir/rest" >/dev/null 2>&1
[ $? = 3 ] && { $stead replay s --from 2 -m "replay:$dir/none" >/dev/null 2>&1; [ $? != 0 ]; } && [ "$($stead list | grep -c replay)" = "$before" ]
say "a replay that fails leaves no fork" $?
{
	answer '[{"type":"tool_use","id":"a","name":"read_file","input":{"path":"not-there"}}]'
	answer '"gone"'
} >"$dir/missing"
$stead run -m "replay:$dir/missing" --session m Look >/dev/null && $stead replay m >/dev/null
say "a file that is missing in the fork is missing in the same words" $?
$stead run -m openai:x --base-url http://127.0.0.1:9 --session cut Go >/dev/null 2>&1
$stead run -m "replay:$dir/three" --session cut Go >/dev/null 2>&1 || true
$stead run -m "replay:$dir/missing" --session cut --resume >/dev/null && $stead replay cut --from 3 >/dev/null 2>"$dir/err"
[ $? = 3 ] && grep -q 'has 2 steps' "$dir/err"
say "a question that was never answered is not a step" $?
{
	answer '[{"type":"tool_use","id":"a","name":"write_file","input":{"path":"y","content":"1"}}]'
} >"$dir/half"
$stead run -m "replay:$dir/half" --session half Go >/dev/null 2>&1
out=$($stead replay half) && grep -q '^step 1: the same$' <<<"$out" && ! grep -q '^step 2' <<<"$out"
say "a conversation whose last turn was cut off is the same up to there" $?
$stead replay s --set-result "9=$dir/result" -m "replay:$dir/rest" 2>"$dir/err"
[ $? = 3 ] && grep -q 'and none with number 9' "$dir/err" && { $stead replay s --set-result "4=$dir/result" -m "replay:$dir/rest" 2>"$dir/err"; [ $? = 2 ]; } &&
	grep -q 'nothing follows step 4' "$dir/err"
say "a result of a step that does not exist is refused under its own number" $?
$stead replay s --from 9 2>"$dir/err"
[ $? = 3 ] && grep -q 'has 4 steps' "$dir/err"
say "a step that does not exist is an error" $?
cat >"$dir/server" <<'EOF'
while read -r line; do
	id=$(sed -n 's/.*"id":\([0-9]*\).*/\1/p' <<<"$line")
	case $line in
	*'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"p","version":"1"}}' ;;
	*'"tools/list"'*) result='{"tools":[{"name":"post","inputSchema":{"type":"object"}}]}' ;;
	*'"tools/call"'*) echo post >>"$1" && result="{\"content\":[{\"type\":\"text\",\"text\":\"posted $(wc -l <"$1")\"}]}" ;;
	*) result= ;;
	esac
	[ -n "$id" ] && [ -n "$result" ] && echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$result}"
done
EOF
printf '{"mcpServers":{"out":{"command":"bash","args":["%s","%s"],"protocolVersion":"2025-06-18"}}}' "$dir/server" "$dir/posts" >"$dir/ws/default/tools.json"
post() { answer "[{\"type\":\"tool_use\",\"id\":\"$1\",\"name\":\"out__post\",\"input\":$2}]"; }
{
	post a '{"text":"one"}'
	answer '[{"type":"tool_use","id":"b","name":"spawn_agent","input":{"agent_id":"helper","task":"Help","timeout_seconds":60}}]'
	answer '"posted"'
} >"$dir/post"
mkdir -p "$dir/ws/default/subagents"
printf -- '---\ndescription: Helps.\nmodel: "replay:%s"\n---\nYou help.\n' "$dir/last" >"$dir/ws/default/subagents/helper.md"
$stead run -m "replay:$dir/post" --session post Go >/dev/null 2>&1
$stead replay post >/dev/null && [ "$(wc -l <"$dir/posts")" = 1 ]
say "what acted outside of the workspace does not happen again, and its result and those of subagents are as recorded" $?
mv "$dir/ws/default/tools.json" "$dir/kept" && $stead replay post >/dev/null 2>&1
say "a replay does not need the servers that the recording had" $?
mv "$dir/kept" "$dir/ws/default/tools.json"
{
	post c '{"text":"two"}'
	post d '{"text":"one"}'
	answer '"other"'
} >"$dir/others"
out=$($stead replay post -m "replay:$dir/others")
[ $? = 1 ] && grep -q 'out__post {"text":"two"} -> out__post was not called: it acts outside' <<<"$out" &&
	grep -q 'out__post {"text":"one"} -> posted 1' <<<"$out" && [ "$(wc -l <"$dir/posts")" = 1 ]
say "calls of another model that act outside of the workspace are those of the recording, or are not made" $?
rm "$dir/ws/default/tools.json"
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
