#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The network of commands through every door: `stead exec`, the tools, code, functions, scripts of skills, custom tools; a
# secret of .env that only a server sees; the log. network_test.sh PROGRAM SERVER
set -u
stead=$(realpath "$1")
dir=$(mktemp -d)
mkfifo "$dir/hold"
python3 "$2" "$dir" <"$dir/hold" >"$dir/ports" &
server=$!
exec 9>"$dir/hold"
trap 'exec 9>&-; wait $server; rm -rf "$dir"' EXIT
export HOME=$dir STEAD_STORE=disk:$dir/ws
unset XDG_DATA_HOME STEAD_WORKSPACE
number=0 failures=0
check() { # what, expected, got
	number=$((number + 1))
	[ "$2" = "$3" ] && { echo "ok $number - $1"; return; }
	echo "not ok $number - $1: expected '$2', got '$3'"
	failures=$((failures + 1))
}
for _ in $(seq 3000); do [ -s "$dir/ports" ] && break; read -rt 0.01 <> <(:); done
read -r http https _ <"$dir/ports"
home=$dir/ws/default
value=a-secret-of-the-workspace
# A connection to this server is counted, whatever asks.
asked() { grep -c "$1" "$dir/requests.log"; }
configure() { mkdir -p "$home"; cat >"$home/agent.yaml"; }
allowed="network: [{host: 'plain.test:80', address: '127.0.0.1:$http'}, {host: 'api.test:443', address: '127.0.0.1:$https'}]"
echo "API_KEY=$value" >"$dir/env"

configure <<<"name: x"
cp "$dir/env" "$home/.env"
check "a command has no network" 6 "$("$stead" exec -- curl -s http://plain.test/ >/dev/null 2>&1; echo $?)"
check "--net allows a host" hello "$("$stead" exec --net "plain.test=127.0.0.1:$http" -- curl -s http://plain.test/)"
check "a host that --net does not allow is named" 1 \
	"$("$stead" exec --net "plain.test=127.0.0.1:$http" -- curl -s http://other.test/ 2>&1 | grep -c '\[network: other.test refused: the name is not allowed')"
check "the log of the workspace has the connections" '"host":"plain.test","port":80,"outcome":"ended"' \
	"$(grep -o '"host":"plain.test","port":80,"outcome":"ended"' "$home/.stead/network.jsonl" | head -1)"
check "--net says what is not a host" 2 "$("$stead" exec --net 'http://x' -- true 2>/dev/null; echo $?)"

configure <<<"sandbox: {$allowed, network_ca: $dir/ca.pem, secrets: [{name: API_KEY, host: api.test, header: 'X-Key: {}'}]}"
check "sandbox.network allows a host to execute" hello \
	"$("$stead" call execute 'command=curl -s http://plain.test/' | head -1)"
run="import urllib.request; print(urllib.request.urlopen('http://plain.test/').read())"
check "code has no network unless code.allow_network says so" 1 "$("$stead" call run_code "code=$run" 2>&1 | grep -c URLError:)"
out=$("$stead" exec --json -- sh -c 'curl -s https://api.test/echo; echo $API_KEY; env >env.txt' 2>&1)
check "a request gets the secret of .env" 1 "$(asked "X-Key: $value")"
check "the command has a placeholder" 1 "$("$stead" cat env.txt | grep -c '^API_KEY=stead-secret-')"
check "the secret is not in the result" 0 "$(grep -c "$value" <<<"$out")"
rm "$home/.env"
check "a secret that .env does not have is an error" 1 \
	"$("$stead" exec -- true 2>&1 | grep -c 'sandbox.secrets grants API_KEY, which .env does not have')"
cp "$dir/env" "$home/.env"
check "the secret is nowhere in the workspace but in .env" "$home/.env" "$(grep -rl "$value" "$dir/ws")"

