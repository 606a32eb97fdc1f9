//! Command lines made from the definition of the command line: every option of every command, with values that are hostile or nearly right.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use anyhow::Result;
use clap::{Arg, Command};

use super::bench::{Bench, Dice, Outcome};

/// Values for any option: numbers, sizes, lists, mixes, times, names and words that are none of these. Valid sizes and times are small.
const VALUES: [&[u8]; 40] = [
    b"0",
    b"1",
    b"2",
    b"-1",
    b"4294967295",
    b"18446744073709551616",
    b"1e9",
    b"NaN",
    b"",
    b" ",
    b"0-1",
    b"0,1",
    b"1-0",
    b"0-1048576",
    b",",
    b"0-",
    b"1K",
    b"64K",
    b"1M",
    b"4M",
    b"16E",
    b"0.5M",
    b"10ms",
    b"50ms",
    b"0s",
    b"-5s",
    b"2:1",
    b"3:1-nt",
    b"all-reads",
    b"auto",
    b"full-random",
    b"json",
    b"\xff\xfe",
    b"\x1b[2J",
    b"../x",
    b"x.json",
    b"x.svg",
    b"nowhere/x.json",
    b"a=b",
    b"%s%n",
];
/// Options that would make a run long, or reach out of the folder: they are tried in plans only.
const NOT_RUN: [&str; 12] =
    ["time", "budget", "within", "size", "memory-dir", "start-signal", "wait-idle", "passes", "repeat", "prefetch", "machine", "idle"];
/// Letters of the drop-in with values.
const LETTERS: [&str; 24] = [
    "-a",
    "-b1m",
    "-b",
    "-b99999999999",
    "-c0",
    "-c9999",
    "-d0",
    "-d-1",
    "-e",
    "-e0",
    "-g/dev/null",
    "-H",
    "-i0",
    "-j0",
    "-k0-1",
    "-k,",
    "-l128",
    "-n1",
    "-o/dev/null",
    "-r",
    "-t1",
    "-W2",
    "-W99",
    "-x0",
];

/// A random command line with `--plan`, which measures nothing.
pub(super) fn plan(bench: &Bench, dice: &mut Dice) -> Result<(String, Outcome)> {
    let commands = measuring();
    let command = dice.pick(&commands);
    let mut words = vec![OsString::from(command.get_name()), "--plan".into()];
    for _ in 0..1 + dice.next() % 5 {
        option(command, &[], dice, &mut words);
    }
    judged(bench, &words)
}

/// A random command line of a short run.
pub(super) fn run(bench: &Bench, dice: &mut Dice) -> Result<(String, Outcome)> {
    let commands = measuring();
    let command = dice.pick(&commands);
    let mut words: Vec<OsString> = [command.get_name(), "--time", "20ms", "--size", "1M", "--within", "5s"].map(OsString::from).to_vec();
    for _ in 0..1 + dice.next() % 3 {
        option(command, &NOT_RUN, dice, &mut words);
    }
    judged(bench, &words)
}

/// A random command line of the drop-in.
pub(super) fn mlc(bench: &Bench, dice: &mut Dice) -> Result<(String, Outcome)> {
    let modes = ["--help", "--latency_matrix", "--idle_latency", "--c2c_latency", "--peak_injection_bandwidth", "--nothing", "-e"];
    let mut words: Vec<OsString> = ["mlc", *dice.pick(&modes), "-b1m", "-t1"].map(OsString::from).to_vec();
    for _ in 0..dice.next() % 4 {
        let letter = dice.pick(&LETTERS);
        words.push(if dice.next().is_multiple_of(8) { OsString::from_vec(dice.pick(&VALUES).to_vec()) } else { letter.into() });
    }
    judged(bench, &words)
}

/// The commands that measure by a plan.
fn measuring() -> Vec<Command> {
    let root = memgauge::fuzzing::command();
    root.get_subcommands().filter(|c| c.get_arguments().any(|arg| arg.get_id() == "plan")).cloned().collect()
}

/// Adds an option of `command`, mostly with a value.
fn option(command: &Command, except: &[&str], dice: &mut Dice, words: &mut Vec<OsString>) {
    let all: Vec<&Arg> = command.get_arguments().filter(|arg| arg.get_long().is_some_and(|name| !except.contains(&name))).collect();
    if all.is_empty() {
        return;
    }
    let arg = dice.pick(&all);
    words.push(format!("--{}", arg.get_long().unwrap_or_default()).into());
    let takes_value = arg.get_action().takes_values();
    if takes_value != dice.next().is_multiple_of(16) {
        let allowed = arg.get_possible_values();
        let right = !allowed.is_empty() && dice.next().is_multiple_of(2);
        words.push(if right { dice.pick(&allowed).get_name().into() } else { OsString::from_vec(dice.pick(&VALUES).to_vec()) });
    }
}

fn judged(bench: &Bench, words: &[OsString]) -> Result<(String, Outcome)> {
    Ok((words.join(" ".as_ref()).to_string_lossy().into_owned(), bench.run(&mut bench.command(words))?))
}
