"""The kubectl of the test: it keeps nodes, jobs and logs in a folder, runs a job's command at once, records what it was asked, and fails when told so.

A control plane cannot be had from packages. So what a cluster would answer is this file's word; what kubectl itself makes of the commands for
labels and conditions is checked with a real kubectl where there is one (kubectl --local needs no cluster).
"""

import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from testing import SHORT_CHECK

FOLDER, MEMGAUGE = os.environ["STUB_FOLDER"], os.environ["STUB_MEMGAUGE"]
# The real one, on PATH, for the tests that look at what it makes of a change.
REAL = shutil.which("kubectl") if "STUB_CHANGES" in os.environ else None


def load(name):
    with open(f"{FOLDER}/{name}") as file:
        return json.load(file)


def store(name, value):
    with open(f"{FOLDER}/{name}", "w") as file:
        json.dump(value, file)


def create(manifest):
    import yaml

    job = yaml.safe_load(manifest)
    pod = job["spec"]["template"]["spec"]
    terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    node = terms[0]["matchFields"][0]["values"][0]
    jobs = load("jobs.json")
    name = f"{job['metadata']['generateName']}{len(jobs):05}"
    # As short as it may be.
    command = [MEMGAUGE.replace("NODE", node), *pod["containers"][0]["args"], *SHORT_CHECK]
    run = subprocess.run([f"{FOLDER}/host", f"{name}-x7k2p", *command], capture_output=True, text=True)
    outcome = "Failed" if run.returncode else "Complete"
    store("jobs.json", [*jobs, {"metadata": {"name": name}, "status": {"conditions": [{"type": outcome, "status": "True"}]}}])
    store(f"job.batch-{name}.log", run.stdout + run.stderr)
    print(f"job.batch/{name}")


def change(arguments):
    """Labels or patches a node: by the real kubectl, if there is one."""
    name = arguments[2]
    nodes = load("nodes.json")
    node = next(one for one in nodes["items"] if one["metadata"]["name"] == name)
    if REAL is None:
        print(f"node/{name} changed")
        return
    store("node.json", node)
    local = [arguments[0], "--local", "-f", f"{FOLDER}/node.json", *arguments[3:], "-o", "json"]
    node.update(json.loads(subprocess.run([REAL, *local], capture_output=True, text=True, check=True).stdout))
    store("nodes.json", nodes)


first, *arguments = sys.argv[1:]
if first != "--request-timeout=60s":
    sys.exit("error: a request without a limit of its time")
with open(f"{FOLDER}/requests.jsonl", "a") as file:
    file.write(json.dumps(arguments) + "\n")
# What the API does not answer, once each.
failing = load("failing.json") if os.path.exists(f"{FOLDER}/failing.json") else []
for words in failing:
    if all(word in arguments for word in words):
        store("failing.json", [other for other in failing if other != words])
        sys.exit("Error from server (Timeout): the server was unable to return a response in the time allotted")
if arguments[:2] == ["-n", "memgauge"]:
    arguments = arguments[2:]
match arguments:
    case ["get", "nodes", *_]:
        print(json.dumps(load("nodes.json")))
    case ["get", "jobs", *_]:
        print(json.dumps({"items": load("jobs.json")}))
    case ["get", "pods", *_]:
        print(json.dumps(load("pods.json")))
    case ["logs", name, *_]:
        print(load(f"{name.replace('/', '-')}.log"), end="")
    case ["create", "-o", "name", "-f", "-"]:
        create(sys.stdin.read())
    case ["delete", "--wait=false", _]:
        pass
    case ["label" | "patch", "node", *_]:
        change(arguments)
    case _:
        sys.exit(f"error: this kubectl does not know {arguments}")
