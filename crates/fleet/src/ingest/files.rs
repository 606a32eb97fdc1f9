//! Which files an ingest reads, and the reading of one.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use memgauge_model::encoding;
use memgauge_model::result::{Report, SCHEMA_VERSION};
use memgauge_model::units::Bytes;
use memgauge_os::files;
use memgauge_render::ReadError;
use serde::Deserialize;

use super::outcome::{SkipReason, Skipped};
use crate::store::{MANIFEST, content_id};

/// The largest result. A scan of 64 TiB in regions of 1 GiB takes a third of it, and all pairs of 1,024 CPUs a tenth.
pub(super) const MAX_RESULT: Bytes = Bytes::mib(256);

/// The files to read, and what could not be searched.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) found: Vec<PathBuf>,
    pub(super) skipped: Vec<Skipped>,
}

impl Files {
    /// A file itself; of a folder, all files below it that end in `.json`, in upper or lower case, by name. A fleet's folder below it is left out.
    pub(super) fn search(&mut self, path: &Path) {
        if path.is_dir() { self.folder(path) } else { self.found.push(path.to_owned()) }
    }

    /// Files that were found, and what could not be searched.
    pub(super) fn looked_at(&self) -> usize {
        self.found.len() + self.skipped.iter().filter(|skipped| skipped.reason.is_loss()).count()
    }

    fn folder(&mut self, folder: &Path) {
        let entries = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(error) => return self.skipped.push(skip(folder, SkipReason::Unreadable, error)),
        };
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            // A link to a folder may lead back to where it is.
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let is_json = || path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
            if is_folder && path.join(MANIFEST).exists() {
                self.skipped.push(skip(&path, SkipReason::FleetFolder, ""));
            } else if is_folder {
                self.folder(&path);
            } else if !path.is_dir() && is_json() && entry.file_name() != MANIFEST {
                self.found.push(path);
            }
        }
    }
}

pub(super) fn skip(file: &Path, reason: SkipReason, detail: impl ToString) -> Skipped {
    let detail = Some(detail.to_string()).filter(|detail| !detail.is_empty());
    Skipped { file: file.display().to_string(), reason, detail }
}

/// What a file turned out to be.
pub(super) enum Content {
    /// A run that the store does not have.
    New { report: Box<Report>, bytes: Vec<u8> },
    /// A run that it has.
    Known,
    /// Nothing that can be used.
    Unusable(Skipped),
}

/// The fields that every result has near its beginning.
#[derive(Deserialize)]
struct Head {
    schema_version: u64,
    run: HeadRun,
}

#[derive(Deserialize)]
struct HeadRun {
    id: String,
}

/// Reads a file, and parses no more of it than is needed to classify it. A result without a run ID gets one from its content.
pub(super) fn read(path: &Path, known: &HashSet<String>) -> Content {
    let unusable = |reason, detail: &dyn ToString| Content::Unusable(skip(path, reason, detail.to_string()));
    let bytes = match bytes_of(path) {
        Ok(bytes) => bytes,
        Err(skipped) => return Content::Unusable(skipped),
    };
    if bytes.trim_ascii().is_empty() {
        return unusable(SkipReason::Empty, &"");
    }
    let id_of = |id: &str| if id.is_empty() { format!("content-{}", content_id(&bytes)) } else { id.to_owned() };
    if !known.is_empty()
        && let Ok(head) = serde_json::from_slice::<Head>(&bytes)
        && head.schema_version == u64::from(SCHEMA_VERSION)
        && known.contains(&id_of(&head.run.id))
    {
        return Content::Known;
    }
    let mut report = match memgauge_render::read(&bytes) {
        Ok(report) => report,
        Err(ReadError::NotJson(error)) if error.is_eof() => return unusable(SkipReason::CutOff, &error),
        Err(ReadError::NotJson(error)) => return unusable(SkipReason::NotJson, &error),
        Err(ReadError::NoResult) => return unusable(SkipReason::NotAResult, &""),
        Err(ReadError::TooOld(version)) => return unusable(SkipReason::OldSchema, &version),
        Err(ReadError::TooNew(version)) => return unusable(SkipReason::NewSchema, &version),
        Err(ReadError::Damaged(error)) => return unusable(SkipReason::Damaged, &error),
    };
    if report.is_empty() {
        return unusable(SkipReason::NoResults, &"");
    }
    report.run.id = id_of(&report.run.id);
    Content::New { report: Box::new(report), bytes }
}

/// The size of a file, as far as it is known before it is read.
pub(super) fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len().min(MAX_RESULT.0))
}

fn bytes_of(path: &Path) -> Result<Vec<u8>, Skipped> {
    let unreadable = |error| skip(path, SkipReason::Unreadable, error);
    // Before it is opened: opening a pipe waits for its writer.
    let found = fs::metadata(path).map_err(unreadable)?;
    if !found.is_file() {
        return Err(skip(path, SkipReason::NotAFile, ""));
    }
    let bytes = files::read_regular(path, MAX_RESULT).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => skip(path, SkipReason::TooLarge, Bytes(found.len())),
        _ => unreadable(error),
    })?;
    encoding::as_utf8(bytes).map_err(|why| skip(path, SkipReason::NotJson, why))
}
