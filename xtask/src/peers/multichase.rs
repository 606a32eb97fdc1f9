//! multichase and multiload. Both take sizes in bytes, use transparent huge pages with `-H`, and pin their threads to the CPUs that they may
//! use. multiload's `-m` is one thread's memory, all streams together, and its rates are MiB/s.

use anyhow::{Result, ensure};
use memgauge_core::stats::median;

use super::command::Call;
use super::row::{Measure, Pages, Row, STRIDE, WINDOW};
use super::tool::{Found, Tool, Way, short};

pub(super) const CHASE: Tool =
    Tool { name: "multichase", files: &["multichase"], slow: None, version: None, prints_best: false, ways: chases };
pub(super) const LOAD: Tool = Tool { name: "multiload", files: &["multiload"], slow: None, version: None, prints_best: false, ways: loads };

/// Samples of half a second.
const SAMPLES: &str = "2";

fn chases(row: &Row, found: &Found) -> Vec<Way> {
    let window = match row.measure {
        Measure::WindowLatency => WINDOW.min(row.bytes),
        Measure::RandomLatency => row.bytes,
        _ => return Vec::new(),
    };
    let Some(program) = found.get("multichase") else { return Vec::new() };
    let [size, stride, window] = [row.bytes, STRIDE, window].map(|n| n.to_string());
    let mut args = vec!["-v", "-m", &size, "-s", &stride, "-T", &window, "-n", SAMPLES];
    args.extend((row.pages == Pages::Huge).then_some("-H"));
    let call = Call::new(program, args).on(&row.cpus);
    vec![Way::new("simple", call, read_chase)]
}

/// The median of its samples. Alone it prints the best one, which is no median.
fn read_chase(text: &str, _: &Row) -> Result<f64> {
    let samples: Vec<f64> = text.lines().filter_map(|line| line.split_once("avg=")?.1.split_whitespace().next()?.parse().ok()).collect();
    median(&samples).ok_or_else(|| anyhow::anyhow!("no sample in: {}", short(text)))
}

fn loads(row: &Row, found: &Found) -> Vec<Way> {
    let loads: &[&[&str]] = match row.measure {
        Measure::Reads => &[&["stream-sum"]],
        // libc's memcpy chooses its stores by size: with huge ones it is a copy with non-temporal stores.
        Measure::Copy | Measure::CopyNt => &[&["memcpy-libc"]],
        Measure::Triad => &[&["stream-triad"]],
        Measure::TriadNt => &[&["stream-triad-nontemporal-injection-delay", "-d", "0"]],
        Measure::Fill => &[&["memset-libc"]],
        _ => return Vec::new(),
    };
    let Some(program) = found.get("multiload").filter(|_| row.pages == Pages::Huge) else { return Vec::new() };
    let (threads, bytes) = (row.cpus.len().to_string(), row.bytes.to_string());
    loads
        .iter()
        .map(|load| {
            let mut args = vec!["-H", "-t", &threads, "-m", &bytes, "-n", "1", "-l"];
            args.extend(*load);
            Way::new(load[0], Call::new(program, args).on(&row.cpus), read_load)
        })
        .collect()
}

/// `LdAvgMibs`, the sum of the threads.
fn read_load(text: &str, _: &Row) -> Result<f64> {
    let mut lines = text.lines().map(|line| line.split(',').map(str::trim).collect::<Vec<_>>());
    let Some(column) = lines.by_ref().find_map(|names| names.iter().position(|name| *name == "LdAvgMibs")) else {
        anyhow::bail!("no LdAvgMibs in: {}", short(text));
    };
    let rates: Vec<f64> = lines.filter_map(|fields| fields.get(column)?.parse().ok()).collect();
    ensure!(rates.len() == 1, "{} rates in: {}", rates.len(), short(text));
    Ok(rates[0] * 1_048_576.0 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgauge_core::units::IdSet;

    fn row(measure: Measure) -> Row {
        Row { measure, bytes: 512 << 20, cpus: IdSet::one(1), pages: Pages::Huge }
    }

    fn found() -> Found {
        Found { files: [("multichase", "/x/multichase".into()), ("multiload", "/x/multiload".into())].into(), ..Found::default() }
    }

    #[test]
    fn windows() {
        let line = |measure| chases(&row(measure), &found())[0].call.line();
        assert_eq!(line(Measure::WindowLatency), "taskset -c 1 multichase -v -m 536870912 -s 128 -T 524288 -n 2 -H");
        assert_eq!(line(Measure::RandomLatency), "taskset -c 1 multichase -v -m 536870912 -s 128 -T 536870912 -n 2 -H");
        assert!(chases(&row(Measure::Copy), &found()).is_empty());
    }

    #[test]
    fn the_median_of_samples() {
        let text = "chase = simple\nsamples (one column per thread, one row per sample):\n  3.978  avg=3.978\n  4.104  avg=4.104\n 3.978\n";
        assert!((read_chase(text, &row(Measure::RandomLatency)).unwrap() - 4.041).abs() < 1e-9);
        assert!(read_chase("usage: multichase", &row(Measure::RandomLatency)).is_err());
    }

    #[test]
    fn the_average_rate() {
        let text = "Samples\t, Byte/thd\t, ChaseThds\t, ChaseNS\t, ChaseMibs\t, ChDeviate\t, LoadThds\t, LdMaxMibs\t, LdAvgMibs\t, LdDeviate\t, ChaseArg\t, MemLdArg\n\
                    1     \t, 16384      \t, 0       \t, 0.000   \t, 0       \t, 0.000   \t, 1       \t, 11400   \t, 11335   \t, 0.000   \t, --------\t, stream-sum\n";
        assert!((read_load(text, &row(Measure::Reads)).unwrap() - 11.885_609_96).abs() < 1e-6);
        assert!(read_load("Samples, LdAvgMibs\n", &row(Measure::Reads)).is_err());
        assert!(read_load("usage", &row(Measure::Reads)).is_err());
    }

    #[test]
    fn loads_by_their_names() {
        let line = loads(&row(Measure::TriadNt), &found())[0].call.line();
        assert_eq!(line, "taskset -c 1 multiload -H -t 1 -m 536870912 -n 1 -l stream-triad-nontemporal-injection-delay -d 0");
        assert!(loads(&row(Measure::WritesNt), &found()).is_empty());
    }
}
