"""What Hermes 0.22.2 does that a plugin backend has to know about: one test for each."""

import inspect
import os
import threading
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import hermes_constants
from hermes_fixture import (
    DOCKERBOX,
    HOME,
    LOGGER,
    PROVIDER,
    SANDBOX,
    HermesCase,
    base,
    docker,
    dockerbox,
    in_thread,
    make,
    module,
    terminal,
    until,
)
from tools.file_tools_paths import _terminal_env_type_for_task
from tools.terminal_tool_lifecycle import _cleanup_env, is_persistent_env


def readable(directory, pattern):
    """Files that match and can be read; processes end at any moment."""
    for path in Path(directory).glob(pattern):
        try:
            path.read_bytes()
        except OSError:
            continue
        yield path


class ErrorsTest(HermesCase):
    def test_the_exceptions_are_hermess_own(self):
        host = module("host")
        self.assertIs(host.EnvironmentConnectionError, base.EnvironmentConnectionError)
        self.assertIs(host.FileFetchError, base.FileFetchError)
        error = host.connection_error(module("faults").Fault("why", "what to do"))
        self.assertIsInstance(error, base.EnvironmentConnectionError)
        self.assertEqual((error.reason, error.retry_hint), ("why", "what to do"))

    def test_a_backend_failure_is_not_taken_for_a_command_that_timed_out(self):
        fault = module("faults").Fault("dial tcp: i/o timeout")
        self.assertNotIn("timeout", str(module("host").connection_error(fault)).lower())

    def test_an_image_that_is_missing(self):
        with (
            mock.patch.object(
                module("settings"),
                "backend_settings",
                return_value=module("settings").Settings(sandbox=f"{SANDBOX}-noimage", image="dockerbox.invalid/none:1", binary=DOCKERBOX),
            ),
            self.assertRaises(base.EnvironmentConnectionError) as caught,
        ):
            make()
        self.assertIn("dockerbox.invalid/none:1", caught.exception.reason)
        self.assertTrue(caught.exception.retry_hint)


class SettingsTest(HermesCase):
    """terminal.docker_* settings are parsed by the host for its own backend alone."""

    def with_settings(self, **docker_settings):
        section = dict(module("provider")._terminal())
        return mock.patch.object(module("provider"), "_terminal", return_value=section | docker_settings)

    def test_forwarded_variables_go_with_the_command_and_are_found_nowhere_else(self):
        value = "secret-" + os.urandom(6).hex()
        self.run_in("rm -f /tmp/fwd-*")
        with self.with_settings(docker_forward_env=["FWD1"]), mock.patch.dict(os.environ, {"FWD1": value}):
            env = make()
            wait = "sleep 4711 & touch /tmp/fwd-on; until test -e /tmp/fwd-off; do sleep 0.05; done; kill %1"
            text = wait + '; echo "$FWD1"; env | grep -c ^FWD1='
            thread, results = in_thread(lambda: env.execute(text))
            self.assertTrue(until(lambda: self.env.execute("test -e /tmp/fwd-on")["returncode"] == 0))
            # Processes of the sandbox are among those of this machine, or, with a remote daemon, the sandbox's own list shows them.
            seen = "".join(path.read_text(errors="replace") for path in readable("/proc", "[0-9]*/cmdline"))
            seen += self.run_in("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '; grep -rs secret- /tmp || true")
            seen += docker("inspect", env._container_id)
            self.run_in("touch /tmp/fwd-off")
            thread.join(20)
        self.assertEqual(results[0]["output"], f"{value}\n1\n")
        self.assertIn("4711", seen, "the scan must see command lines at all")
        self.assertNotIn(value, seen)
        self.assertEqual(self.run_in('echo "[$FWD1]"'), "[]\n", "it must not last")

    def test_env_and_shm_size_shape_the_sandbox(self):
        chosen = module("settings").Settings(sandbox=f"{SANDBOX}-shaped", binary=DOCKERBOX)
        with (
            self.with_settings(docker_env={"SHAPE": "a b"}, docker_shm_size="96m"),
            mock.patch.object(module("settings"), "backend_settings", return_value=chosen),
        ):
            env = make()
            self.addCleanup(dockerbox, "rm", "-f", f"{SANDBOX}-shaped")
            self.assertEqual(env.execute('echo "$SHAPE"; df -m --output=size /dev/shm | tail -1')["output"].split("\n")[0], "a b")
            self.assertEqual(env.execute("df -m --output=size /dev/shm | tail -1")["output"].strip(), "96")

    def test_no_mount_is_claimed(self):
        # The host compares directories with these two once they are there.
        self.assertFalse(hasattr(self.env, "host_cwd") or hasattr(self.env, "host_cwd_mount"))

    def test_what_is_not_carried_out_is_said_once_by_name(self):
        provider = type(PROVIDER)()
        with self.with_settings(docker_mount_cwd_to_workspace=True), self.assertLogs(LOGGER, "WARNING") as logs:
            for _ in range(2):
                provider.create_environment(cwd="~", timeout=30, container_config={}).cleanup()
            rows = [detail for _, label, detail in PROVIDER.doctor_checks() if label == "dockerbox setting not in effect"]
        said = [line for line in logs.output if "terminal.docker_mount_cwd_to_workspace" in line]
        self.assertEqual((len(said), len(rows)), (1, 1))
        self.assertIn("after 0.22.2", said[0])
        self.assertIn("terminal.docker_mount_cwd_to_workspace", rows[0])

    def test_guards_stay_on_where_host_directories_are_asked_for(self):
        self.assertTrue(PROVIDER.skip_container_guards)
        for settings in ({"docker_volumes": ["/srv:/srv"]}, {"docker_volumes": "x"}, {"docker_mount_cwd_to_workspace": True}):
            with self.subTest(settings), self.with_settings(**settings):
                self.assertFalse(PROVIDER.skip_container_guards)
        with self.with_settings(docker_volumes=["/srv:/srv:ro"]):
            self.assertTrue(PROVIDER.skip_container_guards)
        with mock.patch.object(module("provider"), "_terminal", side_effect=OSError("unreadable")):
            self.assertFalse(PROVIDER.skip_container_guards)

    def test_the_image_argument_of_the_host_is_not_used(self):
        env = make(image="nikolaik/python-nodejs:python3.13-nodejs26")
        self.assertEqual(docker("inspect", "-f", "{{.Config.Image}}", env._container_id), "dockerbox/desktop:latest")


