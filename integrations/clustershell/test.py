#!/usr/bin/env python3
"""Ten nodes by clush, each with a name and machine id of its own: all are measured, the sick one is an outlier, the missing one is named."""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from testing import Tests, folder, host_program, need, need_hosts, outliers, script, steady_memgauge

HERE = os.path.dirname(os.path.abspath(__file__))
NODES = [f"n{i}" for i in range(1, 11)]
SICK, WITHOUT_RESULT = "n3", "n10"

need("clush", "nodeset")
need_hosts()


def gather(nodes):
    """Runs memgauge-clush. Instead of by ssh, nodes are reached by a program on this machine, one after the other."""
    environment = {**os.environ, "CLUSH_OPTIONS": "-R exec --fanout 1", "MEMGAUGE": f"{WORK}/host %h {WORK}/%h.memgauge", "HOME": WORK}
    options = ["bandwidth", "--mix", "all-reads", "--size", "16M", "--time", "50ms", "--label", "rack=7"]
    command = [f"{HERE}/memgauge-clush", nodes, f"{WORK}/results", *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=240)


def all_nodes_are_measured_and_the_missing_one_is_named():
    run = gather("n[1-10]")
    assert run.returncode == 1 and run.stderr.endswith(f"no result of: {WITHOUT_RESULT}\n"), (run.returncode, run.stdout, run.stderr)
    # What the node itself said is to be seen as well.
    assert f"{WITHOUT_RESULT}: memgauge: no CPU may be used" in run.stderr and "exited with exit code 4" in run.stderr, run.stderr
    names = sorted(os.listdir(f"{WORK}/results"))
    assert names == sorted(f"{name}.json" for name in NODES if name != WITHOUT_RESULT), names
    for name in names:
        with open(f"{WORK}/results/{name}") as file:
            saved = json.load(file)["run"]
        assert saved["host"]["hostname"] == name[:-5] and saved["labels"] == {"rack": "7"}, saved


def the_sick_node_is_an_outlier():
    slow, unknown, answer = outliers(f"{WORK}/results", f"{WORK}/fleet")
    assert slow == [SICK] and unknown == [] and answer["hosts"] == 9, (slow, unknown, answer)
    assert answer["duplicates"] == [], answer["duplicates"]


def a_result_of_an_earlier_day_does_not_count():
    with open(f"{WORK}/results/{WITHOUT_RESULT}.json", "w") as file:
        file.write("a result of yesterday")
    run = gather(WITHOUT_RESULT)
    assert run.returncode == 1 and f"no result of: {WITHOUT_RESULT}" in run.stderr, (run.returncode, run.stderr)
    assert not os.path.exists(f"{WORK}/results/{WITHOUT_RESULT}.json")


tests = Tests("clustershell")
with folder() as WORK:
    host_program(WORK)
    steady_memgauge(f"{WORK}/steady", [SICK])
    for name in NODES:
        os.symlink(f"{WORK}/steady", f"{WORK}/{name}.memgauge")
    os.remove(f"{WORK}/{WITHOUT_RESULT}.memgauge")
    script(f"{WORK}/{WITHOUT_RESULT}.memgauge", "#!/bin/sh\necho 'memgauge: no CPU may be used' >&2\nexit 4\n")
    tests.run(all_nodes_are_measured_and_the_missing_one_is_named)
    tests.run(the_sick_node_is_an_outlier)
    tests.run(a_result_of_an_earlier_day_does_not_count)
tests.end()
