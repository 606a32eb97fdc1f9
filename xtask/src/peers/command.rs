//! Running one tool once, and what disturbed it.

use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use memgauge_core::units::IdSet;

/// How often the end of a tool is looked for: seldom enough to cost it nothing.
const LOOK: Duration = Duration::from_millis(25);
/// When its pages are read; what counts is the reading with the most memory. Each walks its page tables, so there are few.
const PAGES_AFTER: [Duration; 2] = [Duration::from_millis(400), Duration::from_millis(1200)];

/// A command line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Call {
    /// What to run.
    pub(super) program: PathBuf,
    /// Its arguments.
    pub(super) args: Vec<String>,
    /// Variables added to the environment.
    pub(super) env: Vec<(&'static str, String)>,
    /// CPUs that it may use, by `taskset`; `None` for tools that pin themselves to CPUs named in `args`.
    pub(super) cpus: Option<IdSet>,
}

impl Call {
    pub(super) fn new<T: Into<String>>(program: impl Into<PathBuf>, args: impl IntoIterator<Item = T>) -> Self {
        Self { program: program.into(), args: args.into_iter().map(Into::into).collect(), env: Vec::new(), cpus: None }
    }

    pub(super) fn on(self, cpus: &IdSet) -> Self {
        Self { cpus: Some(cpus.clone()), ..self }
    }

