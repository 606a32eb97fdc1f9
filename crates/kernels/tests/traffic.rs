//! What kernels leave in memory: the declared bytes, the right ones, and not one more.
#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure report")]

mod support;

use memgauge_core::traffic::{Mix, Width};
use memgauge_kernels::{BURSTS_PER_STEP, Kernel, LINE, all, available, find, rows};
use support::{Guarded, expected, noise, pointers};

/// Runs the kernel over guarded memory, `lead` bytes behind the start of it, and checks every byte of it.
fn check(kernel: &Kernel, steps: usize, lead: usize, delay: Option<u32>) {
    let mut memory: Vec<Guarded> = kernel.streams.iter().map(|s| Guarded::new(lead + steps * s.advance() + 4096)).collect();
    let before: Vec<Vec<u8>> = memory
        .iter_mut()
        .zip(0..)
        .map(|(m, i)| {
            noise(m.bytes(), i + 1);
            m.bytes().to_vec()
        })
        .collect();
    let p = pointers(memory.iter().map(|m| m.start().wrapping_add(lead)));
    // SAFETY: each stream has the memory that it needs.
    unsafe { support::run(kernel, &p, steps, delay) };
    let read: Vec<&[u8]> = kernel.streams.iter().zip(&before).filter(|(s, _)| s.read > 0).map(|(_, b)| &b[lead..]).collect();
    for (i, stream) in kernel.streams.iter().enumerate() {
        let mut want = before[i].clone();
        if stream.write > 0 {
            let written = steps * stream.write as usize;
            want[lead..lead + written].copy_from_slice(&expected(kernel, &read, written));
        }
        let wrong = memory[i].bytes().iter().zip(&want).position(|(a, b)| a != b);
        assert_eq!(wrong, None, "{} with {steps} steps, {lead} bytes lead, delay {delay:?}: stream {i}", kernel.name);
    }
}

#[test]
fn writes_exactly_the_declared_bytes() {
    for kernel in available() {
        for steps in [0, 1, 2, 7] {
            for lead in [0, 64, 192] {
                check(kernel, steps, lead, None);
            }
        }
    }
}

#[test]
fn paced_form_writes_the_same() {
    for kernel in available() {
        for steps in [0, 1, 5] {
            for delay in [0, 1, 100] {
                check(kernel, steps, 64, Some(delay));
            }
        }
    }
}

/// Streams that end at an inaccessible page, and streams that begin behind one: an access before or behind them would fault.
#[test]
fn stays_within_its_streams() {
    for kernel in available() {
        for steps in [1, 3] {
            let memory: Vec<Guarded> = kernel.streams.iter().map(|s| Guarded::new(steps * s.advance())).collect();
            let first = pointers(memory.iter().map(Guarded::start));
            let last = pointers(memory.iter().zip(kernel.streams).map(|(m, s)| m.end().wrapping_sub(steps * s.advance())));
            // SAFETY: each stream has the memory that it needs.
            unsafe {
                kernel.run(&first, steps);
                kernel.run(&last, steps);
                kernel.run_paced(&first, steps, 1);
                kernel.run_paced(&last, steps, 1);
            }
        }
    }
}

/// The declaration follows from the mix: the ratio of lines, and bursts of four lines or, where the smallest unit has three, of three.
#[test]
fn declares_what_its_mix_says() {
    for kernel in all() {
        let (loads, stores) = kernel.mix.lines();
        let (read, written) = (kernel.read_per_step(), kernel.written_per_step());
        assert_eq!(read * u64::from(stores), written * u64::from(loads), "{}", kernel.name);
        assert_eq!(read + written, u64::from(BURSTS_PER_STEP * kernel.burst_lines * LINE), "{}", kernel.name);
        assert_eq!(kernel.burst_lines, if loads + stores == 3 { 3 } else { 4 }, "{}", kernel.name);
    }
}

#[test]
fn names_are_unique_and_found() {
    for kernel in all() {
        assert_eq!(all().iter().filter(|k| k.name == kernel.name).count(), 1, "{}", kernel.name);
        assert_eq!(find(kernel.name).map(|k| k.name), Some(kernel.name));
        if kernel.width != Width::String {
            assert!(kernel.name.contains(kernel.width.name()), "{}", kernel.name);
        }
    }
    assert!(find("no-such-kernel").is_none());
    assert_eq!(rows().len(), available().count());
}

/// Every instruction set has every mix that it can have without extensions; riscv64 has neither non-temporal stores nor string instructions.
#[test]
fn every_mix_can_run_here() {
    for mix in Mix::ALL {
        let wanted = memgauge_kernels::isa() != "riscv64" || !(mix.non_temporal() || mix == Mix::Fill);
        // `dc zva` may be switched off or have another block size.
        if mix == Mix::Fill && memgauge_kernels::isa() == "aarch64" {
            continue;
        }
        assert_eq!(available().any(|k| k.mix == mix), wanted, "{mix}");
    }
}
