//! Whether to trust a number: what was observed while it was measured.

use memgauge_model::estimate::{Estimate, NotMeasured};
use memgauge_model::protocol::{
    MAX_FREQUENCY_CHANGE, MAX_NEIGHBOURS, MAX_STALLED, MAX_STEAL, MAX_WAITED, MIN_UNDISTURBED, NORMAL_SWITCHES,
};
use memgauge_model::result::{
    DisturbanceCause, Evidence, Measurement, Neighbours, Noise, PlacementStatus, Quality, QualityLevel, QualityReason,
};

/// Share of the measured CPUs' time used by other processes above which they compete for caches and memory.
pub(super) const OTHERS: f64 = 0.05;
/// Threads must run together for this share of the longest thread's time: in the rest, fewer share the memory.
const COVERAGE: f64 = 0.95;
/// Share of samples that switches may have hit, per thread. If a tenth of the samples is spoilt in one direction, the median moves by a
/// twentieth of the distribution at most, which is within the interval of up to 300 samples.
const SWITCHES_PER_SAMPLE: f64 = 0.1;
/// Share of a buffer's base pages that may have been migrated, or made to fault by NUMA balancing, system-wide.
const MOVED_PAGES: f64 = 0.01;
/// Share of bursts that may be disturbed and be replaced by others. With more, picking the undisturbed ones would be picking the fast ones.
const DISTURBED_BURSTS: f64 = 0.25;
/// Share of the time that may be left out, for the same reason: what is left are the moments that disturbed least.
const MAX_LEFT_OUT: f64 = DISTURBED_BURSTS;
/// The smallest base page: 4 KiB on x86-64 and mostly elsewhere. With larger ones the threshold is only the laxer.
const BASE_PAGE: u64 = 4096;

/// Judges a number by what was observed while it was measured. Any reason degrades it. Evidence that this kernel does not provide (`None`)
/// does not count. Reasons come in the order of [`QualityReason`].
///
/// [`drifted`] finds [`QualityReason::Drift`] between two measurements of a cell.
pub fn quality(estimate: &Estimate, evidence: &Evidence) -> Quality {
    use QualityReason as R;
    if estimate.value.is_none() {
        return Quality { level: QualityLevel::None, reasons: Vec::new() };
    }
    let noise = &evidence.noise;
    let above = |value: Option<f64>, limit: f64| value.is_some_and(|v| v > limit);
    // Time off the CPUs matters only if it is in the samples.
    let inside = noise.left_out.is_none();
    let found = [
        (R::Steal, inside && above(noise.steal, MAX_STEAL)),
        (R::BusyMachine, inside && above(noise.others, OTHERS)),
        (R::InvoluntarySwitches, inside && (taken_off(estimate, evidence) || away_without_bursts(noise))),
        (R::Migrated, noise.migrations.is_some_and(|n| n > 0)),
        (R::FrequencyDrift, frequency_drifted(noise)),
        (R::Coverage, inside && evidence.coverage.is_some_and(|share| share < COVERAGE)),
        (R::NotConverged, !estimate.converged),
        (R::SeveralModes, estimate.modes.len() > 1),
        (R::PlacementWrong, evidence.placement.status == PlacementStatus::Wrong),
        (R::PlacementUnverified, evidence.placement.status == PlacementStatus::Unverified),
        (R::PlateauNotReached, evidence.plateau.is_some_and(|plateau| !plateau.reached)),
        (R::Drift, estimate.drift.is_some()),
        (R::MemoryErrors, noise.memory_errors.is_some_and(|n| n > 0)),
        (R::PagesMigrated, pages_moved(evidence)),
        (R::BurstsDisturbed, bursts_disturbed(noise)),
        (R::AboveCore, above(evidence.bytes_per_cycle, CORE_BYTES_PER_CYCLE)),
        (R::KernelChosenBusy, evidence.kernel_chosen_busy),
        (R::BusyNeighbours, neighbours_busy(noise)),
        (R::TimeLeftOut, above(noise.left_out, MAX_LEFT_OUT)),
        (R::Stalled, above(noise.stalled, MAX_STALLED)),
    ];
    let reasons: Vec<R> = found.into_iter().filter_map(|(reason, seen)| seen.then_some(reason)).collect();
    let level = match () {
        () if reasons.is_empty() => QualityLevel::Good,
        () if unreliable(estimate, evidence, &reasons) => QualityLevel::Unreliable,
        () => QualityLevel::Degraded,
    };
    Quality { level, reasons }
}

