//! Folders of the workspace.

use std::path::{Path, PathBuf};

/// The workspace's folder.
pub(crate) fn project_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("")
}

/// Where cargo builds.
pub(crate) fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| project_folder().join("target"), |folder| project_folder().join(folder))
}
