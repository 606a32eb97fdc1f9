//! The operating system, as the rest of memgauge sees it.
//!
//! The engine, the program, the lab and the tests reach the operating system through this crate only. Each module lists by name what may be
//! used. All of it is implemented by one crate for each system, chosen below: the only place of the program that chooses.
//!
//! To support another system, write a crate with the same modules and names, and choose it here. The comment of each module says what must
//! be provided. What a system does not have is `None` or an error with a reason, never an invented value.
//!
//! Functions that describe the machine take a `root`: `/` for the running machine, or a folder that holds a recorded one. A system without
//! recordings may ignore it.

#[cfg(target_os = "linux")]
use memgauge_linux as system;
#[cfg(windows)]
use memgauge_windows as system;

pub mod clock;

/// Hardware performance counters and the system's own event counters.
///
/// - [`Catalogue`](counters::Catalogue): which events this machine has: those that metrics are computed from, and any by name.
/// - [`EventSet`](counters::EventSet), [`EncodedEvent`](counters::EncodedEvent): events to open, in groups that are counted together.
/// - [`OpenCounters`](counters::OpenCounters): counters that are open for a thread, for a program with its children, or for the whole
///   machine. Switching and reading them must be cheap enough to happen at the ends of a burst.
/// - [`CounterError`](counters::CounterError): why an event cannot be counted, and what helps.
/// - [`NO_PMU`](counters::NO_PMU), [`WITHHELD`](counters::WITHHELD): what helps where nothing is counted.
pub mod counters {
    pub use crate::system::counters::{
        Catalogue, CounterError, EncodedEvent, EventSet, NO_PMU, OpenCounters, Reading, WITHHELD, counts_nanoseconds, join_counts,
    };
}

/// CPUs and affinity.
///
/// - [`read_allowed`](cpu::read_allowed): the CPUs and nodes that this process may use now; cheap enough to be called between measurements.
/// - [`pin_to`](cpu::pin_to), [`current_cpu`](cpu::current_cpu): bind the calling thread to a CPU; the CPU that it runs on.
/// - [`why_not_pinned`](cpu::why_not_pinned): why binding failed, in words.
/// - [`process_affinity`](cpu::process_affinity): the CPUs that the main thread may run on; [`widen_affinity`](cpu::widen_affinity): all that
///   the process may ask for, instead of those that it was started on.
pub mod cpu {
    pub use crate::system::cpu::{AllowedSets, current_cpu, pin_to, process_affinity, read_allowed, why_not_pinned, widen_affinity};
}

/// Directories whose files serve as memory (persistent memory, tmpfs, any file system).
///
/// - [`read`](directory::read): the file system, the device and its node, whether its files can be mapped without the page cache, and the
///   free space.
pub mod directory {
    pub use crate::system::directory::{DirectoryError, read};
}

/// The state of the machine that affects results: privileges, huge pages, frequency control, and notes that say what is limited here and how
/// to lift it.
///
/// - [`read_environment`](environment::read_environment): all of that but the clock and the core frequencies, which must be measured.
pub mod environment {
    pub use crate::system::environment::read_environment;
}

/// Memory on a node, with pages of a kind, and the limits on how much of it may be used.
///
/// - [`Buffer`](memory::Buffer): memory on the node asked for, with the pages asked for, touched. Placement and pages are read back, or their
///   reason says why they cannot be. Nothing is left behind when the process ends.
/// - [`MemoryFault`](memory::MemoryFault): what happened to memory while it was measured, as [`Buffer::fault`](memory::Buffer::fault) says: a
///   file that was truncated, a device that failed, an error of the hardware ([`MemoryFaultKind`](memory::MemoryFaultKind)), and at which byte.
///   It costs the measurement and not the process.
/// - [`MemoryWatch`](memory::MemoryWatch): says when a measurement that takes most of the memory must stop taking.
/// - [`device_map`](memory::device_map): which memory devices may hold a physical address, as firmware describes it.
/// - [`prefer_out_of_memory_kill`](memory::prefer_out_of_memory_kill): a benchmark must be the first to die when memory runs out.
///
/// How much memory and CPU time the process may use (limits of the system, of containers and of the user) is in
/// `Machine::allowed`, which [`topology::read_machine`] fills.
pub mod memory {
    pub use memgauge_model::estimate::{MemoryFault, MemoryFaultKind};
    pub use memgauge_model::memory::{MemoryError, MemoryErrorKind};

