"""Hermes's own Bot Desktop, computer_use and browser tool against a sandbox of the desktop image, and their refusals on the older host."""

import base64
import io
import json
import os
import struct
import subprocess
from unittest import mock

from both_hosts import CHANGED, forget_environments
from hermes_fixture import CONFIG, HOME, SANDBOX, HermesCase, docker, dockerbox, until
from PIL import Image
from tools import browser_tool, browser_tool_lifecycle
from tools.bot_desktop import placement, runtime, sandbox_host, thumbnail
from tools.computer_use import tool as computer_use

PROFILE = f"{HOME}/.hermes/bot-desktop/browser-profile"
SETTING = "bot_desktop.placement: gateway"
PAGE = "http://127.0.0.1:8123/"

# A page that keeps what it is told, and a server for it that starts with the sandbox's first need of it.
SERVE = f"""mkdir -p ~/site && cat >~/site/index.html <<'END'
<title>A page inside</title><h1>Served in the sandbox</h1><button>Press</button>
END
curl -sf {PAGE} >/dev/null || {{ cd ~/site && nohup python3 -m http.server 8123 --bind 127.0.0.1 >/dev/null 2>&1 & }}
until curl -sf {PAGE} >/dev/null; do read -rt 0.05 <> <(:) || :; done"""


def action(name, **words):
    """A call of computer_use; its result as the model gets it. Hermes asks whether to type, and somebody is there to say yes."""
    with mock.patch.dict(os.environ, {"HERMES_INTERACTIVE": "1"}):
        result = computer_use.handle_computer_use({"action": name, **words}, session_id="t")
    return json.loads(result) if isinstance(result, str) else result


def browse(call, *words):
    """A call of the browser tool; its result as the model gets it."""
    return json.loads(call(*words, task_id="default"))


def screen():
    """The screen as dockerbox sees it."""
    return json.loads(dockerbox("desktop", "status", "--json", SANDBOX))


class Refusals(HermesCase):
    """0.22.2 gives no plugin a screen. The sentences name the backend and the setting, and nothing is started."""

    def test_bot_desktop(self):
        with self.assertRaises(RuntimeError) as caught:
            runtime.start()
        for word in ("dockerbox", SETTING):
            self.assertIn(word, str(caught.exception))
        self.assertFalse(runtime.is_running())
        self.assertIsNone(thumbnail.thumbnail_data_url())

    def test_browser(self):
        result = browse(browser_tool.browser_navigate, PAGE)
        self.assertIs(result["success"], False)
        self.assertIn(SETTING, result["error"])

    def test_computer_use(self):
        self.assertIn(SETTING, action("list_windows")["error"])

    def tearDown(self):
        self.assertEqual(self.run_in("pgrep -c 'Xvnc|chromium|cua-driver' || :").strip(), "0")


