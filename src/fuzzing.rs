//! What `cargo xtask fuzz`, `torture` and `docs` call of this crate: its parsers, and the definition of its command line. The feature
//! `fuzz`, not in the released program.

use std::ffi::OsString;
use std::path::Path;

use clap::{CommandFactory, Parser};
use memgauge_analysis::conclusions::findings::Rules;
use memgauge_model::directory::{FileBacking, FileEvidence, MemoryDir};
use memgauge_model::units::Bytes;

use crate::cli::Cli;
use crate::mlc::{files, letters};

/// The command line, as the parser defines it.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Parses the arguments of memgauge.
pub fn arguments(words: &[OsString]) {
    let name = OsString::from("memgauge");
    let _ = Cli::try_parse_from(std::iter::once(&name).chain(words));
}

/// Parses the arguments of the drop-in.
pub fn letters(words: &[OsString]) {
    let _ = letters::parse(words);
}

fn in_memory(path: &Path) -> MemoryDir {
    let file = FileEvidence {
        path: path.display().to_string(),
        filesystem: "tmpfs".into(),
        device: None,
        device_node: None,
        backing: FileBacking::Tmpfs,
        map_sync: false,
        reason: None,
        volatile: None,
    };
    MemoryDir { file, free: None, block: Bytes(4096), persistent: None }
}

/// Reads text as each kind of file that the command line may name.
pub fn file(text: &str) {
    let _ = crate::cli::run::parse(text);
    let _ = toml::from_str::<Rules>(text);
    let _ = crate::contents::parse(text);
    let _ = files::delays(text);
    let _ = files::threads(text, Some(0), &|_| Err("no directory".into()));
    // Lines that name a directory, as if each were one in memory.
    let _ = files::threads(text, None, &|path| Ok(in_memory(path)));
}
