//! Files and folders, with what all systems decide in the same way.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use memgauge_model::units::Bytes;

pub use crate::system::files::{
    copy_owner, folder_in_memory, foreign_owner, is_open_to_all, is_own, is_stream, link_to, names_open_file, numbering_of_processes,
    open_private, open_regular, open_to_all_advice, permissions, process_has_ended, read_locked, read_to_end, sync_folder, try_lock,
    write_to_stream,
};

/// Reads a regular file of at most `most` bytes. A file that somebody else has put there cannot cost more time or memory than that.
///
/// # Errors
/// Those of opening and reading, and for what is larger or not a regular file.
pub fn read_regular(path: &Path, most: Bytes) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let too_large =
        || io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {most}, the most that is read of such a file"));
    let size = file.metadata()?.len();
    if size > most.0 {
        return Err(too_large());
    }
    // It may grow meanwhile. Files of `/proc` and `/sys` do not say how large they are.
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size as usize).map_err(|_| io::ErrorKind::OutOfMemory)?;
    file.take(most.0 + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most.0 { Err(too_large()) } else { Ok(bytes) }
}

/// Why others could put something else in the place of files that are written in a folder, and what to do about it.
pub fn why_not_own(folder: &Path) -> Option<String> {
    if let Some(owner) = fs::canonicalize(folder).ok().and_then(|path| foreign_owner(&path)) {
        return Some(format!("the folder is another user's ({owner}); name one of your own"));
    }
    let open = is_open_to_all(folder);
    open.then(|| format!("everybody may write to the folder; {}", open_to_all_advice(folder)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_larger_than_it_may_be_is_refused_before_it_is_read() {
        let path = std::env::temp_dir().join(format!("memgauge-bounded-{}", std::process::id()));
        fs::write(&path, "0123456789").unwrap();
        assert_eq!(read_regular(&path, Bytes(10)).unwrap(), b"0123456789");
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_len(20 << 30).unwrap();
        let refused = read_regular(&path, Bytes::mib(1)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::FileTooLarge);
        assert!(refused.to_string().contains("larger than 1 MiB"), "{refused}");
        fs::remove_file(path).unwrap();
    }
}