class ProbeTest(HermesCase):
    """The prompt builder makes an environment of its own beside the agent's."""

    def test_it_shares_the_sandbox_and_cannot_remove_it(self):
        self.run_in("echo here > /tmp/probe-mark")
        probe = make("prompt-backend-probe")
        self.assertEqual(probe._container_id, self.env._container_id)
        self.assertEqual(probe.execute("uname -s", timeout=4)["output"], "Linux\n")
        self.assertIn("force_remove", inspect.signature(probe.cleanup).parameters)
        _cleanup_env(probe, force_remove=True)
        self.assertEqual(self.run_in("cat /tmp/probe-mark"), "here\n")

    def test_beside_ephemeral_sessions_it_leaves_nothing_behind(self):
        probe = make("prompt-backend-probe", container_persistent=False)
        self.assertNotEqual(probe._container_id, self.env._container_id)
        _cleanup_env(probe, force_remove=True)
        self.assertEqual(docker("ps", "-aq", "--no-trunc", "--filter", f"id={probe._container_id}"), "")

    def test_the_real_prompt_builder(self):
        from agent.prompt_builder import _clear_backend_probe_cache, _probe_remote_backend

        _clear_backend_probe_cache()
        self.assertIn("Linux", _probe_remote_backend("dockerbox"))
        self.assertEqual(docker("inspect", "-f", "{{.State.Running}}", self.env._container_id), "true")


class HandleTest(HermesCase):
    def test_there_is_no_pid_for_the_backstop_to_kill_on_the_host(self):
        handle = self.env._run_bash("true")
        self.assertFalse(hasattr(handle, "pid"))
        self.assertEqual(handle.wait(10), 0)

    def test_passwordless_sudo_is_found_by_hermess_probe(self):
        self.assertTrue(self.env._sudo_nopasswd_works())

    def test_a_probe_that_takes_too_long_leaves_the_sandbox_alone(self):
        self.run_in("mkdir -p /tmp/slow && printf '#!/bin/sh\\nsleep 60\\n' > /tmp/slow/sudo && chmod +x /tmp/slow/sudo")
        self.run_in("export PATH=/tmp/slow:$PATH; export KEPT=yes")
        try:
            with mock.patch.object(type(self.env), "_SUDO_PROBE_TIMEOUT_S", 0.5):
                self.assertFalse(self.env._sudo_nopasswd_works())
            self.assertEqual(self.run_in("echo $KEPT; pgrep -fc '[s]leep 60' || true"), "yes\n0\n")
        finally:
            self.run_in("export PATH=${PATH#/tmp/slow:}; unset KEPT")

    def test_no_prompt_for_a_password(self):
        asked = []
        terminal.set_sudo_password_callback(lambda: asked.append(1) or "")
        try:
            self.assertEqual(self.run_in("sudo id -u"), "0\n")
        finally:
            terminal.set_sudo_password_callback(None)
        self.assertEqual(asked, [])


