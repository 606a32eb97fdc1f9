//! Whether plain stores of whole lines read the line first (read for ownership), for one class of loaders.
//!
//! Three kinds of stores run in turn over the same buffers: the kernel that is measured, parts of lines, and non-temporal stores, all with the
//! same loads beside them. A core cannot avoid reading a line that it stores only in part, and never reads for a non-temporal store. When
//! memory limits all three, a kernel that is as slow as parts reads first, and one that is as fast as non-temporal stores does not (Intel's
//! SpecI2M, Arm's write streaming; Laukemann and others, arXiv 2409.08108). SpecI2M depends on how busy memory is, so what was found holds
//! for the same kernel by as many CPUs on the same memory only.

use memgauge_kernels::{self as kernels, Kernel};
use memgauge_model::protocol::{RFO_KINDS, RFO_ROUNDS};
use memgauge_model::result::{RfoEvidence, RfoReason};
use memgauge_model::stats;
use memgauge_model::traffic::{Access, Form, LineUse, Rfo, StoreKind, Width};

use crate::error::Result;
use crate::kernel_choice::TrialKey;

/// The maximum number of rounds: a round with a disturbed burst is repeated while there are not enough others.
const MAX_ROUNDS: usize = 15;
/// Rounds that must agree: on a busy machine each says something else.
const AGREEING: usize = 4;
/// Bandwidths within this factor of each other are the same: above what a short burst scatters.
const SAME: f64 = 1.12;
/// From this factor on they are different. Half of the bus's bytes would be a factor of two, but non-temporal stores have limits of their own:
/// on Zen 5 in a virtual machine they are 1.3 times as fast as stores that must read. Loads beside the stores make it smaller: three loads
/// to one store leave 1.25.
const DIFFERENT: f64 = 1.2;

/// The kernels that are compared: the one that is measured, of parts of lines, and non-temporal.
pub(crate) type Stores = [&'static Kernel; RFO_KINDS];
/// GB/s of each kind of store in one round.
pub(crate) type Round = [Option<f64>; RFO_KINDS];

/// Whether a cell's plain stores read the line first, and how that is known, or why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoresRead {
    pub(crate) rfo: Rfo,
    pub(crate) reason: RfoReason,
}

impl StoresRead {
    pub(crate) const fn unknown(reason: RfoReason) -> Self {
        Self { rfo: Rfo::Unknown, reason }
    }

    /// The same where loaders wait `delay` core cycles after each four lines. Cores that avoid reading do so when memory is busy, and those
    /// that read when it is busiest also read when it is not; the reverse is not known.
    pub(crate) const fn at_delay(self, delay: u32) -> Self {
        if delay > 0 && matches!(self.rfo, Rfo::No) { Self::unknown(RfoReason::Delayed) } else { self }
    }

    /// Whether one kernel's stores read lines first, if plain stores of whole lines do as `self` says. Without stores, or with non-temporal ones of
    /// whole lines only, the answer needs no reason. `partial`: whether lines of the machine are longer than what is stored.
    pub(crate) fn of_kernel(self, kernel: &Kernel, partial: bool) -> (Rfo, Option<RfoReason>) {
        match () {
            () if kernel.mix.lines().1 == 0 => (Rfo::No, None),
            // Memory, or a buffer on the way, may have to read the rest.
            () if kernel.mix.non_temporal() && partial => (Rfo::Unknown, Some(RfoReason::PartOfLine)),
            () if kernel.mix.non_temporal() => (Rfo::No, None),
            // No core can avoid reading a line that it stores only in part.
            () if kernel.form.line == LineUse::Part || partial => (Rfo::Yes, Some(RfoReason::PartOfLine)),
            () if chooses_its_stores(kernel) => (Rfo::Unknown, Some(RfoReason::StringInstruction)),
            () => (self.rfo, Some(self.reason)),
        }
    }
}

/// Whether a string instruction decides how to store.
fn chooses_its_stores(kernel: &Kernel) -> bool {
    kernel.width == Width::String || kernel.mix.stores() == StoreKind::ByString
}

/// Whether only a measurement shows if a kernel's stores read lines first.
pub(crate) fn must_be_measured(kernel: &Kernel) -> bool {
    kernel.mix.lines().1 > 0 && !kernel.mix.non_temporal() && kernel.form.line != LineUse::Part && !chooses_its_stores(kernel)
}

