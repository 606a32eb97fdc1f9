#!/usr/bin/env python3
"""Checks that runs end within the time that they are given and lose no kind of measurement for it.

    python3 experiments/within.py                                  # twenty suites of 30 s
    python3 experiments/within.py --within 10 --percent 60 -- quick  # of 10 s, with every CPU busy for 60 % of the time, of quick

A run fails that takes more than a tenth longer than it was given, or in which a kind of number has no value that a run without a limit plans.
"""

import argparse
import collections
import statistics
import sys
import time

from common import Failed, Loops, build, report

# A run may take so many times what it was given.
LATE = 1.1

# What a run took, and how many numbers of each kind it has.
Run = collections.namedtuple("Run", "seconds values")


def planned(memgauge, command):
    """The kinds of measurements that the command plans without a limit on its time."""
    return {step["experiment"] for step in report(memgauge, [*command, "--plan"])["steps"] if step["cells"]}


def values(results):
    """How many numbers of each kind have a value."""
    return collections.Counter(found["experiment"] for found in results if found["value"] is not None)


def faults(run, wanted, within):
    """What is wrong with a run."""
    lost = sorted(wanted - set(run.values))
    return (["late"] if run.seconds > LATE * within else []) + ([f"lost: {', '.join(lost)}"] if lost else [])


def summary(runs, wanted, within):
    """The closing lines, and how many runs failed."""
    seconds = [run.seconds for run in runs]
    failed = sum(bool(faults(run, wanted, within)) for run in runs)
    took = f"{min(seconds):.1f} to {max(seconds):.1f} s, median {statistics.median(seconds):.1f} s, of {within} s\n" if runs else ""
    return f"{took}{len(runs) - failed} passed, {failed} failed", failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20, help="runs [20]")
    parser.add_argument("--within", type=int, default=30, metavar="SECONDS", help="seconds that each run is given [30]")
    parser.add_argument("--percent", type=int, default=0, help="how busy loops keep each CPU meanwhile [0]")
    parser.add_argument("--memgauge", help="the memgauge to check [a release build of this checkout]")
    parser.add_argument("command", nargs="*", help="the command to run, such as quick or sweep [the suite]")
    args = parser.parse_args()
    memgauge, runs = args.memgauge or build(), []
    wanted = planned(memgauge, args.command)
    for number in range(args.rounds):
        with Loops(args.percent):
            begin = time.monotonic()
            results = report(memgauge, [*args.command, "--within", f"{args.within}s"])["results"]
            run = Run(time.monotonic() - begin, values(results))
        runs.append(run)
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(run.values.items()))
        said = "; ".join([f"run {number + 1}: {run.seconds:.1f} s of {args.within}", kinds, *faults(run, wanted, args.within)])
        print(said, flush=True)
    text, failed = summary(runs, wanted, args.within)
    print(text)
    return int(failed > 0)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as error:
        sys.exit(f"error: {error}")
