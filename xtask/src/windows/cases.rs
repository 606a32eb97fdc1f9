//! Command lines of the programs for Windows, with the expected outcome of each.

use std::fs;
use std::path::Path;
use std::process::Output;

use anyhow::{Result, anyhow, ensure};

/// A command line and its expected outcome.
pub(super) struct Case {
    /// `memgauge` or `mlc`.
    pub(super) program: &'static str,
    /// Its arguments.
    pub(super) line: &'static str,
    /// The exit statuses that it may have.
    statuses: &'static [i32],
    /// Texts that must be on standard output or standard error.
    says: &'static [&'static str],
    /// Files that it writes, and what each contains.
    writes: &'static [(&'static str, &'static [u8])],
    /// It shows a result of Linux, whose advice is for Linux.
    of_linux: bool,
}

/// Words for things that only Linux has: no output on Windows may advise them.
const FOREIGN: &[&str] = &[
    "numactl",
    "taskset",
    "cpuset",
    "/dev/shm",
    "tmpfs",
    "as root",
    "sudo",
    "modprobe",
    "sysctl",
    "systemctl",
    "/sys/",
    "/proc/",
    "cgroup",
    "hugepages",
    "of the pool",
    "EDAC",
    "CAP_",
];

impl Case {
    const fn writes(self, writes: &'static [(&'static str, &'static [u8])]) -> Self {
        Self { writes, ..self }
    }

    const fn of_linux(self) -> Self {
        Self { of_linux: true, ..self }
    }

    /// Whether a run in `folder` was as expected.
    ///
    /// # Errors
    /// Names the first thing that was not, with everything that was printed.
    pub(super) fn check(&self, output: &Output, folder: &Path) -> Result<()> {
        let said = String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).into_owned();
        let status = output.status.code();
        let all = || -> Result<()> {
            ensure!(status.is_some_and(|status| self.statuses.contains(&status)), "exit status {status:?}, not {:?}", self.statuses);
            contains(said.as_bytes(), self.says.iter().map(|words| words.as_bytes()))?;
            ensure!(!said.contains("panicked at"), "it panicked");
            if !self.of_linux {
                is_of_windows(&said)?;
            }
            for (name, parts) in self.writes {
                let bytes = fs::read(folder.join(name)).map_err(|e| anyhow!("{name}: {e}"))?;
                contains(&bytes, [*parts].into_iter()).map_err(|e| anyhow!("{name}: {e}"))?;
                std::str::from_utf8(&bytes).map_or(Ok(()), is_of_windows).map_err(|e| anyhow!("{name}: {e}"))?;
            }
            Ok(())
        };
        all().map_err(|e| anyhow!("{e:#}; it printed:\n{said}"))
    }
}

/// Whether a text names nothing that only Linux has.
fn is_of_windows(text: &str) -> Result<()> {
    let foreign = FOREIGN.iter().find(|word| text.contains(**word));
    foreign.map_or(Ok(()), |word| Err(anyhow!("'{word}' is of Linux")))
}

/// Whether all of the parts are there.
fn contains<'a>(bytes: &[u8], parts: impl Iterator<Item = &'a [u8]>) -> Result<()> {
    for part in parts {
        let found = part.is_empty() || bytes.windows(part.len()).any(|window| window == part);
        ensure!(found, "'{}' is missing", String::from_utf8_lossy(part));
    }
    Ok(())
}

const fn memgauge(line: &'static str, statuses: &'static [i32], says: &'static [&'static str]) -> Case {
    Case { program: "memgauge", line, statuses, says, writes: &[], of_linux: false }
}

const fn mlc(line: &'static str, statuses: &'static [i32], says: &'static [&'static str]) -> Case {
    Case { program: "mlc", line, statuses, says, writes: &[], of_linux: false }
}

/// Files in the folder where the commands run.
pub(super) const FILES: &[(&str, &str)] = &[
    ("threads.toml", "[[threads]]\ncpus = \"0\"\nmix = \"2:1\"\nsize = \"32M\"\n"),
    // A bandwidth that every machine has.
    ("rules.toml", "[[rule]]\nexperiment = \"bandwidth\"\nfail-below = 0.1\n"),
    // A result of Linux, whose numbers and so whose statuses are known.
    ("linux.json", include_str!("../../../tests/results/two-nodes.json")),
];

