//! The suite for persistent memory, on a directory that stands in for it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use memgauge_model::estimate::NotMeasured;
use memgauge_model::experiment::Experiment;
use memgauge_model::result::{Incomplete, Measurement, Report};
use memgauge_testing::not_tested;

use crate::support::watch::{InTime, Watched};
use crate::support::{beside_another, program, simulated, temporary, text};

fn names(folder: &Path) -> BTreeSet<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn report(output: &Output) -> Report {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {:?} {}", output.status, text(&output.stderr)))
}

#[test]
fn each_run_has_a_file_with_the_name_that_scripts_know() {
    let (files, out) = (temporary("pmem-files"), temporary("pmem-out").join("today"));
    // The CPUs of one node: with those of two, each has a folder.
    let run =
        || simulated::run(&format!("memgauge pmem {} --cpu 0-3 --ramp --loaded --time 60ms --out {}", files.display(), out.display()));
    let output = run();
    assert!(output.status.success(), "{:?}: {}", output.status, text(&output.stderr));
    assert!(text(&output.stderr).contains("this takes about"), "{}", text(&output.stderr));
    assert!(!output.stdout.contains(&0x1b), "captured output is plain");
    let written = names(&out);
    for run in ["idle_seq", "idle_rnd", "access_size", "persist_latency", "bw_seq_R_1CPU", "bw_rand_W2_1CPU", "bw_seq_W6_1CPU"] {
        assert!(written.contains(&format!("{run}.txt")), "{run}: {written:?}");
    }
    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap_or_else(|error| panic!("{name}: {error} {written:?}"));
    for run in ["READ", "WRITE_NT", "2READ_1WRITE_NT", "1READ_1WRITE", "2READ_1WRITE"] {
        for order in ["seq", "rnd"] {
            let page = read(&format!("bw_{order}_{run}.txt"));
            assert!(page.contains("volatile stand-in"), "{order} {run}: {page}");
        }
    }
    // The delays of the field's script, and a point of the curve for each.
    let delays: Vec<u32> = read("delays.txt").lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!((delays.len(), delays[0], delays[7], delays[19]), (20, 0, 700, 80000));
    for order in ["seq", "rnd"] {
        let start = format!("out_llat_{order}_READ_");
        let Some(curve) = written.iter().find(|name| name.starts_with(&start)) else { panic!("{start}: {written:?}") };
        let page = read(curve);
        let listed: BTreeSet<u32> = page.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect();
        assert!(delays.iter().all(|delay| listed.contains(delay)), "{page}");
    }
    assert!(read("dimm_info.dat").contains("no modules of persistent memory: "), "{}", read("dimm_info.dat"));
    assert!(read("result.csv").lines().count() > 40);
    let whole: Report = serde_json::from_slice(&fs::read(out.join("result.json")).unwrap()).unwrap();
    let directory = &whole.plan.as_ref().unwrap().directories[0].file;
    assert!(directory.volatile.is_some(), "{directory:?}");
    assert!(whole.results.iter().all(|m| m.at.memory_dir.as_deref() == Some(directory.path.as_str()) && m.at.cpu_node.is_some()));
    let ns =
        |block| whole.results.iter().filter(move |m| m.experiment == Experiment::PersistLatency && m.at.block.map(|b| b.0) == Some(block));
    for block in [64, 4096] {
        let known = |m: &Measurement| m.estimate.value.map_or(m.estimate.not_measured.is_some(), |ns| ns > 1.0);
        assert!(ns(block).count() > 0 && ns(block).all(known), "nothing is durable in a nanosecond: {:?}", ns(block).collect::<Vec<_>>());
    }
    for figure in ["figures.svg", "figures.png", "figures.pdf", "summary.txt"] {
        assert!(written.contains(figure) && fs::metadata(out.join(figure)).unwrap().len() > 1000, "{figure}");
    }
    let svg = fs::read_to_string(out.join("figures.svg")).unwrap();
    assert!(svg.contains("Persist latency") && svg.contains("Bandwidth by access size"));
    assert!(names(&files).is_empty(), "nothing is left in the directory");
    // Two results are never mixed.
    let again = run();
    assert_eq!(again.status.code(), Some(64));
    assert!(text(&again.stderr).contains("not empty"), "{}", text(&again.stderr));
    fs::remove_dir_all(files).unwrap();
    fs::remove_dir_all(out.parent().unwrap()).unwrap();
}

