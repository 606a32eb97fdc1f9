//! The modes and letters: each letter's value, its meaning, and the modes that it affects. Parsing, usage and the tests read this
//! one table.
//!
//! An argument is one option, its value attached (`-t5`, `-k0-3,8`); modes and letters come in any order and the last one wins.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use memgauge_model::experiment::PageRequest;
use memgauge_model::traffic::{Mix, Width};
use memgauge_model::units::{Bytes, IdSet};

use crate::cli::values::MAX_DELAY_CYCLES;
use crate::exit::UsageError;

/// A mode: the kind of measurement and of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Full,
    LatencyMatrix,
    BandwidthMatrix,
    Peak,
    Max,
    Idle,
    Loaded,
    C2c,
    Scan,
}

/// The modes by their options, with their help lines. `--peak_bandwidth` is what versions up to 3.4 called peak injection.
pub(crate) const MODES: [(&str, Mode, &str); 9] = [
    ("--latency_matrix", Mode::LatencyMatrix, "idle latency from each node with CPUs to each node with memory"),
    ("--bandwidth_matrix", Mode::BandwidthMatrix, "bandwidth from each node with CPUs to each node with memory"),
    ("--peak_injection_bandwidth", Mode::Peak, "bandwidth of all CPUs to their own nodes, five mixes of reads and writes"),
    ("--peak_bandwidth", Mode::Peak, "the older name of --peak_injection_bandwidth"),
    ("--max_bandwidth", Mode::Max, "the same, the best of several numbers of CPUs and injection rates; takes minutes"),
    ("--idle_latency", Mode::Idle, "idle latency of one CPU to one node"),
    ("--loaded_latency", Mode::Loaded, "latency of one CPU while the others load memory, by injection delay"),
    ("--c2c_latency", Mode::C2c, "transfers from one CPU's cache to another's"),
    ("--memory_bandwidth_scan", Mode::Scan, "bandwidth of every GiB of a node"),
];

impl Mode {
    const fn bit(self) -> u16 {
        1 << self as u16
    }

    /// The option that chooses it; without one everything is measured.
    pub(crate) fn option(self) -> &'static str {
        MODES.iter().find(|(_, mode, _)| *mode == self).map_or("a full run", |(name, ..)| name)
    }
}

const FULL: u16 = Mode::Full.bit();
const LATENCY_MATRIX: u16 = Mode::LatencyMatrix.bit();
const IDLE: u16 = Mode::Idle.bit();
const LOADED: u16 = Mode::Loaded.bit();
const C2C: u16 = Mode::C2c.bit();
const SCAN: u16 = Mode::Scan.bit();
const MAX: u16 = Mode::Max.bit();
const BANDWIDTH_MATRIX: u16 = Mode::BandwidthMatrix.bit();
const PEAK_AND_MAX: u16 = Mode::Peak.bit() | MAX;
const BANDWIDTH: u16 = BANDWIDTH_MATRIX | PEAK_AND_MAX | LOADED;
const ALL: u16 = FULL | LATENCY_MATRIX | IDLE | C2C | BANDWIDTH | SCAN;
const MEASURING: u16 = ALL & !SCAN;

