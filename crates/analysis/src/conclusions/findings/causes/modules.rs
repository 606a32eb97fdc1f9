//! Causes among the memory modules: missing, slow, unequal, with errors.

use std::collections::BTreeSet;

use memgauge_model::installed::{InstalledMemory, MemoryDevice};
use memgauge_model::result::{CauseCode, Report};
use memgauge_model::units::Bytes;
use memgauge_model::wording;
use memgauge_model::words;
use memgauge_model::words::{Verb, Ways};

use super::case::{Case, EXCLUDED, FITS, ONLY_SOME, SHOWN, TYPICAL, UNLIKELY};
use super::symptoms::{Symptoms, WORSE, percent};
use crate::conclusions::findings::machine::smaller_groups;
use memgauge_model::result::DifferentField;

/// Latency that is more by this share is not for want of a channel: an idle machine has enough of them.
const NOT_BY_CHANNELS: f64 = 0.08;

/// A module is this share of a node's memory at least: one in twelve or sixteen channels.
const ONE_OF_MANY: f64 = 0.06;

/// The modules as firmware lists them; `None` where it lists none, or a hypervisor made them up.
fn listed(report: &Report) -> Option<&InstalledMemory> {
    let identity = &report.machine.identity;
    let installed = &identity.installed;
    (!identity.may_be_virtual() && installed.reason.is_none() && !installed.devices.is_empty()).then_some(installed)
}

fn names(installed: &InstalledMemory) -> BTreeSet<String> {
    installed.devices.iter().map(MemoryDevice::name).collect()
}

/// How to look at the list.
fn look(s: &Symptoms<'_>) -> Ways {
    words!["look at the list of modules (", Verb::Info]
        .followed_by(s.report.machine.identity.system.words().for_memory_devices)
        .followed_by("), and compare it with the management controller's inventory and its messages about memory training")
        .into()
}

/// A channel without a module, or a module that is gone.
pub(super) fn empty_channel(s: &Symptoms<'_>) -> Option<Case> {
    let now = listed(s.report);
    let then = s.before.and_then(listed);
    let gone: Vec<String> = then.zip(now).map_or_else(Vec::new, |(then, now)| names(then).difference(&names(now)).cloned().collect());
    let empty = now.map(InstalledMemory::empty_channels).unwrap_or_default();
    let what = match (gone.as_slice(), empty.as_slice()) {
        ([], []) => "a memory channel is not in use".to_owned(),
        ([], empty) => format!("{} has no memory module", empty.join(", ")),
        (gone, _) => format!("memory modules are missing: {}", gone.join(", ")),
    };
    let mut case = Case::new(CauseCode::EmptyChannel, what, look(s));
    if !gone.is_empty() {
        case.add(SHOWN, format!("firmware listed {} {}, and does not now", gone.join(", "), s.when));
    } else if then.is_some() && now.is_some() {
        case.add(EXCLUDED, format!("firmware still lists every module that it listed {}", s.when));
    } else if !empty.is_empty() {
        case.add(SHOWN, format!("firmware lists modules in this channel of other sockets, and none in {}", empty.join(", ")));
    } else if s.report.machine.topology.packages().len() > 1 && now.is_some_and(|now| now.peak().is_ok_and(|peak| peak.channels_known)) {
        case.add(UNLIKELY, "firmware lists modules in the same channels of all sockets");
    }
    if let Some((before, after)) = s.property(DifferentField::Memory).filter(|_| !gone.is_empty()) {
        case.add_if(before != after, FITS, format!("{after} GiB of memory, {before} {}", s.when));
    }
    if let Some((nodes, ..)) = smaller_groups(s.report, ONE_OF_MANY).first().filter(|_| then.is_none()) {
        case.add(TYPICAL, format!("less memory than others: {}", wording::nodes(nodes)));
    }
    match (s.bandwidth_by(), s.latency_by()) {
        (Some(bandwidth), Some(latency)) if bandwidth >= WORSE && latency < WORSE => {
            case.add(FITS, format!("bandwidth is {} less and idle latency as it should be, as with fewer channels", percent(bandwidth)));
        }
        (_, Some(latency)) if latency >= NOT_BY_CHANNELS => {
            case.add(UNLIKELY, format!("idle latency is {} more, which fewer channels do not explain", percent(latency)));
        }
        _ => {}
    }
    if let Some(why) = s.report.machine.identity.installed.reason.as_ref().filter(|_| case.is_likely()) {
        case.add(0, format!("firmware's list of modules is not known: {why}"));
    }
    Some(case)
}

