//! A directory whose files serve as memory: its properties, and files without a name in it.
//!
//! The properties are those of a file that is created in the same way as the files of buffers. DAX is a property of the file, which a mount
//! option or an attribute of the directory decides when the file is created.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use memgauge_model::directory::{FileBacking, FileEvidence, MemoryDir};
use memgauge_model::persistent::PersistentDevice;
use memgauge_model::units::Bytes;
use memgauge_model::words;
use memgauge_model::words::{Knob, Problem};

use crate::mount::{self, Mount};
use crate::persistent;
use crate::security::explained;
use crate::system_call;
use crate::tree::{Tree, field};

/// `TMPFS_MAGIC` of linux/magic.h. It is also that of devtmpfs.
const TMPFS: u64 = 0x0102_1994;
/// `HUGETLBFS_MAGIC`.
const HUGETLBFS: u64 = 0x9584_58f6;
/// How many names to try when a file must have one for a moment. Two clashes of 64 random bits are not a coincidence.
const NAME_ATTEMPTS: u32 = 8;

/// Why the files of a directory cannot serve as memory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DirectoryError {
    /// The path as given is not a suitable directory.
    #[error("{0}: {1}")]
    Request(String, Problem),
    /// It is a suitable directory, but its files cannot be used.
    #[error("{0}: {1}")]
    Unavailable(String, Problem),
}

/// Reads the properties of the files in `path`. Sysfs and the mount table are read below `root`. Nothing is left in the directory.
///
/// # Errors
/// [`DirectoryError::Request`] when `path` is not a directory or on a file system that cannot be used, and [`DirectoryError::Unavailable`]
/// when files cannot be created or mapped there.
pub fn read(path: &Path, root: &Path) -> Result<MemoryDir, DirectoryError> {
    let named = path.display().to_string();
    let request = |what: &'static str, advice: &'static str| DirectoryError::Request(named.clone(), Problem::new(what, advice));
    let unavailable = |what: String, advice: &'static str| DirectoryError::Unavailable(named.clone(), Problem::new(what, advice));
    let full = fs::canonicalize(path).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => request("there is no such directory", "make it, or mount a file system there"),
        io::ErrorKind::NotADirectory => request("it is not a directory", "give the directory that a file system is mounted at"),
        _ => unavailable(explained(&e), "give a directory that this user may use"),
    })?;
    // One that may not be seen is not something else.
    let found = full.metadata().map_err(|e| unavailable(explained(&e), "give a directory that this user may use"))?;
    if !found.is_dir() {
        return Err(request("it is not a directory", "give the directory that a file system is mounted at"));
    }
    let text = full.to_str().ok_or_else(|| request("its name is not UTF-8, so no result can hold it", "give it another name"))?;
    let file = create_nameless(&full).map_err(|e| {
        let (what, advice) = cannot_create(&e);
        unavailable(what, advice)
    })?;
    if statfs(&file).is_ok_and(|s| s.kind == HUGETLBFS) {
        let pages =
            words!["for the pages of its pool use ", Knob::Pages, " 2m or ", Knob::Pages, " 1g and leave ", Knob::MemoryDir, " out"];
        return Err(DirectoryError::Request(named, Problem::new("it is a hugetlbfs", pages)));
    }
    describe(&file, text, root)
        .map_err(|e| unavailable(format!("files there cannot be mapped: {}", explained(&e)), "give a directory of another file system"))
}

fn cannot_create(e: &io::Error) -> (String, &'static str) {
    let advice = match e.kind() {
        io::ErrorKind::ReadOnlyFilesystem => "mount it for writing",
        io::ErrorKind::PermissionDenied => "give a directory that this user may write to",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free space there",
        _ => "give a directory of another file system",
    };
    (format!("no file can be created there: {}", explained(e)), advice)
}

/// Creates a file in `dir` that has no name, so that it goes away with this process however the process ends.
pub(crate) fn create_nameless(dir: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    // O_EXCL with O_TMPFILE: the file cannot get a name later.
    match options.clone().custom_flags(libc::O_TMPFILE | libc::O_EXCL).open(dir) {
        // File systems without O_TMPFILE return EOPNOTSUPP, and kernels before 3.11 EISDIR.
        Err(e) if matches!(e.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL)) => create_and_unlink(dir, &options),
        file => file,
    }
}

