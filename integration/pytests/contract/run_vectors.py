"""Run the vectors of contract/testdata against the Hermes of this process, one line of JSON for each: {"test", "status", "detail",
"rule", "held_by"}.

usage: run_vectors.py DIRECTORY. Hermes 0.22.2 runs those that it holds already, the model of the changed host all. Which of the vectors
about isolation run depends on the configuration: those with the plugins in the plugin host when it puts them there.
"""

import json
import sys
import traceback
from pathlib import Path

report = sys.stdout
sys.stdout = sys.stderr  # what Hermes prints is not for the caller

from host import CHANGED, ISOLATED, acme, configure, declare, get_provider, terminal  # noqa: E402
from tools.bot_desktop import placement  # noqa: E402
from tools.file_tools_paths import _resolve_path_for_task  # noqa: E402

SESSION = "vector"


def guarded(given):
    """Whether the host takes a directory for one that its container cannot have: it does not hand it to the environment as it is."""
    env = environment(given)
    return terminal._sanitize_cwd_for_live_env(env, given["dir"]) != given["dir"]


def environment(given):
    """A live environment with the home, the mount and the kind that a vector names."""
    home = given.get("home") or ""
    declare(default="~" if home else None, home=home)
    configure({"backend": "acme"})
    env = acme("~" if home else "/root")
    env.host_cwd = given.get("mounted") or None
    if not given["container"]:
        env.env_type = "local"
    return env


def default(given):
    """Where commands start when nobody chose a directory."""
    declare(default=given["value"], raises=given.get("raises", False))
    configure({"backend": "acme"})
    return terminal._get_env_config()["cwd"]


def home(given):
    """The home that a recorded directory is believed to lie in."""
    from changedhost.directories import home_of

    declare(default=given["declared"], home=given["resolved"])
    configure({"backend": "acme"})
    return home_of("acme", acme(terminal._get_env_config()["cwd"]))


def start(given):
    """The directory a new environment is asked to start in, after terminal.cwd went all the way from the file."""
    declare(default=given["declared"] if CHANGED else None)
    configure({"backend": "acme", "cwd": given["setting"] or None})
    return terminal._get_env_config()["cwd"]


def command(given):
    """Where one command runs; on the changed host a file tool has to be in the same place."""
    env = environment(given | {"home": given.get("home") or ("/home/acme" if given["start"] == "~" else "")})
    if given["recorded"]:
        terminal.record_session_cwd(SESSION, given["recorded"])
    try:
        cwd = terminal._resolve_command_cwd(
            workdir=given["workdir"] or None, default_cwd=given["start"], session_key=SESSION, env_type="acme", env=env
        )
        if CHANGED and not given["workdir"] and (given.get("home") or given["start"] == "~"):
            terminal._active_environments["default"] = env
            found = str(_resolve_path_for_task("a.txt", SESSION))
            if found != f"{env.cwd if cwd == '~' else cwd}/a.txt":
                raise AssertionError(f"a command runs in {cwd}, but a file tool takes a.txt for {found}")
    finally:
        terminal.clear_session_cwd(SESSION)
        terminal._active_environments.clear()
    return cwd


def placed(given):
    """Where Bot Desktop puts the screen, with the backend and the setting out of the file."""
    declare()
    configure({"backend": given["backend"]}, bot_desktop={"placement": given["setting"]})
    provider = get_provider(given["backend"])
    if provider is not None and CHANGED and bool(provider.supports_streams) != given["streams"]:
        raise AssertionError(f"the vector takes {given['backend']} for one with supports_streams {given['streams']}")
    return placement.resolve()


DO = {"guard": guarded, "default": default, "home": home, "start": start, "command": command}


def check(vector):
    """The fault a vector shows, "" for none."""
    if vector["do"] != "placement":
        got = DO[vector["do"]](vector["in"])
        return "" if got == vector["want"] else f"{vector['in']} gives {got!r}, want {vector['want']!r} ({vector['source']})"
    want, got = vector["want"], placed(vector["in"])
    missing = [word for word in want["says"] if word not in got.reason]
    if got.where != want["where"] or missing or (want["where"] == "refused" and not got.reason):
        return f"{vector['in']} gives {got}, want {want} ({vector['source']})"
    return ""


def main():
    failed = False
    for path in sorted(Path(sys.argv[1]).glob("*.json")):
        for vector in json.loads(path.read_text()):
            if (vector["held_by"] != "0.22.2" and not CHANGED) or vector["in"].get("isolated", False) != ISOLATED:
                continue
            try:
                detail = check(vector)
            except Exception:
                detail = traceback.format_exc()
            failed |= bool(detail)
            line = {"test": f"{path.stem}/{vector['name']}", "status": "fail" if detail else "pass", "detail": detail}
            print(json.dumps(line | {"rule": vector["rule"], "held_by": vector["held_by"]}), file=report, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
