//! The drop-in as a black box: what scripts rely on, read with parsers that are written here.

use memgauge_testing::not_tested;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::{beside_another, measured, own_cpus, simulated};
use proptest::prelude::*;

fn mlc() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mlc"));
    command.stdin(Stdio::null()).env_remove("MEMGAUGE_MLC_BANNER").env_remove("MEMGAUGE_MLC_VERSION");
    // Whoever runs the tests as root did not ask for registers to be written; tests/all/prefetch.rs has files in their place.
    command.env("MEMGAUGE_MLC_PREFETCH", "leave");
    command
}

fn run(line: &str) -> Output {
    let _permit = beside_another();
    measured(mlc().args(line.split_whitespace()))
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// A file of a test; its name is that of the test.
fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("mlc-{name}-{}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path
}

/// Standard output of a run that succeeds.
fn printed(line: &str) -> String {
    let output = run(line);
    assert!(output.status.success(), "{line}: {:?} {}", output.status, text(&output.stderr));
    keeps_the_rules(line, text(&output.stdout));
    text(&output.stdout).to_owned()
}

/// The same on the simulated machine of two nodes with CPUs and one without.
fn simulated(line: &str) -> String {
    let output = simulated::run(&format!("mlc {line}"));
    assert!(output.status.success(), "{line}: {:?} {}", output.status, text(&output.stderr));
    keeps_the_rules(line, text(&output.stdout));
    text(&output.stdout).to_owned()
}

fn one_cpu() -> bool {
    std::thread::available_parallelism().unwrap().get() < 2
}

#[test]
fn an_argument_that_is_no_text_is_refused_with_a_sentence() {
    for bytes in [&b"\xff"[..], b"-\xff", b"-b\xff", b"-b6\xc3", b"--idle_\xfflatency", b"-\xf0\x9f\x92"] {
        let output = mlc().arg("--idle_latency").arg(OsStr::from_bytes(bytes)).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(matches!(output.status.code(), Some(64)), "{bytes:?}: {:?}", output.status);
        assert!(!said.trim().is_empty() && !said.contains("panicked"), "{bytes:?}: {said}");
    }
}

/// Arguments of any bytes between letters and modes, as the property of arguments that are text has them.
fn some_bytes() -> impl Strategy<Value = OsString> {
    let bytes = prop::collection::vec(1_u8.., 0..6).prop_map(OsString::from_vec);
    prop_oneof![2 => bytes, 1 => "-[a-zA-Z][0-9a-z,./:-]{0,6}".prop_map(OsString::from)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_bytes_panic(args in prop::collection::vec(some_bytes(), 0..8)) {
        // No machine has this CPU, nor this much memory, which counts with -a: nothing is measured.
        let output = mlc().arg("--idle_latency").args(&args).args(["-c99999", "-b99999999g"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        prop_assert!(matches!(output.status.code(), Some(1 | 4 | 64)) && !said.contains("panicked"), "{args:?}: {} {said}", output.status);
    }
}

/// Rules that hold in every mode.
fn keeps_the_rules(line: &str, out: &str) {
    let first = out.lines().next().unwrap();
    assert_eq!(first.split_whitespace().nth(5), Some("v3.11b"), "{first}");
    assert_eq!(first.split("Memory Latency Checker - ").nth(1), Some("v3.11b"), "{first}");
    for row in out.lines().filter(|l| l.trim_start().starts_with(|c: char| c.is_ascii_digit())) {
        let fields = row.split(|c: char| c.is_whitespace() || c == ':').filter(|f| !f.is_empty());
        let numbers = fields.filter(|f| f.parse::<f64>().is_ok()).count();
        assert!(numbers >= 1 && row.contains('\t'), "{line}: {row:?}");
    }
    assert!(out.ends_with('\n') && !out.contains("nan"), "{line}: {out}");
}

#[test]
fn the_banner_is_the_first_line_of_every_run() {
    for (line, code) in
        [("--help", 0), ("--version", 0), ("-h", 0), ("--invalid_argument", 64), ("-y", 64), ("-tx", 64), ("\u{2013}t5", 64)]
    {
        let output = run(line);
        assert_eq!(output.status.code(), Some(code), "{line}");
        let out = text(&output.stdout);
        keeps_the_rules(line, out);
        assert_eq!(out.lines().next(), Some("memgauge(compatible) Memory Latency Checker - v3.11b"));
        assert!(out.contains("Usage: mlc") && out.contains("--loaded_latency"), "{out}");
        assert_eq!(text(&output.stderr).is_empty(), code == 0, "{line}: {}", text(&output.stderr));
    }
    let output = run("--loaded_latency -o/nowhere/at/all");
    assert_eq!((output.status.code(), text(&output.stdout).lines().count()), (Some(64), 3));
    assert!(text(&output.stderr).contains("/nowhere/at/all"));
}

#[test]
fn two_variables_change_the_banner_for_parsers_that_insist() {
    let output = mlc().arg("--help").env("MEMGAUGE_MLC_BANNER", "Some Other(R)").env("MEMGAUGE_MLC_VERSION", "v3.9a").output().unwrap();
    assert_eq!(text(&output.stdout).lines().next(), Some("Some Other(R) Memory Latency Checker - v3.9a"));
}

#[test]
fn other_names_for_the_same_program() {
    let native = Command::new(env!("CARGO_BIN_EXE_memgauge")).args(["mlc", "--help"]).output().unwrap();
    assert_eq!(native.stdout, run("--help").stdout);
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("names-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (name, program) in [("mlc", "memgauge"), ("mlc_avx512", "memgauge"), ("mlc_avx512", "mlc")] {
        let link = folder.join(name);
        let _ = std::fs::remove_file(&link);
        let target = if program == "mlc" { env!("CARGO_BIN_EXE_mlc") } else { env!("CARGO_BIN_EXE_memgauge") };
        std::os::unix::fs::symlink(target, &link).unwrap();
        let linked = Command::new(&link).arg("--version").output().unwrap();
        assert_eq!(linked.stdout, run("--version").stdout, "{name} of {program}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn idle_latency() {
    for (line, buffer) in [("--idle_latency -e -t0.05 -b2m", "2.000MiB"), ("-b1000 -X -t0.05 -Z --idle_latency -r", "0.977MiB")] {
        let out = printed(line);
        assert_eq!(out.lines().nth(1).unwrap(), format!("Command line parameters: {line} "));
        assert_eq!(out.lines().nth(3).unwrap(), format!("Using buffer size of {buffer}"));
        assert_eq!(out.contains("*** Unable to modify prefetchers"), !line.contains("-e"), "{out}");
        // Words, as awk sees them: Each iteration took N base frequency clocks ( N ns)
        let words: Vec<&str> = out.lines().find(|l| l.starts_with("Each iteration took")).unwrap().split_whitespace().collect();
        let (clocks, ns): (f64, f64) = (words[3].parse().unwrap(), words[8].parse().unwrap());
        assert_eq!((words[7], words[9]), ("(", "ns)"), "{words:?}");
        assert!(clocks > 0.2 && ns > 0.2 && ns < 100_000.0, "{words:?}");
    }
}

/// Takes what root may do beyond others, as a container does. Whoever is not root has none of it.
fn without_capabilities(command: &mut Command) -> &mut Command {
    // SAFETY: between fork and exec it makes system calls only. Bits that the kernel does not know fail and change nothing.
    unsafe {
        command.pre_exec(|| {
            for bit in 0..64_u64 {
                libc::prctl(libc::PR_CAPBSET_DROP, bit, 0, 0, 0);
            }
            Ok(())
        })
    }
}

#[test]
fn without_privileges_chases_are_random_and_standard_error_says_why() {
    let _permit = beside_another();
    let mut command = mlc();
    command.args(["--latency_matrix", "-b2m", "-t0.05"]).env_remove("MEMGAUGE_MLC_PREFETCH");
    let output = measured(without_capabilities(&mut command));
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{:?} {err}", output.status);
    keeps_the_rules("--latency_matrix", out);
    let lines =
        "*** Unable to modify prefetchers (try executing 'modprobe msr')\n*** So, enabling random access for latency measurements\n";
    assert!(out.contains(lines) && out.contains("for random access"), "{out}");
    assert!(err.contains("mlc: prefetchers stay on: "), "{err}");
    assert!(err.lines().all(|l| l.starts_with("mlc: ") && !l.contains(" --")), "{err}");
}

#[test]
fn rows_of_a_scan_have_three_columns_with_addresses_or_without() {
    let _permit = beside_another();
    let mut command = mlc();
    command.args(["--memory_bandwidth_scan", "-q1"]);
    // One GiB is enough.
    let most = libc::rlimit { rlim_cur: 5 << 29, rlim_max: 5 << 29 };
    // SAFETY: between fork and exec it makes one system call only.
    unsafe {
        command.pre_exec(
            move || if libc::setrlimit(libc::RLIMIT_AS, &raw const most) == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) },
        )
    };
    let output = measured(without_capabilities(&mut command));
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    if output.status.code() == Some(4) {
        not_tested!("a scan without addresses: {err}");
    }
    let rows: Vec<Vec<&str>> = out
        .lines()
        .skip_while(|l| !l.starts_with("phys_addr\t"))
        .skip(1)
        .take_while(|l| !l.is_empty())
        .map(|l| l.split('\t').collect())
        .collect();
    assert!(!rows.is_empty(), "{out}{err}");
    for row in rows {
        let [address, gigabyte, rate] = row[..] else { panic!("{row:?}") };
        assert!((address, gigabyte) == ("nan", "nan") && rate.parse::<f64>().is_ok(), "{row:?}");
    }
    assert_eq!(err.matches("mlc: addresses are 'nan' in rows: only root may read where pages are").count(), 1, "{err}");
}

#[test]
fn a_window_that_is_too_small_is_told_and_measured() {
    if one_cpu() {
        not_tested!("one CPU");
    }
    let output = run("--loaded_latency -U -n1 -d0 -t0.05 -b2m");
    let err = text(&output.stderr);
    assert!(output.status.success() && text(&output.stdout).contains("\n 00000\t"), "{err}");
    assert!(err.contains("mlc: -n1: the smallest window of random traffic has ") && !err.contains("not measured"), "{err}");
}

#[test]
fn matrices() {
    for (line, heading) in [
        ("--latency_matrix", "Measuring idle latencies for random access (in ns)..."),
        ("--bandwidth_matrix -e -W3", "Measuring Memory Bandwidths between nodes within system "),
    ] {
        let out = simulated(line);
        let from = out.lines().position(|l| l == heading).unwrap();
        // No empty line between the buffer line or the lines about prefetchers and the heading.
        assert!(!out.lines().nth(from - 1).unwrap().is_empty(), "{out}");
        let head = out.lines().find(|l| l.starts_with("Numa node\t")).unwrap();
        let columns = head.trim().split('\t').count();
        let rows: Vec<&str> = out.lines().skip_while(|l| *l != head).skip(1).take_while(|l| !l.is_empty()).collect();
        assert!(rows.len() == 2 && rows.iter().all(|r| r.trim().split('\t').count() == columns && r.ends_with('\t')), "{out}");
        assert!(rows.iter().flat_map(|r| r.trim().split('\t')).all(|f| f.trim().parse::<f64>().is_ok()), "{out}");
    }
}

#[test]
fn the_peak_table_ends_its_output() {
    let out = simulated("--peak_injection_bandwidth -e");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[lines.len() - 1], "");
    let rows = &lines[lines.len() - 6..lines.len() - 1];
    assert!(rows.iter().all(|r| r.len() > 18 && r.as_bytes()[17] == b':' && r[18..].trim().parse::<f64>().unwrap() > 0.0), "{out}");
    assert_eq!(lines[4], "", "an empty line before the heading: {out}");
}

#[test]
fn loaded_latency() {
    let out = simulated("--loaded_latency -e -r -b64m -W5");
    assert!(out.ends_with('\n') && out.lines().last().unwrap().starts_with(" 20000\t"), "scripts take the last line: {out}");
    assert!(!out.contains("Using Read-only") && !out.contains("traffic type"), "no line names a mix with stores: {out}");
    let sizes = "Using buffer size of 64.000MiB/thread for reads and an additional 64.000MiB/thread for writes";
    assert_eq!(out.lines().nth(3), Some(sizes), "{out}");
    let rows: Vec<Vec<f64>> = out
        .lines()
        .skip_while(|l| !l.starts_with("====="))
        .skip(1)
        .take_while(|l| !l.is_empty())
        .map(|l| l.split_whitespace().map(|w| w.parse().unwrap()).collect())
        .collect();
    let delays: Vec<u32> = rows.iter().map(|r| r[0] as u32).collect();
    assert_eq!(delays, [0, 2, 8, 15, 50, 100, 200, 300, 400, 500, 700, 1000, 1300, 1700, 2500, 3500, 5000, 9000, 20000]);
    assert!(rows[0][2] > 10.0 * rows[18][2] && rows[0][1] > 1.5 * rows[18][1] && rows.iter().all(|r| r[1] > 0.2), "{out}");
    assert_eq!(out.lines().filter(|l| l.contains("00000")).count(), 1, "{out}");
    let alone = simulated("-T --loaded_latency -d0");
    assert!(alone.lines().any(|l| l.starts_with(" 00000\t  0.00\t")), "{alone}");
}

#[test]
fn transfers() {
    if one_cpu() {
        not_tested!("one CPU");
    }
    let pair = simulated("--c2c_latency -c1 -w0");
    // Scripts wait for the section's line.
    let heading = "Measuring cache-to-cache transfer latency (in ns)...\nLatency = ";
    assert!(pair.contains(heading), "{pair}");
    let line = pair.lines().find(|l| l.starts_with("Latency = ")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert!(words[2].parse::<f64>().unwrap() > 1.0 && words[6].trim_start_matches('(').parse::<f64>().unwrap() > 1.0, "{line}");
    // A pass over each of three allocations, however widely their windows scatter: a window is 4 KiB.
    let pass = run("--c2c_latency -c1 -w0 -b1m -C4 -D4 -x0 -v");
    let windows = text(&pass.stderr).split(", n ").nth(1).and_then(|rest| rest.split(',').next()?.parse::<u32>().ok());
    assert!(text(&pass.stdout).contains("Latency = ") && windows.is_some_and(|n| n <= 3 * 256), "{windows:?}: {}", text(&pass.stderr));
    let all = simulated("--c2c_latency");
    assert!(all.contains("\nMeasuring cache-to-cache transfer latency (in ns)...\n"), "{all}");
}

#[test]
fn pages_that_the_pool_lacks_never_end_a_run() {
    let output = run("--idle_latency -e -t0.01 -b65m -h -l65536");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("Each iteration took"));
}

#[test]
fn an_interruption_keeps_what_is_printed() {
    let _permit = beside_another();
    let mut child = mlc().args(["-e", "-t1", "-b2m"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let (mut seen, mut byte) = (Vec::new(), [0]);
    // The first table is read while the run goes on.
    let begin = Instant::now();
    while !text(&seen).contains("\n\n") {
        assert_eq!(out.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&seen));
        seen.push(byte[0]);
        assert!(begin.elapsed() < Duration::from_secs(60));
    }
    assert!(text(&seen).contains("Measuring idle latencies"));
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!rest.contains("cache-to-cache"), "{rest}");
}

#[test]
fn a_signal_ends_it_with_the_status_that_shells_give_it() {
    let _permit = beside_another();
    for (signal, status) in [("-TERM", 143), ("-HUP", 129)] {
        let mut command = mlc();
        // Whoever runs the tests may have SIGHUP ignored.
        // SAFETY: between fork and exec it makes one system call only.
        unsafe {
            command.pre_exec(|| {
                libc::signal(libc::SIGHUP, libc::SIG_DFL);
                Ok(())
            })
        };
        command.args(["--bandwidth_matrix", "-t20", "-b2m", "-v"]).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The plan is told after signals are watched for.
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        assert!(lines.any(|line| line.contains("Plan ")));
        Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        lines.for_each(drop);
        assert_eq!(child.wait().unwrap().code(), Some(status), "{signal}");
    }
}

#[test]
fn without_standard_output_it_measures_and_says_that_the_tables_are_lost() {
    let _permit = beside_another();
    let mut command = mlc();
    command.args(["--bandwidth_matrix", "-t0.05", "-b2m", "-v"]);
    // SAFETY: between fork and exec it makes one system call only.
    unsafe {
        command.pre_exec(|| {
            libc::close(libc::STDOUT_FILENO);
            Ok(())
        })
    };
    let output = measured(command.stderr(Stdio::piped()));
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert!(err.contains("bandwidth-matrix, ") && err.contains(" median "), "it measured: {err}");
    assert!(err.lines().last().unwrap().contains("standard output was closed"), "{err}");
}

/// What a terminal gets of both streams.
fn on_a_terminal(line: &str) -> String {
    let command = format!("{} {line}", env!("CARGO_BIN_EXE_mlc"));
    let mut script = Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).env("MEMGAUGE_MLC_PREFETCH", "leave").env("TERM", "xterm").stdin(Stdio::null());
    let _permit = beside_another();
    let output = measured(&mut script);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_terminal_gets_no_progress_between_rows() {
    if Command::new("script").arg("--version").output().is_err() {
        not_tested!("there is no script(1)");
    }
    let seen = on_a_terminal("--latency_matrix -e -t0.3 -b2m");
    assert!(!seen.contains('\u{1b}') && !seen.contains("% ,") && !seen.contains("left"), "{seen:?}");
    let rows = seen.lines().filter(|l| l.trim_start().starts_with(|c: char| c.is_ascii_digit())).count();
    let nodes = seen.lines().find(|l| l.starts_with("Numa node\t")).unwrap().trim().split('\t').count() - 1;
    assert!(rows >= 1 && rows <= nodes, "{seen:?}");
    assert!(on_a_terminal("--latency_matrix -e -t0.3 -b2m -v").contains('\u{1b}'), "-v shows progress");
}

#[test]
fn a_cpu_mask_that_is_no_cpuset_is_widened_with_a_note() {
    let [first, other, ..] = own_cpus()[..] else { not_tested!("there is one CPU") };
    let _permit = beside_another();
    for (line, on) in [(format!("--idle_latency -e -c{first} -t0.05 -b2m"), other), ("--loaded_latency -d0 -t0.05 -b2m".into(), first)] {
        let mut command = mlc();
        command.args(line.split_whitespace());
        // SAFETY: between fork and exec it makes one system call only, with a set of its own.
        unsafe {
            command.pre_exec(move || {
                let mut one: libc::cpu_set_t = std::mem::zeroed();
                libc::CPU_SET(on, &mut one);
                if libc::sched_setaffinity(0, size_of_val(&one), &raw const one) == 0 {
                    Ok(())
                } else {
                    Err(std::io::Error::last_os_error())
                }
            })
        };
        let output = measured(&mut command);
        let err = text(&output.stderr);
        assert!(output.status.success(), "{line}: {err}");
        assert_eq!(err.matches("are used although the CPU mask").count(), 1, "{line}: {err}");
    }
    assert!(!text(&run("--idle_latency -e -t0.05 -b2m").stderr).contains("CPU mask"), "nothing was left out");
}

/// The lines of a public driver's `benchmark` command (intel/PerfSpect) on a simulated machine, read with its expressions.
#[test]
fn the_nine_lines_of_a_public_driver_are_read_by_its_expressions() {
    let number = |word: &str| word.contains('.') && word.parse::<f64>().is_ok();
    // `\s*[0-9]*\s*([0-9]*\.[0-9]+)\s*([0-9]*\.[0-9]+)` of a line.
    let pairs = |out: &str| -> Vec<(f64, f64)> {
        let row = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [.., latency, bandwidth] = words[..] else { return None };
            (number(latency) && number(bandwidth)).then(|| (latency.parse().unwrap(), bandwidth.parse().unwrap()))
        };
        out.lines().filter_map(row).collect()
    };
    // `^\s+(\d+)\s+(\d.*)$` of a line, its second group split at tabs.
    let matrix = |out: &str| -> Vec<Vec<f64>> {
        let row = |line: &str| {
            let (node, cells) = line.strip_prefix(' ')?.trim_start().split_once(['\t', ' '])?;
            let cells = cells.trim();
            let is_row = node.parse::<u32>().is_ok() && cells.starts_with(|c: char| c.is_ascii_digit());
            is_row.then(|| cells.split('\t').map(|cell| cell.trim().parse().unwrap()).collect())
        };
        out.lines().filter_map(row).collect()
    };
    // `\(\s*([\d.]+)\s*ns\)`.
    let idle = |out: &str| -> Option<f64> { out.rsplit_once('(')?.1.split_once("ns)")?.0.trim().parse().ok() };
    let rows = pairs(&simulated("--loaded_latency -b2048 -X"));
    assert!(rows.len() == 19 && rows.iter().all(|(ns, mbs)| *ns > 0.0 && *mbs > 0.0), "{rows:?}");
    for buffer in [20, 512, 1024] {
        let rows = pairs(&simulated(&format!("--loaded_latency -d0 -T -b{buffer} -t5")));
        assert!(matches!(rows[..], [(ns, mbs)] if ns == 0.0 && mbs > 0.0), "-b{buffer}: {rows:?}");
    }
    for mode in ["--bandwidth_matrix -b2048 -X", "--latency_matrix -b2048 -X"] {
        let rows = matrix(&simulated(mode));
        assert!(rows.len() == 2 && rows.iter().flatten().all(|value| *value > 0.0), "{mode}: {rows:?}");
    }
    for buffer in [20, 512, 4096] {
        let ns = idle(&simulated(&format!("--idle_latency -b{buffer} -t5 -c1 -i0")));
        assert!(ns.is_some_and(|ns| ns > 0.0), "-b{buffer}: {ns:?}");
    }
}

#[test]
fn small_buffers_are_measured() {
    for line in [
        "--loaded_latency -d0 -T -b12 -t0.01",
        "--loaded_latency -d0 -T -b1 -t0.01",
        "--peak_injection_bandwidth -b1 -t0.01",
        "--bandwidth_matrix -b4 -W5 -t0.01",
        "--bandwidth_matrix -b1 -W19 -t0.01",
        "--loaded_latency -d0 -b1 -W19 -t0.01",
    ] {
        let out = printed(line);
        assert!(out.contains("MB/sec"), "{line}: {out}");
    }
}

#[test]
fn a_file_of_threads_may_name_a_node_the_latency_cpu_alone_and_comments() {
    let alone = file("alone", "0-0 R seq 8000 dram 0   # no load\n");
    let delays = file("alone-delays", "0\n100\n20000\n");
    let out = printed(&format!("--loaded_latency -i0 -g{} -t0.05 -b8m -o{}", delays.display(), alone.display()));
    let rows: Vec<&str> = out.lines().filter(|l| l.starts_with(' ')).map(|l| &l[1..6]).collect();
    assert_eq!(rows, ["00000", "00100", "20000"], "{out}");
    std::fs::remove_file(delays).unwrap();
    let row: Vec<f64> = out.lines().find(|l| l.starts_with(" 00000\t")).unwrap().split_whitespace().map(|w| w.parse().unwrap()).collect();
    assert!(row.len() == 3 && row[1] > 0.2 && (row[2] * row[1] / 64e3 - 1.0).abs() < 0.1, "{out}");
    std::fs::remove_file(alone).unwrap();
    if one_cpu() {
        not_tested!("one CPU");
    }
    let loaded = file("loaded", "0-1 R seq 8000 dram 0\n1 R seq 8000 dram 0 700\n");
    let output = run(&format!("--loaded_latency -i0 -d0 -t0.05 -b8m -W5 -o{}", loaded.display()));
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && out.contains("\nCPU 1, delay 700:\t"), "{out}{err}");
    assert!(err.contains("-W, -R: no effect"), "{err}");
    // One basis: what the threads moved and the chase's own line a hop are the row.
    let row: Vec<f64> = out.lines().find(|l| l.starts_with(" 00000\t")).unwrap().split_whitespace().map(|w| w.parse().unwrap()).collect();
    let thread: f64 = out.lines().find(|l| l.starts_with("CPU 1,")).unwrap().rsplit('\t').next().unwrap().parse().unwrap();
    assert!(((thread + 64e3 / row[1]) / row[2] - 1.0).abs() < 0.02, "{out}");
    std::fs::remove_file(loaded).unwrap();
}

#[test]
fn rows_are_printed_as_they_are_measured() {
    if one_cpu() {
        not_tested!("one CPU");
    }
    let _permit = beside_another();
    let delays = file("delays", "0\n100\n20000\n");
    let line = format!("--loaded_latency -e -t1 -b4m -g{}", delays.display());
    let mut child = mlc().args(line.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with(" 00000\t")));
    // Nothing more can be printed by a program that is gone: what follows was not known yet.
    child.kill().unwrap();
    child.wait().unwrap();
    let rest: Vec<String> = lines.collect();
    assert!(!rest.iter().any(|line| line.starts_with(" 20000\t")), "{rest:?}");
    std::fs::remove_file(delays).unwrap();
}