fn create_and_unlink(dir: &Path, options: &OpenOptions) -> io::Result<File> {
    for attempt in 0..NAME_ATTEMPTS {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let path = dir.join(format!(".memgauge-{}-{now:x}-{attempt}", std::process::id()));
        match options.clone().create_new(true).open(&path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
            Ok(file) => return fs::remove_file(&path).map(|()| file),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Reads the properties of `file`, which is in `dir`.
pub(crate) fn describe(file: &File, dir: &str, root: &Path) -> io::Result<MemoryDir> {
    let stat = statfs(file)?;
    let mount = find_mount(file, root);
    let device = mount.as_ref().and_then(|m| Device::for_mount(m, root)).or_else(|| Device::by_id(root, file.metadata().ok()?.dev()));
    let synchronous = try_map_sync(file)?;
    // Kernels before 5.8 do not show this attribute. They grant MAP_SYNC for DAX only.
    let dax = dax_attribute(file).unwrap_or(synchronous.is_ok());
    let backing = match (dax, stat.kind) {
        (true, _) => FileBacking::Dax,
        (false, TMPFS) => FileBacking::Tmpfs,
        (false, _) => FileBacking::PageCache,
    };
    let reason = match (backing, &synchronous) {
        (FileBacking::Dax, Ok(())) => None,
        (FileBacking::Dax, Err(e)) => Some(format!("mmap with MAP_SYNC: {e}")),
        (FileBacking::Tmpfs, _) => Some("tmpfs keeps its files in memory".to_owned()),
        (FileBacking::PageCache, _) => {
            Some(device.as_ref().map_or("the file system is on no block device".to_owned(), Device::why_not_dax))
        }
    };
    let persistent = device.as_ref().and_then(|d| persistent::read(&d.folder, root));
    let volatile = volatile(backing, persistent.as_ref());
    Ok(MemoryDir {
        file: FileEvidence {
            path: dir.to_owned(),
            filesystem: mount.map_or_else(|| format!("0x{:x}", stat.kind), |m| m.kind),
            device_node: device.as_ref().and_then(|d| d.node),
            device: device.map(|d| d.name),
            backing,
            map_sync: synchronous.is_ok(),
            reason,
            volatile,
        },
        free: stat.free,
        block: stat.block,
        persistent,
    })
}

/// Why files are not in persistent memory, as far as this tells.
fn volatile(backing: FileBacking, persistent: Option<&PersistentDevice>) -> Option<String> {
    let why = match (backing, persistent) {
        (FileBacking::Dax, Some(device)) => return device.emulated.clone(),
        // A host's memory that a virtual machine maps (virtiofs), or a device that is not known here.
        (FileBacking::Dax, None) => "they can be mapped directly (DAX), and no persistent memory is known behind them",
        (FileBacking::PageCache, _) => "its files are in the page cache, which is DRAM",
        (FileBacking::Tmpfs, _) => "tmpfs is DRAM",
    };
    Some(why.to_owned())
}

struct Statfs {
    kind: u64,
    free: Option<Bytes>,
    block: Bytes,
}

fn statfs(file: &File) -> io::Result<Statfs> {
    let mut stat = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the call writes one `statfs`, and `stat` has room for one. It is read only after the call has succeeded.
    let stat = unsafe {
        system_call(|| libc::fstatfs(file.as_raw_fd(), stat.as_mut_ptr()) == 0)?;
        stat.assume_init()
    };
    let block = if stat.f_frsize > 0 { stat.f_frsize as u64 } else { stat.f_bsize as u64 };
    // A tmpfs without a limit has no blocks, and neither has ramfs.
    let free = (stat.f_blocks > 0).then(|| Bytes((stat.f_bavail as u64).saturating_mul(block)));
    // The magic number has 32 bits. Some instruction sets extend its sign.
    Ok(Statfs { kind: stat.f_type as u64 & 0xffff_ffff, free, block: Bytes(block) })
}

/// Whether the file has the DAX attribute; `None` when the kernel does not show it.
fn dax_attribute(file: &File) -> Option<bool> {
    const DAX: u64 = libc::STATX_ATTR_DAX as u64;
    let mut stat = MaybeUninit::<libc::statx>::uninit();
    // SAFETY: the path is an empty string, which with AT_EMPTY_PATH means the file itself. The call writes one `statx`, and `stat` has room for
    // one. It is read only after the call has succeeded.
    let stat = unsafe {
        let found = libc::statx(file.as_raw_fd(), c"".as_ptr(), libc::AT_EMPTY_PATH, libc::STATX_BASIC_STATS, stat.as_mut_ptr()) == 0;
        found.then(|| stat.assume_init())?
    };
    (stat.stx_attributes_mask & DAX != 0).then_some(stat.stx_attributes & DAX != 0)
}

/// Whether the file can be mapped with `MAP_SYNC`. The outer error means that it cannot be mapped at all.
fn try_map_sync(file: &File) -> io::Result<io::Result<()>> {
    let try_map = |flags| {
        // One byte stands for a page, which is never touched.
        // SAFETY: the kernel chooses the address, so no existing mapping is replaced.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), 1, libc::PROT_READ | libc::PROT_WRITE, flags, file.as_raw_fd(), 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the mapping was just made, and nothing refers to it.
        unsafe { libc::munmap(at, 1) };
        Ok(())
    };
    match try_map(libc::MAP_SHARED_VALIDATE | libc::MAP_SYNC) {
        Ok(()) => Ok(Ok(())),
        Err(refused) => try_map(libc::MAP_SHARED).map(|()| Err(refused)),
    }
}

/// The mount of an open file. Its path would not be enough, because one mount may hide another.
fn find_mount(file: &File, root: &Path) -> Option<Mount> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd())).ok()?;
    let id = field(&info, "mnt_id")?;
    mount::read(Tree::new(root)).into_iter().find(|m| m.id == id)
}

