//! Checks that a timer or a scheduler starts: one at a time, the newest results kept, whatever happens to them.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use memgauge_model::result::{Incomplete, Report};
use memgauge_testing::not_tested;

use crate::support::confined::Group;
use crate::support::{beside_another, copy_program, program, simulated, temporary, text};

/// A user that is neither root nor the one that runs the tests.
pub(crate) const NOBODY: u32 = 65_534;
/// Machines that run tests are shared and slow.
const LONG: Duration = Duration::from_secs(300);

/// A check whose result goes to the folder, on a simulated machine.
fn check(folder: &Path) -> Command {
    let mut command = simulated::program("memgauge");
    command.args(["quick", "-q", "--state"]).arg(folder);
    command
}

/// The same on this machine.
fn check_for(time: &str, folder: &Path) -> Command {
    let mut command = program();
    command.args(["quick", "-q", "--size", "1M", "--time", time, "--state"]).arg(folder);
    command
}

fn stderr(output: &Output) -> &str {
    text(&output.stderr)
}

/// Whether a check ended with one line: a verdict, or on a busy machine that there is none (status 4).
fn ended_well(output: &Output) -> bool {
    output.status.code().is_some_and(|code| [0, 1, 4].contains(&code)) && text(&output.stdout).lines().count() == 1
}

/// The names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

/// The names of results in a folder.
fn results(folder: &Path) -> Vec<String> {
    names(folder).into_iter().filter(|name| name.starts_with("20")).collect()
}

pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Waits until this process holds the lock.
fn wait_for_lock(folder: &Path, child: &mut Child) {
    let begin = Instant::now();
    while fs::read_to_string(folder.join("lock")).unwrap_or_default().trim() != child.id().to_string() {
        assert!(child.try_wait().unwrap().is_none(), "the check ended before it locked its folder");
        assert!(begin.elapsed() < LONG);
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_check_keeps_its_result_and_the_newest_stay() {
    let _permit = beside_another();
    let folder = temporary("state").join("made by the first check");
    let began = memgauge_os::clock::moment().utc;
    let first = check(&folder).output().unwrap();
    assert!(ended_well(&first), "{first:?}");
    let [only] = &results(&folder)[..] else { panic!("{:?}", names(&folder)) };
    assert_eq!(names(&folder), [only.as_str(), "latest.json", "lock"]);
    let report: Report = serde_json::from_slice(&fs::read(folder.join("latest.json")).unwrap()).unwrap();
    assert!(report.health.is_some() && report.measured() > 0);
    assert!(stderr(&first).is_empty() || !report.complete, "{first:?}");
    // To the millisecond, and made before the result says when it began.
    let name = |utc: &str| utc.replace(':', "-")[..23].to_owned();
    assert!(*name(&began) <= only[..23] && only[..23] <= *name(&report.started.utc), "named by the time of the check: {only}");
    assert_eq!(fs::metadata(folder.join("lock")).unwrap().mode() & 0o777, 0o600, "nobody else can hold the lock");
    // What is not a result stays.
    for old in ["2026-01-02T03-04-05.678Z.json", "2026-01-01T03-04-05.678Z.json", "first-day.json", "2026-01-01.json"] {
        fs::copy(folder.join(only), folder.join(old)).unwrap();
    }
    assert!(ended_well(&check(&folder).args(["--keep", "2"]).output().unwrap()));
    let kept = results(&folder);
    assert_eq!((kept.len(), kept[0].as_str(), &kept[1]), (3, "2026-01-01.json", only), "{kept:?}");
    assert_eq!(fs::read_link(folder.join("latest.json")).unwrap(), Path::new(&kept[2]));
    assert!(folder.join("first-day.json").exists());
    // The folder is one that a fleet takes.
    let fleet = folder.with_file_name("fleet");
    let ingested = program().args(["fleet", "ingest"]).arg(&fleet).arg(&folder).output().unwrap();
    assert!(ingested.status.success(), "{}", stderr(&ingested));
    fs::remove_dir_all(folder.parent().unwrap()).unwrap();
}

#[test]
fn two_at_once_are_one_after_the_other() {
    let _permit = beside_another();
    let folder = temporary("two");
    // Long enough for the others to meet it; it is interrupted in the end.
    let mut first = check_for("20s", &folder).args(["--within", "5m"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for_lock(&folder, &mut first);
    let busy = check(&folder).args(["--lock-wait", "0"]).output().unwrap();
    assert_eq!(busy.status.code(), Some(4), "{}", stderr(&busy));
    let named = format!("{}: another check runs (process {})", folder.display(), first.id());
    assert!(stderr(&busy).contains(&named) && stderr(&busy).contains("--lock-wait 60s"), "{}", stderr(&busy));
    let impatient = check(&folder).args(["--lock-wait", "200ms"]).output().unwrap();
    assert_eq!(impatient.status.code(), Some(4), "{}", stderr(&impatient));
    assert!(stderr(&impatient).contains("has not ended in 0.2 s"), "{}", stderr(&impatient));
    // This one waits until the first has ended.
    let mut second = check(&folder);
    let second = second.args(["--lock-wait", "5m"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert!(results(&folder).is_empty() && first.try_wait().unwrap().is_none());
    assert!(Command::new("kill").args(["-INT", &first.id().to_string()]).status().unwrap().success());
    assert_eq!(first.wait().unwrap().code(), Some(130));
    let second = second.wait_with_output().unwrap();
    assert!(ended_well(&second) && stderr(&second).contains(&format!("{named}; waiting until it ends")), "{second:?}");
    let both = results(&folder);
    let interrupted = |name: &String| {
        let report: Report = serde_json::from_slice(&fs::read(folder.join(name)).unwrap()).unwrap();
        matches!(report.incomplete, Some(Incomplete::Signal { .. }))
    };
    assert_eq!(both.iter().map(interrupted).collect::<Vec<_>>(), [true, false], "{both:?}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_check_that_is_killed_leaves_no_lock_and_no_half_file() {
    let _permit = beside_another();
    let folder = temporary("killed");
    for _ in 0..3 {
        let mut victim = check_for("20s", &folder).stdout(Stdio::null()).spawn().unwrap();
        wait_for_lock(&folder, &mut victim);
        victim.kill().unwrap();
        victim.wait().unwrap();
    }
    // As if it had been killed while it wrote.
    let half = folder.join(".2026-01-01T03-04-05.678Z.json.memgauge-4194304-Xy12ab.tmp");
    let link = folder.join(".latest.json.memgauge-4194304-link.tmp");
    fs::write(&half, "{\"schema").unwrap();
    symlink("nowhere", &link).unwrap();
    // Where it had that number does not stand there, so they are old.
    assert!(Command::new("touch").args(["-h", "-d", "2 hours ago"]).args([&half, &link]).status().unwrap().success());
    let next = check(&folder).args(["--lock-wait", "0"]).output().unwrap();
    assert!(ended_well(&next), "{}", stderr(&next));
    let [result] = &results(&folder)[..] else { panic!("{:?}", names(&folder)) };
    assert_eq!(names(&folder), [result.as_str(), "latest.json", "lock"]);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_folder_that_cannot_be_used_is_named_before_anything_is_measured() {
    let folder = temporary("refused");
    let refused = |mut command: Command| {
        let (begin, output) = (Instant::now(), command.output().unwrap());
        assert_eq!(output.status.code(), Some(64), "{}", stderr(&output));
        assert!(begin.elapsed() < LONG);
        stderr(&output).to_owned()
    };
    let file = folder.join("file");
    fs::write(&file, "").unwrap();
    assert!(refused(check(&file)).contains("file: the folder cannot be made"));
    let open = folder.join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(refused(check(&open)).contains("everybody may write to the folder; take that away (chmod o-w)"));
    fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).unwrap();
    let sticky = refused(check(&open));
    assert!(sticky.contains("name a folder inside it") && !sticky.contains("chmod"), "{sticky}");
    let planted = folder.join("planted");
    fs::create_dir(&planted).unwrap();
    symlink("/etc/passwd", planted.join("lock")).unwrap();
    assert!(refused(check(&planted)).contains("its file 'lock' cannot be opened"));
    if !is_root() {
        not_tested!("only root can become another user");
    }
    // Others reach the folder but not the program's own.
    let copy = folder.join("memgauge");
    copy_program(env!("CARGO_BIN_EXE_memgauge").as_ref(), &copy);
    let roots = Path::new("/tmp").join(format!("memgauge-scheduled-{}", std::process::id()));
    fs::create_dir(&roots).unwrap();
    copy_program(&copy, &roots.join("memgauge"));
    let mut nobody = Command::new(roots.join("memgauge"));
    nobody.args(["quick", "-q", "--state"]).arg(roots.join("state")).uid(NOBODY).gid(NOBODY);
    assert!(refused(nobody).contains("the folder cannot be made: Permission denied"));
    let mut nobody = Command::new(roots.join("memgauge"));
    nobody.args(["quick", "-q", "--state"]).arg(&roots).uid(NOBODY).gid(NOBODY);
    assert!(refused(nobody).contains("its file 'lock' cannot be opened: Permission denied"));
    chown(&roots, Some(NOBODY), None).unwrap();
    assert!(refused(check(&roots)).contains("another user's (user ID 65534)"));
    fs::remove_dir_all(roots).unwrap();
    fs::remove_dir_all(folder).unwrap();
}

/// A file system that only one command sees, without room for a result: full, or without room for one more file.
const FULL: [&str; 2] = ["size=64k,mode=755", "nr_inodes=5,mode=755"];

#[test]
fn a_full_disk_costs_neither_the_result_nor_earlier_ones() {
    let _permit = beside_another();
    let old = "2026-01-01T03-04-05.678Z.json";
    // With another file beside it as well, as in integrations/prometheus: the line stays, and the result goes to a file.
    for (options, beside) in FULL.into_iter().flat_map(|options| [(options, false), (options, true)]) {
        let (folder, elsewhere, numbers) = (temporary("full-state"), temporary("full-elsewhere"), temporary("full-numbers"));
        let script = format!(
            "mount -t tmpfs -o {options} none '{0}' && echo old > '{0}/{old}' && ln -s {old} '{0}/latest.json' && \
             {{ head -c 100000 /dev/zero > '{0}/filler' 2>/dev/null; true; }} && \
             \"$0\" quick -q --keep 1 --state '{0}' {1}; status=$?; ls '{0}' >&2; cat '{0}/latest.json' >&2; exit $status",
            folder.display(),
            if beside { format!("-o '{}/quick.prom'", numbers.display()) } else { String::new() }
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script]).arg(simulated::path()).env("TMPDIR", &elsewhere);
        let output = match command.output() {
            Ok(output) if stderr(&output).contains("filler") => output,
            refused => not_tested!("no file system can be mounted here: {refused:?}"),
        };
        let said = format!("{options}: {} {}", text(&output.stdout), stderr(&output));
        assert_eq!(output.status.code(), Some(4), "{said}");
        assert!(said.contains("No space left on device") && said.contains("the result is in"), "{said}");
        assert!(
            said.contains(&format!("{old}\nfiller\nlatest.json\nlock\nold\n")),
            "nothing else is there, and the earlier result is: {said}"
        );
        assert_eq!(text(&output.stdout).lines().count(), 1, "{said}");
        let [kept] = &names(&elsewhere)[..] else { panic!("{:?}", names(&elsewhere)) };
        serde_json::from_slice::<Report>(&fs::read(elsewhere.join(kept)).unwrap()).unwrap();
        assert_eq!(names(&numbers), if beside { vec!["quick.prom"] } else { Vec::new() });
        [folder, elsewhere, numbers].iter().for_each(|folder| fs::remove_dir_all(folder).unwrap());
    }
}

#[test]
fn a_disk_that_takes_no_lock_is_no_wrong_usage() {
    let folder = temporary("no-lock");
    let script =
        format!("mount -t tmpfs -o ro,mode=755 none '{0}' && exec \"$0\" quick -q --size 1M --time 10ms --state '{0}'", folder.display());
    let output = Command::new("unshare").args(["--mount", "sh", "-c", &script, env!("CARGO_BIN_EXE_memgauge")]).output();
    let output = match output {
        Ok(output) if !["unshare:", "mount:"].iter().any(|who| stderr(&output).contains(who)) => output,
        refused => not_tested!("no file system can be mounted here: {refused:?}"),
    };
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stderr(&output).contains("its file 'lock' cannot be opened: Read-only file system"), "{}", stderr(&output));
    fs::remove_dir_all(folder).unwrap();
}

/// What a program of the system prints about a process or a file; `None` where there is no such program.
fn asked(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    Some(text(&output.stdout).trim().to_owned())
}

/// A process that a test which fails leaves to nobody.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_running_check_is_first_to_be_killed_and_as_nice_as_it_was_told_to_be() {
    let _permit = beside_another();
    let folder = temporary("priorities");
    if asked("ionice", &["--version"]).is_none() {
        not_tested!("ionice is not installed");
    }
    // After the name, which may have spaces, comes field 3; niceness is field 19.
    let niceness = |stat: &str| stat.rsplit_once(')')?.1.split_whitespace().nth(16)?.parse::<i32>().ok();
    // As `Nice=` and `IOSchedulingClass=idle` of a service. Each program is replaced by the next.
    let told = (niceness(&fs::read_to_string("/proc/self/stat").unwrap()).unwrap() + 7).min(19);
    let mut command = Command::new("nice");
    command.args([
        "-n",
        "7",
        "ionice",
        "-c",
        "3",
        env!("CARGO_BIN_EXE_memgauge"),
        "quick",
        "-q",
        "--size",
        "1M",
        "--time",
        "20s",
        "--within",
    ]);
    let child = command.args(["5m", "--state"]).arg(&folder).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut child = Killed(child);
    let child = &mut child.0;
    wait_for_lock(&folder, child);
    let (id, begin) = (child.id().to_string(), Instant::now());
    let read = |path: String| fs::read_to_string(path).unwrap_or_default();
    // Threads that measure are there when their times are.
    let threads = || names(Path::new(&format!("/proc/{id}/task")));
    while read(format!("/proc/{id}/oom_score_adj")).trim() != "1000" || threads().len() < 2 {
        assert!(begin.elapsed() < LONG && child.try_wait().unwrap().is_none(), "it does not offer itself to the out-of-memory killer");
        std::thread::sleep(Duration::from_millis(20));
    }
    for thread in threads() {
        let stat = || read(format!("/proc/{id}/task/{thread}/stat"));
        let Some(nice) = niceness(&stat()) else { continue };
        assert_eq!(nice, told, "thread {thread}: {}", stat());
        let class = asked("ionice", &["-p", &thread]);
        // Threads of a step end with it, and have no class then.
        assert!(class.as_deref() == Some("idle") || niceness(&stat()).is_none(), "thread {thread}: {class:?}");
    }
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_page_cache_stays_as_it_was() {
    const BYTES: usize = 64 << 20;
    let _permit = beside_another();
    let folder = temporary("page-cache");
    let file = folder.join("a file of somebody's");
    fs::write(&file, vec![1; BYTES]).unwrap();
    // Pages that were not written to the device could not be dropped.
    fs::File::open(&file).unwrap().sync_all().unwrap();
    let cached = || asked("fincore", &["--bytes", "--noheadings", "--output", "RES", file.to_str().unwrap()]);
    let Some(before) = cached().map(|bytes| bytes.parse::<usize>().unwrap()) else { not_tested!("fincore is not installed") };
    assert!(before > BYTES / 2, "{before} bytes are in the page cache before the check");
    assert!(ended_well(&check_for("5ms", &folder.join("state")).output().unwrap()));
    // The kernel itself gives up pages now and then.
    let after: usize = cached().unwrap().parse().unwrap();
    assert!(after > before - before / 4, "of {before} bytes in the page cache, {after} are left");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_job_beside_it_survives_when_memory_runs_out() {
    const LIMIT: u64 = 160 << 20;
    const OF_CHECK: u64 = 40 << 20;
    const OF_JOB: u64 = 140 << 20;
    let _permit = beside_another();
    let folder = temporary("beside-a-job");
    let Some(group) = Group::new("job", LIMIT) else { not_tested!("no control group with a limit on memory can be made here") };
    let resident = |id: u32| {
        let pages = fs::read_to_string(format!("/proc/{id}/statm")).unwrap_or_default();
        pages.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) * 4096
    };
    // The check ends first, always. Where CPUs are busy, its memory may come back so late that the kernel takes another process of the group as
    // well: that was seen in one of five runs. If it chose by size, it would be the job each time.
    let survived = (0..5).any(|_| {
        let mut check = program();
        check.args(["quick", "-q", "--size", "24M", "--time", "20s", "--within", "5m", "--state"]).arg(&folder);
        group.enter(&mut check);
        let mut check = check.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let begin = Instant::now();
        while resident(check.id()) < OF_CHECK {
            assert!(begin.elapsed() < LONG && check.try_wait().unwrap().is_none(), "the check ended before the job began");
            std::thread::sleep(Duration::from_millis(5));
        }
        // The job keeps all that it reads, which is more than the check leaves: tail has to know the end before it prints.
        let mut job = Command::new("sh");
        job.args(["-c", &format!("head -c {OF_JOB} /dev/zero | tail -c {OF_JOB} | wc -c")]);
        group.enter(&mut job);
        let job = job.output().unwrap();
        let ended = check.wait_with_output().unwrap();
        assert_eq!(ended.status.signal(), Some(9), "{ended:?}");
        text(&job.stdout).trim() == OF_JOB.to_string()
    });
    assert!(survived, "the job was killed each time");
    // The lock ended with the check.
    assert!(ended_well(&check_for("10ms", &folder).args(["--lock-wait", "0"]).output().unwrap()));
    fs::remove_dir_all(folder).unwrap();
}
