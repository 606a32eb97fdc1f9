//! The units in a booted Debian: its systemd starts the check by its timer, confines it, and it keeps its result where a disk is full.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::subject::Outcome::{NotChecked, Passed};
use super::subject::{Outcome, scratch};
use crate::programs::find_program;

/// The script that runs in it. It leaves its output and the result in /out.
const SCRIPT: &str = r#"# The timer starts the service: now, and not in the night.
mkdir -p /run/systemd/system/memgauge.timer.d /run/systemd/system/memgauge.service.d
printf '[Timer]\nOnActiveSec=1s\nRandomizedDelaySec=0\n' >/run/systemd/system/memgauge.timer.d/now.conf
systemctl daemon-reload
systemctl start memgauge.timer
waited=0
until [ "$(systemctl show memgauge.service -P ExecMainExitTimestampMonotonic)" -gt 0 ] || [ $waited -ge 240 ]; do
    sleep 1
    waited=$((waited + 1))
done
systemctl show memgauge.service -p TriggeredBy -p Result -p MemoryMax
systemctl stop memgauge.timer
cp /var/lib/memgauge/latest.json /out/result.json
# Whether systemd can limit memory here.
if [ -w /sys/fs/cgroup/memory ] || grep -qw memory /sys/fs/cgroup/cgroup.controllers 2>/dev/null; then echo "memory is limited"; fi
# Stopped half way, it has not failed.
systemctl start --no-block memgauge.service
sleep 3
systemctl stop memgauge.service
echo "stopped: $(systemctl show memgauge.service -P Result) $(systemctl show memgauge.service -P ExecMainStatus)"
# Its time is a setting.
printf '[Service]\nEnvironment=MEMGAUGE_WITHIN=20s\n' >/run/systemd/system/memgauge.service.d/within.conf
systemctl daemon-reload
systemctl start memgauge.service
cp /var/lib/memgauge/latest.json /out/within.json
rm /run/systemd/system/memgauge.service.d/within.conf
# It may write to no other folder.
printf '[Service]\nEnvironment="MEMGAUGE_OPTIONS=-o /usr/share/result.json"\n' >/run/systemd/system/memgauge.service.d/elsewhere.conf
systemctl daemon-reload
systemctl start memgauge.service
echo "elsewhere: $(systemctl show memgauge.service -P ExecMainStatus)"
rm /run/systemd/system/memgauge.service.d/elsewhere.conf
systemctl daemon-reload
# A full disk.
mount -t tmpfs -o size=64k,mode=755 none /var/lib/memgauge
head -c 100000 /dev/zero >/var/lib/memgauge/filler 2>/dev/null
systemctl start memgauge.service
echo "full: $(systemctl show memgauge.service -P ExecMainStatus)"
cp /dev/shm/memgauge-result-*.json /out/rescued.json
umount /var/lib/memgauge
journalctl -u memgauge.service --no-pager -o cat
systemctl poweroff
"#;
const UNIT: &str = "[Unit]\nAfter=multi-user.target\n[Service]\nType=oneshot\nExecStart=/bin/sh /out/check.sh\n\
                    StandardOutput=file:/out/log\nStandardError=file:/out/log\n";
/// The programs of systemd take seconds, each of four checks 45 s at most.
const LIMIT_S: u32 = 460;

/// Boots the Debian in `root`, which has memgauge installed, without keeping changes, and checks the files that its services left.
pub(super) fn services(root: &Path, mut say: impl FnMut(&str)) -> Result<Outcome> {
    if find_program("systemd-nspawn").is_none() {
        return Ok(NotChecked("the timer in a booted Debian: systemd-nspawn is not installed (systemd-container)".to_owned()));
    }
    let (system, out) = (root.join("etc/systemd/system"), scratch("booted")?);
    let (unit, wanted) = (system.join("memgauge-check.service"), system.join("multi-user.target.wants"));
    let wanted = wanted.join("memgauge-check.service");
    fs::create_dir_all(wanted.parent().unwrap_or(&system))?;
    fs::write(out.join("check.sh"), SCRIPT)?;
    fs::write(&unit, UNIT)?;
    symlink("../memgauge-check.service", &wanted)?;
    let mut boot = Command::new("timeout");
    boot.arg(LIMIT_S.to_string()).args([
        "systemd-nspawn",
        "--register=no",
        "--keep-unit",
        "--quiet",
        "--boot",
        "--console=pipe",
        "--volatile=overlay",
    ]);
    boot.arg(format!("--bind={}:/out", out.display())).arg("--directory").arg(root);
    // How it ends depends on what there is to be cleaned up; what counts is what it has written.
    let output = boot.stdin(Stdio::null()).output().context("cannot start systemd-nspawn")?;
    let log = fs::read_to_string(out.join("log")).unwrap_or_default();
    let read = |name: &str| -> Result<Value> {
        let text = fs::read(out.join(name)).with_context(|| format!("the service left no {name}: {log}"))?;
        serde_json::from_slice(&text).with_context(|| format!("{name} is no result"))
    };
    ensure!(!log.is_empty(), "Debian did not boot: {}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    say(&log);
    for line in ["TriggeredBy=memgauge.timer", "Result=success", "stopped: success 130", "elsewhere: 64", "full: 4"] {
        ensure!(log.lines().any(|said| said == line), "no line '{line}': {log}");
    }
    let (result, within, rescued) = (read("result.json")?, read("within.json")?, read("rescued.json")?);
    let given = |result: &Value| result["argv"].to_string();
    ensure!(given(&result).contains("45s") && given(&within).contains("20s"), "times: {} and {}", given(&result), given(&within));
    ensure!(result["health"].is_object() && rescued["health"].is_object(), "a result has no verdict");
    fs::remove_file(wanted)?;
    fs::remove_file(unit)?;
    if !log.lines().any(|line| line == "memory is limited") {
        return Ok(NotChecked("MemoryMax= of the service: systemd has no control of memory in a container here".to_owned()));
    }
    let limit = log.lines().find_map(|line| line.strip_prefix("MemoryMax=")?.parse::<u64>().ok()).context("no MemoryMax")?;
    let allowed = result["machine"]["allowed"]["memory"].as_u64().context("the result does not say how much memory is allowed")?;
    ensure!(allowed <= limit, "the check took {allowed} bytes for allowed, beyond MemoryMax={limit}");
    Ok(Passed)
}
