#!/usr/bin/env python3
"""Checks that numbers hold while other processes use a part of every CPU.

    python3 experiments/busy.py                          # five rounds: quiet, 30 % and 60 % of every CPU taken by loops
    python3 experiments/busy.py --raw busy.jsonl         # keeps the values after each round; called again, it adds to those of the same program and host
    python3 experiments/busy.py --percent 30 -- COMMAND  # any command meanwhile

Each round measures once quiet and once at each load, so that what drifts hits all of them. A busy value may differ from the quiet median by the
bound, or be marked as unreliable; anything else is a failure. Quiet values of a shared virtual machine differ, too: how far busy ones lie outside
their range is shown beside, and how many are not between the quiet values just before and after them, give or take the bound, next to how many
quiet values are not between theirs.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

from common import Failed, Loops, build, report

# How much idle latency may differ, and bandwidth and transfers; and the share of the cells of quiet runs that may be worse than good.
LATENCY_BOUND, BOUND, WORSE = 0.03, 0.05, 0.2
# What is measured in each round: idle latency, bandwidth, transfers.
COMMANDS = (["latency", "--budget", "2s"], ["bandwidth", "--budget", "2s"], ["c2c", "--budget", "1s"])
UNMARKED = ("good", "degraded")
COLUMNS = ("cell", "quiet", "busy", "median", "worst", "outside", "beyond", "marked", "unlike", "quiet so")


def name_of(measurement):
    """A name that is the same in each round."""
    at = measurement["at"]
    keys = ("cpu", "cpu_node", "memory", "order", "mix", "state", "holder", "reader")
    words = [f" {key} {json.dumps(at[key], separators=(',', ':'))}" for key in keys if at.get(key) is not None]
    experiment = "".join(part.capitalize() for part in measurement["experiment"].split("-"))
    return experiment + "".join(words).replace('"', "")


def median(values):
    return statistics.median(values) if values else None


class Cell:
    """The values of one cell: by how busy the CPUs were, those of each round with their quality."""

    def __init__(self, command):
        self.bound, self.values = LATENCY_BOUND if command == "latency" else BOUND, {}

    def add(self, percent, value):
        self.values.setdefault(percent, []).append(value)

    def at(self, percent, number):
        """The value of a round, if it has one that is not marked as unreliable."""
        values = self.values.get(percent, [])
        value, level = values[number] if 0 <= number < len(values) else (None, None)
        return value if level in UNMARKED else None

    def unmarked(self, percent):
        """The values at a load that are not marked, and the number of others."""
        values = self.values.get(percent, [])
        kept = [value for value in (self.at(percent, number) for number in range(len(values))) if value is not None]
        return kept, len(values) - len(kept)

    def not_between(self, percent):
        """How many unmarked values lie beyond the bound outside the quiet ones just before and after, and of how many."""
        off = []
        for number in range(len(self.values.get(percent, []))):
            # A round begins with its quiet runs.
            ends = self.at(0, number if percent else number - 1), self.at(0, number + 1)
            value = self.at(percent, number)
            if None not in (*ends, value):
                off.append(abs(value / clamped(value, ends) - 1) > self.bound)
        return f"{sum(off)} of {len(off)}"


def clamped(value, ends):
    return min(max(value, min(ends)), max(ends))


def table(cells):
    """The table with its closing line, and how many of its checks failed."""
    row = "{:<70} {:>9} {:>5} {:>9} {:>8} {:>8} {:>7} {:>7} {:>9} {:>9}".format
    lines, checks = [row(*COLUMNS)], []
    for name, cell in sorted(cells.items()):
        quiet = cell.unmarked(0)[0]
        reference = median(quiet)
        for percent in sorted(percent for percent in cell.values if percent):
            unmarked, marked = cell.unmarked(percent)
            # Where quiet runs left no value, a busy one cannot be checked.
            off = [value / reference - 1 for value in unmarked] if quiet else []
            beyond = sum(abs(share) > cell.bound for share in off) if quiet else len(unmarked)
            outside = [value / clamped(value, quiet) - 1 for value in unmarked] if quiet else []
            shares = [f"{100 * max(all_, key=abs):+.1f} %" if all_ else "–" for all_ in (off, outside)]
            numbers = ["–" if number is None else f"{number:.1f}" for number in (reference, median(unmarked))]
            ends = cell.not_between(percent), cell.not_between(0)
            lines.append(row(name, numbers[0], f"{percent:>3} %", numbers[1], *shares, beyond, marked, *ends))
            checks.append(beyond == 0)
    quiet = [level for cell in cells.values() for _, level in cell.values.get(0, [])]
    worse = sum(level != "good" for level in quiet)
    checks.append(worse <= WORSE * len(quiet))
    lines.append(f"quiet: {worse} of {len(quiet)} values are worse than good; at most a fifth may be")
    lines.append(f"{sum(checks)} passed, {len(checks) - sum(checks)} failed\n")
    return "\n".join(lines), len(checks) - sum(checks)


def origin(memgauge):
    """Of which program, built from which commit, and on which host values are."""
    found = report(memgauge, ["latency", "--size", "1M", "--budget", "50ms"])
    tool, commit = found["tool"], found["tool"].get("commit")
    host = (found["run"].get("host") or {}).get("hostname") or ""
    return {"program": f"{tool['name']} {tool['version']}" + (f" ({commit})" if commit else ""), "host": host}


def read_raw(text, own, cells):
    """Adds the values of a file to the cells; values of another program or host are an error."""
    known = False
    for line in text.splitlines():
        found = json.loads(line)
        if isinstance(found, dict):
            if (found["program"], found["host"]) != (own["program"], own["host"]):
                said = f"it has values of {found['program']} on {found['host']}, not of {own['program']} on {own['host']}"
                raise Failed(f"{said}: name another file")
            known = True
        elif not known:
            raise Failed("it does not say of which program and host its values are: name another file")
        else:
            command, name, percent, value = found
            cells.setdefault(name, Cell(command)).add(percent, value)


def round_of(memgauge, percents, cells):
    """Measures everything at each load; the values as lines."""
    lines = []
    for percent in percents:
        with Loops(percent):
            for command in COMMANDS:
                for found in report(memgauge, command)["results"]:
                    value = (found["value"], found["quality"]["level"])
                    lines.append([command[0], name_of(found), percent, value])
                    cells.setdefault(name_of(found), Cell(command[0])).add(percent, value)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="each measures everything once quiet and once at each load [5]")
    parser.add_argument("--percent", default="30,60", help="how busy loops keep each CPU [30,60]")
    parser.add_argument("--memgauge", help="the memgauge to check [a release build of this checkout]")
    parser.add_argument("--raw", metavar="FILE.jsonl", help="keep each value here as a line, after each round; those that it has already are counted, too")
    parser.add_argument("command", nargs="*", help="run this instead while the CPUs are busy, at the first of --percent")
    args = parser.parse_args()
    percents = [int(percent) for percent in args.percent.split(",")]
    if args.command:
        with Loops(percents[0]):
            return subprocess.run(args.command).returncode
    memgauge, cells, own = args.memgauge or build(), {}, None
    if args.raw:
        own = origin(memgauge)
        with open(args.raw, "a+") as raw:
            raw.seek(0)
            read_raw(raw.read(), own, cells)
    for number in range(args.rounds):
        print(f"round {number + 1} of {args.rounds}", file=sys.stderr)
        load = os.getloadavg()[0]
        lines = round_of(memgauge, [0, *percents], cells)
        # Whole rounds only: a value is compared with those of the rounds beside it.
        if args.raw:
            with open(args.raw, "a") as raw:
                raw.writelines(json.dumps(line) + "\n" for line in [dict(own, load=load), *lines])
    text, failed = table(cells)
    print(text, end="")
    return int(failed > 0)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as error:
        sys.exit(f"error: {error}")