/// The values of all letters that have an effect in the mode. A letter that means one thing in a scan and another elsewhere sets both fields.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Letters {
    pub(crate) every_cpu: bool,
    pub(crate) buffer: Option<Bytes>,
    pub(crate) per_thread: bool,
    pub(crate) cpu: Option<u32>,
    pub(crate) transfer_window: Option<Bytes>,
    pub(crate) delay: Option<u32>,
    pub(crate) delay_file: Option<PathBuf>,
    pub(crate) chase_window_lines: Option<u32>,
    pub(crate) leave_prefetchers: bool,
    pub(crate) writer_pushes: Bytes,
    pub(crate) reader_pushes: Bytes,
    pub(crate) histogram_log2: Option<u32>,
    pub(crate) pages: PageRequest,
    pub(crate) clean: bool,
    pub(crate) touch: Option<u32>,
    pub(crate) checked: bool,
    pub(crate) node: Option<u32>,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) loaders: Option<IdSet>,
    pub(crate) part_of_line: Option<bool>,
    pub(crate) stride: Option<u32>,
    pub(crate) contents: Option<PathBuf>,
    pub(crate) random_window_lines: Option<u32>,
    pub(crate) cpu_node: Option<u32>,
    pub(crate) threads: Option<PathBuf>,
    pub(crate) keep_awake: Option<IdSet>,
    pub(crate) flush_pmem: bool,
    pub(crate) flush: bool,
    pub(crate) passes: Option<u32>,
    pub(crate) random_chase: bool,
    pub(crate) signal: Option<String>,
    pub(crate) sharer: Option<u32>,
    pub(crate) bucket_mbs: Option<u32>,
    pub(crate) seconds: Option<f64>,
    pub(crate) scan_threads: Option<usize>,
    pub(crate) bandwidth_only: bool,
    pub(crate) shared: bool,
    pub(crate) random_traffic: bool,
    pub(crate) verbose: bool,
    pub(crate) writer: Option<u32>,
    pub(crate) mix: Option<Mix>,
    pub(crate) million_hops: Option<u32>,
    pub(crate) one_thread_per_core: bool,
    pub(crate) width: Option<Width>,
}

/// A row of the table.
pub(crate) struct Letter {
    pub(crate) letter: char,
    /// The name of its value in the usage; empty if it takes none.
    pub(crate) value: &'static str,
    modes: u16,
    pub(crate) help: &'static str,
    /// Reads the text that is attached to the letter.
    set: fn(&mut Letters, &OsStr) -> Result<(), String>,
}

impl Letter {
    pub(crate) fn applies(&self, mode: Mode) -> bool {
        self.modes & mode.bit() != 0
    }
}

const fn letter(
    letter: char,
    value: &'static str,
    modes: u16,
    help: &'static str,
    set: fn(&mut Letters, &OsStr) -> Result<(), String>,
) -> Letter {
    Letter { letter, value, modes, help, set }
}

/// No machine has a CPU or node of a higher number.
const MAX_ID: u32 = (1 << 20) - 1;

