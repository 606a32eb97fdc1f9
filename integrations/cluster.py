"""A Slurm of four nodes on this machine, for the tests that need one."""

import os
import shutil

from testing import free_ports, host_program, need, need_hosts, output_of, until

NODES = ["n1", "n2", "n3", "n4"]

CONF = """
ClusterName=memgauge
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
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
PropagateResourceLimits=NONE
{settings}
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=60 State=UP OverSubscribe=NO
"""


def need_slurm():
    """Ends the test as not checked where Slurm cannot run."""
    need("slurmctld", "slurmd", "munged", "scontrol", "unshare")
    need_hosts()


def start_slurm(work, processes, settings=""):
    """Starts munge, slurmctld and four slurmd, each with a hostname of its own; until() all nodes are idle."""
    os.environ["SLURM_CONF"] = f"{work}/slurm.conf"
    # What a Slurm around this test has set would reach the jobs.
    for name in [name for name in os.environ if name.startswith(("SBATCH_", "SLURM_")) and name != "SLURM_CONF"]:
        del os.environ[name]
    port, *ports = free_ports(1 + len(NODES))
    nodes = [f"NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={of} CPUs=2 RealMemory=1000 State=UNKNOWN"
             for name, of in zip(NODES, ports)]
    with open(f"{work}/slurm.conf", "w") as file:
        file.write(CONF.format(work=work, port=port, nodes="\n".join(nodes), settings=settings))
    os.mkdir(f"{work}/state")
    with open(f"{work}/munge.key", "wb") as file:
        file.write(os.urandom(128))
    shutil.chown(f"{work}/munge.key", "munge")
    os.chmod(f"{work}/munge.key", 0o400)
    shutil.chown(work, "munge")
    munge = ["munged", "--foreground", f"--key-file={work}/munge.key", f"--socket={work}/munge.socket", f"--pid-file={work}/munge.pid",
             f"--log-file={work}/munge.log", f"--seed-file={work}/munge.seed", "--force"]
    processes.start("munged", *munge, user="munge")
    until("munge's socket", lambda: os.path.exists(f"{work}/munge.socket"))
    processes.start("slurmctld", "slurmctld", "-D", "-f", f"{work}/slurm.conf")
    host = host_program(work)
    processes.before_end.append(end_jobs)
    for name in NODES:
        processes.start(name, host, name, "slurmd", "-D", "-N", name, "-f", f"{work}/slurm.conf")


def end_jobs():
    """Jobs outlive the slurmd that started them."""
    output_of("scancel", "--user", "root")
    until("an empty queue", lambda: not output_of("squeue", "--noheader"), 30)


def states():
    """The state of each node, by name."""
    lines = output_of("sinfo", "--noheader", "--Node", "--format", "%N %T").split("\n")
    return dict(line.split() for line in lines if line)


def reason(node):
    """Why a node is drained."""
    return output_of("sinfo", "--noheader", "--Node", "--nodes", node, "--format", "%E").strip()


def all_nodes_are_idle():
    until("four idle nodes", lambda: len(states()) == len(NODES) and set(states().values()) == {"idle"}, 60)


def show_logs(work):
    """The last lines of what Slurm's programs said."""
    for log in ["slurmctld", *NODES, "munged"]:
        with open(f"{work}/{log}.log") as file:
            print(f"-- {log}\n" + "".join(file.readlines()[-12:]))