/// The findings on plain stores, by all that they depend on: the traffic with the CPUs and the memory, and the kernel.
#[derive(Default)]
pub(crate) struct KnownStores {
    known: Vec<(TrialKey, &'static str, StoresRead)>,
    /// The measurements behind the findings.
    pub(crate) evidence: Vec<RfoEvidence>,
}

impl KnownStores {
    /// The finding on the stores of a class; `None` for a class that is new.
    pub(crate) fn find(&self, class: &TrialKey, kernel: &'static Kernel) -> Option<StoresRead> {
        self.known.iter().find(|(known, name, _)| *name == kernel.name && known == class).map(|(.., read)| *read)
    }

    pub(crate) fn add(&mut self, class: TrialKey, kernel: &'static Kernel, found: RfoEvidence) -> StoresRead {
        let read = StoresRead { rfo: found.rfo, reason: found.reason };
        self.known.push((class, kernel.name, read));
        self.evidence.push(found);
        read
    }
}

/// The kernels that `kernel` is compared with, which load as much beside their stores and visit the same lines.
pub(crate) fn compared_with(kernel: &'static Kernel) -> Option<Stores> {
    let non_temporal = kernel.mix.compared_with()?;
    if kernel.form.line != LineUse::Whole || kernel.form.access == Access::Random {
        return None;
    }
    let part = Form { access: Access::Strided, line: LineUse::Part };
    let parts = kernels::available().filter(|k| k.form == part && k.mix.lines() == kernel.mix.lines());
    let past_caches = kernels::available().filter(|k| k.form == kernel.form && k.mix == non_temporal);
    // Of parts the narrowest, which are the least likely to be taken for a whole line.
    Some([kernel, parts.min_by_key(|k| k.width)?, past_caches.max_by_key(|k| k.width)?])
}

/// Measures rounds until enough of them agree. `measure` runs one kind of store: its GB/s, and whether nothing disturbed it.
pub(crate) fn measure_rounds(
    stores: Stores,
    mut measure: impl FnMut(&'static Kernel) -> Result<(Option<f64>, bool)>,
) -> Result<Vec<Round>> {
    let (mut rounds, mut disturbed): (Vec<Round>, Vec<Round>) = (Vec::new(), Vec::new());
    for _ in 0..MAX_ROUNDS {
        let (mut round, mut undisturbed) = ([None; RFO_KINDS], true);
        for (kernel, gbs) in stores.into_iter().zip(&mut round) {
            let (rate, quiet) = measure(kernel)?;
            *gbs = rate;
            undisturbed &= quiet;
        }
        if undisturbed { &mut rounds } else { &mut disturbed }.push(round);
        if rounds.len() == RFO_ROUNDS || agreed(&conclusions(&rounds)).is_some() {
            break;
        }
    }
    if rounds.len() < AGREEING {
        // A busy machine: the rounds that there are must agree all the same.
        let missing = RFO_ROUNDS.saturating_sub(rounds.len());
        rounds.extend(disturbed.into_iter().rev().take(missing));
    }
    Ok(rounds)
}

/// The conclusion from each round that has all three bandwidths.
fn conclusions(rounds: &[Round]) -> Vec<StoresRead> {
    let whole = rounds.iter().filter_map(|r| match *r {
        [Some(whole), Some(part), Some(nt)] if whole > 0.0 && part > 0.0 && nt > 0.0 => Some(decide(whole, part, nt)),
        _ => None,
    });
    whole.collect()
}

/// The conclusion that enough rounds agree on.
fn agreed(found: &[StoresRead]) -> Option<StoresRead> {
    found.iter().find(|one| found.iter().filter(|other| other.rfo == one.rfo).count() >= AGREEING).copied()
}

/// Draws the conclusion from the bandwidths of whole lines, parts and non-temporal stores, in GB/s of lines, round by round.
pub(crate) fn conclude(stores: Stores, rounds: &[Round]) -> RfoEvidence {
    let median = |kind: usize| stats::median(&rounds.iter().filter_map(|r| r[kind]).collect::<Vec<_>>());
    let found = conclusions(rounds);
    let enough = if found.len() < AGREEING { RfoReason::TooLittleTime } else { RfoReason::RoundsDisagree };
    let StoresRead { rfo, reason } = agreed(&found).unwrap_or(StoresRead::unknown(enough));
    RfoEvidence {
        rfo,
        reason,
        kernels: stores.map(|k| k.name.to_owned()).to_vec(),
        whole_gbs: median(0),
        part_gbs: median(1),
        non_temporal_gbs: median(2),
        ..RfoEvidence::default()
    }
}

fn decide(whole: f64, part: f64, nt: f64) -> StoresRead {
    let gap = nt / part;
    if gap < DIFFERENT {
        return StoresRead::unknown(RfoReason::NotMemoryBound);
    }
    // Never more than a third of the way from the one to the other.
    let near = SAME.min(gap.cbrt());
    let same = |a: f64, b: f64| a / b < near && b / a < near;
    match () {
        () if same(whole, part) => StoresRead { rfo: Rfo::Yes, reason: RfoReason::AsSlowAsParts },
        () if same(whole, nt) => StoresRead { rfo: Rfo::No, reason: RfoReason::AsFastAsNonTemporal },
        () => StoresRead::unknown(RfoReason::Between),
    }
}

#[cfg(test)]
mod tests {
    use memgauge_model::traffic::Mix;

    use super::*;

    fn stores() -> Option<Stores> {
        let whole = kernels::available().filter(|k| k.mix == Mix::R1W1 && k.form.is_plain()).max_by_key(|k| k.width)?;
        compared_with(whole)
    }

    #[test]
    fn whole_lines_are_compared_with_what_must_read_and_what_does_not() {
        assert_eq!(decide(20.0, 21.0, 40.0).rfo, Rfo::Yes);
        assert_eq!(decide(39.0, 20.0, 40.0).rfo, Rfo::No);
        assert_eq!(decide(28.0, 20.0, 40.0).rfo, Rfo::Unknown, "some do");
        assert_eq!(decide(28.3, 29.4, 39.2).rfo, Rfo::Yes, "Zen 5 in a virtual machine");
        assert_eq!(decide(20.0, 20.0, 21.0).rfo, Rfo::Unknown, "no difference where there must be one");
        assert_eq!(decide(60.0, 20.0, 40.0).rfo, Rfo::Unknown);
        // Three loads to a store: a fourth of the traffic decides, and what lies in the middle is neither.
        assert_eq!([41.0, 45.0, 49.0].map(|whole| decide(whole, 40.0, 50.0).rfo), [Rfo::Yes, Rfo::Unknown, Rfo::No]);
    }

    #[test]
    fn kernels_are_compared_with_the_same_loads_and_lines() {
        for kernel in kernels::available().filter(|k| must_be_measured(k)) {
            let Some([whole, part, nt]) = compared_with(kernel) else {
                let in_order = !matches!(kernel.form.access, Access::Random | Access::Blocks);
                let without = matches!(kernel.mix, Mix::R9W1 | Mix::R3W2) || !in_order || kernel.form.line == LineUse::WrittenBack;
                assert!(without || kernels::isa() == "riscv64", "{}", kernel.name);
                continue;
            };
            assert_eq!(whole.name, kernel.name);
            assert_eq!((part.form.line, part.mix.lines()), (LineUse::Part, kernel.mix.lines()), "{}", kernel.name);
            assert_eq!((nt.form, nt.mix.lines()), (kernel.form, kernel.mix.lines()), "{}", kernel.name);
            assert!(nt.mix.non_temporal() && part.touched < memgauge_kernels::LINE, "{}", kernel.name);
        }
    }

    #[test]
    fn rounds_must_agree() {
        let Some(stores) = stores() else { return };
        let (yes, no) = ([Some(10.0), Some(10.0), Some(20.0)], [Some(20.0), Some(10.0), Some(20.0)]);
        let concluded = |rounds: &[Round]| conclude(stores, rounds);
        assert_eq!((concluded(&[yes, yes, no, yes, yes]).rfo, concluded(&[yes; 5]).whole_gbs), (Rfo::Yes, Some(10.0)));
        assert_eq!(concluded(&[yes, no, no, no, no]).rfo, Rfo::No);
        assert_eq!(concluded(&[yes, no, yes, no, yes]).rfo, Rfo::Unknown);
        let starved = concluded(&[[None, Some(1.0), Some(2.0)]; 5]);
        assert_eq!((starved.rfo, starved.whole_gbs, starved.part_gbs), (Rfo::Unknown, None, Some(1.0)));
    }

    #[test]
    fn disturbed_rounds_count_only_where_there_are_no_others() {
        let Some(stores) = stores() else { return };
        let mut bursts = 0;
        // The first two rounds are disturbed and say something else.
        let rounds = measure_rounds(stores, |kernel| {
            bursts += 1;
            let slow = kernel.name != stores[2].name && bursts > 2 * RFO_KINDS;
            Ok((Some(if slow { 10.0 } else { 20.0 }), bursts > 2 * RFO_KINDS))
        });
        assert_eq!(rounds.unwrap(), [[Some(10.0), Some(10.0), Some(20.0)]; AGREEING], "four that agree are enough");
        let disturbed = measure_rounds(stores, |_| Ok((Some(1.0), false))).unwrap();
        assert_eq!(disturbed.len(), RFO_ROUNDS);
    }
}
