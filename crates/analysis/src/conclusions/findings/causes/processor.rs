//! Causes in the processor: prefetchers, frequency, heat, encryption.

use memgauge_model::note::{Code, NoteCode};
use memgauge_model::result::{CauseCode, FindingCode, QualityReason, Report};
use memgauge_model::stats;
use memgauge_model::words;
use memgauge_model::words::Verb;

use super::case::{Case, EXCLUDED, FITS, ONLY_SOME, SHOWN, TYPICAL, UNLIKELY};
use super::symptoms::{MANY, Symptoms, WORSE, percent};
use crate::conclusions::findings::machine::{PREFETCHED, all_cores_ghz};
use memgauge_model::result::DifferentField;

/// Frequencies that differ by less are equal.
const SAME_FREQUENCY: f64 = 0.05;
/// All cores together run at a lower frequency than one alone; below this share of the highest one something else limits them.
const FAR_BELOW_HIGHEST: f64 = 0.6;

/// How many times as fast a chase in ascending order is as a random one, at the least.
fn fetched_ahead(report: &Report) -> Option<f64> {
    report
        .results
        .iter()
        .filter(|m| m.is_reliable())
        .filter_map(|m| Some(m.evidence.prefetch?.random_over_sequential))
        .min_by(f64::total_cmp)
}

pub(super) fn prefetchers(s: &Symptoms<'_>) -> Option<Case> {
    let now = fetched_ahead(s.report)?;
    let check = words![Verb::Prefetch, " (as root) shows them, ", Verb::PrefetchCompare, " what they are worth here"];
    let mut case = Case::new(CauseCode::PrefetchersOff, "hardware prefetchers are off", check);
    if now >= PREFETCHED {
        case.add(EXCLUDED, format!("a chase in ascending order is at least {now:.1} times as fast as a random one"));
        return Some(case);
    }
    case.add(SHOWN, "a chase in ascending order is as slow as a random one");
    let slow = s.bandwidth_by().into_iter().chain(s.caches.values().copied()).any(|by| by >= WORSE);
    case.add_if(slow, FITS, "bandwidth is less where nothing is fetched ahead");
    match s.before.and_then(fetched_ahead) {
        Some(then) if then < PREFETCHED => case.add(UNLIKELY, format!("it was so {}, too", s.when)),
        Some(then) => case.add(TYPICAL, format!("it was {then:.1} times as fast {}", s.when)),
        None => {}
    }
    Some(case)
}

/// Cores that run at a lower frequency by a setting, or for want of power.
pub(super) fn frequency(s: &Symptoms<'_>) -> Option<Case> {
    let now = all_cores_ghz(s.report)?;
    let check =
        words![Verb::Info, " shows governor, turbo and energy preference; turbostat or the management controller show power limits"];
    let mut case = Case::new(CauseCode::FrequencyLimited, format!("cores run at {now:.2} GHz only"), check);
    match s.before.and_then(all_cores_ghz) {
        Some(then) if now < then * (1.0 - SAME_FREQUENCY) => {
            case.add(SHOWN, format!("{now:.2} GHz while all cores work, {then:.2} GHz {}", s.when));
        }
        Some(then) => case.add(EXCLUDED, format!("{now:.2} GHz while all cores work, and {then:.2} GHz {}", s.when)),
        None => {
            let highest = s.report.machine.topology.cpus.iter().filter_map(|cpu| cpu.max_mhz).max().map(|mhz| f64::from(mhz) / 1e3);
            let low = highest.filter(|highest| now < highest * FAR_BELOW_HIGHEST);
            case.add_if(low.is_some(), TYPICAL, format!("the highest frequency is {:.2} GHz", low.unwrap_or_default()));
        }
    }
    for field in [DifferentField::Governor, DifferentField::Turbo, DifferentField::EnergyPreference] {
        if let Some((before, after)) = s.property(field).filter(|(before, after)| before != after) {
            case.add(FITS, format!("{} {before} → {after} since", memgauge_model::wording::spelled(&field).replace('-', " ")));
        }
    }
    let limited = s.report.environment.limits.iter().find(|note| note.code == Code::Known(NoteCode::FrequencyLimited));
    case.add_if(limited.is_some(), FITS, limited.map(|note| note.message.to_string()).unwrap_or_default());
    // The frequency of all cores was measured: that some of them wait less for memory does not matter.
    case.add_if(s.is_of_some_parts() && !s.found(FindingCode::SlowerCores), UNLIKELY, ONLY_SOME);
    case.add_if(falls(s), UNLIKELY, "the frequency falls during the check, which a setting does not do");
    Some(case)
}

