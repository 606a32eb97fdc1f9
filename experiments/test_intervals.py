#!/usr/bin/env python3
"""Tests of how pairs of runs are judged: python3 -m unittest discover experiments."""

import unittest

from intervals import Number, Pairs, numbers, state_of


def result(value, half, level="good", mix=None):
    at = {"mix": mix} if mix else {}
    return {"experiment": "bandwidth", "metric": "bandwidth", "at": at, "value": value, "ci95_low": value - half, "ci95_high": value + half, "quality": {"level": level}}


class Judging(unittest.TestCase):
    def test_intervals_that_touch_overlap(self):
        number = lambda value: Number(result(value, 2.0))
        self.assertTrue(number(100.0).overlaps(number(104.0)) and number(104.0).overlaps(number(100.0)))
        self.assertFalse(number(100.0).overlaps(number(104.1)))
        self.assertFalse(number(104.1).overlaps(number(100.0)))

    def test_numbers_without_an_interval_are_left_out(self):
        found = numbers({"results": [result(40.0, 1.0, mix="2:1"), {**result(1.0, 0.1), "ci95_low": None}, result(42.0, 1.0, mix="2:1")]})
        self.assertEqual(list(found), ["bandwidth bandwidth 2:1", "bandwidth bandwidth 2:1'"])

    def test_a_pair_agrees_if_all_of_its_stamps_do(self):
        self.assertEqual(state_of(("same", "same"), "agree"), "agree")
        self.assertEqual(state_of(("same", "unknown"), "agree"), "unknown")
        self.assertEqual(state_of(("same", "same"), "unknown"), "unknown")
        self.assertEqual(state_of(("another", "same"), "agree"), "differ")
        self.assertEqual(state_of(("busy", "same"), "differ"), "differ")

    def test_a_row_counts_each_kind_of_pair(self):
        pairs = Pairs()
        near, far = Number(result(100.0, 2.0)), Number(result(120.0, 2.0, "degraded"))
        pairs.add(near, near, "agree")
        pairs.add(near, far, "unknown")
        row = pairs.row()
        self.assertEqual(row.count("1 of 1 (100.0 %)"), 2)
        self.assertIn("1 of 2 (50.0 %)", row)


if __name__ == "__main__":
    unittest.main()
