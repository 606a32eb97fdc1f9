#!/usr/bin/env python3
"""Tests of what the experiments on busy machines and on --within count: python3 -m unittest discover experiments"""

import json
import time
import unittest

import busy
import within
from common import Failed, Loops


def cell(command, quiet, others):
    made = busy.Cell(command)
    made.values = {0: [(value, "good") for value in quiet], 30: others}
    return made


class Busy(unittest.TestCase):
    def failed(self, made):
        return busy.table({"a cell": made})[1]

    def test_a_busy_value_is_near_the_quiet_one_or_marked(self):
        self.assertEqual(self.failed(cell("latency", [100, 101, 99], [(102.9, "good"), (97.1, "good")])), 0)
        self.assertEqual(self.failed(cell("latency", [100, 101, 99], [(103.1, "good"), (100, "good")])), 1)
        self.assertEqual(self.failed(cell("bandwidth", [100], [(95.1, "good")])), 0)
        self.assertEqual(self.failed(cell("bandwidth", [100], [(50, "unreliable")])), 0, "marked")
        noisy = cell("bandwidth", [], [])
        noisy.values[0] = [(100, "good"), (100, "degraded")]
        text, failed = busy.table({"a cell": noisy})
        self.assertTrue("1 of 2 values are worse than good" in text and text.endswith("1 passed, 1 failed\n"), text)
        self.assertEqual(failed, 1)

    def test_where_the_machine_changes_a_value_is_compared_with_its_neighbours(self):
        others = [(99, "good"), (150, "good"), (180, "good"), (50, "unreliable"), (175, "good"), (9, "good")]
        made = cell("latency", [100, 100, 200, 200, 150, 200], others)
        self.assertEqual(made.not_between(30), "1 of 4", "180 between 200 and 200; one is marked, one has no quiet value after it")
        self.assertEqual(made.not_between(0), "1 of 4", "150 between 200 and 200")
        self.assertIn("1 of 4    1 of 4", busy.table({"a cell": made})[0])

    def test_values_of_different_builds_do_not_mix(self):
        own = {"program": "memgauge 0.1.0 (abc)", "host": "node1"}
        value = json.dumps(["latency", "a cell", 30, [90.5, "good"]])
        file = json.dumps(dict(own, load=0.5)) + "\n" + value
        cells = {}
        busy.read_raw(file, own, cells)
        self.assertEqual(cells["a cell"].values[30], [[90.5, "good"]])
        for text, program, why in [(file, "memgauge 0.1.0 (def)", "abc. on node1, not of"), (value, own["program"], "does not say")]:
            with self.assertRaisesRegex(Failed, why):
                busy.read_raw(text, dict(own, program=program), {})

    def test_names_are_the_same_in_each_round(self):
        found = {"experiment": "idle-latency", "at": {"cpu": 0, "memory": {"node": 1}, "order": "full-random", "mix": None}}
        self.assertEqual(busy.name_of(found), "IdleLatency cpu 0 memory {node:1} order full-random")

    def test_loops_end_with_their_block(self):
        begin = time.monotonic()
        with Loops(30):
            pass
        self.assertLess(time.monotonic() - begin, 20)


class Within(unittest.TestCase):
    def test_a_run_that_is_late_or_loses_a_kind_fails(self):
        both = {"bandwidth": 2, "idle-latency": 2}
        runs = [within.Run(9, both), within.Run(10.8, both), within.Run(11.1, both), within.Run(5, {"bandwidth": 2})]
        text = "5.0 to 11.1 s, median 9.9 s, of 10 s\n2 passed, 2 failed"
        self.assertEqual(within.summary(runs, set(both), 10), (text, 2))
        self.assertEqual([within.faults(run, set(both), 10) for run in runs[2:]], [["late"], ["lost: idle-latency"]])

    def test_a_number_without_a_value_is_no_number_of_its_kind(self):
        results = [("idle-latency", 90), ("cache-to-cache", None), ("idle-latency", 91)]
        found = within.values({"experiment": experiment, "value": value} for experiment, value in results)
        self.assertEqual(found, {"idle-latency": 2})


if __name__ == "__main__":
    unittest.main()
