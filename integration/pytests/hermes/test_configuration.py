"""Settings as a user writes them into config.yaml, through Hermes's own factory, to what Docker says of the sandbox."""

import contextlib
import json
import os
import threading
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import hermes_constants
import hermes_fixture as fixture
from hermes_fixture import CONFIG, LOGGER, PROVIDER, SANDBOX, base, docker, dockerbox, make, module, running, until

OTHER = f"{SANDBOX}-set"


def configured(*path, own=None, **terminal):
    """As the fixture's, with a sandbox that only these tests use."""
    return fixture.configured(*path, own={"sandbox": OTHER} | (own or {}), **terminal)


def inspect(env, template):
    return docker("inspect", "-f", template, env._container_id)


def made_for(name):
    """Containers, running or not, of that sandbox."""
    return docker("ps", "-aq", "--filter", f"label=dev.dockerbox.name={name}")


class ConfigurationCase(unittest.TestCase):
    def setUp(self):
        self.addCleanup(dockerbox, "rm", "-f", OTHER)

    def make(self, *args, **options):
        env = make(*args, **options)
        self.addCleanup(env.cleanup)
        return env


class ShapeTest(ConfigurationCase):
    def test_every_setting_of_the_container(self):
        with TemporaryDirectory() as shared, configured(
            container_cpu=0.5, container_memory="300", docker_shm_size="96m", docker_network=False, docker_env={"PORT": 8080},
            docker_volumes=[f"{shared}:/shared:ro"], docker_extra_args=["--ulimit", "nofile=4321"], own={"pids": 300},
        ):  # fmt: skip
            os.chmod(shared, 0o755)
            env = self.make()
            got = json.loads(docker("inspect", env._container_id))[0]["HostConfig"]
            self.assertEqual(
                [got[key] for key in ("NanoCpus", "Memory", "PidsLimit", "ShmSize", "NetworkMode")],
                [500_000_000, 300 << 20, 300, 96 << 20, "none"],
            )
            Path(shared, "seen").write_text("yes")
            result = env.execute("echo $PORT; ulimit -n; cat /shared/seen; touch /shared/x")
            self.assertEqual(result["output"].splitlines()[:2], ["8080", "4321"])
            self.assertIn("yes", result["output"])
            self.assertFalse(Path(shared, "x").exists())

    def test_run_as_host_user(self):
        with TemporaryDirectory() as shared, configured(docker_run_as_host_user=True, docker_volumes=[f"{shared}:/shared"]):
            env = self.make()
            self.assertEqual(env.execute("id -u; id -g")["output"].split(), [str(os.getuid()), str(os.getgid())])
            self.assertEqual(env.execute("touch /shared/mine ~/mine && test -O ~/mine")["returncode"], 0)
            self.assertEqual(Path(shared, "mine").stat().st_uid, os.getuid())


class SecurityTest(ConfigurationCase):
    def test_hardened(self):
        with configured(own={"security": "hardened"}):
            env = self.make()
            self.assertEqual(
                inspect(env, "{{.HostConfig.NetworkMode}} {{.HostConfig.CapAdd}} {{.HostConfig.ReadonlyRootfs}}"), "none [] true"
            )
            result = env.execute("cd /tmp && export A=1; sudo -n true 2>/dev/null || echo no; touch /etc/x 2>/dev/null || echo no")
            self.assertEqual((result["output"], result["returncode"]), ("no\nno\n", 0))
            self.assertEqual(env.execute("kill -9 -1; echo over")["returncode"], 0)
            self.assertEqual(env.execute("pwd; echo $A")["output"], "/tmp\n1\n")

    def test_with_a_network_that_was_asked_for(self):
        with configured(docker_network=True, own={"security": "hardened"}):
            self.assertEqual(inspect(self.make(), "{{.HostConfig.NetworkMode}} {{.HostConfig.ReadonlyRootfs}}"), "bridge true")

    def test_no_word_for_it(self):
        with configured(own={"security": "strict"}), self.assertRaises(base.EnvironmentConnectionError) as caught:
            make()
        self.assertEqual(made_for(OTHER), "")
        self.assertIn('terminal.backends.dockerbox.security: "strict" must be "standard" or "hardened"', caught.exception.reason)

    def test_a_living_one_with_a_job_is_not_passed_off_as_hardened(self):
        with configured():
            env = self.make()
            env.execute("nohup sleep 7201 >/dev/null 2>&1 &")
        with configured(own={"security": "hardened"}):
            with self.assertRaises(base.EnvironmentConnectionError) as caught:
                make()
            self.assertIn("is not hardened", caught.exception.reason)
            self.assertIn("a process runs in it (sleep)", caught.exception.reason)
            self.assertIn(f"dockerbox stop {OTHER}", caught.exception.retry_hint)
            env.execute("pkill -f 'sleep 720[1]'")
            again = self.make()
            self.assertEqual(inspect(again, "{{.HostConfig.ReadonlyRootfs}}"), "true")


