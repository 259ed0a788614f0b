#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Examples of the pages of other systems, as a user would run them here. pages_test.sh PROGRAM
set -u
stead=$(realpath "$1")
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
export HOME=$home
unset XDG_DATA_HOME STEAD_STORE STEAD_WORKSPACE STEAD_USER STEAD_AGENT STEAD_CONFIG
cd "$home" || exit 1
stead() { "$stead" "$@" 2>&1; }
number=0 failures=0
is() { # what, expected, got
	number=$((number + 1))
	[ "$2" = "$3" ] && { echo "ok $number - $1"; return; }
	echo "not ok $number - $1: expected '$2', got '$3'"
	failures=$((failures + 1))
}

# OmniCoreAgent: quick setup, "Create a project note at notes/plan.md", "save a summary to /notes/ai_trends.md"
export OMNICOREAGENT_WORKSPACE_BACKEND=local OMNICOREAGENT_WORKSPACE_DIR=./workspace
stead call --dialect omnicoreagent write_file path=notes/plan.md content='- [ ] one' >/dev/null
is "omnicoreagent: the note is where its page says" "- [ ] one" "$(cat workspace/files/notes/plan.md)"
stead call --dialect omnicoreagent write_file path=/notes/ai_trends.md content=summary >/dev/null
is "omnicoreagent: a path may begin with '/'" summary "$(cat workspace/files/notes/ai_trends.md)"
is "omnicoreagent: a bucket that is not named is asked for" \
	'stead: OMNICOREAGENT_WORKSPACE_BACKEND is "s3" and AWS_S3_BUCKET is not set; set it to the bucket' \
	"$(OMNICOREAGENT_WORKSPACE_BACKEND=s3 stead call --dialect omnicoreagent ls)"
is "omnicoreagent: other dialects do not look at its variables" "" "$(stead write x.md --content x >/dev/null; ls workspace/files/x.md 2>/dev/null)"
unset OMNICOREAGENT_WORKSPACE_BACKEND OMNICOREAGENT_WORKSPACE_DIR
printf 'workspace_config:\n  workspace_backend: local\n  workspace_dir: ./workspace\n' >omni.yaml
is "omnicoreagent: workspace_config names the same workspace" summary \
	"$(stead --config omni.yaml --dialect omnicoreagent call read_file path=/notes/ai_trends.md | tail -1)"
is "omnicoreagent: workspace_config without its bucket is an error" \
	'stead: workspace_backend is "r2" and r2_bucket_name is not set; set it to the bucket' \
	"$(stead --store '{workspace_backend: r2}' ls)"
export STEAD_STORE=disk:. STEAD_WORKSPACE=workspace
is "omnicoreagent: a large result becomes an artifact by itself" "[TOOL RESPONSE OFFLOADED]" \
	"$(stead call --dialect omnicoreagent execute command='seq 1 3000' | head -1)"
is "omnicoreagent: the artifact has all of it" "3000" \
	"$(stead call --dialect omnicoreagent tail_artifact artifact_id=execute lines=2 | grep -oE '^3000')"
unset STEAD_STORE STEAD_WORKSPACE

# OpenPaw: init --path, "create new files or append to existing files", builtins
is "openpaw: init --path makes the workspace there" "AGENTS.md HEARTBEAT.md SOUL.md USER.md agent.yaml" \
	"$(stead init my_agent --path ./agent_workspaces >/dev/null; cd agent_workspaces/my_agent && echo *)"
export STEAD_STORE=disk:./agent_workspaces STEAD_WORKSPACE=my_agent
for line in one two; do
	stead call --dialect openpaw write_file file_path=log.md content="$line"$'\n' >/dev/null
done
is "openpaw: write_file appends to a file that exists" "one two" "$(tr '\n' ' ' <agent_workspaces/my_agent/log.md | sed 's/ $//')"
cat >agent_workspaces/my_agent/agent.yaml <<'END'
name: Ops
description: Looks after servers
timezone: America/Denver
model: {provider: anthropic, model: claude-sonnet-4-5, api_key: "${ANTHROPIC_API_KEY}", temperature: 0.2, max_turns: 20}
channel: {type: telegram, token: "${TELEGRAM_BOT_TOKEN}", allowed_users: [7], allowed_groups: []}
queue: {mode: steer, debounce_ms: 200}
builtins: {allow: [], deny: [elevenlabs]}
heartbeat:
  enabled: true
  interval_minutes: 15
  active_hours: "08:00-18:00"
  suppress_ok: true
  output: {channel: telegram, chat_id: 7}
