//! The list of a store's batches: the one file whose replacement commits a change.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use memgauge_model::units::Bytes;
use memgauge_os::files;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::StoreError;

/// The manifest's name in a fleet's folder.
pub(crate) const MANIFEST: &str = "memgauge-fleet.json";
/// How files end until they take their names.
pub(crate) const PENDING: &str = "tmp";
const FORMAT: &str = "memgauge-fleet";
/// Raised when a program that knows only the version before could not read the store.
const VERSION: u32 = 1;
/// The largest manifest. A fleet of a hundred kinds of hardware takes half of it after 500 batches that are too large to be merged.
const MAX_MANIFEST: Bytes = Bytes::mib(16);

/// The batches that count. A file of a store that is in none of them is left over from an ingest that was killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    format: String,
    version: u32,
    /// The number of the next batch.
    pub(crate) next: u32,
    pub(crate) batches: Vec<Batch>,
}

/// Runs that were committed together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Batch {
    pub(crate) number: u32,
    pub(crate) runs: u64,
    pub(crate) rows: u64,
    /// Its files; the first is its list of runs.
    pub(crate) files: Vec<BatchFile>,
}

/// A file of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BatchFile {
    /// Relative to the fleet's folder.
    pub(crate) name: String,
    /// The SHA-256 of its content. Parquet's own checks do not find every flipped bit, and its reader trusts what it reads.
    pub(crate) sha256: String,
    /// Its size: nobody reads more of it to compute the checksum. Older programs did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<u64>,
}

impl Manifest {
    pub(crate) fn new() -> Self {
        Self { format: FORMAT.into(), version: VERSION, next: 1, batches: Vec::new() }
    }

    /// Reads the manifest of a folder. `None` if there is none.
    pub(crate) fn read(folder: &Path) -> Result<Option<Self>, StoreError> {
        let path = folder.join(MANIFEST);
        let bytes = match files::read_regular(&path, MAX_MANIFEST) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::io("cannot be read", path)(error)),
        };
        let damaged = |detail: String| StoreError::Damaged { path: path.clone(), detail };
        let manifest: Self = serde_json::from_slice(&bytes).map_err(|e| damaged(e.to_string()))?;
        if manifest.format != FORMAT {
            return Err(damaged("it is not a list of a fleet's batches".into()));
        }
        if manifest.version != VERSION {
            return Err(StoreError::OtherVersion { folder: folder.to_owned(), found: manifest.version, read: VERSION });
        }
        // Somebody may have edited it: no file of it may be outside the folder.
        let outside = |file: &&BatchFile| Path::new(file.name.as_str()).components().any(|c| !matches!(c, std::path::Component::Normal(_)));
        if let Some(file) = manifest.batches.iter().flat_map(|b| &b.files).find(outside) {
            return Err(damaged(format!("it names {:?}, which is not in the fleet's folder", file.name)));
        }
        Ok(Some(manifest))
    }

    /// Replaces the manifest of a folder: after this, the batches in it count and no others do. It outlasts a power cut.
    pub(crate) fn commit(&self, folder: &Path) -> Result<(), StoreError> {
        let (path, pending) = (folder.join(MANIFEST), pending(&folder.join(MANIFEST)));
        let failed = |error| StoreError::io("cannot be written", path.clone())(error);
        let mut bytes = serde_json::to_vec_pretty(self).map_err(|e| failed(e.into()))?;
        bytes.push(b'\n');
        let mut file = create_anew(&pending).map_err(failed)?;
        file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(failed)?;
        fs::rename(&pending, &path).and_then(|()| sync_folder(folder)).map_err(failed)
    }
}

/// The name that a file has until it is committed. It does not end in `.parquet`, so that no reader takes it for data.
pub(crate) fn pending(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(PENDING);
    name.into()
}

/// Makes a new file and removes an old one of that name: a killed ingest has left it, or somebody has put a link or a pipe there. The link is
/// not followed, and the pipe is not waited for.
pub(crate) fn create_anew(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => File::create_new(path),
    }
}

/// The SHA-256 of what a file holds.
pub(crate) fn checksum(mut file: impl Read) -> io::Result<String> {
    let (mut hash, mut block) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut block) {
            Ok(0) => return Ok(hexadecimal(&hash.finalize())),
            Ok(read) => hash.update(&block[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Sixteen digits of the hash of a text: the name of what has none of its own, or none that a file may have.
pub(crate) fn content_id(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes)[..8])
}

/// Makes the names in a folder outlast a power cut.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    files::sync_folder(folder)
}
