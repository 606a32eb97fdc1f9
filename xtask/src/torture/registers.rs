//! SIGKILL while prefetchers are off: the process that outlives a run, or the next run, puts the registers back.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use memgauge_model::units::IdSet;

use super::bench::{Bench, Dice, LONGEST, Outcome, wait};
use crate::folders::target_folder;

/// Where the register is in a device's file, which is as long.
const REGISTER: usize = 0x1A4;
/// Runs that switch, some for their time and some until they are told otherwise.
const LINES: [&str; 4] = [
    "latency --prefetch off --size 1M --time 50ms -q",
    "bandwidth --prefetch off --mix all-reads --size 1M --time 50ms -q",
    "prefetch off -q",
    "prefetch compare --size 1M --within 2s -q",
];
/// The longest that a run goes on before it is killed.
const LATEST_MS: u64 = 400;

/// A run with files in place of the registers, killed at a random moment, and what `prefetch restore` makes of it.
pub(super) fn killed(bench: &Bench, dice: &mut Dice) -> Result<(String, Outcome)> {
    // Not in /dev/shm: nothing below /dev is taken in place of registers.
    let folder = target_folder().join(format!("torture-registers-{}", std::process::id()));
    let devices = devices(&folder)?;
    let before = values(&devices)?;
    wait(&mut with(bench, &folder, "prefetch off -q").spawn()?, LONGEST)?;
    let can_switch = values(&devices)? != before;
    wait(&mut with(bench, &folder, "prefetch restore -q").spawn()?, LONGEST)?;
    if !can_switch {
        fs::remove_dir_all(&folder)?;
        return Ok(("prefetch off".to_owned(), Outcome::NotTried("files in place of registers cannot be switched".to_owned())));
    }
    let line = *dice.pick(&LINES);
    let after = Duration::from_micros(dice.next() % (LATEST_MS * 1000));
    let mut child = with(bench, &folder, line).spawn()?;
    std::thread::sleep(after);
    child.kill()?;
    wait(&mut child, LONGEST)?;
    let restored = wait(&mut with(bench, &folder, "prefetch restore -q").spawn()?, LONGEST)?;
    let now = values(&devices)?;
    fs::remove_dir_all(&folder)?;
    let outcome = match restored {
        None => Outcome::Failed("prefetch restore does not end".to_owned()),
        Some(output) if !output.status.success() => {
            Outcome::Failed(format!("prefetch restore: {}", String::from_utf8_lossy(&output.stderr).trim()))
        }
        Some(_) if now != before => Outcome::Failed(format!("registers were {before:x?} and are {now:x?}")),
        Some(_) => Outcome::Passed,
    };
    bench.tidy()?;
    Ok((format!("{line}, killed after {after:?}"), outcome))
}

fn with(bench: &Bench, folder: &Path, line: &str) -> Command {
    let mut command = bench.command(&line.split_whitespace().collect::<Vec<_>>());
    command.env("MEMGAUGE_MSR_ROOT", folder.join("cpu")).env("MEMGAUGE_RUNTIME_DIR", folder.join("run"));
    command.env("MEMGAUGE_PREFETCH_AS", "GenuineIntel,6,85");
    command
}

/// A file for each CPU, whose registers all differ.
fn devices(folder: &Path) -> Result<Vec<PathBuf>> {
    let online: IdSet = fs::read_to_string("/sys/devices/system/cpu/online")?.trim().parse().ok().context("the list of CPUs")?;
    online
        .iter()
        .map(|cpu| {
            let device = folder.join(format!("cpu/{cpu}/msr"));
            fs::create_dir_all(device.parent().context("a folder")?)?;
            let mut content = vec![0; REGISTER + 8];
            content[REGISTER] = (cpu % 2) as u8;
            fs::write(&device, content)?;
            Ok(device)
        })
        .collect()
}

fn values(devices: &[PathBuf]) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    devices.iter().map(|device| Ok((device.clone(), fs::read(device)?.split_off(REGISTER)))).collect()
}