class FaultsTest(ConfigurationCase):
    def refused(self):
        with self.assertRaises(base.EnvironmentConnectionError) as caught:
            make()
        self.assertEqual(made_for(OTHER), "")
        return caught.exception

    def test_all_faults_at_once_by_the_names_the_user_wrote(self):
        with configured(
            docker_volumes="/a:/b", docker_env={"A B": "x", "OK": True}, docker_extra_args=["--privileged"], docker_shm_size="big",
            docker_forward_env=["1X"], docker_network="never", own={"pids": "few", "user": "a b", "imge": "x"},
        ), mock.patch.dict(os.environ, {"TERMINAL_DOCKER_ORPHAN_REAPER": "perhaps"}):  # fmt: skip
            error = self.refused()
        for part in (
            'terminal.docker_volumes: "/a:/b" must be a list of texts',
            'terminal.docker_env: "A B" is not a variable name',
            'terminal.docker_env: "OK" must be text',
            "terminal.docker_extra_args: ",
            'terminal.docker_shm_size: "big" must be a size',
            'terminal.docker_forward_env: "1X" is not a variable name',
            'terminal.docker_network: "never" must be true or false',
            'terminal.backends.dockerbox.pids: "few" must be a whole number',
            'terminal.backends.dockerbox.user: "a b" must be a name',
            "terminal.backends.dockerbox.imge: is no setting",
        ):
            self.assertIn(part, error.reason)
        self.assertIn("hermes config edit", error.retry_hint)

    def test_one_fault_names_its_command(self):
        with configured(own={"pids": 5}):
            error = self.refused()
        self.assertIn("terminal.backends.dockerbox.pids: 5 must be 0 (no limit) or at least 64", error.reason)
        self.assertIn("hermes config set terminal.backends.dockerbox.pids VALUE", error.retry_hint)

    def test_a_host_value(self):
        # 0.22.2 parses numbers itself; what it lets through is dockerbox's to judge.
        with configured():
            for value, says in [("12x", '"12x" must be a whole number of MB'), (-1, "-1 MB must be 0 (no limit)"), (1, "1 MB must be 0")]:
                with self.assertRaises(base.EnvironmentConnectionError) as caught:
                    make(container_memory=value)
                self.assertIn(f"terminal.container_memory: {says}", caught.exception.reason)
                self.assertIn("hermes config set terminal.container_memory VALUE", caught.exception.retry_hint)


class ChangeTest(ConfigurationCase):
    def test_limits_change_while_the_sandbox_lives(self):
        with configured(container_memory=256):
            first = self.make()
            self.assertEqual(inspect(first, "{{.HostConfig.Memory}}"), str(256 << 20))
            first.execute("echo kept > /tmp/kept")
            first.cleanup()
        with configured(container_memory=512):
            second = self.make()
            self.assertEqual(inspect(second, "{{.HostConfig.Memory}}"), str(512 << 20))
            self.assertEqual((second._container_id, second.execute("cat /tmp/kept")["output"]), (first._container_id, "kept\n"))

    def test_other_settings_wait_for_jobs_and_then_make_it_anew(self):
        with configured(docker_env={"SHAPE": "one"}):
            first = self.make()
            first.execute("nohup sleep 3131 >/dev/null 2>&1 & echo kept > ~/kept")
            self.assertTrue(until(lambda: running(first, "sleep 313[1]") == 1))
        with configured(docker_env={"SHAPE": "two"}):
            with self.assertLogs(LOGGER, "WARNING") as logs:
                second = self.make()
            self.assertEqual((second._container_id, second.execute("echo $SHAPE")["output"]), (first._container_id, "one\n"))
            self.assertTrue([line for line in logs.output if "SHAPE" in line and OTHER in line], logs.output)
            first.execute("pkill -f 'sleep 313[1]'")
            self.assertTrue(until(lambda: running(first, "sleep 313[1]") == 0))
            second.cleanup()
            third = self.make()
            self.assertNotEqual(third._container_id, first._container_id)
            result = third.execute("echo $SHAPE; cat ~/kept")
            # It is this environment's first sandbox: nothing it knew of is gone.
            self.assertEqual((result["output"], result.get("environment_recreated")), ("two\nkept\n", None))
            # To the one that had another it is a new one, and it stays as it is now.
            result = first.execute("echo $SHAPE")
            self.assertEqual((result["output"], result.get("environment_recreated")), ("two\n", True))
            self.assertEqual(third.execute("echo $SHAPE")["output"], "two\n")
            self.assertEqual(len(made_for(OTHER).split()), 1)

    def test_what_nobody_chose_stays_as_the_command_line_made_it(self):
        dockerbox("up", OTHER, "--memory", "700m", "-e", "MADE=by-hand")
        with configured():
            env = self.make()
            self.assertEqual(inspect(env, "{{.HostConfig.Memory}}"), str(700 << 20))
            self.assertEqual(env.execute("echo $MADE")["output"], "by-hand\n")

    def test_a_mount_that_is_no_longer_asked_for_goes(self):
        with TemporaryDirectory() as shared:
            with configured(docker_volumes=[f"{shared}:/shared"]):
                self.make().cleanup()
            with configured():
                env = self.make()
                self.assertEqual(env.execute("test -e /shared")["returncode"], 1)

    def test_guards_go_by_what_the_sandbox_has_too(self):
        provider = type(PROVIDER)()
        with TemporaryDirectory() as shared:
            with configured(docker_volumes=[f"{shared}:/shared"]):
                first = self.make()
                first.execute("nohup sleep 3132 >/dev/null 2>&1 &")
                self.assertTrue(until(lambda: running(first, "sleep 313[2]") == 1))
            with configured():
                self.assertTrue(provider.skip_container_guards)
                provider.create_environment(cwd="~", timeout=30, container_config={})
                self.assertFalse(provider.skip_container_guards, "a job kept the sandbox, and with it the mount")


