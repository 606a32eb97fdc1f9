//! What kernels leave in memory: the declared bytes, the right ones, and not one more.
#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure report")]

mod support;

use memgauge_kernels::{CHUNKS_PER_ITERATION, Kernel, LINE, Line, Order, Walk, all, available, checksum_xor, find, rows};
use memgauge_model::traffic::{Access, Form, LineUse, Mix, PersistMethod, Width};
use support::{Guarded, expected, needs, noise, pointers, walks};

/// A line in which each byte differs from the others.
const PATTERN: Line = {
    let mut bytes = [0; LINE as usize];
    let mut i = 0;
    while i < bytes.len() {
        bytes[i] = 0x80 + i as u8;
        i += 1;
    }
    Line(bytes)
};

/// Runs the kernel over guarded memory, `lead` bytes behind the start of it, and checks every byte of it.
fn check(kernel: &Kernel, walk: &Walk<'_>, steps: usize, lead: usize, delay: Option<u32>) {
    let sizes = (0..kernel.streams.len()).map(|i| needs(kernel, walk, steps, i));
    let mut memory: Vec<Guarded> = sizes.map(|bytes| Guarded::new(lead + bytes + 4096)).collect();
    let before: Vec<Vec<u8>> = memory
        .iter_mut()
        .zip(0..)
        .map(|(m, i)| {
            noise(m.bytes(), i + 1);
            m.bytes().to_vec()
        })
        .collect();
    let mut walk = *walk;
    walk.streams = pointers(memory.iter().map(|m| m.start().wrapping_add(lead)));
    // SAFETY: each stream has the memory that it needs.
    unsafe { kernel.walk(&mut walk, steps, delay) };
    for (i, want) in expected(kernel, &walk, steps, lead, &before).iter().enumerate() {
        if memory[i].bytes() == want {
            continue;
        }
        let wrong = memory[i].bytes().iter().zip(want).position(|(a, b)| a != b);
        assert_eq!(wrong, None, "{} with {steps} steps, {lead} bytes lead, delay {delay:?}, {walk:?}: stream {i}", kernel.name);
    }
}

#[test]
fn writes_exactly_the_declared_bytes() {
    for kernel in available() {
        for walk in walks(kernel) {
            for steps in [0, 1, 2, 7] {
                for lead in [0, 64, 192] {
                    check(kernel, &walk, steps, lead, None);
                }
            }
        }
    }
}

#[test]
fn paced_form_writes_the_same() {
    for kernel in available() {
        for walk in walks(kernel) {
            for steps in [0, 1, 5] {
                for delay in [0, 1, 100] {
                    check(kernel, &walk, steps, 64, Some(delay));
                }
            }
        }
    }
}

/// Every part of a line stored comes from its place in the line given.
#[test]
fn stores_the_line_that_it_is_given() {
    for kernel in available() {
        for walk in walks(kernel) {
            for delay in [None, Some(0)] {
                check(kernel, &walk.storing(&PATTERN), 2, 64, delay);
            }
        }
    }
}

/// Streams that end at an inaccessible page, and streams that begin behind one: an access before or behind them would fault.
#[test]
fn stays_within_its_streams() {
    for kernel in available() {
        for walk in walks(kernel) {
            for steps in [1, 3] {
                let sizes: Vec<usize> = (0..kernel.streams.len()).map(|i| needs(kernel, &walk, steps, i)).collect();
                let memory: Vec<Guarded> = sizes.iter().map(|&bytes| Guarded::new(bytes)).collect();
                let first = pointers(memory.iter().map(Guarded::start));
                let last = pointers(memory.iter().zip(&sizes).map(|(m, bytes)| m.end().wrapping_sub(*bytes)));
                for streams in [first, last] {
                    for delay in [None, Some(1)] {
                        let mut walk = walk;
                        walk.streams = streams;
                        // SAFETY: each stream has the memory that it needs.
                        unsafe { kernel.walk(&mut walk, steps, delay) };
                    }
                }
            }
        }
    }
}

/// An order visits each line of its window once in a pass, wherever the pass begins; the window is not much smaller than asked.
#[test]
fn orders_visit_each_line_once_a_pass() {
    for lines in [36, 40, 71, 72, 600, 1151, 1152, 1300, 5000, 40_000, 100_000, 1 << 20] {
        let order = Order::new(lines, lines as u64).unwrap();
        let window = order.lines();
        assert!(window <= lines && (window > lines - 36 || window * 16 > lines * 15), "{window} lines of {lines}");
        for start in [0, 1, 12_345] {
            let mut seen = vec![false; window];
            for n in 0..window {
                let line = order.line_at(start + n);
                assert!(!seen[line], "{lines} lines, line {line} again");
                seen[line] = true;
            }
        }
    }
    for lines in [0, 1, 35] {
        assert!(Order::new(lines, 1).is_none());
    }
}

