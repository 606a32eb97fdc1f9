#!/usr/bin/env python3
"""Checks what memgauge watch says of the bandwidth that others use: one CPU loads memory at known levels, and the watch estimates them.

    python3 experiments/levels.py                        # eleven levels, three stamps each: 13 minutes, and 5 before that without load
    python3 experiments/levels.py --stamps 6 --figure levels.png

The level is what the loader itself measured, less the stamps' time. An estimate is right if its interval holds the level. The watch's detection limit
is shown, and how many levels above and below it were seen: a limit that is honest sees nine of ten above. Last, the neighbour's loss: how much of its
time the loader waited for its CPU, from /proc, against the same time without a watch.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from common import Failed, build, report

# Injection delays of the loader, from a few percent of what one CPU reads to all of it.
DELAYS = (2000, 535, 267, 167, 115, 80, 59, 36, 13, 5, 0)
QUIET_STAMPS, EVERY_S = 12, 20
LOADER_CPU = 1


def loader(memgauge, delay, seconds):
    words = ["bandwidth", "--cpu", str(LOADER_CPU), "--size", "256m", "--delay", str(delay), "--time", f"{seconds}s", "--no-stamp", "--format", "json"]
    return subprocess.Popen([memgauge, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def waited(pid):
    """Seconds that the threads of a process ran, and that they waited for a CPU."""
    ran = wait = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat") as file:
            spent = file.read().split()
        ran, wait = ran + int(spent[0]) / 1e9, wait + int(spent[1]) / 1e9
    return ran, wait


def loss(process):
    ran, wait = waited(process.pid)
    return wait / (ran + wait) if ran + wait > 0 else 0.0


class Level:
    """A delay, what the loader measured, and the points of the watch meanwhile."""

    def __init__(self, delay, gbs, lost, points):
        self.delay, self.gbs, self.lost, self.points = delay, gbs, lost, [p["others"] for p in points if p.get("others")]

    def holds(self):
        return sum(p["low_gbs"] <= self.gbs <= (p["high_gbs"] if p["high_gbs"] is not None else float("inf")) for p in self.points)

    def seen(self):
        return sum(p["low_gbs"] > 0 for p in self.points)

    def row(self):
        middle = lambda key: statistics.median(p[key] if p[key] is not None else float("inf") for p in self.points)
        estimate = "-" if not self.points else f"{middle('gbs'):.1f} ({middle('low_gbs'):.1f} to {middle('high_gbs'):.1f})"
        return f"{self.delay:6}  {self.gbs:7.2f}  {estimate:22}  {self.holds()} of {len(self.points)}  {self.seen()} of {len(self.points)}  {100 * self.lost:6.2f} %"


def lines_of(path, begin=0):
    with open(path) as file:
        return [json.loads(line) for line in file][begin:]


def wait_for_stamps(path, n, watch):
    while len(lines_of(path)) < n:
        if watch.poll() is not None:
            raise Failed("memgauge watch ended early")
        time.sleep(1)


def measure(memgauge, curve, stamps, folder, figure):
    lines, result = os.path.join(folder, "lines.jsonl"), os.path.join(folder, "watch.json")
    files = ["-o", result] + (["-o", figure] if figure else [])
    watch = subprocess.Popen([memgauge, "watch", "-q", "--curve", curve, "--lines", lines, *files], stdin=subprocess.DEVNULL)
    levels = []
    try:
        while not os.path.exists(lines):
            time.sleep(0.1)
        wait_for_stamps(lines, QUIET_STAMPS, watch)
        for delay in DELAYS:
            before = len(lines_of(lines))
            process = loader(memgauge, delay, (stamps + 1) * EVERY_S)
            # Its buffers are set up before the next stamp.
            wait_for_stamps(lines, before + stamps, watch)
            lost, points = loss(process), lines_of(lines, before)
            output, _ = process.communicate()
            values = [m["value"] for m in json.loads(output)["results"]]
            levels.append(Level(delay, values[0], lost, points))
            print(levels[-1].row(), flush=True)
    finally:
        watch.terminate()
        watch.wait()
    with open(result) as file:
        return levels, json.load(file)["watch"]


def alone(memgauge, seconds):
    """The loader's loss without a watch."""
    process = loader(memgauge, DELAYS[-1], seconds)
    time.sleep(seconds * 0.9)
    lost = loss(process)
    process.communicate()
    return lost


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memgauge", help="the program [default: built from this checkout]")
    parser.add_argument("--curve", help="a result of memgauge loaded [default: measured first]")
    parser.add_argument("--stamps", type=int, default=3, help="stamps at each level [default: 3]")
    parser.add_argument("--figure", help="a file for the figure of the watch")
    args = parser.parse_args()
    memgauge = args.memgauge or build()
    with tempfile.TemporaryDirectory() as folder:
        curve = args.curve or os.path.join(folder, "curve.json")
        if not args.curve:
            report(memgauge, ["loaded", "-o", curve])
        print(" delay   GB/s   estimate and interval   holds   seen    waited")
        levels, watch = measure(memgauge, curve, args.stamps, folder, args.figure)
    limit = watch["others"]["detection_gbs"]
    print(f"detection limit: {f'{limit:.1f} GB/s' if limit is not None else 'none, nothing is detected'}; peak of the curve {watch['others']['peak_gbs']:.1f} GB/s")
    points = sum(len(level.points) for level in levels)
    print(f"the interval holds the level in {sum(level.holds() for level in levels)} of {points} stamps")
    above = [level for level in levels if limit is not None and level.gbs >= limit]
    print(f"above the limit {sum(level.seen() for level in above)} of {sum(len(level.points) for level in above)} are seen")
    print(f"changes of the watch: {watch['changed']} in {watch['stamps']} stamps, {watch['busy']} of them busy; {100 * watch['stamps_s'] / watch['stamps'] / watch['every_s']:.2f} % of the time")
    print(f"the loader waited for its CPU in {100 * statistics.median(level.lost for level in levels):.2f} % of its time, without a watch in {100 * alone(memgauge, 60):.2f} %")


if __name__ == "__main__":
    try:
        main()
    except Failed as why:
        sys.exit(f"levels.py: {why}")
