//! Which other processes use the CPUs, from their CPU times.

use std::collections::BTreeMap;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::Path;
use std::time::Instant;

use memgauge_model::result::DisturbingProcess;
use windows_sys::Win32::Foundation::INVALID_HANDLE_VALUE;
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW, TH32CS_SNAPPROCESS,
};
use windows_sys::Win32::System::Threading::{OpenProcess, PROCESS_QUERY_LIMITED_INFORMATION};

use crate::noise::process_cpu_units;
use crate::topology::wine_version;

/// Processes that used less than this share of one CPU are not named.
const MIN_PERCENT: f64 = 5.0;
/// No more processes than this are named.
const MAX_NAMED: usize = 5;
/// Units of CPU times in a second.
const UNITS_IN_S: f64 = 1e7;

/// The CPU times of all other processes at one moment.
#[derive(Debug)]
pub struct ProcessTimes {
    taken: Instant,
    /// The name and the CPU time in units of 100 ns of each process, by its number.
    processes: BTreeMap<u32, (String, u64)>,
}

/// Whether processes of this machine may be hidden from this one: Windows lists all.
pub const fn may_be_hidden(_root: &Path) -> bool {
    false
}

impl ProcessTimes {
    /// Reads the time of each process that this one may look at (`CreateToolhelp32Snapshot`, `GetProcessTimes`). An administrator may look
    /// at services and at processes of other users, others only at their own. Wine returns the caller's own time for every process, so
    /// nothing is known under Wine.
    pub fn read(_root: &Path) -> Self {
        if wine_version().is_some() {
            return Self { taken: Instant::now(), processes: BTreeMap::new() };
        }
        let own = std::process::id();
        let others = processes().into_iter().filter(|(id, _)| *id != own);
        let timed = others.filter_map(|(id, name)| Some((id, (name, cpu_units(id)?))));
        Self { taken: Instant::now(), processes: timed.collect() }
    }

    /// The processes that used most CPU time since `before`, by name. A process that has ended since is not among them.
    pub fn since(&self, before: &Self) -> Vec<DisturbingProcess> {
        self.busiest(before, self.taken.saturating_duration_since(before.taken).as_secs_f64())
    }

    fn busiest(&self, before: &Self, seconds: f64) -> Vec<DisturbingProcess> {
        let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
        for (id, (name, units)) in &self.processes {
            // Numbers are used again, and what another program used before does not count.
            let then = before.processes.get(id).filter(|(before, _)| before == name).map_or(0, |(_, units)| *units);
            *by_name.entry(name).or_default() += units.saturating_sub(then);
        }
        let percent = |units: u64| 100.0 * units as f64 / UNITS_IN_S / seconds.max(f64::MIN_POSITIVE);
        let named = by_name.into_iter().map(|(name, units)| DisturbingProcess { name: name.to_owned(), cpu_percent: percent(units) });
        let mut named: Vec<_> = named.filter(|process| process.cpu_percent >= MIN_PERCENT).collect();
        named.sort_by(|a, b| b.cpu_percent.total_cmp(&a.cpu_percent));
        named.truncate(MAX_NAMED);
        named
    }
}

/// The number and the name of the program's file of each process.
fn processes() -> Vec<(u32, String)> {
    // SAFETY: the function takes numbers.
    let snapshot = unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0) };
    if snapshot == INVALID_HANDLE_VALUE {
        return Vec::new();
    }
    // SAFETY: the handle was just opened, and nothing else owns it.
    let snapshot = unsafe { OwnedHandle::from_raw_handle(snapshot) };
    let mut entry = PROCESSENTRY32W { dwSize: size_of::<PROCESSENTRY32W>() as u32, ..Default::default() };
    let mut all = Vec::new();
    // SAFETY: the snapshot is open, and the function writes one entry of the size that the entry states.
    let mut found = unsafe { Process32FirstW(snapshot.as_raw_handle(), &raw mut entry) } != 0;
    while found {
        // The first, with number 0, is the idle time of the CPUs.
        if entry.th32ProcessID != 0 {
            let name = entry.szExeFile.split(|&unit| unit == 0).next().unwrap_or_default();
            all.push((entry.th32ProcessID, String::from_utf16_lossy(name)));
        }
        // SAFETY: as above.
        found = unsafe { Process32NextW(snapshot.as_raw_handle(), &raw mut entry) } != 0;
    }
    all
}

fn cpu_units(id: u32) -> Option<u64> {
    // SAFETY: the function takes numbers.
    let process = unsafe { OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, 0, id) };
    if process.is_null() {
        return None;
    }
    // SAFETY: the handle was just opened, with the right that the call needs, and nothing else owns it.
    unsafe {
        let process = OwnedHandle::from_raw_handle(process);
        process_cpu_units(process.as_raw_handle())
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_busiest_names_come_first() {
        let times = |processes: &[(u32, &str, u64)]| ProcessTimes {
            taken: Instant::now(),
            processes: processes.iter().map(|(id, name, units)| (*id, ((*name).to_owned(), *units))).collect(),
        };
        let second = UNITS_IN_S as u64;
        let before = times(&[(4, "System", 1000), (8, "rustc.exe", 50), (12, "old.exe", 9 * second)]);
        let after = times(&[
            (4, "System", 1000),
            (8, "rustc.exe", 50 + second),
            (16, "rustc.exe", second),
            (20, "python.exe", second / 2),
            (12, "new.exe", second),
        ]);
        let named = after.busiest(&before, 4.0);
        let named: Vec<(&str, f64)> = named.iter().map(|process| (process.name.as_str(), process.cpu_percent)).collect();
        assert_eq!(named, [("rustc.exe", 50.0), ("new.exe", 25.0), ("python.exe", 12.5)]);
    }

    /// What the next test starts; without the variable it does nothing.
    #[test]
    fn spins_where_it_is_asked_to() {
        let began = Instant::now();
        while std::env::var_os("MEMGAUGE_TEST_SPIN").is_some() && began.elapsed() < Duration::from_secs(30) {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn a_child_that_spins_is_found_and_this_process_is_not() {
        let program = std::env::current_exe().unwrap();
        let mut again = Command::new(&program);
        again.args(["--exact", "processes::tests::spins_where_it_is_asked_to"]).env("MEMGAUGE_TEST_SPIN", "1");
        let mut child = again.stdout(std::process::Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(500));
        let before = ProcessTimes::read(Path::new("/"));
        std::thread::sleep(Duration::from_millis(700));
        let after = ProcessTimes::read(Path::new("/"));
        let (named, own) = (after.since(&before), std::process::id());
        let (seen, time) = (processes(), cpu_units(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!before.processes.contains_key(&own));
        assert!(seen.contains(&(child.id(), program.file_name().unwrap().to_string_lossy().into_owned())), "{seen:?}");
        assert!(time.is_some());
        if wine_version().is_some() {
            assert!(named.is_empty(), "{named:?}");
            return;
        }
        let found = named.iter().find(|process| *process.name == *program.file_name().unwrap()).map(|process| process.cpu_percent);
        assert!(found.is_some_and(|percent| (5.0..=150.0).contains(&percent)), "{named:?}");
    }
}