configure <<<"sandbox: {secrets: [{name: API_KEY, host: api.test}]}"
check "doctor names a secret whose host is not allowed" 1 \
	"$("$stead" doctor 2>&1 | grep -c 'API_KEY is granted to api.test, which sandbox.network does not allow')"
echo "API_KEY=short" >"$home/.env"
check "doctor names a secret that is too short" 1 "$("$stead" doctor 2>&1 | grep -c 'API_KEY must have 8 to')"
cp "$dir/env" "$home/.env"
configure <<<"sandbox: {$allowed, network_bytes: 100}"
check "sandbox.network_bytes bounds what is moved" 1 \
	"$("$stead" exec -- curl -s http://plain.test/ 2>&1 >/dev/null | grep -c 'sandbox.network_bytes raises the limit')"
configure <<<"sandbox: {network: [{host: 'localhost:$http'}, {host: '127.1:$http', private: true}]}"
check "private: true allows a name that leads to this machine" hello "$("$stead" exec -- python3 -c "
import socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(struct.pack('>HHHHHH', 7, 256, 1, 0, 0, 0) + b'\x03127\x011\0\0\1\0\1', ('127.0.0.53', 53))
c = socket.create_connection((socket.inet_ntoa(s.recv(512)[-4:]), $http))
c.sendall(b'GET / HTTP/1.0\r\nHost: 127.1:$http\r\n\r\n')
print(c.makefile().read().split()[-1])")"

configure <<YAML
sandbox: {$allowed, secrets: [{name: API_KEY, host: plain.test, query: key, plain_http: true}]}
code:
  allow_network: true
  functions:
    fetch:
      allow_network: true
      code: |
        import urllib.request
        def run(input): return urllib.request.urlopen('http://plain.test/function').read().decode()
    local:
      allow_network: false
      code: |
        import urllib.request
        def run(input): return urllib.request.urlopen('http://plain.test/local').read().decode()
YAML
check "code.allow_network allows code" 1 "$("$stead" call run_code "code=$run" | grep -c hello)"
check "a function that has allow_network reaches it" 1 "$("$stead" call call_function function=fetch | grep -c hello)"
check "a function without it does not" 0 "$("$stead" call call_function function=local 2>&1 | grep -c hello)"
check "query and plain_http put the secret into the query" 1 "$(asked "GET /function?key=$value HTTP")"
mkdir -p "$home/skills/get/scripts" "$home/tools"
printf -- '---\nname: get\ndescription: Gets.\n---\nRun it.\n' >"$home/skills/get/SKILL.md"
echo 'curl -s http://plain.test/skill' >"$home/skills/get/scripts/get.sh"
check "a script of a skill has the network of code" 1 \
	"$("$stead" call run_skill_script skill=get script=get.sh | grep -c hello)"

for net in "net=plain.test=127.0.0.1:$http" ""; do
	printf '# stead: files=none env=API_KEY %s\n' "$net" >"$home/tools/get.py"
	cat >>"$home/tools/get.py" <<-'PY'
		import os, urllib.request
		from stead import tool

		@tool
		def get() -> str:
		    """Gets."""
		    try:
		        return os.environ["API_KEY"] + urllib.request.urlopen("http://plain.test/tool").read().decode()
		    except OSError as e:
		        return "no network"
	PY
	printf '{"type":"message","role":"assistant","content":%s}\n' '[{"type":"tool_use","id":"1","name":"get","input":{}}]' '"done"' >"$dir/model"
	out=$("$stead" run -m "replay:$dir/model" --session "s$number" --json Go 2>&1)
	if [ -n "$net" ]; then
		check "the right net of a custom tool allows hosts, and env gives a placeholder" 1 "$(grep -c '"stead-secret-[0-9a-f]*hello' <<<"$out")"
	else
		check "a custom tool without the right net has none" 1 "$(grep -c '"no network' <<<"$out")"
	fi
done
check "the secret is in no log, session or revision" "$home/.env" "$(grep -rl "$value" "$dir/ws")"
echo "1..$number"
exit $((failures > 0))
