# shellcheck shell=bash
# BASE PROFILE. Ends every screen and removes its files.
# shellcheck source-path=SCRIPTDIR source=common.sh
. ./common.sh
[[ -e $base ]] || exit 0
take_lock
for dir in "$base"/*; do
  [[ -d $dir ]] || continue
  ! living "$dir" || record stopped "${dir##*/}"
  end_screen "$dir"
done
# A server that had to be killed leaves these; one that lives is none of ours.
if ! listening /tmp/.X11-unix/X20; then
  name=''
  { read -r owner </tmp/.X20-lock && name=$(<"/proc/$owner/comm"); } 2>/dev/null
  [[ $name == X* ]] || rm -f /tmp/.X20-lock /tmp/.X11-unix/X20 2>/dev/null
fi
rmdir -- "$base" 2>/dev/null || refuse "$failed" "$base cannot be removed: $(find "$base" -mindepth 1 -printf '%P ' 2>&1 | head -c 200)"
