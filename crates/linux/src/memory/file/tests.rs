//! Files in `/dev/shm` (tmpfs), and next to the program of this test if that is on a disk.

use std::fs;
use std::path::PathBuf;

use memgauge_model::experiment::PageRequest;

use super::*;
use memgauge_model::memory::MemoryErrorKind;
use memgauge_testing::not_tested;

use crate::memory::allocate::tests as memory;

/// A folder that is removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(below: &Path, name: &str) -> Self {
        let folder = Self(below.join(format!("memgauge-file-{name}-{}", std::process::id())));
        fs::create_dir_all(&folder.0).unwrap();
        folder
    }

    fn shm(name: &str) -> Self {
        Self::new(Path::new("/dev/shm"), name)
    }

    /// A folder on the disk that this test was built on; `None` when that is not a disk.
    fn on_disk(name: &str) -> Option<Self> {
        let folder = Self::new(std::env::current_exe().unwrap().parent()?, name);
        let found = directory::read(&folder.0, Path::new("/")).unwrap();
        (found.file.backing == FileBacking::PageCache).then_some(folder)
    }

    fn plan(&self, bytes: Bytes) -> BufferPlan {
        BufferPlan { directory: Some(self.0.to_str().unwrap().to_owned()), ..memory::plan(bytes, PageRequest::Auto) }
    }

    fn is_empty(&self) -> bool {
        fs::read_dir(&self.0).unwrap().next().is_none()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

fn buffer(plan: &BufferPlan) -> Result<Buffer, MemoryError> {
    Buffer::allocate_under(plan, Path::new("/"), &Policy::new(), &|| false)
}

/// Bytes of the mapping that starts here, and whether it is shared with a file, from `/proc/self/maps`.
fn mapped(at: *const u8) -> (u64, String) {
    let text = fs::read_to_string("/proc/self/maps").unwrap();
    let line = text.lines().find(|l| l.starts_with(&format!("{:x}-", at as usize))).unwrap();
    let mut words = line.split_ascii_whitespace();
    let (low, high) = words.next().unwrap().split_once('-').unwrap();
    let bytes = u64::from_str_radix(high, 16).unwrap() - u64::from_str_radix(low, 16).unwrap();
    (bytes, words.next().unwrap().to_owned())
}

fn check(folder: &Folder, backing: FileBacking) {
    let bytes = Bytes::mib(9);
    let buffer = buffer(&folder.plan(bytes)).unwrap();
    assert!(folder.is_empty(), "the file has no name");
    let file = buffer.file().unwrap();
    assert_eq!((file.backing, file.map_sync), (backing, false));
    assert_eq!(file.path, folder.0.to_str().unwrap());
    assert_eq!(mapped(buffer.as_ptr()), (bytes.0, "rw-s".to_owned()));
    assert_eq!(buffer.mapping.len() as u64, bytes.0);
    let pages = buffer.pages();
    assert_eq!(pages.obtained, Some(PageKind::File), "{pages:?}");
    assert!(pages.share.is_some_and(|s| s > 0.5 && s <= 1.0) && pages.page.is_some(), "{pages:?}");
    for placement in [buffer.placement(), &buffer.placement_now()] {
        assert_eq!(placement.status, PlacementStatus::Verified, "{placement:?}");
        assert_eq!(
            placement.method,
            Some(if backing == FileBacking::Tmpfs { PlacementMethod::Mbind } else { PlacementMethod::FirstTouch })
        );
    }
    // SAFETY: the bytes are inside the test's own buffer.
    let all = unsafe { std::slice::from_raw_parts_mut(buffer.as_ptr(), buffer.len()) };
    assert!(all.chunks(4096).all(|page| page.iter().any(|b| *b != 0)));
    all.fill(7);
    assert!(all.iter().step_by(4096).all(|b| *b == 7));
}

#[test]
fn a_tmpfs_is_bound_and_verified() {
    check(&Folder::shm("bound"), FileBacking::Tmpfs);
}

#[test]
fn a_disk_is_the_page_cache_placed_by_first_touch() {
    let Some(folder) = Folder::on_disk("disc") else { not_tested!("the folder of the build is on no disk") };
    check(&folder, FileBacking::PageCache);
}

#[test]
fn guard_pages_surround_a_file_too() {
    let folder = Folder::shm("guards");
    let buffer = buffer(&folder.plan(Bytes::mib(4))).unwrap();
    let page = crate::base_page();
    // SAFETY: the guard page belongs to the buffer's mapping. Only its address is used.
    let below = unsafe { buffer.as_ptr().sub(page) };
    let text = fs::read_to_string("/proc/self/maps").unwrap();
    let guards = [below as usize, buffer.as_ptr() as usize + (4 << 20)];
    for guard in guards {
        let inside = |line: &&str| {
            let (low, high) = line.split(' ').next().unwrap().split_once('-').unwrap();
            (usize::from_str_radix(low, 16).unwrap()..usize::from_str_radix(high, 16).unwrap()).contains(&guard)
        };
        assert!(text.lines().find(inside).unwrap().contains(" ---p "), "{guard:x}");
    }
}

#[test]
fn two_buffers_are_two_files() {
    let folder = Folder::shm("two");
    let [one, two] = [(); 2].map(|()| buffer(&folder.plan(Bytes::mib(1))).unwrap());
    // SAFETY: both buffers belong to the test and have at least a MiB.
    unsafe {
        one.as_ptr().write(1);
        assert_eq!(two.as_ptr().read(), 0);
    }
}

#[test]
fn where_policies_are_refused_a_tmpfs_is_placed_by_first_touch() {
    let folder = Folder::shm("refused");
    let plan = folder.plan(Bytes::mib(4));
    let placement = std::thread::spawn(move || {
        memory::refuse(&[libc::SYS_mbind]);
        buffer(&plan).unwrap().placement().clone()
    })
    .join()
    .unwrap();
    assert_eq!((placement.status, placement.method), (PlacementStatus::Verified, Some(PlacementMethod::FirstTouch)), "{placement:?}");
}

#[test]
fn blocks_are_written_where_allocating_them_is_not_enough() {
    let folder = Folder::shm("write");
    let plan = folder.plan(Bytes::mib(1));
    let file = directory::create_nameless(&folder.0).unwrap();
    resize(&file, (3 << 20) + 4096).unwrap();
    write_blocks(&file, (3 << 20) + 4096, &AtomicUsize::new(1 << 20), &|| false).unwrap();
    use std::os::unix::fs::MetadataExt;
    assert_eq!(file.metadata().unwrap().blocks() * 512, (2 << 20) + 4096, "another thread has the first MiB");
    reserve(&file, (3 << 20) + 4096, &plan.touch, true, &|| false).unwrap();
    let found = file.metadata().unwrap();
    assert_eq!((found.len(), found.blocks() * 512), ((3 << 20) + 4096, (3 << 20) + 4096));
}

/// A tmpfs of 8 MiB, unmounted and removed when dropped; needs root.
struct Small(Folder);

impl Small {
    fn mount(name: &str) -> Option<Self> {
        let folder = Folder::shm(name);
        let at = std::ffi::CString::new(folder.0.to_str().unwrap()).unwrap();
        // SAFETY: all strings end with a zero byte and outlive the call.
        let rc = unsafe { libc::mount(c"tmpfs".as_ptr(), at.as_ptr(), c"tmpfs".as_ptr(), 0, c"size=8m".as_ptr().cast()) };
        (rc == 0).then_some(Self(folder))
    }

    fn read_only(&self) {
        let at = std::ffi::CString::new(self.0.0.to_str().unwrap()).unwrap();
        let flags = libc::MS_REMOUNT | libc::MS_RDONLY;
        let began = std::time::Instant::now();
        // A child that another test has just forked may still hold the file.
        loop {
            // SAFETY: all strings end with a zero byte and outlive the call.
            let rc = unsafe { libc::mount(c"tmpfs".as_ptr(), at.as_ptr(), c"tmpfs".as_ptr(), flags, std::ptr::null()) };
            let error = io::Error::last_os_error();
            if rc == 0 {
                return;
            }
            assert!(error.raw_os_error() == Some(libc::EBUSY) && began.elapsed().as_secs() < 10, "{error}");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let at = std::ffi::CString::new(self.0.0.to_str().unwrap()).unwrap();
        // SAFETY: the path ends with a zero byte and outlives the call.
        unsafe { libc::umount2(at.as_ptr(), libc::MNT_DETACH) };
    }
}

#[test]
fn a_file_system_without_room_is_an_error_and_not_a_signal() {
    let Some(small) = Small::mount("room") else { not_tested!("mounting needs root ({})", io::Error::last_os_error()) };
    let found = directory::read(&small.0.0, Path::new("/")).unwrap();
    assert_eq!(found.free, Some(Bytes::mib(8)));
    let e = buffer(&small.0.plan(Bytes::mib(9))).unwrap_err();
    assert_eq!(e.kind, MemoryErrorKind::Space, "{e:?}");
    assert!(e.what.contains(&found.file.path) && e.why.contains("space") && e.advice.to_string().contains("--size"), "{e:?}");
    assert_eq!(directory::read(&small.0.0, Path::new("/")).unwrap().free, Some(Bytes::mib(8)), "nothing is left");
    buffer(&small.0.plan(Bytes::mib(8))).unwrap();
    small.read_only();
    let e = directory::read(&small.0.0, Path::new("/")).unwrap_err();
    assert!(e.to_string().contains("mount it for writing"), "{e}");
    let e = buffer(&small.0.plan(Bytes::mib(1))).unwrap_err();
    assert_eq!(e.kind, MemoryErrorKind::File, "{e:?}");
}

#[test]
fn a_file_that_is_truncated_while_it_is_made_is_named() {
    let folder = Folder::shm("truncated");
    // Called before each portion: the file has its blocks by then, and not all of its pages are mapped.
    let calls = AtomicUsize::new(0);
    let truncate = || {
        if calls.fetch_add(1, Ordering::Relaxed) > 0 {
            let open = fs::read_dir("/proc/self/fd").unwrap().flatten().map(|entry| entry.path());
            // The buffer's own descriptor is the lowest. Others are of the threads that come here too, and are soon something else.
            let number = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
            if let Some(path) = open.filter(|path| fs::read_link(path).is_ok_and(|file| file.starts_with(&folder.0))).min_by_key(number) {
                let _ = fs::File::options().write(true).open(path).and_then(|file| file.set_len(4096));
            }
        }
        false
    };
    let plan = folder.plan(Bytes(8 << 20));
    let failed = Buffer::allocate_under(&plan, Path::new("/"), &Policy::new(), &truncate).map(drop).unwrap_err();
    let directory = folder.0.display();
    assert_eq!(failed.kind, MemoryErrorKind::File, "{failed}");
    let says = format!("another process truncated its file in {directory}: it ends before byte 4096");
    assert!(failed.to_string().contains(&says), "{failed}");
}

#[test]
fn a_limit_on_file_sizes_is_an_error_and_not_a_signal() {
    let folder = Folder::shm("limit");
    let file = directory::create_nameless(&folder.0).unwrap();
    let plan = folder.plan(Bytes::mib(2));
    // SAFETY: the child only restricts itself, makes system calls and exits. It takes no lock that another thread may hold.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let limit = libc::rlimit { rlim_cur: 1 << 20, rlim_max: 1 << 20 };
        // SAFETY: setrlimit reads one `rlimit`, and the child only restricts itself before it exits.
        unsafe {
            libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit);
            let refused = resize(&file, 2 << 20).is_err_and(|e| e.raw_os_error() == Some(libc::EFBIG));
            libc::_exit(i32::from(!(refused && resize(&file, 1 << 20).is_ok())));
        }
    }
    let mut status = 0;
    // SAFETY: waits for the child that was just forked, and writes its status to `status`.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status}");
    assert!(error::file_space(&plan, &io::Error::from_raw_os_error(libc::EFBIG)).advice.to_string().contains("ulimit -f"));
}

