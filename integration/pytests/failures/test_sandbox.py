"""Each thing that can be wrong around a sandbox of Hermes's, through Hermes's own factory: the exact reason and hint, and nothing left.

In every text DIR stands for the test's own directory, BOX for its sandbox, EXE for the executable of dockerbox and PLUGIN for the
plugin's version.
"""

import functools
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from hermes_fixture import DOCKERBOX, PROVIDER, SANDBOX, base, configured, docker, dockerbox, in_thread, make, module, until

BOX = f"{SANDBOX}-fail"

GET_IT = module("locate").GET_IT
UPDATE = "the executable is the older one: update it, or run `{0} plugin install` for the plugin of its version, and restart Hermes"
NAME = 'must be 1 to 128 letters, digits, ".", "_", ":" or "-" and begin with a letter or digit'
START_IT = "start it (systemctl start docker, or make docker in the repository), or point DOCKER_HOST or --context at the right one"
NAME_IT = "correct it: `hermes config set terminal.backends.dockerbox.{} VALUE`, or `hermes config edit`"
SET_IT = "correct it: `hermes config set terminal.{} VALUE`, or `hermes config edit`"

# The first line of a protocol that is not spoken yet.
TOMORROW = '{"jsonrpc":"2.0","method":"hello","params":{"name":"dockerbox","protocol":2,"version":"9.9.0","features":[]}}'


def script(text):
    """Settings for an executable that is a shell script."""
    return lambda where: {"binary": where.program("dockerbox", f"#!/bin/sh\n{text}\n")}


def own(**settings):
    """Settings that do not depend on the test's directory."""
    return lambda _: settings


class Row:
    """Settings of the backend, or with ``terminal`` of Hermes, and what a sandbox is refused with."""

    def __init__(self, name, reason, hint, settings=None, **terminal):
        """``settings(where)`` gives those of the backend; ``where`` is the test."""
        self.name, self.reason, self.hint, self.settings, self.terminal = name, reason, hint, settings or own(), terminal