/// A run that measured: on a busy machine not all cells within the time.
const MEASURED: &[i32] = &[0, 1];
/// A health check: a busy machine may look worse than it is, but memory that is sound is never an incident.
const CHECKED: &[i32] = &[0, 1, 2];
/// Nothing of it can be done here.
const NOT_HERE: &[i32] = &[4];
const WRONG: &[i32] = &[64];
/// Headings that a suite of `mlc` prints.
const MLC_PARTS: &[&str] = &[
    "Measuring idle latencies for random access",
    "Measuring Peak Injection Memory Bandwidths",
    "Measuring Memory Bandwidths between nodes",
    "Measuring Loaded Latencies",
    "Measuring cache-to-cache transfer latency",
];

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    memgauge("info", &[0], &["This process may use", "Wine ", "hardware counters, the registers of prefetchers and physical addresses need a driver"]),
    memgauge("info --format json", &[0], &["\"system\": \"windows\"", "\"schema_version\": "]),
    memgauge("--plan", &[0], &["nothing is measured", "Idle latency"]),
    memgauge("--within 20s -o suite.json", MEASURED, &["Idle latency", "QueryWorkingSetEx"])
        .writes(&[("suite.json", b"\"system\": \"windows\""), ("suite.json", b"\"loaded-latency\""), ("suite.json", b"\"cache-to-cache\"")]),
    memgauge("latency --within 3s --size 64m", MEASURED, &["QueryWorkingSetEx", "ns per dependent load"]),
    memgauge("latency --matrix --within 4s --size 64m", MEASURED, &["Idle latency", "node 0"]),
    memgauge("bandwidth --within 4s --size 32m -o bandwidth.json", MEASURED, &["all-reads", "GB/s"]),
    memgauge("bandwidth --matrix --within 6s --size 32m", MEASURED, &["Bandwidth by node", "node 0"]),
    memgauge("bandwidth --within 4s --size 32m --counters", MEASURED, &["--counters: hardware counters need a driver on Windows"]),
    memgauge("loaded --within 5s --size 32m -o curve.json", MEASURED, &["delay", "GB/s"]),
    memgauge("c2c --within 15s", MEASURED, &["HITM", "HIT"]),
    memgauge("c2c --matrix --within 10s", MEASURED, &["HITM"]),
    memgauge("sweep --within 5s --max 16m", MEASURED, &["Latency by working set"]),
    memgauge("stream 32m", &[0], &["GB/s", "checksum 370b9a40a90076c1"]),
    memgauge("chase 1m", &[0], &["ns"]),
    memgauge("scan --size 256m --within 15s", MEASURED, &["Memory scan"]),
    memgauge("scan --integrity --size 256m --within 15s", MEASURED, &["Memory scan"]),
    memgauge("quick --no-history --within 8s -o first.json", CHECKED, &["Trust"]).writes(&[("first.json", b"\"health\"")]),
    memgauge("quick --no-history --within 8s --against first.json", CHECKED, &["compared with first.json: "]),
    memgauge("quick --no-history --within 8s --rules rules.toml", CHECKED, &["compared with rules: "]),
    memgauge("quick --within 8s --state state", CHECKED, &["Trust"]).writes(&[("state/latest.json", b"\"health\"")]),
    memgauge("run threads.toml --within 5s", MEASURED, &["as given"]),
    memgauge("tiers --within 8s", NOT_HERE, &["one tier of memory"]),
    memgauge("interleave --within 8s", NOT_HERE, &["no second tier"]),
    memgauge("interleave --apply", NOT_HERE, &["no second tier"]),
    memgauge("pmem . --within 8s", MEASURED, &["is not DAX"]),
    memgauge("latency --memory-dir . --within 10s --size 16m", MEASURED, &["volatile stand-in"]),
    memgauge("prefetch", NOT_HERE, &["not known"]),
    memgauge("prefetch off", NOT_HERE, &["prefetchers cannot be switched here"]),
    memgauge("prefetch compare --within 8s", &[1], &["Prefetchers on and off", "as found"]),
    memgauge("latency --prefetch off --within 3s --size 16m", NOT_HERE, &["prefetchers cannot be switched here"]),
    memgauge("count -- cmd /c exit 7", &[7], &["ended with status 7", "need a driver on Windows"]),
    memgauge("render suite.json", &[0], &["Idle latency"]),
    memgauge("render suite.json -o suite.html", &[0], &[]).writes(&[("suite.html", b"Idle latency"), ("suite.html", b"</html>")]),
    memgauge("render suite.json -o suite.csv", &[0], &[]).writes(&[("suite.csv", b"run_id,host,started"), ("suite.csv", b"idle-latency")]),
    memgauge("render suite.json -o suite.prom", &[0], &[]).writes(&[("suite.prom", b"memgauge_"), ("suite.prom", b"# EOF")]),
    memgauge("render curve.json -o curve.svg", &[0], &[]).writes(&[("curve.svg", b"<svg "), ("curve.svg", b"</svg>")]),
    memgauge("render curve.json -o curve.png", &[0], &[]).writes(&[("curve.png", b"\x89PNG\r\n\x1a\n"), ("curve.png", b"IEND")]),
    memgauge("render curve.json -o curve.pdf", &[0], &[]).writes(&[("curve.pdf", b"%PDF-"), ("curve.pdf", b"%%EOF")]),
    memgauge("report suite.json -o report.html", &[0], &[]).writes(&[("report.html", b"Idle latency"), ("report.html", b"</html>")]),
    memgauge("advise suite.json", &[0, 4], &["Not known"]),
    memgauge("advise linux.json", &[0], &["sudo memgauge prefetch compare"]).of_linux(),
    memgauge("compare linux.json -- linux.json", &[1], &["idle latency (8) +0.0 %"]),
    memgauge("reference", &[0], &["triad per socket", "Skylake"]),
    memgauge("fleet ingest store suite.json linux.json", &[0], &["2 runs of 2 hosts"]),
    memgauge("fleet outliers store", &[1], &["0 of 2 hosts are slower"]),
    memgauge("fleet history store --host nobody", WRONG, &["nobody"]),
    memgauge("fleet baseline store", NOT_HERE, &["fewer than eight of the"]),
    memgauge("fleet export store --format openmetrics", &[0], &["memgauge_transfer_latency", "# EOF"]),
    mlc("-t0.1 -b16m", &[0], MLC_PARTS),
    mlc("--latency_matrix -t0.2 -b64m", &[0], &["Unable to modify prefetchers (Windows", "Measuring idle latencies for random access"]),
    mlc("--bandwidth_matrix -t0.2 -b32m", &[0], &["Measuring Memory Bandwidths between nodes", "Using Read-only traffic type"]),
    mlc("--peak_injection_bandwidth -t0.2 -b32m", &[0], &["ALL Reads        :\t", "Stream-triad like:\t"]),
    mlc("--max_bandwidth -t0.1 -b16m", &[0], &["Measuring Maximum Memory Bandwidths", "Stream-triad like:\t"]),
    mlc("--loaded_latency -t0.2 -b32m -d0", &[0], &["Inject\tLatency\tBandwidth", " 00000\t"]),
    mlc("--idle_latency -t0.2 -b64m", &[0], &["Each iteration took"]),
    mlc("--idle_latency -t0.2 -b64m -e0", &[0], &["Unable to modify prefetchers (Windows", "Each iteration took"]),
    mlc("--idle_latency -t0.2 -b64m -e", &[0], &["Each iteration took"]),
    mlc("--idle_latency -t0.2 -b64m -L", &[0], &["warning: no huge pages", "Each iteration took"]),
    mlc("--idle_latency -t0.2 -b64m -h", &[0], &["warning: no huge pages", "Each iteration took"]),
    mlc("--c2c_latency -t0.2", &[0], &["Local Socket L2->L2 HIT  latency\t", "Local Socket L2->L2 HITM latency\t"]),
    mlc("--memory_bandwidth_scan -t1", &[0], &["Running memory scan", "Windows shows no program where pages are"]),
    mlc("-h", &[0], &["--loaded_latency"]),
    memgauge("latency --cpu 99", WRONG, &["there is no CPU 99"]),
    memgauge("latency --node 9", WRONG, &["there is no node 9"]),
    memgauge("chase --size 0", WRONG, &["the size is zero"]),
    memgauge("bandwidth --size 900g", NOT_HERE, &["give a smaller --size"]),
    memgauge("render nothing.json", WRONG, &["nothing.json: cannot be read"]),
    memgauge("latency -o folder/nothing/x.json", WRONG, &["does not exist"]),
    memgauge("latency --within 2s -o .", WRONG, &["no format has this ending"]),
    memgauge("latency --memory-dir nothing", WRONG, &["there is no such directory"]),
    memgauge("latency --pages thp --within 2s", NOT_HERE, &["no transparent huge pages"]),
    memgauge("count -e cycles -- cmd /c ver", WRONG, &["need a driver on Windows"]),
    memgauge("info --machine .", NOT_HERE, &["on Linux only"]),
    mlc("--idle_latency -c99", WRONG, &["there is no CPU 99"]),
];
