//! Which host this is.

use std::fs;
use std::io::Read;
use std::path::Path;

use crate::files::open_regular;

/// The most that is read of a file with a name or an ID. Hostnames have 64 characters at most.
const MAX_BYTES: u64 = 4096;

/// The host's name; `None` where it has none, or none can be read.
pub fn name(root: &Path) -> Option<String> {
    read(root, "proc/sys/kernel/hostname").map(|name| name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// The 32 hexadecimal digits of machine-id(5), which identify the installation; not to be published as they are. The caller checks their
/// form: a machine that was never started has a word there.
pub fn machine_id(root: &Path) -> Option<String> {
    read(root, "etc/machine-id").map(|id| id.trim().to_owned())
}

/// A random UUID of the kernel's.
pub fn random_uuid() -> Option<String> {
    let uuid = fs::read_to_string("/proc/sys/kernel/random/uuid").ok()?;
    Some(uuid.trim().to_owned()).filter(|uuid| uuid.len() == 36)
}

fn read(root: &Path, path: &str) -> Option<String> {
    let mut text = String::new();
    open_regular(&root.join(path)).ok()?.take(MAX_BYTES).read_to_string(&mut text).ok().map(|_| text)
}
