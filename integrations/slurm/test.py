#!/usr/bin/env python3
"""A Slurm of four nodes on this machine: nodes with sick memory are drained with the reason, all nodes are measured, a missing result is told."""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from cluster import NODES, all_nodes_are_idle, need_slurm, reason, show_logs, start_slurm, states
from testing import MEMGAUGE, SHORT_CHECK, Processes, Tests, folder, outliers, output_of, script, sick_memgauge, until

HERE = os.path.dirname(os.path.abspath(__file__))
SICK, LATER_SICK = "n3", "n2"

need_slurm()


def the_prolog_drains_the_sick_node_with_the_reason():
    output_of("sbatch", "--parsable", "--nodelist", SICK, "--output", "/dev/null", "--wrap", "true")
    until("a drained node", lambda: states()[SICK].startswith("drain"), 90)
    assert reason(SICK).startswith("memgauge: FAILURE") or "30 % below" in reason(SICK), reason(SICK)
    output_of("scancel", "--user", "root")
    assert all("drain" not in state for name, state in states().items() if name != SICK), states()


def the_epilog_drains_a_node_that_fell_sick_during_a_job():
    # The Prolog has found it well.
    ran = f"{WORK}/ran"
    output_of("sbatch", "--parsable", "--nodelist", LATER_SICK, "--output", "/dev/null", "--wrap", f"touch {ran} {WORK}/{LATER_SICK}-is-sick")
    until("a drained node", lambda: states()[LATER_SICK].startswith("drain"), 90)
    assert os.path.exists(ran) and "30 % below" in reason(LATER_SICK), reason(LATER_SICK)
    os.remove(f"{WORK}/{LATER_SICK}-is-sick")
    until("the job's end", lambda: not output_of("squeue", "--noheader"))
    output_of("scontrol", "update", f"NodeName={LATER_SICK}", "State=RESUME")
    until("the node back", lambda: states()[LATER_SICK] == "idle")


def the_health_check_drains_it_too():
    output_of("scontrol", "update", f"NodeName={SICK}", "State=RESUME")
    until("the node back", lambda: states()[SICK] == "idle")
    environment = {**os.environ, "MEMGAUGE": f"{WORK}/sick", "MEMGAUGE_STATE": f"{WORK}/state-health",
                   "MEMGAUGE_WITHIN": "60s", "MEMGAUGE_OPTIONS": " ".join(SHORT_CHECK)}
    checked = subprocess.run([f"{WORK}/host", SICK, f"{HERE}/memgauge-node-check"], env=environment)
    assert checked.returncode == 1
    assert states()[SICK].startswith("drain") and "30 % below" in reason(SICK), (states(), reason(SICK))


def a_node_that_cannot_be_measured_is_not_drained():
    environment = {**os.environ, "MEMGAUGE": f"{WORK}/unable", "MEMGAUGE_STATE": f"{WORK}/state-unable"}
    output_of(f"{WORK}/host", "n4", f"{HERE}/memgauge-node-check", env=environment)
    assert states()["n4"] == "idle", states()


def all_nodes_are_measured_alone_and_the_missing_one_is_told():
    results, ended = f"{WORK}/results", f"{WORK}/other-job-ended"
    os.mkdir(results)
    with open(f"{results}/{SICK}.json", "w") as file:
        file.write("a result of yesterday")
    output_of("sbatch", "--parsable", "--nodelist", "n1", "--cpus-per-task", "1", "--output", "/dev/null", "--wrap", f"sleep 2; date +%s.%N >{ended}")
    until("another job on n1", lambda: states()["n1"] in ("mixed", "allocated"))
    environment = {**os.environ, "MEMGAUGE": f"{WORK}/by-node"}
    options = ["bandwidth", "--mix", "all-reads", "--size", "32M", "--time", "50ms"]
    run = subprocess.run([f"{HERE}/memgauge-all-nodes", results, *options], env=environment, capture_output=True, text=True, timeout=240)
    # The sick node is drained and has no result.
    assert run.returncode == 1 and run.stderr.strip() == f"no result of: {SICK}", (run.returncode, run.stdout, run.stderr)
    assert run.stdout.startswith("3 nodes, a task each of job "), run.stdout
    for name in NODES:
        if name != SICK:
            with open(f"{results}/{name}.json") as file:
                saved = json.load(file)["run"]
            assert saved["labels"]["slurm-node"] == name and saved["host"]["hostname"] == name, saved
    # The whole node is its own: on n1 it waited for the other job.
    with open(ended) as file:
        assert os.stat(f"{results}/n1.log").st_mtime >= float(file.read())


