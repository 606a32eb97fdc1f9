#!/usr/bin/env python3
"""Hosts by local connections: all are measured, the sick one is told, one without a result and one that cannot be reached make the playbook fail."""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from testing import MEMGAUGE, SHORT_CHECK, Tests, folder, host_program, need, need_hosts, script, steady_memgauge

HERE = os.path.dirname(os.path.abspath(__file__))
HOSTS = [f"n{i}" for i in range(1, 13)]
SICK, WITHOUT_RESULT, UNREACHABLE = "n3", "n4", "n5"

need("ansible-playbook", "ssh")
need_hosts()


def play(*options):
    environment = {**os.environ, "ANSIBLE_LOCALHOST_WARNING": "False", "ANSIBLE_NOCOLOR": "1", "ANSIBLE_HOME": f"{WORK}/ansible",
                   "ANSIBLE_PIPELINING": "1", "TMPDIR": f"{WORK}/tmp"}
    # Results go into ./results, where one is.
    command = ["ansible-playbook", "-i", f"{WORK}/inventory", f"{HERE}/measure.yml", "--forks", "5", "-e", "memgauge_hosts=all", "-e", f"memgauge_here={MEMGAUGE}", *options]
    done = subprocess.run(command, cwd=WORK, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL, timeout=300)
    return done.returncode, done.stdout + done.stderr


def all_hosts_are_measured_and_the_missing_ones_are_told():
    # A result of yesterday is none of today.
    os.mkdir(f"{WORK}/results")
    for host in (WITHOUT_RESULT, UNREACHABLE):
        script(f"{WORK}/results/{host}.json", "a result of yesterday")
    status, said = play()
    assert status != 0 and f"no result of {WITHOUT_RESULT}, {UNREACHABLE}" in said, (status, said)
    assert "status 2: memory failed" in said and "UNREACHABLE" in said, said
    # The answer of `fleet outliers`: its first line, and the sick host by name.
    answer = said[said.index("memgauge_outliers.stdout_lines"):].split("\n    ]")[0]
    assert f"1 of {len(HOSTS) - 2} hosts" in answer and SICK in answer and not any(f"{name} " in answer for name in HOSTS if name != SICK), answer
    for host in HOSTS:
        path = f"{WORK}/results/{host}.json"
        if host in (WITHOUT_RESULT, UNREACHABLE):
            assert not os.path.exists(path)
        else:
            with open(path) as file:
                result = json.load(file)
            assert result["run"]["labels"]["inventory"] == host
            assert (result["health"]["status"] == "failure") == (host == SICK)


def some_hosts_with_all_results_pass():
    os.remove(f"{WORK}/n4.memgauge")
    os.symlink(f"{WORK}/n1.memgauge", f"{WORK}/n4.memgauge")
    status, said = play("--limit", "n4", "-e", "memgauge_results=./of-n4")
    assert status == 0 and "all hosts have a result" in said and sorted(os.listdir(f"{WORK}/of-n4")) == ["fleet", "n4.json"], (status, said)


def nothing_is_left_on_the_hosts():
    left = [name for name in os.listdir(f"{WORK}/tmp") if name.startswith("ansible.") and name.endswith("memgauge")]
    assert left == [], left


tests = Tests("ansible")
with folder() as WORK:
    host_program(WORK)
    os.mkdir(f"{WORK}/tmp")
    steady_memgauge(f"{WORK}/steady", [SICK])
    for host in HOSTS:
        script(f"{WORK}/{host}.memgauge", f'#!/bin/sh\nexec {WORK}/host {host} {WORK}/steady "$@"\n')
    script(f"{WORK}/{WITHOUT_RESULT}.memgauge", "#!/bin/sh\nexit 4\n")
    check = ["quick", "--within", "60s", *SHORT_CHECK]
    with open(f"{WORK}/inventory", "w") as file:
        for host in HOSTS:
            # Nothing listens there.
            connection = "ssh ansible_host=127.0.0.1 ansible_port=1" if host == UNREACHABLE else "local"
            file.write(f"{host} ansible_connection={connection} ansible_python_interpreter={sys.executable} memgauge_binary={WORK}/{host}.memgauge "
                       f"memgauge_path={WORK}/{host}.installed memgauge_arguments='" + " ".join(check) + "'\n")
    tests.run(all_hosts_are_measured_and_the_missing_ones_are_told)
    tests.run(some_hosts_with_all_results_pass)
    tests.run(nothing_is_left_on_the_hosts)
tests.end()
