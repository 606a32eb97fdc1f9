#!/usr/bin/env python3
"""The check in NHC: it passes where memory is well or cannot be judged, and fails with the reason where it is sick."""

import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from testing import MEMGAUGE, NOT_INSTALLED, SHORT_CHECK, Tests, folder, script, sick_memgauge

HERE = os.path.dirname(os.path.abspath(__file__))
# An unpacked source of NHC, or an installed one.
SOURCE = os.environ.get("NHC")
NHC = f"{SOURCE}/nhc" if SOURCE else shutil.which("nhc")
if NHC is None:
    print("not installed: nhc")
    sys.exit(NOT_INSTALLED)


def check(memgauge):
    """NHC's status and what it said."""
    for name in ("conf", "scripts", "state"):
        os.makedirs(f"{WORK}/{name}", exist_ok=True)
    if SOURCE:
        for name in os.listdir(f"{SOURCE}/scripts"):
            shutil.copy(f"{SOURCE}/scripts/{name}", f"{WORK}/scripts")
    shutil.copy(f"{HERE}/memgauge.nhc", f"{WORK}/scripts")
    with open(f"{WORK}/conf/nhc.conf", "w") as file:
        file.write(f"* || check_memgauge 60s {' '.join(SHORT_CHECK)}\n")
    environment = {**os.environ, "MEMGAUGE": memgauge, "MEMGAUGE_STATE": f"{WORK}/state"}
    settings = [f"CONFDIR={WORK}/conf", f"INCDIR={WORK}/scripts", f"HELPERDIR={SOURCE or '/usr/libexec/nhc'}/helpers", "NHC_RM=none", "MARK_OFFLINE=0"]
    done = subprocess.run(["bash", NHC, "-t", "120", "-l", f"{WORK}/log", "-c", f"{WORK}/conf/nhc.conf", *settings], capture_output=True, text=True, env=environment)
    with open(f"{WORK}/log") as log:
        return done.returncode, done.stdout + done.stderr + log.read()


def memory_that_is_well_passes():
    status, said = check(MEMGAUGE)
    assert status == 0, (status, said)


def sick_memory_fails_with_the_reason():
    status, said = check(sick_memgauge(f"{WORK}/sick"))
    assert status == 1 and "check_memgauge" in said and "30 % below the first day's" in said, (status, said)


def what_cannot_be_measured_passes_with_a_line_in_the_log():
    shutil.rmtree(f"{WORK}/state")
    status, said = check(script(f"{WORK}/unable", "#!/bin/sh\necho 'memgauge: no CPU may be used' >&2\nexit 4\n"))
    assert status == 0 and "status 4, not a failure: memgauge: no CPU may be used" in said, (status, said)


tests = Tests("nhc")
with folder() as WORK:
    tests.run(memory_that_is_well_passes)
    tests.run(sick_memory_fails_with_the_reason)
    tests.run(what_cannot_be_measured_passes_with_a_line_in_the_log)
tests.end()
