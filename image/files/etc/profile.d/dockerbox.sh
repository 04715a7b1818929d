# The image's XDG_RUNTIME_DIR belongs to pn. Any other account is better off with none, which programs know how to handle.
if [ ! -O "${XDG_RUNTIME_DIR:-/}" ] || [ ! -d "${XDG_RUNTIME_DIR:-/}" ]; then
    unset XDG_RUNTIME_DIR
fi
