#!/usr/bin/env python3
"""Installs a wheel into a fresh virtual environment and uses it there, with pandas.

    python3 python/test.py dist/memgauge-0.1.0-py3-none-….whl

`cargo xtask dist --check` runs it. Lines as in integrations/testing.py; what cannot be had is named.
"""

import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integrations"))
from testing import Tests, output_of

USE = """
import fcntl, json, os, sys
import memgauge
from memgauge import Error, Measurement, Result

folder = sys.argv[1]
result = memgauge.run("latency", "--size", "1M", "--time", "40ms")
assert isinstance(result, Result) and result.status in (0, 1), result
assert result.measurements, "no measurements"
m = result.measurements[0]
assert isinstance(m, Measurement) and (m.experiment, m.metric, m.unit) == ("idle-latency", "latency", "ns"), m
assert m.low is None or m.low <= m.value <= m.high, m
assert m.quality in ("good", "degraded", "unreliable"), m
assert "idle_latency_local_ns" in result.summary and result.health is None

path = os.path.join(folder, "result.json")
result.save(path)
assert memgauge.load(path).measurements == result.measurements
other = os.path.join(folder, "other.json")
quiet = memgauge.run("latency", "--size", "1M", "--time", "40ms", "-q", "-o", other)
assert quiet.measurements == memgauge.load(other).measurements
lacking = dict(result.data["results"][0], value=None, quality={"level": "none", "reasons": []})
lacking["not_measured"] = {"cause": "no-memory", "detail": "node 1 has 12 MiB free"}
lost = Result({**result.data, "results": [lacking]}).measurements[0]
assert (lost.value, lost.quality, lost.not_measured) == (None, "none", "no-memory"), lost
try:
    memgauge.load(memgauge.__file__)
except ValueError:
    pass
else:
    raise AssertionError("a file that is no result was loaded")

for wrong, status in ((("latency", "--sise", "1M"), 64), (("latency", "--size", "1"), 64)):
    try:
        memgauge.run(*wrong)
    except Error as error:
        assert error.status == status and error.message and not error.message.startswith("error"), (error.status, error.message)
    else:
        raise AssertionError(wrong)
for wrong in (("render", path), ("count", "--", "true"), ("quick", "--plan")):
    try:
        memgauge.run(*wrong)
    except ValueError as error:
        assert wrong[0] in str(error)
    else:
        raise AssertionError(f"{wrong} has no result")

# The last message says why it ended; the first is that it waits.
state = os.path.join(folder, "state")
os.mkdir(state, 0o700)
with open(os.path.join(state, "lock"), "w") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        memgauge.run("quick", "--state", state, "--lock-wait", "300ms")
    except Error as error:
        assert error.status == 4 and "has not ended in 0.3 s" in error.message, error.message
    else:
        raise AssertionError("two checks at once")

# Results are UTF-8, whatever the locale.
labelled = memgauge.run("info", "--label", os.fsdecode("place=Köln µ".encode()))
assert labelled.data["run"]["labels"] == {"place": "Köln µ"}, labelled.data["run"]

stopped = memgauge.run("latency", "--time", "60s", timeout=3)
assert stopped.status == 130 and not stopped.complete, stopped.status
print(json.dumps({"program": memgauge.program(), "version": memgauge.__version__}))
"""

TABLE = """
import sys
import memgauge
table = memgauge.run("bandwidth", "--mix", "all-reads,2:1", "--size", "1M", "--time", "40ms").to_dataframe()
assert set(table.mix) == {"all-reads", "2:1"}, table
assert set(table.unit) == {"GB/s"} and table.value.dtype == float, table[["unit", "value"]]
assert ((table.low <= table.high) | table.low.isna()).all(), table[["low", "high"]]
"""


def venv_program(venv, name):
    return os.path.join(venv, "bin", name)


def module_is_usable(venv, work, version):
    use = os.path.join(work, "use.py")
    with open(use, "w", encoding="utf-8") as file:
        file.write(USE)
    # Without the modes that make Python use UTF-8 in this locale.
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    seen = json.loads(output_of(venv_program(venv, "python"), use, work, env=environment))
    assert os.path.realpath(seen["program"]) == os.path.realpath(venv_program(venv, "memgauge")), seen
    assert seen["version"] == version, seen


def program_is_installed(venv, version):
    assert output_of(venv_program(venv, "memgauge"), "--version").startswith(f"memgauge {version} (")
    assert output_of(venv_program(venv, "python"), "-m", "memgauge", "--version").startswith(f"memgauge {version} (")


def table_is_made(venv):
    output_of(venv_program(venv, "python"), "-c", TABLE)


def types_are_right(venv, work):
    use = os.path.join(work, "use.py")
    with open(use, "w") as file:
        file.write('import memgauge\nvalue: float | None = memgauge.run("info").measurements[0].value\nreveal_type(memgauge.load("x"))\n')
    strict = [venv_program(venv, "mypy"), "--strict", "--cache-dir", os.path.join(work, "mypy")]
    said = output_of(*strict, use, cwd=work)
    # The module itself, by its name: by its path, what is installed beside it would be taken for parts of it.
    output_of(*strict, "-p", "memgauge", cwd=work)
    assert 'Revealed type is "memgauge.Result"' in said or "memgauge.Result" in said, said


def nothing_is_left(venv):
    output_of(venv_program(venv, "python"), "-m", "pip", "uninstall", "-q", "-y", "memgauge")
    left = [os.path.join(folder, name) for folder, names, files in os.walk(venv) for name in names + files if "memgauge" in name]
    assert not left, left


def can_install(venv, package):
    pip = [venv_program(venv, "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]
    done = subprocess.run(pip, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        print(f"not checked: with {package}, which cannot be had here: {done.stderr.strip().splitlines()[-1:]}")
    return done.returncode == 0


def main():
    wheel = os.path.abspath(sys.argv[1])
    version = os.path.basename(wheel).split("-")[1]
    tests = Tests("wheel")
    with tempfile.TemporaryDirectory(prefix="memgauge-wheel-") as work:
        venv = os.path.join(work, "venv")
        output_of(sys.executable, "-m", "venv", venv)
        output_of(venv_program(venv, "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", wheel)
        tests.run(program_is_installed, venv, version)
        tests.run(module_is_usable, venv, work, version)
        if can_install(venv, "pandas"):
            tests.run(table_is_made, venv)
        # The module's types name pandas.
        if "--types" in sys.argv and can_install(venv, "mypy") and can_install(venv, "pandas-stubs"):
            tests.run(types_are_right, venv, work)
        tests.run(nothing_is_left, venv)
    tests.end()


main()
