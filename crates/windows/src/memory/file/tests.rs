//! Files in the folder for temporary files.

use std::fs;
use std::path::PathBuf;

use memgauge_model::experiment::PageRequest;

use super::*;
use memgauge_model::memory::MemoryErrorKind;

use crate::memory::allocate::tests as memory;

/// A folder that is removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = Self(std::env::temp_dir().join(format!("memgauge-file-{name}-{}", std::process::id())));
        fs::create_dir_all(&folder.0).unwrap();
        folder
    }

    fn plan(&self, bytes: Bytes) -> BufferPlan {
        BufferPlan { directory: Some(self.0.to_str().unwrap().to_owned()), ..memory::plan(bytes, PageRequest::Auto) }
    }

    fn files(&self) -> usize {
        fs::read_dir(&self.0).unwrap().count()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn buffer(plan: &BufferPlan) -> Result<Buffer, MemoryError> {
    Buffer::allocate(plan, Path::new("/"))
}

#[test]
fn a_file_is_memory_and_gone_with_its_buffer() {
    let folder = Folder::new("memory");
    let buffer = buffer(&folder.plan(Bytes((9 << 20) + 5))).unwrap();
    assert_eq!(folder.files(), 1);
    let file = buffer.file().unwrap();
    assert_eq!((file.path.as_str(), file.map_sync), (folder.0.to_str().unwrap(), false));
    assert_eq!((buffer.len(), buffer.mapping.len()), ((9 << 20) + 5, (9 << 20) + 4096));
    assert_eq!(buffer.as_ptr() as usize % LARGE, 0);
    if file.backing == FileBacking::PageCache {
        memory::assert_placed(buffer.placement(), (9 << 20) + 4096);
        memory::assert_placed(&buffer.placement_now(), (9 << 20) + 4096);
        let pages = buffer.pages();
        assert_eq!(pages.obtained, Some(PageKind::File), "{pages:?}");
        assert!(pages.share.is_some_and(|s| s > 0.5 && s <= 1.0) && pages.page.is_some(), "{pages:?}");
    }
    let end = buffer.as_ptr() as usize + buffer.mapping.len().next_multiple_of(64 << 10);
    let reserved = windows_sys::Win32::System::Memory::MEM_RESERVE;
    assert_eq!([buffer.as_ptr() as usize - 1, end].map(memory::state_at), [reserved; 2], "guards");
    // SAFETY: the bytes are inside the test's own buffer.
    let all = unsafe { std::slice::from_raw_parts_mut(buffer.as_ptr(), buffer.len()) };
    assert!(all.chunks(4096).all(|page| page.iter().any(|b| *b != 0) || page.len() < 8));
    all.fill(7);
    assert!(all.iter().step_by(4096).all(|b| *b == 7));
    assert_eq!(buffer.fault(), None);
    drop(buffer);
    assert_eq!(folder.files(), 0);
}

#[test]
fn two_buffers_are_two_files() {
    let folder = Folder::new("two");
    let [one, two] = [(); 2].map(|()| buffer(&folder.plan(Bytes::mib(1))).unwrap());
    // SAFETY: both buffers belong to the test and have at least a MiB.
    unsafe {
        one.as_ptr().add(100).write(1);
        two.as_ptr().add(100).write(2);
        assert_eq!(one.as_ptr().add(100).read(), 1);
    }
}

#[test]
fn errors_name_the_directory_and_leave_nothing() {
    let folder = Folder::new("errors");
    let e = buffer(&folder.plan(Bytes::gib(1 << 20))).unwrap_err();
    assert_eq!(e.kind, MemoryErrorKind::Space, "{e:?}");
    assert!(e.what.contains(folder.0.to_str().unwrap()) && e.advice.to_string().contains("--size"), "{e:?}");
    let e = Buffer::allocate_unless(&folder.plan(Bytes::mib(8)), Path::new("/"), &|| true).unwrap_err();
    assert_eq!(e.kind, MemoryErrorKind::Interrupted);
    assert_eq!(folder.files(), 0);
    let plan = folder.plan(Bytes::mib(1));
    drop(folder);
    let e = buffer(&plan).unwrap_err();
    assert_eq!(e.kind, MemoryErrorKind::File);
    assert!(e.to_string().contains(plan.directory.as_ref().unwrap()), "{e}");
    assert!(error::no_space(&plan, 5 << 20).why.contains("5 MiB of free space"));
}

#[test]
fn the_node_of_dax_is_that_of_its_device() {
    let at = |device_node| FileEvidence {
        path: r"D:\".into(),
        filesystem: "NTFS".into(),
        device: None,
        device_node,
        backing: FileBacking::Dax,
        map_sync: false,
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
fn pages_of_a_device_may_be_large() {
    let plan = memory::plan(Bytes::mib(1), PageRequest::Auto);
    let found = |dax, large| pages(&plan, dax, Ok(PageCounts { asked: 10, resident: 10, large }));
    assert_eq!((found(true, 10).obtained, found(true, 10).page), (Some(PageKind::Dax), Some(Bytes::mib(2))));
    assert_eq!((found(false, 0).obtained, found(false, 0).share), (Some(PageKind::File), Some(1.0)));
    let unknown = pages(&plan, true, Err("no".to_owned()));
    assert_eq!((unknown.obtained, unknown.share, unknown.reason.is_some()), (Some(PageKind::Dax), None, true));
}
