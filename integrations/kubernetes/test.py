#!/usr/bin/env python3
"""The manifests by kubernetes-validate, and memgauge-nodes with a kubectl that records what it is asked: sick, missing and slow nodes get labels."""

import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from testing import NOT_INSTALLED, Tests, altered, folder, host_program, need_hosts, outliers, output_of, script, sick_memgauge, steady_memgauge

HERE = os.path.dirname(os.path.abspath(__file__))
SICK, WITHOUT_RESULT, NOT_READY = "n2", "n3", "n4"
FLEET = [f"n{i}" for i in range(1, 13)]

try:
    import kubernetes_validate
    import yaml
except ImportError:
    print("not installed: kubernetes-validate")
    sys.exit(NOT_INSTALLED)
need_hosts()


def manifests():
    for name in sorted(os.listdir(HERE)):
        if name.endswith(".yaml"):
            with open(f"{HERE}/{name}") as file:
                yield from ((name, document) for document in yaml.safe_load_all(file))


def pods():
    """Every pod that the manifests make."""
    return [document["spec"]["template"]["spec"] for _, document in manifests() if "template" in document.get("spec", {})]


def the_manifests_are_valid():
    kinds = []
    for _, document in manifests():
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
        kinds.append(document["kind"])
    assert sorted(kinds) == ["DaemonSet", "Job", "Namespace", "NetworkPolicy"], kinds
    # The validation is one that can fail.
    wrong = next(document for _, document in manifests() if document["kind"] == "Job")
    wrong["spec"]["template"]["spec"]["containers"][0]["securityContext"]["readOnlyRootFilesytem"] = True
    try:
        kubernetes_validate.validate(wrong, kubernetes_validate.latest_version(), strict=True)
    except kubernetes_validate.ValidationError:
        return
    raise AssertionError("a misspelled field is valid")


def the_pods_have_no_privileges():
    assert len(pods()) == 2
    for pod in pods():
        assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, pod
        assert pod["automountServiceAccountToken"] is False and "hostNetwork" not in pod, pod
        assert all(set(volume) == {"name", "emptyDir"} for volume in pod.get("volumes", [])), pod["volumes"]
        for container in pod["containers"] + pod.get("initContainers", []):
            wanted = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
            assert container["securityContext"] == wanted, container
            assert "limits" not in container.get("resources", {}), container


def a_node_of_the_daemonset_is_measured_once_whatever_was_found():
    pod = next(document["spec"]["template"]["spec"] for _, document in manifests() if document["kind"] == "DaemonSet")
    measure = pod["initContainers"][-1]
    assert pod["initContainers"][0]["command"] == ["cp", "/bin/busybox", "/shell/busybox"] and measure["command"][:2] == ["/shell/busybox", "sh"]
    program = script(f"{WORK}/in-part", "#!/bin/sh\necho \"$*\"\nexit 1\n")
    command = ["sh", *measure["command"][2:], program, *measure["args"][1:]]
    done = subprocess.run(command, capture_output=True, text=True)
    # Another status would start it again, for ever.
    assert measure["args"][0] == "/usr/bin/memgauge" and done.returncode == 0 and done.stdout.split() == measure["args"][1:], (command, done)


def memgauge_nodes(*arguments, **settings):
    environment = {**settings, **os.environ, "KUBECTL": f"{WORK}/stub-kubectl", "STUB_FOLDER": WORK, "STUB_MEMGAUGE": f"{WORK}/NODE.memgauge"}
    return subprocess.run([f"{HERE}/memgauge-nodes", *arguments], env=environment, capture_output=True, text=True, timeout=240)


def save(name, value):
    with open(f"{WORK}/{name}", "w") as file:
        json.dump(value, file)


def cluster(names):
    """Nodes as a cluster has them, all but one of them ready."""
    ready = lambda name: [{"type": "Ready", "status": "False" if name == NOT_READY else "True"}]
    one = lambda name: {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"conditions": ready(name)}}
    save("nodes.json", {"items": [one(name) for name in names]})
    save("jobs.json", [])


def nodes_now():
    with open(f"{WORK}/nodes.json") as file:
        return json.load(file)["items"]


def requests(verb):
    with open(f"{WORK}/requests.jsonl") as file:
        return [asked for asked in map(json.loads, file) if verb in asked[:3]]


def every_ready_node_is_measured_and_the_missing_ones_are_named():
    cluster(["n1", SICK, WITHOUT_RESULT, NOT_READY])
    # The API fails once at each step.
    save("failing.json", [["get", "jobs"], ["logs", "job.batch/memgauge-00000"], ["delete", "job.batch/memgauge-00001"]])
    run = memgauge_nodes("measure", f"{WORK}/results", "--image", "registry.test/memgauge:1")
    assert run.returncode == 1 and run.stderr.endswith(f"no result of: {WITHOUT_RESULT} {NOT_READY}\n"), (run.returncode, run.stdout, run.stderr)
    assert f"{NOT_READY}: not ready" in run.stderr and f"{WITHOUT_RESULT}: no result, but: memgauge: no CPU may be used" in run.stderr, run.stderr
    assert sorted(os.listdir(f"{WORK}/results")) == ["n1.json", f"{SICK}.json"]
    with open(f"{WORK}/results/n1.json") as file:
        saved = json.load(file)["run"]
    assert run.stderr.count("Error from server (Timeout)") == 3, run.stderr
    # Not the pod's name.
    assert saved["host"]["hostname"] == "n1" and saved["labels"] == {"node": "n1"}, saved
    # No job is left over.
    assert len(requests("create")) == 3 and [asked[-1] for asked in requests("delete")] == [f"job.batch/memgauge-{i:05}" for i in range(3)]