/// Differences that a prefetcher could learn do not repeat, and lines that are on their way together are spread over low and high bits of
/// the address as random numbers are: of 32 random numbers below 32, 20.4 differ, and of these within a tenth of that.
#[test]
fn orders_have_no_pattern() {
    for lines in [1 << 12, 100_000, 1 << 20] {
        let order = Order::new(lines, 7).unwrap();
        let sequence: Vec<usize> = (0..order.lines()).map(|n| order.line_at(n)).collect();
        let repeated = sequence.windows(3).filter(|w| w[2].wrapping_sub(w[1]) == w[1].wrapping_sub(w[0])).count();
        assert!(repeated * 100 < sequence.len(), "{repeated} of {} steps go as far as the one before", sequence.len());
        // By chance, 127 of as many steps as there are lines.
        let near = sequence.windows(2).filter(|w| w[1].abs_diff(w[0]) < 64).count();
        assert!(near < 500, "{near} of {} steps stay near", sequence.len());
        for shift in [0, 3, sequence.len().ilog2() / 2, sequence.len().ilog2() - 5] {
            let groups = sequence.chunks_exact(32);
            let n = groups.len();
            let distinct = |group: &[usize]| group.iter().fold(0_u32, |set, line| set | 1 << (line >> shift & 31)).count_ones();
            let mean = f64::from(groups.map(distinct).sum::<u32>()) / n as f64;
            assert!((18.4..22.4).contains(&mean), "{mean} distinct values of bits {shift} up, of 32 lines in {lines}");
        }
    }
}

/// What scalar code finds.
fn xor(bytes: &[u8]) -> u64 {
    bytes.chunks_exact(8).fold(0, |sum, word| sum ^ u64::from_ne_bytes(word.try_into().unwrap()))
}

#[test]
fn checked_kernels_sum_what_they_load() {
    let mut memory = Guarded::new(8 << 10);
    noise(memory.bytes(), 99);
    let checked: Vec<&Kernel> = available().filter(|k| k.form.line == LineUse::Checked).collect();
    assert!(!checked.is_empty());
    for kernel in checked {
        for steps in [0, 1, 7] {
            for delay in [None, Some(0), Some(3)] {
                let mut walk = Walk::new(pointers([memory.start()]));
                walk.sum = PATTERN;
                // SAFETY: the stream has the memory that it needs.
                unsafe { kernel.walk(&mut walk, steps, delay) };
                let want = xor(&memory.bytes()[..steps * kernel.streams[0].advance()]) ^ xor(&PATTERN.0);
                assert_eq!(walk.sum.xor_of_words(), want, "{}, {steps} steps, delay {delay:?}", kernel.name);
            }
        }
    }
}

#[test]
fn checksum_is_that_of_every_word_and_changes_with_any_bit() {
    let mut memory = Guarded::new(256 << 10);
    noise(memory.bytes(), 5);
    for words in (0..300).chain([4096, 32_768]) {
        for lead in [0, 8, 24, 64] {
            let bytes = (words * 8).min(memory.len() - lead);
            // SAFETY: within the memory.
            let sum = unsafe { checksum_xor(memory.start().wrapping_add(lead), bytes) };
            assert_eq!(sum, xor(&memory.bytes()[lead..lead + bytes]), "{bytes} bytes, lead {lead}");
        }
    }
    let (start, len) = (memory.start(), memory.len());
    // SAFETY: within the memory.
    let sum = || unsafe { checksum_xor(start, len) };
    let whole = sum();
    for (byte, bit) in [(0, 0), (77_777, 3), (len - 1, 7)] {
        memory.bytes()[byte] ^= 1 << bit;
        assert_eq!(whole ^ sum(), 1 << (byte % 8 * 8 + bit));
        memory.bytes()[byte] ^= 1 << bit;
    }
}

