"""What doctor says of this host, held against what the host does."""

from both_hosts import CHANGED, placed
from hermes_fixture import HOME, PROVIDER, HermesCase, module, tool


class DoctorTest(HermesCase):
    def said(self, word):
        rows = PROVIDER.doctor_checks()
        self.assertTrue(all(ok for ok, _, _ in rows), rows)
        return [detail for _, label, detail in rows if label == "dockerbox on this Hermes" and word in detail]

    def test_cd_below_home(self):
        tool("mkdir -p ~/acme/project && cd ~/acme/project", task_id="doctor")
        after = tool("pwd", task_id="doctor")["output"]
        if CHANGED:
            self.assertEqual((self.said("cd"), after), ([], f"{HOME}/acme/project"))
        else:
            (line,) = self.said("cd")
            self.assertIn("after 0.22.2", line)
            self.assertEqual(after, HOME)

    def test_bot_desktop(self):
        where = placed("dockerbox", "auto").where
        if CHANGED:
            self.assertEqual((self.said("Bot Desktop"), where), ([], "terminal"))
        else:
            (line,) = self.said("Bot Desktop")
            self.assertIn("after 0.22.2", line)
            self.assertEqual(where, "refused")

    def test_nothing_else_is_said(self):
        self.assertEqual(len(self.said("")), 0 if CHANGED else 2)
        self.assertEqual(module("limits").isolation_limit(), "")
