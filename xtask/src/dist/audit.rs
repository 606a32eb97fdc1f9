//! The list of crates that cargo-auditable leaves in a program: JSON, compressed as zlib does, in a section of its own.

use std::collections::BTreeSet;
use std::io::Read as _;

use anyhow::{Context, Result, ensure};
use flate2::read::ZlibDecoder;
use serde::Deserialize;

use super::pe;
use super::target::is_windows;

const SECTION: &str = ".dep-v0";
/// A list is some kilobytes.
const LONGEST: u64 = 16 << 20;

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
/// When it is no program, or the list cannot be read.
pub(super) fn crates(program: &[u8], triple: &str) -> Result<Option<BTreeSet<(String, String)>>> {
    let section = if is_windows(triple) { pe::Program::read(program)?.section(SECTION)? } else { elf_section(program, SECTION)? };
    let Some(section) = section else { return Ok(None) };
    let mut text = Vec::new();
    ZlibDecoder::new(section).take(LONGEST).read_to_end(&mut text).context("the list of crates cannot be unpacked")?;
    let list: List = serde_json::from_slice(&text).context("the list of crates is no JSON of cargo-auditable")?;
    Ok(Some(list.packages.into_iter().map(|listed| (listed.name, listed.version)).collect()))
}

/// A section of an ELF file of 64 bits, least significant byte first.
fn elf_section<'a>(elf: &'a [u8], name: &str) -> Result<Option<&'a [u8]>> {
    ensure!(elf.starts_with(b"\x7fELF\x02\x01"), "it is no program of 64 bits");
    let number = |at: usize, size: usize| -> Result<usize> {
        let bytes = elf.get(at..at.saturating_add(size)).with_context(|| format!("it ends before byte {at}"))?;
        Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    };
    let (table, size, count, names) = (number(40, 8)?, number(58, 2)?, number(60, 2)?, number(62, 2)?);
    // No table leads out of the file: then `number` fails, or the section is not there.
    let header = |index: usize| table.saturating_add(index * size);
    let content = |index: usize| -> Result<&[u8]> {
        let (from, bytes) = (number(header(index).saturating_add(24), 8)?, number(header(index).saturating_add(32), 8)?);
        elf.get(from..from.saturating_add(bytes)).context("a section is not in the file")
    };
    if count == 0 {
        return Ok(None);
    }
    let names = content(names)?;
    for index in 0..count {
        let named = names.get(number(header(index), 4)?..).unwrap_or_default();
        if named.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0)) {
            return content(index).map(Some);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;

    use super::*;

    /// A program with two sections: the names, and one of this name.
    fn program(name: &str, content: &[u8]) -> Vec<u8> {
        let names = format!("\0{name}\0");
        let mut elf = vec![0; 64];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        let (names_at, content_at) = (64, 64 + names.len());
        let table = content_at + content.len();
        elf.extend(names.as_bytes());
        elf.extend(content);
        let mut put = |at: usize, value: usize| elf[at..at + 2].copy_from_slice(&(value as u16).to_le_bytes());
        [(40, table), (58, 64), (60, 2), (62, 0)].iter().for_each(|(at, value)| put(*at, *value));
        for (name_at, at, size) in [(0_u32, names_at, names.len()), (1, content_at, content.len())] {
            let mut header = vec![0; 64];
            header[..4].copy_from_slice(&name_at.to_le_bytes());
            header[24..32].copy_from_slice(&(at as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(size as u64).to_le_bytes());
            elf.extend(header);
        }
        elf
    }

    fn list() -> Vec<u8> {
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
        packed.write_all(br#"{"packages":[{"name":"clap","version":"4.6.0","source":"crates.io","root":true}]}"#).unwrap();
        packed.finish().unwrap()
    }

    #[test]
    fn the_list_is_read_where_there_is_one() {
        const TRIPLE: &str = "x86_64-unknown-linux-musl";
        let listed = crates(&program(SECTION, &list()), TRIPLE).unwrap().unwrap();
        assert_eq!(listed, [("clap".to_owned(), "4.6.0".to_owned())].into());
        // A name alone is no list.
        assert_eq!(crates(&program(".dep-v0-not", &list()), TRIPLE).unwrap(), None);
        assert_eq!(crates(&program(".text", b".dep-v0\0"), TRIPLE).unwrap(), None);
        assert!(crates(&program(SECTION, b"no list"), TRIPLE).is_err());
        let whole = program(SECTION, &list());
        // The last fields of the last header are not read.
        assert!((0..whole.len() - 24).all(|end| crates(&whole[..end], TRIPLE).is_err()), "a program that is cut off");
    }
}
