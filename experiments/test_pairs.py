#!/usr/bin/env python3
"""Tests of what is read from the output of programs: python3 -m unittest discover experiments."""

import unittest

from pairs import STREAM, found_in, worst


class Numbers(unittest.TestCase):
    def test_stream_gives_its_value_and_not_its_interval(self):
        for value in ("13.0 ±1.4 GB/s, degraded (time left out)", "~13.0 (10.9–14.5) GB/s, UNRELIABLE", "13.0 GB/s"):
            self.assertEqual(found_in(f"stream 256 MiB: {value}, 20 passes (8.61–14.4), 2 MiB transparent huge pages\n", STREAM), 13.0)

    def test_sysbench_gives_its_rate(self):
        lines = "Total operations: 96 (113.46 per second)\n\n6144.00 MiB transferred (7261.29 MiB/sec)\n"
        self.assertEqual(found_in(lines, r"\(([0-9.]+) MiB/sec"), 7261.29)

    def test_nothing_found_is_no_number(self):
        self.assertIsNone(found_in("error", STREAM))

    def test_a_stamp_that_differs_counts_before_one_that_tells_nothing(self):
        self.assertEqual(worst(["unknown", "another"]), "another")
        self.assertEqual(worst(["unknown", "busy"]), "busy")
        self.assertEqual(worst(["same", "unknown"]), "unknown")
        self.assertEqual(worst(["same", "same"]), "same")


if __name__ == "__main__":
    unittest.main()
