//! How often printed 95 % intervals hold the truth, as a table: `cargo xtask coverage` builds this optimised and runs it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it prints a table")]

use std::process::ExitCode;

use memgauge_simulation::coverage::{KINDS, Kind, NOISES, NoiseKind, Row, rows};

fn main() -> ExitCode {
    let numbers: Result<Vec<u64>, _> = std::env::args().skip(1).map(|word| word.parse()).collect();
    let Ok([cells, seed]) = numbers.as_deref().map_or(Ok([10_000, 1]), <[u64; 2]>::try_from) else {
        eprintln!("error: two numbers are needed: how many cells each line has, and a seed; 'cargo xtask coverage' gives them");
        return ExitCode::FAILURE;
    };
    let wanted: Vec<(&Kind, &NoiseKind)> = NOISES.iter().flat_map(|noise| KINDS.iter().map(move |kind| (kind, noise))).collect();
    let rows = rows(&wanted, u32::try_from(cells).unwrap_or(u32::MAX), seed);
    let (covered, not): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.noise.is_covered(row.kind));
    println!("Noise that a cell can see, where a 95 % interval should hold the truth in 95 %:\n");
    print(&covered);
    println!("\nStates and allocations that a cell cannot see:\n");
    print(&not);
    ExitCode::SUCCESS
}

fn print(rows: &[&Row]) {
    println!("| noise | measurement | cells | holds the truth | 95 % interval of that | mean half width | mean time of a run |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for Row { kind, noise, held } in rows {
        if held.cells == 0 {
            println!("| {} | {} | 0 | not measured | | | |", noise.name, kind.name);
            continue;
        }
        let (low, high) = held.interval();
        println!(
            "| {} | {} | {} | {:.1} % | {:.1} to {:.1} % | {:.2} % | {:.1} s |",
            noise.name,
            kind.name,
            held.cells,
            100.0 * held.share(),
            100.0 * low,
            100.0 * high,
            100.0 * held.half_width(),
            held.run_s()
        );
    }
}
