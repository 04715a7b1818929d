"""Run one module of tests and tell the caller about each, one JSON object per line: {"test", "status", "detail"}."""

import json
import sys
import traceback
import unittest


class Reporter(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.failed = False

    def report(self, test, status, detail=""):
        self.failed |= status != "pass"
        print(json.dumps({"test": test.id(), "status": status, "detail": detail}), file=sys.__stdout__, flush=True)

    def addSuccess(self, test):
        self.report(test, "pass")

    def addFailure(self, test, err):
        self.report(test, "fail", "".join(traceback.format_exception(*err)))

    addError = addFailure

    def addSkip(self, test, reason):
        self.report(test, "fail", f"skipped: {reason}")

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.report(subtest, "fail", "".join(traceback.format_exception(*err)))


def main():
    sys.stdout = sys.stderr  # what tests and Hermes print is not for the caller
    reporter = Reporter()
    unittest.TestLoader().loadTestsFromName(sys.argv[1]).run(reporter)
    return 1 if reporter.failed else 0


if __name__ == "__main__":
    sys.exit(main())
