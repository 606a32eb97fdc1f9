#!/usr/bin/env python3
"""ReFrame on a Slurm of four nodes: the sick node fails its reference, the one without a result fails sanity, the others pass."""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

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


def reframe(references, *options, node=None):
    """The test cases of a run by node, and what ReFrame printed: on all idle nodes, or on one."""
    own = f"{WORK}/run-on-{node or 'all'}"
    os.mkdir(own)
    if references is not None:
        with open(f"{own}/references.json", "w") as file:
            json.dump(references, file)
    settings = [f"memgauge={WORK}/by-node", "arguments=bandwidth,--mix,all-reads,--size,16M,--time,50ms", f"references={own}/references.json"]
    command = ["reframe", "-C", f"{WORK}/site.py", "-c", f"{HERE}/memgauge_check.py", "--prefix", own, "--report-file", f"{own}/report.json",
               *(word for setting in settings for word in ("-S", f"memgauge_check.{setting}")), "-r",
               *(["-J", f"nodelist={node}"] if node else ["--distribute=idle"]), *options]
    run = subprocess.run(command, cwd=own, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300,
                         env={**os.environ, "RFM_AUTODETECT_TOPOLOGY": "0", "RFM_ENABLE_RESULTS_DB": "0", "RFM_COLORIZE": "0", "TMPDIR": own})
    with open(f"{own}/report.json") as file:
        cases = json.load(file)["runs"][0]["testcases"]
    return {node or re.search(r"%\.nid=(\S+)", case["display_name"])[1]: case for case in cases}, run.stdout + run.stderr


def a_sick_node_fails_its_reference_and_a_missing_result_sanity():
    cases, said = reframe({"test:all": {"peak_read_gbs": [100.0, -0.05, None, "GB/s"]}})
    assert sorted(cases) == NODES, (sorted(cases), said)
    assert {name: case["result"] for name, case in cases.items()} == {"n1": "pass", "n2": "pass", "n3": "fail", "n4": "fail"}, said
    reason = cases[SICK]["fail_reason"]
    assert cases[SICK]["fail_phase"] == "performance" and "peak_read_gbs=70.0" in reason, reason
    reason = cases[WITHOUT_RESULT]["fail_reason"]
    assert cases[WITHOUT_RESULT]["fail_phase"] == "sanity" and "no result" in reason, reason


def without_references_the_numbers_are_reported(run):
    cases, said = run.result()
    assert {name: case["result"] for name, case in cases.items()} == {SICK: "pass"}, said
    # As ReFrame prints them, for whoever writes the first references.
    assert "peak_read_gbs" in said and "GB/s" in said, said


def a_system_without_references_fails_sanity_where_others_have_some(run):
    cases, said = run.result()
    assert cases["n1"]["fail_phase"] == "sanity" and "no references for test:all" in cases["n1"]["fail_reason"], said


def a_number_with_a_reference_that_was_not_measured_fails_sanity(run):
    cases, said = run.result()
    assert cases["n2"]["fail_phase"] == "sanity", said
    assert "idle_latency_local_ns: not-planned" in cases["n2"]["fail_reason"], cases["n2"]["fail_reason"]


tests = Tests("reframe")
with folder() as WORK, Processes(WORK) as processes:
    steady_memgauge(f"{WORK}/steady", [SICK])
    script(f"{WORK}/by-node", f'#!/bin/sh\n[ "$SLURMD_NODENAME" = {WITHOUT_RESULT} ] && exit 4\nexec {WORK}/steady "$@"\n')
    with open(f"{WORK}/site.py", "w") as file:
        file.write(SITE)
    start_slurm(WORK, processes)
    tests.run(all_nodes_are_idle)
    tests.run(a_sick_node_fails_its_reference_and_a_missing_result_sanity)
    # At once, each on a node of its own: most of their time is waiting.
    with ThreadPoolExecutor() as pool:
        reported = pool.submit(reframe, None, "--performance-report", node=SICK)
        of_others = pool.submit(reframe, {"other:all": {"peak_read_gbs": [100.0, -0.05, None, "GB/s"]}}, node="n1")
        not_measured = pool.submit(reframe, {"test:all": {"idle_latency_local_ns": [100.0, None, 0.1, "ns"]}}, node="n2")
        tests.run(without_references_the_numbers_are_reported, reported)
        tests.run(a_system_without_references_fails_sanity_where_others_have_some, of_others)
        tests.run(a_number_with_a_reference_that_was_not_measured_fails_sanity, not_measured)
    if tests.failed:
        show_logs(WORK)
tests.end()