/// Share of the time in the samples that a thread may be off its CPU before the number says more about that than about memory: it is off by
/// about as much.
const UNRELIABLE: f64 = 0.02;

/// If more than this share of the time was left out, a wide interval shows what others do to the caches and the memory between interruptions.
/// That moves all samples one way: a compiler beside a chase makes page walks a fifth slower.
const MOSTLY_BUSY: f64 = 0.2;
/// The smallest share of the time for which all threads must have run together.
const MIN_TOGETHER: f64 = 0.5;
/// Half of an interval's width over the value. A wider interval makes the number useless.
const WIDE: f64 = 0.1;
/// The same if only the samples show that something disturbed them: the interval is wider than the value.
const WIDER_THAN_VALUE: f64 = 0.5;
/// Share of the time of the other hardware threads of measured cores that others may use before the number says more about them than about
/// memory: two threads share a core's caches and the lines that it keeps in flight.
const SHARED_CORE: f64 = 0.25;

/// Whether others use what the measured CPUs share with their neighbours.
pub(super) fn neighbours_busy(noise: &Noise) -> bool {
    noise.neighbours.as_ref().and_then(Neighbours::most).is_some_and(|share| share > MAX_NEIGHBOURS)
}

/// Whether the number may be wrong by more than its interval says, by what disturbed it.
fn unreliable(estimate: &Estimate, evidence: &Evidence, reasons: &[QualityReason]) -> bool {
    use QualityReason as R;
    let noise = &evidence.noise;
    let has = |reason| reasons.contains(&reason);
    let few = few_bursts_count(noise);
    // A thread that migrated measured another CPU, so its number is not the one that was asked for.
    let elsewhere = has(R::Migrated);
    let wider = |than| wider(estimate, than);
    let core_shared = noise.neighbours.is_some_and(|n| n.core.is_some_and(|share| share > SHARED_CORE));
    if wider(WIDER_THAN_VALUE) || core_shared {
        return true;
    }
    let others = has(R::BusyNeighbours);
    if others && (has(R::SeveralModes) || (has(R::NotConverged) && wider(WIDE))) {
        return true;
    }
    let Some(left_out) = noise.left_out else {
        let away = |share: Option<f64>| share.is_none_or(|share| share > UNRELIABLE);
        // Threads that ran together for less than half of the time show what each of them does alone.
        let apart = evidence.coverage.is_some_and(|share| share < MIN_TOGETHER);
        // From the samples themselves, whatever the kernel reports.
        let inside = noise.off_cpu.is_some_and(|share| share > UNRELIABLE);
        let reported = (has(R::InvoluntarySwitches) && away(noise.waited)) || (has(R::Steal) && away(noise.steal));
        return few || elsewhere || apart || inside || reported;
    };
    let wide = estimate.ci95_low.is_none() || wider(WIDE);
    few || elsewhere || (has(R::SeveralModes) && left_out > OTHERS) || (has(R::NotConverged) && left_out > MOSTLY_BUSY && wide)
}

/// A thread was off its CPU for more than this share of the time. A number whose samples include that time is wrong by a factor of ten; one whose
/// samples leave it out has few samples.
const NEARLY_ALWAYS_OFF: f64 = 0.9;
/// An interval whose half width is larger than this share of the value reaches from zero to twice the value.
const REACHES_ZERO: f64 = 1.0;

/// Why an estimate says nothing about memory: its threads were hardly on their CPUs, and the samples show that or have an interval that is wider
/// than twice the value.
pub fn taken_away(estimate: &Estimate, evidence: &Evidence) -> Option<NotMeasured> {
    estimate.value?;
    let noise = &evidence.noise;
    // Threads that never read the clock together count as off their CPUs all of the time: several may have been on them by turns.
    let inside = noise.off_cpu.filter(|_| evidence.threads == 1).unwrap_or(0.0);
    let most = [noise.left_out, noise.waited, noise.steal].into_iter().flatten().fold(inside, f64::max);
    let lost = most > NEARLY_ALWAYS_OFF && (inside > NEARLY_ALWAYS_OFF || wider(estimate, REACHES_ZERO));
    lost.then(|| NotMeasured::CpuTakenAway { percent: (100.0 * most).round() as u32 })
}

