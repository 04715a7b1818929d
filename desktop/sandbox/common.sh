# shellcheck shell=bash disable=SC2034 # the scripts that begin with this one use what it sets
# What start, stop and status share. BASE is <temporary directory>/hermes-bot-desktop, PROFILE may be empty. The layout below it is
# Hermes's own: BASE/PROFILE has launcher.pid, rfb.sock and env where a screen lives.
set -u
umask 077
base=$1 profile=$2

# Records on standard output end in NUL.
record() { printf '%s=%s\0' "$1" "$2"; }

# refuse STATUS SENTENCE
refuse() {
  record fault "$2"
  exit "$1"
}
foreign=71 lacking=72 stale=73 taken=74 failed=75

# pause waits a moment without a process.
pause() { read -rt 0.02 <> <(:) || :; }

# listening PATH: whether a socket of that path, or of that abstract name, is listened on. The table changes while it is read, so it
# is read by grep, in pieces as large as it can.
listening() {
  local flags path
  while read -r _ _ _ flags _ _ _ path; do
    [[ $flags == 00010000 && ${path#@} == "$1" ]] && return 0
  done < <(grep -F -- "$1" /proc/net/unix)
  return 1
}

# words PID prints its command line.
words() {
  local all=()
  { mapfile -d '' -t all <"/proc/$1/cmdline"; } 2>/dev/null
  printf '%s' "${all[*]-}"
}

# launched DIR: whether the process that launcher.pid names is a launcher and lives; sets pid.
launched() {
  pid=''
  { read -r pid _ <"$1/launcher.pid"; } 2>/dev/null
  [[ $pid =~ ^[0-9]+$ && $(words "$pid") == *launcher.sh* ]]
}

living() { [[ -s $1/env ]] && launched "$1" && listening "$1/rfb.sock"; }

# find TEST sets dir to the first directory of a profile that passes; the profile asked for comes first.
find_screen() {
  for dir in "$base/${profile:-default}" "$base"/*; do
    "$1" "$dir" && return 0
  done
  return 1
}

# take_lock is held until the script ends. It is on the directory itself, so that stop leaves no file; whoever waited for one that
# was removed meanwhile takes the next.
take_lock() {
  local try
  for ((try = 0; try < 100; try++)); do
    mkdir -- "$base" 2>/dev/null
    [[ -d $base && ! -L $base && -O $base ]] || refuse $foreign "$base belongs to another account, or is not a directory"
    { exec 9<"$base"; } 2>/dev/null && flock 9 && [[ $base -ef /proc/self/fd/9 ]] && return
  done
  refuse $failed "$base is removed again and again"
}

# members prints the processes of the session that the launcher of DIR led, alive or dead, and the servers that drive the screen from
# outside it, which are of no use afterwards. Numbers may have become others' since, so each must have the screen's key in its environment.
members() {
  local one
  if [[ $pid =~ ^[0-9]+$ && $(words "$pid") == *launcher.sh* ]]; then
    echo "$pid"
  fi
  for one in $([[ ! $pid =~ ^[0-9]+$ ]] || pgrep -s "$pid") $(pgrep -x 'agent-browser.*|cua-driver.*'); do
    if [[ $one != "$pid" ]] && grep -qzxF "XAUTHORITY=$1/Xauthority" "/proc/$one/environ" 2>/dev/null; then
      echo "$one"
    fi
  done
}

# servers prints the display servers that serve DIR, whoever started them.
servers() {
  local one
  for one in $(pgrep -x 'X.*vnc'); do
    [[ $(words "$one") == *" $1/rfb.sock "* ]] && echo "$one"
  done
}

# await_end COMMAND...: until the command prints nothing, at most for a second.
await_end() {
  local end=$((${EPOCHREALTIME/[.,]/} + 1000000))
  while [[ -n $("$@") ]]; do
    ((${EPOCHREALTIME/[.,]/} < end)) || return 1
    pause
  done
  return 0
}

programs() {
  local one
  for one in $(members "$1"); do
    [[ $one == "$pid" || $(</proc/"$one"/comm) == X*vnc ]] || echo "$one"
  done 2>/dev/null
}

all() {
  members "$1"
  servers "$1"
}

# end_processes DIR: first the programs, so that a browser closes its files while it has a screen; then whatever is left.
end_processes() {
  launched "$1"
  local signal
  for signal in TERM KILL; do
    programs "$1" | xargs -r kill -"$signal" 2>/dev/null
    await_end programs "$1" && break
  done
  for signal in TERM KILL; do
    all "$1" | xargs -r kill -"$signal" 2>/dev/null
    await_end all "$1" && break
  done
}

end_screen() {
  end_processes "$1"
  rm -rf -- "$1"
}

# report prints what there is to know about the screen of DIR.
report() {
  local line size
  record profile "${1##*/}"
  record socket "$1/rfb.sock"
  record since "$(stat -c %Y "$1/launcher.pid")"
  while IFS= read -r line; do
    record env "$line"
    case $line in DISPLAY=* | XAUTHORITY=*) export "${line?}" ;; esac
  done <"$1/env"
  size=$(xprop -root -notype _NET_DESKTOP_GEOMETRY 2>/dev/null)
  record size "${size##*= }"
}

# window_ids prints those that standard input names.
window_ids() { grep -o '0x[0-9a-f]*'; }