class SessionTest(HermesCase):
    """HERMES_SESSION_* values come from the process environment, and never from another session."""

    SHOW = 'echo "[$HERMES_SESSION_ID][$HERMES_UI_SESSION_ID]"'

    def test_they_go_with_each_command_and_do_not_last(self):
        with mock.patch.dict(os.environ, {"HERMES_SESSION_ID": "one", "HERMES_UI_SESSION_ID": "ui"}):
            self.assertEqual(self.run_in(self.SHOW), "[one][ui]\n")
        with mock.patch.dict(os.environ, {"HERMES_SESSION_ID": "two"}):
            self.assertEqual(self.run_in(self.SHOW), "[two][]\n")
        for name in ("HERMES_SESSION_ID", "HERMES_UI_SESSION_ID"):
            os.environ.pop(name, None)
        self.assertEqual(self.run_in(self.SHOW), "[][]\n")

    def test_another_sessions_values_are_not_told(self):
        mine = make("session:mine")
        with mock.patch.dict(os.environ, {"HERMES_SESSION_ID": "id", "HERMES_SESSION_KEY": "other"}):
            self.assertEqual(mine.execute(self.SHOW)["output"], "[][]\n")
        with mock.patch.dict(os.environ, {"HERMES_SESSION_ID": "id", "HERMES_SESSION_KEY": "mine"}):
            self.assertEqual(mine.execute(self.SHOW)["output"], "[id][]\n")

    def test_names_of_hermes_never_enter_lasting_state(self):
        names = [
            "HERMES_SESSION_ID", "HERMES_SESSION_KEY", "HERMES_UI_SESSION_ID", "HERMES_RPC_TOKEN", "HERMES_RPC_DIR", "HERMES_KERNEL_DIR",
            "HERMES_CRON_SESSION", "HERMES_CRON_AUTO_DELIVER_X", "HERMES_BROWSER_CONTROL_X", "HERMES_DELEGATED_CHILD_CONTEXT",
        ]  # fmt: skip
        with mock.patch.dict(os.environ):
            for name in names:
                os.environ.pop(name, None)
            self.run_in("export KEEPS=1; " + "; ".join(f"export {name}=leak" for name in names))
            self.assertEqual(self.run_in("env | grep -c leak || true; echo $KEEPS"), "0\n1\n")
            self.run_in("export AI_AGENT=leak HERMES_AGENT=leak; unset KEEPS")
            self.assertEqual(self.run_in("env | grep -c leak || true"), "0\n")

    def test_commands_know_that_an_agent_runs_them(self):
        self.assertEqual(self.run_in("echo $AI_AGENT $HERMES_AGENT"), "hermes-agent true\n")


