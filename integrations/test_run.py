#!/usr/bin/env python3
"""Tests of how the integrations' tests are run: python3 -m unittest discover integrations"""

import tempfile
import time
import unittest

from run import GRACE, LIMIT, Run


def sh(script, limit=LIMIT, grace=GRACE):
    return Run(["sh", "-c", script], limit, grace)


def is_there(process):
    """Whether a process has not gone; one that nobody has waited for yet has."""
    try:
        with open(f"/proc/{process}/stat") as stat:
            return ") Z " not in stat.read()
    except OSError:
        return False


class Running(unittest.TestCase):
    def test_lines_are_counted(self):
        run = sh("echo 'test a::b ... ok (0.1 s)'; echo 'test a::c ... FAILED'; echo '    why: test'; exit 1")
        self.assertEqual((run.passed, run.failed, run.status, run.ended), (1, 1, 1, False))

    def test_lines_can_be_kept(self):
        lines = []
        Run(["sh", "-c", "echo 'test a::b ... ok'; echo more"], show=lines.append)
        self.assertEqual(lines, ["test a::b ... ok\n", "more\n"])

    def test_what_hangs_is_ended_with_all_that_it_started(self):
        # The first asks for nothing but a signal; the second listens to none.
        for script, grace in [("", GRACE), ("trap '' TERM; ", 0.1)]:
            with tempfile.NamedTemporaryFile() as file:
                run = sh(f"{script}sleep 600 & echo $! >{file.name}; wait; sleep 600", 2, grace)
                self.assertTrue(run.ended and run.status != 0)
                sleeper, deadline = file.read().decode().strip(), time.monotonic() + 30
                while is_there(sleeper) and time.monotonic() < deadline:
                    time.sleep(0.05)
                self.assertTrue(sleeper and not is_there(sleeper))


if __name__ == "__main__":
    unittest.main()
