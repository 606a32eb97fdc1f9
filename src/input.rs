//! Files that are read: results, TOML, and the files of mlc's options. Each has a limit, so that a device or a wrong file ends in a message
//! and not in all of the memory. All may be in any [encoding] that Windows gives texts.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use memgauge_model::encoding;
use memgauge_model::units::Bytes;
use memgauge_os::files;
use serde::de::DeserializeOwned;

use crate::exit::UsageError;
use crate::signals;

/// The largest result. A scan of 64 TiB in regions of 1 GiB takes a third of it, and all pairs of 1,024 CPUs a tenth.
const MAX_RESULT: Bytes = Bytes::mib(256);
/// The largest file that somebody writes by hand. A line for each of 8,192 CPUs takes half of it.
const MAX_TEXT: Bytes = Bytes::mib(1);

/// Reads a saved result; `-` is standard input.
///
/// # Errors
/// When it cannot be read, is too large, or is certainly not text.
pub(crate) fn read_result(path: &Path) -> Result<Vec<u8>, UsageError> {
    if path == Path::new("-") {
        return read(path, io::stdin().lock(), MAX_RESULT);
    }
    read_path(path, MAX_RESULT)
}

/// The files of results that arguments name: a folder stands for the JSON files in it, by name.
///
/// # Errors
/// When a folder cannot be read, or has no such file.
pub(crate) fn result_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, UsageError> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.append(&mut results_in(path)?);
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

fn results_in(folder: &Path) -> Result<Vec<PathBuf>, UsageError> {
    let entries = fs::read_dir(folder).map_err(|e| UsageError::file(folder, format_args!("cannot be read: {e}")))?;
    // As files are written: the case of an ending does not matter.
    let is_result = |path: &PathBuf| path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_result).collect();
    files.sort();
    if files.is_empty() {
        return Err(UsageError::file(folder, "holds no file that ends in .json"));
    }
    // Only what the user names may be a pipe.
    if let Some(other) = files.iter().find(|path| fs::metadata(path).is_ok_and(|found| !found.is_file())) {
        return Err(UsageError::file(other, "is not a regular file; remove it from the folder, or name the results"));
    }
    Ok(files)
}

/// Reads a text that somebody wrote by hand.
///
/// # Errors
/// When it cannot be read, is too large, or is not UTF-8.
pub(crate) fn read_text(path: &Path) -> Result<String, UsageError> {
    String::from_utf8(read_path(path, MAX_TEXT)?).map_err(|_| UsageError::file(path, "is not text in UTF-8"))
}

/// Reads a file, or a pipe until its end or a signal.
fn read_path(path: &Path, limit: Bytes) -> Result<Vec<u8>, UsageError> {
    bounded(path, limit, files::read_to_end(path, limit.0 + 1, &mut signals::have_arrived))
}

fn read(path: &Path, from: impl Read, limit: Bytes) -> Result<Vec<u8>, UsageError> {
    let mut bytes = Vec::new();
    bounded(path, limit, from.take(limit.0 + 1).read_to_end(&mut bytes).map(|_| bytes))
}

fn bounded(path: &Path, limit: Bytes, read: io::Result<Vec<u8>>) -> Result<Vec<u8>, UsageError> {
    let bytes = read.map_err(|e| UsageError::file(path, format_args!("cannot be read: {e}")))?;
    if bytes.len() as u64 > limit.0 {
        return Err(UsageError::file(path, format_args!("is larger than {limit}, the most that is read of such a file")));
    }
    encoding::as_utf8(bytes).map_err(|why| UsageError::file(path, why))
}

/// Parses TOML. The message names the line and does not repeat it: it may have any length.
///
/// # Errors
/// Where the text is wrong, and why.
pub(crate) fn parse_toml<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|error| match error.span().and_then(|span| text.get(..span.start)) {
        Some(before) => format!("line {}: {}", before.matches('\n').count() + 1, error.message()),
        None => error.message().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_is_refused() {
        let read = |length: usize| read(Path::new("a.toml"), io::repeat(b'x').take(length as u64), Bytes(100));
        assert_eq!(read(100).unwrap().len(), 100);
        assert!(read(101).unwrap_err().0.starts_with("a.toml: is larger than 100 B"));
    }

    #[test]
    fn files_from_windows_are_read_and_packed_ones_named() {
        let read = |bytes: &[u8]| read(Path::new("a.toml"), bytes, Bytes(100));
        assert_eq!(read(b"\xEF\xBB\xBFa = 1").unwrap(), b"a = 1");
        assert_eq!(read(b"\xFF\xFEa\x00=\x001\x00").unwrap(), b"a=1");
        assert_eq!(read(b"\x1F\x8B\x08").unwrap_err().0, "a.toml: is compressed (gzip); unpack it first (gunzip)");
    }

    #[test]
    fn a_folder_stands_for_its_json_files_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        assert!(result_files(&[folder.path().into()]).unwrap_err().0.contains("holds no file that ends in .json"));
        for name in ["b.json", "a.json", "C.JSON", "notes.txt"] {
            fs::write(at(name), "").unwrap();
        }
        let (own, stdin) = (PathBuf::from("own.json"), PathBuf::from("-"));
        let files = result_files(&[own.clone(), folder.path().into(), stdin.clone()]).unwrap();
        assert_eq!(files, [own, at("C.JSON"), at("a.json"), at("b.json"), stdin]);
        fs::create_dir(at("d.json")).unwrap();
        assert!(result_files(&[folder.path().into()]).unwrap_err().0.contains("d.json: is not a regular file"));
    }

    #[test]
    fn mistakes_in_toml_are_named_by_line() {
        let wrong = parse_toml::<toml::Table>("a = 1\n\nb = = 2\n").unwrap_err();
        assert!(wrong.starts_with("line 3: ") && !wrong.contains("= 2"), "{wrong}");
        let long = parse_toml::<toml::Table>(&format!("a = {}", "x".repeat(100_000))).unwrap_err();
        assert!(long.len() < 200, "{long}");
    }
}
