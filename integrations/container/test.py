#!/usr/bin/env python3
"""The image of the static binary by buildah, run by podman and by runc with the security settings of the pod for Kubernetes."""

import contextlib
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from testing import MEMGAUGE, SIMULATED, Tests, folder, host_program, need, need_hosts, outliers, output_of, script, until

HERE = os.path.dirname(os.path.abspath(__file__))
IMAGE = "registry.example/memgauge:latest"
PROGRAM = "/usr/bin/memgauge"
HOSTS, SICK = [f"n{i}" for i in range(1, 10)], "n3"
ARGUMENTS = ["bandwidth", "--mix", "all-reads", "--size", "16M", "--quiet", "--format", "json", "--label", "node=n1"]

need("buildah", "podman", "runc", "catatonit")
need_hosts()


def storage(program, *arguments):
    """A command of buildah or podman on images of this test's own."""
    return [program, "--root", f"{WORK}/store", "--runroot", f"{WORK}/run", "--storage-driver", "vfs", *arguments]


def build():
    return output_of(*storage("buildah", "bud", "--isolation", "chroot", "--timestamp", "0", "--quiet", "--tag", IMAGE, f"{WORK}/image")).strip()


def pod():
    """The pod of Kubernetes' job, which podman can play as well; it measures for ten seconds, in which it is looked at."""
    with open(f"{HERE}/../kubernetes/job.yaml") as file:
        text = file.read()
    template = textwrap.dedent(text.split("\n  template:\n")[1])
    template = template.replace("metadata:\n", "metadata:\n  name: memgauge\n", 1)
    shorter, changed = re.subn(r"args: \[.*\]", f"args: {json.dumps([*ARGUMENTS, '--time', '10s'])}", template)
    assert changed == 1
    return "apiVersion: v1\nkind: Pod\n" + shorter


def check(text):
    """A whole result, with its pages where they were asked for."""
    result = json.loads(text)
    assert result["complete"] and result["run"]["labels"]["node"] == "n1", result["run"]
    for measurement in result["results"]:
        assert measurement["value"] > 0, measurement
        # As verified by the kernel, or with a reason: a place that is neither would be a guess.
        placement = measurement["evidence"]["placement"]
        assert placement["status"] == "verified" or placement.get("reason"), placement
    # The host's names are not the container's to tell.
    assert result["run"]["host"]["machine_id_hash"] is None, result["run"]["host"]


def the_same_binary_is_the_same_image():
    first, second = build(), build()
    assert first == second, (first, second)
    size = json.loads(output_of(*storage("buildah", "images", "--json", IMAGE)))[0]["size"]
    assert abs(float(size.split()[0]) * 1e6 - os.path.getsize(MEMGAUGE)) < 1e5, (size, os.path.getsize(MEMGAUGE))


def podman_plays_the_pod_with_its_settings():
    with open(f"{WORK}/pod.yaml", "w") as file:
        file.write(pod())
    output_of(*storage("podman", "kube", "play", "--quiet", "--network", "none", f"{WORK}/pod.yaml"), cwd=WORK)
    inspect = lambda what: output_of(*storage("podman", "inspect", "--format", what, "memgauge-measure")).strip()
    pid = until("the container's process", lambda: int(inspect("{{.State.Pid}}")), 20)
    with open(f"/proc/{pid}/status") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file)
    with open(f"/proc/{pid}/net/dev") as file:
        interfaces = [line.split(":")[0].strip() for line in file.readlines()[2:]]
    assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == int(status["CapBnd"], 16) == 0, status
    assert status["NoNewPrivs"].strip() == "1" and status["Seccomp"].strip() == "2", status
    assert status["Uid"].split() == ["65534"] * 4 and interfaces == ["lo"], (status["Uid"], interfaces)
    assert inspect("{{.HostConfig.ReadonlyRootfs}}") == "true"
    output_of(*storage("podman", "wait", "memgauge-measure"))
    check(output_of(*storage("podman", "logs", "memgauge-measure")))
    shutil.copy(inspect("{{.OCIConfigPath}}"), f"{WORK}/podman.json")
    output_of(*storage("podman", "kube", "down", f"{WORK}/pod.yaml"), cwd=WORK)


