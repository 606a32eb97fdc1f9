#!/usr/bin/env python3
"""A Slurm of four nodes on this machine: nodes with sick memory are drained with the reason, all nodes are measured, a missing result is told."""

import glob
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from cluster import NODES, all_nodes_are_idle, need_slurm, reason, show_logs, start_slurm, states
from testing import (MEMGAUGE, SHORT_CHECK, Processes, Tests, altered, folder, outliers, output_of, script, sick_memgauge, steady_memgauge,
                     until)

HERE = os.path.dirname(os.path.abspath(__file__))
# Two whose checks fail, and one whose checks pass though it is slower than its siblings.
SICK, LATER_SICK, SLOW = "n3", "n2", "n4"
# Words that a shell would take apart.
NOTE = """two  words, "quotes" and it's $HOME"""

# What users copy into slurm.conf is what is tried.
with open(f"{HERE}/README.md") as text:
    README = text.read()
HEALTH_CHECK = next(block for block in README.split("```")[1::2] if "HealthCheckProgram" in block).strip().splitlines()

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


def slurmd_itself_runs_the_health_check_which_drains_it_too():
    output_of("scontrol", "update", f"NodeName={SICK}", "State=RESUME")
    until("the node back", lambda: states()[SICK] == "idle")
    # Nobody waits for half a day.
    with open(f"{WORK}/slurm.conf") as file:
        conf = file.read()
    with open(f"{WORK}/slurm.conf", "w") as file:
        file.write(re.sub(r"HealthCheckInterval=\d+", "HealthCheckInterval=2", conf))
    output_of("scontrol", "reconfigure")
    with open(f"{WORK}/checks-health", "w"):
        pass
    until("a drained node", lambda: states()[SICK].startswith("drain") and "30 % below" in reason(SICK), 90)
    until("checks of the others", lambda: set(os.listdir(f"{WORK}/checked-health")) == set(NODES))
    os.remove(f"{WORK}/checks-health")
    # Of all: slurmctld asks for the next check of a node before its last one has ended.
    until("the end of checks", lambda: not glob.glob(f"{WORK}/checking-*"), 90)
    for name in NODES:
        with open(f"{WORK}/checked-health/{name}") as file:
            assert file.read() == "slurmd\n", name
    assert all("drain" not in state for name, state in states().items() if name != SICK), states()


def checked(**settings):
    """The check's status on n4, outside Slurm, with another memgauge; and what it put into the log."""
    log = f"{WORK}/log"
    if os.path.exists(log):
        os.remove(log)
    environment = {**os.environ, "PATH": f"{WORK}/bin:{os.environ['PATH']}", "SLURMD_NODENAME": "n4", "LOG": log, **settings}
    status = subprocess.run([f"{HERE}/memgauge-node-check"], env=environment, capture_output=True, timeout=60).returncode
    assert states()["n4"] == "idle", states()
    with open(log) as file:
        return status, file.read()


def a_node_that_cannot_be_checked_is_not_drained():
    state = f"{WORK}/state-unable"
    os.mkdir(state)
    # What was found yesterday is not what is found today.
    for name in ("check.json", "lock"):
        with open(f"{state}/{name}", "w") as file:
            file.write("ALL WELL")
    os.chmod(f"{state}/lock", 0o644)
    assert checked(MEMGAUGE=f"{WORK}/unable", MEMGAUGE_STATE=state) == (0, "user.notice n4: status 4: memgauge: could not measure anything\n")
    # Nobody else can hold the lock, and so keep nodes from being checked.
    assert os.stat(f"{state}/lock").st_mode & 0o777 == 0o600
    os.remove(f"{state}/lock")
    os.mkdir(f"{state}/lock")
    assert checked(MEMGAUGE=f"{WORK}/unable", MEMGAUGE_STATE=state) == (0, f"user.err n4: NOT CHECKED: {state} cannot be written to\n")

    # The program is not on this node, or the settings are wrong: on all nodes, perhaps.
    state = f"{WORK}/state-missing"
    status, said = checked(MEMGAUGE=f"{WORK}/missing", MEMGAUGE_STATE=state)
    assert status == 0 and said.startswith("user.err n4: NOT CHECKED, ") and "(status 127)" in said, (status, said)
    assert checked(MEMGAUGE=f"{WORK}/refusing", MEMGAUGE_STATE=state) == (
        0, f"user.err n4: NOT CHECKED, {WORK}/refusing is missing or refuses its options (status 64): memgauge: unexpected argument\n")


