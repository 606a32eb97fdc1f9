//! Recorded machines, unpacked once for all tests.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Result;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use flate2::read::GzDecoder;

/// The files of a `.tar.gz`, below `folder`. They stay there for other tests, because unpacking ten thousand files and removing them takes
/// longer than reading them, so no test may change them. The folder's name holds a checksum of the archive.
///
/// # Errors
/// The archive cannot be read, or its files cannot be written.
pub fn unpacked(archive: &Path, folder: &Path) -> Result<PathBuf> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut checksum = DefaultHasher::new();
    fs::read(archive)?.hash(&mut checksum);
    let place = folder.join(format!("unpacked-{:016x}", checksum.finish()));
    if place.is_dir() {
        return Ok(place);
    }
    // Other threads and programs may unpack the same: it gets its name when it is whole.
    let own = folder.join(format!("unpacking-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    tar::Archive::new(GzDecoder::new(File::open(archive)?)).unpack(&own)?;
    if let Err(error) = fs::rename(&own, &place) {
        fs::remove_dir_all(&own)?;
        if !place.is_dir() {
            return Err(error);
        }
    }
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_unpacked_once_and_another_one_elsewhere() -> Result<()> {
        let folder = std::env::temp_dir().join(format!("memgauge-unpacked-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let pack = |text: &str| -> Result<PathBuf> {
            let archive = folder.join("machine.tar.gz");
            let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(File::create(&archive)?, flate2::Compression::fast()));
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, "machine/file", text.as_bytes())?;
            tar.into_inner()?.finish()?;
            Ok(archive)
        };
        let first = unpacked(&pack("first")?, &folder)?;
        assert_eq!(fs::read_to_string(first.join("machine/file"))?, "first");
        fs::write(first.join("machine/file"), "still there")?;
        assert_eq!(unpacked(&pack("first")?, &folder)?, first);
        assert_eq!(fs::read_to_string(first.join("machine/file"))?, "still there");
        let second = unpacked(&pack("second")?, &folder)?;
        assert_eq!(fs::read_to_string(second.join("machine/file"))?, "second");
        // The archive and what came out of both: nothing that is half unpacked.
        assert_eq!(fs::read_dir(&folder)?.count(), 3);
        fs::remove_dir_all(folder)
    }
}
