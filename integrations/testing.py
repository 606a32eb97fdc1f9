"""What the tests of the integrations share: names of tests, processes that end with the test, a sick host."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

# The program under test; `cargo xtask integrations` sets it.
MEMGAUGE = os.environ.get("MEMGAUGE", "memgauge")
# An engine of this name is missing: `cargo xtask integrations` counts it as not checked.
NOT_INSTALLED = 77


def need(*programs):
    """Ends the test as not checked where a program is missing."""
    missing = [p for p in programs if shutil.which(p) is None]
    if missing:
        print(f"not installed: {', '.join(missing)}")
        sys.exit(NOT_INSTALLED)


class Tests:
    """Runs functions as tests, prints a line for each, and fails at the end if one failed."""

    def __init__(self, name):
        self.name, self.failed = name, 0

    def run(self, test, *args):
        started = time.monotonic()
        try:
            test(*args)
            outcome = "ok"
        except Exception as error:  # A test fails for whatever reason: the line says which.
            self.failed += 1
            outcome = f"FAILED\n    {type(error).__name__}: {error}"
        print(f"test {self.name}::{test.__name__} ... {outcome} ({time.monotonic() - started:.1f} s)", flush=True)

    def end(self):
        sys.exit(1 if self.failed else 0)


@contextlib.contextmanager
def folder():
    """A folder that is removed at the end, readable by the engines' own users."""
    with tempfile.TemporaryDirectory(prefix="memgauge-integration-") as path:
        os.chmod(path, 0o755)
        yield path


class Processes:
    """Processes that are ended with the test, in the reverse order of their start."""

    def __init__(self, logs):
        self.logs, self.started = logs, []

    def start(self, name, *command, **options):
        log = open(os.path.join(self.logs, f"{name}.log"), "wb")
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True, **options)
        self.started.append(process)
        return process

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self.started):
            for sent in (signal.SIGTERM, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, sent)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=5)
                    break


def until(what, condition, seconds=60):
    """Waits for a condition to hold, and returns what it returned."""
    end, error = time.monotonic() + seconds, None
    while time.monotonic() < end:
        try:
            if value := condition():
                return value
        except Exception as problem:  # Engines answer nothing until they are up.
            error = problem
        time.sleep(0.2)
    raise TimeoutError(f"{what}: not within {seconds} s" + (f" ({error})" if error else ""))


def output_of(*command, **options):
    """What a command printed; fails if it failed."""
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, **options)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def measure(path, *options):
    """A real, short measurement of this machine as JSON."""
    command = [MEMGAUGE, "bandwidth", "--mix", "all-reads", "--size", "64M", "--time", "100ms", "-q", "-o", path, *options]
    output_of(*command)
    return path


def altered(path, to, factor=1.0, **run):
    """The same result with its numbers multiplied and other fields of its `run`: the result of a sick host, or of a sibling."""
    with open(path) as file:
        result = json.load(file)
    for measurement in result["results"]:
        for field in ("value", "ci95_low", "ci95_high", "min", "max"):
            if isinstance(measurement.get(field), (int, float)):
                measurement[field] *= factor
    host = run.pop("hostname", None)
    result["run"].update(run)
    if host:
        result["run"]["host"] = {"hostname": host, "machine_id_hash": host}
        result["run"]["id"] = f"run-of-{host}"
    with open(to, "w") as file:
        json.dump(result, file)
    return to


SICK = '''#!/usr/bin/env python3
# memgauge as a host with sick memory would show it: its numbers are three tenths worse, and its check fails.
import json, subprocess, sys
status = subprocess.run([{memgauge!r}, *sys.argv[1:]]).returncode
outputs = [sys.argv[i + 1] for i, word in enumerate(sys.argv) if word in ("-o", "--output")]
for path in outputs if "render" not in sys.argv else []:
    with open(path) as file:
        result = json.load(file)
    for measurement in result["results"]:
        factor = 0.7 if measurement["metric"] == "bandwidth" else 1.4
        for field in ("value", "ci95_low", "ci95_high", "min", "max"):
            if isinstance(measurement.get(field), (int, float)):
                measurement[field] *= factor
    if "quick" in sys.argv:
        finding = {{"code": "slower-than-before", "severity": "failure", "message": "node 0, all-reads: 30 % below the first day's"}}
        result["health"] = {{"status": "failure", "findings": [finding], "compared_with": [], "measured_again": 0}}
        status = 2
    with open(path, "w") as file:
        json.dump(result, file)
sys.exit(status)
'''


def script(path, text):
    """Writes a program."""
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, 0o755)
    return path


def sick_memgauge(path):
    """A memgauge that alters the results of this host for the worse."""
    return script(path, SICK.format(memgauge=MEMGAUGE))
