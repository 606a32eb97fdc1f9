//! The results of a memory scan: the histogram of its regions, and which of them are weak.

use std::collections::BTreeMap;

use memgauge_model::estimate::{Estimate, NotMeasured};
use memgauge_model::experiment::Method;
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::result::{LimitSource, Measurement, Mismatch, PhysicalRange, Verdict, VerdictReason, VerdictStatus, WrongWordKind};
use memgauge_model::stats;
use memgauge_model::topology::OperatingSystem;
use memgauge_model::wording::{number_of, reasons};

/// A region is not weak if its interval comes this close to the median of all regions, as a share of the median. Refresh, the placement of
/// pages over banks and other processes cost this much now and then.
pub const WEAK_SHARE: f64 = 0.05;
/// Nor if it is within this many median absolute deviations of the median. Four of them are 2.7 standard deviations of a normal
/// distribution: three regions in a thousand are lower, before their interval is considered.
pub const WEAK_MADS: f64 = 4.0;
/// Fewer regions cannot show an outlier.
pub const MIN_REGIONS: usize = 3;

/// The bandwidth below which a region is weak, from all regions of a node: the median less 5 % of it or less four times the
/// median absolute deviation, whichever is more. `None` for fewer than three regions, or if they scatter so much that no region could be
/// below.
pub fn weak_below(regions: &[f64]) -> Option<f64> {
    let regions = stats::sorted(regions);
    if regions.len() < MIN_REGIONS {
        return None;
    }
    let median = stats::median(&regions)?;
    let below = median - (WEAK_SHARE * median).max(WEAK_MADS * stats::mad(&regions)?);
    (below > 0.0).then_some(below)
}

/// If passes are too few for an interval, at least this many must be low, and all of them. One or two passes of a sound region are that low often enough
/// for a false alarm in every scan of some hundred regions.
const MIN_PASSES: u32 = 3;

/// Whether the whole interval of a region is below `below`; if there are too few passes for an interval, all of at least three passes.
pub fn is_weak(estimate: &Estimate, below: f64) -> bool {
    let highest = estimate.ci95_high.or(estimate.max.filter(|_| estimate.n >= MIN_PASSES));
    estimate.value.is_some() && highest.is_some_and(|high| high < below)
}

/// Compares the regions of one node with each other. A region that does not return what was written to it fails, however fast it is.
pub fn judge(regions: &mut [Measurement]) {
    let medians: Vec<f64> = regions.iter().filter_map(|m| m.estimate.value).collect();
    let below = weak_below(&medians);
    for m in regions.iter_mut() {
        let (Some(below), Some(_)) = (below, m.estimate.value) else { continue };
        let (status, reason) = if is_weak(&m.estimate, below) && m.is_reliable() {
            (VerdictStatus::Warning, VerdictReason::WeakRegion)
        } else {
            (VerdictStatus::Ok, VerdictReason::AsOtherRegions)
        };
        m.verdict = Verdict { status, reason, limit: Some(below), limit_source: Some(LimitSource::RegionsOfNode), limit_share: None };
    }
    for m in regions.iter_mut().filter(|m| corrupted(m)) {
        m.verdict = Verdict { status: VerdictStatus::Failure, reason: VerdictReason::MemoryCorrupted, ..Verdict::default() };
    }
}

/// Whether a measurement is of a region that was found weak.
pub fn found_weak(m: &Measurement) -> bool {
    m.method() == Method::MemoryScan && m.verdict.reason == VerdictReason::WeakRegion
}

/// Whether a measurement is of memory that did not return what was written to it.
pub fn corrupted(m: &Measurement) -> bool {
    m.estimate.not_measured.as_ref().is_some_and(NotMeasured::is_corruption)
        || m.evidence.integrity.as_ref().is_some_and(|i| i.mismatches > 0)
        || m.evidence.checksums.is_some_and(|c| c.mismatches > 0)
}

/// The largest number of weak or corrupted regions that a note names. The result has the others.
const NAMED: usize = 10;

/// Words or errors that a note names.
const FAULTS_NAMED: usize = 3;

