//! tinymembench: one run of all its tests between two buffers of 32 MiB on one CPU. Rates are decimal and count a byte copied once. Its
//! latencies are what a random read costs more than a hit in the first-level cache, so they are not compared.

use anyhow::{Context, Result};

use super::command::Call;
use super::row::{Measure, Pages, Row};
use super::tool::{Found, Tool, Way, short};

pub(super) const TOOL: Tool = Tool {
    name: "tinymembench",
    files: &["tinymembench"],
    slow: Some("it has no choice of tests and runs them all, for minutes, on buffers of 32 MiB, which large caches hold: give --size 64M"),
    prints_best: false,
    version: None,
    ways,
};

/// Its two buffers together.
const BUFFERS: u64 = 64 << 20;

fn ways(row: &Row, found: &Found) -> Vec<Way> {
    let copies_or_fills = matches!(row.measure, Measure::Copy | Measure::CopyNt | Measure::Writes | Measure::WritesNt | Measure::Fill);
    if !copies_or_fills || row.bytes != BUFFERS || row.cpus.len() > 1 || row.pages == Pages::Base {
        return Vec::new();
    }
    let program = found.get("tinymembench");
    program
        .map(|program| Way::new("fastest of its kind", Call::new(program, [""; 0]).on(&row.cpus).huge_malloc(), read))
        .into_iter()
        .collect()
}

/// The fastest test that does what the row says, by its description.
fn read(text: &str, row: &Row) -> Result<f64> {
    let nt = |name: &str| name.contains("nontemporal") || name.contains("NT");
    let wanted = |name: &str| match row.measure {
        Measure::Copy => name.contains("copy") && !nt(name) || name.contains("memcpy"),
        Measure::CopyNt => name.contains("copy") && nt(name) || name.contains("memcpy"),
        Measure::Writes => name.contains("fill") && !nt(name) && !name.contains("STOS"),
        Measure::WritesNt => name.contains("fill") && nt(name),
        _ => name.contains("memset") || name.contains("STOS"),
    };
    let rate = |line: &str| -> Option<f64> {
        let (name, rest) = line.split_once(" : ")?;
        let rate = rest.split_once(" MB/s")?.0.trim().parse().ok()?;
        wanted(name).then_some(rate)
    };
    let best = text.lines().filter_map(rate).fold(None, |best: Option<f64>, rate| Some(best.map_or(rate, |b| b.max(rate))));
    let counted = if matches!(row.measure, Measure::Copy | Measure::CopyNt) { 2.0 } else { 1.0 };
    Ok(counted * best.with_context(|| format!("no such test in: {}", short(text)))? / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgauge_core::units::IdSet;

    fn row(measure: Measure) -> Row {
        Row { measure, bytes: BUFFERS, cpus: IdSet::one(0), pages: Pages::Huge }
    }

    #[test]
    fn the_fastest_of_each_kind() {
        let text = " C copy                                               :  11000.5 MB/s (1.2%)\n C fill                                               :  15000.0 MB/s\n \
                    standard memcpy                                      :  13000.0 MB/s\n standard memset                                      :  21000.0 MB/s (0.4%)\n \
                    MOVSB copy                                           :  12000.0 MB/s\n SSE2 nontemporal copy                                :  14000.0 MB/s\n \
                    SSE2 nontemporal fill                                :  22000.0 MB/s\n      1024 :    0.0 ns          /     0.0 ns \n";
        let rate = |measure| read(text, &row(measure)).unwrap();
        assert_eq!(rate(Measure::Copy), 26.0);
        assert_eq!(rate(Measure::CopyNt), 28.0);
        assert_eq!(rate(Measure::Writes), 15.0);
        assert_eq!(rate(Measure::WritesNt), 22.0);
        assert_eq!(rate(Measure::Fill), 21.0);
        assert!(read("tinymembench v0.4.9\n", &row(Measure::Copy)).is_err());
    }

    #[test]
    fn at_its_own_size_only() {
        let found = Found { files: [("tinymembench", "/x/tinymembench".into())].into(), ..Found::default() };
        assert_eq!(ways(&row(Measure::Fill), &found).len(), 1);
        assert!(ways(&Row { bytes: 512 << 20, ..row(Measure::Fill) }, &found).is_empty());
        assert!(ways(&row(Measure::Reads), &found).is_empty());
    }
}
