//! `memgauge compare` as a black box: saved results of which one side was made slower, wrong input, commands in turn.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use memgauge_analysis::comparison::{Comparison, ComparisonVerdict};
use memgauge_model::result::{QualityLevel, Report};

use crate::support::{first_cpu, measured_by, program, report, save, temporary, text, write_script};

/// Writes runs of which every sample is `factor` times as high as in `base`. Runs differ by a tenth of a percent.
fn write_runs(base: &Report, folder: &Path, count: u32, factor: f64) {
    fs::create_dir_all(folder).unwrap();
    for run in 0..count {
        let mut report = base.clone();
        let factor = factor * (1.0 + 0.001 * f64::from(run));
        report.run.id = format!("{}-{run}", folder.display());
        for m in &mut report.results {
            m.quality.level = QualityLevel::Good;
            let estimate = &mut m.estimate;
            let ends = [&mut estimate.value, &mut estimate.min, &mut estimate.max, &mut estimate.ci95_low, &mut estimate.ci95_high];
            ends.into_iter().flatten().for_each(|v| *v *= factor);
            if let Some(samples) = &mut m.samples {
                // All alike: how much this machine was disturbed must not decide the test.
                samples.bursts.iter_mut().flatten().for_each(|s| *s = estimate.value.unwrap());
            }
        }
        save(&report, folder.join(format!("{run}.json")));
    }
}

fn compare(arguments: &[&str], paths: &[&Path]) -> Output {
    program().arg("compare").args(arguments).args(paths).output().unwrap()
}

fn comparison(paths: &[&Path]) -> (Comparison, Option<i32>) {
    let output = compare(&["--format", "json"], paths);
    (serde_json::from_slice(&output.stdout).unwrap(), output.status.code())
}

/// A folder of results, a folder of the same results, and a folder of slower ones.
fn folders(name: &str) -> (PathBuf, [PathBuf; 3]) {
    let folder = temporary(name);
    let base = report(&format!("latency --cpu {} --size 1M --order window-local --time 50ms", first_cpu()));
    let sides = ["before", "same", "slower"].map(|name| folder.join(name));
    for (side, factor) in sides.iter().zip([1.0, 1.0005, 1.1]) {
        write_runs(&base, side, 3, factor);
    }
    (folder, sides)
}