def where_no_syslog_listens_a_file_says_it():
    state = f"{WORK}/state-without-syslog"
    environment = {**os.environ, "SLURMD_NODENAME": "n4", "MEMGAUGE": f"{WORK}/missing", "MEMGAUGE_STATE": state}
    # Debian's own logger; a socket of the host is hidden behind a file.
    command = f"[ ! -e /dev/log ] || mount --bind /dev/null /dev/log; exec {HERE}/memgauge-node-check"
    done = subprocess.run(["unshare", "--mount", "sh", "-c", command], env=environment, capture_output=True, text=True, timeout=60)
    with open(f"{state}/node-check.log") as file:
        said = file.read()
    for text in (said, done.stderr):
        assert done.returncode == 0 and "n4: NOT CHECKED, " in text and "(status 127)" in text, (done.returncode, said, done.stderr)
    assert " err n4: NOT CHECKED" in said, said


def slurm_starts_with_the_lines_of_the_readme():
    shown = dict(line.split("=", 1) for line in output_of("scontrol", "show", "config").replace(" ", "").splitlines() if "=" in line)
    for line in HEALTH_CHECK:
        name, value = line.split("=")
        assert name == "HealthCheckProgram" or set(shown[name].removesuffix("sec").split(",")) == set(value.split(",")), (line, shown[name])
    # The lines at the head of the script are the same.
    with open(f"{HERE}/memgauge-node-check") as file:
        head = file.read()
    assert "".join(f"#   {line}\n" for line in HEALTH_CHECK) in head, HEALTH_CHECK


def the_command_of_the_readme_shows_the_whole_reason():
    command = re.search(r"`(sinfo -R [^`]+)`", README).group(1).replace("\n", " ")
    assert reason(SICK) in subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60).stdout, command
    assert len(reason(SICK)) > 20, reason(SICK)


def a_node_that_could_not_be_drained_is_not_said_to_be():
    # As in a job, whose node is not asked for.
    failing = {"MEMGAUGE": f"{WORK}/failing", "MEMGAUGE_STATE": f"{WORK}/state-failing", "SLURM_JOB_ID": "1"}
    status, said = checked(**failing, SLURMD_NODENAME="another-name")
    assert status == 1 and said.startswith("user.err another-name: NOT DRAINED, scontrol failed (") and said.endswith("): FAILURE: as it says\n"), (status, said)


def slurms_commands_find_their_settings_themselves():
    # slurmd sets no SLURM_CONF for its HealthCheckProgram, and a node may have no slurm.conf.
    os.mkdir(f"{WORK}/configless")
    script(f"{WORK}/configless/scontrol", '#!/bin/sh\necho "SLURM_CONF is ${SLURM_CONF:-not set}"\nexit 1\n')
    path = f"{WORK}/configless:{WORK}/bin:{os.environ['PATH']}"
    status, said = checked(MEMGAUGE=f"{WORK}/failing", MEMGAUGE_STATE=f"{WORK}/state-failing", SLURM_JOB_ID="1", SLURM_CONF="", PATH=path)
    assert status == 1 and "scontrol failed (SLURM_CONF is not set)" in said, (status, said)


def mistakes_in_the_settings_drain_nothing():
    settings = f"{WORK}/default/memgauge"
    with open(settings) as file:
        right = file.read()
    check = [f"{WORK}/host", "n4", f"{HERE}/memgauge-node-check"]
    # Besides what `sh -n` would find: what ends a shell that reads it.
    for mistake in ("if", ". /missing/file", "export A-B=1", ": ${MISSING:?}", "readonly R=1; R=2", "exit 7"):
        script(settings, f"{mistake}\n")
        log = f"{WORK}/log-of-settings"
        environment = {**os.environ, "PATH": f"{WORK}/bin:{os.environ['PATH']}", "LOG": log, "SLURM_JOB_ID": "1",
                       "MEMGAUGE": f"{WORK}/unable", "MEMGAUGE_STATE": f"{WORK}/state-unable-2", "SLURMD_NODENAME": "n4"}
        status = subprocess.run(check, env=environment, capture_output=True, timeout=60).returncode
        with open(log) as file:
            said = file.read()
        assert status == 0 and said.startswith("user.notice n4: /etc/default/memgauge has an error: not read\n"), (mistake, status, said)
        assert said.endswith("n4: status 4: memgauge: could not measure anything\n"), (mistake, said)
        os.remove(log)
    # These end nothing at once, but would later.
    for option in ("set -u", "set -e"):
        script(settings, f"{option}\n")
        assert subprocess.run(check, env=environment, capture_output=True, timeout=60).returncode == 0, option
        with open(log) as file:
            assert file.read() == "user.notice n4: status 4: memgauge: could not measure anything\n", option
        os.remove(log)
    script(settings, right)


