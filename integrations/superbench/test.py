#!/usr/bin/env python3
"""SuperBench's own analyzer reads memgauge's export, baseline and rules: the sick node and the one without a number are defective."""

import importlib.util
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from testing import MEMGAUGE, NOT_INSTALLED, SHORT_CHECK, Tests, altered, folder, output_of, steady_memgauge

HERE = os.path.dirname(os.path.abspath(__file__))
HOSTS = ["n1", "n2", "n3", "n4"]
SICK, WITHOUT_NUMBER = "n3", "n4"
# An unpacked source of SuperBench, or an installed one.
SOURCE = os.environ.get("SUPERBENCH", "")
try:
    there = os.path.isdir(f"{SOURCE}/superbench/analyzer") or importlib.util.find_spec("superbench.analyzer")
except ModuleNotFoundError:
    there = False
if not there:
    print("not installed: superbench")
    sys.exit(NOT_INSTALLED)

DIAGNOSE = """
import sys
from superbench.analyzer import DataDiagnosis
data, rules, baseline, folder = sys.argv[1:]
DataDiagnosis().run(data, rules, baseline, folder, "json")
"""


def diagnosed():
    """What SuperBench says of the nodes that it finds defective, by name: category and details."""
    for form, name in [("superbench", "results-summary.jsonl"), ("superbench-baseline", "baseline.json")]:
        output_of(MEMGAUGE, "fleet", "export", f"{WORK}/fleet", "--format", form, "-o", f"{WORK}/{name}")
    files = [f"{WORK}/results-summary.jsonl", f"{HERE}/rules.yaml", f"{WORK}/baseline.json", WORK]
    output_of(sys.executable, "-c", DIAGNOSE, *files, env={**os.environ, "PYTHONPATH": SOURCE, "MPLCONFIGDIR": WORK})
    with open(f"{WORK}/diagnosis_summary.json") as file:
        return {node["index"]: node for node in json.load(file)}


def the_sick_node_and_the_one_without_a_number_are_defective():
    output_of(MEMGAUGE, "fleet", "ingest", f"{WORK}/fleet", f"{WORK}/results")
    found = diagnosed()
    assert sorted(found) == [SICK, WITHOUT_NUMBER], found
    assert found[SICK]["diagnosis/category"] == "MemoryBandwidth,MemoryLatency", found[SICK]
    assert "VAR: -30.00%" in found[SICK]["diagnosis/issue_details"], found[SICK]
    assert "NotMeasured" in found[WITHOUT_NUMBER]["diagnosis/category"], found[WITHOUT_NUMBER]
    assert "memgauge-idle-latency/return_code" in found[WITHOUT_NUMBER]["diagnosis/issue_details"], found[WITHOUT_NUMBER]


tests = Tests("superbench")
with folder() as WORK:
    os.mkdir(f"{WORK}/results")
    steady_memgauge(f"{WORK}/steady", [])
    output_of(f"{WORK}/steady", "quick", *SHORT_CHECK, "-q", "-o", f"{WORK}/one.json")
    for host in HOSTS:
        path = altered(f"{WORK}/one.json", f"{WORK}/results/{host}.json", 0.7 if host == SICK else 1.0, hostname=host)
    with open(path) as file:
        result = json.load(file)
    idle = next(number for number in result["results"] if number["experiment"] == "idle-latency")
    idle.update(value=None, not_measured={"cause": "out-of-time"})
    with open(path, "w") as file:
        json.dump(result, file)
    tests.run(the_sick_node_and_the_one_without_a_number_are_defective)
tests.end()