/// Whether half of the interval is wider than this part of the value.
fn wider(estimate: &Estimate, than: f64) -> bool {
    let interval = estimate.ci95_high.zip(estimate.ci95_low).zip(estimate.value);
    interval.is_some_and(|((high, low), value)| high - low > 2.0 * than * value)
}

/// Whether too few bursts were undisturbed to show a spread.
fn few_bursts_count(noise: &Noise) -> bool {
    let counting = noise.bursts.zip(noise.bursts_left_out).filter(|(_, left_out)| *left_out > 0);
    counting.is_some_and(|(all, left_out)| all - left_out < MIN_UNDISTURBED as u32)
}

/// Two loads and one store of 64 B, the most that a current core does in a cycle (Zen 5, Golden Cove), and 2 % for a clock that changed.
const CORE_BYTES_PER_CYCLE: f64 = 192.0 * CLOCK_TOLERANCE;

/// Clocks and rounding do not explain a larger excess over a limit of the hardware.
pub(super) const CLOCK_TOLERANCE: f64 = 1.02;

/// Bytes that each of `threads` loaded and stored per core cycle, at the mean of the observed frequencies; `None` if none was observed.
pub fn bytes_per_cycle(gbs: f64, threads: u32, noise: &Noise) -> Option<f64> {
    let seen: Vec<f64> = [noise.ghz_before, noise.ghz_after].into_iter().flatten().filter(|ghz| *ghz > 0.0).collect();
    let ghz = seen.iter().sum::<f64>() / seen.len() as f64;
    (threads > 0 && !seen.is_empty()).then(|| gbs / (f64::from(threads) * ghz))
}

/// Whether measuring threads lost their CPUs for too long or, if the kernel does not say how long, too often.
fn taken_off(estimate: &Estimate, evidence: &Evidence) -> bool {
    let noise = &evidence.noise;
    let normal = f64::from(evidence.threads.max(1)) * f64::from(NORMAL_SWITCHES).max(SWITCHES_PER_SAMPLE * f64::from(estimate.n));
    match noise.waited {
        Some(share) => share > MAX_WAITED,
        None => noise.involuntary_switches.is_some_and(|n| n as f64 > normal),
    }
}

/// Whether a chase of a given number of hops, which has no bursts, has time off its CPU in its samples.
fn away_without_bursts(noise: &Noise) -> bool {
    noise.bursts.is_none() && noise.off_cpu.is_some_and(|share| share > UNRELIABLE)
}

fn bursts_disturbed(noise: &Noise) -> bool {
    let by = |cause| noise.disturbed_by.get(&cause).copied().unwrap_or(0);
    // Bursts that left no time on the CPU do not make the others suspect, which are judged by the same measure; what neighbours did has a
    // reason of its own.
    let taken = if noise.left_out.is_some() { by(DisturbanceCause::TakenOff) + by(DisturbanceCause::Stolen) } else { 0 };
    let apart = taken + by(DisturbanceCause::Neighbours);
    let disturbed = noise.bursts_disturbed.zip(noise.bursts);
    few_bursts_count(noise)
        || disturbed.is_some_and(|(some, all)| f64::from(some.saturating_sub(apart)) > DISTURBED_BURSTS * f64::from(all))
}

fn frequency_drifted(noise: &Noise) -> bool {
    matches!((noise.ghz_before, noise.ghz_after), (Some(before), Some(after)) if (after - before).abs() > MAX_FREQUENCY_CHANGE * before)
}

fn pages_moved(evidence: &Evidence) -> bool {
    let allowed = MOVED_PAGES * (evidence.buffer.0 / BASE_PAGE) as f64;
    [evidence.noise.pages_migrated, evidence.noise.numa_hint_faults].into_iter().flatten().any(|n| n as f64 > allowed)
}

