-- Views for DuckDB: duckdb -init views.sql, or .read views.sql
-- memgauge fleet ingest writes this file. If the folder was moved, ingest once more, or set the variable first:
--   SET VARIABLE fleet = '/new/place';
SET VARIABLE fleet = coalesce(getvariable('fleet'), 'FLEET');

-- A row for each run.
CREATE OR REPLACE VIEW runs AS
SELECT * FROM read_parquet(getvariable('fleet') || '/runs/*.parquet', union_by_name = true);

-- A row for each value of each run. What was not measured is NULL, and not_measured says why.
-- The first files of a fleet may be older than these columns.
CREATE OR REPLACE VIEW measurements AS
SELECT * FROM read_parquet(getvariable('fleet') || '/values/*/*.parquet', hive_partitioning = true, union_by_name = true)
UNION ALL BY NAME SELECT NULL::VARCHAR AS machine_id_hash, NULL::VARCHAR AS pages WHERE false;

-- The newest row of each host for each quantity at its coordinates. One name with two machine ids is two hosts.
CREATE OR REPLACE VIEW latest AS
SELECT * FROM measurements
QUALIFY row_number() OVER (PARTITION BY host, machine_id_hash, experiment, metric, "at" ORDER BY started DESC NULLS LAST, run_id DESC) = 1;

-- Per kind of hardware and cell, over the newest rows: hosts, the median, and the median absolute deviation from it.
-- mad_percent is in percent of the median. Unreliable values are left out of both.
CREATE OR REPLACE VIEW cells AS
SELECT
    fingerprint, experiment, metric, "at", any_value(unit) AS unit,
    count(*) AS hosts,
    count(*) FILTER (value IS NULL) AS not_measured,
    count(*) FILTER (quality = 'unreliable') AS unreliable,
    median(value) FILTER (quality <> 'unreliable') AS median,
    mad(value) FILTER (quality <> 'unreliable') AS mad,
    100 * mad / median AS mad_percent
FROM latest
GROUP BY fingerprint, experiment, metric, "at";

-- Hosts down, cells across: a column for each cell of which a host has only a few, so not for single CPUs and regions of memory.
-- Made when this file is read. Columns of a view must be known beforehand, so it is a table.
CREATE OR REPLACE TEMP TABLE hosts_by_cells AS
PIVOT (
    SELECT host, machine_id_hash, experiment || ' ' || metric || ' ' || "at" AS cell, value
    FROM latest
    WHERE region IS NULL AND experiment <> 'idle-latency-per-cpu'
)
ON cell USING first(value) GROUP BY host, machine_id_hash ORDER BY host, machine_id_hash;
