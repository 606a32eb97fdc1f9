//! On which CPUs the threads of processes run: what each used of a CPU from one look to the next belongs to the CPU that it was seen on last.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use memgauge_model::result::ProcessMemory;

use crate::files::read_text;
use crate::noise::user_hz;
use crate::processes::stat_fields;
use crate::tree::Tree;

/// Watches the threads of processes.
#[derive(Debug)]
pub struct ThreadWatch {
    root: PathBuf,
    /// When this program began, in ticks since the machine was started.
    began: u64,
    /// The ticks that each thread had used, by process and thread.
    used: HashMap<(u32, u32), u64>,
    seen: BTreeMap<u32, SeenThreads>,
}

/// What was seen of a process's threads.
#[derive(Debug, Default)]
struct SeenThreads {
    /// Seconds that they ran, by CPU.
    cpu_s: BTreeMap<u32, f64>,
    /// The threads by CPU.
    by_cpu: BTreeMap<u32, u32>,
}

/// What a thread's `stat` says.
#[derive(Debug, PartialEq)]
struct ThreadStat {
    ticks: u64,
    started: u64,
    cpu: u32,
}

impl ThreadWatch {
    /// Begins to watch.
    pub fn new(root: &Path) -> Self {
        // The clock of `starttime`; in containers /proc/uptime may have another.
        let own = Tree::new(root).text("proc/self/stat").and_then(|stat| parse(&stat));
        Self { root: root.to_owned(), began: own.map_or(u64::MAX, |own| own.started), used: HashMap::new(), seen: BTreeMap::new() }
    }

    /// Looks at the threads of these processes. Returns how many there are.
    pub fn look(&mut self, pids: impl IntoIterator<Item = u32>) -> usize {
        let mut used = HashMap::new();
        for pid in pids {
            let folder = format!("proc/{pid}/task");
            let threads = Tree::new(&self.root).names(&folder).into_iter().filter_map(|name| name.parse::<u32>().ok());
            let stat = |thread: u32| Some((thread, parse(&read_text(&self.root.join(format!("{folder}/{thread}/stat"))).ok()?)?));
            let threads: Vec<(u32, ThreadStat)> = threads.filter_map(stat).collect();
            if threads.is_empty() {
                continue;
            }
            let seen = self.seen.entry(pid).or_default();
            seen.by_cpu.clear();
            for (thread, now) in threads {
                *seen.by_cpu.entry(now.cpu).or_default() += 1;
                // Time from before the watch began is not counted.
                let before = self.used.get(&(pid, thread)).copied().or((now.started >= self.began).then_some(0));
                used.insert((pid, thread), now.ticks);
                let ran = now.ticks.saturating_sub(before.unwrap_or(now.ticks));
                if ran > 0 {
                    *seen.cpu_s.entry(now.cpu).or_default() += ran as f64 / user_hz();
                }
            }
        }
        // Those that have ended are forgotten.
        self.used = used;
        self.used.len()
    }

    /// Whether a process was started after this program, or in the same tick.
    pub fn is_younger(&self, pid: u32) -> bool {
        let stat = Tree::new(&self.root).text(&format!("proc/{pid}/stat"));
        stat.and_then(|stat| parse(&stat)).is_some_and(|stat| stat.started >= self.began)
    }

    /// Seconds that the threads of a process have run so far, by CPU.
    pub fn cpu_s(&self, pid: u32) -> BTreeMap<u32, f64> {
        self.seen.get(&pid).map(|seen| seen.cpu_s.clone()).unwrap_or_default()
    }

    /// Adds what was seen of a process's threads so far.
    pub fn add_to(&self, process: &mut ProcessMemory) {
        if let Some(seen) = self.seen.get(&process.pid) {
            process.cpu_s.clone_from(&seen.cpu_s);
            process.threads_by_cpu.clone_from(&seen.by_cpu);
        }
    }
}

/// utime, stime, starttime and processor are fields 14, 15, 22 and 39 (proc_pid_stat(5)); the first that is given here is field 3.
fn parse(stat: &str) -> Option<ThreadStat> {
    let (_, fields) = stat_fields(stat)?;
    let fields: Vec<&str> = fields.collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(ThreadStat { ticks: number(14)? + number(15)?, started: number(22)?, cpu: u32::try_from(number(39)?).ok()? })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::tests::fixture::Fixture;

    fn stat(ticks: u64, started: u64, cpu: u32) -> String {
        format!("7 (a (b) c) S 1 7 7 0 -1 64 0 0 0 0 {ticks} 5 0 0 20 0 1 0 {started} 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 {cpu} 0 0 0 0 0")
    }

    #[test]
    fn time_belongs_to_the_cpu_that_a_thread_was_seen_on_last() {
        let hz = user_hz();
        let tree = Fixture::new().file("proc/self/stat", stat(0, (10.0 * hz) as u64, 0));
        let show = |thread: u32, stat: &str| {
            let folder = tree.root().join(format!("proc/7/task/{thread}"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("stat"), stat).unwrap();
        };
        let mut watch = ThreadWatch::new(tree.root());
        show(7, &stat(1000, 50, 0));
        assert_eq!(watch.look([7, 8]), 1);
        assert_eq!(watch.cpu_s(7), BTreeMap::new(), "what it used before is not counted");
        show(7, &stat(1000 + hz as u64, 50, 3));
        // A thread that started since then is counted from its beginning: 5 ticks of the kernel, and these.
        show(9, &stat(2 * hz as u64, (20.0 * hz) as u64, 1));
        watch.look([7, 8]);
        assert_eq!(watch.cpu_s(7), [(1, 2.0 + 5.0 / hz), (3, 1.0)].into());
        let mut process = ProcessMemory { pid: 7, ..ProcessMemory::default() };
        watch.add_to(&mut process);
        assert_eq!(process.threads_by_cpu, [(1, 1), (3, 1)].into());
        fs::write(tree.root().join("proc/7/stat"), stat(0, 50, 0)).unwrap();
        assert!(!watch.is_younger(7) && !watch.is_younger(8));
        fs::write(tree.root().join("proc/7/stat"), stat(0, (20.0 * hz) as u64, 0)).unwrap();
        assert!(watch.is_younger(7));
    }

    #[test]
    fn a_text_that_is_cut_is_nothing() {
        assert_eq!(parse(&stat(7, 100, 5)), Some(ThreadStat { ticks: 12, started: 100, cpu: 5 }));
        assert_eq!(parse("7 (cut) S 1 7"), None);
        assert_eq!(parse(""), None);
    }
}