/// Every letter.
#[rustfmt::skip]
pub(crate) const LETTERS: [Letter; 45] = [
    letter('a', "", LATENCY_MATRIX | IDLE, "idle latency from every CPU; with -X from one of each core", |l, v| nothing(v).map(|()| l.every_cpu = true)),
    letter('b', "SIZE", MEASURING, "buffer of each thread in KiB, or with k, m, g; mixes with writes take as much again", |l, v| bytes(v).map(|b| l.buffer = Some(b))),
    letter('B', "", LOADED, "print each thread's bandwidth too, before the table", |l, v| nothing(v).map(|()| l.per_thread = true)),
    letter('c', "CPU", IDLE | LOADED | C2C, "CPU that measures latency; c2c: that reads", |l, v| number(v, MAX_ID).map(|n| l.cpu = Some(n))),
    letter('C', "SIZE", C2C, "window handed over at a time in KiB, or with k, m, g", |l, v| bytes(v).map(|b| l.transfer_window = Some(b))),
    letter('d', "CYCLES", LOADED, "this injection delay only", |l, v| number(v, MAX_DELAY_CYCLES).map(|n| (l.delay, l.delay_file) = (Some(n), None))),
    letter('D', "N", IDLE | LATENCY_MATRIX | LOADED | C2C, "window of the random chase: N blocks of 128 B", |l, v| number(v, u32::MAX).map(|n| l.chase_window_lines = Some(n))),
    letter('e', "", ALL, "leave prefetchers as they are; the chase is sequential unless -r", |l, v| switch(v).map(|on| l.leave_prefetchers = on)),
    letter('E', "SIZE", C2C, "KiB that the writer reads elsewhere after writing, so that lines move outwards", |l, v| bytes(v).map(|b| l.writer_pushes = b)),
    letter('f', "N", IDLE | LOADED, "histogram of latencies, buckets of 2^N cycles", |l, v| number(v, 40).map(|n| l.histogram_log2 = Some(n))),
    letter('g', "FILE", LOADED, "injection delays, a number a line", |l, v| name(v).map(|name| (l.delay, l.delay_file) = (None, Some(name.into())))),
    letter('G', "SIZE", C2C, "KiB that the reader reads elsewhere before it reads", |l, v| bytes(v).map(|b| l.reader_pushes = b)),
    letter('h', "", MEASURING & !FULL, "huge pages of 1 GiB; without a mode: this help", |l, v| nothing(v).map(|()| l.pages = PageRequest::Huge1G)),
    letter('H', "", C2C, "clean lines (HIT) only", |l, v| nothing(v).map(|()| l.clean = true)),
    letter('i', "CPU", IDLE | LOADED | C2C, "CPU that touches the latency buffer first, and so places it", |l, v| number(v, MAX_ID).map(|n| l.touch = Some(n))),
    letter('I', "", LOADED, "check that what is read is what was written; reads only", |l, v| nothing(v).map(|()| l.checked = true)),
    letter('j', "NODE", IDLE | PEAK_AND_MAX | LOADED | SCAN, "memory of this node, for traffic too; scan: the node", |l, v| number(v, MAX_ID).map(|n| l.node = Some(n))),
    letter('J', "DIR", IDLE, "latency buffer is a file in this directory, such as one of a DAX file system", |l, v| name(v).map(|name| l.directory = Some(name.into()))),
    letter('k', "LIST", PEAK_AND_MAX | LOADED, "CPUs that make traffic, such as 1-7,12", |l, v| cpu_list(v).map(|cpus| l.loaders = Some(cpus))),
    letter('K', "N", PEAK_AND_MAX | LOADED, "N=1: touch a part of each line only, 0: all of it; without: a part if -b is below 50 MB", |l, v| number(v, 1).map(|n| l.part_of_line = Some(n == 1))),
    letter('l', "BYTES", MEASURING & !C2C, "stride in bytes", |l, v| number(v, 1 << 30).map(|n| l.stride = Some(n))),
    letter('L', "", MEASURING, "huge pages of 2 MiB", |l, v| nothing(v).map(|()| l.pages = PageRequest::Huge2M)),
    letter('m', "MASK", PEAK_AND_MAX | LOADED, "CPUs that make traffic, as a hexadecimal mask", |l, v| cpu_mask(v).map(|cpus| l.loaders = Some(cpus))),
    letter('M', "FILE", BANDWIDTH, "content of memory: lines of 128 hexadecimal digits", |l, v| name(v).map(|name| l.contents = Some(name.into()))),
    letter('n', "N", LOADED | BANDWIDTH_MATRIX | SCAN, "with -U: window of random traffic in lines; scan: node of the CPUs", |l, v| number(v, u32::MAX).map(|n| (l.random_window_lines, l.cpu_node) = (Some(n), Some(n)))),
    letter('o', "FILE", LOADED, "what each thread does: CPUs, traffic, pattern, size, place, delay", |l, v| name(v).map(|name| l.threads = Some(name.into()))),
    letter('p', "LIST", IDLE, "CPUs to keep awake meanwhile", |l, v| cpu_list(v).map(|cpus| l.keep_awake = Some(cpus))),
    letter('P', "", LOADED, "write stored lines back at once if they are persistent memory", |l, v| nothing(v).map(|()| l.flush_pmem = true)),
    letter('q', "N", SCAN, "passes over each GiB", |l, v| number(v, u32::MAX).map(|n| l.passes = Some(n))),
    letter('Q', "", LOADED, "write stored lines back at once, whatever memory they are", |l, v| nothing(v).map(|()| l.flush = true)),
    letter('r', "", FULL | IDLE | LATENCY_MATRIX | LOADED | C2C, "random chase, stride 128", |l, v| nothing(v).map(|()| l.random_chase = true)),
    letter('R', "", BANDWIDTH_MATRIX | LOADED, "reads only", |l, v| nothing(v).map(|()| l.mix = Some(Mix::AllReads))),
    letter('s', "NAME", LOADED, "wait for value 1 in the shared-memory word NAME before measuring; with -T before each delay", |l, v| name(v).map(|name| l.signal = name.into_string().ok())),
    letter('S', "N", C2C | SCAN, "c2c: CPU that reads the lines in between; scan: bucket of the histogram in MB/s", |l, v| number(v, u32::MAX).map(|n| (l.sharer, l.bucket_mbs) = (Some(n), Some(n)))),
    letter('t', "SECONDS", ALL, "time of each point, 2 without; scan: threads", |l, v| seconds(v).map(|s| (l.seconds, l.scan_threads) = (Some(s), Some(s as usize)))),
    letter('T', "", LOADED, "bandwidth only", |l, v| nothing(v).map(|()| l.bandwidth_only = true)),
    letter('u', "", LOADED | MAX, "all threads read one buffer", |l, v| nothing(v).map(|()| l.shared = true)),
    letter('U', "", LOADED | BANDWIDTH_MATRIX, "traffic in random order", |l, v| nothing(v).map(|()| l.random_traffic = true)),
    letter('v', "", ALL, "say more on standard error: plan, kernels, pages, placement, intervals", |l, v| switch(v).map(|on| l.verbose = on)),
    letter('w', "CPU", C2C, "CPU that writes", |l, v| number(v, MAX_ID).map(|n| l.writer = Some(n))),
    letter('W', "N", BANDWIDTH, "mix of reads and writes; peak, max: adds a row if N is 4, 6 or 12", |l, v| ratio(v).map(|mix| l.mix = Some(mix))),
    letter('x', "N", IDLE | LATENCY_MATRIX | LOADED | C2C, "N million loads instead of a time; N=0: one pass over the buffer", |l, v| number(v, u32::MAX).map(|n| l.million_hops = Some(n))),
    letter('X', "", FULL | IDLE | LATENCY_MATRIX | BANDWIDTH, "one hardware thread of each core", |l, v| nothing(v).map(|()| l.one_thread_per_core = true)),
    letter('Y', "", FULL | BANDWIDTH, "32-byte loads and stores (AVX2)", |l, v| nothing(v).map(|()| l.width = Some(Width::Avx2))),
    letter('Z', "", FULL | BANDWIDTH, "64-byte loads and stores (AVX-512)", |l, v| nothing(v).map(|()| l.width = Some(Width::Avx512))),
];