ROWS = [
    # The executable.
    Row(
        "missing",
        "terminal.backends.dockerbox.binary is DIR/nothing, which is not an executable file",
        GET_IT,
        lambda where: {"binary": str(where.dir / "nothing")},
    ),
    Row(
        "not executable",
        "terminal.backends.dockerbox.binary is DIR/text, which is not an executable file",
        GET_IT,
        lambda where: {"binary": where.program("text", "", mode=0o644)},
    ),
    Row(
        "no program",
        "cannot start DIR/text: Exec format error",
        "run `DIR/text version` to see what it is",
        lambda where: {"binary": where.program("text", "no program\n")},
    ),
    Row(
        "crashing",
        'DIR/dockerbox ended with status 3 before it greeted, having said "panic: out of luck"',
        "run `DIR/dockerbox version` to see whether it works",
        script("echo 'panic: out of luck' >&2; exit 3"),
    ),
    Row(
        "printing what is no message",
        'DIR/dockerbox ended with status 0 before it greeted, having said "Welcome!"',
        "run `DIR/dockerbox version` to see whether it works",
        script("echo 'Welcome!'"),
    ),
    Row(
        "saying nothing",
        "DIR/dockerbox did not greet within 10 s",
        "run `DIR/dockerbox version` to see what it is",
        script("exec sleep 60"),
    ),
    Row(
        "newer than the plugin",
        "this plugin (PLUGIN) speaks protocol 1, but DIR/dockerbox (9.9.0) speaks protocol 2",
        "the plugin is the older one: run `DIR/dockerbox plugin install` and restart Hermes",
        script(f"echo '{TOMORROW}'; cat >/dev/null"),
    ),
    Row(
        "older than the plugin",
        "this plugin (PLUGIN) speaks protocol 1, but DIR/dockerbox (0.0.1) speaks protocol 0",
        UPDATE.format("DIR/dockerbox"),
        script(f"echo '{TOMORROW.replace('2,', '0,').replace('9.9.0', '0.0.1')}'; cat >/dev/null"),
    ),
    # The daemon.
    Row(
        "no daemon",
        "the docker daemon at unix:///nonexistent/docker.sock does not answer",
        START_IT,
        own(host="unix:///nonexistent/docker.sock"),
    ),
    Row(
        "no address",
        '"nonsense" is not an address of a docker daemon',
        "an address (DOCKER_HOST, --host) looks like unix:///var/run/docker.sock, tcp://host:2376 or ssh://user@host",
        own(host="nonsense"),
    ),
    Row(
        "no such context",
        'there is no docker context "nosuch"',
        "docker context ls lists the contexts there are; choose one with --context or DOCKER_CONTEXT",
        own(context="nosuch"),
    ),
    Row(
        "host and context",
        "--host and --context name two daemons",
        "use one of the two (in Hermes, terminal.backends.dockerbox.host and .context)",
        own(host="unix:///a", context="b"),
    ),
    # What the sandbox is made of.
    Row(
        "image not built",
        "the image dockerbox/nosuch is not on this daemon",
        "build it first, or choose another image (--image, in Hermes terminal.backends.dockerbox.image)",
        own(image="dockerbox/nosuch"),
    ),
    Row(
        "image not pulled",
        "the image 127.0.0.1:1/a/b:c is not on this daemon and cannot be pulled: the registry 127.0.0.1:1 does not answer the daemon",
        "see whether the daemon's machine reaches it (proxy, DNS, firewall), or use an image that docker images lists",
        own(image="127.0.0.1:1/a/b:c"),
    ),
    Row(
        "no such user",
        'the image dockerbox/desktop:latest has no user "nosuch"',
        "choose one of its users (--user, in Hermes terminal.backends.dockerbox.user), or a number up to 2147483647",
        own(user="nosuch"),
    ),
    Row(
        "host directory missing",
        "the host path DIR/nothing, to be mounted at /x, does not exist on the daemon's machine",
        "make it, or correct -v (in Hermes terminal.docker_volumes)",
        docker_volumes=["DIR/nothing:/x"],
    ),
    Row(
        "too many processors",
        "the daemon's machine has CPUS CPUs, fewer than were asked for",
        "choose at most CPUS (--cpus, in Hermes terminal.container_cpu), or 0 for no limit",
        container_cpu=100000,
    ),
    # Settings.
    Row(
        "name of a sandbox",
        f'terminal.backends.dockerbox.sandbox: "a/b" {NAME}',
        NAME_IT.format("sandbox"),
        own(sandbox="a/b"),
    ),
    Row(
        "image in capitals",
        'terminal.backends.dockerbox.image: "UPPER" must be in lower case up to the tag, such as debian:12',
        NAME_IT.format("image"),
        own(image="UPPER"),
    ),
    Row(
        "memory of an unknown unit",
        'terminal.container_memory: "12x" must be a whole number of MB',
        SET_IT.format("container_memory"),
        container_memory="12x",
    ),
    Row(
        "privileged",
        "terminal.docker_extra_args: --privileged: a privileged container is no sandbox; --cap-add and --device give single rights",
        SET_IT.format("docker_extra_args"),
        docker_extra_args=["--privileged"],
    ),
    Row(
        "setting of no name",
        "terminal.backends.dockerbox.imgae: is no setting; there are image, user, pids, security, sandbox, binary, host, context",
        NAME_IT.format("imgae"),
        own(imgae="x"),
    ),
    Row(
        "several at once",
        'terminal.docker_network: "never" must be true or false; terminal.container_cpu: -1 must be 0 (no limit) or 0.01 to 1000000 cores; '
        'terminal.docker_volumes: "/a:/b" must be a list of texts',
        "correct these settings: `hermes config edit`, or `hermes config set KEY VALUE` for each",
        container_cpu=-1,
        docker_network="never",
        docker_volumes="/a:/b",
    ),
]


@functools.cache
def cpus():
    """How many processors the daemon's machine has."""
    return docker("info", "-f", "{{.NCPU}}")


class Case(unittest.TestCase):
    """A test with a directory of its own and a sandbox that must not come to be."""

    def setUp(self):
        self.dir = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.addCleanup(dockerbox, "rm", "-f", BOX)
        # A client is kept for its command line, also when its child was refused.
        self.addCleanup(PROVIDER.retire)

    def program(self, name, text, mode=0o755):
        """A file that may be run; its path."""
        path = self.dir / name
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        return str(path)

    def fill(self, text):
        """The text with what its capitals stand for."""
        known = {"DIR": str(self.dir), "BOX": BOX, "EXE": DOCKERBOX, "PLUGIN": module("version").VERSION, "CPUS": cpus()}
        return re.sub(rf"\b({'|'.join(known)})\b", lambda found: known[found[0]], text)

    def refused(self, row, call=make):
        """Want ``call`` to be refused as the row says, and nothing to be left."""
        filled = {key: [self.fill(item) for item in value] if isinstance(value, list) else value for key, value in row.terminal.items()}
        with configured(own={"sandbox": BOX} | row.settings(self), **filled):
            made = self.traces()  # by the row itself
            with self.assertRaises(base.EnvironmentConnectionError) as caught:
                call()
        self.assertEqual((caught.exception.reason, caught.exception.retry_hint), (self.fill(row.reason), self.fill(row.hint)))
        self.assertEqual([trace for trace in self.traces() if trace not in made], [])
        PROVIDER.retire()
        self.assertTrue(until(lambda: not self.children()), self.children())

    def traces(self):
        """Containers and volumes that carry the sandbox's name, and files of the test's directory."""
        lists = (
            docker("ps", "-aq", "--filter", f"name={BOX}"),
            docker("volume", "ls", "-q", "--filter", f"name={BOX}"),
        )
        return [line for text in lists for line in text.split()] + sorted(str(path) for path in self.dir.rglob("*"))

    def children(self):
        """Command lines of this process's children that this test started, ended ones included."""
        listed = subprocess.run(["ps", "-o", "args=", "--ppid", str(os.getpid())], capture_output=True, text=True, check=False).stdout
        return [line for line in listed.splitlines() if str(self.dir) in line]


