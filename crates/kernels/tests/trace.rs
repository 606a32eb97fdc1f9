//! Every address that a kernel touches, in order.
//!
//! The streams are made inaccessible, so that every access faults. The fault's handler notes the address and lets the
//! instruction happen: on x86-64 by opening the page and single-stepping, elsewhere by skipping it, which no kernel notices since none
//! depends on what it loads. The
//! list is then compared with the declaration: all of the declared bytes, each once, in order, loads where it says loads and stores
//! where it
//! says stores.
#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure report")]

mod support;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use libc::{c_int, c_void, siginfo_t, ucontext_t};
use memgauge_kernels::{CHUNKS_PER_ITERATION, Kernel, Walk, available};
use memgauge_model::traffic::{LineUse, PersistMethod};
use support::{Guarded, needs, pointers, unit, visits, walks};

const STEPS: usize = 2;
const CHUNKS: usize = STEPS * CHUNKS_PER_ITERATION as usize;
/// Room for two steps of single bytes, loads and stores.
const ROOM: usize = 8192;

/// Address and, in the lowest bit of the second, whether it was a store.
static LOG: [(AtomicUsize, AtomicUsize); ROOM] = [const { (AtomicUsize::new(0), AtomicUsize::new(0)) }; ROOM];
static LOGGED: AtomicUsize = AtomicUsize::new(0);
/// First and last address of each stream's memory.
static TRACED: [(AtomicUsize, AtomicUsize); memgauge_kernels::MAX_STREAMS] =
    [const { (AtomicUsize::new(0), AtomicUsize::new(0)) }; memgauge_kernels::MAX_STREAMS];
/// The log is one and so are the signal handlers.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

extern "C" fn on_fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes both.
    let (address, context) = unsafe { ((*info).si_addr() as usize, &mut *context.cast::<ucontext_t>()) };
    let n = LOGGED.fetch_add(1, SeqCst);
    if n >= ROOM || !TRACED.iter().any(|(from, to)| (from.load(SeqCst)..to.load(SeqCst)).contains(&address)) {
        // Not ours: let it end the process.
        // SAFETY: restores the default.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        return;
    }
    match resume::after_access(context, address) {
        Some(store) => {
            LOG[n].0.store(address, SeqCst);
            LOG[n].1.store(usize::from(store), SeqCst);
        }
        None => LOGGED.store(n, SeqCst),
    }
}

#[cfg(target_arch = "x86_64")]
mod resume {
    use super::*;

    const TRAP_FLAG: i64 = 1 << 8;
    const PAGE_FAULT_WAS_WRITE: i64 = 1 << 1;
    const PAGE: usize = 4096;
    /// Pages open for the instruction that is stepped over: `movsb` and vector code touch two at most.
    static OPEN: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];

    /// Whether it was a store.
    pub(super) fn after_access(context: &mut ucontext_t, address: usize) -> Option<bool> {
        let page = address & !(PAGE - 1);
        // SAFETY: a page of a traced stream.
        unsafe { libc::mprotect(page as *mut c_void, PAGE, libc::PROT_READ | libc::PROT_WRITE) };
        for slot in &OPEN {
            if slot.compare_exchange(0, page, SeqCst, SeqCst).is_ok() {
                break;
            }
        }
        let registers = &mut context.uc_mcontext.gregs;
        registers[libc::REG_EFL as usize] |= TRAP_FLAG;
        Some(registers[libc::REG_ERR as usize] & PAGE_FAULT_WAS_WRITE != 0)
    }

    extern "C" fn on_step(_: c_int, _: *mut siginfo_t, context: *mut c_void) {
        for slot in &OPEN {
            let page = slot.swap(0, SeqCst);
            if page != 0 {
                // SAFETY: a page of a traced stream.
                unsafe { libc::mprotect(page as *mut c_void, PAGE, libc::PROT_NONE) };
            }
        }
        // SAFETY: the kernel passes it.
        unsafe { (*context.cast::<ucontext_t>()).uc_mcontext.gregs[libc::REG_EFL as usize] &= !TRAP_FLAG };
    }

    pub(super) fn install() {
        super::handle(libc::SIGTRAP, on_step);
    }
}

#[cfg(target_arch = "aarch64")]
mod resume {
    use super::*;

    pub(super) fn after_access(context: &mut ucontext_t, _: usize) -> Option<bool> {
        let pc = &mut context.uc_mcontext.pc;
        // SAFETY: the instruction that faulted.
        let instruction = unsafe { (*pc as *const u32).read() };
        *pc += 4;
        // `dc cvac`, `cvap` and `cvadp` fault on cores, and do not under QEMU.
        let cleans = [0xD50B_7A20, 0xD50B_7C20, 0xD50B_7D20].contains(&(instruction & !0x1F));
        // Loads and load pairs have bit 22 set, stores do not.
        (!cleans).then_some(instruction & (1 << 22) == 0)
    }

    pub(super) fn install() {}
}

#[cfg(target_arch = "riscv64")]
mod resume {
    use super::*;

