#!/usr/bin/env python3
"""Tests of what the experiments on stamps and on watches count: python3 -m unittest discover experiments"""

import unittest

import levels
import pairs


class Levels(unittest.TestCase):
    def test_an_interval_holds_a_level_and_shows_others_or_not(self):
        points = [{"gbs": 4.0, "low_gbs": 3.0, "high_gbs": 5.0}, {"gbs": 0.0, "low_gbs": 0.0, "high_gbs": 2.0}, {"gbs": 9.0, "low_gbs": 3.5, "high_gbs": None}]
        level = levels.Level(36, 4.5, 0.01, [{"others": point} for point in points] + [{"probes": {}}])
        self.assertEqual((level.holds(), level.seen(), len(level.points)), (2, 2, 3))
        self.assertIn("4.50  4.0 (3.0 to 5.0)", level.row())
        self.assertIn("0 of 0", levels.Level(36, 4.5, 0.01, []).row())


class Pairs(unittest.TestCase):
    def test_shares_and_scatter_are_counted(self):
        self.assertEqual(pairs.share([1], [1, 2, 3, 4]), "1 of 4 (25 %)")
        self.assertEqual(pairs.share([], []), "0 of 0")
        self.assertEqual(pairs.scatter([(0.01, "same"), (0.05, "busy"), (0.02, "same")]), "2.0 %, highest 5.0 %")
        self.assertEqual(pairs.scatter([]), "none")


if __name__ == "__main__":
    unittest.main()