    pub(super) fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.env.push((name, value.into()));
        self
    }

    /// With glibc's `malloc` asking for transparent huge pages in what it maps (glibc 2.35 and later).
    pub(super) fn huge_malloc(self) -> Self {
        self.env("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
    }

    /// As one would type it, programs by their names.
    pub(super) fn line(&self) -> String {
        let mut words: Vec<String> = self.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
        words.extend(self.cpus.as_ref().map(|cpus| format!("taskset -c {cpus}")));
        words.push(self.program.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned()));
        words.extend(self.args.iter().cloned());
        words.join(" ")
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// When it cannot be started, and when it is not done after `limit` (it is killed then). Its exit status is the reader's business: some
    /// tools end with an odd one.
    pub(super) fn run(&self, limit: Duration) -> Result<RunOutput> {
        let mut command = match &self.cpus {
            Some(cpus) => {
                let mut command = Command::new("taskset");
                command.arg("-c").arg(cpus.to_string()).arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        command.args(&self.args).envs(self.env.iter().map(|(name, value)| (name, value)));
        // A group of its own: some tools fork their workers, which would outlive them.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (before, began) = (Ticks::now(), Instant::now());
        let mut child = command.spawn().with_context(|| format!("cannot start {}", self.line()))?;
        let out = collect(child.stdout.take());
        let err = collect(child.stderr.take());
        let mut pages: Option<(f64, f64)> = None;
        let mut looks = PAGES_AFTER.iter();
        let mut look = looks.next();
        let ended = loop {
            if child.try_wait()?.is_some() {
                break true;
            }
            if began.elapsed() > limit {
                kill_group(child.id());
                child.kill()?;
                child.wait()?;
                break false;
            }
            if look.is_some_and(|after| began.elapsed() > *after) {
                look = looks.next();
                let now = fs::read_to_string(format!("/proc/{}/smaps_rollup", child.id())).ok().and_then(|text| memory(&text));
                pages = now.into_iter().chain(pages).max_by(|a, b| a.0.total_cmp(&b.0));
            }
            thread::sleep(LOOK);
        };
        let seconds = began.elapsed().as_secs_f64();
        let others = Ticks::now().zip(before).map(|(now, before)| now.others_since(before));
        let text = [out, err].map(|reader| reader.join().unwrap_or_default()).join("\n");
        if !ended {
            bail!("not done after {} s: {}", limit.as_secs(), self.line());
        }
        Ok(RunOutput { text, seconds, others, huge: pages.map(|(all, huge)| huge / all) })
    }
}

/// The output of a run, and its surroundings.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RunOutput {
    /// Standard output, then standard error.
    pub(super) text: String,
    /// Wall time.
    pub(super) seconds: f64,
    /// The share of the machine's CPU time that went to other processes; `None` if the kernel does not report it.
    pub(super) others: Option<f64>,
    /// The share of its anonymous memory that was in transparent huge pages; `None` if the process ended before that was read.
    pub(super) huge: Option<f64>,
}

/// Ends a process and all that it started.
fn kill_group(id: u32) {
    // Without the program `kill` the process alone is killed, which is what its caller does next.
    let _ = Command::new("kill").args(["-KILL", "--", &format!("-{id}")]).stderr(Stdio::null()).status();
}

fn collect(from: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut from) = from {
            // What came before an error is still worth reading.
            let _ = from.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// KiB of anonymous memory, and of it in huge pages, from `/proc/PID/smaps_rollup`; `None` if there is none.
fn memory(rollup: &str) -> Option<(f64, f64)> {
    let kib = |key: &str| -> Option<f64> {
        let rest = rollup.lines().find_map(|line| line.strip_prefix(key))?;
        rest.split_whitespace().next()?.parse().ok()
    };
    let all = kib("Anonymous:")?;
    (all > 0.0).then_some((all, kib("AnonHugePages:")?))
}

/// CPU time in ticks of 10 ms (`USER_HZ`), of the machine and of this process's children that ended.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ticks {
    all: u64,
    busy: u64,
    children: u64,
}

impl Ticks {
    fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?, &fs::read_to_string("/proc/self/stat").ok()?)
    }

    fn parse(stat: &str, own: &str) -> Option<Self> {
        let fields: Vec<u64> = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().map_while(|f| f.parse().ok()).collect();
        let [user, nice, system, idle, wait, irq, softirq, steal, ..] = fields[..] else { return None };
        let busy = user + nice + system + irq + softirq;
        // The name in brackets may hold blanks; cutime and cstime are the 14th and 15th field after it.
        let mut after = own.rsplit_once(')')?.1.split_whitespace().skip(13);
        let children = after.next()?.parse::<u64>().ok()? + after.next()?.parse::<u64>().ok()?;
        Some(Self { all: busy + idle + wait + steal, busy, children })
    }

    fn others_since(self, before: Self) -> f64 {
        let busy = self.busy.saturating_sub(before.busy).saturating_sub(self.children.saturating_sub(before.children));
        busy as f64 / self.all.saturating_sub(before.all).max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_what_one_would_type() {
        let call = Call::new("/opt/x/mbw", ["-q", "-t0"]).on(&IdSet::one(3)).env("A", "b");
        assert_eq!(call.line(), "A=b taskset -c 3 mbw -q -t0");
    }

    #[test]
    fn both_outputs_are_kept() {
        let output = Call::new("sh", ["-c", "echo out; echo err >&2; exit 3"]).env("A", "b").run(Duration::from_secs(20)).unwrap();
        assert_eq!(output.text, "out\n\nerr\n");
        assert!(output.others.is_none_or(|share| (0.0..=1.0).contains(&share)), "{output:?}");
    }

    #[test]
    fn what_does_not_end_is_killed() {
        let began = Instant::now();
        let message = Call::new("sleep", ["30"]).run(Duration::from_millis(100)).unwrap_err().to_string();
        assert!(message.contains("sleep 30"), "{message}");
        // Its children hold its output open: were they left alive, this would wait for them.
        assert!(Call::new("sh", ["-c", "sleep 30 & sleep 30"]).run(Duration::from_millis(100)).is_err());
        assert!(began.elapsed() < Duration::from_secs(20));
        assert!(Call::new("/no/such/tool", [""; 0]).run(LOOK).unwrap_err().to_string().contains("cannot start"));
    }

    #[test]
    fn shares_of_memory_and_time() {
        assert_eq!(memory("Rss: 9 kB\nAnonymous:   4096 kB\nAnonHugePages:  2048 kB\n"), Some((4096.0, 2048.0)));
        assert_eq!(memory("Anonymous: 0 kB\nAnonHugePages: 0 kB\n"), None);
        let own = "7 (a ) b) S 1 1 1 0 -1 0 0 0 0 0 5 6 30 20 20 0 1 0 9";
        let before = Ticks::parse("cpu  100 0 50 850 0 0 0 0 0 0\ncpu0 1", own).unwrap();
        assert_eq!(before, Ticks { all: 1000, busy: 150, children: 50 });
        let after = Ticks::parse("cpu  180 0 70 950 0 0 0 0 0 0\n", &own.replace(" 30 20 20", " 80 20 20")).unwrap();
        assert_eq!(after.others_since(before), 0.25);
    }
}
