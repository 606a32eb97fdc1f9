#!/usr/bin/env python3
"""Checks whether stamps tell apart what cannot be compared: pairs of runs of a program, with stamps before, between and after them.

    python3 experiments/pairs.py --pairs 100                              # of memgauge stream
    python3 experiments/pairs.py --pairs 100 --number '\\(([0-9.]+) MiB/sec' -- \\
        sysbench memory --memory-block-size=64M --memory-oper=read --memory-total-size=6G run
    python3 experiments/pairs.py --busy 30 --pairs 50                     # loops use 30 % of every CPU: how many stamps say busy

A pair is refused if one of the later stamps, compared with the first, shows another state or a busy machine. It is not known if one of them
tells nothing. Only pairs whose stamps agree are admitted. Of pairs whose results differ by more than 10 % at most 5 % should be admitted, of
those within 3 % at least 95 %. The scatter of the admitted pairs stands beside that of all of them.
"""

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile

from common import Failed, Loops, build

FAR, NEAR = 0.10, 0.03
# The value of memgauge stream, which may be marked, not the half of its interval, which comes before the unit.
STREAM = r"^stream [^:]*: ~?([0-9.]+) "

# What memgauge stamp --check ends with.
VERDICTS = {0: "same", 1: "another", 2: "busy", 4: "unknown"}


def run(command, number):
    """The number that a program prints."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    found = found_in(done.stdout, number)
    if found is None:
        raise Failed(f"{' '.join(command)} printed no number: {(done.stdout or done.stderr)[-300:]}")
    return found


def found_in(output, number):
    found = re.search(number, output, re.MULTILINE)
    return float(found[1]) if found else None


def check(memgauge, earlier):
    """What a stamp now says, compared with the one in a file."""
    status = subprocess.run([memgauge, "stamp", "-q", "--check", earlier], stdin=subprocess.DEVNULL, capture_output=True).returncode
    if status not in VERDICTS:
        raise Failed(f"memgauge stamp --check ended with {status}")
    return VERDICTS[status]


def pair(memgauge, command, number, folder):
    """Two runs with stamps before, between and after them: their numbers, and what the later stamps say."""
    first = os.path.join(folder, "first.json")
    subprocess.run([memgauge, "stamp", "-q", "-o", first], stdin=subprocess.DEVNULL, capture_output=True, check=True)
    a = run(command, number)
    between = check(memgauge, first)
    b = run(command, number)
    return a, b, [between, check(memgauge, first)]


def worst(verdicts):
    """What several stamps say of a pair together."""
    return next((v for v in ("another", "busy", "unknown") if v in verdicts), "same")


def share(part, whole):
    return f"{len(part)} of {len(whole)}" + (f" ({100 * len(part) / len(whole):.0f} %)" if whole else "")


def scatter(pairs):
    return f"{100 * statistics.median(d for d, _ in pairs):.1f} %, highest {100 * max(d for d, _ in pairs):.1f} %" if pairs else "none"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memgauge", help="the program [default: built from this checkout]")
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--busy", type=int, default=0, help="percent of every CPU that loops use meanwhile")
    parser.add_argument("--number", default=STREAM, help="a pattern of which the first group is the result")
    parser.add_argument("--raw", help="a file that each pair is appended to, as a line of JSON")
    parser.add_argument("command", nargs="*", help="the program [default: memgauge stream of 256 MiB]")
    args = parser.parse_args()
    memgauge = args.memgauge or build()
    command = args.command or [memgauge, "stream", "256m", "--passes", "20"]
    pairs, verdicts = [], []
    with tempfile.TemporaryDirectory() as folder, Loops(args.busy):
        for _ in range(args.pairs):
            a, b, said = pair(memgauge, command, args.number, folder)
            verdict = worst(said)
            verdicts += said
            pairs.append((abs(math.log(b / a)), verdict))
            if args.raw:
                with open(args.raw, "a") as file:
                    file.write(json.dumps({"a": a, "b": b, "said": said}) + "\n")
    far, near = [p for p in pairs if p[0] > math.log1p(FAR)], [p for p in pairs if p[0] <= math.log1p(NEAR)]
    print(f"{len(pairs)} pairs of {' '.join(command)}")
    for group, which in ((pairs, "all"), (far, "differ by more than 10 %"), (near, "within 3 %")):
        of = lambda *verdicts: share([p for p in group if p[1] in verdicts], group)
        print(f"{which}: admitted {of('same')}, refused {of('another', 'busy')}, not known {of('unknown')}")
    print(f"difference of a pair, median: all {scatter(pairs)}; admitted {scatter([p for p in pairs if p[1] == 'same'])}")
    print(f"stamps that say busy: {share([v for v in verdicts if v == 'busy'], verdicts)}")


if __name__ == "__main__":
    try:
        main()
    except Failed as why:
        sys.exit(f"pairs.py: {why}")
