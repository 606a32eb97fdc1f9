//! Control groups of version 1, as systems before 2020 have them: every command within the limit of a memory controller of its own hierarchy.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use memgauge_model::units::Bytes;

use super::limits::{self, Version};
use crate::guest;
use crate::job::{Job, Machine, PLAIN, tests};
use crate::program::memgauge;

pub(crate) const JOB: Job = Job {
    name: "limits-v1",
    about: "memory.limit_in_bytes of version 1 of 64 MiB for every command",
    optional: false,
    machine: Machine { qemu: limits::QEMU, ..PLAIN },
    tests: tests![version_1_takes_the_place_of_version_2, the_limit_is_named, every_command_in_64_mib],
};

const HIERARCHY: &str = "/sys/fs/cgroup/memory";

const VERSION_1: Version = Version { make: group, kills: ("memory.oom_control", "\noom_kill 0") };

fn group(name: &str, limit: Bytes) -> Result<PathBuf> {
    let group = Path::new(HIERARCHY).join(name);
    fs::create_dir_all(&group)?;
    guest::write(group.join("memory.limit_in_bytes"), &limit.0.to_string())?;
    Ok(group)
}

/// As such systems are set up: a folder in memory with a folder for each controller.
fn version_1_takes_the_place_of_version_2() -> Result<()> {
    guest::unmount("/sys/fs/cgroup")?;
    guest::mount("tmpfs", "/sys/fs/cgroup", "tmpfs", "")?;
    guest::mount("cgroup", HIERARCHY, "cgroup", "memory")?;
    ensure!(!guest::read("/proc/mounts")?.contains("cgroup2"), "version 2 is still mounted");
    Ok(())
}

fn the_limit_is_named() -> Result<()> {
    let group = group("limits", Bytes::mib(64))?;
    let words = ["96 MiB", "memory.limit_in_bytes of control group /limits"];
    for line in ["latency --cpu 0 --node 0 --size 96M", "stream 96M"] {
        memgauge(line).in_group(&group).run()?.refused(4, &words)?;
    }
    Ok(fs::remove_dir(&group)?)
}

fn every_command_in_64_mib() -> Result<()> {
    limits::every_command_in(Bytes::mib(64), VERSION_1)
}
