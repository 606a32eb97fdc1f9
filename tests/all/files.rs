//! What is written and what is read: links, pipes, limits, full disks, hostile input, what killed runs leave.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use memgauge_model::result::Report;
use memgauge_testing::{not_tested, not_tested_in_part};

use crate::support::watch::{InTime, Watched};
use crate::support::{beside_another, had_no_cpu_time, hangup, measured, program, temporary, text, unwrapped};

/// A user that is neither root nor the one that runs the tests.
const NOBODY: u32 = 65_534;

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

fn info(more: &[&str], file: &Path) -> Output {
    program().args(["info"]).args(more).arg("-o").arg(file).output().unwrap()
}

/// The names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

fn stderr(output: &Output) -> &str {
    text(&output.stderr)
}

#[test]
fn a_link_that_another_user_planted_is_not_followed() {
    if !is_root() {
        not_tested!("only root can make a link of another user's");
    }
    let folder = temporary("planted");
    let (victim, link) = (folder.join("victim.json"), folder.join("a.json"));
    fs::write(&victim, "precious").unwrap();
    symlink(&victim, &link).unwrap();
    lchown(&link, Some(NOBODY), Some(NOBODY)).unwrap();
    let output = info(&["-q"], &link);
    assert_eq!(output.status.code(), Some(64), "{}", stderr(&output));
    assert!(stderr(&output).contains("another user"), "{}", stderr(&output));
    assert_eq!((fs::read_to_string(&victim).unwrap().as_str(), names(&folder)), ("precious", vec!["a.json".into(), "victim.json".into()]));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_file_that_is_replaced_keeps_its_links_mode_and_owner() {
    let folder = temporary("replaced");
    let (file, link, hard) = (folder.join("real.json"), folder.join("a.json"), folder.join("hard.json"));
    fs::write(&file, "old").unwrap();
    fs::hard_link(&file, &hard).unwrap();
    symlink("real.json", &link).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    if is_root() {
        chown(&file, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let before = fs::metadata(&file).unwrap();
    let output = info(&["-q"], &link);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", stderr(&output));
    assert!(link.symlink_metadata().unwrap().is_symlink(), "the link is still one");
    serde_json::from_slice::<Report>(&fs::read(&file).unwrap()).unwrap();
    let after = fs::metadata(&file).unwrap();
    assert_eq!((after.mode(), after.uid(), after.gid()), (before.mode(), before.uid(), before.gid()));
    assert_eq!(fs::read_to_string(&hard).unwrap(), "old", "as documented");
    assert_eq!(names(&folder), ["a.json", "hard.json", "real.json"]);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_pipe_gets_the_result_and_stays_a_pipe() {
    let folder = temporary("pipe");
    let pipe = folder.join("a.json");
    make_pipe(&pipe);
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read(pipe).unwrap()
    });
    let output = info(&["-q"], &pipe);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(pipe.symlink_metadata().unwrap().file_type().is_fifo());
    serde_json::from_slice::<Report>(&reader.join().unwrap()).unwrap();
    fs::remove_dir_all(folder).unwrap();
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// A short run that writes to the pipe at its end.
fn measuring_into(pipe: &Path) -> Watched {
    let mut command = program();
    command.args("latency --size 1M --time 12ms --order window-local -q -o".split(' ')).arg(pipe);
    hangup(&mut command, false);
    Watched::start(&mut command)
}

/// Returns when the process has measured and waits for the reader of its pipe: it sleeps then, but for a look now and then.
fn until_it_waits(run: &mut Watched) {
    assert!(run.until_it_begins() && run.until_it_waits(), "it ended");
}

#[test]
fn a_pipe_that_nobody_reads_is_left_at_the_first_signal() {
    let _permit = beside_another();
    let folder = temporary("unread");
    let pipe = folder.join("a.json");
    make_pipe(&pipe);
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let mut run = measuring_into(&pipe);
        until_it_waits(&mut run);
        run.signal(signal);
        let ended = run.end();
        let (output, late) = (&ended.output, ended.within(Duration::from_secs(5)));
        assert!(!matches!(late, InTime::No(_)), "{late:?}");
        assert_eq!(output.status.code(), Some(4), "{}", stderr(output));
        assert!(stderr(output).contains("interrupted while nobody read the pipe; the result was printed"), "{}", stderr(output));
        let report: Report = serde_json::from_slice(&output.stdout).unwrap();
        assert!(report.complete || had_no_cpu_time(output), "{:?}", report.results);
    }
    // A reader that comes late has everything.
    let mut run = measuring_into(&pipe);
    until_it_waits(&mut run);
    serde_json::from_slice::<Report>(&fs::read(&pipe).unwrap()).unwrap();
    let late = run.end().output;
    assert!(late.status.success() || had_no_cpu_time(&late), "{late:?}");
    fs::remove_dir_all(folder).unwrap();
}

type Replace = fn(&Path, &Path);

#[test]
fn what_takes_the_place_of_a_pipe_during_a_run_is_not_written_to() {
    let _permit = beside_another();
    let folder = temporary("replaced-pipe");
    let (pipe, victim) = (folder.join("a.json"), folder.join("victim.json"));
    let replace: [(&str, Replace); 2] =
        [("a link", |victim, pipe| symlink(victim, pipe).unwrap()), ("a file", |victim, pipe| fs::hard_link(victim, pipe).unwrap())];
    for (what, replace) in replace {
        make_pipe(&pipe);
        fs::write(&victim, "precious").unwrap();
        let mut run = measuring_into(&pipe);
        until_it_waits(&mut run);
        fs::rename(&pipe, folder.join("gone")).unwrap();
        replace(&victim, &pipe);
        let output = run.end().output;
        assert_eq!(output.status.code(), Some(4), "{what}: {}", stderr(&output));
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious", "{what}");
        serde_json::from_slice::<Report>(&output.stdout).unwrap();
        fs::remove_file(&pipe).unwrap();
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn an_open_file_is_written_to_by_its_number() {
    let folder = temporary("by-number");
    let file = folder.join("a.json");
    for path in ["/dev/fd/7", "/proc/self/fd/7"] {
        // A format is chosen by the ending, so the number has a name that is a link.
        let link = folder.join("link.json");
        symlink(path, &link).unwrap();
        let script = format!("exec {} info -q -o {} 7>{}", env!("CARGO_BIN_EXE_memgauge"), link.display(), file.display());
        let before = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert!(before.status.success(), "{path}: {}", stderr(&before));
        serde_json::from_slice::<Report>(&fs::read(&file).unwrap()).unwrap();
        assert_eq!(names(&folder), ["a.json", "link.json"], "{path}");
        fs::remove_file(&link).unwrap();
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_run_that_measured_nothing_keeps_the_earlier_file() {
    let folder = temporary("kept");
    let (old, new) = (folder.join("old.json"), folder.join("new.json"));
    fs::write(&old, "old").unwrap();
    let mut latency = program();
    let output =
        latency.args(["latency", "--size", "16K", "--time", "60ms", "--within", "1ms", "-o"]).arg(&old).arg("-o").arg(&new).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stderr(&output).contains("old.json: the earlier file is kept"), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(&old).unwrap(), "old");
    let report: Report = serde_json::from_slice(&fs::read(&new).unwrap()).unwrap();
    assert!(!report.complete && report.measured() == 0, "a new file has the reasons");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_result_that_its_file_does_not_take_is_not_lost() {
    let folder = temporary("full");
    let full = folder.join("a.json");
    symlink("/dev/full", &full).unwrap();
    // Nothing else is on standard output.
    let output = info(&["-q"], &full);
    assert_eq!(output.status.code(), Some(4));
    assert!(stderr(&output).contains("a.json: No space left") && stderr(&output).contains("was printed as JSON"), "{}", stderr(&output));
    serde_json::from_slice::<Report>(&output.stdout).unwrap();
    // It is on standard output anyway.
    let output = info(&["--format", "json"], &full);
    assert!(output.status.code() == Some(4) && !stderr(&output).contains("instead"), "{}", stderr(&output));
    serde_json::from_slice::<Report>(&output.stdout).unwrap();
    // Standard output has text.
    let output = program().env("TMPDIR", &folder).args(["info", "-o"]).arg(&full).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    let [_, saved] = &names(&folder)[..] else { panic!("{:?}: {}", names(&folder), stderr(&output)) };
    assert!(stderr(&output).contains(&format!("the result is in {}", folder.join(saved).display())), "{}", stderr(&output));
    serde_json::from_slice::<Report>(&fs::read(folder.join(saved)).unwrap()).unwrap();
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn standard_output_is_named_where_it_fails() {
    let folder = temporary("stdout");
    let full = || Stdio::from(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    let output = program().env("TMPDIR", &folder).arg("info").stdout(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(stderr(&output).contains("cannot write to standard output: No space left"), "{}", stderr(&output));
    let output = program().args(["latency", "--plan"]).stdout(full()).output().unwrap();
    assert!(output.status.code() == Some(4) && stderr(&output).contains("standard output"), "{}", stderr(&output));
    fs::remove_dir_all(folder).unwrap();
}

/// Rust's runtime opens /dev/null in place of a closed descriptor: both programs used to end with 0 and print nothing. The drop-in measures
/// all the same, because a public loader wants its traffic only, and says what is lost.
#[test]
fn closed_standard_output_is_told() {
    for (line, status) in [("memgauge info", 64), ("memgauge latency --plan", 4), ("mlc --idle_latency -b200 -t0.05", 0)] {
        let (program, arguments) = line.split_once(' ').unwrap();
        let path = if program == "mlc" { env!("CARGO_BIN_EXE_mlc") } else { env!("CARGO_BIN_EXE_memgauge") };
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec {path} {arguments} >&-")]).env("MEMGAUGE_MLC_PREFETCH", "leave");
        let output = measured(&mut shell);
        assert_eq!(output.status.code(), Some(status), "{line}: {}", stderr(&output));
        assert!(stderr(&output).contains("standard output"), "{line}: {}", stderr(&output));
    }
}

#[test]
fn a_closed_standard_output_is_no_error_where_a_quiet_answer_goes_to_a_file() {
    let folder = temporary("closed");
    let saved = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/results").join(name).display().to_string();
    let (one, other) = (saved("vm-2-cpus.json"), saved("two-nodes.json"));
    for (line, name) in [
        (format!("compare --across -q -o {{}} {one} {other}"), "compare.json"),
        (format!("advise -q -o {{}} {one}"), "advise.txt"),
        ("latency --plan -q -o {}".to_owned(), "plan.json"),
        (format!("render {one} -q -o {{}}"), "render.csv"),
    ] {
        let file = folder.join(name);
        let line = line.replace("{}", &file.display().to_string());
        let shell = |redirected: &str| {
            Command::new("sh").args(["-c", &format!("exec {} {line}{redirected}", env!("CARGO_BIN_EXE_memgauge"))]).output().unwrap()
        };
        let open = shell("");
        assert!(!open.stdout.is_empty(), "{line}: its line is printed");
        let closed = shell(" >&-");
        assert_eq!(closed.status.code(), open.status.code(), "{line}: {}", stderr(&closed));
        assert!(file.metadata().unwrap().len() > 0 && stderr(&closed) == stderr(&open), "{line}: {}", stderr(&closed));
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_folder_that_takes_no_file_is_named_with_the_true_cause() {
    let file = Path::new("/proc/memgauge-test.json");
    let output = info(&[], file);
    assert_eq!(output.status.code(), Some(64));
    let (message, system) = (stderr(&output), "the directory /proc takes no new file: ");
    assert!(message.contains(&format!("{}: cannot be written: {system}", file.display())) && !message.contains(".tmp"), "{message}");
    let missing = info(&[], Path::new("/no folder/x.json"));
    assert!(stderr(&missing).contains("the directory /no folder does not exist"), "{}", stderr(&missing));
}

/// As where that shows only once the result is written: nothing in the command line is wrong.
#[test]
fn a_disk_that_takes_no_more_is_no_wrong_usage() {
    let folder = temporary("no-more");
    for (options, why) in [("ro", "Read-only file system"), ("nr_inodes=1", "No space left on device")] {
        let script = format!("mount -t tmpfs -o {options} none '{0}' && exec \"$0\" info -q -o '{0}/a.json'", folder.display());
        let output = Command::new("unshare").args(["--mount", "sh", "-c", &script, env!("CARGO_BIN_EXE_memgauge")]).output();
        let output = match output {
            Ok(output) if !["unshare:", "mount:"].iter().any(|who| stderr(&output).contains(who)) => output,
            refused => not_tested!("no file system can be mounted here: {refused:?}"),
        };
        assert_eq!(output.status.code(), Some(4), "{options}: {}", stderr(&output));
        assert!(stderr(&output).contains(&format!("takes no new file: {why}")), "{options}: {}", stderr(&output));
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_limit_on_file_sizes_is_an_error_and_no_signal() {
    let folder = temporary("limit");
    let file = folder.join("a.json");
    fs::write(&file, "old").unwrap();
    let line = format!("ulimit -f 1; exec {} info -q -o {}", env!("CARGO_BIN_EXE_memgauge"), file.display());
    let output = Command::new("sh").args(["-c", &line]).output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{:?}: {}", output.status, stderr(&output));
    assert!(stderr(&output).contains("File too large"), "{}", stderr(&output));
    serde_json::from_slice::<Report>(&output.stdout).unwrap();
    assert_eq!((names(&folder), fs::read_to_string(&file).unwrap().as_str()), (vec!["a.json".to_owned()], "old"));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_a_killed_run_has_left_is_removed() {
    let folder = temporary("stale");
    // The kernel's numbers of processes end below 2^22. Whose number it is does not stand there, so it is old.
    let stale = folder.join(".a.json.memgauge-4194304-Xy12ab.tmp");
    let kept =
        [format!(".a.json.memgauge-{}-Xy12ab.tmp", std::process::id()), ".b.json.memgauge-4194304-Xy12ab.tmp".into(), "a.json.tmp".into()];
    kept.iter().chain([&stale.display().to_string()]).for_each(|name| fs::write(folder.join(name), "").unwrap());
    let then = std::time::SystemTime::now() - Duration::from_secs(2 * 3600);
    fs::File::options().write(true).open(&stale).unwrap().set_modified(then).unwrap();
    assert!(info(&["-q"], &folder.join("a.json")).status.success());
    let mut expected = kept.to_vec();
    expected.push("a.json".into());
    expected.sort_unstable();
    assert_eq!(names(&folder), expected);
    fs::remove_dir_all(folder).unwrap();
}

/// Runs a command that must refuse its input soon, with a message of a few lines without control characters.
fn refused(arguments: &[&str]) -> String {
    let ended = Watched::start(program().args(arguments)).end();
    let (output, late) = (&ended.output, ended.within(Duration::from_secs(30)));
    assert_eq!(output.status.code(), Some(64), "{arguments:?}: {}", stderr(output));
    assert!(!matches!(late, InTime::No(_)), "{arguments:?}: {late:?}");
    let message = stderr(output);
    assert!(message.len() < 3_000 && !message.contains(|c: char| c.is_control() && c != '\n'), "{arguments:?}: {message:?}");
    message.to_owned()
}

#[test]
fn endless_input_is_cut() {
    for arguments in [
        &["render", "/dev/zero"][..],
        &["run", "/dev/zero"],
        &["quick", "--rules", "/dev/zero"],
        &["quick", "--against", "/dev/zero"],
        &["bandwidth", "--contents", "/dev/zero"],
    ] {
        assert!(refused(arguments).contains("/dev/zero: is larger than"), "{arguments:?}");
    }
    let output = program().args(["mlc", "--loaded_latency", "-g/dev/zero"]).output().unwrap();
    assert!(stderr(&output).contains("/dev/zero: is larger than"), "{}", stderr(&output));
}

#[test]
fn hostile_content_is_not_repeated() {
    let folder = temporary("hostile");
    let write = |name: &str, content: String| {
        let path = folder.join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let long = "x".repeat(900_000);
    let toml = write("long.toml", format!("{long} = 1"));
    assert!(refused(&["run", &toml]).contains("line 1"));
    assert!(refused(&["quick", "--rules", &toml]).contains("line 1"));
    assert!(refused(&["run", &write("list.toml", format!("[[threads]]\ncpus = '{long}'"))]).contains("xxx…"));
    let lines = write("lines.txt", format!("{}\n{long}\n", "0f".repeat(64)));
    assert!(refused(&["bandwidth", "--contents", &lines]).contains("line 2 is not 128 hexadecimal digits"));
    let escape = "\u{1b}]0;owned\u{7}\u{9b}2J";
    refused(&["bandwidth", "--contents", &write("escape.txt", format!("{escape}{}\n", "0f".repeat(64)))]);
    assert!(refused(&["run", &write("escape.toml", format!("'{}' = 1", escape.replace('\u{1b}', "")))]).contains("line 1"));
    let json = escape.chars().map(|c| format!("\\u{:04x}", c as u32)).collect::<String>();
    refused(&["quick", "--rules", &write("rules.toml", format!("[[rule]]\nexperiment = \"{json}\"\n"))]);
    let info = program().args(["info", "--format", "json"]).output().unwrap();
    let damaged = text(&info.stdout).replacen("\"package\": ", &format!("\"package\": \"{json}{long}\", \"x\": "), 1);
    assert!(refused(&["render", &write("damaged.json", damaged)]).contains("is damaged"));
    refused(&["render", &write(&format!("{escape}.json"), "no".into())]);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn small_files_take_little_time_and_memory() {
    let folder = temporary("wide");
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/results");
    for name in ["info-cxl.json", "eight-nodes.json", "scan.json"] {
        // Every set of CPUs or nodes is as large as can be. As single numbers, the sets of the first alone took a gigabyte.
        let mut value: serde_json::Value = serde_json::from_slice(&fs::read(results.join(name)).unwrap()).unwrap();
        widen(&mut value);
        let file = folder.join(name);
        fs::write(&file, value.to_string()).unwrap();
        // The description of a machine has no figure.
        let picture = if name == "info-cxl.json" { "csv" } else { "svg" };
        for ending in ["txt", picture, "json"] {
            let drawn = folder.join(format!("drawn.{ending}"));
            let line =
                format!("ulimit -v 1000000; exec {} render -q {} -o {}", env!("CARGO_BIN_EXE_memgauge"), file.display(), drawn.display());
            let ended = Watched::start(Command::new("sh").args(["-c", &line])).end();
            let (output, late) = (&ended.output, ended.within(Duration::from_secs(30)));
            assert!(output.status.success(), "{name} as {ending}: {:?}: {}", output.status, stderr(output));
            assert!(!matches!(late, InTime::No(_)), "{name} as {ending}: {late:?}");
        }
    }
    fs::remove_dir_all(folder).unwrap();
}

/// Replaces lists of numbers by the longest range that can be read.
fn widen(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Array(list) => list.iter_mut().for_each(widen),
        serde_json::Value::Object(map) => map.values_mut().for_each(widen),
        serde_json::Value::String(text) if text.contains(['-', ',']) && text.bytes().all(|b| b.is_ascii_digit() || b"-,".contains(&b)) => {
            *text = "0-65535".into();
        }
        _ => {}
    }
}

#[test]
fn silence_ends_where_nothing_was_measured() {
    let output = program().args(["quick", "-q", "--within", "1ms", "--size", "16M"]).output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(text(&output.stdout).contains("COULD NOT MEASURE: "), "a status of 4 has its reason: {}", text(&output.stdout));
    let output = program().args(["prefetch", "status", "-q"]).output().unwrap();
    assert_eq!(output.status.code() == Some(4), text(&output.stdout).contains("not known"), "{}", text(&output.stdout));
    // Who keeps the result in a file may look at standard error only.
    let folder = temporary("silence");
    let output = program().args(["prefetch", "status", "-q", "-o"]).arg(folder.join("a.json")).output().unwrap();
    assert_eq!(text(&output.stdout).lines().count(), 1, "{}", text(&output.stdout));
    assert_eq!(output.status.code() == Some(4), stderr(&output).contains("not known"), "{}", stderr(&output));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn quiet_is_one_line_or_only_the_result() {
    let quiet = |line: &str| {
        let output = program().args(line.split(' ')).arg("-q").output().unwrap();
        let starved = had_no_cpu_time(&output);
        assert!(starved || output.status.success() && output.stderr.is_empty(), "{line}: {}", stderr(&output));
        (text(&output.stdout).to_owned(), starved)
    };
    for (line, shown) in [
        ("latency --size 16K --time 12ms", "latency "),
        ("bandwidth --width sse2 --size 16M --time 20ms", "read "),
        ("info", "core"),
        ("latency --plan", "cell"),
        ("render tests/results/two-nodes.json", "latency 112.7 ns"),
        ("stream 16K", "stream 16 KiB"),
    ] {
        let (found, starved) = quiet(line);
        if starved {
            not_tested_in_part!("{line}: others had the CPUs");
            continue;
        }
        assert!(found.lines().count() == 1 && found.contains(shown), "{line}: {found}");
    }
    let (json, _) = quiet("latency --size 16K --time 12ms --format json");
    assert!(!memgauge_render::read(json.as_bytes()).unwrap().results.is_empty());
}

#[test]
fn an_event_has_a_name() {
    for events in ["", "page-faults,", ",page-faults"] {
        assert!(refused(&["count", "-e", events, "--", "true"]).contains("name of an event is missing"), "{events:?}");
    }
}

#[test]
fn a_machine_without_sysfs_is_told_from_a_recorded_one() {
    let folder = temporary("no-cpus");
    let output = program().args(["info", "--machine"]).arg(&folder).output().unwrap();
    assert!(stderr(&output).contains("a recorded machine is a folder"), "{}", stderr(&output));
    let unshared = "mount -t tmpfs none /sys/devices && exec \"$0\" info";
    let output = Command::new("unshare").args(["-m", "sh", "-c", unshared, env!("CARGO_BIN_EXE_memgauge")]).output();
    match output {
        Ok(output) if !stderr(&output).contains("unshare") && !stderr(&output).contains("mount:") => {
            assert!(stderr(&output).contains("/sys is not mounted here"), "{}", stderr(&output));
        }
        refused => not_tested_in_part!("{refused:?}"),
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_cannot_be_measured_is_said_once() {
    let page = program().args(["latency", "--within", "1ms"]).output().unwrap();
    assert_eq!(page.status.code(), Some(4));
    // Neither stream is a terminal: the page and the errors may go to different readers.
    for said in [text(&page.stdout), stderr(&page)] {
        let words = unwrapped(said);
        assert_eq!(words.matches("even the coarsest plan may take").count(), 1, "{words}");
    }
    assert_eq!(text(&page.stdout).matches("not enough to measure it").count(), 1, "{}", text(&page.stdout));
}
