#!/bin/bash
# One screen, from its display server to its end: GEOMETRY PROFILE, in the screen's directory. dockerbox starts it; Hermes finds it by
# launcher.pid, ends it by its session, and reads env. Whoever ends any part of it ends all.
set -u
umask 077

# The programs, within a session's bus. env is written here, because only here the bus's address is known, and appears whole.
if [[ $1 == session ]]; then
  for name in DISPLAY XAUTHORITY DBUS_SESSION_BUS_ADDRESS XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_RUNTIME_DIR; do
    printf '%s=%s\n' "$name" "${!name}"
  done >env.new && mv env.new env || exit 1
  cd || exit 1 # what people start from the panel starts in their home
  keep() { for _ in 1 2 3; do "$@" && break; done; } # one that crashes comes back
  keep xfsettingsd --sm-client-disable &
  keep xfwm4 --sm-client-disable --compositor=off &
  keep xfdesktop --sm-client-disable --disable-wm-check &
  keep xfce4-panel --sm-client-disable --disable-wm-check &
  wait
  exit
fi

geometry=$1 profile=$2 dir=$PWD

fail() {
  printf '%s\n' "$1" | tee failed >&2
  exit 1
}

server='' session=''
end() {
  trap '' TERM INT HUP
  # The bus ends by itself when the programs do, and they when the display does.
  [[ -z $server ]] || kill "$server" 2>/dev/null
  for _ in {1..100}; do
    { [[ -n $session ]] && kill -0 "$session" 2>/dev/null; } || break
    read -rt 0.01 <> <(:)
  done
  [[ -z $session ]] || kill "$session" 2>/dev/null
  wait
  # Below the working directory, which is not the one of that name any more if somebody has started another screen.
  if [[ $(cat launcher.pid 2>/dev/null) == "$$" ]]; then
    rm -f env rfb.sock launcher.pid Xauthority
  fi
}
trap end EXIT
trap 'exit 0' TERM INT HUP

# The screen's programs are to be of this screen, whatever the caller had.
unset SESSION_MANAGER DBUS_SESSION_BUS_ADDRESS WAYLAND_DISPLAY NO_AT_BRIDGE GTK_A11Y
export DISPLAY=:20 XAUTHORITY=$dir/Xauthority LANG=${LANG:-C.UTF-8}
export XDG_SESSION_TYPE=x11 XDG_CURRENT_DESKTOP=XFCE GDK_BACKEND=x11 QT_QPA_PLATFORM=xcb

# Settings live in the home, where they outlast the screen. A home that cannot be written to gets a substitute.
place() { # VARIABLE DEFAULT SUBSTITUTE
  local want=${!1:-$2}
  if ! { mkdir -p -- "$want" && [[ -w $want && -O $want ]]; } 2>/dev/null; then
    want=$dir/$3
    mkdir -p -- "$want"
  fi
  export "$1=$want"
}
place XDG_CONFIG_HOME "$HOME/.config" config
place XDG_CACHE_HOME "$HOME/.cache" cache
place XDG_DATA_HOME "$HOME/.local/share" share
place XDG_RUNTIME_DIR "$dir/run" run

# The browser that people start on the screen is the one that Hermes drives: one profile, and a port by which Hermes joins it while it runs.
browser=$HOME/.hermes/bot-desktop/browser-profile
if [[ -r /usr/share/applications/chromium.desktop ]] && mkdir -p -- "$browser" 2>/dev/null; then
  mkdir -p menu/applications
  sed "s|^Exec=[^ ]*|& --user-data-dir=$browser --remote-debugging-port=0|" /usr/share/applications/chromium.desktop >menu/applications/chromium.desktop
  export XDG_DATA_DIRS=$dir/menu:${XDG_DATA_DIRS:-/usr/local/share:/usr/share}
fi

rm -f rfb.sock failed
: >"$XAUTHORITY" # or xauth says that it is new
# On standard input, because everybody may read a command line.
xauth -q -f "$XAUTHORITY" source - <<<"add $DISPLAY . $(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')" || fail 'the key of the display cannot be written'

# No TCP: the socket is the only way in, and it is this account's. Watchers get no clipboard. -s and -v: nothing ever blanks it.
exec 3< <(exec Xvnc "$DISPLAY" -geometry "$geometry" -depth 24 -dpi 96 -rfbport -1 -rfbunixpath "$dir/rfb.sock" -rfbunixmode 0600 \
  -SecurityTypes None -AlwaysShared -AcceptSetDesktopSize -SendCutText=0 -FrameRate 30 -desktop "dockerbox: $profile" \
  -auth "$XAUTHORITY" -nolisten tcp -s 0 -v -displayfd 4 4>&1 1>&2)
server=$!
read -rt 20 -u 3
status=$?
if ((status > 128)); then
  fail 'Xvnc was not ready within 20 s'
elif ((status)); then # the end, and no display
  wait "$server"
  status=$?
  ((status < 128)) || exit 1 # somebody ended it
  fail "Xvnc ended with status $status"
fi
exec 3<&-

dbus-run-session -- bash launcher.sh session &
session=$!
wait -n "$server" "$session"
