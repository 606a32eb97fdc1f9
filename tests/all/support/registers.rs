//! A file system in place of `/dev/cpu`, whose registers keep, lose or refuse what is written, as a test requires.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, LockOwner, OpenFlags,
    ReplyAttr, ReplyData, ReplyDirectory, ReplyEntry, ReplyOpen, ReplyWrite, Request, WriteFlags,
};

/// How the registers behave.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Registers by CPU. A CPU that is absent has no device.
    pub(crate) cpus: BTreeMap<u32, BTreeMap<u32, u64>>,
    /// Bits that may be set, by register; other registers fault.
    pub(crate) valid: BTreeMap<u32, u64>,
    /// CPUs that are offline behind their device.
    pub(crate) offline: Vec<u32>,
    /// This many devices can still be opened. The next one is offline, once.
    pub(crate) opens_left: Option<usize>,
    /// Writes succeed, but are lost.
    pub(crate) forgets: bool,
    /// Writes end with this error.
    pub(crate) refuses_writes: Option<i32>,
    /// What was written: CPU, register, value.
    pub(crate) written: Vec<(u32, u32, u64)>,
}

struct Files(Arc<Mutex<State>>);

/// The kernel must cache nothing, because devices come and go.
const TTL: Duration = Duration::ZERO;

fn attributes(ino: INodeNo) -> FileAttr {
    let number = u64::from(ino);
    let directory = number == 1 || number % 2 == 0;
    FileAttr {
        ino,
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: if directory { FileType::Directory } else { FileType::RegularFile },
        perm: if directory { 0o755 } else { 0o600 },
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        flags: 0,
        blksize: 512,
    }
}

// Inode 1 is the root, 2 + 2 N is the directory of CPU N, and the next one is its device.
fn cpu_of(ino: INodeNo) -> u32 {
    ((u64::from(ino) - 2) / 2) as u32
}

impl Files {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Filesystem for Files {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = name.to_str().unwrap_or_default();
        let found = match u64::from(parent) {
            1 => name.parse().ok().filter(|cpu| self.state().cpus.contains_key(cpu)).map(|cpu: u32| 2 + 2 * u64::from(cpu)),
            folder if folder % 2 == 0 && name == "msr" => Some(folder + 1),
            _ => None,
        };
        match found {
            Some(ino) => reply.entry(&TTL, &attributes(INodeNo(ino)), Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&TTL, &attributes(ino));
    }

    fn readdir(&self, _: &Request, ino: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        if ino == INodeNo::ROOT {
            for (i, cpu) in self.state().cpus.keys().enumerate().skip(offset as usize) {
                if reply.add(INodeNo(2 + 2 * u64::from(*cpu)), i as u64 + 1, FileType::Directory, cpu.to_string()) {
                    break;
                }
            }
        }
        reply.ok();
    }

    fn open(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let mut state = self.state();
        let gone = state.opens_left == Some(0);
        state.opens_left = state.opens_left.and_then(|left| left.checked_sub(1));
        if gone || state.offline.contains(&cpu_of(ino)) {
            return reply.error(Errno::ENXIO);
        }
        drop(state);
        // An offset is the number of a register, whatever the size of the file.
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(&self, _: &Request, ino: INodeNo, _: FileHandle, offset: u64, _: u32, _: OpenFlags, _: Option<LockOwner>, reply: ReplyData) {
        let state = self.state();
        let register = offset as u32;
        if !state.valid.contains_key(&register) {
            return reply.error(Errno::EIO);
        }
        let value = state.cpus.get(&cpu_of(ino)).and_then(|r| r.get(&register)).copied().unwrap_or(0);
        reply.data(&value.to_le_bytes());
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let mut state = self.state();
        let (cpu, register) = (cpu_of(ino), offset as u32);
        let value = data.try_into().map(u64::from_le_bytes);
        let Ok(value) = value else { return reply.error(Errno::EINVAL) };
        if let Some(error) = state.refuses_writes {
            return reply.error(Errno::from_i32(error));
        }
        if state.valid.get(&register).is_none_or(|valid| value & !valid != 0) {
            return reply.error(Errno::EIO);
        }
        state.written.push((cpu, register, value));
        if !state.forgets {
            state.cpus.entry(cpu).or_default().insert(register, value);
        }
        drop(state);
        reply.written(8);
    }
}

/// The mounted file system, and the program that uses it.
pub(crate) struct Registers {
    state: Arc<Mutex<State>>,
    session: Option<BackgroundSession>,
    folder: PathBuf,
    register: u32,
    acts_as: &'static str,
}

impl Registers {
    /// Intel's register, with bits 0 to 3 and 11, for every online CPU. `None` if nothing can be mounted.
    pub(crate) fn intel(name: &str) -> Option<Self> {
        Self::mount(name, "GenuineIntel,6,85", 0x1A4, 0x80F)
    }

    /// AMD's register.
    pub(crate) fn amd(name: &str) -> Option<Self> {
        Self::mount(name, "AuthenticAMD,25,17,announced", 0xC000_0108, 0x2F)
    }

    fn mount(name: &str, acts_as: &'static str, register: u32, valid: u64) -> Option<Self> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("registers-{name}-{}", std::process::id()));
        let mount = folder.join("cpu");
        std::fs::create_dir_all(&mount).unwrap();
        let online: memgauge_model::units::IdSet =
            std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap().trim().parse().unwrap();
        let state = State {
            // Each CPU has a different value, so that they cannot be confused.
            cpus: online.iter().map(|cpu| (cpu, BTreeMap::from([(register, u64::from(cpu % 2))]))).collect(),
            valid: BTreeMap::from([(register, valid)]),
            ..State::default()
        };
        let state = Arc::new(Mutex::new(state));
        let session = match fuser::spawn_mount(Files(state.clone()), &mount, &Config::default()) {
            Ok(session) => session,
            Err(error) => {
                // SAFETY: geteuid has no preconditions.
                let root = unsafe { libc::geteuid() } == 0;
                assert!(!(root && Path::new("/dev/fuse").exists()), "root with a /dev/fuse cannot mount: {error}");
                return None;
            }
        };
        Some(Self { state, session: Some(session), folder, register, acts_as })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The register of all CPUs.
    pub(crate) fn values(&self) -> BTreeMap<u32, u64> {
        self.state().cpus.iter().map(|(cpu, registers)| (*cpu, registers[&self.register])).collect()
    }

    pub(crate) fn set(&self, cpu: u32, value: u64) {
        self.state().cpus.get_mut(&cpu).unwrap().insert(self.register, value);
    }

    /// The program with these registers.
    pub(crate) fn program(&self) -> Command {
        self.beside(super::program())
    }

    /// A command with these registers.
    pub(crate) fn beside(&self, mut command: Command) -> Command {
        command.env("MEMGAUGE_MSR_ROOT", self.folder.join("cpu"));
        command.env("MEMGAUGE_PREFETCH_AS", self.acts_as);
        command.env("MEMGAUGE_RUNTIME_DIR", self.journals());
        command
    }

    /// The folder of journals.
    pub(crate) fn journals(&self) -> PathBuf {
        self.folder.join("run")
    }
}

impl Drop for Registers {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            let _ = session.umount_and_join();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
