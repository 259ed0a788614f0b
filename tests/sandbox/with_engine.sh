#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a program with a container engine of its own: with_engine.sh PROGRAM. Podman's service listens on a socket of a temporary
# directory, and has one image, made of busybox. Where Podman cannot run, the program finds no engine in its environment and skips its tests.
if ! command -v podman >/dev/null || ! command -v runc >/dev/null || [ ! -x /bin/busybox ] || [ "$(id -u)" != 0 ]; then
	exec "$@"
fi
dir=$(mktemp -d) || exit 1
pid=
end() {
	[ -z "$pid" ] || { kill "$pid"; wait "$pid"; } 2>/dev/null
	umount "$dir/root/overlay" 2>/dev/null
	rm -rf "$dir"
}
trap end EXIT
CONTAINERS_CONF=$dir/containers.conf
export CONTAINERS_CONF
cat >"$CONTAINERS_CONF" <<'T'
[containers]
default_ulimits = ["nofile=4096:4096","nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
T
mkdir -p "$dir/image/bin" "$dir/image/tmp" "$dir/image/home" "$dir/image/etc"
cp /bin/busybox "$dir/image/bin/"
for name in sh cat echo ls id sleep grep head rm printf; do ln -s busybox "$dir/image/bin/$name"; done
podman() { command podman --root "$dir/root" --runroot "$dir/run" "$@"; }
if tar -C "$dir/image" -c . | podman import - localhost/stead-test:1 >/dev/null 2>&1; then
	command podman --root "$dir/root" --runroot "$dir/run" system service --time=0 "unix://$dir/socket" >/dev/null 2>&1 &
	pid=$!
	DOCKER_HOST=unix://$dir/socket STEAD_TEST_IMAGE=localhost/stead-test:1
	export DOCKER_HOST STEAD_TEST_IMAGE
	tries=0
	while [ ! -S "$dir/socket" ] && [ $tries -lt 200 ] && kill -0 "$pid" 2>/dev/null; do
		tries=$((tries + 1))
		command sleep 0.05
	done
fi
"$@"