    pub use crate::system::memory::{Buffer, MemoryWatch, prefer_out_of_memory_kill};
    pub use crate::system::topology::device_map;
}

/// What disturbed a measurement.
///
/// - [`NoiseProbe`](noise::NoiseProbe): time of other processes and of the hypervisor on the measured CPUs, page migrations, memory errors.
/// - [`thread_involuntary_switches`](noise::thread_involuntary_switches), [`thread_waited_ns`](noise::thread_waited_ns): how often, and for
///   how long, the calling thread was ready and did not run; read at both ends of every burst.
/// - [`busy_seconds`](noise::busy_seconds) in steps of [`BUSY_STEP_S`](noise::BUSY_STEP_S), [`ProcessTimes`](noise::ProcessTimes): how busy each
///   CPU is, and which processes are; [`may_be_hidden`](noise::may_be_hidden): whether these may be not all.
/// - [`thread_cpu_ns`](noise::thread_cpu_ns): how long the calling thread ran; read once in every window, so it must be cheap.
/// - [`memory_errors`](noise::memory_errors), [`dimm_errors`](noise::dimm_errors): errors that memory controllers have counted, and those of
///   each DIMM.
/// - [`stolen_seconds`](noise::stolen_seconds): time that a hypervisor gave to others.
/// - [`thermal_throttles`](noise::thermal_throttles): how often heat throttled cores and packages.
pub mod noise {
    pub use crate::system::edac::{dimm_errors, memory_errors};
    pub use crate::system::heat::thermal_throttles;
    pub use crate::system::noise::{
        BUSY_STEP_S, NoiseProbe, busy_seconds, stolen_seconds, thread_cpu_ns, thread_involuntary_switches, thread_waited_ns,
    };
    pub use crate::system::processes::{ProcessTimes, may_be_hidden};
}

/// Files and folders: whose they are, locks, and what is no file.
///
/// - [`foreign_owner`](files::foreign_owner), [`is_own`](files::is_own), [`is_open_to_all`](files::is_open_to_all): whom a path can be trusted
///   to come from; [`open_to_all_advice`](files::open_to_all_advice): what to do where everybody may write.
/// - [`is_stream`](files::is_stream), [`names_open_file`](files::names_open_file), [`write_to_stream`](files::write_to_stream): what is written
///   to as it is, not replaced.
/// - [`permissions`](files::permissions), [`copy_owner`](files::copy_owner): what a new file gets, or takes over from the one that it replaces.
/// - [`open_private`](files::open_private), [`try_lock`](files::try_lock): a file that only one process holds; the system gives its lock back
///   when the process ends. Its content can be read meanwhile.
/// - [`open_regular`](files::open_regular), [`read_regular`](files::read_regular): files that somebody else may have made, read with a bound;
///   [`read_to_end`](files::read_to_end): what the user names, which may be a pipe.
/// - [`why_not_own`](files::why_not_own): whether others could change what is written in a folder.
/// - [`process_has_ended`](files::process_has_ended), [`numbering_of_processes`](files::numbering_of_processes): whether what a process left may
///   be removed.
/// - [`sync_folder`](files::sync_folder): the names in a folder outlast a power cut.
/// - [`link_to`](files::link_to), [`folder_in_memory`](files::folder_in_memory): a second name for a file; a folder that needs no disk.
pub mod files;

/// Which host this is: its [`name`](host::name), a [`machine_id`](host::machine_id) that stays the same and is not to be published, and
/// [`random_uuid`](host::random_uuid) to tell runs apart.
pub mod host {
    pub use crate::system::host::{machine_id, name, random_uuid};
}

/// The kernel's weights for weighted interleave.
///
/// - [`KernelWeights`](interleave::KernelWeights): reads them, sets them with a journal, and puts back what they were.
pub mod interleave {
    pub use crate::system::interleave::{KernelWeights, RestoredWeights, WeightsError, WeightsState};
}