def nodes_get_a_label_and_a_condition():
    # An autoscaler has removed the first node since the nodes were listed.
    nodes = nodes_now()
    save("nodes.json", {"items": [*nodes, {**nodes[0], "metadata": {"name": "a0"}}]})
    save("failing.json", [["label", "a0"]])
    # It was well until it was no longer ready.
    shutil.copy(f"{WORK}/results/n1.json", f"{WORK}/results/{NOT_READY}.json")
    run = memgauge_nodes("label", f"{WORK}/results", STUB_CHANGES="1")
    assert run.returncode == 1 and run.stderr.startswith("a0: kubectl label node a0"), (run.returncode, run.stdout, run.stderr)
    save("nodes.json", {"items": [node for node in nodes_now() if node["metadata"]["name"] != "a0"]})
    labels = {asked[2]: asked[3] for asked in requests("label")}
    wanted = {"a0": "unknown", "n1": "ok", SICK: "failure", WITHOUT_RESULT: "unknown", NOT_READY: "unknown"}
    assert labels == {name: f"memgauge/memory={value}" for name, value in wanted.items()}, labels
    told = {asked[2]: json.loads(asked[-1])["status"]["conditions"][0] for asked in requests("patch")}
    assert {name: (one["status"], one["reason"]) for name, one in told.items()} == {
        "n1": ("False", "MemoryAsItShouldBe"), SICK: ("True", "SlowerThanBefore"), WITHOUT_RESULT: ("Unknown", "NoResult"),
        NOT_READY: ("Unknown", "NodeNotReady")}, told
    assert "30 % below" in told[SICK]["message"], told[SICK]


def kubectl_itself_makes_that_of_it():
    if shutil.which("kubectl") is None:
        print("not checked: what kubectl makes of a label and a condition, because it is not installed")
        return
    sick = next(node for node in nodes_now() if node["metadata"]["name"] == SICK)
    assert sick["metadata"]["labels"] == {"memgauge/memory": "failure"}, sick
    conditions = {one["type"]: one for one in sick["status"]["conditions"]}
    # The kubelet's own conditions stay.
    assert set(conditions) == {"Ready", "MemgaugeMemoryProblem"}, conditions
    # Said again, it is a problem since the same time.
    conditions["MemgaugeMemoryProblem"]["lastTransitionTime"] = "2020-01-01T00:00:00Z"
    sick["status"]["conditions"] = list(conditions.values())
    save("nodes.json", {"items": [sick]})
    memgauge_nodes("label", f"{WORK}/results")
    again = json.loads(requests("patch")[-1][-1])["status"]["conditions"][0]
    assert again["lastTransitionTime"] == "2020-01-01T00:00:00Z" < again["lastHeartbeatTime"], again


def slow_nodes_of_the_daemonset_are_labelled_by_the_fleet():
    cluster([name for name in FLEET if name != NOT_READY])
    output_of(f"{WORK}/n1.memgauge", "bandwidth", "--mix", "all-reads", "--size", "16M", "--time", "50ms", "-q", "-o", f"{WORK}/one.json")
    items = []
    for i, name in enumerate(FLEET):
        altered(f"{WORK}/one.json", f"{WORK}/altered.json", (0.7 if name == SICK else 1.0) * (1 + 0.0005 * (i % 5)), hostname=f"memgauge-{i:05}")
        with open(f"{WORK}/altered.json") as file:
            save(f"memgauge-{i:05}.log", file.read() if name != WITHOUT_RESULT else "memgauge: no CPU may be used\n")
        items.append({"metadata": {"name": f"memgauge-{i:05}"}, "spec": {"nodeName": name}})
    save("pods.json", {"items": items})
    run = memgauge_nodes("collect", f"{WORK}/collected")
    assert run.returncode == 1 and f"no result of: {WITHOUT_RESULT}" in run.stderr, (run.returncode, run.stderr)
    _, _, answer = outliers(f"{WORK}/collected", f"{WORK}/fleet")
    save("outliers.json", answer)
    run = memgauge_nodes("label", f"{WORK}/collected", "--outliers", f"{WORK}/outliers.json")
    said = {line.split()[0]: line.split()[1] for line in run.stdout.splitlines()}
    wanted = {SICK: "slow", WITHOUT_RESULT: "unknown"}
    assert run.returncode == 1 and said == {name: wanted.get(name, "ok") for name in FLEET if name != NOT_READY}, (said, run.stderr)


tests = Tests("kubernetes")
with folder() as WORK:
    host_program(WORK)
    script(f"{WORK}/stub-kubectl", f"#!/bin/sh\nexec {sys.executable} {HERE}/stub_kubectl.py \"$@\"\n")
    steady_memgauge(f"{WORK}/n1.memgauge", [])
    sick_memgauge(f"{WORK}/{SICK}.memgauge")
    script(f"{WORK}/{WITHOUT_RESULT}.memgauge", "#!/bin/sh\necho 'memgauge: no CPU may be used' >&2\nexit 4\n")
    tests.run(the_manifests_are_valid)
    tests.run(the_pods_have_no_privileges)
    tests.run(a_node_of_the_daemonset_is_measured_once_whatever_was_found)
    tests.run(every_ready_node_is_measured_and_the_missing_ones_are_named)
    tests.run(nodes_get_a_label_and_a_condition)
    tests.run(kubectl_itself_makes_that_of_it)
    tests.run(slow_nodes_of_the_daemonset_are_labelled_by_the_fleet)
tests.end()