/// Advice on memory that does not keep what is written to it.
fn test_memory(system: OperatingSystem) -> String {
    format!("take the machine out of service and test its memory; look into {}", system.words().memory_errors_log)
}

/// Notes on a scan: weak regions, memory that does not keep what is written, and unknown addresses.
pub fn notes(results: &[Measurement], system: OperatingSystem) -> Vec<Note> {
    let mut nodes: BTreeMap<Option<u32>, Vec<&Measurement>> = BTreeMap::new();
    for m in results.iter().filter(|m| m.method() == Method::MemoryScan && m.at.region.is_some()) {
        nodes.entry(m.at.memory_node()).or_default().push(m);
    }
    let mut notes = Vec::new();
    for (node, regions) in nodes {
        let of_node = node.map_or_else(String::new, |n| format!(" of node {n}"));
        notes.extend(weak_note(&of_node, &regions));
        notes.extend(corruption_note(&of_node, &regions, system));
        notes.extend(hardware_note(&of_node, &regions, system));
        // A region that lost a page lacks addresses for a reason other than privileges.
        let mut whole = regions.iter().filter(|m| hardware_error(m).is_none());
        let unknown = whole.find_map(|m| m.evidence.physical.as_ref().filter(|p| p.first.is_none())?.reason.as_ref());
        notes.extend(unknown.map(|why| {
            let note =
                Note::info(NoteCode::ScanNoAddresses, format!("the physical addresses of the regions{of_node} are not known: {why}"));
            match system {
                OperatingSystem::Linux => {
                    note.advise("run as root to see which addresses, and so which DIMM or window, a region stands for")
                }
                // Nobody sees them there.
                OperatingSystem::Windows => note,
            }
        }));
    }
    notes
}

fn weak_note(of_node: &str, regions: &[&Measurement]) -> Option<Note> {
    let mut weak: Vec<&&Measurement> = regions.iter().filter(|m| found_weak(m)).collect();
    let median = stats::median(&regions.iter().filter_map(|m| m.estimate.value).collect::<Vec<_>>())?;
    let value = |m: &Measurement| m.estimate.value.unwrap_or(f64::INFINITY);
    weak.sort_by(|a, b| value(a).total_cmp(&value(b)));
    let below = weak.first()?.verdict.limit?;
    let names: Vec<String> = weak
        .iter()
        .take(NAMED)
        .map(|m| format!("{} {:.1} GB/s ({:.0} % less)", name(m), value(m), (1.0 - value(m) / median) * 100.0))
        .collect();
    let more = if weak.len() > NAMED { format!("; {} more are in the result", weak.len() - NAMED) } else { String::new() };
    let message = format!(
        "{} of {} regions{of_node} are weak, all of their interval below {below:.1} GB/s where the median is {median:.1}: {}{more}",
        weak.len(),
        regions.len(),
        names.join("; ")
    );
    Some(Note::warning(NoteCode::ScanWeakRegion, message).advise(
        "scan again: if the same addresses are weak, they have less interleaving, belong to a device's window, or to a DIMM that corrects errors",
    ))
}

fn corruption_note(of_node: &str, regions: &[&Measurement], system: OperatingSystem) -> Option<Note> {
    let wrong = |m: &&&Measurement| m.evidence.integrity.as_ref().is_some_and(|i| i.mismatches > 0);
    let bad: Vec<&&Measurement> = regions.iter().filter(wrong).collect();
    let all: u64 = bad.iter().filter_map(|m| Some(m.evidence.integrity.as_ref()?.mismatches)).sum();
    let words: Vec<String> = bad
        .iter()
        .flat_map(|m| m.evidence.integrity.iter().flat_map(|i| &i.first).map(move |w| (m, w)))
        .take(FAULTS_NAMED)
        .map(|(m, w)| {
            let place = w.physical.map_or_else(|| format!("{} + {:#x}", name(m), w.offset), |p| format!("{p:#x}"));
            format!("{place}: bits {:#018x} differ, {}, CPU {}", w.written ^ w.read, second_read(w), w.cpu)
        })
        .collect();
    let (wrong, regions) = (number_of(all, "word", "words"), number_of(bad.len() as u64, "region", "regions"));
    let were = if all == 1 { "was" } else { "were" };
    let message = format!("{wrong} {were} not what had been written there, in {regions}{of_node}: {}", words.join("; "));
    (!bad.is_empty()).then(|| Note::error(NoteCode::MemoryCorrupted, message).advise(test_memory(system)))
}