/// The request of a command line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CommandLine {
    Usage,
    Measure {
        mode: Mode,
        letters: Box<Letters>,
        /// Options that were given and have no effect.
        ignored: Vec<String>,
    },
}

fn refuse<T>(message: String) -> Result<T, UsageError> {
    Err(UsageError(message))
}

/// # Errors
/// When an argument is not an option, or its value is not of its kind.
pub(crate) fn parse(args: &[OsString]) -> Result<CommandLine, UsageError> {
    let mut mode = Mode::Full;
    let mut chosen: Option<&str> = None;
    let mut usage = false;
    let mut ignored = Vec::new();
    let mut given: Vec<(&Letter, &OsStr, String)> = Vec::new();
    for arg in args {
        let shown = arg.to_string_lossy();
        let bytes = arg.as_encoded_bytes();
        if let Some(rest) = shown.strip_prefix(['\u{2013}', '\u{2014}', '\u{2212}']) {
            return refuse(pasted_dash(&shown, rest));
        }
        if let Some(&(name, this, _)) = MODES.iter().find(|(name, ..)| bytes == name.as_bytes()) {
            if let Some(before) = chosen.filter(|before| *before != name) {
                ignored.push(format!("{before}: {name} comes later"));
            }
            (mode, chosen) = (this, Some(name));
        } else if shown == "--help" || shown == "--version" {
            usage = true;
        } else {
            let row = shown.strip_prefix('-').and_then(|rest| rest.chars().next()).and_then(|c| LETTERS.iter().find(|l| l.letter == c));
            if let Some((name, ..)) = MODES.iter().find(|(name, ..)| name.strip_prefix('-') == Some(&shown)) {
                return refuse(format!("{shown} begins with one hyphen instead of two; type {name}"));
            }
            let Some(row) = row else { return refuse(format!("there is no option {shown}")) };
            // SAFETY: they follow a hyphen and a letter of ASCII, so they are whole characters of an argument.
            let value = unsafe { OsStr::from_encoded_bytes_unchecked(bytes.get(2..).unwrap_or_default()) };
            (row.set)(&mut Letters::default(), value).map_err(|why| UsageError(format!("{shown}: {why}")))?;
            given.push((row, value, shown.into_owned()));
        }
    }
    if usage || (mode == Mode::Full && given.iter().any(|(row, ..)| row.letter == 'h')) {
        return Ok(CommandLine::Usage);
    }
    let mut letters = Box::<Letters>::default();
    for (row, value, shown) in given {
        if row.applies(mode) {
            (row.set)(&mut letters, value).map_err(|why| UsageError(format!("{shown}: {why}")))?;
        } else {
            ignored.push(format!("{shown}: no effect with {}", mode.option()));
        }
    }
    Ok(CommandLine::Measure { mode, letters, ignored })
}

