//! `memgauge where` as its users meet it: programs, processes, what it refuses.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Output, Stdio};

use memgauge_model::result::{Report, Residency};

use crate::scheduled::{NOBODY, is_root};
use crate::support::{copy_program, temporary, text};

const CHASE: &str = env!("CARGO_BIN_EXE_memgauge");

fn memgauge(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_memgauge"));
    // What is kept of this machine has prices or not.
    command.args(arguments).stdin(Stdio::null()).env("MEMGAUGE_STATE", "");
    command
}

fn where_is(arguments: &[&str]) -> Output {
    memgauge(&[&["where"], arguments].concat()).output().unwrap()
}

fn residency(json: &[u8]) -> Residency {
    let report: Report = serde_json::from_slice(json).unwrap_or_else(|e| panic!("{e}: {}", text(json)));
    *report.residency.unwrap()
}

/// A process that is killed at the end of a test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A shell that says that it is there, and waits.
fn waiting(script: &str) -> Running {
    let mut child = Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    Running(child)
}

#[test]
fn a_program_is_observed_from_start_to_end_and_its_status_passed_on() {
    let folder = temporary("program");
    let json = folder.join("r.json");
    let output = where_is(&["-q", "-o", json.to_str().unwrap(), "--", CHASE, "chase", "64M", "--passes", "40"]);
    assert!(output.status.success() && text(&output.stdout).starts_with("chase 64 MiB"), "{output:?}");
    let found = residency(&std::fs::read(&json).unwrap());
    std::fs::remove_dir_all(folder).unwrap();
    let [process] = found.processes.as_slice() else { panic!("{found:?}") };
    assert!(process.memory.present.0 >= 64 << 20 && process.mappings[0].present.0 >= 64 << 20, "{process:?}");
    assert!(process.ran_s() > 0.0 && found.points.len() > 1, "{:?} {}", process.cpu_s, found.points.len());
    let ended = where_is(&["-q", "--", "sh", "-c", "sleep 0.3; exit 7"]);
    assert_eq!(ended.status.code(), Some(7));
    let missing = where_is(&["--", "no-such-program-here"]);
    assert!(missing.status.code() == Some(127) && text(&missing.stderr).contains("cannot run no-such-program-here"), "{missing:?}");
}

#[test]
fn children_belong_to_a_program() {
    let folder = temporary("children");
    let json = folder.join("r.json");
    let script = format!("{CHASE} chase 16M --passes 60 & {CHASE} chase 16M --passes 60; wait");
    let output = where_is(&["-q", "-o", json.to_str().unwrap(), "--", "sh", "-c", &script]);
    assert!(output.status.success(), "{output:?}");
    let found = residency(&std::fs::read(&json).unwrap());
    std::fs::remove_dir_all(folder).unwrap();
    assert!(found.processes.len() >= 2 && found.not_seen.is_empty(), "{found:?}");
}

#[test]
fn a_process_is_shown_in_every_format_and_one_that_is_gone_is_named() {
    let shell = waiting("echo ready; read _");
    let pid = shell.0.id().to_string();
    let page = where_is(&["--for", "200ms", &pid]);
    assert!(page.status.success(), "{page:?}");
    let page = text(&page.stdout);
    assert!(
        page.contains("Memory by node") && page.contains(&format!("of sh ({pid}), 1 thread")) && page.contains("Largest mappings"),
        "{page}"
    );
    let show = |format: &str| text(&where_is(&["--for", "100ms", "--format", format, &pid]).stdout).to_owned();
    assert!(show("csv").lines().any(|row| row.contains(",where,memory,pages,") && row.contains("process ")), "{}", show("csv"));
    assert!(show("openmetrics").contains("memgauge_process_memory_bytes{"), "{}", show("openmetrics"));
    assert!(show("html").contains("Memory by node"));
    let one_gone = where_is(&["--for", "100ms", &pid, "4194303"]);
    assert_eq!(one_gone.status.code(), Some(1));
    assert!(text(&one_gone.stdout).contains("Not seen: process 4194303: there is no such process"), "{}", text(&one_gone.stdout));
    let gone = where_is(&["4194303"]);
    assert!(gone.status.code() == Some(4) && text(&gone.stderr).contains("there is no such process"), "{gone:?}");
}

#[test]
fn readings_end_with_the_process_and_make_a_figure() {
    let mut shell = waiting("echo ready; sleep 5");
    let (folder, pid) = (temporary("figure"), shell.0.id().to_string());
    let waited = std::thread::spawn(move || shell.0.wait());
    let figure = folder.join("moves.svg");
    let output = where_is(&["-q", "--every", "100ms", "-o", figure.to_str().unwrap(), &pid]);
    assert!(output.status.success(), "{output:?}");
    assert!(std::fs::read_to_string(figure).unwrap().contains("Memory by node"));
    std::fs::remove_dir_all(folder).unwrap();
    waited.join().unwrap().unwrap();
}