/// Regions with an error that the hardware reported.
fn hardware_note(of_node: &str, regions: &[&Measurement], system: OperatingSystem) -> Option<Note> {
    let bad: Vec<String> = regions.iter().filter_map(|m| Some(format!("{}: {}", name(m), hardware_error(m)?))).collect();
    let listed = bad.iter().take(FAULTS_NAMED).map(String::as_str).collect::<Vec<_>>().join("; ");
    let (regions, have) = (number_of(bad.len() as u64, "region", "regions"), if bad.len() == 1 { "has" } else { "have" });
    let message = format!("{regions}{of_node} {have} a hardware memory error: {listed}");
    (!bad.is_empty()).then(|| Note::error(NoteCode::MemoryCorrupted, message).advise(test_memory(system)))
}

/// The error that the hardware reported in a region's memory, in words.
fn hardware_error(m: &Measurement) -> Option<String> {
    m.estimate.not_measured.as_ref().filter(|why| why.is_corruption()).map(reasons::not_measured)
}

/// Whether a word was wrong again.
pub const fn second_read(word: &Mismatch) -> &'static str {
    match word.kind() {
        WrongWordKind::Reading => "right when read again",
        WrongWordKind::Flipped => "wrong when read again, right after it was written again",
        WrongWordKind::Stuck => "wrong when read again, and after it was written again",
        WrongWordKind::Memory => "wrong when read again",
    }
}

/// `region 5`, with its physical addresses if they are known.
fn name(m: &Measurement) -> String {
    let number = m.at.region.unwrap_or_default();
    match m.evidence.physical.as_ref().and_then(addresses) {
        Some(addresses) => format!("region {number} ({addresses})"),
        None => format!("region {number}"),
    }
}

/// `0x3840000000-0x3880000000`; for scattered pages, `pages within` the range.
pub fn addresses(physical: &PhysicalRange) -> Option<String> {
    let (low, high) = (physical.low?, physical.high?);
    let within = if physical.contiguous == Some(true) { "" } else { "pages within " };
    Some(format!("{within}{low:#x}-{high:#x}"))
}

/// The number of values in each bucket of this width: (lower end, values), ascending, without empty buckets. Values that are not finite are
/// left out.
pub fn histogram(values: &[f64], bucket: f64) -> Vec<(f64, usize)> {
    if !(bucket.is_finite() && bucket > 0.0) {
        return Vec::new();
    }
    let mut buckets: Vec<(f64, usize)> = Vec::new();
    for value in stats::sorted(values) {
        let low = (value / bucket).floor() * bucket;
        match buckets.last_mut() {
            Some((last, count)) if *last == low => *count += 1,
            _ => buckets.push((low, 1)),
        }
    }
    buckets
}

#[cfg(test)]
mod tests {
    use memgauge_model::estimate::{MemoryFault, MemoryFaultKind};
    use memgauge_model::experiment::{Experiment, MemoryPlace};
    use memgauge_model::plan::pass_order;

    use super::*;

    fn region(value: f64, half: f64) -> Estimate {
        Estimate {
            value: Some(value),
            ci95_low: Some(value - half),
            ci95_high: Some(value + half),
            max: Some(value + 2.0 * half),
            ..Estimate::default()
        }
    }

    #[test]
    fn five_percent_below_the_median_at_least() {
        assert_eq!(weak_below(&[100.0, 100.0, 100.0, 60.0]), Some(95.0));
        // Scattered regions: four deviations of 3.
        assert_eq!(weak_below(&[97.0, 103.0, 97.0, 103.0, 100.0]), Some(88.0));
        assert_eq!(weak_below(&[100.0, 60.0]), None);
        // A busy machine: four deviations of 9 below 22.9 would be a limit of -13.1 GB/s.
        assert_eq!(weak_below(&[13.9, 15.0, 22.9, 31.9, 40.0]), None);
        assert_eq!(weak_below(&[100.0, 60.0, f64::NAN]), None);
    }

