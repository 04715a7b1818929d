#!/usr/bin/env bash
# Runs scripts/setup-docker where no engine runs and a dead one left everything behind
# that it can leave. Started by TestSetupDockerStartsAnEngine inside namespaces of its own
# (mount, net, pid), so /var/run, the mounts and the daemon here are nobody else's.
#
# usage: no-engine.sh SCRIPTS SCRATCH      prints NAME=VALUE lines for the test to compare
set -euo pipefail

scripts=$1
scratch=$2
data=$scratch/data
mkdir -p "$scratch/run" "$data"
# The mounts of this machine's own daemon were copied into this namespace; hidden below
# another /var/run they could not be told from left-overs.
awk '$5 ~ "^(/var)?/run/docker/" { print $5 }' /proc/self/mountinfo | while read -r point; do umount "$point"; done
mount --bind "$scratch/run" "$(readlink -f /var/run)"
export DOCKERBOX_DOCKER_DATA_ROOT=$data DOCKERBOX_DOCKER_LOG=$scratch/dockerd.log

# The pid files name a live process that is something else.
sleep infinity &
foreign=$!
mkdir -p /var/run/docker/containerd /var/run/docker/netns /var/run/containerd
printf %s "$foreign" | tee /var/run/docker.pid >/var/run/docker/containerd/containerd.pid
# Sockets nobody listens on: dockerd would wait for the first one in vain.
python3 -c 'import socket, sys; [socket.socket(socket.AF_UNIX).bind(path) for path in sys.argv[1:]]' \
  /var/run/containerd/containerd.sock /var/run/docker.sock
# Mounts: the data root on itself, a container's root and shm (a name with a space), a network namespace.
mount --bind "$data" "$data"
touch /var/run/docker/unmount-on-shutdown
# Not below overlay2: dockerd would insist on that driver, also where /tmp cannot carry it.
layer=$data/layers/dead
mkdir -p "$layer/merged" "$data/containers/a b/mounts/shm"
mount -t tmpfs tmpfs "$layer/merged"
mount -t tmpfs shm "$data/containers/a b/mounts/shm"
touch /var/run/docker/netns/dead
mount --bind /proc/self/ns/net /var/run/docker/netns/dead

mounts() { awk '{ print $5 }' /proc/self/mountinfo | grep -c -e "^$data" -e '/docker/netns/' || true; }

echo "mounts_before=$(mounts)"
# Two at once, as two people typing make up: one starts the daemon, the other finds it.
"$scripts/setup-docker" >"$scratch/other" &
other=$!
endpoint=$("$scripts/setup-docker")
wait "$other"
echo "first=$endpoint"
echo "together=$(cat "$scratch/other")"
echo "foreign_alive=$(kill -0 "$foreign" && echo yes)"
echo "dead_mounts=$(grep -c -e "$layer" -e 'mounts/shm' -e 'netns/dead' /proc/self/mountinfo || true)"
echo "root_dir=$(curl --silent --unix-socket /var/run/docker.sock http://docker/info |
  python3 -c 'import json, sys; print(json.load(sys.stdin)["DockerRootDir"])')"

daemon=$(cat /var/run/docker.pid)
endpoint=$("$scripts/setup-docker")
echo "second=$endpoint"
echo "same_daemon=$([ "$(cat /var/run/docker.pid)" = "$daemon" ] && echo yes)"

# A crash: nothing is cleaned up.
kill -KILL "$daemon"
tail --pid="$daemon" -f /dev/null
endpoint=$("$scripts/setup-docker")
echo "after_crash=$endpoint"
echo "new_daemon=$([ "$(cat /var/run/docker.pid)" != "$daemon" ] && echo yes)"

daemon=$(cat /var/run/docker.pid)
"$scripts/stop-docker"
echo "stopped=$(kill -0 "$daemon" 2>/dev/null || echo yes)"
echo "mounts_after=$(mounts)"
echo "stop_again=$("$scripts/stop-docker" && echo yes)"
rm -rf -- "$data"
echo "data_root_removed=$([ -e "$data" ] || echo yes)"
kill "$foreign"
