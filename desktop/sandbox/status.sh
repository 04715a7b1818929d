# shellcheck shell=bash
# BASE PROFILE [windows]. Prints nothing where no screen lives.
# shellcheck source-path=SCRIPTDIR source=common.sh
. ./common.sh
find_screen living || exit 0
report "${dir:?}"
[[ ${3-} == windows ]] || exit 0
for id in $(xprop -root -notype _NET_CLIENT_LIST 2>/dev/null | window_ids); do
  class='' title=''
  while IFS= read -r line; do
    case $line in
      'WM_CLASS = '*) class=${line#*= } ;;
      '_NET_WM_NAME = '*) title=${line#*= } ;;
    esac
  done < <(xprop -id "$id" -notype WM_CLASS 8u _NET_WM_NAME 2>/dev/null)
  record window "$class"$'\t'"$title"
done
