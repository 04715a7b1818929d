# shellcheck shell=bash disable=SC2034
# (SC2034: the names are used by the scripts that source this.)
#
# Where the daemon that setup-docker starts keeps its things, and what a dead one left
# behind. Sourced by setup-docker and stop-docker.

# dockerd's own defaults; passing none of them as a flag keeps a user's daemon.json valid.
readonly EXEC_ROOT=/var/run/docker
readonly PID_FILE=/var/run/docker.pid
readonly STATE_FILE=/var/run/dockerbox-dockerd
DATA_ROOT=${DOCKERBOX_DOCKER_DATA_ROOT:-/var/lib/docker}
LOG_FILE=${DOCKERBOX_DOCKER_LOG:-/var/log/dockerbox-dockerd.log}

# runs PID NAME: whether PID is a live process (no zombie) of that name. A pid file
# survives a crash, and its number may belong to anything by now.
runs() {
  [ -n "$1" ] && [ -e "/proc/$1/exe" ] && [ "$(cat "/proc/$1/comm" 2>/dev/null)" = "$2" ]
}

# first_word FILE: prints it, nothing when the file is missing or empty.
first_word() {
  local word=''
  [ ! -r "$1" ] || read -r word _ <"$1" || true
  printf '%s' "$word"
}

# leftover_mounts: mount points below the two roots, newest first. The data root itself
# counts only where dockerd noted that it had bound it to itself: else it is a disk that
# somebody mounted there. mountinfo writes a space as \040; printf %b turns it back.
leftover_mounts() {
  local data exec_root point
  data=$(readlink -m -- "$DATA_ROOT")
  exec_root=$(readlink -m -- "$EXEC_ROOT")
  awk '{ print $5 }' /proc/self/mountinfo | tac | while read -r point; do
    point=$(printf '%b' "$point")
    case $point in
      "$data"/* | "$exec_root"/*) printf '%s\n' "$point" ;;
      "$data") [ ! -e "$EXEC_ROOT/unmount-on-shutdown" ] || printf '%s\n' "$point" ;;
    esac
  done
}

# unmount_leftovers: what a dead daemon still has mounted. Unmounting one may take its
# neighbour along (a shared bind), so only what is left at the end is a fault.
unmount_leftovers() {
  local point
  leftover_mounts | while read -r point; do
    umount -- "$point" 2>/dev/null || umount --lazy -- "$point" 2>/dev/null || true
  done
  leftover_mounts | while read -r point; do
    printf 'cannot unmount %s, which a dead dockerd left behind\n' "$point" >&2
  done
  rm -f -- "$EXEC_ROOT/unmount-on-shutdown"
}