/// The declaration follows from the mix: the ratio of lines, and chunks of four lines or, where the smallest unit has another number, of
/// one unit.
#[test]
fn declares_what_its_mix_says() {
    for kernel in all() {
        let (loads, stores) = kernel.mix.lines();
        let (read, written) = (kernel.lines_read_per_iteration(), kernel.lines_written_per_iteration());
        assert_eq!(read * u64::from(stores), written * u64::from(loads), "{}", kernel.name);
        assert_eq!(read + written, u64::from(CHUNKS_PER_ITERATION * kernel.chunk_lines), "{}", kernel.name);
        assert_eq!(kernel.chunk_lines, if 4 % (loads + stores) == 0 { 4 } else { loads + stores }, "{}", kernel.name);
        assert_eq!(kernel.read_per_iteration(), read * u64::from(kernel.touched), "{}", kernel.name);
        assert_eq!(kernel.written_per_iteration(), written * u64::from(kernel.touched), "{}", kernel.name);
        // One access of 64 bytes is no part: a core need not read a line of which it stores all.
        assert_eq!(kernel.touched < LINE, kernel.form.line == LineUse::Part, "{}", kernel.name);
        let streams = kernel.streams.len();
        match kernel.mix {
            _ if matches!(kernel.form.access, Access::Random | Access::Blocks) => assert_eq!(streams, 1, "{}", kernel.name),
            Mix::R3W1X2 | Mix::R2W1Nt => assert_eq!(streams, 3, "{}", kernel.name),
            Mix::R9W1 | Mix::R4W1 | Mix::R3W1 | Mix::R2W1 | Mix::R3W2 | Mix::R3W1Nt | Mix::R2W1NtX1 | Mix::R1W1Nt | Mix::Copy => {
                assert_eq!(streams, 2, "{}", kernel.name);
            }
            // These have variants with more.
            Mix::AllReads | Mix::R1W1 | Mix::NtWrite | Mix::Fill => {}
        }
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

/// The mixes of this form that this CPU has.
fn mixes(access: Access, line: LineUse) -> Vec<Mix> {
    let form = Form { access, line };
    Mix::ALL.into_iter().filter(|&mix| available().any(|k| k.mix == mix && k.form == form)).collect()
}

/// Every instruction set has every mix that it can have without extensions; riscv64 has neither non-temporal stores nor string instructions.
#[test]
fn every_mix_can_run_here() {
    let possible = |mix: &Mix| memgauge_kernels::isa() != "riscv64" || !(mix.non_temporal() || *mix == Mix::Fill);
    let all_but = |without: &[Mix]| Mix::ALL.into_iter().filter(possible).filter(|mix| !without.contains(mix)).collect::<Vec<_>>();
    // `dc zva` may be switched off or have another block size.
    let unless_arm = if memgauge_kernels::isa() == "aarch64" { &[Mix::Fill][..] } else { &[] };
    let mut whole = mixes(Access::Sequential, LineUse::Whole);
    whole.retain(|mix| !unless_arm.contains(mix));
    assert_eq!(whole, all_but(unless_arm));
    assert_eq!(mixes(Access::Strided, LineUse::Whole), all_but(&[Mix::Copy, Mix::Fill]));
    assert_eq!(mixes(Access::Strided, LineUse::Part), [Mix::AllReads, Mix::R4W1, Mix::R3W1, Mix::R2W1, Mix::R3W2, Mix::R1W1]);
    assert_eq!(mixes(Access::Random, LineUse::Whole), all_but(&[Mix::R3W1X2, Mix::R2W1Nt, Mix::Copy, Mix::Fill]));
    assert_eq!(mixes(Access::Sequential, LineUse::Checked), [Mix::AllReads]);
    for mix in Mix::ALL {
        let random = mixes(Access::Random, LineUse::Whole);
        assert!(!possible(&mix) || matches!(mix, Mix::Copy | Mix::Fill) || random.contains(&mix.with_one_read_stream()), "{mix}");
    }
}

/// Kernels that write lines back exist where the CPU says that it can, and nowhere else.
#[test]
fn writing_back_needs_its_instruction() {
    let has = |name: &str| available().any(|k| k.name == name);
    let expected = [Mix::R9W1, Mix::R4W1, Mix::R3W1, Mix::R2W1, Mix::R3W2, Mix::R1W1];
    let found = mixes(Access::Sequential, LineUse::WrittenBack);
    #[cfg(target_arch = "x86_64")]
    {
        let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let flag = |name: &str| flags.split_whitespace().any(|f| f == name);
        assert_eq!(has("store-sse2-clwb"), flag("clwb"));
        assert_eq!(has("store-sse2-clflushopt"), flag("clflushopt"));
        assert_eq!(has("mix-2:1-avx512-clwb"), flag("clwb") && flag("avx512f"));
        assert_eq!(found, if flag("clwb") || flag("clflushopt") { &expected[..] } else { &[] });
    }
    #[cfg(target_arch = "aarch64")]
    {
        assert!(has("store-neon-cvac"));
        assert_eq!(found, expected);
    }
    #[cfg(target_arch = "riscv64")]
    {
        assert!(!has("store-scalar-cbo"));
        assert_eq!(found, &expected[..0]);
    }
}

/// Kernels that make lines durable exist where the CPU says that it can, each with one that reads what it has made durable.
#[test]
fn persisting_needs_its_instruction() {
    let has = |method| {
        [LineUse::Persisted(method), LineUse::ReadBack(method)]
            .map(|line| available().any(|k| k.form == Form { access: Access::Blocks, line }))
    };
    let methods: Vec<PersistMethod> = PersistMethod::ALL.into_iter().filter(|method| has(*method) == [true, true]).collect();
    assert!(PersistMethod::ALL.into_iter().all(|method| has(method)[0] == has(method)[1]));
    #[cfg(target_arch = "x86_64")]
    {
        let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let flag = |name: &str| flags.split_whitespace().any(|f| f == name);
        let expected = [
            (PersistMethod::Clwb, flag("clwb")),
            (PersistMethod::Clflushopt, flag("clflushopt")),
            (PersistMethod::Clflush, true),
            (PersistMethod::NtStore, true),
        ];
        assert_eq!(methods, expected.into_iter().filter(|e| e.1).map(|e| e.0).collect::<Vec<_>>());
    }
    #[cfg(target_arch = "aarch64")]
    {
        let (cvap, cvadp) = (std::arch::is_aarch64_feature_detected!("dpb"), std::arch::is_aarch64_feature_detected!("dpb2"));
        assert_eq!([PersistMethod::Cvap, PersistMethod::Cvadp].map(|m| methods.contains(&m)), [cvap, cvadp]);
    }
    #[cfg(target_arch = "riscv64")]
    assert_eq!(methods, []);
}
