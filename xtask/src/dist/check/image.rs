//! Images: every blob has its checksum, and podman runs it without any privilege.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::subject::Outcome::Passed;
use super::subject::{Checked, Outcome, missing, scratch};
use crate::dist::tree::sha256;
use crate::programs::run;

pub(super) fn whole(checked: &Checked<'_>) -> Result<Outcome> {
    for path in checked.with_ending("-oci.tar") {
        let folder = scratch("image")?;
        run(Command::new("tar").arg("-xf").arg(&path).arg("-C").arg(&folder))?;
        let index: Value = serde_json::from_slice(&fs::read(folder.join("index.json"))?)?;
        let manifest = blob(&folder, &index["manifests"][0])?;
        let manifest: Value = serde_json::from_slice(&manifest)?;
        let config: Value = serde_json::from_slice(&blob(&folder, &manifest["config"])?)?;
        let layer = blob(&folder, &manifest["layers"][0])?;
        let mut unpacked = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&layer[..]), &mut unpacked)?;
        let stated = &config["rootfs"]["diff_ids"][0];
        ensure!(
            *stated == format!("sha256:{}", sha256(&unpacked)),
            "{}: the layer is not the one that the configuration names",
            path.display()
        );
    }
    Ok(Passed)
}

/// A blob, if its size and checksum are as described.
fn blob(folder: &Path, described: &Value) -> Result<Vec<u8>> {
    let digest =
        described["digest"].as_str().and_then(|digest| digest.strip_prefix("sha256:")).context("a description without a digest")?;
    let bytes = fs::read(folder.join("blobs/sha256").join(digest)).with_context(|| format!("no blob {digest}"))?;
    ensure!(sha256(&bytes) == digest && described["size"] == bytes.len(), "the blob {digest} is another one");
    Ok(bytes)
}

/// Runs the image of this machine's instruction set: no capability, a root that cannot be written, no network.
pub(super) fn runs(checked: &Checked<'_>) -> Result<Outcome> {
    if let Some(outcome) = missing(&["podman", "runc"]) {
        return Ok(outcome);
    }
    let folder = scratch("podman")?;
    let image = checked.out.join(format!("memgauge-{}-{}-oci.tar", checked.release.version, std::env::consts::ARCH));
    // Storage of its own, and what works inside a virtual machine or another container.
    let podman = |words: &[&str]| {
        let mut command = Command::new("podman");
        command.arg("--root").arg(folder.join("root")).arg("--runroot").arg(folder.join("run"));
        command.args(["--runtime", "runc", "--cgroup-manager", "cgroupfs", "--storage-driver", "vfs"]).args(words);
        command
    };
    let loaded = run(podman(&["load", "--quiet", "--input"]).arg(&image)).context("podman cannot load the image")?;
    let name = loaded.trim().rsplit(": ").next().unwrap_or_default().to_owned();
    let mut options = vec!["run", "--rm", "--network", "none", "--cap-drop", "all", "--read-only", "--security-opt", "no-new-privileges"];
    options.extend(["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", &name]);
    let call = |words: &[&str]| run(podman(&options).args(words));
    let version = call(&["--version"])?;
    let info = call(&["info"])?;
    let _ = run(&mut podman(&["rmi", "--all", "--force"]));
    ensure!(version.starts_with(&format!("memgauge {} (", checked.release.version)), "{version}");
    ensure!(info.contains("core"), "{info}");
    Ok(Passed)
}