def a_health_check_leaves_running_jobs_alone():
    # As when slurmd is started anew.
    job = output_of("sbatch", "--parsable", "--nodelist", "n1", "--output", "/dev/null", "--wrap", "sleep 600").strip()
    until("a running job", lambda: output_of("squeue", "--noheader", "--states", "running", "--format", "%A").split() == [job])
    settings = {"MEMGAUGE": f"{WORK}/unable", "MEMGAUGE_STATE": f"{WORK}/state-beside", "SLURMD_NODENAME": "n1"}
    assert checked(**settings) == (0, f"user.notice n1: not checked beside running jobs: {job}\n")
    # An Epilog runs in a job of its own.
    assert checked(**settings, SLURM_JOB_ID="1") == (0, "user.notice n1: status 4: memgauge: could not measure anything\n")
    # An answer that does not come is none.
    script(f"{WORK}/no-answer-health", "")
    status, said = checked(**settings)
    assert status == 0 and said.startswith("user.err n1: NOT CHECKED: squeue failed (status 1)"), (status, said)
    output_of("scancel", job)
    until("the job's end", lambda: not output_of("squeue", "--noheader") and states()["n1"] == "idle")


def an_administrators_reason_stays():
    failing = {"MEMGAUGE": f"{WORK}/failing", "MEMGAUGE_STATE": f"{WORK}/state-failing", "SLURMD_NODENAME": "n1"}
    output_of("scontrol", "update", "NodeName=n1", "State=DRAIN", "Reason=waiting for a DIMM; ticket 7")
    # Found again, it is said once.
    for _ in range(2):
        status, said = checked(**failing)
        assert (status, said) == (1, "user.notice n1: drained: FAILURE: as it says\n"), (status, said)
        assert reason("n1") == "waiting for a DIMM; ticket 7; memgauge: FAILURE: as it says", reason("n1")
    output_of("scontrol", "update", "NodeName=n1", "State=RESUME")
    until("the node back", lambda: states()["n1"] == "idle")
    for _ in range(2):
        checked(**failing)
        assert reason("n1") == "memgauge: FAILURE: as it says", reason("n1")
    output_of("scontrol", "update", "NodeName=n1", "State=RESUME")
    until("the node back", lambda: states()["n1"] == "idle")


def nodes_of_a_reservation_are_measured_by_its_name():
    output_of("scontrol", "create", "reservation", "ReservationName=window", "StartTime=now", "Duration=60", "Users=root", "Nodes=n1,n2", "Flags=maint")
    until("maintenance", lambda: states()["n1"] == states()["n2"] == "maint")
    others = {"MEMGAUGE": f"{WORK}/by-node", **os.environ}
    options = ["bandwidth", "--mix", "all-reads", "--size", "16M", "--time", "20ms"]
    run = subprocess.run([f"{HERE}/memgauge-all-nodes", f"{WORK}/reserved", *options], env={**others, "SBATCH_RESERVATION": "window"},
                         capture_output=True, text=True, timeout=120)
    assert run.returncode == 0 and run.stdout.startswith("2 nodes, a task each of job ") and run.stderr == "", (run.returncode, run.stdout, run.stderr)
    assert {name for name in os.listdir(f"{WORK}/reserved") if name.endswith(".json")} == {"n1.json", "n2.json"}
    run = subprocess.run([f"{HERE}/memgauge-all-nodes", f"{WORK}/reserved", *options], env={**others, "SBATCH_RESERVATION": "no-window"},
                         capture_output=True, text=True, timeout=120)
    assert run.returncode == 1 and "no reservation no-window with nodes" in run.stderr, (run.returncode, run.stdout, run.stderr)
    run = subprocess.run([f"{HERE}/memgauge-all-nodes", f"{WORK}/unreserved", *options], env=others, capture_output=True, text=True, timeout=120)
    told = run.stderr.splitlines()
    assert run.returncode == 1 and told[:3] == ["not measured: n1 is maint", "not measured: n2 is maint", f"not measured: {SICK} is drained"], told
    assert told[-1] == f"no result of: n1 n2 {SICK}" and run.stdout.startswith("1 nodes"), (run.stdout, told)
    output_of("scontrol", "delete", "ReservationName=window")
    until("the nodes back", lambda: states()["n1"] == states()["n2"] == "idle")


