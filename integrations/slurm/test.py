#!/usr/bin/env python3
"""A Slurm of four nodes on this machine: the node with sick memory is drained with the reason, all nodes are measured, a missing result is told."""

import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from testing import MEMGAUGE, NOT_INSTALLED, Processes, Tests, folder, need, output_of, script, sick_memgauge, until

HERE = os.path.dirname(os.path.abspath(__file__))
NODES = ["n1", "n2", "n3", "n4"]
SICK = "n3"

need("slurmctld", "slurmd", "munged", "scontrol", "unshare")
if os.geteuid() or subprocess.run(["unshare", "-u", "true"], stderr=subprocess.DEVNULL).returncode:
    print("not installed: slurmd wants root, and each node a hostname of its own")
    sys.exit(NOT_INSTALLED)

CONF = """
ClusterName=memgauge
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=16817
SlurmctldParameters=enable_configless
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={work}/munge.socket
CryptoType=crypto/munge
StateSaveLocation={work}/state
SlurmdSpoolDir={work}/spool-%n
SlurmctldPidFile={work}/slurmctld.pid
SlurmdPidFile={work}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
Prolog={work}/prolog
PrologFlags=Alloc
PropagateResourceLimits=NONE
{health}
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=60 State=UP OverSubscribe=NO
"""


def node(number, name):
    return f"NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={16820 + number} CPUs=2 RealMemory=1000 State=UNKNOWN"


def states():
    lines = output_of("sinfo", "--noheader", "--Node", "--format", "%N %T").split("\n")
    return dict(line.split() for line in lines if line)


def reason():
    return output_of("sinfo", "--noheader", "--Node", "--nodes", SICK, "--format", "%E").strip()


def all_nodes_are_idle():
    until("four idle nodes", lambda: set(states().values()) == {"idle"}, 60)


def the_prolog_drains_the_sick_node_with_the_reason():
    output_of("sbatch", "--parsable", "--nodelist", SICK, "--output", "/dev/null", "--wrap", "true")
    until("a drained node", lambda: states()[SICK].startswith("drain"), 90)
    assert reason().startswith("memgauge: FAILURE") or "30 % below" in reason(), reason()
    output_of("scancel", "--user", "root")
    assert all("drain" not in state for name, state in states().items() if name != SICK), states()


def the_health_check_drains_it_too():
    output_of("scontrol", "update", f"NodeName={SICK}", "State=RESUME")
    until("the node back", lambda: states()[SICK] == "idle")
    environment = {**os.environ, "MEMGAUGE": f"{WORK}/sick", "MEMGAUGE_STATE": f"{WORK}/state-health", "MEMGAUGE_WITHIN": "6s"}
    checked = subprocess.run(["unshare", "-u", "sh", "-c", f"hostname {SICK}; exec {HERE}/memgauge-node-check"], env=environment)
    assert checked.returncode == 1
    assert states()[SICK].startswith("drain") and "30 % below" in reason(), (states(), reason())


def a_node_that_cannot_be_measured_is_not_drained():
    environment = {**os.environ, "MEMGAUGE": f"{WORK}/unable", "MEMGAUGE_STATE": f"{WORK}/state-unable"}
    output_of("unshare", "-u", "sh", "-c", f"hostname n4; exec {HERE}/memgauge-node-check", env=environment)
    assert states()["n4"] == "idle", states()


def all_nodes_are_measured_and_the_missing_one_is_told():
    results = f"{WORK}/results"
    environment = {**os.environ, "MEMGAUGE": f"{WORK}/by-node"}
    options = ["bandwidth", "--mix", "all-reads", "--size", "32M", "--time", "50ms"]
    run = subprocess.run([f"{HERE}/memgauge-all-nodes", results, *options], env=environment, capture_output=True, text=True, timeout=240)
    # The sick node is drained and has no result.
    assert run.returncode == 1 and run.stderr.strip() == f"no result of: {SICK}", (run.returncode, run.stdout, run.stderr)
    for name in NODES:
        if name != SICK:
            with open(f"{results}/{name}.json") as file:
                assert json.load(file)["run"]["labels"]["slurm-node"] == name


tests = Tests("slurm")
with folder() as WORK, Processes(WORK) as processes:
    os.environ["SLURM_CONF"] = f"{WORK}/slurm.conf"
    sick_memgauge(f"{WORK}/sick")
    script(f"{WORK}/unable", "#!/bin/sh\necho 'memgauge: could not measure anything' >&2\nexit 4\n")
    # Each node has its own memgauge: all but one that of this machine.
    script(f"{WORK}/by-node", f'#!/bin/sh\n[ "$SLURMD_NODENAME" = {SICK} ] && exec {WORK}/sick "$@"\nexec {MEMGAUGE} "$@"\n')
    script(f"{WORK}/prolog", f"""#!/bin/sh
export MEMGAUGE={WORK}/by-node MEMGAUGE_STATE={WORK}/state-$SLURMD_NODENAME MEMGAUGE_WITHIN=6s SLURM_CONF={WORK}/slurm.conf
exec {HERE}/memgauge-node-check
""")
    with open(f"{WORK}/slurm.conf", "w") as file:
        file.write(CONF.format(work=WORK, nodes="\n".join(node(i, name) for i, name in enumerate(NODES)), health=""))
    os.mkdir(f"{WORK}/state")
    with open(f"{WORK}/munge.key", "wb") as file:
        file.write(os.urandom(128))
    shutil.chown(f"{WORK}/munge.key", "munge")
    os.chmod(f"{WORK}/munge.key", 0o400)
    shutil.chown(WORK, "munge")
    munge = ["munged", "--foreground", f"--key-file={WORK}/munge.key", f"--socket={WORK}/munge.socket", f"--pid-file={WORK}/munge.pid",
             f"--log-file={WORK}/munge.log", f"--seed-file={WORK}/munge.seed", "--force"]
    processes.start("munged", *munge, user="munge")
    until("munge's socket", lambda: os.path.exists(f"{WORK}/munge.socket"))
    processes.start("slurmctld", "slurmctld", "-D", "-f", f"{WORK}/slurm.conf")
    for name in NODES:
        processes.start(name, "unshare", "-u", "sh", "-c", f"hostname {name}; exec slurmd -D -N {name} -f {WORK}/slurm.conf")
    tests.run(all_nodes_are_idle)
    tests.run(the_prolog_drains_the_sick_node_with_the_reason)
    tests.run(the_health_check_drains_it_too)
    tests.run(a_node_that_cannot_be_measured_is_not_drained)
    tests.run(all_nodes_are_measured_and_the_missing_one_is_told)
    if tests.failed:
        for log in ["slurmctld", *NODES, "munged"]:
            with open(f"{WORK}/{log}.log") as file:
                print(f"-- {log}\n" + "".join(file.readlines()[-12:]))
tests.end()
