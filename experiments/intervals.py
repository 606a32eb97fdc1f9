#!/usr/bin/env python3
"""Checks whether intervals hold what they say: runs one right after the other, whose intervals should overlap.

    python3 experiments/intervals.py                       # 200 pairs quiet, 100 beside 30 % and 100 beside 60 % of foreign load: an hour
    python3 experiments/intervals.py --cycles 2 --raw pairs.jsonl

Five runs in a row are four pairs. The commands and the loads take turns, so that each sees the same states of the machine. Of pairs whose stamps
agree (those of each run, and those of the two) at least 98 % should overlap. Two intervals of 95 % that know all that shifts a run overlap in 99.4 %.
A pair is good if both of its numbers are.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

from common import Failed, Loops, build

COMMANDS = {
    "latency": ["latency", "--size", "128m", "--order", "window-local", "--budget", "0.4s"],
    "bandwidth": ["bandwidth", "--size", "128m", "--mix", "all-reads,2:1,nt-write", "--budget", "0.3s"],
    "loaded": ["loaded", "--size", "128m", "--delay", "300", "--budget", "0.4s"],
    "c2c": ["c2c", "--state", "hitm", "--budget", "0.5s"],
}
# Percent of every CPU that loops use: half of all runs are quiet.
LOADS = (0, 30, 0, 60)
RUNS = 5
# What memgauge compare says of two runs of one state, and of two that differ.
STATES = {"same": "agree", "mixed": "differ", "sorted": "differ", "different": "differ"}


class Number:
    """A number of a run, with its interval and the samples that both were made from."""

    def __init__(self, result):
        self.value, self.low, self.high = result["value"], result["ci95_low"], result["ci95_high"]
        self.good = result["quality"]["level"] == "good"
        self.samples = result.get("samples")

    def half_width(self):
        return (self.high - self.low) / 2 / self.value

    def overlaps(self, other):
        return self.low <= other.high and other.low <= self.high


def numbers(report):
    """The numbers of a run by name, those without an interval left out."""
    named = {}
    for result in report["results"]:
        if result.get("ci95_low") is not None:
            name = " ".join(part for part in (result["experiment"], result["metric"], result["at"].get("mix")) if part)
            while name in named:
                name += "'"
            named[name] = Number(result)
    return named


def run(memgauge, command, path):
    """The numbers of a run, and what its own two stamps say."""
    done = subprocess.run([memgauge, *COMMANDS[command], "-q", "-o", path], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if not os.path.exists(path):
        raise Failed(f"memgauge {command} measured nothing: {done.stderr.strip()}")
    with open(path) as file:
        report = json.load(file)
    return numbers(report), report["state"]["compared"]["verdict"]


def state_of(own, between):
    """Whether all stamps of two runs agree, some differ, or they do not tell."""
    if "another" in own or between == "differ":
        return "differ"
    return "agree" if between == "agree" and all(verdict == "same" for verdict in own) else "unknown"


def compared(memgauge, before, after):
    """Whether the stamps of two runs agree, differ, or tell nothing."""
    done = subprocess.run([memgauge, "compare", before, after, "--format", "json"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    try:
        state = json.loads(done.stdout).get("state")
    except ValueError:
        raise Failed(f"memgauge compare printed no JSON: {done.stderr.strip()}") from None
    return STATES[state["state"]] if state else "unknown"


class Pairs:
    """The pairs of one number at one load."""

    def __init__(self):
        self.pairs = []

    def add(self, first, second, state):
        self.pairs.append((first, second, state))

    def row(self):
        agreeing, good = [pair for pair in self.pairs if pair[2] == "agree"], [pair for pair in self.pairs if pair[0].good and pair[1].good]
        half = statistics.median(number.half_width() for pair in self.pairs for number in pair[:2])
        apart = statistics.median(abs(math.log(second.value / first.value)) for first, second, _ in self.pairs)
        return f"{overlapping(agreeing):>21} {overlapping(good):>21} {overlapping(self.pairs):>21}   ±{100 * half:5.2f} %  {100 * apart:5.2f} %"


def overlapping(pairs):
    held = sum(first.overlaps(second) for first, second, _ in pairs)
    return f"{held} of {len(pairs)}" + (f" ({100 * held / len(pairs):.1f} %)" if pairs else "")


def block(memgauge, command, folder, pairs, load, raw):
    """Runs of a command in a row."""
    earlier = None
    for nth in range(RUNS):
        path = os.path.join(folder, f"{nth}.json")
        found, own = run(memgauge, command, path)
        if earlier:
            before, numbers_before, own_before = earlier
            state = state_of((own_before, own), compared(memgauge, before, path))
            for name in sorted(numbers_before.keys() & found.keys()):
                pair = numbers_before[name], found[name]
                pairs.setdefault((load, name), Pairs()).add(*pair, state)
                if raw:
                    with open(raw, "a") as file:
                        file.write(json.dumps({"load": load, "name": name, "state": state, "pair": [vars(number) for number in pair]}) + "\n")
        earlier = path, found, own
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memgauge", help="the program [default: built from this checkout]")
    parser.add_argument("--cycles", type=int, default=25, help="times that all commands run at all loads [default: 25]")
    parser.add_argument("--raw", help="a file that each pair is appended to, as a line of JSON")
    args = parser.parse_args()
    memgauge = args.memgauge or build()
    pairs = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(args.cycles):
            for load in LOADS:
                with Loops(load):
                    for command in COMMANDS:
                        block(memgauge, command, folder, pairs, load, args.raw)
    print("Pairs whose intervals overlap:")
    print(f" load  {'number':38} {'stamps agree':>21} {'good':>21} {'all':>21}  half width  apart")
    for (load, name), found in sorted(pairs.items()):
        print(f"{load:3} %  {name:38} {found.row()}")


if __name__ == "__main__":
    try:
        main()
    except Failed as why:
        sys.exit(f"intervals.py: {why}")
