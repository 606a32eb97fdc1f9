//! Reading what somebody else may have made: neither a pipe nor a device holds the program up.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;

/// How often a pipe is tried that nobody has opened at its other end.
pub(super) const TRY_PIPE: Duration = Duration::from_millis(20);

/// Opens a regular file for reading. Links are followed. Nothing else is opened: opening a pipe waits for its writer, and opening a device may
/// change it.
///
/// # Errors
/// Those of opening, and for what is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let refused = || io::Error::other("it is not a regular file");
    if !fs::metadata(path)?.is_file() {
        return Err(refused());
    }
    // Something else may have taken the name since.
    let file = open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(refused()) }
}

/// Opens without waiting, and without making a terminal that of this process.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32).open(path)
}

/// The block in which files of the kernel are read: most of them are smaller.
const BLOCK: usize = 8 << 10;

/// Appends what a file has, at most `most` bytes, also where a later read fails. Files of `/proc` and `/sys` state no size or a wrong one, so
/// `Read::read_to_end` asks for it in vain, and takes five reads and a buffer of two pages for what this reads at once.
///
/// # Errors
/// Those of reading.
pub(crate) fn append(file: &mut File, most: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    let (mut block, mut left) = ([0; BLOCK], most);
    while left > 0 {
        let room = usize::try_from(left).map_or(BLOCK, |left| left.min(BLOCK));
        match file.read(&mut block[..room]) {
            Ok(0) => break,
            Ok(read) => {
                bytes.extend_from_slice(&block[..read]);
                left -= read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The text of a file of `/proc` or `/sys`.
///
/// # Errors
/// Those of opening and reading, and for what is not UTF-8.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    append(&mut File::open(path)?, u64::MAX, &mut bytes)?;
    String::from_utf8(bytes).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}

/// Reads a file to its end, or what a pipe or a device gives until then: `most` bytes, and not more. A pipe without a writer, or whose writer is
/// slow, is waited for until `gives_up`.
///
/// # Errors
/// Those of opening and reading, and `Interrupted` after it gave up.
pub fn read_to_end(path: &Path, most: u64, gives_up: &mut dyn FnMut() -> bool) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    let mut bytes = Vec::new();
    if file.metadata()?.is_file() {
        file.take(most).read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    let mut block = vec![0; 1 << 16];
    while (bytes.len() as u64) < most {
        if gives_up() {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "interrupted before all of it was read"));
        }
        // A pipe that nobody has opened for writing yet looks as if it were at its end, so it is not read before something happens to it.
        let limit = Timespec { tv_sec: 0, tv_nsec: TRY_PIPE.as_nanos() as _ };
        match poll(&mut [PollFd::new(&file, PollFlags::IN)], Some(&limit)) {
            Ok(0) | Err(Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let room = usize::try_from(most - bytes.len() as u64).unwrap_or(usize::MAX).min(block.len());
        match file.read(&mut block[..room]) {
            Ok(0) => break,
            Ok(read) => bytes.extend_from_slice(&block[..read]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    /// A folder with a pipe in it.
    fn pipe() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        (folder, path)
    }

    #[test]
    fn a_file_of_several_blocks_is_read_up_to_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let text: String = ('a'..='z').cycle().take(2 * BLOCK + 7).collect();
        fs::write(&path, &text).unwrap();
        assert_eq!(read_text(&path).unwrap(), text);
        for most in [0, 7, BLOCK, BLOCK + 7, 3 * BLOCK] {
            let mut bytes = b"before".to_vec();
            append(&mut File::open(&path).unwrap(), most as u64, &mut bytes).unwrap();
            assert_eq!(bytes, [b"before", &text.as_bytes()[..most.min(text.len())]].concat(), "{most}");
        }
        fs::write(&path, [0xff]).unwrap();
        assert_eq!(read_text(&path).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn neither_a_pipe_nor_a_device_is_opened_as_a_file() {
        let (temporary, path) = pipe();
        let folder = temporary.path();
        let link = folder.join("link");
        super::super::link_to("/dev/zero", &link).unwrap();
        for path in [path.as_path(), &link, folder] {
            assert_eq!(open_regular(path).unwrap_err().to_string(), "it is not a regular file", "{}", path.display());
        }
        assert!(super::super::open_private(&path).is_err(), "a lock is a file");
        assert_eq!(open_regular(&folder.join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_pipe_is_read_to_its_end_and_waited_for_until_a_signal() {
        let (_temporary, path) = pipe();
        let mut asked = 0;
        let mut third = || {
            asked += 1;
            asked == 3
        };
        assert_eq!(read_to_end(&path, 10, &mut third).unwrap_err().kind(), io::ErrorKind::Interrupted, "nobody writes");
        let writer = std::thread::spawn({
            let path = path.clone();
            move || fs::write(path, "0123456789").unwrap()
        });
        assert_eq!(read_to_end(&path, 100, &mut || false).unwrap(), b"0123456789");
        writer.join().unwrap();
        assert_eq!(read_to_end(Path::new("/dev/zero"), 7, &mut || false).unwrap(), [0; 7], "a device never ends");
    }
}