#[test]
fn several_directories_make_a_matrix() {
    let (first, second) = (temporary("pmem-first"), temporary("pmem-second"));
    let out = temporary("pmem-subfolders");
    let output = simulated::run(&format!("memgauge pmem {} {} --time 60ms --out {}", first.display(), second.display(), out.display()));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = text(&output.stdout);
    for (directory, node) in [(&first, 0), (&first, 1), (&second, 0), (&second, 1)] {
        let folder = out.join(format!("{}_node{node}", directory.file_name().unwrap().to_str().unwrap()));
        assert!(names(&folder).contains("bw_rnd_2READ_1WRITE_NT.txt"), "{:?} {:?}", names(&out), names(&folder));
        let page = fs::read_to_string(folder.join("idle_seq.txt")).unwrap();
        assert!(page.contains(directory.to_str().unwrap()), "{page}");
    }
    fs::remove_dir_all(out).unwrap();
    let matrix = page.split("Nodes and directories").nth(1).unwrap_or_else(|| panic!("{page}"));
    for part in [first.to_str().unwrap(), second.to_str().unwrap(), "Idle latency in ns", "All reads in GB/s", "node 0", "node 1"] {
        assert!(matrix.contains(part), "{part}: {page}");
    }
    let twice = program().arg("pmem").args([&first, &first]).output().unwrap();
    assert!(twice.status.code() == Some(64) && text(&twice.stderr).contains("given twice"), "{}", text(&twice.stderr));
    fs::remove_dir_all(first).unwrap();
    fs::remove_dir_all(second).unwrap();
}

#[test]
fn what_was_measured_before_an_interruption_is_kept_and_the_time_is_kept() {
    let _permit = beside_another();
    let files = temporary("pmem-interrupted");
    let out = temporary("pmem-interrupted-out");
    let mut command = program();
    command.arg("pmem").arg(&files).args(["--size", "16M", "--time", "10ms", "--format", "json", "--out"]).arg(&out);
    let mut run = Watched::start(&mut command);
    // The first three cells are done.
    let mut cells = BTreeSet::new();
    let done = run.until(|run| {
        cells.insert(run.seen().cell);
        cells.len() > 4
    });
    assert!(done, "it ended by itself: {}", text(&run.end().output.stderr));
    run.signal(libc::SIGINT);
    let ended = run.end();
    let output = &ended.output;
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    let interrupted = report(output);
    if interrupted.measured() == 0
        && let Some(why) = ended.starved()
    {
        not_tested!("{why}");
    }
    assert!(
        interrupted.measured() > 0 && matches!(interrupted.incomplete, Some(Incomplete::Signal { .. })),
        "{:?}",
        interrupted.incomplete
    );
    // The files have it, too.
    let saved: serde_json::Value = serde_json::from_slice(&fs::read(out.join("result.json")).unwrap()).unwrap();
    assert_eq!((&saved["complete"], saved["results"].as_array().unwrap().len()), (&false.into(), interrupted.results.len()));
    let idle = fs::read_to_string(out.join("idle_seq.txt")).unwrap();
    assert!(idle.contains("INCOMPLETE") && idle.contains("Idle latency"), "{idle}");
    // The model's buffers have no files, so this is looked for here.
    let figures = fs::read_to_string(out.join("figures.svg")).unwrap();
    assert!(figures.contains("volatile") && figures.contains("stand-in"));
    fs::remove_dir_all(out).unwrap();
    let ended = Watched::start(program().arg("pmem").arg(&files).args(["--size", "4M", "--within", "1s", "--format", "json"])).end();
    // What comes on top is the start, the files and the page: less than a cell's own time.
    let late = ended.within(Duration::from_secs(4));
    assert!(!matches!(late, InTime::No(_)), "{late:?}");
    assert!(report(&ended.output).measured() > 0 || ended.starved().is_some(), "{}", text(&ended.output.stderr));
    assert!(names(&files).is_empty());
    fs::remove_dir_all(files).unwrap();
}

#[test]
fn a_directory_that_vanishes_costs_what_comes_after() {
    let _permit = beside_another();
    let files = temporary("pmem-vanishes");
    let mut command = program();
    command.arg("pmem").arg(&files).args(["--size", "16M", "--time", "100ms", "--format", "json"]);
    let mut run = Watched::start(&mut command);
    assert!(run.until_it_measures(1), "it ended by itself: {}", text(&run.end().output.stderr));
    fs::remove_dir_all(&files).unwrap();
    let output = run.end().output;
    assert!(matches!(output.status.code(), Some(1 | 4)), "{:?} {}", output.status, text(&output.stderr));
    let lost = report(&output);
    assert!(lost.results.iter().any(|m| matches!(m.estimate.not_measured, Some(NotMeasured::NoMemory { .. }))), "{:?}", lost.notes);
    assert!(text(&output.stderr).contains(files.to_str().unwrap()), "the message names it: {}", text(&output.stderr));
}

#[test]
fn a_request_that_is_refused_leaves_no_folder() {
    let out = temporary("pmem-refused").join("today");
    for arguments in [&["/nonexistent/pmem"][..], &["/tmp", "--node", "77"], &["/tmp", "--plan"]] {
        let output = program().arg("pmem").args(arguments).arg("--out").arg(&out).output().unwrap();
        assert_eq!(output.status.success(), arguments.contains(&"--plan"), "{arguments:?}: {}", text(&output.stderr));
        assert!(!out.exists(), "{arguments:?}");
    }
    fs::remove_dir_all(out.parent().unwrap()).unwrap();
}