END
is "openpaw: every key of its agent.yaml is accepted" "" \
	"$(ANTHROPIC_API_KEY=k TELEGRAM_BOT_TOKEN=1:t stead doctor my_agent | grep '^wrong')"
printf 'builtins:\n  allow: []    # Empty = allow all available\n  deny:\n    - elevenlabs\n' >agent_workspaces/my_agent/agent.yaml
is "openpaw: its builtins are accepted" "" "$(stead doctor my_agent | grep '^wrong')"
printf 'builtins:\n  allow:\n    - brave_search  # Enable documentation search\n    - send_message  # Progress updates\n' >agent_workspaces/my_agent/agent.yaml
is "openpaw: builtins.allow keeps the file tools and leaves out other builtins" "read_file" \
	"$(stead tools --dialect openpaw --json | grep -oE '"(read_file|create_task)"' | sort -u | tr -d '"\n')"
printf 'builtins:\n  task_tracker:\n    enabled: true\n  brave_search:\n    enabled: true\n' >agent_workspaces/my_agent/agent.yaml
is "openpaw: builtins.NAME.enabled is accepted" "create_task" \
	"$(stead tools --dialect openpaw --json | grep -oE '"(create_task)"' | sort -u | tr -d '"\n')"
printf 'timezone: America/Denver\n' >agent_workspaces/my_agent/agent.yaml
export STEAD_TEST_CLOCK_NS=1772352000123456000 # 2026-03-01T08:00:00Z
echo '{"type":"message","role":"user","content":"Hello"}' | stead sessions append chat >/dev/null
stead sessions archive chat >/dev/null
stead call --dialect openpaw create_task description=x type=research >/dev/null
unset STEAD_TEST_CLOCK_NS
touch -d 2026-03-01T08:00:00Z agent_workspaces/my_agent/SOUL.md
zone() { grep -oE '[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(Z|[+-][0-9:]+)' | sort -u | tr '\n' ' ' | sed 's/ $//'; }
local=2026-03-01T01:00:00-07:00
is "openpaw: ls shows times in the zone" $local "$(stead call --dialect openpaw ls | grep SOUL | zone)"
is "openpaw: file_info shows times in the zone" $local "$(stead call --dialect openpaw file_info path=SOUL.md | zone)"
is "openpaw: tasks show times in the zone" $local \
	"$(stead call --dialect openpaw get_task task_id="$(stead call --dialect openpaw list_tasks | grep -oE '[0-9a-f]{8}' | head -1)" | zone)"
is "openpaw: an archived conversation has times in the zone for people" $local \
	"$(zone <agent_workspaces/my_agent/memory/conversations/conv_2026-03-01T08-00-00-123456.md)"
is "openpaw: and in UTC for programs" 2026-03-01T08:00:00Z \
	"$(zone <agent_workspaces/my_agent/memory/conversations/conv_2026-03-01T08-00-00-123456.json)"
is "openpaw: init writes markers of what is to do" 6 "$(cd agent_workspaces && stead init other --path . >/dev/null; grep -l TO"DO" other/* other/.env | wc -l)"
rm agent_workspaces/my_agent/agent.yaml

# AgentScope: tools.json
printf '{\n  "allow": ["read_file", "grep_files", "execute"],  // what is left\n  "deny": ["write_file"],\n}\n' >agent_workspaces/my_agent/tools.json
is "agentscope: its tools.json leaves what it allows" "grep_files read_file" \
	"$(stead tools --dialect agentscope --json | grep -oE '"name": "[a-z_]*"' | cut -d'"' -f4 | sort | tr '\n' ' ' | sed 's/ $//')"
rm agent_workspaces/my_agent/tools.json

# AgentScope: its layout
w=$home/agent_workspaces/my_agent
scope() { stead --dialect agentscope --agent MyAgent --session Chat-1 "$@"; }
scope call plan_write content='# Plan' >/dev/null
is "agentscope: every session writes plans/PLAN.md" "# Plan" "$(cat "$w/plans/PLAN.md")"
printf 'plans: {directory: design-docs}\n' >"$w/agent.yaml"
scope call plan_write content='# Design' >/dev/null
is "agentscope: the directory of plans is an option" "# Design" "$(cat "$w/design-docs/PLAN.md")"
printf 'plans: {directory: skills}\n' >"$w/agent.yaml"
is "agentscope: plans cannot be where agents may not write" \
	'stead: agent.yaml line 1: plans.directory is "skills", which agents may not write; name another directory' "$(scope call plan_read)"
