//! Files that are checked in although a task writes them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Writes a file, or with `check` only compares the existing one. `task` is the task that writes it.
pub(crate) fn write_or_check(path: &Path, expected: &[u8], check: bool, task: &str) -> Result<()> {
    if check {
        return compare(path, expected, task);
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    fs::write(path, expected).with_context(|| format!("cannot write {}", path.display()))?;
    println!("wrote {}", path.display());
    Ok(())
}

fn compare(path: &Path, expected: &[u8], task: &str) -> Result<()> {
    let found = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    if found == expected {
        return Ok(());
    }
    let same = found.split(|b| *b == b'\n').zip(expected.split(|b| *b == b'\n')).take_while(|(a, b)| a == b).count();
    bail!("{} is not what it is made from, from line {} on: run 'cargo xtask {task}' and commit it", path.display(), same + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_differs_is_found() {
        let path = std::env::temp_dir().join(format!("memgauge-xtask-{}", std::process::id()));
        write_or_check(&path, b"one\ntwo\n", false, "schema").unwrap();
        write_or_check(&path, b"one\ntwo\n", true, "schema").unwrap();
        let message = write_or_check(&path, b"one\n2\n", true, "schema").unwrap_err().to_string();
        fs::remove_file(&path).unwrap();
        assert!(message.contains("from line 2 on: run 'cargo xtask schema'"), "{message}");
        assert!(write_or_check(&path, b"", true, "schema").unwrap_err().to_string().contains("cannot read"));
    }
}