/// A block device.
#[derive(Debug, PartialEq, Eq)]
struct Device {
    name: String,
    /// Its folder in sysfs.
    folder: PathBuf,
    /// Whether it can be mapped without the page cache (`queue/dax`).
    dax: Option<bool>,
    node: Option<u32>,
}

impl Device {
    fn for_mount(mount: &Mount, root: &Path) -> Option<Self> {
        Self::by_number(root, &mount.device).or_else(|| {
            // File systems over several devices (btrfs) have a device number of their own, and their source is one of the devices.
            Self::by_id(root, fs::metadata(Some(&mount.source).filter(|s| s.starts_with("/dev/"))?).ok()?.rdev())
        })
    }

    fn by_id(root: &Path, id: libc::dev_t) -> Option<Self> {
        Self::by_number(root, &format!("{}:{}", libc::major(id), libc::minor(id)))
    }

    fn by_number(root: &Path, number: &str) -> Option<Self> {
        let folder = fs::canonicalize(root.join("sys/dev/block").join(number)).ok()?;
        // Sysfs writes a slash in a name, as in cciss/c0d0, as `!`.
        let name = format!("/dev/{}", folder.file_name()?.to_str()?.replace('!', "/"));
        let text = |file: PathBuf| fs::read_to_string(file).ok().map(|t| t.trim().to_owned());
        // The folder of a partition is inside that of its disk, which has the queue.
        let queue = |folder: &Path| text(folder.join("queue/dax")).map(|t| t == "1");
        let dax = queue(&folder).or_else(|| queue(folder.parent()?));
        // The nearest parent (namespace, region, controller, bus) that has a node. The node is -1 when firmware does not state it.
        let node = folder.ancestors().find_map(|f| text(f.join("numa_node"))).and_then(|n| n.parse().ok());
        Some(Self { name, folder, dax, node })
    }

