//! Facts in a program's file: the libraries that it needs, when it was linked, and the crates that it is made of.

use std::collections::BTreeSet;
use std::io::Read as _;

use anyhow::{Context, Result, bail};
use flate2::read::ZlibDecoder;
use object::read::elf::ProgramHeader as _;
use object::{File, LittleEndian as LE, Object as _, ObjectSection as _, elf};
use serde::Deserialize;

/// Libraries that are part of every Windows since version 10. Those whose names begin with `api-ms-win-` are names of others of these.
const SYSTEM: &[&str] = &[
    "advapi32.dll",
    "bcrypt.dll",
    "bcryptprimitives.dll",
    "kernel32.dll",
    "kernelbase.dll",
    "msvcrt.dll",
    "ntdll.dll",
    "pdh.dll",
    "powrprof.dll",
    "psapi.dll",
    "ucrtbase.dll",
    "userenv.dll",
    "winmm.dll",
    "ws2_32.dll",
];

/// The section with cargo-auditable's list of crates: JSON, compressed with zlib.
const CRATES: &str = ".dep-v0";
/// A list is some kilobytes.
const LONGEST: u64 = 16 << 20;

fn read(program: &[u8]) -> Result<File<'_>> {
    File::parse(program).context("it is no program")
}

/// Needs of a program that not every system of its kind meets: libraries on Windows, a dynamic linker on Linux.
///
/// # Errors
/// When it is not a 64-bit program for Windows or Linux.
pub(super) fn needed(program: &[u8]) -> Result<Vec<String>> {
    match read(program)? {
        File::Pe64(program) => {
            let mut names = Vec::new();
            if let Some(table) = program.import_table()? {
                let mut descriptors = table.descriptors()?;
                while let Some(descriptor) = descriptors.next()? {
                    names.push(table.name(descriptor.name.get(LE))?);
                }
            }
            // Those that are loaded when they are first called.
            if let Some(table) = program.data_directories().delay_load_import_table(program.data(), &program.section_table())? {
                let mut descriptors = table.descriptors()?;
                while let Some(descriptor) = descriptors.next()? {
                    names.push(table.name(descriptor.dll_name_rva.get(LE))?);
                }
            }
            Ok(foreign(names.into_iter().map(|name| String::from_utf8_lossy(name).to_ascii_lowercase())))
        }
        File::Elf64(program) => {
            let asks = program.elf_program_headers().iter().any(|header| header.p_type(program.endian()) == elf::PT_INTERP);
            Ok(asks.then(|| "a dynamic linker".to_owned()).into_iter().collect())
        }
        _ => bail!("it is not for 64 bits of Linux or Windows"),
    }
}

/// Libraries that are not part of Windows.
fn foreign(names: impl Iterator<Item = String>) -> Vec<String> {
    names.filter(|name| !name.starts_with("api-ms-win-") && !SYSTEM.contains(&name.as_str())).collect()
}

/// When a program for Windows says that it was linked, in seconds since 1970; 0 where it does not say.
///
/// # Errors
/// When it is none.
pub(super) fn linked_at(program: &[u8]) -> Result<u32> {
    let File::Pe64(program) = read(program)? else { bail!("it is no program for Windows") };
    Ok(program.nt_headers().file_header.time_date_stamp.get(LE))
}

#[derive(Deserialize)]
struct List {
    packages: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
    version: String,
}

/// The names and versions of the crates that a program says it is made of; `None` where it has no list.
///
/// # Errors
/// When it is not a program, or the list cannot be read.
pub(super) fn crates(program: &[u8]) -> Result<Option<BTreeSet<(String, String)>>> {
    match read(program)?.section_by_name(CRATES) {
        Some(section) => list(section.data()?).map(Some),
        None => Ok(None),
    }
}

fn list(packed: &[u8]) -> Result<BTreeSet<(String, String)>> {
    let mut text = Vec::new();
    ZlibDecoder::new(packed).take(LONGEST).read_to_end(&mut text).context("the list of crates cannot be unpacked")?;
    let list: List = serde_json::from_slice(&text).context("the list of crates is no JSON of cargo-auditable")?;
    Ok(list.packages.into_iter().map(|listed| (listed.name, listed.version)).collect())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;

    use super::*;

    #[test]
    fn a_program_with_a_dynamic_linker_is_known() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(needed(&own).unwrap().is_empty(), cfg!(target_feature = "crt-static"));
        assert_eq!(crates(&own).unwrap(), None, "it has no list");
        assert!(linked_at(&own).is_err() && needed(b"MZ").is_err() && needed(b"\x7fELF").is_err());
    }

    #[test]
    fn libraries_that_are_not_part_of_windows_are_named() {
        let names = ["kernel32.dll", "api-ms-win-core-synch-l1-2-0.dll", "libgcc_s_seh-1.dll", "libwinpthread-1.dll"];
        assert_eq!(foreign(names.map(str::to_owned).into_iter()), ["libgcc_s_seh-1.dll", "libwinpthread-1.dll"]);
    }

    #[test]
    fn the_list_of_crates_is_read() {
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
        packed.write_all(br#"{"packages":[{"name":"clap","version":"4.6.0","source":"crates.io","root":true}]}"#).unwrap();
        assert_eq!(list(&packed.finish().unwrap()).unwrap(), [("clap".to_owned(), "4.6.0".to_owned())].into());
        assert!(list(b"no list").is_err());
    }
}