/// Modules that run below their rated speed.
pub(super) fn clocked_down(s: &Symptoms<'_>) -> Option<Case> {
    let now = listed(s.report)?;
    // A few slow ones are another cause.
    let usual = |installed: &InstalledMemory| {
        let mut speeds: Vec<u32> = installed.devices.iter().filter_map(|d| d.configured_mts).collect();
        speeds.sort_unstable();
        speeds.get(speeds.len() / 2).copied()
    };
    let configured = usual(now)?;
    let rated = now.devices.iter().filter_map(|d| d.rated_mts).max();
    let then = s.before.and_then(listed).and_then(usual);
    let what = format!("memory modules run at {configured} MT/s");
    let check = words!["look at both speeds (", Verb::Info]
        .followed_by(s.report.machine.identity.system.words().for_memory_devices)
        .followed_by("), at the firmware's memory settings, and at which modules share a channel");
    let mut case = Case::new(CauseCode::ModulesClockedDown, what, check);
    match then {
        Some(then) if configured < then => {
            case.add(SHOWN, format!("firmware states {configured} MT/s, and stated {then} {}", s.when));
            let fits = s.bandwidth_by().is_some_and(|by| (by - (1.0 - f64::from(configured) / f64::from(then))).abs() < 0.05);
            case.add_if(fits, FITS, "the loss of bandwidth is that of the speed");
        }
        Some(_) => case.add(EXCLUDED, format!("firmware stated the same speed {}", s.when)),
        None => {
            let rated = rated.filter(|rated| configured < *rated)?;
            case.add(
                FITS,
                format!(
                    "firmware states {configured} MT/s for modules that are rated {rated} MT/s; two modules in a channel explain it, too"
                ),
            );
        }
    }
    case.add_if(s.is_of_all_nodes(), FITS, "all nodes are worse alike");
    case.add_if(s.is_of_some_parts(), UNLIKELY, ONLY_SOME);
    Some(case)
}

/// The ways in which modules differ from each other, by their ranks if these count. Names of slots do not matter.
fn differences(installed: &InstalledMemory, ranks: bool) -> Vec<String> {
    let range = |of: fn(&MemoryDevice) -> Option<u64>| {
        let all: BTreeSet<u64> = installed.devices.iter().filter_map(of).collect();
        all.first().copied().zip(all.last().copied()).filter(|(least, most)| least < most)
    };
    let sizes = range(|d| d.size.map(|size| size.0)).map(|(least, most)| format!("modules have {} to {}", Bytes(least), Bytes(most)));
    let speeds = range(|d| d.configured_mts.map(u64::from)).map(|(least, most)| format!("modules run at {least} to {most} MT/s"));
    let of_ranks = range(|d| d.ranks.map(u64::from)).map(|(least, most)| format!("modules have {least} to {most} ranks"));
    [sizes, speeds, of_ranks.filter(|_| ranks)].into_iter().flatten().collect()
}

/// Modules of several sizes, ranks or speeds.
pub(super) fn unequal(s: &Symptoms<'_>) -> Option<Case> {
    let installed = listed(s.report)?;
    let then = s.before.and_then(listed);
    // Results of earlier versions have no ranks.
    let ranks = then.is_none_or(|then| then.devices.iter().any(|device| device.ranks.is_some()));
    let differ = differences(installed, ranks);
    if differ.is_empty() {
        return None;
    }
    let mut case = Case::new(CauseCode::UnequalModules, "memory modules differ in size, ranks or speed", look(s));
    let claim = format!("firmware: {}", differ.join("; "));
    match then.map(|then| differences(then, ranks)) {
        Some(then) if then == differ => case.add(EXCLUDED, format!("they differed as much {}", s.when)),
        Some(_) => case.add(SHOWN, format!("{claim}; not so {}", s.when)),
        // Two modules in a channel may differ where channels are alike.
        None => {
            let even = installed.peak().is_ok_and(|peak| peak.channels_known) && installed.uneven().is_empty();
            case.add(if even { FITS } else { TYPICAL }, claim);
        }
    }
    case.add_if(s.is_of_some_nodes(), FITS, "some nodes are worse and others are not");
    Some(case)
}

/// Errors that memory controllers counted.
pub(super) fn errors(s: &Symptoms<'_>) -> Option<Case> {
    let errors = s.report.environment.memory_errors.as_ref()?;
    let count = errors.corrected + errors.uncorrected;
    if count == 0 {
        return None;
    }
    let of: Vec<&str> = errors.dimms.iter().map(|d| d.dimm.as_str()).collect();
    let of = if of.is_empty() { String::new() } else { format!(" in {}", of.join(", ")) };
    let check = s.report.machine.identity.system.words().find_bad_dimm;
    let mut case = Case::new(CauseCode::MemoryErrors, format!("memory errors are corrected{of}"), check);
    case.add(SHOWN, format!("the kernel counted {count} errors{of} during the check"));
    case.add(FITS, "each correction that firmware handles stops all cores for a moment");
    Some(case)
}
