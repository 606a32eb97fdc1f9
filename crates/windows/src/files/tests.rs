use std::process::Command;

use super::*;

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("memgauge-files-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_lock_is_held_once_and_the_content_can_be_read_meanwhile() {
    let folder = folder("lock");
    let lock = folder.join("lock");
    let file = open_private(&lock).unwrap();
    file.seek_write(b"4711\n", 0).unwrap();
    assert!(try_lock(&file).unwrap());
    let other = open_private(&lock).unwrap();
    assert!(!try_lock(&other).unwrap());
    let mut text = [0; 16];
    assert_eq!(read_locked(&other, &mut text).unwrap(), 5);
    assert_eq!(&text[..5], b"4711\n");
    drop(file);
    assert!(try_lock(&other).unwrap());
    drop(other);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_private_file_stays_ours_and_can_be_opened_again() {
    let folder = folder("private");
    let path = folder.join("lock");
    fs::write(&path, "before").unwrap();
    drop(open_private(&path).unwrap());
    assert_eq!(fs::read(&path).unwrap(), b"before", "nothing is lost");
    assert!(is_own(&path) && !is_open_to_all(&folder));
    assert!(open_private(&folder).is_err(), "a folder");
    assert!(open_private(&folder.join("missing/lock")).is_err());
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn own_files_are_trusted_and_missing_ones_are_nobodys() {
    let folder = folder("owner");
    assert_eq!((foreign_owner(&folder), is_own(&folder)), (None, true));
    let missing = folder.join("missing");
    assert_eq!((foreign_owner(&missing), is_own(&missing), is_open_to_all(&missing)), (None, false, false));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn pipes_and_devices_are_streams_and_files_are_not() {
    let folder = folder("stream");
    let file = folder.join("file");
    fs::write(&file, "").unwrap();
    for stream in ["NUL", "con", r"\\.\pipe\memgauge", "//./PIPE/x", r"\\?\pipe\x", r"\\server\pipe\x", r"\\.\NUL"] {
        assert!(is_stream(Path::new(stream)), "{stream}");
    }
    for other in [&file, &folder, &folder.join("missing"), &folder.join("pipe")] {
        assert!(!is_stream(other), "{}", other.display());
    }
    assert!(!names_open_file(&file) && permissions(true).is_none() && folder_in_memory().is_none());
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_link_is_another_name_in_the_same_folder() {
    let folder = folder("link");
    fs::write(folder.join("result.json"), "{}").unwrap();
    let latest = folder.join("latest.json");
    link_to("result.json", &latest).unwrap();
    assert_eq!(fs::read(&latest).unwrap(), b"{}");
    assert_eq!(link_to("result.json", &latest).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert!(link_to("missing.json", &folder.join("other.json")).is_err());
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_new_file_takes_over_and_keeps_its_content() {
    let folder = folder("hand-on");
    let (old, new) = (folder.join("old"), folder.join("new"));
    drop(open_private(&old).unwrap());
    fs::write(&new, "new").unwrap();
    let file = OpenOptions::new().write(true).open(&new).unwrap();
    copy_owner(&old, &fs::metadata(&old).unwrap(), &file).unwrap();
    copy_owner(&folder.join("missing"), &fs::metadata(&old).unwrap(), &file).unwrap();
    drop(file);
    assert_eq!(fs::read(&new).unwrap(), b"new");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn ended_processes_are_told_from_those_that_run() {
    assert_eq!(process_has_ended(std::process::id()), Some(false));
    let mut child = Command::new("cmd").args(["/c", "exit 0"]).spawn().unwrap();
    let id = child.id();
    child.wait().unwrap();
    assert_eq!(process_has_ended(id), Some(true), "its handle is still open");
    drop(child);
    assert_eq!(process_has_ended(id), Some(true));
    assert_eq!(process_has_ended(0x7fff_fff0), Some(true), "never was one");
}