/// Whether the intervals of a cell and of its repetition do not overlap. `false` if either has none.
pub fn drifted(first: &Estimate, again: &Estimate) -> bool {
    match (first.ci95_low, first.ci95_high, again.ci95_low, again.ci95_high) {
        (Some(low), Some(high), Some(again_low), Some(again_high)) => again_low > high || again_high < low,
        _ => false,
    }
}

/// Relative difference below which two measurements of a cell agree, whatever their intervals.
const MIN_DRIFT: f64 = 0.03;

/// Compares each repeated cell with its first measurement. If they differ, both are degraded. Disturbances of
/// one of them count as the cause; otherwise it is the machine's state.
pub fn mark_drift(results: &mut [Measurement], repeats: &mut [Measurement]) {
    for again in repeats {
        let Some(first) = results.iter_mut().find(|m| again.is_of_same_cell(m)) else { continue };
        let (a, b) = (&first.estimate, &again.estimate);
        let relative = a.value.zip(b.value).map_or(0.0, |(a, b)| (a - b).abs() / a);
        let reliable = first.is_reliable() && again.is_reliable();
        if reliable && drifted(a, b) && relative > MIN_DRIFT {
            for quality in [&mut first.quality, &mut again.quality] {
                quality.level = quality.level.max(QualityLevel::Degraded);
                quality.reasons.push(QualityReason::Drift);
                quality.reasons.sort_unstable();
                quality.reasons.dedup();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use memgauge_model::estimate::{Drift, Mode};
    use memgauge_model::result::{Placement, Plateau};
    use memgauge_model::units::Bytes;

    use super::*;

    fn estimate() -> Estimate {
        Estimate { value: Some(90.0), n: 40, ci95_low: Some(89.5), ci95_high: Some(90.5), converged: true, ..Estimate::default() }
    }

    fn evidence() -> Evidence {
        Evidence {
            threads: 4,
            buffer: Bytes::mib(64),
            coverage: Some(0.99),
            placement: Placement { status: PlacementStatus::Verified, ..Placement::default() },
            ..Evidence::default()
        }
    }

    fn reasons(change: impl FnOnce(&mut Estimate, &mut Evidence)) -> Vec<QualityReason> {
        let (mut estimate, mut evidence) = (estimate(), evidence());
        change(&mut estimate, &mut evidence);
        let quality = quality(&estimate, &evidence);
        assert_eq!(quality.level == QualityLevel::Good, quality.reasons.is_empty());
        quality.reasons
    }

    #[test]
    fn no_core_moves_more_than_it_can() {
        let noise = Noise { ghz_before: Some(3.9), ghz_after: Some(4.1), ..Noise::default() };
        assert_eq!(bytes_per_cycle(1024.0, 2, &noise), Some(128.0));
        assert_eq!(bytes_per_cycle(1024.0, 2, &Noise::default()), None);
        assert_eq!(reasons(|_, e| e.bytes_per_cycle = Some(192.0)), []);
        assert_eq!(reasons(|_, e| e.bytes_per_cycle = Some(200.0)), [QualityReason::AboveCore]);
    }

    #[test]
    fn undisturbed_is_good() {
        assert_eq!(quality(&estimate(), &evidence()), Quality { level: QualityLevel::Good, reasons: vec![] });
    }

    #[test]
    fn what_only_shows_a_lost_cpu_is_not_measured() {
        let percent = |noise: &Noise, (low, high): (f64, f64)| {
            let estimate = Estimate { ci95_low: Some(low), ci95_high: Some(high), ..estimate() };
            let one = Evidence { threads: 1, noise: noise.clone(), ..evidence() };
            taken_away(&estimate, &one).map(|why| match why {
                NotMeasured::CpuTakenAway { percent } => percent,
                other => panic!("{other:?}"),
            })
        };
        let off = |share| Noise { off_cpu: Some(share), waited: Some(0.92), ..Noise::default() };
        assert_eq!(percent(&off(0.96), (89.5, 90.5)), Some(96));
        assert_eq!(percent(&off(0.8), (89.5, 90.5)), None, "wrong, and marked as unreliable");
        assert_eq!(percent(&off(0.3), (1.0, 181.5)), Some(92), "0 to twice the value");
        let left_out = Noise { left_out: Some(0.95), waited: Some(0.01), ..Noise::default() };
        assert_eq!((percent(&left_out, (89.5, 90.5)), percent(&left_out, (20.0, 220.0))), (None, Some(95)));
        let rarely = Noise { left_out: Some(0.7), ..Noise::default() };
        assert_eq!(percent(&rarely, (1.0, 181.5)), None, "marked as unreliable");
        assert_eq!(percent(&Noise::default(), (1.0, 181.5)), None, "nothing says that a CPU was lost");
        let several = Evidence { noise: Noise { off_cpu: Some(1.0), ..Noise::default() }, ..evidence() };
        assert_eq!(taken_away(&estimate(), &several), None, "they were never seen together");
        let none = Evidence { threads: 1, noise: off(0.96), ..evidence() };
        assert_eq!(taken_away(&Estimate::default(), &none), None, "it has its own reason");
    }

    #[test]
    fn every_disturbance_has_its_word() {
        use QualityReason as R;
        assert_eq!(reasons(|_, e| e.noise.steal = Some(0.006)), [R::Steal]);
        assert_eq!(reasons(|_, e| e.noise.others = Some(0.06)), [R::BusyMachine]);
        assert_eq!(reasons(|_, e| e.noise.involuntary_switches = Some(17)), [R::InvoluntarySwitches]);
        assert_eq!(reasons(|_, e| e.noise.migrations = Some(1)), [R::Migrated]);
        assert_eq!(reasons(|_, e| (e.noise.ghz_before, e.noise.ghz_after) = (Some(3.0), Some(2.8))), [R::FrequencyDrift]);
        assert_eq!(reasons(|_, e| (e.noise.ghz_before, e.noise.ghz_after) = (Some(2.8), Some(3.0))), [R::FrequencyDrift]);
        assert_eq!(reasons(|_, e| e.coverage = Some(0.94)), [R::Coverage]);
        assert_eq!(reasons(|m, _| m.converged = false), [R::NotConverged]);
        assert_eq!(reasons(|m, _| m.modes = vec![Mode { value: 90.0, share: 0.5 }; 2]), [R::SeveralModes]);
        assert_eq!(reasons(|_, e| e.placement.status = PlacementStatus::Wrong), [R::PlacementWrong]);
        assert_eq!(reasons(|_, e| e.placement.status = PlacementStatus::Unverified), [R::PlacementUnverified]);
        let plateau = |reached| Some(Plateau { half_ns: 60.0, whole_ns: 90.0, cold_ns: None, reached });
        assert_eq!(reasons(|_, e| e.plateau = plateau(false)), [R::PlateauNotReached]);
        assert_eq!(reasons(|_, e| e.noise.memory_errors = Some(1)), [R::MemoryErrors]);
        assert_eq!(reasons(|m, _| m.drift = Some(Drift { change: 0.03, tau: 1.0 })), [R::Drift]);
        assert_eq!(reasons(|_, e| (e.noise.bursts, e.noise.bursts_disturbed) = (Some(12), Some(4))), [R::BurstsDisturbed]);
        assert_eq!(reasons(|_, e| (e.noise.bursts, e.noise.bursts_disturbed) = (Some(12), Some(3))), []);
        assert_eq!(reasons(|_, e| e.noise.pages_migrated = Some(164)), [R::PagesMigrated]);
        assert_eq!(reasons(|_, e| e.noise.numa_hint_faults = Some(164)), [R::PagesMigrated]);
        assert_eq!(reasons(|_, e| e.kernel_chosen_busy = true), [R::KernelChosenBusy]);
        assert_eq!(reasons(|_, e| e.noise.left_out = Some(0.26)), [R::TimeLeftOut]);
        assert_eq!(reasons(|_, e| e.noise.left_out = Some(0.25)), []);
        assert_eq!(reasons(|_, e| e.noise.stalled = Some(0.06)), [R::Stalled]);
        assert_eq!(reasons(|_, e| e.noise.stalled = Some(0.03)), [], "interrupts of a quiet guest");
        let near = |core, cache, memory| Some(Neighbours { core, cache, memory });
        for neighbours in [near(Some(0.06), None, None), near(None, Some(0.06), None), near(None, Some(0.02), Some(0.06))] {
            assert_eq!(reasons(|_, e| e.noise.neighbours = neighbours), [R::BusyNeighbours]);
        }
        assert_eq!(reasons(|_, e| e.noise.neighbours = near(Some(0.05), Some(0.04), Some(0.01))), []);
        assert_eq!(reasons(|m, e| (m.converged, e.noise.steal) = (false, Some(0.5))), [R::Steal, R::NotConverged]);
    }

    #[test]
    fn interruptions_matter_where_they_are_in_the_samples() {
        let busy = |left_out| Noise { steal: Some(0.1), others: Some(0.5), waited: Some(0.4), left_out, ..Noise::default() };
        let judged = |noise: Noise, modes: usize| {
            let estimate = Estimate { modes: vec![Mode { value: 90.0, share: 0.5 }; modes], ..estimate() };
            quality(&estimate, &Evidence { coverage: Some(0.5), noise, ..evidence() })
        };
        assert_eq!(judged(busy(Some(0.2)), 0).level, QualityLevel::Good);
        let selected = Quality { level: QualityLevel::Degraded, reasons: vec![QualityReason::TimeLeftOut] };
        assert_eq!(judged(busy(Some(0.7)), 0), selected, "the moments that disturbed least are a selection");
        assert_eq!(judged(busy(None), 0).level, QualityLevel::Unreliable);
        for left_out in [Some(0.0), Some(0.7), None] {
            let elsewhere = judged(Noise { migrations: Some(1), ..busy(left_out) }, 0);
            assert_eq!(elsewhere.level, QualityLevel::Unreliable, "it is not of the CPU that was planned: {elsewhere:?}");
        }
        assert_eq!(judged(Noise { waited: Some(0.01), steal: None, ..busy(None) }, 0).level, QualityLevel::Degraded, "off by a hundredth");
        assert_eq!(judged(busy(Some(0.7)), 2).level, QualityLevel::Unreliable, "two clusters of what is left");
        assert_eq!(judged(busy(Some(0.01)), 2).level, QualityLevel::Degraded);
        let within = |half: f64, left_out| {
            let ends = (Some(90.0 * (1.0 - half)), Some(90.0 * (1.0 + half)));
            let estimate = Estimate { value: Some(90.0), ci95_low: ends.0, ci95_high: ends.1, converged: false, ..estimate() };
            quality(&estimate, &Evidence { noise: busy(Some(left_out)), ..evidence() }).level
        };
        assert_eq!((within(0.2, 0.1), within(0.2, 0.4)), (QualityLevel::Degraded, QualityLevel::Unreliable));
        assert_eq!(within(0.05, 0.4), QualityLevel::Degraded, "its interval says enough");
        let bursts = |left_out: u32| Noise {
            bursts: Some(12),
            bursts_disturbed: Some(left_out),
            bursts_left_out: Some(left_out),
            disturbed_by: [(DisturbanceCause::TakenOff, left_out)].into(),
            ..busy(Some(0.2))
        };
        assert_eq!(judged(bursts(9), 0).level, QualityLevel::Good);
        assert_eq!(judged(bursts(10), 0), Quality { level: QualityLevel::Unreliable, reasons: vec![QualityReason::BurstsDisturbed] });
    }

    #[test]
    fn what_neighbours_do_makes_a_number_unreliable_where_its_samples_show_it() {
        let judged = |core, modes: usize, half: f64| {
            let ends = (Some(90.0 * (1.0 - half)), Some(90.0 * (1.0 + half)));
            let modes = vec![Mode { value: 90.0, share: 0.5 }; modes];
            let estimate = Estimate { ci95_low: ends.0, ci95_high: ends.1, converged: half < 0.05, modes, ..estimate() };
            let neighbours = Some(Neighbours { core, cache: Some(0.5), memory: Some(0.5) });
            quality(&estimate, &Evidence { noise: Noise { neighbours, left_out: Some(0.0), ..Noise::default() }, ..evidence() }).level
        };
        assert_eq!(judged(None, 0, 0.005), QualityLevel::Degraded, "CPU time does not say what they do with memory");
        assert_eq!(judged(None, 2, 0.005), QualityLevel::Unreliable);
        assert_eq!((judged(None, 0, 0.08), judged(None, 0, 0.2)), (QualityLevel::Degraded, QualityLevel::Unreliable));
        assert_eq!(judged(Some(0.3), 0, 0.005), QualityLevel::Unreliable, "on the same core");
    }

    #[test]
    fn a_number_within_an_interval_wider_than_itself_is_unreliable() {
        let judged = |half: f64| {
            let ends = (Some(90.0 - half), Some(90.0 + half));
            let estimate = Estimate { ci95_low: ends.0, ci95_high: ends.1, converged: false, ..estimate() };
            quality(&estimate, &evidence()).level
        };
        assert_eq!((judged(40.0), judged(50.0)), (QualityLevel::Degraded, QualityLevel::Unreliable));
    }

    #[test]
    fn samples_show_time_off_the_cpu_where_the_kernel_tells_nothing() {
        let judged = |off_cpu| {
            let noise = Noise {
                off_cpu: Some(off_cpu),
                bursts: Some(6),
                bursts_disturbed: Some(6),
                bursts_left_out: Some(0),
                disturbed_by: [(DisturbanceCause::TakenOff, 6)].into(),
                ..Noise::default()
            };
            quality(&estimate(), &Evidence { noise, ..evidence() })
        };
        assert_eq!(judged(0.03), Quality { level: QualityLevel::Unreliable, reasons: vec![QualityReason::BurstsDisturbed] });
        assert_eq!(judged(0.01).level, QualityLevel::Degraded, "off by a hundredth");
    }

    #[test]
    fn what_is_normal_or_not_told_is_no_reason() {
        let calm = |_: &mut Estimate, e: &mut Evidence| {
            e.coverage = None;
            e.plateau = Some(Plateau { half_ns: 90.0, whole_ns: 90.0, cold_ns: None, reached: true });
            e.noise = Noise {
                steal: Some(0.005),
                others: Some(0.05),
                involuntary_switches: Some(16),
                migrations: Some(0),
                ghz_before: Some(3.0),
                ghz_after: Some(2.95),
                pages_migrated: Some(163),
                numa_hint_faults: Some(163),
                memory_errors: Some(0),
                ..Noise::default()
            };
        };
        assert_eq!(reasons(calm), []);
        assert_eq!(reasons(|_, e| e.noise.ghz_before = Some(3.0)), []);
        // If the kernel reports the time, their number does not matter.
        assert_eq!(reasons(|_, e| (e.noise.waited, e.noise.involuntary_switches) = (Some(0.004), Some(99))), []);
        assert_eq!(reasons(|_, e| e.noise.waited = Some(0.006)), [QualityReason::InvoluntarySwitches]);
        // Few samples: two switches a thread.
        assert_eq!(reasons(|m, e| (m.n, e.noise.involuntary_switches) = (6, Some(8))), []);
        assert_eq!(reasons(|m, e| (m.n, e.noise.involuntary_switches) = (6, Some(9))), [QualityReason::InvoluntarySwitches]);
    }

    #[test]
    fn without_a_value_nothing_is_trusted() {
        let mut evidence = evidence();
        evidence.noise.steal = Some(0.5);
        let none = quality(&Estimate { not_measured: Some(NotMeasured::Interrupted), ..Estimate::default() }, &evidence);
        assert_eq!(none, Quality { level: QualityLevel::None, reasons: vec![] });
    }

    #[test]
    fn drift_is_intervals_apart() {
        let again = |low, high| Estimate { ci95_low: Some(low), ci95_high: Some(high), ..estimate() };
        assert!(!drifted(&estimate(), &again(90.5, 92.0)));
        assert!(drifted(&estimate(), &again(90.6, 92.0)));
        assert!(drifted(&estimate(), &again(88.0, 89.4)));
        assert!(!drifted(&estimate(), &Estimate { ci95_low: None, ..again(95.0, 96.0) }));
    }
}
