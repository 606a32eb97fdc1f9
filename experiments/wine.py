#!/usr/bin/env python3
"""Measures with the programs of this system and of Windows, under Wine, in turn, and shows the medians of both and their ratio.

    cargo xtask windows --commands         # once: what Wine lacks is put into target/wine
    python3 experiments/wine.py --rounds 7
"""

import argparse
import os
import statistics
import subprocess

from common import build, report

# Pages are of 4 KiB on both sides, because Wine has no others.
ROWS = [
    "chase 16k",
    "chase 256k",
    "stream 16k",
    "latency --cpu 0 --size 256m --time 1s",
    *(f"bandwidth --size 128m --mix {mix} --time 1s" for mix in ["all-reads", "copy", "triad", "nt-write", "fill"]),
    "c2c",
]
TARGET = "x86_64-pc-windows-gnu"
# Runs the program for Windows that lies beside it.
WINE = '#!/bin/sh\nexec "$(command -v wine64 || command -v wine || echo /usr/lib/wine/wine64)" "$0.exe" "$@"\n'


def value(memgauge, line):
    """The first value of a run."""
    results = report(memgauge, [*line.split(), "--pages", "4k", "--quiet"])["results"]
    return next(found["value"] for found in results if found["value"] is not None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="runs of each side [7]")
    args = parser.parse_args()
    native = build()
    target = os.path.dirname(os.path.dirname(native))
    subprocess.run(["cargo", "build", "--release", "--bin", "memgauge", "--target", TARGET], cwd=os.path.dirname(os.path.abspath(__file__)), check=True)
    windows = f"{target}/{TARGET}/release/memgauge"
    with open(windows, "w", encoding="utf-8") as script:
        script.write(WINE)
    os.chmod(windows, 0o755)
    os.environ.update(WINEPREFIX=os.path.abspath(f"{target}/wine"), WINEDEBUG="-all")
    for line in ROWS:
        values = {native: [], windows: []}
        for number in range(args.rounds):
            # The first of a round is the second of the next, so that a drift of the machine does not look like a difference.
            for side in (native, windows) if number % 2 else (windows, native):
                values[side].append(value(side, line))
        there, here = (statistics.median(values[side]) for side in (windows, native))
        print(f"{line:<60} {here:10.3f} {there:10.3f} {there / here:7.3f}", flush=True)


if __name__ == "__main__":
    main()