/// The registers that switch hardware prefetchers, changed so that they are always restored.
///
/// - [`PrefetchRegisters`](prefetch::PrefetchRegisters): reads them, and restores what a run that was killed has left.
/// - [`PrefetchChange`](prefetch::PrefetchChange): saves the registers, then changes and verifies them; restores them on drop.
/// - [`Guardian`](prefetch::Guardian), [`run_guardian`](prefetch::run_guardian): a process that restores them when the run is killed.
/// - [`Msr`](prefetch::Msr): single registers, for the lab.
///
/// A system without access to registers returns [`MsrError`](prefetch::MsrError) for every CPU.
pub mod prefetch {
    pub use crate::system::prefetch::{
        ChangeKind, Guardian, JOURNALS, Leftover, MSR_DEVICES, Msr, MsrError, MsrFault, PrefetchChange, PrefetchError, PrefetchRegisters,
        run_guardian,
    };
}

/// This process, and the limits that it was started with.
///
/// - [`run`](process::run): runs the program with enough stack, whatever the limit on stacks.
/// - [`sleep`](process::sleep): sleeps, without panicking where a filter of system calls denies that.
/// - [`standard_output_was_closed`](process::standard_output_was_closed): what is printed then is lost, without an error.
/// - [`interprets_escapes`](process::interprets_escapes): whether terminals here show colours, and not the sequences for them.
/// - [`MORE_THREADS`](process::MORE_THREADS), [`MORE_STACK`](process::MORE_STACK): what helps where a thread cannot be started.
/// - [`state_folder`](process::state_folder): the folder in which programs keep their state.
/// - [`has_more_privileges_than_its_user`](process::has_more_privileges_than_its_user): the environment is then not to be trusted.
pub mod process {
    pub use crate::system::process::{
        MORE_STACK, MORE_THREADS, has_more_privileges_than_its_user, interprets_escapes, run, sleep, standard_output_was_closed,
        state_folder,
    };
}

/// Other programs.
///
/// - [`run`](program::run): runs a program to its end, with the signals that this process receives passed on to it.
pub mod program {
    pub use crate::system::program::run;
}

/// The nodes of other processes' memory, and the CPUs of their threads.
///
/// - [`read`](residency::read): the memory of a process by node, page, mapping and policy, or why it cannot be seen.
/// - [`forget_touched`](residency::forget_touched): begins anew with the pages that a process touches.
/// - [`ThreadWatch`](residency::ThreadWatch): on which CPUs the threads of processes run.
/// - [`with_children`](residency::with_children), [`of_cgroup`](residency::of_cgroup): processes that belong together.
/// - [`free_by_node`](residency::free_by_node): memory that may be had on each node.
/// - [`numa_balancing`](residency::numa_balancing): whether the system moves pages and threads towards each other.
pub mod residency {
    pub use crate::system::residency::{ThreadWatch, forget_touched, free_by_node, numa_balancing, of_cgroup, read, with_children};
}

/// What denies something to this process.
///
/// - [`explained`](security::explained): an error in words, and with a refusal the security module that confines this process.
/// - [`explained_start`](security::explained_start): the same for a thread that was not started, whose errors all look like a limit.
pub mod security {
    pub use crate::system::security::{explained, explained_start};
}

/// Events that ask the program to end: signals, or those of a console.
///
/// - [`watch`](signals::watch): calls a function with the number of each; [`name`](signals::name): what people call it;
///   [`status`](signals::status): the exit status of what it ends.
/// - [`INTERRUPT`](signals::INTERRUPT), [`TERMINATE`](signals::TERMINATE): Ctrl-C, and what a service manager sends.
/// - [`is_repeated`](signals::is_repeated): it comes again by itself, so that a second one does not insist.
/// - [`end_now`](signals::end_now): ends the program at once, from within such a function.
/// - [`interrupt_child`](signals::interrupt_child): passes the wish to end on to a program that this one has started.
/// - [`survive_file_size_limit`](signals::survive_file_size_limit): a write beyond a limit on file sizes fails, and ends nothing.
pub mod signals {
    pub use crate::system::signals::{
        INTERRUPT, TERMINATE, end_now, interrupt_child, is_repeated, name, status, survive_file_size_limit, watch,
    };
}

/// A word of shared memory by which another program starts a measurement.
///
/// - [`StartSignal`](start_signal::StartSignal): opens or creates it by name, waits for the start, says when it is done.
pub mod start_signal {
    pub use crate::system::start_signal::{StartSignal, StartSignalError};
}

/// The machine: its CPUs, cores, caches, memory nodes and identity, and what this process may use of them.
///
/// - [`read_machine`](topology::read_machine): all of it, for the running machine or for a recorded one.
pub mod topology {
    pub use crate::system::topology::{TopologyError, read_machine};
}