class DesktopTest(HermesCase):
    """Bot Desktop's marker reads two attributes of the environment object."""

    def test_the_marker_finds_a_living_and_a_removed_sandbox(self):
        from tools.bot_desktop import sandbox_host

        marker = sandbox_host._owner_identity(self.env)
        self.assertEqual(marker["container"], self.env._container_id)
        self.assertRegex(self.env._container_id, r"^[0-9a-f]{64}$")
        sandbox_host._ALIVE_CACHE.clear()
        self.assertTrue(sandbox_host.marker_sandbox_alive(marker))
        sandbox_host._ALIVE_CACHE.clear()
        self.assertFalse(sandbox_host.marker_sandbox_alive(marker | {"container": "0" * 64}))

    def test_exec_prefix_carries_its_endpoint(self):
        prefix = self.env.exec_prefix()
        self.assertIsInstance(prefix, list)
        self.assertTrue(os.path.isabs(prefix[0]))
        import subprocess

        script = "id -un; printf '%s|' \"$1\" 'a  b' $'x\\ny'; echo ä"
        done = subprocess.run(
            [*prefix, "bash", "-c", script], env={"PATH": os.environ["PATH"]}, capture_output=True, timeout=30, check=True
        )
        self.assertEqual(done.stdout.decode(), "pn\n|a  b|x\ny|ä\n")
        root = self.env.exec_prefix(user="root", interactive=False)
        self.assertNotIn("-i", root)
        done = subprocess.run([*root, "bash", "-c", "id -u"], env={"PATH": os.environ["PATH"]}, capture_output=True, timeout=30, check=True)
        self.assertEqual(done.stdout, b"0\n")

    def test_no_prefix_is_none_and_the_log_says_why(self):
        with self.assertLogs(LOGGER, "WARNING") as logs:
            self.assertIsNone(self.env.exec_prefix(user="not a user"))
        self.assertIn("no stream into the sandbox", logs.output[0])

    def test_cache_files_are_promised_below_each_home(self):
        self.assertEqual(PROVIDER.cache_path_base, "~/.hermes")


class DirectoryTest(HermesCase):
    """The host passes cwd on every call, /root for want of a better idea, and Windows paths at times."""

    def test_root_means_home_for_an_account_that_cannot_enter_it(self):
        for cwd in ("/root", "~", "", "D:\\.hermes", "/Users/you/project"):
            with self.subTest(cwd=cwd):
                self.assertEqual(make(cwd=cwd).cwd, HOME)
        result = self.env.execute("pwd", cwd="/root")
        self.assertEqual((result["output"], result["cwd"], result["cwd_observed"]), (f"{HOME}\n", HOME, True))

    def test_a_directory_that_was_deleted_since(self):
        self.run_in("mkdir -p /tmp/gone/deep && cd /tmp/gone/deep")
        self.run_in("rm -rf /tmp/gone", cwd="/")
        result = self.env.execute("pwd", cwd="/tmp/gone/deep")
        self.assertEqual((result["returncode"], result["cwd"]), (0, "/tmp"), result)
        self.assertIn("/tmp/gone/deep", result["output"])

    def test_a_directory_that_never_was(self):
        result = self.env.execute("echo hi", cwd="/no/such")
        self.assertEqual(result["returncode"], 126)
        self.assertIn("/no/such", result["output"])
        self.assertNotIn("hi", result["output"].split())
        self.assertEqual(self.run_in("echo fine"), "fine\n")

    def test_names_that_are_not_utf8_come_back_as_they_are(self):
        self.run_in("mkdir -p \"$(printf '/tmp/raw-\\xff')\" && cd \"$(printf '/tmp/raw-\\xff')\"")
        result = self.env.execute("touch here; cd .", cwd=self.env.cwd)
        self.assertEqual(result["returncode"], 0, result)
        result["cwd"].encode()
        self.assertEqual(self.run_in("ls", cwd=result["cwd"]), "here\n")
        self.run_in("rm -rf /tmp/raw-*", cwd="/tmp")


class TextTest(HermesCase):
    def test_the_command_text_is_not_rewritten(self):
        text = "cat <<'END'\na && b &\nEND\n"
        self.assertEqual(self.run_in(text), "a && b &\n")
        self.assertEqual(self.run_in("A && B &\nwait\necho on", rewrite_compound_background=True).splitlines()[-1], "on")

    def test_nothing_is_spawned_around_a_command(self):
        # mktemp, mv and rm of the host's own wrapper would appear as names in the temporary directory and cost processes.
        first = int(self.run_in("echo $BASHPID"))
        self.assertEqual(self.run_in("ls /tmp | grep -c hermes- || true"), "0\n")
        self.assertGreater(first, 0)
        self.assertTrue(self.env._snapshot_ready)

    def test_a_command_longer_than_an_argument_may_be(self):
        self.assertEqual(self.run_in(f"echo {'q' * 200000} | wc -c"), "200001\n")

    def test_bytes_that_are_not_utf8(self):
        self.assertEqual(self.run_in("printf '\\xff\\x80z'"), "\ufffd\ufffdz")
        self.assertEqual(self.run_in("printf %s 'a\udcffb' | od -An -tx1").split(), ["61", "ff", "62"])