/// Standard output of the drop-in, whose prefetcher registers stay as they are. It says on standard error that the directory is no persistent
/// memory.
fn mlc(arguments: &[String]) -> String {
    let output = simulated::program("mlc").args(arguments).env("MEMGAUGE_MLC_PREFETCH", "leave").output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    assert!(text(&output.stderr).contains("volatile stand-in for persistent memory"), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

/// The rows below the line of equals signs, as the script cuts them out with sed and awk.
fn loaded_rows(page: &str) -> Vec<Vec<f64>> {
    let rows = page.lines().skip_while(|line| !line.starts_with("==========================")).skip(1);
    rows.filter(|line| !line.is_empty()).map(|line| line.split_whitespace().map(|word| word.parse().unwrap()).collect()).collect()
}

#[test]
fn the_lines_of_the_script_for_persistent_memory_run_unchanged() {
    let files = temporary("pmem-script");
    let path = files.to_str().unwrap();
    let arguments = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    for stride in ["", "-l256"] {
        let page = mlc(&arguments(&format!("--idle_latency -c0 {stride} -J{path}")));
        let took: Vec<&str> = page.lines().filter(|line| line.contains("Each iteration took")).collect();
        assert_eq!(took.len(), 1, "{page}");
        // "Each iteration took 186.5 base frequency clocks (<tab>78.2<tab>ns)"
        let ns: f64 = took[0].split('\t').nth(1).unwrap().trim().parse().unwrap();
        assert!(ns > 0.5, "{page}");
    }
    let threads = files.join("perthread.txt");
    let file = format!("-o{}", threads.display());
    for (traffic, order) in [("R", "seq"), ("W6", "rand"), ("W7", "seq"), ("W7", "rand"), ("W5", "rand"), ("W2", "seq")] {
        fs::write(&threads, format!("0-15 {traffic}              {order}          4000       pmem           {path}    \n")).unwrap();
        for width in ["", "-Z"] {
            let page = mlc(&arguments(&format!("--loaded_latency -d0 {file} -T {width}")));
            let rows = loaded_rows(&page);
            assert!(rows.len() == 1 && rows[0][0] == 0.0 && rows[0][1] == 0.0 && rows[0][2] > 100.0, "{traffic} {order}: {page}");
        }
    }
    let delays = files.join("delays.txt");
    fs::write(&delays, "0\n700\n80000\n").unwrap();
    for (order, random) in [("seq", ""), ("rand", "-r")] {
        fs::write(&threads, format!("0  R {order} 4000 pmem {path}\n1-15 R {order}  4000 pmem {path}\n")).unwrap();
        let page = mlc(&arguments(&format!("--loaded_latency -g{} {file} {random}", delays.display())));
        let rows = loaded_rows(&page);
        assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), [0.0, 700.0, 80000.0], "{page}");
        assert!(rows.iter().all(|row| row.len() == 3 && row[1] > 0.5), "{page}");
    }
    fs::remove_dir_all(files).unwrap();
}

/// Runs a line in a mount namespace of its own, where a tmpfs with these options is at `$1`; `None` where that is not allowed.
fn on_tmpfs(options: &str, at: &Path, line: &str) -> Option<Output> {
    let script = format!("mount -t tmpfs -o {options} none \"$1\" && exec \"$0\" {line}");
    let output = Command::new("unshare").args(["-m", "sh", "-c", &script, env!("CARGO_BIN_EXE_memgauge")]).arg(at).output();
    match output {
        Ok(output) if !["unshare:", "mount:"].iter().any(|who| text(&output.stderr).contains(who)) => Some(output),
        _ => None,
    }
}

#[test]
fn a_file_system_that_takes_no_files_is_refused_before_anything_is_measured() {
    let at = temporary("pmem-mounts");
    for (options, says) in [("size=512k", "free space"), ("ro", "mount it for writing"), ("size=32m", "--size")] {
        let Some(output) = on_tmpfs(options, &at, "pmem \"$1\" --size 60M") else { not_tested!("nothing can be mounted here") };
        assert_eq!(output.status.code(), Some(4), "{options}: {}", text(&output.stderr));
        assert!(
            text(&output.stderr).contains(says) && text(&output.stderr).contains(at.to_str().unwrap()),
            "{options}: {}",
            text(&output.stderr)
        );
        assert!(!text(&output.stderr).contains("this takes"), "{options}: {}", text(&output.stderr));
    }
    let missing = program().args(["pmem", "/nonexistent/pmem"]).output().unwrap();
    assert!(missing.status.code() == Some(64) && text(&missing.stderr).contains("/nonexistent/pmem: there is no such directory"));
    fs::remove_dir_all(at).unwrap();
}