#[test]
fn slower_runs_are_worse_faster_ones_better_and_equal_ones_the_same() {
    let (folder, [before, same, slower]) = folders("compare");
    let dashes = Path::new("--");
    let cases = [
        (&before, &slower, ComparisonVerdict::Worse, 2),
        (&slower, &before, ComparisonVerdict::Better, 0),
        (&before, &same, ComparisonVerdict::Same, 0),
    ];
    for (a, b, verdict, status) in cases {
        let (comparison, code) = comparison(&[a, dashes, b]);
        assert_eq!((comparison.verdict, code), (verdict, Some(status)), "{comparison:?}");
        assert_eq!((comparison.before.runs.len(), comparison.after.runs.len(), comparison.differences.len()), (3, 3, 0));
    }
    let output = compare(&[], &[&before, dashes, &slower]);
    let first = text(&output.stdout).lines().next().unwrap();
    assert!(first.starts_with("WORSE: ") && first.contains(": +10.0 % ("), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("+10.0 %"), "{}", text(&output.stdout));
    // Two files and no dashes; one run tells nothing about runs.
    let output = compare(&[], &[&before.join("0.json"), &slower.join("0.json")]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("INCONCLUSIVE"), "{}", text(&output.stdout));
    let written = folder.join("c.json");
    compare(&["-q", "-o", &written.display().to_string()], &[&before, dashes, &slower]);
    assert_eq!(serde_json::from_slice::<Comparison>(&fs::read(&written).unwrap()).unwrap().verdict, ComparisonVerdict::Worse);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_quiet_verdict_is_whole_in_a_narrow_terminal() {
    let folder = temporary("compare-quiet");
    let saved = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/results/two-nodes.json");
    let mut base: Report = serde_json::from_slice(&fs::read(saved).unwrap()).unwrap();
    let [before, after] = ["before", "after"].map(|name| folder.join(name));
    write_runs(&base, &before, 5, 1.0);
    for (i, m) in base.results.iter_mut().enumerate() {
        let factor = [1.0, 0.8, 1.2][i % 3];
        let estimate = &mut m.estimate;
        let ends = [&mut estimate.value, &mut estimate.ci95_low, &mut estimate.ci95_high];
        ends.into_iter().flatten().for_each(|v| *v *= factor);
    }
    write_runs(&base, &after, 5, 1.0);
    let line = |columns: &str, quiet: &[&str]| {
        let output = program()
            .env("COLUMNS", columns)
            .arg("compare")
            .args(quiet)
            .args([before.as_path(), Path::new("--"), after.as_path()])
            .output()
            .unwrap();
        text(&output.stdout).split_inclusive('\n').map(str::to_owned).collect::<Vec<_>>()
    };
    let quiet = line("60", &["-q"]);
    assert!(quiet.len() == 1 && quiet[0].chars().count() > 60 && quiet[0].contains("the same within ±"), "{quiet:?}");
    assert_eq!(quiet[0], line("200", &[])[0]);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn wrong_input_is_refused_in_a_line() {
    let (folder, [before, same, _]) = folders("compare-wrong");
    let (one, empty, garbage) = (before.join("0.json"), folder.join("empty"), folder.join("garbage.json"));
    fs::create_dir(&empty).unwrap();
    fs::write(&garbage, "{\"x\": 1}").unwrap();
    let mut other: Report = serde_json::from_slice(&fs::read(&one).unwrap()).unwrap();
    other.machine.identity.model_name = Some("Another CPU".into());
    other.run.id = "another run".into();
    let unlike = folder.join("unlike.json");
    save(&other, &unlike);
    let cases: [(&[&Path], &str); 9] = [
        (&[&one], "name results of both sides"),
        (&[&one, Path::new("--"), &empty], "holds no file that ends in .json"),
        (&[&one, &garbage], "garbage.json"),
        (&[&one, &folder.join("missing.json")], "missing.json"),
        (&[&one, &unlike], "Another CPU"),
        (&[&one, &one], "have the same run"),
        (&[&one, Path::new("--"), &unlike, Path::new("-v")], "-v: options stand before the results"),
        (&[&before, &same, &one], "name results of both sides"),
        (&[&before, Path::new("--"), &same, &same.join("1.json")], "is the same run as"),
    ];
    for (paths, message) in cases {
        let output = compare(&[], paths);
        assert_eq!(output.status.code(), Some(64), "{message}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(message) && text(&output.stderr).lines().count() == 1, "{}", text(&output.stderr));
        assert!(output.stdout.is_empty());
    }
    assert_eq!(compare(&["--across"], &[&one, &unlike]).status.code(), Some(1));
    fs::remove_dir_all(folder).unwrap();
}

/// What people name by mistake: what each command says about it in one line, and the exit status.
#[test]
fn what_is_no_result_is_refused_by_compare_and_report_in_a_line() {
    let (folder, [before, ..]) = folders("compare-inputs");
    let good = before.join("0.json");
    let empty = folder.join("empty");
    fs::create_dir(&empty).unwrap();
    let write = |name: &str, bytes: &[u8]| {
        fs::write(folder.join(name), bytes).unwrap();
        folder.join(name)
    };
    let old = write("old.json", br#"{"schema_version": 1, "run": {"id": "x"}}"#);
    let new = write("new.json", br#"{"schema_version": 99, "run": {"id": "x"}}"#);
    let fio = write("fio.json", br#"{"fio version": "fio-3.36", "jobs": [{"jobname": "a", "read": {"bw": 1}}]}"#);
    let hyperfine = write("hyperfine.json", br#"{"results": [{"command": "sleep 0.1", "mean": 0.1, "times": [0.1]}]}"#);
    let stream = write("stream.json", b"Function    Best Rate MB/s  Avg time\nTriad:  50000.0  0.03\n");
    let cut = write("cut.json", &fs::read(&good).unwrap()[..2000]);
    let huge = folder.join("huge.json");
    fs::File::create(&huge).unwrap().set_len(1 << 30).unwrap();
    let cases = [
        (&empty, "holds no file that ends in .json"),
        (&old, "has schema version 1"),
        (&new, "newer memgauge"),
        (&fio, "fio.json"),
        (&hyperfine, "hyperfine.json"),
        (&stream, "stream.json"),
        (&cut, "cut.json"),
        (&huge, "is larger than 256 MiB"),
    ];
    let page = folder.join("page.html");
    for (path, message) in cases {
        let report = program().arg("report").arg(&good).arg(path).arg("-o").arg(&page).output().unwrap();
        for (name, output) in [("compare", compare(&[], &[&good, path])), ("compare", compare(&[], &[path, &good])), ("report", report)] {
            let said = text(&output.stderr);
            assert!(matches!(output.status.code(), Some(64 | 4)), "{name} {}: {:?} {said}", path.display(), output.status);
            assert!(said.contains(message) && said.lines().count() == 1 && said.len() < 500, "{name} {}: {said}", path.display());
            assert!(output.stdout.is_empty() && !page.exists(), "{name} {}", path.display());
        }
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn runs_before_a_change_are_compared_with_the_machine_as_it_is_now() {
    let folder = temporary("compare-now");
    let before = folder.join("before");
    let measure = format!("latency --cpu {} --size 1M --order window-local --time 20ms", first_cpu());
    let run = |more: &[&str]| {
        let mut program = program();
        program.current_dir(&folder).args(["compare", "--runs", "2", "--measure", &measure]).args(more).output().unwrap()
    };
    let kept = measured_by(|| {
        let _ = fs::remove_dir_all(&before);
        run(&["--keep", "before"])
    });
    assert_eq!(kept.status.code(), Some(0), "{}", text(&kept.stderr));
    assert_eq!(text(&kept.stdout), "The runs are in before. After the change: memgauge compare --runs 2 before\n");
    assert_eq!(fs::read_dir(&before).unwrap().count(), 2);
    let compared = measured_by(|| run(&["before"]));
    assert!(matches!(compared.status.code(), Some(0..=2)), "{}", text(&compared.stderr));
    assert!(text(&compared.stdout).contains("before: before (2 runs) · after: now (2 runs)"), "{}", text(&compared.stdout));
    for (arguments, message) in [(&[][..], "--runs needs results to compare with"), (&["nowhere"], "nowhere")] {
        let refused = run(arguments);
        assert_eq!(refused.status.code(), Some(64));
        assert!(text(&refused.stderr).contains(message), "{}", text(&refused.stderr));
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn commands_are_run_in_turn_and_their_results_kept() {
    let folder = temporary("compare-runs");
    let (log, kept) = (folder.join("log"), folder.join("kept"));
    let step = folder.join("step");
    write_script(&step, &format!("#!/bin/sh\necho \"$1\" >> {}\n", log.display()));
    let measure = format!("latency --cpu {} --size 1M --order 'window-local' --time 20ms --label 'what=two words'", first_cpu());
    let run = |commands: &[&str]| {
        let mut program = program();
        program.args(["compare", "--runs", "2", "--measure", &measure, "--keep"]).arg(&kept).arg("--").args(commands).output().unwrap()
    };
    let script = step.display().to_string();
    let output = measured_by(|| {
        let _ = (fs::remove_file(&log), fs::remove_dir_all(&kept));
        run(&[&script, "a", "---", &script, "b"])
    });
    assert!(matches!(output.status.code(), Some(0..=2)), "{}", text(&output.stderr));
    assert_eq!(fs::read_to_string(&log).unwrap(), "a\nb\nb\na\n");
    assert_eq!(fs::read_dir(&kept).unwrap().count(), 4);
    let first: Report = serde_json::from_slice(&fs::read(kept.join("before-1.json")).unwrap()).unwrap();
    assert_eq!(first.run.labels["what"], "two words");
    let open = program().args(["compare", "--runs", "2", "--measure", "quick 'a", "--", "true", "---", "true"]).output().unwrap();
    assert_eq!(open.status.code(), Some(64));
    assert!(text(&open.stderr).contains("a quote is not closed"), "{}", text(&open.stderr));
    assert!(text(&output.stdout).contains("2 runs"), "{}", text(&output.stdout));
    // Results of an earlier comparison would be read where a run of this one fails: nothing is started.
    let output = run(&[&script, "c", "---", &script, "d"]);
    assert_eq!(output.status.code(), Some(64), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("kept: has after-1.json of an earlier comparison"), "{}", text(&output.stderr));
    assert_eq!((fs::read_to_string(&log).unwrap().lines().count(), fs::read_dir(&kept).unwrap().count()), (4, 4));
    // Other files may be there. The second command fails after something was measured.
    let output = measured_by(|| {
        fs::remove_dir_all(&kept).unwrap();
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("before-bios.json"), "mine").unwrap();
        run(&["true", "---", "false"])
    });
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stderr).contains("`false` failed") && text(&output.stderr).contains("results so far"), "{}", text(&output.stderr));
    assert_eq!(run(&["true"]).status.code(), Some(64));
    // It ends well and writes a result without a number.
    let output = program().args("compare --runs 2 --measure info -- true --- true".split(' ')).output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("`memgauge info` measured nothing"), "{}", text(&output.stderr));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn an_interruption_keeps_what_was_measured() {
    let folder = temporary("compare-interrupted");
    let mut command = program();
    let measure = format!("latency --cpu {} --size 1M --time 100ms", first_cpu());
    command.args(["compare", "--runs", "50", "--measure", &measure, "--keep"]).arg(&folder);
    let mut child = command.args(["--", "true", "---", "true"]).stderr(std::process::Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while fs::read_dir(&folder).unwrap().count() < 2 && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    // SAFETY: it takes two numbers, and the process was not waited for, so its number is not another's.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let signalled = Instant::now();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    // Half a second is promised; other processes may have the CPUs for a while.
    assert!(signalled.elapsed() < Duration::from_secs(5), "{:?}", signalled.elapsed());
    assert!(fs::read_dir(&folder).unwrap().count() >= 2);
    fs::remove_dir_all(folder).unwrap();
}
