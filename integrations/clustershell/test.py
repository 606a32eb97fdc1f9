#!/usr/bin/env python3
"""Ten nodes by clush, each with a name and machine id of its own: all are measured, the sick one is an outlier, the missing ones are named."""

import json
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from testing import MEMGAUGE, Tests, folder, host_program, need, need_hosts, outliers, output_of, script, steady_memgauge, until

HERE = os.path.dirname(os.path.abspath(__file__))
NODES = [f"n{i}" for i in range(1, 11)]
SICK, WITHOUT_RESULT = "n3", "n10"
# Words that a shell would take apart.
RACK = """row  7, "left" and it's $HOME"""
# Nodes that print something, and no whole result.
WITH_WORDS, CUT_OFF = "n11", "n12"

need("clush", "nodeset")
need_hosts()


def clush(nodes):
    """The arguments of subprocess. Instead of by ssh, nodes are reached by a program on this machine, one after the other."""
    environment = {**os.environ, "CLUSH_OPTIONS": "-R exec --fanout 1", "MEMGAUGE": f"{WORK}/host %h {WORK}/%h.memgauge", "HOME": WORK}
    options = ["bandwidth", "--mix", "all-reads", "--size", "16M", "--time", "50ms", "--label", f"rack={RACK}"]
    return {"args": [f"{HERE}/memgauge-clush", nodes, f"{WORK}/results", *options], "env": environment, "stdin": subprocess.DEVNULL}


def gather(nodes):
    return subprocess.run(**clush(nodes), capture_output=True, text=True, timeout=240)


def all_nodes_are_measured_and_the_missing_ones_are_named():
    run = gather("n[1-12]")
    assert run.returncode == 1 and run.stderr.endswith("no result of: n[10-12]\n"), (run.returncode, run.stdout, run.stderr)
    # What the node itself said is to be seen as well.
    assert f"{WITHOUT_RESULT}: memgauge: no CPU may be used" in run.stderr and "exited with exit code 4" in run.stderr, run.stderr
    names = sorted(os.listdir(f"{WORK}/results"))
    assert names == sorted(f"{name}.json" for name in NODES if name != WITHOUT_RESULT), names
    for name in names:
        with open(f"{WORK}/results/{name}") as file:
            saved = json.load(file)["run"]
        assert saved["host"]["hostname"] == name[:-5] and saved["labels"] == {"rack": RACK}, saved


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


def nodes_that_do_not_exist_are_an_error():
    for nodes in ("@typo", "n[1-"):
        run = gather(nodes)
        assert run.returncode != 0 and nodes in run.stderr, (nodes, run.returncode, run.stderr)


def interrupted_it_leaves_nothing():
    results = set(os.listdir(f"{WORK}/results"))
    # What runs in the background of a shell does not know Ctrl-C.
    as_typed = {"start_new_session": True, "preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    run = subprocess.Popen(**clush("slow"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **as_typed)
    until("a node that measures", lambda: os.path.exists(f"{WORK}/began"))
    os.killpg(run.pid, signal.SIGINT)
    assert run.wait(60) == 130
    assert set(os.listdir(f"{WORK}/results")) == results, os.listdir(f"{WORK}/results")


def pdsh_does_as_the_readme_says():
    if shutil.which("pdsh") is None:
        print("not checked: pdsh, because it is not installed")
        return
    with open(f"{HERE}/README.md") as file:
        recipe = next(block for block in file.read().split("```")[1::2] if "pdsh" in block)
    # Nodes are reached by a program on this machine, as above, and the check is shorter.
    measure = "bandwidth --mix all-reads --size 16M --time 50ms"
    for of, to in (("n[1-64] memgauge quick --within 45s", f"'n[1-12]' {WORK}/host %h {WORK}/%h.memgauge {measure}"), ("\nmemgauge", f"\n{MEMGAUGE}")):
        assert recipe.count(of) == 1, recipe
        recipe = recipe.replace(of, to)
    os.mkdir(f"{WORK}/by-pdsh")
    environment = {**os.environ, "PDSH_RCMD_TYPE": "exec", "FANOUT": "1"}
    done = subprocess.run(["bash", "-c", recipe], cwd=f"{WORK}/by-pdsh", env=environment, capture_output=True, text=True, timeout=240)
    assert f"{WITHOUT_RESULT}: memgauge: no CPU may be used" in done.stderr, done.stderr
    assert not os.path.exists(f"{WORK}/by-pdsh/results/{WITHOUT_RESULT}"), os.listdir(f"{WORK}/by-pdsh/results")
    # What is no result is named: n1's begins with what its shell says to everybody, which pdsh does not take away.
    assert all(f"results/{name}: " in done.stdout for name in ("n1", WITH_WORDS, CUT_OFF)), done.stdout
    judged = subprocess.run([MEMGAUGE, "fleet", "outliers", f"{WORK}/by-pdsh/fleet", "--format", "json"], capture_output=True, text=True)
    answer = json.loads(judged.stdout)
    assert [host["host"] for host in answer["slow"]] == [SICK] and answer["hosts"] == 8, (done.stdout, done.stderr, answer)


tests = Tests("clustershell")
with folder() as WORK:
    host_program(WORK)
    steady_memgauge(f"{WORK}/steady", [SICK])
    for name in NODES[1:-1]:
        os.symlink(f"{WORK}/steady", f"{WORK}/{name}.memgauge")
    # As of a shell that greets everybody.
    script(f"{WORK}/n1.memgauge", f'#!/bin/sh\necho "Welcome to {{n1}}"\nexec {WORK}/steady "$@"\n')
    script(f"{WORK}/{WITHOUT_RESULT}.memgauge", "#!/bin/sh\necho 'memgauge: no CPU may be used' >&2\nexit 4\n")
    script(f"{WORK}/{WITH_WORDS}.memgauge", "#!/bin/sh\necho 'Welcome to {n11}'\nexit 4\n")
    script(f"{WORK}/{CUT_OFF}.memgauge", "#!/bin/sh\nprintf '{\\n  \"run\": {\\n  }\\n'\n")
    script(f"{WORK}/slow.memgauge", f"#!/bin/sh\ntouch {WORK}/began\nsleep 20\n")
    tests.run(all_nodes_are_measured_and_the_missing_ones_are_named)
    tests.run(the_sick_node_is_an_outlier)
    tests.run(a_result_of_an_earlier_day_does_not_count)
    tests.run(nodes_that_do_not_exist_are_an_error)
    tests.run(interrupted_it_leaves_nothing)
    tests.run(pdsh_does_as_the_readme_says)
tests.end()
