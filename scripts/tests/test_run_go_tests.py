"""A report that hides a skipped, failed or unbuilt test would make every other test worthless."""

import io
import unittest

import load

run_go_tests = load.script("run-go-tests")


def report(*events):
    result = run_go_tests.Report(out=io.StringIO())
    for event in events:
        result.event({"Package": "example/p", **event})
    return result, result.out.getvalue()


class ReportTest(unittest.TestCase):
    def test_pass(self):
        result, text = report(
            {"Action": "output", "Test": "TestA", "Output": "noise\n"},
            {"Action": "pass", "Test": "TestA", "Elapsed": 0.1},
            {"Action": "pass", "Elapsed": 0.2},
        )
        self.assertEqual((result.passed, result.faults), (1, 0))
        self.assertNotIn("noise", text)
        self.assertIn("ok    example/p  0.2 s", text)

    def test_failure_shows_its_output(self):
        result, text = report(
            {"Action": "output", "Test": "TestA", "Output": "a_test.go:1: wrong\n"},
            {"Action": "fail", "Test": "TestA"},
        )
        self.assertEqual(result.faults, 1)
        self.assertIn("a_test.go:1: wrong", text)

    def test_skip_is_a_fault(self):
        result, text = report({"Action": "skip", "Test": "TestA/case"}, {"Action": "pass"})
        self.assertEqual(result.faults, 1)
        self.assertIn("SKIPPED", text)

    def test_package_without_tests_is_none(self):
        result, _ = report({"Action": "skip"})
        self.assertEqual(result.faults, 0)

    def test_broken_build_is_a_fault(self):
        result, text = report(
            {"Action": "build-output", "ImportPath": "example/q", "Package": "", "Output": "q.go:1: undefined\n"},
            {"Action": "build-fail", "ImportPath": "example/q", "Package": ""},
        )
        self.assertEqual(result.faults, 1)
        self.assertIn("q.go:1: undefined", text)

    def test_panic_outside_a_test_is_shown(self):
        result, text = report({"Action": "output", "Output": "panic: in init\n"}, {"Action": "fail"})
        self.assertEqual(result.faults, 1)
        self.assertIn("panic: in init", text)


if __name__ == "__main__":
    unittest.main()
