"""What the experiments share: building memgauge, its JSON, and loops that keep CPUs busy."""

import json
import os
import signal
import subprocess
import time

# A loop is busy for its share of this, and sleeps for the rest.
PERIOD = 0.01


class Failed(Exception):
    """An experiment cannot go on; what to say of it."""


def build():
    """Builds memgauge as its users have it, so that debug builds are never measured."""
    project = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    subprocess.run(["cargo", "build", "--release", "--bin", "memgauge"], cwd=project, check=True)
    return os.path.join(project, os.environ.get("CARGO_TARGET_DIR", "target"), "release/memgauge")


def report(memgauge, words):
    """What memgauge prints as JSON."""
    output = subprocess.run([memgauge, *words, "--format", "json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        return json.loads(output.stdout)
    except ValueError:
        raise Failed(f"memgauge {' '.join(words)} printed no JSON: {output.stderr.decode(errors='replace').strip()}") from None


class Loops:
    """Processes that keep each CPU which this one may use busy for a share of the time, while a `with` lasts."""

    def __init__(self, percent):
        self.on, self.children = PERIOD * percent / 100, []

    def __enter__(self):
        for cpu in os.sched_getaffinity(0) if self.on else []:
            child = os.fork()
            if child == 0:
                self.keep_busy(cpu)
            self.children.append(child)

    def keep_busy(self, cpu):
        """Never returns: its parent ends it, and the kernel does where that has died."""
        try:
            os.sched_setaffinity(0, [cpu])
            parent = os.getppid()
            while os.getppid() == parent:
                begin = time.monotonic()
                while time.monotonic() - begin < self.on:
                    pass
                time.sleep(PERIOD - self.on)
        finally:
            os._exit(0)

    def __exit__(self, *_):
        for child in self.children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
