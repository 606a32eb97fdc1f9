"""Compares results as CSV with the same results as JSON: read_csv.py pandas|duckdb A.json A.csv B.json B.csv ...

Prints how many numbers were compared."""

import json
import math
import sys


def by_pandas(path):
    import pandas

    # Exact: by default, the last digit may differ.
    frame = pandas.read_csv(path, float_precision="round_trip")
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def by_duckdb(path):
    import duckdb

    # The types are those that DuckDB finds in the whole file. Times as text, because Python needs another library for those of DuckDB.
    rows = f"read_csv('{path}', header=true, sample_size=-1)"
    relation = duckdb.sql(f"select * replace (started::varchar as started) from {rows}")
    return [dict(zip(relation.columns, row)) for row in relation.fetchall()]


def expected(report):
    """(experiment, metric, value, low, unit, working set, mix) of every number, in the order of the rows."""
    for m in report["results"] + report.get("repeats", []):
        at = m["at"]
        yield m["experiment"], m["metric"], m["value"], m["ci95_low"], m["unit"], at.get("working_set"), at.get("mix")
    for matrix in report.get("matrices", []):
        for i in range(len(matrix["cpus"])):
            for j in range(len(matrix["cpus"])):
                if i != j:
                    yield matrix["experiment"], "latency", matrix["values"][i][j], None, matrix["unit"], None, None


def same(read, written):
    if written is None or read is None:
        return read is None and written is None
    if isinstance(written, (int, float)):
        return math.isclose(float(read), float(written), rel_tol=0, abs_tol=0)
    return read == written


def main():
    read = {"pandas": by_pandas, "duckdb": by_duckdb}[sys.argv[1]]
    compared = 0
    files = sys.argv[2:]
    for json_path, csv_path in zip(files[::2], files[1::2]):
        with open(json_path) as file:
            report = json.load(file)
        rows = [r for r in read(csv_path) if r["method"] != "counters" and "-p" not in r["metric"]]
        numbers = list(expected(report))
        assert len(rows) == len(numbers), f"{csv_path}: {len(rows)} rows for {len(numbers)} numbers"
        for row, (experiment, metric, value, low, unit, working_set, mix) in zip(rows, numbers):
            found = row["experiment"], row["metric"], row["value"], row["unit"], row["working_set_bytes"], row["mix"]
            wanted = experiment, metric, value, unit, working_set, mix
            assert all(map(same, found, wanted)), f"{csv_path}: {found} is not {wanted}"
            assert experiment.startswith("cache-to-cache-matrix") or same(row["low"], low), f"{csv_path}: {row['low']} is not {low}"
            # Nothing became a number that was none.
            assert value is not None or row["value"] is None
            compared += value is not None
    print(compared)


main()
