//! memgauge itself, as a row asks for it.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use memgauge_core::estimate::NotMeasured;
use memgauge_core::experiment::{ChaseOrder, Coordinates, Experiment, LineState};
use memgauge_core::result::Samples;
use memgauge_core::stats::median;
use memgauge_core::units::Bytes;
use memgauge_core::wording::reasons;

use super::command::Call;
use super::row::{Measure, Pages, Row, STRIDE, WINDOW};
use super::tool::{Way, short};

/// How long a cell may take: as long as the peers' own runs.
const BUDGET: &str = "1s";

pub(super) fn way(program: &Path, row: &Row) -> Way {
    let cpus = row.cpus.to_string();
    let size = spelled(row.bytes);
    let pages = if row.pages == Pages::Huge { "thp" } else { "4k" };
    let (window, stride) = (spelled(WINDOW), spelled(STRIDE));
    let mut args: Vec<&str> = match (row.measure, row.measure.mix()) {
        (Measure::HandOff, _) => vec!["c2c", "--cpu", &cpus],
        (_, Some(mix)) => vec!["bandwidth", "--mix", mix.name(), "--cpu", &cpus, "--size", &size, "--pages", pages],
        (_, None) => vec!["latency", "--cpu", &cpus, "--size", &size, "--stride", &stride, "--pages", pages],
    };
    if row.measure.is_time() && row.bytes > WINDOW {
        args.extend(["--window", &window]);
    }
    args.extend(["--budget", BUDGET, "--format", "json"]);
    Way::new("", Call::new(program, args), read)
}

/// In the form that its command line expects.
fn spelled(bytes: u64) -> String {
    Bytes(bytes).to_string().replace(' ', "")
}

/// What is taken from a result.
#[derive(Debug, serde::Deserialize)]
struct Results {
    results: Vec<Cell>,
}

#[derive(Debug, serde::Deserialize)]
struct Cell {
    experiment: Experiment,
    at: Coordinates,
    value: Option<f64>,
    not_measured: Option<NotMeasured>,
    evidence: Kernel,
    #[serde(default)]
    samples: Samples,
}

#[derive(Debug, serde::Deserialize)]
struct Kernel {
    kernel: String,
}

/// The first JSON value of its output; standard error follows it.
pub(super) fn first_json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<T>();
    values.next().and_then(Result::ok).with_context(|| format!("no result: {}", short(text)))
}

/// The row's cell.
fn cell(text: &str, row: &Row) -> Result<Cell> {
    let experiment = match row.measure {
        Measure::HandOff => Experiment::CacheToCache,
        m if m.mix().is_some() => Experiment::Bandwidth,
        _ => Experiment::IdleLatency,
    };
    let order = match row.measure {
        Measure::WindowLatency => Some(ChaseOrder::WindowLocal),
        Measure::RandomLatency => Some(ChaseOrder::FullRandom),
        _ => None,
    };
    let state = (row.measure == Measure::HandOff).then_some(LineState::Hitm);
    let results = first_json::<Results>(text)?.results;
    let mut cells: Vec<Cell> = results.into_iter().filter(|c| c.experiment == experiment && c.at.mix == row.measure.mix()).collect();
    // A buffer of no more than a window has one order.
    let wanted = |c: &Cell| (order.is_none() || c.at.order == order) && (state.is_none() || c.at.state == state);
    let at = cells.iter().position(wanted).unwrap_or(0);
    ensure!(!cells.is_empty(), "no {} in its result", row.measure.name());
    Ok(cells.swap_remove(at))
}

fn read(text: &str, row: &Row) -> Result<f64> {
    let cell = cell(text, row)?;
    let why = || cell.not_measured.as_ref().map_or_else(|| "no reason given".into(), reasons::not_measured);
    cell.value.with_context(|| format!("not measured: {}", why()))
}

/// The highest median of a burst, for tools that print the best of their passes: a burst reads a buffer of 1.5 GB about once.
pub(super) fn best_burst(text: &str, row: &Row) -> Option<f64> {
    let cell = cell(text, row).ok()?;
    cell.samples.bursts.iter().filter_map(|burst| median(burst)).max_by(f64::total_cmp)
}

/// The kernel that the row's figure came from.
pub(super) fn kernel(text: &str, row: &Row) -> Option<String> {
    cell(text, row).ok().map(|cell| cell.evidence.kernel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgauge_core::units::IdSet;

    fn row(measure: Measure) -> Row {
        Row { measure, bytes: 512 << 20, cpus: IdSet::one(0), pages: Pages::Huge }
    }

    #[test]
    fn commands() {
        let line = |row: &Row| way(Path::new("/x/memgauge"), row).call.line();
        assert_eq!(
            line(&row(Measure::RandomLatency)),
            "memgauge latency --cpu 0 --size 512MiB --stride 128B --pages thp --window 512KiB --budget 1s --format json"
        );
        assert_eq!(line(&row(Measure::WindowLatency)), line(&row(Measure::RandomLatency)), "one run tells both");
        let base = Row { pages: Pages::Base, ..row(Measure::Triad) };
        assert_eq!(line(&base), "memgauge bandwidth --mix 3:1-x2 --cpu 0 --size 512MiB --pages 4k --budget 1s --format json");
    }

    const RESULT: &str = r#"{ "results": [
        { "experiment": "idle-latency", "at": { "cpu": 0, "order": "window-local" }, "value": 98.5, "evidence": { "kernel": "chase" } },
        { "experiment": "idle-latency", "at": { "cpu": 0, "order": "full-random" }, "value": 176.25, "evidence": { "kernel": "chase" } },
        { "experiment": "bandwidth", "at": { "mix": "all-reads" }, "value": 27.5, "evidence": { "kernel": "load-avx2" },
          "samples": { "bursts": [[27.0, 27.5, 30.0], [28.0, 28.5, 29.0], []] } },
        { "experiment": "bandwidth", "at": { "mix": "copy" }, "value": null, "not_measured": { "cause": "no-memory", "detail": "none left" }, "evidence": { "kernel": "" } },
        { "experiment": "cache-to-cache", "at": { "state": "hit" }, "value": 21.0, "evidence": { "kernel": "x" } },
        { "experiment": "cache-to-cache", "at": { "state": "hitm" }, "value": 22.0, "evidence": { "kernel": "x" } }
    ] }
warning: a note on standard error {"#;

    #[test]
    fn each_row_has_its_cell() {
        assert_eq!(read(RESULT, &row(Measure::WindowLatency)).unwrap(), 98.5);
        assert_eq!(read(RESULT, &row(Measure::RandomLatency)).unwrap(), 176.25);
        assert_eq!(read(RESULT, &row(Measure::Reads)).unwrap(), 27.5);
        assert_eq!(read(RESULT, &row(Measure::HandOff)).unwrap(), 22.0);
        assert_eq!(kernel(RESULT, &row(Measure::Reads)).as_deref(), Some("load-avx2"));
        assert_eq!((best_burst(RESULT, &row(Measure::Reads)), best_burst(RESULT, &row(Measure::HandOff))), (Some(28.5), None));
    }

    #[test]
    fn what_is_missing_is_reported() {
        let message = |text, measure| read(text, &row(measure)).unwrap_err().to_string();
        assert!(message(RESULT, Measure::Copy).contains("none left"));
        assert!(message(RESULT, Measure::Fill).contains("no fill"));
        assert!(message("error: no such option", Measure::Reads).contains("no such option"));
    }
}
