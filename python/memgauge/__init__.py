"""Measure this machine's memory, and read saved results.

    import memgauge

    result = memgauge.run("bandwidth", "--mix", "all-reads")
    for m in result.measurements:
        print(m.experiment, m.value, m.unit, m.quality)
    table = result.to_dataframe()        # needs pandas

The package brings the program `memgauge` itself; its options are those of the command line (`memgauge --help`).
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from typing import TYPE_CHECKING, Any, Mapping, Optional, Union

if TYPE_CHECKING:
    import pandas

__all__ = ["Error", "Measurement", "Result", "load", "program", "run"]
__version__ = "VERSION"

_Path = Union[str, "os.PathLike[str]"]
# Commands that write no result, or, as `count`, not where it would be read. `quick`, which does, is not among them.
_WITHOUT_RESULT = ("advise", "compare", "count", "fleet", "mlc", "reference", "render", "report")


class Error(Exception):
    """The program wrote no result.

    `status` is its exit status (64: the command line is wrong, 4: nothing could be measured), `message` what it said.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message or f"memgauge ended with status {status}")
        self.status = status
        self.message = message


@dataclasses.dataclass(frozen=True)
class Measurement:
    """One number of a result, with how far to trust it."""

    experiment: str
    metric: str
    #: ns, GB/s or another unit in words
    unit: str
    #: The median; `None` where it could not be measured, and `not_measured` says why.
    value: Optional[float]
    #: The 95 % interval of the median.
    low: Optional[float]
    high: Optional[float]
    #: good, degraded or unreliable; none where there is no value
    quality: str
    #: Why there is no value, in a word that does not change, such as out-of-time; `data["not_measured"]` has what belongs to it
    not_measured: Optional[str]
    #: CPUs, node, mix, size …: where it stands
    at: Mapping[str, Any]
    #: All that the result has of it
    data: Mapping[str, Any] = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True)
class Result:
    """A result, as `--format json` writes it (schema/result.schema.json)."""

    #: The whole result
    data: Mapping[str, Any] = dataclasses.field(repr=False)
    #: The program's exit status: 0 all measured; others as `memgauge --help` and `memgauge quick --help` say. `None`: it was loaded
    status: Optional[int] = None

    @property
    def complete(self) -> bool:
        """Whether everything that was planned was measured."""
        return bool(self.data["complete"])

    @property
    def measurements(self) -> list[Measurement]:
        """All numbers, in the order of the run."""
        return [_measurement(m) for m in self.data.get("results", ())]

    @property
    def summary(self) -> Mapping[str, Any]:
        """The numbers that most readers look for."""
        return self.data.get("summary") or {}

    @property
    def health(self) -> Optional[Mapping[str, Any]]:
        """The verdict of `memgauge quick`: `status` and `findings`."""
        return self.data.get("health")

    def to_dataframe(self) -> "pandas.DataFrame":
        """A row for each number, with the columns of `--format csv`. Needs pandas."""
        import pandas

        rows = _call("render", "-", "--format", "csv", given=json.dumps(self.data))
        if rows.returncode:
            raise Error(rows.returncode, _said(rows.stderr, rows.returncode))
        return pandas.read_csv(io.StringIO(rows.stdout), float_precision="round_trip")

    def save(self, path: _Path) -> None:
        """Writes the result as JSON, for `load` and for `memgauge render`."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.data, file)
            file.write("\n")


def program() -> str:
    """The path of the program: the one that was installed with this module, else the one on PATH.

    The variable MEMGAUGE names another one.
    """
    named = os.environ.get("MEMGAUGE")
    if named:
        return named
    installed = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    # Beside this module: `pip install --target FOLDER` puts programs into FOLDER/bin.
    folders = [os.path.join(installed, "bin")]
    # That of `pip install --user`, of Debian's pip, and of this environment: first where this module is.
    names = [name for name in ("posix_user", "posix_local") if name in sysconfig.get_scheme_names()]
    schemes = [sysconfig.get_paths(name) for name in names] + [sysconfig.get_paths()]
    schemes.sort(key=lambda paths: installed not in (paths["purelib"], paths["platlib"]))
    folders.extend(paths["scripts"] for paths in schemes)
    for folder in folders:
        path = os.path.join(folder, "memgauge")
        if os.access(path, os.X_OK):
            return path
    found = shutil.which("memgauge")
    if found is None:
        raise FileNotFoundError(f"there is no program memgauge in {', '.join(folders)} or on PATH; install this package again")
    return found


def run(*arguments: str, timeout: Optional[float] = None) -> Result:
    """Runs the program with these arguments, such as "latency", "--matrix", and returns its result.

    Without arguments the whole machine is measured. What could be measured only in part is a result too: see `Result.status` and
    `Result.complete`. After `timeout` seconds the program is interrupted; what it measured until then is the result.

    Raises `Error` where there is no result, and `ValueError` for a command that writes none.
    """
    if arguments and arguments[0] in _WITHOUT_RESULT:
        raise ValueError(f"memgauge {arguments[0]} writes no result to read here; run it as a program: {program()}")
    # It shows nothing anyway; and where a file is named too, it would keep the result from here.
    arguments = tuple(a for a in arguments if a not in ("-q", "--quiet"))
    done = _call(*arguments, "--format", "json", timeout=timeout)
    try:
        data = json.loads(done.stdout)
    except json.JSONDecodeError:
        raise Error(done.returncode, _said(done.stderr, done.returncode)) from None
    if not _is_result(data):
        raise ValueError(f"memgauge {' '.join(arguments)} writes no result; run it as a program: {program()}")
    return Result(data, done.returncode)


def load(path: _Path) -> Result:
    """Reads a result that was saved as JSON."""
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    if not _is_result(data):
        raise ValueError(f"{os.fspath(path)}: is no result of memgauge")
    return Result(data)


def _is_result(data: Any) -> bool:
    return isinstance(data, dict) and "schema_version" in data and "complete" in data


def _measurement(data: Mapping[str, Any]) -> Measurement:
    return Measurement(
        experiment=data["experiment"],
        metric=data["metric"],
        unit=data["unit"],
        value=data.get("value"),
        low=data.get("ci95_low"),
        high=data.get("ci95_high"),
        quality=data["quality"]["level"],
        not_measured=(data.get("not_measured") or {}).get("cause"),
        at=data["at"],
        data=data,
    )


def _call(*arguments: str, given: Optional[str] = None, timeout: Optional[float] = None) -> subprocess.CompletedProcess[str]:
    """Runs the program to its end. Time that is over interrupts it, so that it still writes what it has."""
    command = [program(), *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="replace") as process:
        try:
            out, said = process.communicate(given, timeout)
        except subprocess.TimeoutExpired:
            process.terminate()
            out, said = process.communicate()
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, said)


def _said(text: str, status: int) -> str:
    """The program's message without its name: the first of a command line that is wrong, else the last, which is why it ended."""
    lines = text.strip().splitlines() or [""]
    messages = [line for line in lines if line.startswith("memgauge: ")]
    line = messages[-1] if messages and status != 64 else lines[0]
    for start in ("memgauge: ", "error: "):
        if line.startswith(start):
            line = line[len(start):]
    return line


def _main() -> None:
    """`python -m memgauge`."""
    path = program()
    os.execv(path, [path, *sys.argv[1:]])
