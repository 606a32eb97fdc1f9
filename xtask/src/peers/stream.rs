//! STREAM: four loops over three static arrays whose size is compiled in. They are in base pages unless the kernel gives huge ones to all.
//! Its figure is the best of its passes but the first; application bytes, decimal.

use anyhow::Result;

use super::command::Call;
use super::row::{Measure, Pages, Row};
use super::tool::{Found, Tool, Way, number_after, short};

/// Names under which it is built.
const FILES: [&str; 4] = ["stream", "stream_c", "stream_c.exe", "stream_omp"];

pub(super) const TOOL: Tool = Tool { name: "STREAM", files: &FILES, slow: None, version: None, prints_best: true, ways };

fn program(found: &Found) -> Option<&std::path::Path> {
    FILES.iter().find_map(|name| found.get(name))
}

/// The shortest way to learn the arrays' size: a run.
pub(super) fn probe(found: &Found) -> Option<Call> {
    program(found).map(|program| Call::new(program, [""; 0]))
}

/// The three arrays together, as its head states them.
pub(super) fn bytes(text: &str) -> Result<u64> {
    Ok((number_after(text, "Total memory required")? * 1_048_576.0) as u64)
}

fn ways(row: &Row, found: &Found) -> Vec<Way> {
    let pages = if found.thp_always { Pages::Huge } else { Pages::Base };
    if row.pages != pages || !matches!(row.measure, Measure::Copy | Measure::CopyNt | Measure::Triad) || row.bytes < 64 << 20 {
        return Vec::new();
    }
    let Some(program) = program(found) else { return Vec::new() };
    let call = Call::new(program, [""; 0]).on(&row.cpus).env("OMP_NUM_THREADS", row.cpus.len().to_string()).env("OMP_PROC_BIND", "true");
    vec![Way::new("", call, read)]
}

fn read(text: &str, row: &Row) -> Result<f64> {
    anyhow::ensure!(text.contains("Solution Validates"), "its results do not validate: {}", short(text));
    let label = if row.measure == Measure::Triad { "\nTriad:" } else { "\nCopy:" };
    Ok(number_after(text, label)? / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Array size = 67108864 (elements), Offset = 0 (elements)\nMemory per array = 512.0 MiB (= 0.5 GiB).\nTotal memory required = 1536.0 MiB (= 1.5 GiB).\nFunction    Best Rate MB/s  Avg time     Min time     Max time\nCopy:           42101.5     0.026011     0.025504     0.026714\nTriad:          27311.0     0.059733     0.058974     0.060701\n-------\nSolution Validates: avg error less than 1.000000e-13 on all three arrays\n";

    fn row(measure: Measure) -> Row {
        Row { measure, bytes: 768 << 20, cpus: "0-1".parse().unwrap(), pages: Pages::Base }
    }

    #[test]
    fn its_lines() {
        assert_eq!(bytes(TEXT).unwrap(), 1536 << 20);
        assert_eq!(read(TEXT, &row(Measure::Copy)).unwrap(), 42.1015);
        assert_eq!(read(TEXT, &row(Measure::Triad)).unwrap(), 27.311);
        assert!(read(&TEXT.replace("Validates", "fails"), &row(Measure::Copy)).unwrap_err().to_string().contains("validate"));
    }

    #[test]
    fn in_base_pages_unless_all_get_huge_ones() {
        let mut found = Found { files: [("stream_c", "/x/stream_c".into())].into(), ..Found::default() };
        assert_eq!(ways(&row(Measure::Triad), &found)[0].call.line(), "OMP_NUM_THREADS=2 OMP_PROC_BIND=true taskset -c 0-1 stream_c");
        assert!(ways(&row(Measure::Reads), &found).is_empty());
        found.thp_always = true;
        assert!(ways(&row(Measure::Triad), &found).is_empty());
    }
}