/// Whether frequencies fall during measurements.
fn falls(s: &Symptoms<'_>) -> bool {
    let ratios: Vec<f64> =
        s.report.results.iter().filter_map(|m| Some(m.evidence.noise.ghz_after? / m.evidence.noise.ghz_before?)).collect();
    let low = stats::median(&ratios).is_some_and(|ratio| ratio < 1.0 - SAME_FREQUENCY);
    low || s.share(|m| m.quality.reasons.contains(&QualityReason::FrequencyDrift)) >= MANY
}

pub(super) fn heat(s: &Symptoms<'_>) -> Option<Case> {
    let log = s.report.machine.identity.system.words().hardware_log;
    let check = words!["look at temperatures and fans (sensors, the management controller), and at {log} for throttling"];
    let mut case = Case::new(CauseCode::ThermalThrottling, "heat throttles cores or memory", check);
    match s.report.environment.thermal_throttles {
        Some(0) => case.add(UNLIKELY, "the kernel counted no throttling of cores by heat"),
        Some(count) => case.add(SHOWN, format!("the kernel counted {count} times that heat throttled cores or packages during the check")),
        None => {}
    }
    case.add_if(falls(s), TYPICAL, "the frequency falls during the check");
    let slower = s.before.and_then(all_cores_ghz).zip(all_cores_ghz(s.report)).map(|(then, now)| now < then * (1.0 - SAME_FREQUENCY));
    case.add_if(slower == Some(true), FITS, format!("cores are slower than {}", s.when));
    case.add_if(slower == Some(false) && !falls(s), UNLIKELY, format!("cores are as fast as {}", s.when));
    Some(case)
}

/// A few cores that are slower than the others.
pub(super) fn slow_cores(s: &Symptoms<'_>) -> Option<Case> {
    if !s.found(FindingCode::SlowCores) {
        return None;
    }
    let log = s.report.machine.identity.system.words().hardware_log;
    let check = format!("look at {log} for throttling, and at the frequency settings of these cores");
    let mut case = Case::new(CauseCode::SlowCores, "some cores run at a lower frequency than the others", check);
    case.add(SHOWN, "it was measured while all cores worked");
    Some(case)
}

/// Encryption of all memory.
pub(super) fn encryption(s: &Symptoms<'_>) -> Option<Case> {
    let now = s.report.machine.identity.memory_encryption.as_ref()?;
    let check =
        words!["measure with it off, if that may be, and ", Verb::Compare, " both results: confidential guests cannot switch it off"];
    let mut case = Case::new(CauseCode::MemoryEncryption, format!("memory is encrypted ({now})"), check);
    match s.before.map(|before| before.machine.identity.memory_encryption.as_ref()) {
        Some(Some(then)) if then == now => case.add(EXCLUDED, format!("it was {}, too", s.when)),
        Some(Some(then)) => case.add(SHOWN, format!("it was encrypted by {then} {}", s.when)),
        // An earlier version did not look, and not every kernel shows it.
        Some(None) => case.add(TYPICAL + FITS, format!("nothing showed it {}", s.when)),
        None => {}
    }
    if let Some(by) = s.latency_by().filter(|by| *by >= WORSE && s.is_of_all_nodes()) {
        case.add(FITS, format!("latency is {} more on all nodes", percent(by)));
    }
    case.add_if(s.is_of_some_parts(), UNLIKELY, ONLY_SOME);
    Some(case)
}