/// Such arguments come from pages that typeset two hyphens as one dash.
fn pasted_dash(shown: &str, rest: &str) -> String {
    let name = rest.trim_start_matches(['-', '\u{2013}', '\u{2014}', '\u{2212}']);
    let hyphens = if name.chars().count() > 1 && MODES.iter().any(|(mode, ..)| mode.trim_start_matches('-') == name) { "--" } else { "-" };
    format!(
        "{shown} begins with a dash (U+{:04X}) instead of a hyphen, as text copied from web pages does, and scripts that were; type {hyphens}{name}",
        shown.chars().next().map_or(0, u32::from)
    )
}

fn needs(what: &str) -> String {
    format!("needs {what}, attached")
}

fn nothing(value: &OsStr) -> Result<(), String> {
    if value.is_empty() { Ok(()) } else { Err("takes no value".into()) }
}

/// No value, or 0 for "off" and anything else for "on".
fn switch(value: &OsStr) -> Result<bool, String> {
    if value.is_empty() {
        return Ok(true);
    }
    let n = value.to_str().and_then(whole).ok_or("takes no value but 0 or 1")?;
    Ok(n != 0)
}

fn number(value: &OsStr, max: u32) -> Result<u32, String> {
    let n = value.to_str().and_then(whole).ok_or_else(|| needs("a whole number"))?;
    if n <= max { Ok(n) } else { Err(format!("is more than {max}")) }
}

fn bytes(value: &OsStr) -> Result<Bytes, String> {
    value.to_str().and_then(size).ok_or_else(|| needs("a size in KiB or with k, m or g"))
}

fn seconds(value: &OsStr) -> Result<f64, String> {
    let digits = value.to_str().filter(|t| t.bytes().all(|b| b.is_ascii_digit() || b == b'.'));
    let seconds: f64 = digits.and_then(|t| t.parse().ok()).ok_or_else(|| needs("a time in seconds"))?;
    let possible = seconds > 0.0 && seconds <= MAX_SECONDS && Duration::try_from_secs_f64(seconds).is_ok();
    if possible { Ok(seconds) } else { Err("is not a time to measure for".into()) }
}

fn ratio(value: &OsStr) -> Result<Mix, String> {
    let code = value.to_str().and_then(whole).ok_or_else(|| needs("a traffic code"))?;
    mix(code).ok_or_else(|| match code {
        21 | 23 | 27 => "two address streams are for the file of -o".to_owned(),
        _ => "is not a traffic code; the codes are 2 to 12 and 19".to_owned(),
    })
}

