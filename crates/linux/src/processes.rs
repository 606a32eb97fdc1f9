//! Which other processes use the CPUs, from the CPU times that `/proc` shows.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use memgauge_model::result::DisturbingProcess;

use crate::container::is_in_own_processes;
use crate::files::read_text;
use crate::mount;
use crate::noise::user_hz;
use crate::tree::Tree;

/// Processes that used less than this share of one CPU are not named.
const MIN_PERCENT: f64 = 5.0;
/// No more processes than this are named.
const MAX_NAMED: usize = 5;

/// Whether processes of this machine may be hidden from this one: it is in a namespace of processes, as in a container, or `/proc` shows each
/// user only his own (`hidepid`).
pub fn may_be_hidden(root: &Path) -> bool {
    let tree = Tree::new(root);
    // SAFETY: geteuid has no preconditions.
    let is_root = unsafe { libc::geteuid() } == 0;
    is_in_own_processes(tree) || (!is_root && hides_processes(&mount::read(tree)))
}

fn hides_processes(mounts: &[mount::Mount]) -> bool {
    let hides = |option: &str| option.strip_prefix("hidepid=").is_some_and(|how| how != "0" && how != "off");
    mounts.iter().any(|mount| mount.point == "/proc" && mount.kind == "proc" && mount.options.split(',').any(hides))
}

/// The CPU times of all other processes at one moment.
#[derive(Debug)]
pub struct ProcessTimes {
    taken: Instant,
    /// The name and the ticks of `USER_HZ` of each process, by its number.
    processes: BTreeMap<u32, (String, u64)>,
}

impl ProcessTimes {
    /// Reads a small file for each process that this one may see.
    pub fn read(root: &Path) -> Self {
        let own = std::process::id();
        let names = Tree::new(root).names("proc");
        let others = names.iter().filter_map(|name| name.parse::<u32>().ok()).filter(|pid| *pid != own);
        let stat = |pid: u32| Some((pid, name_and_ticks(&read_text(&root.join(format!("proc/{pid}/stat"))).ok()?)?));
        Self { taken: Instant::now(), processes: others.filter_map(stat).collect() }
    }

    /// The processes that used most CPU time since `before`, by name. A process that has ended since is not among them.
    pub fn since(&self, before: &Self) -> Vec<DisturbingProcess> {
        self.busiest(before, self.taken.saturating_duration_since(before.taken).as_secs_f64())
    }

    fn busiest(&self, before: &Self, seconds: f64) -> Vec<DisturbingProcess> {
        let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
        for (pid, (name, ticks)) in &self.processes {
            let then = before.processes.get(pid).map_or(0, |(_, ticks)| *ticks);
            *by_name.entry(name).or_default() += ticks.saturating_sub(then);
        }
        let percent = |ticks: u64| 100.0 * ticks as f64 / user_hz() / seconds.max(f64::MIN_POSITIVE);
        let named = by_name.into_iter().map(|(name, ticks)| DisturbingProcess { name: name.to_owned(), cpu_percent: percent(ticks) });
        let mut named: Vec<_> = named.filter(|process| process.cpu_percent >= MIN_PERCENT).collect();
        named.sort_by(|a, b| b.cpu_percent.total_cmp(&a.cpu_percent));
        named.truncate(MAX_NAMED);
        named
    }
}

/// The name and the user and system time in the text of `/proc/PID/stat`.
fn name_and_ticks(stat: &str) -> Option<(String, u64)> {
    let (name, fields) = stat_fields(stat)?;
    // utime and stime are fields 14 and 15.
    let mut times = fields.skip(11).map_while(|field| field.parse::<u64>().ok());
    Some((name.to_owned(), times.next()? + times.next()?))
}

/// The name in the text of `/proc/PID/stat` or `/proc/PID/task/TID/stat` (proc_pid_stat(5)), and the fields behind it. The first is field 3, the
/// state. A name may have spaces and parentheses.
pub(crate) fn stat_fields(stat: &str) -> Option<(&str, impl Iterator<Item = &str>)> {
    let (before, after) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    Some((name, after.split_ascii_whitespace()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::tests::fixture::Fixture;

    #[test]
    fn names_have_spaces_and_times_are_user_and_system() {
        let stat = "12 (a (b) c) S 1 12 12 0 -1 4194560 100 0 0 0 250 50 9 9 20 0 1 0 5 1000 10";
        assert_eq!(name_and_ticks(stat), Some(("a (b) c".into(), 300)));
        assert_eq!(name_and_ticks("12 (cut) S 1"), None);
    }

    #[test]
    fn processes_are_hidden_from_a_container() {
        let hidden = |namespace: u64| {
            let tree = Fixture::new().file("proc/self/mountinfo", "24 1 0:22 / /proc rw - proc proc rw\n").file("proc/self/ns/uts", "");
            symlink(format!("pid:[{namespace}]"), tree.root().join("proc/self/ns/pid")).unwrap();
            may_be_hidden(tree.root())
        };
        assert_eq!([4_026_531_836, 4_026_532_281].map(hidden), [false, true]);
    }

    #[test]
    fn processes_of_others_are_hidden_by_an_option_of_proc() {
        let mounts = |options: &str| format!("24 1 0:22 / /proc rw - proc proc {options}\n");
        assert!(
            ["rw,hidepid=2", "rw,hidepid=invisible", "rw,hidepid=ptraceable,gid=5"]
                .into_iter()
                .all(|o| hides_processes(&mounts_of(&mounts(o))))
        );
        assert!(!["rw", "rw,hidepid=0", "rw,hidepid=off"].into_iter().any(|o| hides_processes(&mounts_of(&mounts(o)))));
    }

    fn mounts_of(mountinfo: &str) -> Vec<mount::Mount> {
        let tree = Fixture::new().file("proc/self/mountinfo", mountinfo);
        mount::read(Tree::new(tree.root()))
    }

    #[test]
    fn the_busiest_names_come_first() {
        let times = |processes: &[(u32, &str, u64)]| ProcessTimes {
            taken: Instant::now(),
            processes: processes.iter().map(|(pid, name, ticks)| (*pid, ((*name).to_owned(), *ticks))).collect(),
        };
        let hz = user_hz() as u64;
        let before = times(&[(1, "init", 1000), (2, "rustc", 50)]);
        let after = times(&[(1, "init", 1000), (2, "rustc", 50 + hz), (3, "rustc", hz), (4, "python3", hz / 2)]);
        let named = after.busiest(&before, 4.0);
        let named: Vec<(&str, f64)> = named.iter().map(|process| (process.name.as_str(), process.cpu_percent)).collect();
        assert_eq!(named, [("rustc", 50.0), ("python3", 12.5)]);
    }

    #[test]
    fn this_process_does_not_disturb_itself() {
        let times = ProcessTimes::read(Path::new("/"));
        assert!(!times.processes.contains_key(&std::process::id()));
    }
}
