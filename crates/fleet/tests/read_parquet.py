"""Compares a fleet's Parquet files with what memgauge reads from them: read_parquet.py duckdb|pandas|polars FLEET expected.json

Prints how many rows were compared."""

import datetime
import glob
import json
import math
import statistics
import sys
from collections import defaultdict


def by_pandas(fleet):
    import pandas

    # A folder of files with a column in the names of its folders.
    frame = pandas.read_parquet(f"{fleet}/values")
    assert "fingerprint" in frame.columns
    frame["started"] = frame["started"].map(lambda t: t.to_pydatetime())
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def by_polars(fleet):
    import polars

    frame = polars.read_parquet(f"{glob.escape(fleet)}/values/*/*.parquet", hive_partitioning=True)
    assert "fingerprint" in frame.columns
    return frame.to_dicts()


def by_duckdb(fleet):
    import duckdb

    connection = duckdb.connect()
    connection.execute(open(f"{fleet}/views.sql").read())
    # Times as text, because Python needs another library for those with a zone of DuckDB.
    relation = connection.sql("select * replace (epoch_us(started) as started) from measurements")
    rows = [dict(zip(relation.columns, row)) for row in relation.fetchall()]
    for row in rows:
        row["started"] = datetime.datetime.fromtimestamp(row["started"] / 1e6, datetime.timezone.utc)
    check_views(connection, rows)
    return rows


def check_views(connection, rows):
    """The views by a second way: in Python, from the rows."""
    one = lambda question: connection.sql(question).fetchall()[0][0]
    assert one("select count(*) from runs") == len({row["run_id"] for row in rows})
    latest = {}
    for row in sorted(rows, key=lambda row: row["started"]):
        latest[row["host"], row["machine_id_hash"], row["experiment"], row["metric"], row["at"]] = row
    assert one("select count(*) from latest") == len(latest)
    groups = defaultdict(list)
    for row in latest.values():
        groups[row["fingerprint"], row["experiment"], row["metric"], row["at"]].append(row)
    cells = connection.sql('select fingerprint, experiment, metric, "at", hosts, not_measured, median, mad, mad_percent from cells').fetchall()
    assert len(cells) == len(groups)
    several = 0
    for *key, hosts, not_measured, median, mad, mad_percent in cells:
        group = groups[tuple(key)]
        assert hosts == len(group) and not_measured == sum(row["value"] is None for row in group), key
        values = [row["value"] for row in group if row["value"] is not None and row["quality"] != "unreliable"]
        if not values:
            assert median is None and mad is None
            continue
        wanted = statistics.median(values)
        spread = statistics.median(abs(v - wanted) for v in values)
        assert math.isclose(median, wanted) and math.isclose(mad, spread, abs_tol=1e-12), key
        assert math.isclose(mad_percent, 100 * spread / wanted, abs_tol=1e-12)
        several += len(values) > 2
    assert several > 20, several
    wide = connection.sql("select * from hosts_by_cells")
    hosts = {row[:2] for row in wide.fetchall()}
    shown = [row for row in rows if row["region"] is None and row["experiment"] != "idle-latency-per-cpu"]
    assert hosts == {(row["host"], row["machine_id_hash"]) for row in shown}
    assert len(hosts) > len({host for host, _ in hosts}), "two machines have one name"
    assert len(wide.columns) > 20


def same(read, written):
    if written is None or read is None:
        return read is None and written is None
    if isinstance(written, bool):
        return read == written
    if isinstance(written, (int, float)):
        return float(read) == float(written)
    return read == written


def main():
    read = {"pandas": by_pandas, "polars": by_polars, "duckdb": by_duckdb}[sys.argv[1]]
    with open(sys.argv[3]) as file:
        expected = json.load(file)
    rows = read(sys.argv[2])
    assert len(rows) == len(expected), f"{len(rows)} rows for {len(expected)}"
    key = lambda row: (row["run_id"], row["experiment"], row["metric"], json.dumps(row["at"], sort_keys=True))
    for row in rows:
        row["at_text"], row["at"] = row["at"], json.loads(row["at"])
    for found, wanted in zip(sorted(rows, key=key), sorted(expected, key=key)):
        wanted["started"] = datetime.datetime.fromisoformat(wanted["started"].replace("Z", "+00:00"))
        for column, value in wanted.items():
            assert same(found[column], value), f"{column} of {key(wanted)}: {found[column]!r} is not {value!r}"
    print(len(rows))


main()
