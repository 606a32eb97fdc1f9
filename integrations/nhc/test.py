#!/usr/bin/env python3
"""The check in NHC: it passes where memory is well or cannot be judged, and fails with the reason where it is sick."""

import fcntl
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


def check(memgauge, timeout=120):
    """NHC's status, what it said, and how it marked the node."""
    for name in ("conf", "scripts", "state"):
        os.makedirs(f"{WORK}/{name}", exist_ok=True)
    for name in ("log", "marked"):
        if os.path.exists(f"{WORK}/{name}"):
            os.remove(f"{WORK}/{name}")
    if SOURCE:
        for name in os.listdir(f"{SOURCE}/scripts"):
            shutil.copy(f"{SOURCE}/scripts/{name}", f"{WORK}/scripts")
    shutil.copy(f"{HERE}/memgauge.nhc", f"{WORK}/scripts")
    with open(f"{WORK}/conf/nhc.conf", "w") as file:
        file.write(f"* || check_memgauge 60s {' '.join(SHORT_CHECK)}\n")
    environment = {**os.environ, "MEMGAUGE": memgauge, "MEMGAUGE_STATE": f"{WORK}/state"}
    # As with a batch system, whose nodes NHC marks.
    settings = [f"CONFDIR={WORK}/conf", f"INCDIR={WORK}/scripts", f"HELPERDIR={SOURCE or '/usr/libexec/nhc'}/helpers", "NHC_RM=slurm",
                f"ONLINE_NODE={WORK}/mark", f"OFFLINE_NODE={WORK}/mark"]
    done = subprocess.run(["bash", NHC, "-t", str(timeout), "-l", f"{WORK}/log", "-c", f"{WORK}/conf/nhc.conf", *settings],
                          capture_output=True, text=True, env=environment)
    with open(f"{WORK}/log") as log, open(f"{WORK}/marked") as marked:
        return done.returncode, done.stdout + done.stderr + log.read(), marked.read()


def memory_that_is_well_passes():
    status, said, marked = check(MEMGAUGE)
    assert status == 0 and marked == "online\n", (status, said, marked)


def sick_memory_fails_with_the_reason():
    status, said, marked = check(sick_memgauge(f"{WORK}/sick"))
    assert status == 1 and "check_memgauge" in said and "30 % below the first days" in said, (status, said)
    # The finding has an apostrophe, which NHC would run as the end of a word.
    assert marked.startswith("offline: check_memgauge: FAILURE") and "30 % below the first days" in marked, (said, marked)


def what_cannot_be_measured_passes_with_a_line_in_the_log():
    # The result of the check before is still there.
    assert os.path.exists(f"{WORK}/state/nhc.json")
    unable = script(f"{WORK}/unable", f"""#!/bin/sh
[ "$1" != render ] || exec {MEMGAUGE} "$@"
echo 'memgauge: no CPU may be used' >&2
exit 4
""")
    status, said, marked = check(unable)
    assert status == 0 and "status 4, not a failure: memgauge: no CPU may be used" in said and marked == "online\n", (status, said, marked)


def a_check_that_nhc_would_not_wait_for_does_not_begin():
    # NHC's own 30 s would end it, and take the node offline.
    status, said, marked = check(script(f"{WORK}/slow", f"#!/bin/sh\ntouch {WORK}/began\n"), timeout=30)
    assert status == 0 and "not checked: 60s is not below" in said and marked == "online\n", (status, said, marked)
    assert not os.path.exists(f"{WORK}/began")


def a_check_beside_another_waits_and_then_does_not_measure():
    # As memgauge.timer and memgauge-node-check hold it.
    with open(f"{WORK}/state/lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Of 75 s, 60 are the check's own.
        status, said, marked = check(script(f"{WORK}/beside", f"#!/bin/sh\ntouch {WORK}/beside-began\n"), timeout=75)
    assert status == 0 and "not checked: another check did not end within" in said and marked == "online\n", (status, said, marked)
    assert not os.path.exists(f"{WORK}/beside-began")
    # Nobody else can hold it, and it is free again: it is held while the check measures, and no longer.
    assert os.stat(f"{WORK}/state/lock").st_mode & 0o777 == 0o600
    held = script(f"{WORK}/held", f"#!/bin/sh\n[ $1 = render ] || flock --nonblock {WORK}/state/lock true || touch {WORK}/was-held\n")
    status, said, marked = check(held)
    assert status == 0 and os.path.exists(f"{WORK}/was-held"), (status, said, marked)


def a_program_that_is_missing_or_wrongly_called_is_told_and_takes_no_node():
    status, said, marked = check(f"{WORK}/missing")
    assert status == 0 and "NOT CHECKED" in said and "status 127" in said and marked == "online\n", (status, said, marked)
    status, said, marked = check(script(f"{WORK}/refusing", "#!/bin/sh\necho 'memgauge: unexpected argument' >&2\nexit 64\n"))
    assert status == 0 and "(status 64): memgauge: unexpected argument" in said and marked == "online\n", (status, said, marked)


tests = Tests("nhc")
with folder() as WORK:
    # As helpers/node-mark-offline and node-mark-online are called: NODE, and NODE WORDS…
    script(f"{WORK}/mark", f"""#!/bin/sh
shift
echo "${{*:+offline: }}${{*:-online}}" >>{WORK}/marked
""")
    tests.run(memory_that_is_well_passes)
    tests.run(sick_memory_fails_with_the_reason)
    tests.run(what_cannot_be_measured_passes_with_a_line_in_the_log)
    tests.run(a_check_that_nhc_would_not_wait_for_does_not_begin)
    tests.run(a_check_beside_another_waits_and_then_does_not_measure)
    tests.run(a_program_that_is_missing_or_wrongly_called_is_told_and_takes_no_node)
tests.end()