#[test]
fn a_directory_that_no_longer_exists_is_named() {
    let folder = Folder::shm("gone");
    let plan = folder.plan(Bytes::mib(1));
    drop(folder);
    let e = buffer(&plan).unwrap_err();
    assert_eq!(e.kind, MemoryErrorKind::File);
    assert!(e.to_string().contains(plan.directory.as_ref().unwrap()), "{e}");
}

#[test]
fn the_node_of_dax_is_that_of_its_device() {
    let at = |device_node| FileEvidence {
        path: "/mnt".into(),
        filesystem: "xfs".into(),
        device: Some("/dev/pmem0".into()),
        device_node,
        backing: FileBacking::Dax,
        map_sync: true,
        reason: None,
        volatile: None,
    };
    let placement = |node, device, only| {
        let placement = on_device(node, &at(device), only);
        assert_eq!(placement.method, Some(PlacementMethod::Device));
        assert_eq!(!placement.problems.is_empty(), placement.status != PlacementStatus::Verified);
        (placement.status, placement.source)
    };
    assert_eq!(placement(1, Some(1), false), (PlacementStatus::Verified, Some(PlacementSource::Device)));
    assert_eq!(placement(0, Some(1), false), (PlacementStatus::Wrong, Some(PlacementSource::Device)));
    assert_eq!(placement(0, None, false), (PlacementStatus::Unverified, None));
    assert_eq!(placement(0, None, true), (PlacementStatus::Verified, Some(PlacementSource::OnlyNode)));
}

#[test]
fn smaps_of_a_shared_file() {
    let text = "7f0000000000-7f0000400000 rw-s 00000000 00:1a 12 /dev/shm/#12 (deleted)\nSize: 4096 kB\nKernelPageSize: 4 kB\n\
                Rss: 4096 kB\nShared_Dirty: 0 kB\nAnonHugePages: 0 kB\nShmemPmdMapped: 2048 kB\nFilePmdMapped: 0 kB\nShared_Hugetlb: 0 kB\n";
    let backed = super::super::page_maps::smaps(text.as_bytes(), 0x7f00_0000_0000, 0x7f00_0040_0000).unwrap();
    assert_eq!((backed.mapped, backed.resident, backed.file_huge, backed.thp, backed.page), (4 << 20, 4 << 20, 2 << 20, 0, 4096));
}
