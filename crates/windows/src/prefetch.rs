//! The registers that switch prefetchers: only a driver may reach them on Windows, and memgauge brings none. Nothing here reads or writes a
//! register, and no journal is ever made.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::path::PathBuf;

use memgauge_model::prefetchers::Control;
use memgauge_model::units::IdSet;
use memgauge_model::words::Ways;

/// The folder of the devices of registers: Windows has none.
pub const MSR_DEVICES: &str = "";
/// The folder of journals: none is made.
pub const JOURNALS: &str = "";

/// The model-specific registers of all CPUs, which are out of reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Msr {
    devices: PathBuf,
}

/// Why a register could not be read or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MsrError {
    /// The CPU.
    pub cpu: u32,
    /// The register.
    pub register: u32,
    /// What went wrong.
    pub fault: MsrFault,
}

/// What went wrong with a register. On Windows it is always [`MsrFault::NoModule`]; the others are those that callers tell apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MsrFault {
    /// The driver is missing. The folder is the one that was named.
    NoModule(PathBuf),
    /// There is no such CPU.
    Offline,
    /// The register may not be reached, and the system's error.
    NotPermitted(PathBuf, String),
    /// The system refused to `read` or to `write` it.
    Refused(&'static str),
    /// The CPU has no such register.
    NoRegister,
    /// It was written, and reads back with another value.
    Forgotten {
        /// What was written.
        wrote: u64,
        /// What was read back.
        read: u64,
    },
    /// Anything else: where, and the system's error.
    Other(PathBuf, String),
}

impl std::error::Error for MsrError {}

impl fmt::Display for MsrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, register, fault } = self;
        match fault {
            MsrFault::NoModule(_) => f.write_str("the registers of CPUs need a driver on Windows, and memgauge brings none"),
            MsrFault::Offline => write!(f, "CPU {cpu} is offline"),
            MsrFault::NotPermitted(_, why) => write!(f, "register {register:#x} of CPU {cpu} may not be reached: {why}"),
            MsrFault::Refused(access) => write!(f, "the system refuses to {access} register {register:#x} of CPU {cpu}"),
            MsrFault::NoRegister => write!(f, "CPU {cpu} has no register {register:#x}"),
            MsrFault::Forgotten { wrote, read } => {
                write!(f, "register {register:#x} of CPU {cpu} was written with {wrote:#x} and reads back {read:#x}")
            }
            MsrFault::Other(_, error) => write!(f, "register {register:#x} of CPU {cpu}: {error}"),
        }
    }
}

impl MsrError {
    /// Advice for the user.
    pub fn advice(&self) -> Ways {
        "switch prefetchers in the BIOS set-up; in a virtual machine, on the host".into()
    }
}

impl Msr {
    /// The registers of this machine.
    pub fn new(devices: impl Into<PathBuf>, _root: impl Into<PathBuf>) -> Self {
        Self { devices: devices.into() }
    }

    /// Reads a register of a CPU.
    ///
    /// # Errors
    /// Always: [`MsrFault::NoModule`].
    pub fn read(&self, cpu: u32, register: u32) -> Result<u64, MsrError> {
        Err(self.error(cpu, register))
    }

    /// Writes a register of a CPU.
    ///
    /// # Errors
    /// Always: [`MsrFault::NoModule`].
    pub fn write(&self, cpu: u32, register: u32, _value: u64) -> Result<(), MsrError> {
        Err(self.error(cpu, register))
    }

    fn error(&self, cpu: u32, register: u32) -> MsrError {
        MsrError { cpu, register, fault: MsrFault::NoModule(self.devices.clone()) }
    }
}

/// How long a change lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// Until the end of the run that makes it.
    Run,
    /// Until `prefetch restore`.
    Kept,
}

/// The state that an earlier change had left, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leftover {
    /// No journal.
    Nothing,
    /// A journal of an earlier boot, which was removed.
    EarlierBoot,
    /// The registers of this many CPUs were restored.
    Restored(usize),
    /// The same, but for CPUs that are offline.
    Partly(usize, IdSet),
}

/// Why prefetchers were not changed, or not restored.
#[derive(Debug, thiserror::Error)]
pub enum PrefetchError {
    /// A register cannot be read or written.
    #[error(transparent)]
    Register(#[from] MsrError),
    /// The folder of journals cannot be used.
    #[error("{0}: {1}")]
    Folder(PathBuf, io::Error),
    /// The folder of journals ends with the container.
    #[error("{} belongs to this container", .0.display())]
    Container(PathBuf),
    /// The guardian cannot be started.
    #[error("cannot start the process that would restore the registers if this one were killed: {0}")]
    Guardian(io::Error),
}

impl PrefetchError {
    /// Advice for the user.
    pub fn advice(&self) -> Ways {
        match self {
            Self::Register(error) => error.advice(),
            Self::Folder(..) | Self::Container(_) | Self::Guardian(_) => "switch prefetchers in the BIOS set-up".into(),
        }
    }
}

/// The registers that switch prefetchers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefetchRegisters {
    msr: Msr,
}

impl PrefetchRegisters {
    /// The registers of this machine. No folder is looked at.
    pub fn new(devices: impl Into<PathBuf>, _folder: impl Into<PathBuf>, root: impl Into<PathBuf>) -> Self {
        Self { msr: Msr::new(devices, root) }
    }