    pub(super) fn after_access(context: &mut ucontext_t, _: usize) -> Option<bool> {
        let pc = &mut context.uc_mcontext.__gregs[0];
        // SAFETY: the instruction that faulted; 2 bytes of it exist for certain.
        let low = unsafe { (*pc as *const u16).read() };
        let compressed = low & 3 != 3;
        *pc += if compressed { 2 } else { 4 };
        // C.SD has funct3 7 and C.LD 3; STORE is opcode 0x23 and LOAD 0x03.
        Some(if compressed { low >> 13 == 7 } else { low & 0x7F == 0x23 })
    }

    pub(super) fn install() {}
}

/// The kernels whose accesses can be told one by one. Not `dc zva`: QEMU (7.2) does not say where in the program it faulted.
fn traceable() -> impl Iterator<Item = &'static Kernel> {
    available().filter(|k| k.name != "fill-zva")
}

fn handle(signal: c_int, handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void)) {
    // SAFETY: the handlers call only `mprotect` and `signal`.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
    }
}

/// One access: the offset in its stream, and whether it was a store.
type Touch = (usize, bool);

/// Every access of two steps as (stream, access), in order.
fn trace(kernel: &Kernel, walk: &Walk<'_>, delay: Option<u32>) -> Vec<(usize, Touch)> {
    let memory: Vec<Guarded> = (0..kernel.streams.len()).map(|i| Guarded::new(needs(kernel, walk, STEPS, i))).collect();
    for ((from, to), m) in TRACED.iter().zip(&memory) {
        from.store(m.start() as usize, SeqCst);
        to.store(m.end() as usize, SeqCst);
        m.protect(libc::PROT_NONE);
    }
    LOGGED.store(0, SeqCst);
    handle(libc::SIGSEGV, on_fault);
    resume::install();
    let mut walk = *walk;
    walk.streams = pointers(memory.iter().map(Guarded::start));
    // SAFETY: each stream has the memory that it needs; the handlers make it accessible, or the accesses void.
    unsafe { kernel.walk(&mut walk, STEPS, delay) };
    for (from, to) in &TRACED {
        from.store(0, SeqCst);
        to.store(0, SeqCst);
    }
    LOG[..LOGGED.load(SeqCst)]
        .iter()
        .map(|(address, store)| {
            let address = address.load(SeqCst);
            let (i, m) = memory.iter().enumerate().find(|(_, m)| (m.start() as usize..m.end() as usize).contains(&address)).unwrap();
            (i, (address - m.start() as usize, store.load(SeqCst) == 1))
        })
        .collect()
}

/// The accesses that the kernel declares for a stream, in order, for each chunk.
fn declared(kernel: &Kernel, walk: &Walk<'_>, stream: usize) -> Vec<Vec<Touch>> {
    let line = |(offset, store): (usize, bool)| {
        let mut touches: Vec<Touch> = (0..kernel.touched as usize).step_by(unit(kernel)).map(|part| (offset + part, store)).collect();
        // CLWB, CLFLUSHOPT and CLFLUSH need the right to read the line, and so are seen.
        let leaves =
            kernel.form.line == LineUse::WrittenBack || kernel.form.line.persists().is_some_and(|method| method != PersistMethod::NtStore);
        if store && leaves && cfg!(target_arch = "x86_64") {
            touches.push((offset, false));
        }
        touches
    };
    let visits = visits(kernel, walk, STEPS, stream);
    visits.chunks(visits.len() / CHUNKS).map(|chunk| chunk.iter().copied().flat_map(line).collect()).collect()
}

fn check(kernel: &Kernel, delay: Option<u32>) {
    for walk in walks(kernel) {
        let trace = trace(kernel, &walk, delay);
        for i in 0..kernel.streams.len() {
            let seen: Vec<Touch> = trace.iter().filter(|t| t.0 == i).map(|t| t.1).collect();
            assert!(!seen.is_empty());
            assert_eq!(seen, declared(kernel, &walk, i).concat(), "{}, delay {delay:?}, {walk:?}: stream {i}", kernel.name);
        }
    }
}

#[test]
fn touches_what_it_declares_in_order() {
    let _one = ONE_AT_A_TIME.lock();
    for kernel in traceable() {
        check(kernel, None);
    }
}

#[test]
fn paced_form_touches_the_same() {
    let _one = ONE_AT_A_TIME.lock();
    for kernel in traceable() {
        check(kernel, Some(0));
        check(kernel, Some(3));
    }
}

/// The chunks of a paced run are what the declaration says: each touches its lines of every stream, and as many lines as it says.
#[test]
fn streams_advance_chunk_by_chunk() {
    let _one = ONE_AT_A_TIME.lock();
    for kernel in traceable() {
        for walk in walks(kernel) {
            let trace = trace(kernel, &walk, Some(0));
            let declared: Vec<_> = (0..kernel.streams.len()).map(|i| declared(kernel, &walk, i)).collect();
            let lines: usize = (0..kernel.streams.len()).map(|i| visits(kernel, &walk, STEPS, i).len()).sum();
            assert_eq!(lines, CHUNKS * kernel.chunk_lines as usize, "{}", kernel.name);
            for (b, chunk) in trace.chunks(trace.len() / CHUNKS).enumerate() {
                for (i, declared) in declared.iter().enumerate() {
                    let seen: Vec<Touch> = chunk.iter().filter(|t| t.0 == i).map(|t| t.1).collect();
                    assert_eq!(Some(&seen), declared.get(b), "{}, {walk:?}: chunk {b}, stream {i}", kernel.name);
                }
            }
        }
    }
}