    #[test]
    fn a_region_is_weak_when_all_of_its_interval_is() {
        assert!(is_weak(&region(90.0, 4.0), 95.0));
        assert!(!is_weak(&region(90.0, 6.0), 95.0));
        assert!(!is_weak(&Estimate::default(), 95.0));
        // So few passes have no interval.
        let few = |n, max| Estimate { value: Some(90.0), n, max: Some(max), ..Estimate::default() };
        assert!(is_weak(&few(3, 94.0), 95.0) && !is_weak(&few(3, 96.0), 95.0));
        assert!(!is_weak(&few(2, 94.0), 95.0) && !is_weak(&few(1, 90.0), 95.0), "one or two passes may have been disturbed");
    }

    #[test]
    fn buckets_hold_what_lies_in_them() {
        assert_eq!(histogram(&[4.9, 5.0, 9.99, 10.0, 88.5, f64::NAN], 5.0), [(0.0, 1), (5.0, 2), (10.0, 1), (85.0, 1)]);
        assert_eq!(histogram(&[], 5.0), []);
        assert_eq!(histogram(&[1.0], 0.0), []);
    }

    fn measurement(number: u32, value: f64) -> Measurement {
        use memgauge_model::experiment::{Coordinates, Metric, Unit};
        use memgauge_model::result::{Evidence, Quality};
        Measurement {
            experiment: Experiment::MemoryScan,
            at: Coordinates { memory: Some(MemoryPlace::Node(1)), region: Some(number), ..Coordinates::default() },
            metric: Metric::Bandwidth,
            unit: Unit::GigabytesPerSecond,
            firmware: None,
            distribution: None,
            counters: None,
            lines_in_flight: None,
            samples: None,
            estimate: region(value, 1.0),
            evidence: Evidence::default(),
            quality: Quality::default(),
            verdict: Verdict::default(),
        }
    }

    #[test]
    fn weak_regions_are_named_with_their_addresses_the_weakest_first() {
        let mut regions: Vec<Measurement> = (0..20).map(|i| measurement(i, 100.0)).collect();
        regions[3].estimate = region(80.0, 1.0);
        regions[7].estimate = region(60.0, 1.0);
        regions[7].evidence.physical =
            Some(PhysicalRange { first: Some(64), low: Some(64), high: Some(128), contiguous: Some(true), reason: None });
        judge(&mut regions);
        assert_eq!(regions.iter().filter(|m| found_weak(m)).count(), 2);
        assert_eq!((regions[0].verdict.reason, regions[0].verdict.limit), (VerdictReason::AsOtherRegions, Some(95.0)));
        let notes = notes(&regions, OperatingSystem::Linux);
        assert_eq!(notes.len(), 1);
        let text = &notes[0].message;
        assert!(
            text.to_string()
                .starts_with("2 of 20 regions of node 1 are weak, all of their interval below 95.0 GB/s where the median is 100.0"),
            "{text}"
        );
        assert!(text.to_string().ends_with("region 7 (0x40-0x80) 60.0 GB/s (40 % less); region 3 80.0 GB/s (20 % less)"), "{text}");
    }

    #[test]
    fn a_region_is_not_weak_by_what_disturbed_it() {
        let mut regions: Vec<Measurement> = (0..20).map(|i| measurement(i, if i == 3 { 60.0 } else { 100.0 })).collect();
        regions[3].quality.level = memgauge_model::result::QualityLevel::Unreliable;
        judge(&mut regions);
        assert!(!found_weak(&regions[3]));
    }