/// A Python program that says a line when it is ready, and waits; `None` without Python.
fn python(script: &str) -> Option<(Running, String)> {
    let mut command = Command::new("python3");
    let mut child = command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    Some((Running(child), line))
}

#[test]
fn ten_thousand_threads_are_seen() {
    // Where processes are limited, other tests need some too.
    let script = "\
import _thread, resource, sys
most = [resource.getrlimit(resource.RLIMIT_NPROC)[0]]
try: most.append(open('/sys/fs/cgroup/pids.max').read().strip())
except OSError: pass
most = [int(n) for n in most if n not in (-1, 'max')]
threads = 10000 if min(most, default=10**9) > 30000 else 2000
_thread.stack_size(65536)
lock = _thread.allocate_lock()
lock.acquire()
try:
    for _ in range(threads - 1): _thread.start_new_thread(lock.acquire, ())
except RuntimeError:
    print('no', flush=True)
    sys.exit()
print(threads, flush=True)
sys.stdin.read()
";
    let Some((child, line)) = python(script) else { memgauge_testing::not_tested!("there is no python3 here") };
    let Ok(threads) = line.trim().parse::<u32>() else {
        memgauge_testing::not_tested!("thousands of threads cannot be started here");
    };
    let output = where_is(&["--for", "500ms", "--format", "json", &child.0.id().to_string()]);
    let found = residency(&output.stdout);
    assert_eq!(found.processes[0].threads, threads);
    assert_eq!(found.processes[0].threads_by_cpu.values().sum::<u32>(), threads);
}

#[test]
fn pages_that_are_not_touched_do_not_count() {
    // 256 MiB; the first 32 MiB are used again and again, in more base pages than a TLB has translations for.
    let script = "import ctypes, sys, threading, time\nctypes.CDLL(None).prctl(41, 1, 0, 0, 0)\nb = bytearray(256 << 20)\nv = memoryview(b)\nv[::4096] = bytes(len(v[::4096]))\ndef use():\n while True:\n  v[:32 << 20:4096] = bytes(8192)\n  time.sleep(0.01)\nthreading.Thread(target=use, daemon=True).start()\nprint('ready', flush=True)\nsys.stdin.read()\n";
    let Some((child, line)) = python(script) else { memgauge_testing::not_tested!("there is no python3 here") };
    assert_eq!(line, "ready\n");
    let pid = child.0.id().to_string();
    let touched = |arguments: &[&str]| {
        let output = where_is(&[arguments, &["--format", "json", &pid]].concat());
        let found = residency(&output.stdout);
        assert!(found.present().0 >= 256 << 20, "{found:?}");
        found.touched_by_node().map(|nodes| nodes.values().map(|bytes| bytes.0 >> 20).sum::<u64>())
    };
    let mib = touched(&["--touched", "--for", "500ms"]);
    if mib.is_none() {
        memgauge_testing::not_tested!("this kernel does not say which pages are touched");
    }
    assert!(mib.is_some_and(|mib| (30..128).contains(&mib)), "{mib:?}");
    assert_eq!(touched(&["--for", "100ms"]), None, "it was not asked for");
    let page = where_is(&["--touched", "--for", "300ms", &pid]);
    assert!(text(&page.stdout).contains("touched"), "{page:?}");
}

#[test]
fn processes_of_others_are_refused_with_the_reason() {
    if !is_root() {
        memgauge_testing::not_tested!("only root can become another user");
    }
    // Others do not reach the program's own folder.
    let folder = std::path::Path::new("/tmp").join(format!("memgauge-where-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let program = folder.join("memgauge");
    copy_program(env!("CARGO_BIN_EXE_memgauge").as_ref(), &program);
    let shell = waiting("echo ready; read _");
    let mut command = Command::new(program);
    command.args(["where", "--for", "100ms", &shell.0.id().to_string()]).stdin(Stdio::null()).env("MEMGAUGE_STATE", "");
    let output = command.uid(NOBODY).gid(NOBODY).output().unwrap();
    std::fs::remove_dir_all(folder).unwrap();
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let said = text(&output.stderr);
    assert!(said.contains("it is user 0's") && said.contains("as root with CAP_SYS_PTRACE"), "{said}");
}

#[test]
fn wrong_usage_is_refused_before_anything_is_read() {
    let refused = |arguments: &[&str], why: &str| {
        let output = where_is(arguments);
        assert!(output.status.code() == Some(64) && text(&output.stderr).contains(why), "{arguments:?}: {output:?}");
    };
    refused(&[], "required");
    refused(&["1", "--", "true"], "cannot be used with");
    refused(&["--cgroup", "no/such/group"], "no/such/group is not a control group");
    refused(&["--prices", "/dev/null", "1"], "/dev/null");
    let of_another = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/results/two-nodes.json");
    refused(&["--prices", of_another, "1"], "is a result of another machine");
    refused(&["0"], "0 is not in 1..");
    refused(&["--panel", "state", "-o", "x.svg", "1"], "it can have: memory-by-node, expected-latency");
}
