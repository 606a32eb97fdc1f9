#!/usr/bin/env python3
"""ReFrame on a Slurm of four nodes: the sick node fails its reference, the one without a result fails sanity, the others pass."""

import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from cluster import NODES, all_nodes_are_idle, need_slurm, show_logs, start_slurm
from testing import Processes, Tests, folder, need, script, steady_memgauge

HERE = os.path.dirname(os.path.abspath(__file__))
SICK, WITHOUT_RESULT = "n3", "n4"

need("reframe")
need_slurm()

SITE = """
site_configuration = {
    "systems": [{"name": "test", "hostnames": [".*"], "modules_system": "nomod", "partitions": [
        {"name": "all", "scheduler": "squeue", "launcher": "srun", "access": ["--partition=all"], "environs": ["builtin"], "max_jobs": 4},
    ]}],
}
"""


def reframe(*options, node=None):
    """The test cases of a run by node, and what ReFrame printed: on all idle nodes, or on one."""
    report = f"{WORK}/report.json"
    settings = [f"memgauge={WORK}/by-node", "arguments=bandwidth,--mix,all-reads,--size,16M,--time,50ms"]
    command = ["reframe", "-C", f"{WORK}/site.py", "-c", f"{WORK}/checks/memgauge_check.py", "--prefix", f"{WORK}/reframe", "--report-file", report,
               *(word for setting in settings for word in ("-S", f"memgauge_check.{setting}")), "-r",
               *(["-J", f"nodelist={node}"] if node else ["--distribute=idle"]), *options]
    run = subprocess.run(command, cwd=WORK, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300,
                         env={**os.environ, "RFM_AUTODETECT_TOPOLOGY": "0", "RFM_ENABLE_RESULTS_DB": "0", "RFM_COLORIZE": "0", "TMPDIR": WORK})
    with open(report) as file:
        cases = json.load(file)["runs"][0]["testcases"]
    return {node or re.search(r"%\.nid=(\S+)", case["display_name"])[1]: case for case in cases}, run.stdout + run.stderr


def without_references_the_numbers_are_reported():
    cases, said = reframe("--performance-report", node=SICK)
    assert {name: case["result"] for name, case in cases.items()} == {SICK: "pass"}, said
    # As ReFrame prints them, for whoever writes the first references.
    assert "peak_read_gbs" in said and "GB/s" in said, said


def a_sick_node_fails_its_reference_and_a_missing_result_sanity():
    shutil.copy(f"{WORK}/references.json", f"{WORK}/checks/memgauge_references.json")
    cases, said = reframe()
    assert sorted(cases) == NODES, (sorted(cases), said)
    assert {name: case["result"] for name, case in cases.items()} == {"n1": "pass", "n2": "pass", "n3": "fail", "n4": "fail"}, said
    assert cases[SICK]["fail_phase"] == "performance" and "peak_read_gbs" in cases[SICK]["fail_reason"], cases[SICK]["fail_reason"]
    assert cases[WITHOUT_RESULT]["fail_phase"] == "sanity" and "no result" in cases[WITHOUT_RESULT]["fail_reason"], cases[WITHOUT_RESULT]["fail_reason"]


def a_number_with_a_reference_that_was_not_measured_fails_sanity():
    with open(f"{WORK}/checks/memgauge_references.json", "w") as file:
        json.dump({"test:all": {"idle_latency_local_ns": [100.0, None, 0.1, "ns"]}}, file)
    cases, said = reframe(node="n1")
    assert cases["n1"]["fail_phase"] == "sanity", said
    assert "idle_latency_local_ns: not-planned" in cases["n1"]["fail_reason"], cases["n1"]["fail_reason"]


tests = Tests("reframe")
with folder() as WORK, Processes(WORK) as processes:
    steady_memgauge(f"{WORK}/steady", [SICK])
    script(f"{WORK}/by-node", f'#!/bin/sh\n[ "$SLURMD_NODENAME" = {WITHOUT_RESULT} ] && exit 4\nexec {WORK}/steady "$@"\n')
    os.mkdir(f"{WORK}/checks")
    shutil.copy(f"{HERE}/memgauge_check.py", f"{WORK}/checks")
    with open(f"{WORK}/references.json", "w") as file:
        json.dump({"test:all": {"peak_read_gbs": [100.0, -0.05, None, "GB/s"]}}, file)
    with open(f"{WORK}/site.py", "w") as file:
        file.write(SITE)
    start_slurm(WORK, processes)
    tests.run(all_nodes_are_idle)
    tests.run(without_references_the_numbers_are_reported)
    tests.run(a_sick_node_fails_its_reference_and_a_missing_result_sanity)
    tests.run(a_number_with_a_reference_that_was_not_measured_fails_sanity)
    if tests.failed:
        show_logs(WORK)
tests.end()
