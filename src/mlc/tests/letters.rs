//! Letters that are parsed, and letters that are refused; the usage and the manual.

use std::ffi::OsString;

use memgauge_model::experiment::PageRequest;

use super::super::letters::{LETTERS, MODES, usage};
use super::super::{prefetchers, text};
use super::*;
use crate::exit::UsageError;

fn refusal(arg: &str) -> UsageError {
    match parse(&[OsString::from(arg)]) {
        Err(refusal) => refusal,
        other => panic!("{arg}: {other:?}"),
    }
}

#[test]
fn unknown_options_are_refused() {
    for bad in [
        "--bandwidth",
        "-N3",
        "-y",
        "5",
        "",
        "-",
        "--",
        "mlc",
        "-t",
        "-t0",
        "-tx",
        "-t1e3",
        "-t-1",
        "-t99999999",
        "-b",
        "-b0",
        "-b5x",
        "-b-5",
        "-b99999999999g",
        "-c",
        "-c-1",
        "-c+1",
        "-c9999999",
        "-k",
        "-k3-1",
        "-kx",
        "-m",
        "-m0",
        "-mxyz",
        "-K2",
        "-W",
        "-Wx",
        "-d99999999",
        "-g",
        "-o",
        "-J",
        "-X1",
        "-ex",
        "-L2",
        "-f99",
        "--Idle_latency",
    ] {
        assert!(parse(&[OsString::from(bad)]).is_err(), "{bad}");
    }
    assert!(refusal("--nothing").0.contains("--nothing"));
}

#[test]
fn dashes_of_web_pages_have_their_own_message() {
    for (arg, fixed) in [
        ("\u{2013}t5", "-t5"),
        ("\u{2013}loaded_latency", "--loaded_latency"),
        ("\u{2013}\u{2013}idle_latency", "--idle_latency"),
        ("\u{2014}b2g", "-b2g"),
    ] {
        let message = refusal(arg).0;
        assert!(message.contains("U+201") && message.ends_with(fixed), "{message}");
    }
}

#[test]
fn modes_with_one_hyphen_are_told_to_have_two() {
    for (mode, ..) in MODES {
        let message = refusal(&mode[1..]).0;
        assert!(message.contains("one hyphen instead of two") && message.ends_with(&format!("type {mode}")), "{message}");
    }
    assert!(refusal("-latency").0.contains("whole number"), "a letter with a wrong value: {}", refusal("-latency").0);
}

#[test]
fn usage_is_printed_for_help_and_version() {
    for line in ["--help", "--version", "-h", "-h -e", "--idle_latency --help", "-t5 --version"] {
        assert_eq!(parse(&arguments(line)), Ok(CommandLine::Usage), "{line}");
    }
    assert!(matches!(letters_of("--idle_latency -h").1.pages, PageRequest::Huge1G));
    let text = usage();
    for row in &LETTERS {
        assert!(text.lines().any(|l| l.starts_with(&format!("  -{}", row.letter)) && l.ends_with(row.help)), "-{}", row.letter);
        let refusal = parse(&arguments(&format!("-{}x.", row.letter))).err().map(|error| error.0).unwrap_or_default();
        assert_eq!(row.value.is_empty(), refusal.contains("takes no value"), "-{}", row.letter);
    }
    assert!(MODES.iter().all(|(name, ..)| text.contains(name)));
    assert!(text.lines().all(|l| !l.trim_start().starts_with(|c: char| c.is_ascii_digit()) && !l.contains("00000")), "{text}");
}

#[test]
fn no_letter_twice_and_each_somewhere_of_use() {
    let mut letters: Vec<char> = LETTERS.iter().map(|l| l.letter).collect();
    letters.sort_unstable();
    letters.dedup();
    assert_eq!(letters.len(), LETTERS.len());
    assert!(LETTERS.iter().all(|l| MODES.iter().any(|(_, mode, _)| l.applies(*mode))));
}

#[test]
fn the_manual_names_every_mode_letter_and_variable() {
    let manual = include_str!("../../../docs/mlc.1").replace("\\-", "-");
    for (name, ..) in MODES {
        assert!(manual.contains(name), "{name}");
    }
    for row in &LETTERS {
        let head = format!("-{}", row.letter);
        let described = manual.lines().any(|l| l.strip_prefix(".BI ").or(l.strip_prefix(".B ")).is_some_and(|l| l.starts_with(&head)));
        assert!(described, "-{}", row.letter);
    }
    for variable in [text::NAME_VARIABLE, text::VERSION_VARIABLE, prefetchers::VARIABLE] {
        assert!(manual.contains(variable), "{variable}");
    }
}