#[test]
fn messages_name_letters_and_say_what_is_done() {
    for (line, words) in [
        ("--idle_latency -e -p40000", vec!["-p: there is no CPU 40000"]),
        ("--c2c_latency -c0 -w1 -S40000", vec!["-S: there is no CPU 40000"]),
        ("--idle_latency -e -b900000g", vec!["give a smaller -b"]),
        ("--idle_latency -e -J/nowhere/at/all", vec!["/nowhere/at/all: there is no such directory"]),
        ("--idle_latency -e -i40000", vec!["-i: there is no CPU 40000"]),
    ] {
        let output = run(line);
        let err = text(&output.stderr);
        assert!(!output.status.success(), "{line}");
        for word in words {
            assert!(err.contains(word), "{line}: {err}");
        }
        assert!(err.lines().all(|l| l.starts_with("mlc: ") && !l.contains(" --")), "{line}: {err}");
    }
    let verbose = run("--idle_latency -e -v -t0.05 -b2m");
    let err = text(&verbose.stderr);
    assert!(err.contains("Plan  the run takes") && !err.contains("nothing is measured"), "{err}");
}

#[test]
fn a_reader_that_went_away_is_no_success() {
    let _permit = beside_another();
    let mut child = mlc().args(["--idle_latency", "-e", "-t1", "-b2m"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("standard output was closed"), "{}", text(&output.stderr));
}

#[test]
fn waiting_for_another_program_is_told() {
    if one_cpu() {
        not_tested!("one CPU");
    }
    let _permit = beside_another();
    let name = format!("mlc-test-{}", std::process::id());
    let mut child = mlc()
        .args(["--loaded_latency", "-e", "-T", "-d0", "-t0.05", "-b2m", &format!("-s{name}")])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let told = lines.any(|line| line.contains(&format!("waits until the shared-memory word /{name} is 1")));
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    child.wait().unwrap();
    assert!(told);
}
