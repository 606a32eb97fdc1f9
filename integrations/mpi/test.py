#!/usr/bin/env python3
"""Ranks of Open MPI on this machine, each on a host with a name of its own: in turn, together, one sick, one without a result."""

import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from testing import MEMGAUGE, NOT_INSTALLED, Tests, folder, host_program, need, need_hosts, outliers, output_of, script, steady_memgauge

HERE = os.path.dirname(os.path.abspath(__file__))
RANKS = 10
SICK, WITHOUT_RESULT = 3, 7
SHORT = ["bandwidth", "--mix", "all-reads", "--size", "16M", "--time", "50ms"]

need("mpirun", "flock")
need_hosts()
if "Open MPI" not in subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout:
    print("not installed: Open MPI (there is another mpirun)")
    sys.exit(NOT_INSTALLED)


def mpirun(*command, **settings):
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "TMPDIR": WORK, **settings}
    return output_of("mpirun", *command, env=environment, timeout=240)


def ranks(of):
    """What memgauge-ranks says: its status, its lines, its message."""
    shown = subprocess.run([f"{HERE}/memgauge-ranks", of], capture_output=True, text=True, env={**os.environ, "MEMGAUGE": MEMGAUGE})
    return shown.returncode, shown.stdout.splitlines(), shown.stderr


def results(of):
    saved = {}
    for name in sorted(os.listdir(of)):
        if name.endswith(".json"):
            with open(f"{of}/{name}") as file:
                saved[int(name[5:9])] = json.load(file)
    return saved


def ranks_on_one_node_measure_one_after_the_other():
    mpirun("-n", str(RANKS), "--oversubscribe", "--bind-to", "none", f"{WORK}/on-a-host", f"{HERE}/memgauge-rank", f"{WORK}/turns", *SHORT,
           MEMGAUGE=f"{WORK}/by-rank")
    saved = results(f"{WORK}/turns")
    assert sorted(saved) == [rank for rank in range(RANKS) if rank != WITHOUT_RESULT], sorted(saved)
    for rank, result in saved.items():
        assert result["run"]["labels"]["rank"] == str(rank) and result["run"]["host"]["hostname"] == f"n{rank}", result["run"]
    # No run begins before the one before it ended.
    times = sorted((result["started"]["monotonic_ns"], result["ended"]["monotonic_ns"]) for result in saved.values())
    assert all(before[1] <= after[0] for before, after in zip(times, times[1:])), times


def ranks_are_shown_in_order_and_the_missing_one_with_its_reason():
    status, lines, message = ranks(f"{WORK}/turns")
    assert status == 1 and message == f"1 of {RANKS} ranks without a result\n", (status, message)
    assert [line.split()[:2] for line in lines] == [[str(rank), f"n{rank}"] for rank in range(RANKS)], lines
    assert lines[WITHOUT_RESULT].endswith("no result: memgauge: no CPU may be used status 4"), lines[WITHOUT_RESULT]
    assert "GB/s" in lines[0], lines


def the_sick_rank_is_an_outlier():
    slow, _, answer = outliers(f"{WORK}/turns", f"{WORK}/fleet")
    assert slow == [f"n{SICK}"] and answer["hosts"] == RANKS - 1, answer


def bound_ranks_measure_their_own_cpus_together():
    if len(os.sched_getaffinity(0)) < 2:
        return
    # A core of two threads counts as one place otherwise.
    mpirun("-n", "2", "--use-hwthread-cpus", "--map-by", "hwthread", "--bind-to", "hwthread", f"{HERE}/memgauge-rank", f"{WORK}/together", *SHORT,
           MEMGAUGE=MEMGAUGE, MEMGAUGE_TOGETHER="1")
    status, lines, _ = ranks(f"{WORK}/together")
    cpus = [result["results"][0]["at"]["cpus"] for result in results(f"{WORK}/together").values()]
    assert status == 0 and len(lines) == 2 and len(set(cpus)) == 2, (status, lines, cpus)


def files_of_an_earlier_start_do_not_count():
    # Of two ranks, one does not start this time.
    # The folder for temporary files is not on this host, which ends no rank.
    only_rank_0 = f'export TMPDIR={WORK}/nowhere; [ "$OMPI_COMM_WORLD_RANK" = 1 ] || exec {HERE}/memgauge-rank {WORK}/together {" ".join(SHORT)}'
    mpirun("-n", "2", "--oversubscribe", "--bind-to", "none", "sh", "-c", only_rank_0, MEMGAUGE=MEMGAUGE)
    status, lines, _ = ranks(f"{WORK}/together")
    assert status == 1 and "no result" not in lines[0] and lines[1] == "1  -  no result: the rank did not start", (status, lines)


def mpich_needs_a_name_for_each_start():
    if shutil.which("mpirun.mpich") is None:
        print("not checked: MPICH, because it is not installed")
        return
    start = f'[ "$PMI_RANK" = "$WITHOUT" ] || exec {HERE}/memgauge-rank "$RESULTS" {" ".join(SHORT)}'

    def shown(of, without, **settings):
        environment = {**os.environ, "TMPDIR": WORK, "MEMGAUGE": MEMGAUGE, "WITHOUT": without, "RESULTS": f"{WORK}/{of}", **settings}
        output_of("mpirun.mpich", "-n", "2", "sh", "-c", start, env=environment, timeout=240)
        return ranks(f"{WORK}/{of}")

    status, lines, message = shown("mpich", "none")
    assert status == 0 and "GB/s" in lines[1] and "not told from today's" in message, (status, lines, message)
    assert shown("mpich-named", "none", MEMGAUGE_START="first")[0] == 0
    status, lines, message = shown("mpich-named", "1", MEMGAUGE_START="second")
    assert status == 1 and lines[1] == "1  -  no result: the rank did not start" and "today's" not in message, (status, lines, message)


tests = Tests("mpi")
with folder() as WORK:
    host_program(WORK)
    steady_memgauge(f"{WORK}/steady", [f"n{SICK}"])
    script(f"{WORK}/on-a-host", f'#!/bin/sh\nexec {WORK}/host "n$OMPI_COMM_WORLD_RANK" "$@"\n')
    script(f"{WORK}/by-rank", f"""#!/bin/sh
if [ "$OMPI_COMM_WORLD_RANK" = {WITHOUT_RESULT} ]; then
    echo 'memgauge: no CPU may be used' >&2
    exit 4
fi
exec {WORK}/steady "$@"
""")
    tests.run(ranks_on_one_node_measure_one_after_the_other)
    tests.run(ranks_are_shown_in_order_and_the_missing_one_with_its_reason)
    tests.run(the_sick_rank_is_an_outlier)
    tests.run(bound_ranks_measure_their_own_cpus_together)
    tests.run(files_of_an_earlier_start_do_not_count)
    tests.run(mpich_needs_a_name_for_each_start)
tests.end()