    /// Reads the register of every CPU: an error for each.
    pub fn read(&self, controls: &BTreeMap<u32, Control>) -> BTreeMap<u32, Result<u64, MsrError>> {
        controls.iter().map(|(&cpu, control)| (cpu, self.msr.read(cpu, control.register))).collect()
    }

    /// The journals that have not been undone: none is ever made.
    pub const fn waiting(&self) -> Vec<ChangeKind> {
        Vec::new()
    }

    /// Restores what earlier runs have left: nothing.
    ///
    /// # Errors
    /// None.
    pub const fn restore(&self) -> Result<[Leftover; 2], PrefetchError> {
        Ok([Leftover::Nothing, Leftover::Nothing])
    }
}

/// Registers that are being changed. No value of this type exists on Windows.
#[derive(Debug)]
pub struct PrefetchChange {
    none: Infallible,
}

impl PrefetchChange {
    /// Begins a change.
    ///
    /// # Errors
    /// Always: the error of the first register.
    pub fn begin(registers: PrefetchRegisters, controls: &BTreeMap<u32, Control>, _kind: ChangeKind) -> Result<Self, PrefetchError> {
        let (cpu, register) = controls.first_key_value().map_or((0, 0), |(cpu, control)| (*cpu, control.register));
        Err(registers.msr.error(cpu, register).into())
    }

    /// The id of this change, for its guardian.
    pub const fn id(&self) -> &str {
        match self.none {}
    }

    /// What an earlier run had left.
    pub const fn leftover(&self) -> &Leftover {
        match self.none {}
    }

    /// Switches every prefetcher off or on.
    ///
    /// # Errors
    /// When a register does not keep its value.
    pub const fn set(&mut self, _off: bool) -> Result<(), PrefetchError> {
        match self.none {}
    }

    /// Checks that the registers still have the values they were set to, and returns those by CPU.
    ///
    /// # Errors
    /// When one has another value.
    pub const fn verify(&self) -> Result<BTreeMap<u32, u64>, PrefetchError> {
        match self.none {}
    }

    /// Restores every register for a while.
    ///
    /// # Errors
    /// When one does not take its value.
    pub const fn put_back(&mut self) -> Result<(), PrefetchError> {
        match self.none {}
    }

    /// Leaves the registers as they are.
    pub const fn keep(self) {
        match self.none {}
    }

    /// Restores every register and reads it back.
    ///
    /// # Errors
    /// When one does not take its value.
    pub const fn restore(self) -> Result<(), PrefetchError> {
        match self.none {}
    }
}

/// The process that restores registers when a run is killed. No value of this type exists on Windows.
#[derive(Debug)]
pub struct Guardian {
    none: Infallible,
}

impl Guardian {
    /// Starts this program as the guardian.
    ///
    /// # Errors
    /// Always: there is nothing to guard.
    pub fn start(_arguments: &[&str]) -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "no register can be changed on Windows, so there is nothing to guard"))
    }

    /// Ends the guardian.
    pub const fn dismiss(self) {
        match self.none {}
    }
}

/// Runs as the guardian: nothing was changed, so nothing is restored.
///
/// # Errors
/// None.
pub const fn run_guardian(_registers: &PrefetchRegisters, _id: &str) -> Result<Leftover, PrefetchError> {
    Ok(Leftover::Nothing)
}

#[cfg(test)]
mod tests {
    use memgauge_model::prefetchers::{Processor, control};

    use super::*;

    fn controls() -> BTreeMap<u32, Control> {
        let cpu = Processor {
            arch: "x86_64",
            vendor: "GenuineIntel",
            family: Some(6),
            model: Some(85),
            kind: None,
            announced: false,
            virtual_machine: false,
        };
        BTreeMap::from([(2, control(&cpu).unwrap()), (3, control(&cpu).unwrap())])
    }

    #[test]
    fn every_register_gives_the_reason_and_advice() {
        let registers = PrefetchRegisters::new(MSR_DEVICES, JOURNALS, "/");
        let read = registers.read(&controls());
        assert_eq!(read.len(), 2);
        let error = read[&3].clone().unwrap_err();
        assert!(matches!(error.fault, MsrFault::NoModule(_)) && error.to_string().contains("need a driver"), "{error}");
        assert!(error.advice().to_string().contains("BIOS"));
        assert_eq!(Msr::new(MSR_DEVICES, "/").write(1, 0x1A4, 15).unwrap_err().register, 0x1A4);
    }

    #[test]
    fn nothing_is_changed_guarded_or_restored() {
        let registers = PrefetchRegisters::new(MSR_DEVICES, JOURNALS, "/");
        let error = PrefetchChange::begin(registers.clone(), &controls(), ChangeKind::Kept).unwrap_err();
        assert!(matches!(&error, PrefetchError::Register(MsrError { cpu: 2, fault: MsrFault::NoModule(_), .. })), "{error}");
        assert!(error.advice().to_string().contains("BIOS"));
        assert!(Guardian::start(&["prefetch", "guard", "1"]).is_err());
        assert_eq!(registers.restore().unwrap(), [Leftover::Nothing, Leftover::Nothing]);
        assert_eq!(run_guardian(&registers, "1").unwrap(), Leftover::Nothing);
        assert!(registers.waiting().is_empty());
    }
}