def runc_runs_it_with_the_same_settings():
    bundle = f"{WORK}/bundle"
    os.makedirs(bundle)
    container = output_of(*storage("buildah", "from", IMAGE)).strip()
    shutil.copytree(output_of(*storage("buildah", "mount", container)).strip(), f"{bundle}/rootfs")
    output_of("runc", "spec", cwd=bundle)
    with open(f"{WORK}/podman.json") as file:
        by_podman = json.load(file)
    with open(f"{bundle}/config.json") as file:
        settings = json.load(file)
    for name in ("capabilities", "noNewPrivileges", "user"):
        settings["process"][name] = by_podman["process"].get(name, {})
    for name in ("seccomp", "maskedPaths", "readonlyPaths"):
        settings["linux"][name] = by_podman["linux"][name]
    assert settings["root"]["readonly"] and by_podman["root"]["readonly"] and settings["process"]["noNewPrivileges"]
    assert not any(settings["process"]["capabilities"].values()) and settings["linux"]["seccomp"]["defaultAction"] == "SCMP_ACT_ERRNO"
    assert {"type": "network"} in settings["linux"]["namespaces"]
    settings["process"].update(args=[PROGRAM, *ARGUMENTS], terminal=False, rlimits=[])
    with open(f"{bundle}/config.json", "w") as file:
        json.dump(settings, file)
    check(output_of("runc", "--root", f"{WORK}/runc", "run", "--bundle", bundle, f"memgauge-{os.getpid()}"))


def the_sick_machine_is_named_by_its_siblings():
    options = ["--rm", "--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges", "--network", "none", "--pull", "never"]
    in_container = script(f"{WORK}/in-container", f"""#!/bin/sh
exec {" ".join(storage("podman", "run", *options))} --hostname "$(hostname)" {IMAGE} "$@"
""")
    # What the container printed is altered to be steady, and on one machine worse.
    measured = script(f"{WORK}/measured", SIMULATED.format(memgauge=in_container, sick=[SICK], steady=True))
    host = host_program(WORK)
    os.mkdir(f"{WORK}/results")
    for name in HOSTS:
        with open(f"{WORK}/results/{name}.json", "w") as file:
            status = subprocess.run([host, name, measured, *ARGUMENTS[:5], "--time", "50ms", "--format", "json"], stdout=file).returncode
            assert status == 0, (name, status)
    slow, unknown, answer = outliers(f"{WORK}/results", f"{WORK}/fleet")
    assert slow == [SICK] and unknown == [] and answer["hosts"] == len(HOSTS), (slow, unknown, answer)
    # As the README shows it.
    shown = subprocess.run([MEMGAUGE, "fleet", "outliers", f"{WORK}/fleet"], capture_output=True, text=True).stdout
    with open(f"{HERE}/README.md") as file:
        assert shown.splitlines()[0] in file.read(), shown


def a_result_that_does_not_come_is_a_failure():
    options = ["--rm", "--cap-drop", "all", "--network", "none", "--pull", "never"]
    lacking = subprocess.run(storage("podman", "run", *options, IMAGE, "latency", "--cpu", "9999"), capture_output=True, text=True)
    assert lacking.returncode == 64 and lacking.stdout == "" and "no CPU 9999" in lacking.stderr, (lacking.returncode, lacking.stdout, lacking.stderr)


tests = Tests("container")
with folder() as WORK:
    os.mkdir(f"{WORK}/image")
    shutil.copy(f"{HERE}/Containerfile", f"{WORK}/image")
    shutil.copy(MEMGAUGE, f"{WORK}/image/memgauge")
    os.chmod(f"{WORK}/image/memgauge", 0o755)
    # The limits that podman asks for by itself may be more than a guest's root may set.
    with open(f"{WORK}/containers.conf", "w") as file:
        file.write('[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\n'
                   '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n'
                   f'tmp_dir = "{WORK}/libpod"\n')
    os.environ["CONTAINERS_CONF"] = f"{WORK}/containers.conf"
    try:
        tests.run(the_same_binary_is_the_same_image)
        tests.run(podman_plays_the_pod_with_its_settings)
        tests.run(runc_runs_it_with_the_same_settings)
        tests.run(the_sick_machine_is_named_by_its_siblings)
        tests.run(a_result_that_does_not_come_is_a_failure)
    finally:
        subprocess.run(storage("podman", "pod", "rm", "--all", "--force"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.run(storage("buildah", "rm", "--all"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # The control groups that podman leaves behind, unless others use them.
        for group in glob.glob("/sys/fs/cgroup/libpod_parent") + glob.glob("/sys/fs/cgroup/*/libpod_parent"):
            for path, _, _ in os.walk(group, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(path)
tests.end()
