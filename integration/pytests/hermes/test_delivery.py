"""Hermes's cache files: what the host tells the model about is in the sandbox at that very path."""

import hashlib
import os
import re
from pathlib import Path

from agent import provider_media
from hermes_constants import get_hermes_home
from hermes_fixture import HOME, LOGGER, PROVIDER, HermesCase, dockerbox, make, module, tool
from tools import credential_files

HERMES = get_hermes_home()

# The smallest PNG there is, with something behind it that is not text.
PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d4944415478da63fccfc0500f000485018095ea9b040000000049454e44ae426082"
) + bytes(range(256))


def picture(name, data=PICTURE, below="cache/images"):
    """A picture in the host's cache, as a tool that made one leaves it."""
    path = HERMES / below / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


class DeliveryTest(HermesCase):
    def sum_of(self, path):
        return self.run_in(f"sha256sum < {path}").split()[0]

    def settle(self):
        """Past the moment in which the plugin does not look again, and past its next look."""
        self.run_in("sleep 0.3")
        self.run_in("true")

    def test_a_generated_picture_is_where_the_host_says(self):
        path = picture("generated-1.png", below="cache/generated")
        said = credential_files.to_agent_visible_cache_path(str(path))
        self.assertEqual(said, "~/.hermes/cache/generated/generated-1.png")
        self.settle()
        result = tool(f"sha256sum < {said}; stat -c '%U %a' {said}; id -un")
        self.assertEqual(result["output"].split()[0], hashlib.sha256(PICTURE).hexdigest())
        self.assertEqual(result["output"].split()[2:], ["pn", f"{path.stat().st_mode & 0o777:o}", "pn"])

    def test_newer_ones_replace_older_and_removed_ones_go(self):
        path = picture("changing.png")
        self.settle()
        said = "~/.hermes/cache/images/changing.png"
        self.assertEqual(self.sum_of(said), hashlib.sha256(PICTURE).hexdigest())
        picture("changing.png", b"newer")
        self.settle()
        self.assertEqual(self.run_in(f"cat {said}"), "newer")
        path.unlink()
        self.settle()
        self.assertEqual(self.run_in(f"ls {said} 2>/dev/null || echo gone").strip(), "gone")

    def test_nothing_but_cache_files_travels(self):
        (HERMES / ".env").write_text("SECRET_KEY=hunter2\n", encoding="utf-8")
        (HERMES / "auth.json").write_text('{"token": "hunter2"}', encoding="utf-8")
        (HERMES / "cache" / "tokens").mkdir(parents=True, exist_ok=True)
        (HERMES / "cache" / "tokens" / "t").write_text("hunter2", encoding="utf-8")
        link = picture("linked.png").with_name("link.png")
        link.symlink_to(HERMES / ".env")
        (link.parent / "linked").symlink_to(HERMES)
        picture("deep.png", below="cache/documents/a/b")
        self.settle()
        there = self.run_in("cd ~/.hermes && find . '(' -type f -o -type l ')' -print0").split("\0")[:-1]
        self.assertIn("./cache/documents/a/b/deep.png", there)
        allowed = tuple(f"./{path}/" for path, _ in module("delivery").DIRECTORIES)
        self.assertEqual([name for name in there if not name.startswith(allowed)], [])
        self.assertNotIn("./cache/images/link.png", there)
        self.assertEqual(self.run_in("grep -rl hunter2 ~/.hermes || true"), "")

    def test_one_that_is_too_large_is_named_and_the_others_come(self):
        delivery = module("delivery")
        limit, delivery.LIMIT = delivery.LIMIT, 400
        try:
            picture("small.png", b"small")
            picture("large.png", bytes(500))
            with self.assertLogs(LOGGER, "WARNING") as logged:
                self.settle()
            self.assertEqual(len(logged.output), 1)
            self.assertRegex(logged.output[0], r"large\.png on this machine: has 500 bytes, and the most that is delivered is 400")
            self.assertEqual(
                self.run_in("cat ~/.hermes/cache/images/small.png; ls ~/.hermes/cache/images/large.png 2>/dev/null || true"), "small"
            )
        finally:
            delivery.LIMIT = limit
            (HERMES / "cache/images/large.png").unlink()

    def test_a_failure_is_a_sentence_and_the_command_runs(self):
        self.settle()
        self.run_in("mkdir -p ~/.hermes && mv ~/.hermes ~/.hermes-away && touch ~/.hermes")
        picture("unlucky.png")
        try:
            with self.assertLogs(LOGGER, "WARNING") as logged:
                self.settle()
                self.assertEqual(self.run_in("echo ran").strip(), "ran")
            self.assertRegex(logged.output[0], r"\.hermes in the sandbox: .*not a directory")
        finally:
            self.run_in("rm -f ~/.hermes; mv ~/.hermes-away ~/.hermes")
        self.settle()
        self.assertEqual(self.sum_of("~/.hermes/cache/images/unlucky.png"), hashlib.sha256(PICTURE).hexdigest())

    def test_a_sandbox_made_anew_gets_everything_again(self):
        picture("lasting.png")
        env = make("delivery-anew", container_persistent=False)
        try:
            self.assertEqual(
                env.execute("sha256sum < ~/.hermes/cache/images/lasting.png")["output"].split()[0], hashlib.sha256(PICTURE).hexdigest()
            )
            name = env._attachment.info["name"]
            address = next(line.split()[0] for line in dockerbox("ps").splitlines() if re.search(re.escape(name), line))
            dockerbox("rm", "-f", address)
            for _ in range(2):  # the first finds that it is another one
                result = env.execute("sleep 0.3; sha256sum < ~/.hermes/cache/images/lasting.png")
            self.assertEqual(result["output"].split()[0], hashlib.sha256(PICTURE).hexdigest())
        finally:
            env.cleanup(force_remove=True)

    def test_directories_are_those_of_this_hermes(self):
        delivery = module("delivery")
        self.assertEqual(list(delivery.DIRECTORIES), credential_files._CACHE_DIRS)
        self.assertEqual(delivery.GENERATED_AGE, provider_media.MEDIA_CACHE_MAX_AGE_HOURS * 3600)
        self.assertEqual(PROVIDER.cache_path_base, delivery.BASE)

    def test_it_finds_what_hermes_would_sync(self):
        old = picture("old.png", below="cache/generated")
        os.utime(old, (1e9, 1e9))
        picture("a b\n.png")
        found = {name: source for name, (source, _) in module("delivery")._files().items()}
        theirs = {entry["container_path"].removeprefix("/x/"): entry["host_path"] for entry in credential_files.iter_cache_files("/x")}
        self.assertEqual(found, theirs)
        self.assertNotIn("cache/generated/old.png", found)
        self.settle()
        self.assertEqual(self.sum_of(f"{HOME}/.hermes/cache/images/$'a b\\n.png'"), hashlib.sha256(PICTURE).hexdigest())
        self.assertTrue(Path(found["cache/images/a b\n.png"]).is_file())