class RefusedTest(Case):
    def test_rows(self):
        names = [row.name for row in ROWS]
        self.assertEqual(len(set(names)), len(names))
        for row in ROWS:
            with self.subTest(row.name):
                self.refused(row)


class SentenceTest(unittest.TestCase):
    def test_no_row_is_a_chain_of_causes(self):
        for row in ROWS:
            plain = re.sub(r'"[^"]*"', "…", row.reason)  # somebody else's words
            for part in re.split(r"; (?=terminal\.)", plain):
                causes = re.sub(r"^terminal\.[a-z_.]+: ", "", part).split(": ")
                self.assertLessEqual(len(causes), 2, row.reason)
            self.assertTrue(row.hint, row.name)


class PluginTest(Case):
    def test_newer_than_the_executable(self):
        found = subprocess.run([DOCKERBOX, "version"], capture_output=True, text=True, check=True).stdout.split()[1]
        with mock.patch.object(module("child"), "PROTOCOL", 2):
            PROVIDER.retire()
            self.refused(
                Row(
                    "",
                    f"this plugin (PLUGIN) speaks protocol 2, but EXE ({found}) speaks protocol 1",
                    UPDATE.format("EXE"),
                )
            )


class LivingTest(Case):
    def test_another_container_of_that_name(self):
        with configured(own={"sandbox": BOX}):
            env = make()
            name = docker("inspect", "-f", "{{.Name}}", env._container_id).removeprefix("/")
            env.cleanup()
        dockerbox("rm", "-f", BOX)
        docker("create", "--name", name, "--network", "none", "dockerbox/desktop:latest", "true")
        self.addCleanup(docker, "rm", "-f", name)
        self.refused(
            Row(
                "",
                f"the container name {name} is taken by a container that is not dockerbox's",
                "rename or remove that container, or choose another sandbox name",
            )
        )
        docker("rm", "-f", name)

    def test_paused(self):
        with configured(own={"sandbox": BOX}):
            env = make()
            env.execute("true")
            docker("pause", env._container_id)
            try:
                for call in (make, lambda: env.execute("true")):
                    with self.subTest(call), self.assertRaises(base.EnvironmentConnectionError) as caught:
                        call()
                    self.assertEqual(caught.exception.reason, f'sandbox "{BOX}" is paused')
                    self.assertEqual(caught.exception.retry_hint, f"dockerbox unpause {BOX} lets it go on")
            finally:
                docker("unpause", env._container_id)
            self.assertEqual(env.execute("echo on")["output"], "on\n")

    def test_the_child_is_killed_under_a_command(self):
        with configured(own={"sandbox": BOX}):
            env = make()
            env.execute("rm -f /tmp/begun")
            thread, results = in_thread(lambda: self.caught(lambda: env.execute("touch /tmp/begun; sleep 4715", timeout=60)))
            self.assertTrue(until(lambda: docker("exec", env._container_id, "ls", "/tmp").find("begun") >= 0))
            os.kill(env._attachment.child.pid, 9)
            thread.join(20)
            self.assertEqual(
                results, [("dockerbox serve ended with status -9", "run the command again; the sandbox and its files are still there")]
            )
            self.assertEqual(env.execute("echo on")["output"], "on\n")
            self.assertTrue(until(lambda: env.execute("pgrep -fxc 'sleep 4715'")["output"] == "0\n"))

    def caught(self, call):
        """The reason and the hint of the failure that ``call`` must give."""
        with self.assertRaises(base.EnvironmentConnectionError) as caught:
            call()
        return caught.exception.reason, caught.exception.retry_hint
