# shellcheck shell=bash
# BASE PROFILE GEOMETRY, the launcher on standard input. Takes the screen that lives, or starts one, and
# returns when its desktop and its panel are mapped.
# shellcheck source-path=SCRIPTDIR source=common.sh
. ./common.sh
geometry=$3
limit=30 # seconds

take_lock
lacks=()
for program in Xvnc xfwm4 xfce4-panel xfdesktop xfsettingsd dbus-run-session xauth xprop setsid flock pgrep xargs; do
  type -P "$program" >/dev/null || lacks+=("$program")
done
[[ ${#lacks[@]} == 0 ]] || refuse "$lacking" "${lacks[*]}"

# free_display makes sure that nothing dead stands in the way of display 20, and nothing alive.
free_display() {
  local lock=/tmp/.X20-lock socket=/tmp/.X11-unix/X20 owner='' name=''
  { read -r owner <"$lock" && name=$(<"/proc/$owner/comm"); } 2>/dev/null
  if [[ $name == X* ]] || listening "$socket"; then
    refuse "$taken" "display :20 is served by ${name:-another program}${owner:+ (process $owner)}, which no launcher of this account started"
  fi
  rm -f -- "$lock" "$socket" 2>/dev/null
  [[ ! -e $lock && ! -e $socket && -d ${socket%/*} ]] || refuse "$stale" "$lock or ${socket%/*} is left from a display server that is dead"
}

spawn() {
  local one
  dir=$base/${profile:-default}
  for one in "$dir" "$base"/*; do
    [[ ! -d $one ]] || end_screen "$one"
  done
  free_display
  { mkdir -p -- "$dir" && cd -- "$dir"; } 2>/dev/null || refuse "$failed" "$dir cannot be made"
  printf '%s\n' "$launcher" >launcher.sh
  # A session of its own, so that one signal ends all of it; its number is there before anybody can look for it.
  setsid -f bash -c 'echo $$ >launcher.pid; exec bash launcher.sh "$@"' launcher "$geometry" "${dir##*/}" >launcher.log 2>&1 </dev/null 9<&-
  for _ in {1..100}; do # it may be over again before we look
    [[ ! -s launcher.pid && ! -e failed ]] || break
    pause
  done
}

# give_up SENTENCE: nothing goes on, and the log stays.
give_up() {
  end_processes "$dir"
  refuse "$failed" "$1"
}

launcher=$(cat)
panel=''
end=$((SECONDS + limit)) spawned=0 grace=0 endings=0

# await_living sets dir to the directory of a screen that lives, and starts one if nobody does.
await_living() {
  until find_screen living; do
    ((SECONDS < end)) || give_up "no screen was published within $limit s"
    if find_screen launched; then
      pause # somebody's is coming up; Hermes takes no lock
    elif ((spawned)) && [[ -e $base/${profile:-default}/failed ]]; then
      refuse "$failed" "$(<"$base/${profile:-default}/failed")"
    elif ((spawned + endings && grace < 150)); then
      grace=$((grace + 1)) # it was ended from outside: whoever did that starts another, or it is up to us
      pause
    elif ((spawned < 2)); then
      spawned=$((spawned + 1)) grace=0
      spawn
    else
      refuse "$failed" "the launcher is ended again and again"
    fi
  done
  report "$dir" >/dev/null # sets DISPLAY and XAUTHORITY
}

# Each look costs a process, and the desktop that comes up has a better use for the processor.
await_living
declare -A classes=()
until [[ ${classes[*]-} == *xfdesktop* && ${classes[*]-} == *xfce4-panel* ]]; do
  ((SECONDS < end)) || give_up "desktop and panel were not mapped within $limit s"
  if ! kill -0 "$pid" 2>/dev/null || [[ ! -S $dir/rfb.sock ]]; then # somebody ended it, to start another perhaps, as Hermes does that saw no screen yet
    ((endings++ < 2)) || give_up 'the screen is ended again and again while its desktop comes up'
    grace=0 classes=()
    await_living
  fi
  pause # xprop can watch, but says nothing in time when it writes to a pipe
  list=$(xprop -root -notype _NET_CLIENT_LIST 2>/dev/null)
  for id in ${list#*#}; do
    id=${id%,}
    [[ $id == 0x* && -z ${classes[$id]-} ]] || continue
    classes[$id]=$(xprop -id "$id" -notype WM_CLASS 2>/dev/null)
    [[ ${classes[$id]} != *xfce4-panel* ]] || panel=$id
  done
done
report "$dir"

# What is mapped has not been drawn yet. Where the panel of a new screen is to be, is for whoever can see it.
((EPOCHSECONDS - $(stat -c %Y "$dir/launcher.pid") < 5)) || exit 0
x='' y='' width='' height=''
while read -r word rest; do
  case "$word $rest" in
    'Absolute upper-left X:'*) x=${rest##* } ;;
    'Absolute upper-left Y:'*) y=${rest##* } ;;
    Width:*) width=$rest ;;
    Height:*) height=$rest ;;
  esac
done < <(xwininfo -id "$panel" 2>/dev/null)
[[ -z $height ]] || record panel "$x $y $width $height"