class IdentityTest(HermesCase):
    def test_the_file_tools_know_the_backend_by_its_own_name(self):
        # They guess from the class's name before they ask: "docker" anywhere in it would make this the docker backend.
        with mock.patch.dict(terminal._active_environments, {"default": self.env}):
            self.assertEqual(_terminal_env_type_for_task("default"), "dockerbox")
            self.assertTrue(is_persistent_env("default"))

    def test_the_command_line_sees_what_the_agent_sees(self):
        self.run_in("cd /usr && export SEEN=yes && seen() { echo called; }")
        self.assertEqual(dockerbox("run", SANDBOX, "pwd; echo $SEEN; seen"), "/usr\nyes\ncalled\n")
        self.run_in("cd; unset SEEN; unset -f seen")

    def test_profiles_never_meet(self):
        home = Path(os.environ["HERMES_HOME"]) / "profiles" / "work"
        home.mkdir(parents=True)
        settings = Path(os.environ["HERMES_HOME"], "config.yaml").read_text(encoding="utf-8")
        (home / "config.yaml").write_text(settings, encoding="utf-8")
        token = hermes_constants.set_hermes_home_override(home)
        try:
            # Not by the factory: it knows the plugins of its own profile alone.
            env = PROVIDER.create_environment(cwd="~", timeout=30, container_config={})
        finally:
            hermes_constants.reset_hermes_home_override(token)
        self.addCleanup(dockerbox, "rm", "-f", f"work/{SANDBOX}")
        self.assertNotEqual(env._container_id, self.env._container_id)
        label = docker("inspect", "-f", '{{index .Config.Labels "dev.dockerbox.profile"}}', env._container_id)
        self.assertEqual(label, "work")
        self.assertEqual(dockerbox("run", f"work/{SANDBOX}", "pwd"), f"{HOME}\n")

    def test_a_routed_profile_gets_nothing_of_this_processs_environment(self):
        provider = module("provider")
        section = dict(provider._terminal()) | {"docker_forward_env": ["FWD1"]}
        token = hermes_constants.set_hermes_home_override(os.environ["HERMES_HOME"] + "/profiles/other")
        try:
            with mock.patch.object(provider, "_terminal", return_value=section), self.assertLogs(LOGGER, "WARNING") as logs:
                self.assertEqual(type(PROVIDER)()._forwarded(("FWD1",)), ())
                self.assertEqual(provider._sources().environ, {})
        finally:
            hermes_constants.reset_hermes_home_override(token)
        self.assertIn("docker_forward_env", logs.output[0])

    def test_an_ephemeral_session_has_its_own_sandbox_which_goes_with_it(self):
        one, two = (make(task, container_persistent=False) for task in ("s1", "s2"))
        self.assertEqual(len({one._container_id, two._container_id, self.env._container_id}), 3)
        self.assertFalse(one._persistent)
        self.assertTrue(one._session_scoped, "it has to outlive a turn")
        for env in (one, two):
            env.cleanup()
            env.cleanup()
            self.assertEqual(docker("ps", "-aq", "--no-trunc", "--filter", f"id={env._container_id}"), "")

    def test_a_persistent_sandbox_stays_after_cleanup(self):
        env = make()
        env.cleanup()
        env.cleanup()
        self.assertEqual(docker("inspect", "-f", "{{.State.Running}}", env._container_id), "true")
        self.assertEqual(env.execute("echo back")["output"], "back\n", "an environment can be used after its cleanup")
        env.cleanup()

    def test_garbage_collection_asks_no_daemon(self):
        with mock.patch.object(module("child").Child, "request", side_effect=AssertionError("asked")):
            self.env.__del__()
        self.assertEqual(self.run_in("echo alive"), "alive\n")


class FilesTest(HermesCase):
    def setUp(self):
        directory = TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.dest = Path(directory.name) / "file"

    def test_a_file_arrives_byte_by_byte(self):
        self.run_in("head -c 3000000 /dev/urandom > /tmp/blob")
        self.env.fetch_file("/tmp/blob", self.dest, max_bytes=3000000)
        import hashlib

        self.assertEqual(self.run_in("sha256sum < /tmp/blob").split()[0], hashlib.sha256(self.dest.read_bytes()).hexdigest())

    def test_what_is_no_file_or_too_large_leaves_nothing_behind(self):
        self.run_in("head -c 1001 /dev/zero > /tmp/big")
        for path in ("/nonexistent", "/tmp", "/tmp/big", "/dev/zero"):
            with self.subTest(path=path), self.assertRaises(base.FileFetchError) as caught:
                self.env.fetch_file(path, self.dest, max_bytes=1000)
            self.assertIn(path, str(caught.exception))
        self.assertEqual(list(self.dest.parent.iterdir()), [])

    def test_realpath(self):
        self.run_in("ln -sfn /usr/bin /tmp/link")
        self.assertEqual(self.env.fetch_realpath("/tmp/link/env"), "/usr/bin/env")
        self.run_in("ln -sfn /tmp/loop /tmp/loop")
        self.assertIsNone(self.env.fetch_realpath("/tmp/loop/x"))

    def test_temp_dir_is_one(self):
        self.assertEqual(self.env.get_temp_dir(), "/tmp")