def all_nodes_are_measured_alone_and_the_missing_one_is_told():
    results, ended = f"{WORK}/results", f"{WORK}/other-job-ended"
    os.mkdir(results)
    with open(f"{results}/{SICK}.json", "w") as file:
        file.write("a result of yesterday")
    # The sick node is back, and nobody knows: the Prolog will find it.
    output_of("scontrol", "update", f"NodeName={SICK}", "State=RESUME")
    output_of("sbatch", "--nodelist", "n1", "--cpus-per-task", "1", "--output", "/dev/null", "--wrap", f"until [ -e {WORK}/go ]; do sleep 0.2; done; date +%s.%N >{ended}")
    until("another job on n1", lambda: states()["n1"] in ("mixed", "allocated"))
    # A job that waits for n1 and n4: n4 is idle, and planned for it.
    output_of("sbatch", "--nodelist", "n1,n4", "--exclusive", "--output", "/dev/null", "--wrap", "true")
    until("a planned node", lambda: states()["n4"] == "planned" and states()[SICK] == "idle")
    # slurmctld does not answer twice.
    for name in ("one", "two"):
        script(f"{WORK}/no-answer-{name}", "")
    environment = {**os.environ, "MEMGAUGE": f"{WORK}/by-node", "PATH": f"{WORK}/bin:{os.environ['PATH']}"}
    options = ["bandwidth", "--mix", "all-reads", "--size", "32M", "--time", "50ms", "--label", f"note={NOTE}"]
    run = subprocess.Popen([f"{HERE}/memgauge-all-nodes", results, *options], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    first = run.stdout.readline()
    # Only now may the other job end: n4 is planned until then.
    with open(f"{WORK}/go", "w"):
        pass
    stdout, stderr = run.communicate(timeout=240)
    # The Prolog drains the sick node, and its task is held for ever.
    told = stderr.splitlines()
    assert run.returncode == 1 and told[-1] == f"no result of: {SICK}", (run.returncode, first, stdout, stderr)
    assert told[0].startswith(f"its task cannot start: {SICK}") and "30 % below" in reason(SICK), (told, reason(SICK))
    assert first.startswith("4 nodes, a task each of job "), first
    assert not [name for name in os.listdir(WORK) if name.startswith("no-answer")], "slurmctld answered always"
    assert output_of("squeue", "--noheader") == ""
    for name in NODES:
        if name != SICK:
            with open(f"{results}/{name}.json") as file:
                saved = json.load(file)["run"]
            assert saved["labels"] == {"slurm-node": name, "note": NOTE} and saved["host"]["hostname"] == name, saved
    # The whole node is its own: on n1 it waited for the other job.
    with open(ended) as file:
        assert os.stat(f"{results}/n1.log").st_mtime >= float(file.read())


def interrupted_it_takes_its_jobs_back():
    # One of them waits, because its node is taken.
    other = output_of("sbatch", "--parsable", "--nodelist", "n4", "--exclusive", "--output", "/dev/null", "--wrap", "sleep 600").strip()
    until("another job on n4", lambda: states()["n4"] == "allocated")
    run = subprocess.Popen([f"{HERE}/memgauge-all-nodes", f"{WORK}/interrupted", "info"], env={**os.environ, "MEMGAUGE": MEMGAUGE},
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    # The Prolog has drained the sick one.
    assert run.stdout.readline().startswith("3 nodes, a task each of job ")
    assert run.stderr.readline().startswith(f"not measured: {SICK} is drain")
    run.terminate()
    assert run.wait(60) == 130
    until("no job but the other", lambda: output_of("squeue", "--noheader", "--format", "%A").split() == [other])


def the_slow_node_is_an_outlier_of_the_fleet_and_the_missing_one_another():
    _, unknown, _ = outliers(f"{WORK}/results", f"{WORK}/small-fleet")
    # Too few siblings to judge by: none of them passes.
    assert unknown == ["n1", "n2", "n4"], unknown
    # Eight more, as of a larger cluster.
    for i in range(5, 13):
        altered(f"{WORK}/results/n1.json", f"{WORK}/results/n{i}.json", 1 + 0.0005 * (i % 5), hostname=f"n{i}")
    slow, unknown, answer = outliers(f"{WORK}/results", f"{WORK}/fleet")
    assert slow == [SLOW] and unknown == [] and answer["hosts"] == 11, (slow, unknown, answer)


tests = Tests("slurm")
with folder() as WORK, Processes(WORK) as processes:
    sick_memgauge(f"{WORK}/sick")
    script(f"{WORK}/unable", "#!/bin/sh\n[ $1 != render ] || exec cat $3\necho 'memgauge: could not measure anything' >&2\nexit 4\n")
    script(f"{WORK}/refusing", "#!/bin/sh\necho 'memgauge: unexpected argument' >&2\nexit 64\n")
    script(f"{WORK}/failing", "#!/bin/sh\n[ $1 = render ] || exit 2\necho 'FAILURE: as it says'\n")
    # Each node has its own memgauge: the sick ones a worse one. The check of the others takes no time.
    script(f"{WORK}/by-node", f"""#!/bin/sh
node=$(hostname)
[ "$node" = {SICK} ] || [ -e "{WORK}/$node-is-sick" ] && exec {WORK}/sick "$@"
[ "$1" != quick ] || [ "$node" = {LATER_SICK} ] || exit 0
exec {WORK}/steady "$@"
""")
    steady_memgauge(f"{WORK}/steady", [SLOW])
    # slurmd starts it as it starts memgauge-node-check itself; here a test can say when it is to check, and see who started it.
    os.mkdir(f"{WORK}/checked-health")
    # Its file is there before it looks whether it may check: none begins once the test has seen no file.
    script(f"{WORK}/health", f"""#!/bin/sh
checking={WORK}/checking-$$ status=0
: >$checking
if [ -e {WORK}/checks-health ]; then
    ps -o comm= -p $PPID >{WORK}/checked-health/$(hostname)
    {HERE}/memgauge-node-check
    status=$?
fi
rm $checking
exit $status
""")
    # The scripts are as in use, with the settings of each node in /etc/default. What they log is kept, and slurmctld does not answer when told so.
    os.mkdir(f"{WORK}/default")
    script(f"{WORK}/default/memgauge", f"""
MEMGAUGE={WORK}/by-node MEMGAUGE_STATE={WORK}/state-$(hostname) SLURM_CONF={WORK}/slurm.conf
MEMGAUGE_WITHIN=60s MEMGAUGE_OPTIONS="{" ".join(SHORT_CHECK)}"
""")
    os.mkdir(f"{WORK}/bin")
    script(f"{WORK}/bin/logger", '#!/bin/sh\nlevel=$4\nshift 6\necho "$level $*" >>"$LOG"\n')
    script(f"{WORK}/bin/squeue", f"""#!/bin/sh
for one in {WORK}/no-answer-*; do
    if [ -e "$one" ]; then
        rm "$one"
        echo "slurm_load_jobs error: Unable to contact slurm controller (connect failure)" >&2
        exit 1
    fi
done
exec {shutil.which("squeue")} "$@"
""")
    check = f"{HERE}/memgauge-node-check"
    start_slurm(WORK, processes, f"Prolog={check}\nPrologFlags=Alloc\nEpilog={check}\nSchedulerParameters=bf_interval=1\n"
                + "\n".join(HEALTH_CHECK).replace("/etc/slurm/memgauge-node-check", f"{WORK}/health"))
    tests.run(all_nodes_are_idle)
    tests.run(slurm_starts_with_the_lines_of_the_readme)
    tests.run(the_prolog_drains_the_sick_node_with_the_reason)
    tests.run(the_epilog_drains_a_node_that_fell_sick_during_a_job)
    tests.run(slurmd_itself_runs_the_health_check_which_drains_it_too)
    tests.run(the_command_of_the_readme_shows_the_whole_reason)
    tests.run(a_node_that_cannot_be_checked_is_not_drained)
    tests.run(where_no_syslog_listens_a_file_says_it)
    tests.run(a_node_that_could_not_be_drained_is_not_said_to_be)
    tests.run(slurms_commands_find_their_settings_themselves)
    tests.run(mistakes_in_the_settings_drain_nothing)
    tests.run(a_health_check_leaves_running_jobs_alone)
    tests.run(an_administrators_reason_stays)
    tests.run(all_nodes_are_measured_alone_and_the_missing_one_is_told)
    tests.run(the_slow_node_is_an_outlier_of_the_fleet_and_the_missing_one_another)
    tests.run(nodes_of_a_reservation_are_measured_by_its_name)
    tests.run(interrupted_it_takes_its_jobs_back)
    if tests.failed:
        show_logs(WORK)
tests.end()