def interrupted_it_takes_its_jobs_back():
    # One of them waits, because its node is taken.
    other = output_of("sbatch", "--parsable", "--nodelist", "n4", "--exclusive", "--output", "/dev/null", "--wrap", "sleep 600").strip()
    until("another job on n4", lambda: states()["n4"] == "allocated")
    run = subprocess.Popen([f"{HERE}/memgauge-all-nodes", f"{WORK}/interrupted", "info"], env={**os.environ, "MEMGAUGE": MEMGAUGE},
                           stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert "a task each of job" in run.stdout.readline()
    run.terminate()
    assert run.wait(60) == 130
    until("no job but the other", lambda: output_of("squeue", "--noheader", "--format", "%A").split() == [other])


def the_results_are_gathered_for_a_fleet():
    slow, unknown, _ = outliers(f"{WORK}/results", f"{WORK}/fleet")
    # Too few siblings to judge by: none of them passes.
    assert slow == [] and unknown == ["n1", "n2", "n4"], (slow, unknown)


tests = Tests("slurm")
with folder() as WORK, Processes(WORK) as processes:
    sick_memgauge(f"{WORK}/sick")
    script(f"{WORK}/unable", "#!/bin/sh\necho 'memgauge: could not measure anything' >&2\nexit 4\n")
    # Each node has its own memgauge: all but the sick ones that of this machine.
    script(f"{WORK}/by-node", f"""#!/bin/sh
[ "$SLURMD_NODENAME" = {SICK} ] || [ -e "{WORK}/$SLURMD_NODENAME-is-sick" ] && exec {WORK}/sick "$@"
exec {MEMGAUGE} "$@"
""")
    # On two nodes, so that the other jobs of this test do not wait for it.
    for when, nodes in [("prolog", f"{SICK}|{LATER_SICK}"), ("epilog", LATER_SICK)]:
        script(f"{WORK}/{when}", f"""#!/bin/sh
case $SLURMD_NODENAME in {nodes}) ;; *) exit 0 ;; esac
[ ! -e {WORK}/all-nodes ] || exit 0
export MEMGAUGE={WORK}/by-node MEMGAUGE_STATE={WORK}/state-$SLURMD_NODENAME SLURM_CONF={WORK}/slurm.conf
export MEMGAUGE_WITHIN=60s MEMGAUGE_OPTIONS="{" ".join(SHORT_CHECK)}"
exec {HERE}/memgauge-node-check
""")
    start_slurm(WORK, processes, f"Prolog={WORK}/prolog\nPrologFlags=Alloc\nEpilog={WORK}/epilog")
    tests.run(all_nodes_are_idle)
    tests.run(the_prolog_drains_the_sick_node_with_the_reason)
    tests.run(the_epilog_drains_a_node_that_fell_sick_during_a_job)
    tests.run(the_health_check_drains_it_too)
    tests.run(a_node_that_cannot_be_measured_is_not_drained)
    script(f"{WORK}/all-nodes", "")
    tests.run(all_nodes_are_measured_alone_and_the_missing_one_is_told)
    tests.run(the_results_are_gathered_for_a_fleet)
    tests.run(interrupted_it_takes_its_jobs_back)
    if tests.failed:
        show_logs(WORK)
tests.end()