class Screen(HermesCase):
    """One screen, whoever starts it."""

    @classmethod
    def setUpClass(cls):
        cls.env = placement.terminal_environment()
        computer_use.set_approval_callback(lambda *_words, **_more: "once")

    @classmethod
    def tearDownClass(cls):
        browser_tool_lifecycle.cleanup_all_browsers()
        computer_use._shutdown_backend_atexit()
        runtime.stop()
        forget_environments()

    def setUp(self):
        runtime.start()

    def server(self):
        """The process of the only display server."""
        (pid,) = self.run_in("pgrep -x Xvnc").split()
        return pid

    def windows(self, part):
        """The titles of the windows of that class."""
        return [w["title"] for w in screen().get("windows", []) if part in w["class"].lower()]

    def on_screen(self, command):
        """Run a program on the screen, as something on the screen would; its output."""
        published = " ".join(f"{name}='{value}'" for name, value in runtime.published_env().items())
        return self.run_in(f"{published} {command}")

    # --- start and adopt

    def test_it_is_placed_in_the_sandbox(self):
        self.assertEqual(placement.resolve().where, "terminal")
        status = runtime.status()
        self.assertEqual((status.placement, status.running, status.display, status.missing), ("terminal:dockerbox", True, ":20", []))
        self.assertEqual(sandbox_host._user_for(self.env), "pn")
        self.assertEqual(self.run_in(f"ps -o user= -p {self.server()}").strip(), "pn")

    def test_dockerbox_adopts_hermess(self):
        before = self.server()
        self.assertIn("-desktop hermes:default", self.run_in(f"ps -o args= -p {before}"))
        dockerbox("desktop", "start", SANDBOX)
        self.assertEqual(self.server(), before)
        seen = screen()
        self.assertEqual((seen["running"], seen["profile"], seen["display"], seen["account"]), (True, "default", ":20", "pn"))
        # And ends it.
        dockerbox("desktop", "stop", SANDBOX)
        self.assertFalse(runtime.is_running())
        self.assertEqual(self.run_in("pgrep -c 'Xvnc|xfce4-panel' || :").strip(), "0")

    def test_hermes_adopts_dockerboxs(self):
        runtime.stop()
        self.assertFalse(screen()["running"])
        dockerbox("desktop", "start", SANDBOX)
        before = self.server()
        self.assertTrue(runtime.start().running)
        self.assertEqual(self.server(), before)
        self.assertIn("-desktop dockerbox: default", self.run_in(f"ps -o args= -p {before}"))
        self.assertIsNotNone(thumbnail.thumbnail_data_url())
        self.assertTrue(runtime.stop())
        self.assertFalse(screen()["running"])
        self.assertEqual(self.run_in("pgrep -c 'Xvnc|xfce4-panel' || :").strip(), "0")

    def test_its_files_are_temporary_ones(self):
        base = f"{self.env.get_temp_dir()}/hermes-bot-desktop"
        marker = json.loads((CONFIG.parent / "bot-desktop" / "sandbox.json").read_text())
        self.assertEqual(marker["dir"], f"{base}/default")
        self.assertEqual(self.run_in(f"stat -c '%a %F' {base}/default/rfb.sock").strip(), "600 socket")
        # What else is in the directory for temporary files belongs to X, the buses and Chromium's lock.
        others = self.run_in(f"find {self.env.get_temp_dir()} -mindepth 1 -maxdepth 1 -printf '%f\\n'").split()
        allowed = ("hermes-bot-desktop", ".X", ".ICE-unix", "dbus-", ".org.chromium", "org.chromium")
        self.assertEqual([name for name in others if not name.startswith(allowed)], [])

    # --- pictures

    def test_thumbnail(self):
        kind, _, data = thumbnail.thumbnail_data_url().partition(",")
        self.assertEqual(kind, "data:image/jpeg;base64")
        picture = Image.open(io.BytesIO(base64.b64decode(data)))
        self.assertEqual((picture.format, picture.size), ("JPEG", (960, 600)))
        self.assertGreater(len(picture.getcolors(maxcolors=1 << 20)), 10)

    def test_rfb_stream(self):
        stream = runtime.open_rfb_stream()
        self.addCleanup(stream.wait, 20)
        self.addCleanup(stream.kill)
        for pipe in (stream.stdin, stream.stdout):
            self.addCleanup(pipe.close)

        def say(data):
            stream.stdin.write(data)
            stream.stdin.flush()

        def hear(count):
            data = stream.stdout.read(count)
            self.assertEqual(len(data), count)
            return data

        self.assertEqual(hear(12), b"RFB 003.008\n")
        say(b"RFB 003.008\n")
        kinds = hear(hear(1)[0])
        self.assertIn(1, kinds)  # no password: the socket is the account's own
        say(b"\x01")
        self.assertEqual(hear(4), bytes(4))
        say(b"\x01")  # with others
        width, height = struct.unpack(">HH", hear(4))
        bits = hear(16)[0]
        hear(struct.unpack(">I", hear(4))[0])
        self.assertEqual((width, height, bits), (1440, 900, 32))
        say(struct.pack(">BxHi", 2, 1, 0))  # raw
        say(struct.pack(">BBHHHH", 3, 0, 0, 0, width, height))
        kind, rectangles = struct.unpack(">BxH", hear(4))
        self.assertEqual(kind, 0)
        pixels = 0
        seen = set()
        for _ in range(rectangles):
            _, _, w, h, encoding = struct.unpack(">HHHHi", hear(12))
            self.assertEqual(encoding, 0)
            data = hear(w * h * 4)
            pixels += w * h
            seen.update(data[i : i + 4] for i in range(0, len(data), 4 * 997))
        self.assertEqual(pixels, width * height)
        self.assertGreater(len(seen), 2)

    # --- computer_use

    def test_driver_through_the_prefix(self):
        command, args = sandbox_host.cua_mcp_invocation(self.env, "default", runtime.published_env())
        path = {"PATH": os.environ["PATH"]}  # which is all that computer_use passes on
        driver = subprocess.Popen([command, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=path)
        self.addCleanup(driver.stdout.close)
        self.addCleanup(driver.stdin.close)
        self.addCleanup(driver.wait, 20)
        self.addCleanup(driver.kill)

        def ask(number, method, **params):
            driver.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n")
            driver.stdin.flush()
            while True:
                answer = json.loads(driver.stdout.readline())
                if answer.get("id") == number:
                    return answer["result"]

        hello = ask(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t", "version": "1"})
        self.assertIn("cua", hello["serverInfo"]["name"])
        self.assertGreaterEqual(len(ask(2, "tools/list")["tools"]), 60)

    def test_computer_use(self):
        self.on_screen("setsid -f xfce4-terminal >/dev/null 2>&1 </dev/null")
        self.assertTrue(until(lambda: self.windows("xfce4-terminal")))
        windows = action("list_windows").get("windows", [])
        self.assertTrue([w for w in windows if w["app_name"] == "Xfce4-terminal"], windows)
        self.assertTrue(until(lambda: action("capture", mode="ax", app="xfce4-terminal")["total_elements"] >= 15))
        typed = action("type", text="echo by computer_use >~/typed\n", app="xfce4-terminal", delivery_mode="foreground")
        self.assertIs(typed.get("ok"), True, typed)
        self.assertTrue(until(lambda: self.env.execute("cat ~/typed")["output"] == "by computer_use\n"))
        self.run_in("rm ~/typed; pkill xfce4-terminal")

    # --- the browser

    def open_page(self):
        self.run_in(SERVE)
        result = browse(browser_tool.browser_navigate, PAGE)
        self.assertIs(result["success"], True, result)
        self.assertIn("Served in the sandbox", result["snapshot"])

    def browsers(self):
        """The command lines of the Chromiums that run, without their children."""
        return self.run_in("ps -wweo args= | grep '^/usr/lib/chromium/chromium' | grep -v -e --type= || :").splitlines()

    def test_browser_on_the_same_screen_and_profile(self):
        self.open_page()
        self.assertIn("Served in the sandbox", browse(browser_tool.browser_snapshot)["snapshot"])
        self.assertTrue(until(lambda: any("A page inside" in title for title in self.windows("chromium"))), screen())
        (line,) = self.browsers()
        self.assertIn(f"--user-data-dir={PROFILE} ", f"{line} ")
        self.assertNotIn("--no-sandbox", line)
        # What the dock would start is handed to the browser that is at work.
        chrome = sandbox_host.chromium_executable(self.env)
        said = self.on_screen(f"timeout 20 {chrome} --user-data-dir={PROFILE} --no-sandbox about:blank 2>&1")
        self.assertIn("existing browser session", said)
        self.assertEqual(len(self.browsers()), 1)
        # The end of the screen is that of the browser, and of its server, which nobody could reach any more.
        dockerbox("desktop", "stop", SANDBOX)
        self.assertEqual(self.run_in("pgrep -c 'chromium|agent-browser' || :").strip(), "0")

    def test_profile_survives_a_container_that_is_made_anew(self):
        self.open_page()
        # A cookie is written to the disk within half a minute; this one is, when the browser is closed.
        browse(browser_tool.browser_console, False, "document.cookie = 'kept=yes; max-age=86400'")
        browser_tool_lifecycle.cleanup_browser("default")
        self.assertTrue(until(lambda: not self.browsers()))
        self.open_page()  # and is at work when its container goes
        before = self.env._container_id
        docker("rm", "-f", before)
        self.assertEqual(self.env.execute("true")["returncode"], 0)
        self.assertNotEqual(self.env._container_id, before)
        self.assertFalse(runtime.is_running())
        self.open_page()
        self.assertEqual(browse(browser_tool.browser_console, False, "document.cookie")["result"], "kept=yes")
        self.assertEqual(len(self.browsers()), 1)
        self.server()


def load_tests(loader, _tests, _pattern):
    """Those of the host that this is."""
    return loader.loadTestsFromTestCase(Screen if CHANGED else Refusals)