    fn why_not_dax(&self) -> String {
        let name = &self.name;
        match self.dax {
            Some(true) => format!("{name} supports DAX, but the file system is mounted without it"),
            Some(false) => format!("{name} does not support DAX (queue/dax is 0)"),
            None => format!("the kernel does not say whether {name} supports DAX"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that is removed when dropped.
    struct Folder(PathBuf);

    impl Folder {
        fn new(below: &Path, name: &str) -> Self {
            let folder = Self(below.join(format!("memgauge-directory-{name}-{}", std::process::id())));
            fs::create_dir_all(&folder.0).unwrap();
            folder
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn is_empty(&self) -> bool {
            fs::read_dir(&self.0).unwrap().next().is_none()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn root() -> &'static Path {
        Path::new("/")
    }

    #[test]
    fn shared_memory_is_a_tmpfs() {
        let folder = Folder::new(Path::new("/dev/shm"), "shm");
        let dir = read(&folder.0, root()).unwrap();
        assert_eq!((dir.file.backing, dir.file.filesystem.as_str()), (FileBacking::Tmpfs, "tmpfs"), "{dir:?}");
        assert_eq!((dir.file.device.as_deref(), dir.file.map_sync), (None, false));
        assert_eq!(dir.file.path, folder.0.to_str().unwrap());
        assert!(folder.is_empty());
    }

    #[test]
    fn files_are_persistent_where_a_device_of_persistent_memory_is_known() {
        let real = PersistentDevice::default();
        let emulated = PersistentDevice { emulated: Some("virtio-pmem".to_owned()), ..PersistentDevice::default() };
        assert_eq!(volatile(FileBacking::Dax, Some(&real)), None);
        assert_eq!(volatile(FileBacking::Dax, Some(&emulated)).as_deref(), Some("virtio-pmem"));
        assert!(volatile(FileBacking::Dax, None).is_some(), "virtiofs");
        assert!(volatile(FileBacking::PageCache, Some(&real)).is_some(), "mounted without DAX");
    }

    #[test]
    fn a_link_is_followed_and_the_path_is_absolute() {
        let folder = Folder::new(Path::new("/dev/shm"), "link");
        let link = folder.0.join("link");
        std::os::unix::fs::symlink(".", &link).unwrap();
        assert_eq!(read(&link, root()).unwrap().file.path, folder.0.to_str().unwrap());
    }

    #[test]
    fn a_path_that_is_not_a_directory_is_a_wrong_request() {
        let folder = Folder::new(Path::new("/dev/shm"), "file");
        folder.write("file", "");
        for path in ["absent", "file", "file/below"] {
            let e = read(&folder.0.join(path), root()).unwrap_err();
            assert!(matches!(e, DirectoryError::Request(..)), "{e:?}");
            assert!(e.to_string().contains(path) && e.to_string().contains("directory"), "{e}");
        }
    }

    #[test]
    fn a_directory_where_no_file_can_be_created_is_unavailable() {
        for path in ["/proc/self", "/sys/kernel"] {
            let e = read(Path::new(path), root()).unwrap_err();
            assert!(matches!(e, DirectoryError::Unavailable(..)), "{e:?}");
            assert!(e.to_string().contains("no file can be created there"), "{e}");
        }
    }

    #[test]
    fn a_file_has_no_name_even_where_the_file_system_must_name_it() {
        let folder = Folder::new(Path::new("/dev/shm"), "name");
        let with = create_nameless(&folder.0).unwrap();
        let without = create_and_unlink(&folder.0, OpenOptions::new().read(true).write(true).mode(0o600)).unwrap();
        for file in [with, without] {
            assert!(folder.is_empty());
            assert_eq!(file.metadata().unwrap().nlink(), 0);
            assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
            file.set_len(1 << 20).unwrap();
        }
    }

    #[test]
    fn a_device_of_a_made_up_machine() {
        let tree = Folder::new(&std::env::temp_dir(), "device");
        let bus = "sys/devices/platform/e820_pmem/ndbus0/region0";
        tree.write(&format!("{bus}/numa_node"), "2\n");
        tree.write(&format!("{bus}/namespace0.0/block/pmem0/queue/dax"), "1\n");
        tree.write(&format!("{bus}/namespace0.0/block/pmem0/pmem0p1/partition"), "1\n");
        tree.write("sys/devices/pci0/nvme0/numa_node", "-1\n");
        tree.write("sys/devices/pci0/nvme0/nvme0n1/queue/dax", "0\n");
        tree.write("sys/devices/virtual/block/dm-0/size", "1\n");
        fs::create_dir_all(tree.0.join("sys/dev/block")).unwrap();
        for (id, device) in [
            ("259:0", format!("../../../{bus}/namespace0.0/block/pmem0")),
            ("259:1", format!("../../../{bus}/namespace0.0/block/pmem0/pmem0p1")),
            ("259:2", "../../devices/pci0/nvme0/nvme0n1".to_owned()),
            ("253:0", "../../devices/virtual/block/dm-0".to_owned()),
        ] {
            std::os::unix::fs::symlink(device, tree.0.join("sys/dev/block").join(id)).unwrap();
        }
        let device = |name: &str, dax, node| Some((name.to_owned(), dax, node));
        let found = |number| Device::by_number(&tree.0, number).map(|d| (d.name, d.dax, d.node));
        assert_eq!(found("259:0"), device("/dev/pmem0", Some(true), Some(2)));
        assert_eq!(found("259:1"), device("/dev/pmem0p1", Some(true), Some(2)));
        assert_eq!(found("259:2"), device("/dev/nvme0n1", Some(false), None));
        assert_eq!(found("253:0"), device("/dev/dm-0", None, None));
        assert_eq!(found("1:1"), None);
        assert!(Device::by_number(&tree.0, "259:2").unwrap().why_not_dax().contains("queue/dax is 0"));
    }
}
