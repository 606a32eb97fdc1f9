#!/usr/bin/env python3
"""Runs the tests of the folders beside it, each with the engine that it is for, and ends with "N passed, N failed".

    python3 integrations/run.py                     # all whose engines are installed; says which are not
    python3 integrations/run.py slurm mpi           # some
    python3 integrations/run.py --jobs 2            # two at a time, each of which is printed when it is done
    python3 integrations/run.py --memgauge PROGRAM  # not a static release build of this checkout
"""

import argparse
import concurrent.futures
import functools
import os
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# The status of a test whose engine is not installed (testing.py).
NOT_INSTALLED = 77
# How long the test of a folder may take. The slowest needs half a minute; one whose engine hangs must not stop the gate.
LIMIT = 600
# How long it then has to end the engines that it started.
GRACE = 60
# How long after its end its last lines may take to be read; something that it has started may hold its output longer.
LAST_LINES = 2


class Run:
    """The test of a folder, run to its end: its lines are shown, and those that say how a part of it went are counted.

    After `limit` seconds it is asked to end, which testing.py answers by ending what it has started and by naming the part that ran; after `grace`
    it is killed with its process group.
    """

    def __init__(self, command, limit=LIMIT, grace=GRACE, environment=None, show=functools.partial(print, end="", flush=True)):
        self.show, self.passed, self.failed = show, 0, 0
        self.ended = False
        # A group of its own: the signals reach what the test waits for.
        child = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True)
        reader = threading.Thread(target=self.read, args=[child.stdout], daemon=True)
        reader.start()
        try:
            self.status = child.wait(limit)
        except subprocess.TimeoutExpired:
            self.ended = True
            os.killpg(child.pid, signal.SIGTERM)
            try:
                self.status = child.wait(grace)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                self.status = child.wait()
        reader.join(LAST_LINES)

    def read(self, lines):
        for line in lines:
            self.show(line)
            if line.startswith("test "):
                passed = " ... ok" in line
                self.passed += passed
                self.failed += not passed


def static_release():
    """Builds the program as it is released: static, because an image has no C library."""
    project, target = os.path.dirname(HERE), f"{os.uname().machine}-unknown-linux-musl"
    subprocess.run(["rustup", "target", "add", target], check=True, stdout=subprocess.DEVNULL)
    environment = dict(os.environ, **{f"CARGO_TARGET_{target.upper().replace('-', '_')}_LINKER": "rust-lld"})
    subprocess.run(["cargo", "build", "--quiet", "--release", "--target", target, "-p", "memgauge"], cwd=project, env=environment, check=True)
    return os.path.join(project, os.environ.get("CARGO_TARGET_DIR", "target"), target, "release/memgauge")


def main():
    tests = sorted(name for name in os.listdir(HERE) if os.path.isfile(f"{HERE}/{name}/test.py"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="which [all]")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time [1]")
    parser.add_argument("--memgauge", help="the memgauge to run [a static release build of this checkout]")
    parser.add_argument("--python", default=sys.executable, help="the Python of the tests; engines that are installed beside it are found")
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in tests]
    if unknown:
        sys.exit(f"error: there is no integration {unknown[0]}: {', '.join(tests)}")
    memgauge = os.path.realpath(args.memgauge or static_release())
    if not os.path.isfile(memgauge):
        sys.exit(f"error: no program {memgauge}")
    beside = os.path.dirname(args.python)
    path = os.pathsep.join(filter(None, [os.path.abspath(beside) if beside else "", os.environ.get("PATH", "")]))
    started, passed, failed, not_checked = time.monotonic(), 0, 0, []

    def run_test(name):
        begun, lines = time.monotonic(), []
        environment = dict(os.environ, MEMGAUGE=memgauge, MEMGAUGE_STATE="", PATH=path)
        shown = {"show": lines.append} if args.jobs > 1 else {}
        run = Run([args.python, f"{HERE}/{name}/test.py"], environment=environment, **shown)
        return name, run, lines, time.monotonic() - begun

    # Engines are waited for most of the time. Their folders and ports are their own.
    pool = concurrent.futures.ThreadPoolExecutor(args.jobs)
    for name, run, lines, seconds in (pool.map if args.jobs > 1 else map)(run_test, args.names or tests):
        print("".join(lines), end="")
        passed += run.passed
        # A test that ended without a line failed as well.
        failed += run.failed or (run.status not in (0, NOT_INSTALLED))
        if run.status == NOT_INSTALLED:
            not_checked.append(name)
        if run.ended:
            print(f"integration {name}: ended, because it was not done after {LIMIT} s")
        print(f"integration {name}: {seconds:.1f} s\n", flush=True)
    if not_checked:
        print(f"not checked, because their engines are not installed: {', '.join(not_checked)}")
    print(f"{passed} passed, {failed} failed, in {time.monotonic() - started:.1f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
