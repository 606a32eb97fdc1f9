//! An image of the Open Container Initiative as an archive of its layout: one layer with the static program, on nothing.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::archive::{FAST, gzip, tar};
use super::contents::{IN_IMAGE, Sources};
use super::release::Release;
use super::target::Names;
use super::tree::{Tree, sha256};

/// Neither root nor any other user that a machine knows; who needs more says so (`podman run --user 0`).
const USER: &str = "65534:65534";

/// An image as a file for `podman load`, `docker load` and `skopeo copy oci-archive:`. Docker reads `manifest.json` where it does not keep images in
/// containerd, and then no layout.
///
/// # Errors
/// When a part of it cannot be made.
pub(super) fn image(release: &Release, names: &Names, sources: &Sources<'_>) -> Result<Vec<u8>> {
    let created = release.time("%Y-%m-%dT%H:%M:%SZ")?;
    let layer = tar(&sources.image(), release.epoch)?;
    let mut blobs = Blobs(Tree::default());
    let config = json!({
        "created": created,
        "architecture": names.oci,
        "os": "linux",
        "config": {
            "User": USER,
            "Env": ["PATH=/usr/bin"],
            "Entrypoint": [format!("/{IN_IMAGE}")],
            "WorkingDir": "/",
            "Labels": {
                "org.opencontainers.image.title": "memgauge",
                "org.opencontainers.image.version": release.version,
                "org.opencontainers.image.licenses": "Apache-2.0 OR MIT",
                "org.opencontainers.image.created": created,
            },
        },
        "rootfs": { "type": "layers", "diff_ids": [digest(&layer)] },
        "history": [{ "created": created, "created_by": "cargo xtask dist" }],
    });
    let config = blobs.add("application/vnd.oci.image.config.v1+json", serde_json::to_vec(&config)?);
    let layer = blobs.add("application/vnd.oci.image.layer.v1.tar+gzip", gzip(&layer, FAST)?);
    let name = format!("memgauge:{}", release.version);
    let for_docker = json!([{ "Config": path(&config)?, "RepoTags": [name], "Layers": [path(&layer)?] }]);
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config,
        "layers": [layer],
    });
    let mut described = blobs.add("application/vnd.oci.image.manifest.v1+json", serde_json::to_vec(&manifest)?);
    described["platform"] = json!({ "architecture": names.oci, "os": "linux" });
    described["annotations"] = json!({ "org.opencontainers.image.ref.name": name });
    let index = json!({ "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [described] });
    let mut layout = blobs.0;
    layout.file("index.json", serde_json::to_vec(&index)?);
    layout.file("manifest.json", serde_json::to_vec(&for_docker)?);
    layout.file("oci-layout", serde_json::to_vec(&json!({ "imageLayoutVersion": "1.0.0" }))?);
    // Its large parts are compressed already.
    tar(&layout, release.epoch)
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256(bytes))
}

/// Where a blob that was described is in the archive.
fn path(described: &Value) -> Result<String> {
    let digest = described["digest"].as_str().context("a blob without a digest")?;
    Ok(format!("blobs/{}", digest.replace(':', "/")))
}

/// The blobs of an image, each under its checksum.
struct Blobs(Tree);

impl Blobs {
    /// Adds a blob, and describes it.
    fn add(&mut self, kind: &str, bytes: Vec<u8>) -> Value {
        let described = json!({ "mediaType": kind, "digest": digest(&bytes), "size": bytes.len() });
        self.0.file(format!("blobs/sha256/{}", sha256(&bytes)), bytes);
        described
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folders::project_folder;

    #[test]
    fn all_images_have_the_program_where_the_daemonset_calls_it() {
        let read = |file: &str| std::fs::read_to_string(project_folder().join("integrations").join(file)).unwrap();
        let (containerfile, daemonset) = (read("container/Containerfile"), read("kubernetes/daemonset.yaml"));
        assert!(containerfile.contains(&format!("COPY memgauge /{IN_IMAGE}\n")), "{containerfile}");
        assert!(containerfile.contains(&format!("ENTRYPOINT [\"/{IN_IMAGE}\"]\n")), "{containerfile}");
        assert!(daemonset.contains(&format!("args: [\"/{IN_IMAGE}\", ")), "{daemonset}");
    }
}