rm "$w/agent.yaml"
echo '{"type":"message","role":"user","content":"Where were we?"}' | scope sessions append Chat-1 >/dev/null
scope sessions >/dev/null
is "agentscope: ids are directories as they are" Chat-1.log.jsonl "$(ls "$w/agents/MyAgent/sessions" | grep log)"
is "agentscope: sessions.json has a summary" '"summary": "Where were we?"' \
	"$(grep -oE '"summary": "[^"]*"' "$w/agents/MyAgent/sessions/sessions.json")"
echo '{"type":"summary","summary":"About bridges."}' | scope sessions append Chat-1 >/dev/null
scope sessions >/dev/null
is "agentscope: and the newest one" '"summary": "About bridges."' \
	"$(grep -oE '"summary": "[^"]*"' "$w/agents/MyAgent/sessions/sessions.json")"
scope memory save 'Ann leads.' >/dev/null
mkdir -p "$w/knowledge" "$w/skills/reviewer" "$w/alice/skills/reviewer"
echo bridges >"$w/knowledge/KNOWLEDGE.md"
printf -- '---\nname: reviewer\ndescription: Everybody.\n---\nx\n' >"$w/skills/reviewer/SKILL.md"
printf -- '---\nname: reviewer\ndescription: For Alice.\n---\nx\n' >"$w/alice/skills/reviewer/SKILL.md"
is "agentscope: sections of the prompt have its tags" \
	"<agents_context <soul_md <domain_knowledge_context <available_skills <memory_context <session_context" \
	"$(scope prompt | grep -oE '^<(agents_context|soul_md|domain_knowledge_context|available_skills|memory_context|session_context)' | tr '\n' ' ' | sed 's/ $//')"
is "agentscope: the session context names the system, the directories and the zone" "Today System Workspace Temporary" \
	"$(scope prompt | sed -n '/^<session_context/,$p' | grep -oE '^(Today|System|Workspace|Temporary)' | tr '\n' ' ' | sed 's/ $//')"
is "agentscope: an absolute path below the workspace is accepted" bridges \
	"$(scope call read_file path="$(realpath "$w")/knowledge/KNOWLEDGE.md")"
is "agentscope: a user has what is in a directory of their name" "- reviewer: For Alice." \
	"$(scope --user alice prompt | grep reviewer:)"
is "agentscope: another user has not" "- reviewer: Everybody." "$(scope --user bob prompt | grep reviewer:)"
is "agentscope: an agent cannot write there" denied \
	"$(scope call write_file path=bob/skills/x/SKILL.md content=x | grep -q 'people write it' && echo denied)"
printf 'store: disk:.\nisolation: user_or_session\n' >agent_workspaces/stead.yaml
(cd agent_workspaces && unset STEAD_STORE && scope memory save 'Of a session.' >/dev/null)
is "agentscope: without a user the part is the session's" "Of a session." \
	"$(cat "$w/users/"@session.*/MEMORY.md | grep -oE 'Of a session.')"

# Loomflow: places
unset STEAD_STORE STEAD_WORKSPACE
mkdir tmp && export TMPDIR=$home/tmp
echo 'the brief' >brief.md
stead --store 'temp:loom-research-?cleanup=false' note T --content x >/dev/null
is "loomflow: temp(prefix, cleanup=False) keeps the directory" 001-t.md "$(ls tmp/loom-research-*/default/notes/agent)"
stead --store 'temp:loom-gone-' note T --content x >/dev/null
is "loomflow: temp() does not" "" "$(ls -d tmp/loom-gone-* 2>/dev/null)"
dict='{"backend": "disk", "path": "./team-notebook", "author": "researcher", "teammates": ["analyst", "writer"], "seed": ["./brief.md"]}'
stead --store "$dict" note Findings --content 'One deployable.' >/dev/null
is "loomflow: the dict form has author and path" 001-findings.md "$(ls team-notebook/default/notes/researcher)"
is "loomflow: and teammates" 1 "$(stead --store "$dict" prompt | grep -c 'analyst, writer\|analyst and writer')"
is "loomflow: and seed_paths" "the brief" "$(cat team-notebook/default/files/seeds/brief.md)"
is "loomflow: an unknown key is named" 1 "$(stead --store '{backend: temp, colour: red}' ls | grep -c 'unknown key "colour"')"
echo "1..$number"
[ $failures = 0 ]
