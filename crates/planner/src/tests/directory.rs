//! Buffers in files of a directory.

use memgauge_model::directory::{FileBacking, FileEvidence, MemoryDir};

use super::*;

pub(super) fn directory(backing: FileBacking, device_node: Option<u32>, free: Option<Bytes>) -> MemoryDir {
    let file = FileEvidence {
        path: "/mnt/pmem".into(),
        filesystem: "ext4".into(),
        device: Some("/dev/pmem0".into()),
        device_node,
        backing,
        map_sync: backing == FileBacking::Dax,
        reason: None,
        volatile: None,
    };
    MemoryDir { file, free, block: Bytes(4096), persistent: None }
}

fn in_directory(task: Task, dir: MemoryDir, change: impl FnOnce(&mut Spec)) -> Result<Plan, PlanError> {
    planned(task, |s| {
        s.memory_dir = Some(dir);
        change(s);
    })
}

#[test]
fn every_buffer_is_in_the_directory_and_every_cell_says_so() {
    for task in [Task::latency(LatencyShape::Matrix), Task::bandwidth(BandwidthShape::Peak), Task::loaded()] {
        for dir in [directory(FileBacking::Tmpfs, None, None), directory(FileBacking::Dax, Some(1), Some(Bytes::gib(64)))] {
            let plan = in_directory(task.clone(), dir.clone(), |_| ()).unwrap();
            assert_eq!(plan.directories, [dir]);
            for cell in plan.steps.iter().flat_map(|s| &s.cells) {
                assert_eq!(cell.at.memory_dir.as_deref(), Some("/mnt/pmem"));
                let buffers = cell.work.buffers();
                assert!(!buffers.is_empty() && buffers.iter().all(|b| plan.buffer_directory(b).is_some()));
            }
            assert!(plan.steps.iter().all(|s| s.title.ends_with(", files in /mnt/pmem")));
        }
    }
    assert!(planned(Task::suite(), |_| ()).unwrap().directories.is_empty());
}

#[test]
fn a_device_with_dax_is_one_column_at_its_node() {
    let columns = |task, node| {
        let plan = in_directory(task, directory(FileBacking::Dax, node, None), |_| ()).unwrap();
        let cells = plan.steps.iter().flat_map(|s| &s.cells).filter(|c| !c.repeat);
        let mut all: Vec<_> = cells.map(|c| (c.at.cpu_node, c.at.memory_node(), c.work.buffers()[0].node)).collect();
        all.sort_unstable();
        all
    };
    for task in [Task::latency(LatencyShape::Matrix), Task::bandwidth(BandwidthShape::Matrix)] {
        // Node 1 also when memory of no node is far or near: the device is where it is.
        assert_eq!(columns(task.clone(), Some(1)), [(Some(0), Some(1), 1), (Some(1), Some(1), 1)]);
        // Not known: the buffers' nodes are those of the CPUs that touch.
        assert_eq!(columns(task.clone(), None), [(Some(0), None, 0), (Some(1), None, 1)]);
        // A node that is not online has no CPUs and no distance.
        assert_eq!(columns(task, Some(9)), [(Some(0), None, 0), (Some(1), None, 1)]);
    }
    assert_eq!(columns(Task::loaded(), Some(1)), [(Some(0), Some(1), 1)]);
    assert_eq!(columns(Task::loaded(), None), [(Some(0), None, 0)]);
}

#[test]
fn files_in_dram_follow_the_nodes_where_they_can() {
    let columns = |backing| {
        let plan = in_directory(Task::latency(LatencyShape::Matrix), directory(backing, Some(1), None), |_| ()).unwrap();
        matrix_cells(&plan.steps[0])
    };
    assert_eq!(columns(FileBacking::Tmpfs), [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
    // Node 2 has no CPU that could touch there, and no policy binds the page cache.
    assert_eq!(columns(FileBacking::PageCache), [(0, 0), (0, 1), (1, 0), (1, 1)]);
}

#[test]
fn files_take_room_of_their_file_system() {
    let bytes = |plan: Plan| plan.steps[0].cells[0].work.buffers().iter().map(|b| b.bytes.0).sum::<u64>();
    let one = Task::latency(LatencyShape::One);
    let dax = |mib| directory(FileBacking::Dax, Some(0), Some(Bytes::mib(mib)));
    // 128 MiB are wanted; a sixteenth of what is free stays so.
    assert_eq!(bytes(in_directory(one.clone(), dax(137), |_| ()).unwrap()), 128 << 20);
    let cut = in_directory(one.clone(), dax(128), |_| ()).unwrap();
    let note = cut.notes.iter().find(|n| n.code == memgauge_model::note::NoteCode::SmallBuffer).unwrap();
    assert!(note.message.to_string().contains("/mnt/pmem leaves 120 MiB"), "{note:?}");
    assert_eq!(bytes(cut), 64 << 20);
    // Asked for, all of it may be taken. A device is not limited by memory, DRAM is by both.
    assert_eq!(bytes(in_directory(one.clone(), dax(128), |s| set_size(s, Some(Bytes::mib(128)))).unwrap()), 128 << 20);
    let large = Some(Bytes::gib(64));
    assert!(in_directory(one.clone(), directory(FileBacking::Dax, Some(0), large), |s| set_size(s, large)).is_ok());
    for (dir, why) in [
        (directory(FileBacking::Tmpfs, None, large), "limited by free memory of node 0"),
        (directory(FileBacking::PageCache, None, large), "limited by free memory of node 0"),
        (dax(32), "limited by the free space of /mnt/pmem"),
    ] {
        let error = in_directory(one.clone(), dir, |s| set_size(s, Some(Bytes::gib(32)))).unwrap_err();
        assert!(
            matches!(&error, PlanError::Unavailable(text) if text.to_string().contains(why) && text.to_string().contains("--size")),
            "{error}"
        );
    }
    let full = in_directory(one, dax(0), |_| ()).unwrap_err();
    assert!(matches!(&full, PlanError::Unavailable(text) if text.to_string().contains("/mnt/pmem")), "{full}");
    // All buffers of a cell exist together: seven loaders and a chase.
    let total = bytes(in_directory(Task::loaded(), dax(256), |_| ()).unwrap());
    assert!(total <= 240 << 20, "{total}");
    let total = bytes(in_directory(Task::bandwidth(BandwidthShape::One), dax(64), |_| ()).unwrap());
    assert!(total <= 60 << 20, "{total}");
}

#[test]
fn what_does_not_go_with_a_directory_is_a_wrong_request() {
    let latency = Task::latency(LatencyShape::One);
    let refused = |task, backing, change: fn(&mut Spec)| match in_directory(task, directory(backing, Some(0), None), change) {
        Err(PlanError::Request(text)) => text.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(refused(latency.clone(), FileBacking::Dax, |s| s.nodes = Some(IdSet::one(0))).to_string().contains("where their device is"));
    assert!(refused(latency.clone(), FileBacking::PageCache, |s| s.nodes = Some(IdSet::one(0))).to_string().contains("tmpfs"));
    assert!(refused(latency.clone(), FileBacking::Tmpfs, |s| s.pages = PageRequest::Huge2M).to_string().contains("--pages 2m"));
    for task in [Task::suite(), Task::c2c(TransferShape::Representatives)] {
        assert!(refused(task, FileBacking::Tmpfs, |_| ()).to_string().contains("'latency', 'bandwidth' and 'loaded'"));
    }
    let far = in_directory(latency, directory(FileBacking::Tmpfs, None, None), |s| s.nodes = Some(IdSet::one(2))).unwrap();
    assert_eq!(far.steps[0].cells[0].at.memory_node(), Some(2));
}