class SharingTest(ConfigurationCase):
    def test_each_session_its_own_when_nothing_is_kept(self):
        with configured(container_persistent=False):
            one, two = self.make("s1"), self.make("s2")
            self.assertNotEqual(one._container_id, two._container_id)
            one.execute("echo mine > ~/mine; export MINE=1")
            self.assertEqual(two.execute("ls ~; echo $MINE")["output"], "\n")
            one.cleanup()
            gone = one._container_id
            self.assertTrue(until(lambda: gone not in docker("ps", "-aq", "--no-trunc")))
            self.assertEqual(two.execute("echo on")["output"], "on\n")

    @contextlib.contextmanager
    def profile(self, name, **terminal):
        home = CONFIG.parent / "profiles" / name
        home.mkdir(parents=True, exist_ok=True)
        path = home / "config.yaml"
        path.write_text(CONFIG.read_text(encoding="utf-8"), encoding="utf-8")
        token = hermes_constants.set_hermes_home_override(home)
        try:
            with configured(path, **terminal):
                yield
        finally:
            hermes_constants.reset_hermes_home_override(token)

    def in_profile(self, task, **terminal):
        with self.profile(task, **terminal):
            # Not by the factory: it knows the plugins of its own profile alone.
            env = PROVIDER.create_environment(cwd="~", timeout=30, container_config={})
        self.addCleanup(env.cleanup)
        return env

    def test_a_shared_key_joins_profiles(self):
        key = f"{SANDBOX}-team"
        self.addCleanup(dockerbox, "rm", "-f", f"shared:{key}")
        one, two = (self.in_profile(name, docker_shared_container_key=key) for name in ("red", "blue"))
        self.assertEqual(one._container_id, two._container_id)
        with configured(docker_shared_container_key=key):
            self.assertEqual(self.make()._container_id, one._container_id)

    def test_profiles_with_sandboxes_of_one_name_never_meet(self):
        envs = {name: self.in_profile(name) for name in ("red", "blue")}
        for name in envs:
            self.addCleanup(dockerbox, "rm", "-f", f"{name}/{OTHER}")
        with configured():
            envs["default"] = self.make()
        self.assertEqual(len({env._container_id for env in envs.values()}), 3)
        for name, env in envs.items():
            env.execute(f"echo {name} > ~/who")
        self.assertEqual([env.execute("cat ~/who")["output"].strip() for env in envs.values()], list(envs))

    def test_identifiers_that_look_alike_do_not_meet(self):
        with configured():
            envs = [self.make(f"{SANDBOX}{task}") for task in ("p:x", "p_x")]
            for task in ("p:x", "p_x"):
                self.addCleanup(dockerbox, "rm", "-f", f"task:{SANDBOX}{task}")
            self.assertNotEqual(envs[0]._container_id, envs[1]._container_id)

    def test_a_sandbox_that_is_not_to_outlive_the_process_goes_and_its_home_stays(self):
        with configured(docker_persist_across_processes=False):
            env = self.make()
            env.execute("echo kept > ~/kept")
            env.cleanup()
            self.assertEqual(made_for(OTHER), "")
            self.assertEqual(self.make().execute("cat ~/kept")["output"], "kept\n")


class ReaperTest(ConfigurationCase):
    def test_once_in_a_process_for_each_profile_unless_switched_off(self):
        provider, asked = type(PROVIDER)(), []

        def create(**settings):
            with configured(**settings):
                self.addCleanup(provider.create_environment(cwd="~", timeout=30, container_config={}).cleanup)

        with mock.patch.object(module("provider"), "_reap", lambda _client, profile: asked.append(profile)):
            create(docker_orphan_reaper=False)
            create()
            create()
            for thread in threading.enumerate():
                if thread.name == "dockerbox-reap":
                    thread.join(15)
        self.assertEqual(asked, [""])

    def test_the_executable_knows_how(self):
        child = PROVIDER._client(PROVIDER._settings()).child()
        self.assertIn("reap", child.features)
        with self.assertNoLogs(LOGGER, "WARNING"):
            module("provider")._reap(PROVIDER._client(PROVIDER._settings()), f"{SANDBOX}-nobody")


if __name__ == "__main__":
    unittest.main()
