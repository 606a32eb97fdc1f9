"""What the tests of the integrations share: names of tests, processes that end with the test, a sick host."""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

# The program under test; `integrations/run.py` sets it.
MEMGAUGE = os.environ.get("MEMGAUGE", "memgauge")
# An engine of this name is missing: `integrations/run.py` counts it as not checked.
NOT_INSTALLED = 77
# Options that make memgauge quick as short as it can be, whatever else the machine does: a time for all of it would leave numbers out.
SHORT_CHECK = ["--time", "20ms", "--size", "16M"]


# `integrations/run.py` ends a test that takes too long. It ends with what it has started, as after a failure; and so it does where that itself
# is ended, because it is in a process group of its own, which Ctrl-C does not reach.
signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


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
        except SystemExit as ended:
            print(f"test {self.name}::{test.__name__} ... FAILED: {ended} after {time.monotonic() - started:.1f} s", flush=True)
            raise
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
        # What is to be done before they are ended.
        self.before_end = []

    def start(self, name, *command, **options):
        log = open(os.path.join(self.logs, f"{name}.log"), "wb")
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True, **options)
        self.started.append(process)
        return process

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for action in self.before_end:
            # A test that has failed may have ended what the action needs.
            with contextlib.suppress(Exception):
                action()
        for process in reversed(self.started):
            for sent in (signal.SIGTERM, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, sent)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=5)
                    break


def free_ports(number):
    """Ports of this machine that nothing listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


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


def altered(path, to, factor=1.0, **run):
    """The same result with its bandwidths multiplied, its latencies divided, and other fields of its `run`: of a sick host, or of a sibling."""
    with open(path) as file:
        result = json.load(file)
    for measurement in result["results"]:
        for field in ("value", "ci95_low", "ci95_high", "min", "max"):
            if isinstance(measurement.get(field), (int, float)):
                measurement[field] *= factor if measurement["metric"] == "bandwidth" else 1 / factor
    host = run.pop("hostname", None)
    result["run"].update(run)
    if host:
        result["run"]["host"] = {"hostname": host, "machine_id_hash": host}
        result["run"]["id"] = f"run-of-{host}"
    with open(to, "w") as file:
        json.dump(result, file)
    return to


SIMULATED = '''#!/usr/bin/env python3
# memgauge on a simulated host: it measures this machine, then its numbers are altered. Those of a sick host are three tenths worse, and its
# check fails. Steady numbers stand for this machine's own, which vary as much as others use it.
import json, random, socket, subprocess, sys

MEMGAUGE, SICK, STEADY = {memgauge!r}, {sick!r}, {steady!r}
arguments, host = sys.argv[1:], socket.gethostname()
files = [arguments[i + 1] for i, word in enumerate(arguments) if word in ("-o", "--output")]
prints = "json" in arguments
run = subprocess.run([MEMGAUGE, *arguments], stdout=subprocess.PIPE if prints else None)
status = run.returncode
sick = SICK is True or host in (SICK or [])
FIELDS = ("value", "ci95_low", "ci95_high", "min", "max")


def alter(text):
    global status
    result = json.loads(text)
    noise = random.Random(host)
    # On a busy machine not every number; it has one now.
    status = 0 if STEADY and status == 1 else status
    for measurement in result["results"]:
        if STEADY:
            value = 100.0 * noise.gauss(1.0, 0.002)
            measurement.update(value=value, ci95_low=0.998 * value, ci95_high=1.002 * value, min=value, max=value)
            measurement["quality"] = {{"level": "good", "reasons": []}}
            measurement.pop("not_measured", None)
            # Which pages memory gets depends on how fragmented it is.
            measurement.setdefault("evidence", {{}})["pages"] = {{"requested": "auto", "obtained": "thp", "share": 1.0, "page": 2097152}}
            result["complete"] = True
        factor = 1.0 if not sick else 0.7 if measurement["metric"] == "bandwidth" else 1.4
        for field in FIELDS:
            if isinstance(measurement.get(field), (int, float)):
                measurement[field] *= factor
    for name, number in result["summary"].items():
        if name.endswith(("_gbs", "_ns")):
            if STEADY and number.get("absent") in (None, "unreliable", "not-measured"):
                number.update(value=100.0, ci95_low=99.8, ci95_high=100.2, absent=None)
            factor = 1.0 if not sick else 0.7 if name.endswith("_gbs") else 1.4
            for field in FIELDS:
                if isinstance(number.get(field), (int, float)):
                    number[field] *= factor
    if sick and "quick" in arguments:
        finding = {{"code": "slower-than-before", "severity": "failure", "message": "node 0, all-reads: 30 % below the first day's"}}
        result["health"] = {{"status": "failure", "findings": [finding], "compared_with": [], "measured_again": 0}}
        status = 2
    elif STEADY and "quick" in arguments:
        result["health"] = {{"status": "ok", "findings": [], "compared_with": [], "measured_again": 0}}
        status = 0
    return json.dumps(result, indent=2)


for path in files if "render" not in arguments else []:
    with open(path) as file:
        altered = alter(file.read())
    with open(path, "w") as file:
        file.write(altered)
if prints:
    print(alter(run.stdout) if run.stdout.strip() else "", end="\\n")
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
    return script(path, SIMULATED.format(memgauge=MEMGAUGE, sick=True, steady=False))


def steady_memgauge(path, sick):
    """A memgauge with nearly the same numbers on all hosts, and worse ones on those named."""
    return script(path, SIMULATED.format(memgauge=MEMGAUGE, sick=sick, steady=True))


HOST = """#!/bin/sh
# Runs a command as on a host of another name and machine id, and with {work}/default as /etc/default: host NAME COMMAND…
if [ "$1" != --inside ]; then
    exec unshare --uts --mount "$0" --inside "$@"
fi
name=$2
shift 2
hostname "$name"
if [ -e /etc/machine-id ]; then
    printf '%s' "$name" | md5sum | cut -c1-32 >"{work}/$name.machine-id"
    mount --bind "{work}/$name.machine-id" /etc/machine-id
fi
if [ -d "{work}/default" ]; then
    mount --bind "{work}/default" /etc/default
fi
exec "$@"
"""


def need_hosts():
    """Ends the test as not checked where hosts cannot have names of their own."""
    if os.geteuid() or subprocess.run(["unshare", "--uts", "--mount", "true"], stderr=subprocess.DEVNULL).returncode:
        print("not installed: hosts on one machine need root, and a name for each (unshare --uts --mount)")
        sys.exit(NOT_INSTALLED)


def host_program(work):
    """A program that runs commands as on other hosts: its arguments are a name and a command."""
    return script(os.path.join(work, "host"), HOST.format(work=work))


def outliers(results, fleet):
    """The names of slow hosts, and those that are unknown, in the folder of results."""
    output_of(MEMGAUGE, "fleet", "ingest", fleet, results)
    judged = subprocess.run([MEMGAUGE, "fleet", "outliers", fleet, "--format", "json"], capture_output=True, text=True)
    answer = json.loads(judged.stdout)
    return [host["host"] for host in answer["slow"]], [host["host"] for host in answer["unknown"]], answer