class DeclaredTest(unittest.TestCase):
    """Section 1 of the contract."""

    def test_attributes(self):
        self.assertEqual(PROVIDER.name, "dockerbox")
        self.assertTrue(PROVIDER.is_remote)
        self.assertTrue(PROVIDER.is_container)
        self.assertTrue(PROVIDER.session_isolated_when_nonpersistent)
        self.assertEqual(PROVIDER.strip_env_keys, frozenset())
        self.assertEqual((PROVIDER.default_cwd, PROVIDER.supports_streams), ("~", True))
        for text in (PROVIDER.display_name, PROVIDER.description, PROVIDER.env_description):
            self.assertTrue(text)

    def test_health(self):
        self.assertTrue(PROVIDER.is_available())
        self.assertTrue(PROVIDER.check_requirements({"env_type": "dockerbox"}))
        status, detail = PROVIDER.probe()
        self.assertEqual(status, "ready", detail)

    def test_no_daemon_is_said_with_what_to_do(self):
        config = {"backend_config": {"host": "unix:///nonexistent.sock", "binary": DOCKERBOX}}
        status, detail = PROVIDER.probe_with_config(config)
        self.assertNotEqual(status, "ready")
        self.assertIn("nonexistent.sock", detail)
        with self.assertLogs(LOGGER, "ERROR") as logs:
            self.assertFalse(PROVIDER.check_requirements(config))
        self.assertIn("nonexistent.sock", logs.output[0])

    def test_no_executable_is_said_with_what_to_do(self):
        config = {"backend_config": {"binary": "/nonexistent/dockerbox"}}
        status, detail = PROVIDER.probe_with_config(config)
        self.assertEqual(status, "needs_setup")
        self.assertIn("terminal.backends.dockerbox.binary", detail)

    def test_doctor_names_the_executable_the_daemon_and_the_hosts_limits(self):
        rows = PROVIDER.doctor_checks()
        self.assertTrue(all(ok for ok, _, _ in rows), rows)
        text = "\n".join(f"{label} {detail}" for _, label, detail in rows)
        for word in (DOCKERBOX, "dockerbox daemon", "/home/", "Bot Desktop", "after 0.22.2"):
            self.assertIn(word, text)

    def test_the_log_names_the_hosts_limits_too(self):
        provider = type(PROVIDER)()
        with self.assertLogs(LOGGER, "WARNING") as logs:
            provider.create_environment(cwd="~", timeout=30, container_config={}).cleanup()
        self.assertIn("/home/", "\n".join(logs.output))
        self.assertIn("Bot Desktop", "\n".join(logs.output))

    def test_setup_and_schema(self):
        self.assertIn(DOCKERBOX, "\n".join(PROVIDER.setup_instructions()))
        schema = PROVIDER.get_config_schema()
        schema["image"]["type"] = "changed"
        self.assertEqual(PROVIDER.get_config_schema()["image"]["type"], "string")
        given = {"a": [1]}
        copied = PROVIDER.resolve_config(given)
        copied["a"].append(2)
        self.assertEqual(given, {"a": [1]})

    def test_unknown_arguments_of_later_hosts_are_swallowed(self):
        env = PROVIDER.create_environment(
            cwd="~", timeout=30, task_id="default", image=None, container_config=None, workspace_binding=None, something_new=1
        )
        self.assertEqual(env.execute("pwd", cwd="~")["output"], f"{HOME}\n")
        env.cleanup()

    def test_creation_is_safe_from_many_threads(self):
        made = []
        threads = [threading.Thread(target=lambda: made.append(make()._container_id)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual((len(made), len(set(made))), (6, 1))
