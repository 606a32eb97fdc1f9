#!/usr/bin/env python3
"""Four hosts by local connections: all are measured, the sick one is told, the one without a result makes the playbook fail."""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from testing import SHORT_CHECK, Tests, folder, need, script, sick_memgauge, steady_memgauge

HERE = os.path.dirname(os.path.abspath(__file__))
HOSTS = ["n1", "n2", "n3", "n4"]
SICK, WITHOUT_RESULT = "n3", "n4"

need("ansible-playbook")


def play(*options):
    environment = {**os.environ, "ANSIBLE_LOCALHOST_WARNING": "False", "ANSIBLE_NOCOLOR": "1", "ANSIBLE_HOME": f"{WORK}/ansible",
                   "ANSIBLE_PIPELINING": "1"}
    command = ["ansible-playbook", "-i", f"{WORK}/inventory", "measure.yml", "--forks", "4", "-e", f"memgauge_results={WORK}/results", *options]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL, timeout=300)
    return done.returncode, done.stdout + done.stderr


def all_hosts_are_measured_and_the_missing_one_is_told():
    status, said = play()
    assert status != 0 and f"no result of {WITHOUT_RESULT}" in said, (status, said)
    assert "status 2: memory failed" in said, said
    for host in HOSTS:
        path = f"{WORK}/results/{host}.json"
        if host == WITHOUT_RESULT:
            assert not os.path.exists(path)
        else:
            with open(path) as file:
                result = json.load(file)
            assert result["run"]["labels"]["inventory"] == host
            assert (result["health"]["status"] == "failure") == (host == SICK)


def a_fleet_with_all_results_passes():
    os.remove(f"{WORK}/n4.memgauge")
    os.symlink(f"{WORK}/n1.memgauge", f"{WORK}/n4.memgauge")
    status, said = play("--limit", "n4,localhost")
    assert status == 0 and "all hosts have a result" in said, (status, said)


def nothing_is_left_on_the_hosts():
    left = [name for name in os.listdir("/tmp") if name.startswith("ansible.") and name.endswith("memgauge")]
    assert left == [], left


tests = Tests("ansible")
with folder() as WORK:
    steady_memgauge(f"{WORK}/n1.memgauge", [])
    os.symlink(f"{WORK}/n1.memgauge", f"{WORK}/n2.memgauge")
    sick_memgauge(f"{WORK}/n3.memgauge")
    script(f"{WORK}/n4.memgauge", "#!/bin/sh\nexit 4\n")
    check = ["quick", "--within", "60s", *SHORT_CHECK]
    with open(f"{WORK}/inventory", "w") as file:
        for host in HOSTS:
            file.write(f"{host} ansible_connection=local ansible_python_interpreter={sys.executable} memgauge_binary={WORK}/{host}.memgauge "
                       f"memgauge_path={WORK}/{host}.installed memgauge_arguments='" + " ".join(check) + "'\n")
    tests.run(all_hosts_are_measured_and_the_missing_one_is_told)
    tests.run(a_fleet_with_all_results_passes)
    tests.run(nothing_is_left_on_the_hosts)
tests.end()