fn cpu_list(value: &OsStr) -> Result<IdSet, String> {
    list(value.to_str()).ok_or_else(|| needs("CPUs such as 1-7,12"))
}

fn cpu_mask(value: &OsStr) -> Result<IdSet, String> {
    value.to_str().and_then(mask).ok_or_else(|| needs("a hexadecimal mask of CPUs"))
}

fn name(value: &OsStr) -> Result<OsString, String> {
    if value.is_empty() { Err(needs("a name")) } else { Ok(value.into()) }
}

/// A point may take a day at most.
const MAX_SECONDS: f64 = 86_400.0;

/// A whole number without sign.
pub(crate) fn whole(text: &str) -> Option<u32> {
    text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()))
}

/// KiB, or a number with `k`, `m` or `g`.
pub(crate) fn size(text: &str) -> Option<Bytes> {
    let (digits, shift) = match text.as_bytes().last()?.to_ascii_lowercase() {
        b'k' => (&text[..text.len() - 1], 10),
        b'm' => (&text[..text.len() - 1], 20),
        b'g' => (&text[..text.len() - 1], 30),
        _ => (text, 10),
    };
    let n: u64 = digits.parse().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()))?;
    // A quarter of the address space: sums of a few buffers stay in range.
    n.checked_mul(1 << shift).filter(|&n| n > 0 && n <= u64::MAX / 4).map(Bytes)
}

/// CPUs as a list.
pub(crate) fn list(text: Option<&str>) -> Option<IdSet> {
    text?.parse::<IdSet>().ok().filter(|l| !l.is_empty())
}

/// CPUs as a hexadecimal mask, lowest digit last, in groups or not, with or without `0x`.
fn mask(text: &str) -> Option<IdSet> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    let mut cpus = IdSet::new();
    let mut first = 0;
    for digit in digits.chars().rev().filter(|c| *c != ',') {
        let bits = digit.to_digit(16)?;
        (0..4).filter(|bit| bits & (1 << bit) != 0).for_each(|bit| cpus.insert(first + bit));
        first += 4;
    }
    (!cpus.is_empty()).then_some(cpus)
}

/// The mix of a traffic code. Ratios are those at the memory: a plain store is a read and a write. Code 4 is not documented anywhere; public
/// scripts call it 3:2, and their curves lie between those of 5 and 2, as steps of the two in turn would.
pub(crate) fn mix(code: u32) -> Option<Mix> {
    Some(match code {
        2 => Mix::R2W1,
        3 => Mix::R3W1,
        4 => Mix::R3W2,
        5 => Mix::R1W1,
        6 => Mix::NtWrite,
        7 => Mix::R2W1NtX1,
        8 => Mix::R1W1Nt,
        9 => Mix::R3W1Nt,
        10 => Mix::R2W1Nt,
        11 => Mix::R3W1X2,
        12 => Mix::R4W1,
        19 => Mix::R9W1,
        _ => return None,
    })
}

/// The usage. No line begins with a digit, so that no parser takes one for a row.
pub(crate) fn usage() -> String {
    let mut text = String::from(
        "Usage: mlc [MODE] [OPTION]...\n\nWithout a mode: latency matrix, peak injection bandwidth, bandwidth matrix, loaded latency, cache to cache.\n\nModes:\n",
    );
    for (name, _, help) in MODES {
        text.push_str(&format!("  {name:<27} {help}\n"));
    }
    text.push_str("\nOptions, with the value attached (-t5, -b2g, -W3); the last one wins:\n");
    for row in &LETTERS {
        text.push_str(&format!("  -{:<27} {}\n", format!("{}{}", row.letter, row.value), row.help));
    }
    text.push_str("\nman mlc has the codes of -W, the files of -g, -M and -o, and what differs from the original.\n");
    text.push_str(concat!("This is memgauge ", env!("CARGO_PKG_VERSION"), " (", env!("MEMGAUGE_BUILD"), ").\n"));
    text
}