    #[test]
    fn corrupted_memory_fails_however_fast_it_is() {
        use memgauge_model::result::{Integrity, Mismatch};
        let mut regions: Vec<Measurement> = (0..4).map(|i| measurement(i, 100.0)).collect();
        let word = Mismatch {
            offset: 16,
            address: None,
            physical: Some(0x1010),
            node: Some(1),
            devices: Vec::new(),
            devices_unknown: None,
            pattern: None,
            written: 0xff,
            read: 0xfb,
            second_read: 0xfb,
            rewritten_read: None,
            cpu: 3,
        };
        regions[2].evidence.integrity = Some(Integrity { patterns: 2, mismatches: 1, first: vec![word], ..Integrity::default() });
        judge(&mut regions);
        assert_eq!((regions[2].verdict.status, regions[2].verdict.reason), (VerdictStatus::Failure, VerdictReason::MemoryCorrupted));
        assert_eq!(regions[1].verdict.status, VerdictStatus::Ok);
        let ends = [
            (0xff, None, "right when read again, CPU 3"),
            (0xfb, Some(0xff), "wrong when read again, right after it was written again, CPU 3"),
            (0xfb, Some(0xfb), "wrong when read again, and after it was written again, CPU 3"),
        ];
        for (second_read, rewritten_read, end) in ends {
            let word = &mut regions[2].evidence.integrity.as_mut().unwrap().first[0];
            (word.second_read, word.rewritten_read) = (second_read, rewritten_read);
            assert!(
                notes(&regions, OperatingSystem::Linux)[0].message.to_string().ends_with(end),
                "{:?}",
                notes(&regions, OperatingSystem::Linux)[0]
            );
        }
        let word = &mut regions[2].evidence.integrity.as_mut().unwrap().first[0];
        (word.second_read, word.rewritten_read) = (0xfb, None);
        let notes = notes(&regions, OperatingSystem::Linux);
        let text = &notes[0].message;
        assert!(text.to_string().starts_with("1 word was not what had been written there, in 1 region of node 1: "), "{text}");
        assert!(text.to_string().contains("0x1010: bits 0x0000000000000004 differ, wrong when read again, CPU 3"), "{text}");
    }

    #[test]
    fn a_hardware_error_is_named_as_one_and_costs_no_addresses() {
        let mut regions: Vec<Measurement> = (0..4).map(|i| measurement(i, 100.0)).collect();
        let fault = MemoryFault { kind: MemoryFaultKind::Poisoned, offset: 4096, physical: None, directory: None };
        regions[3].estimate = Estimate { not_measured: Some(NotMeasured::MemoryFailed { cpu: 0, fault }), ..Estimate::default() };
        let unknown = |why: &str| Some(PhysicalRange { reason: Some(why.to_owned()), ..PhysicalRange::default() });
        regions[3].evidence.physical = unknown("pages of it were replaced");
        judge(&mut regions);
        assert_eq!((regions[3].verdict.status, regions[3].verdict.reason), (VerdictStatus::Failure, VerdictReason::MemoryCorrupted));
        let [note] = &notes(&regions, OperatingSystem::Linux)[..] else { panic!("{:?}", notes(&regions, OperatingSystem::Linux)) };
        let expected = "1 region of node 1 has a hardware memory error: region 3: CPU 0: its buffer has a hardware memory error at byte 4096 (poisoned page)";
        assert_eq!((note.code.word(), note.message.to_string().as_str()), ("memory-corrupted", expected));
        regions[0].evidence.physical = unknown("CAP_SYS_ADMIN");
        let unknown = |system| notes(&regions, system).into_iter().find(|note| note.code == NoteCode::ScanNoAddresses).unwrap();
        assert!(unknown(OperatingSystem::Linux).message.to_string().contains("CAP_SYS_ADMIN"));
        assert!(unknown(OperatingSystem::Linux).advice.unwrap().to_string().contains("root"));
        assert_eq!(unknown(OperatingSystem::Windows).advice, None, "nobody sees them there");
        assert!(test_memory(OperatingSystem::Windows).contains("WHEA-Logger"));
    }

    #[test]
    fn every_pass_reads_every_region_in_its_own_order() {
        let passes: Vec<Vec<usize>> = (0..10).map(|pass| pass_order(50, pass, 1)).collect();
        for (i, pass) in passes.iter().enumerate() {
            let mut sorted = pass.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..50));
            assert!(passes[..i].iter().all(|earlier| earlier != pass));
        }
        assert_eq!(pass_order(50, 3, 1), passes[3]);
        assert!(pass_order(0, 0, 1).is_empty());
    }
}
