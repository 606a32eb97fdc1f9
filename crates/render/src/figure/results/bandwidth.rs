//! Bandwidth: by mix, by number of CPUs, node matrices, searches.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_model::experiment::Coordinates;
use memgauge_model::result::Measurement;
use memgauge_model::traffic::Mix;
use memgauge_model::wording;

use super::node_matrix::node_map;
use crate::figure::axis::Axis;
use crate::figure::bars::{Bar, BarRow, Bars};
use crate::figure::chart::{Chart, Guide, PointLabel, Sample, Series, reach};
use crate::figure::frame::{Panel, boxed};
use crate::figure::labels::{ABOVE, BELOW, LEFT, UPPER_LEFT};
use crate::figure::palette::{GREY, INK, Style, series};
use crate::figure::source::{ResultSet, caption, sample};
use crate::groups::{self, Ramp, Section, highest_by_mix, thread_count};
use crate::limit::{Limit, MAX_LIMIT_RATIO, bus_moves_what_is_asked, limit, limit_note, limit_of_program, limits};
use crate::number::number;
use crate::pivot::{layers, sorted};

/// The measurements of a result by mix.
type ByMix<'a> = BTreeMap<Option<Mix>, Vec<&'a Measurement>>;

/// Bars, a group for each mix and a bar for each result.
pub(crate) fn by_mix(section: Section, sets: &[ResultSet<'_>]) -> Bars {
    let all: Vec<ByMix<'_>> = sets.iter().map(|s| layers(&s.ms, |m| m.at.mix)).collect();
    bars(sets, &section.title(), rows(&all, |variants| variants > 1))
}

/// The highest bandwidth of each mix, of everything that a search tried.
pub(crate) fn search(sets: &[ResultSet<'_>]) -> Bars {
    let all: Vec<ByMix<'_>> = sets.iter().map(|s| highest_by_mix(&s.ms).into_iter().map(|(mix, m)| (mix, vec![m])).collect()).collect();
    bars(sets, "Highest bandwidth of each mix", rows(&all, |_| sets.len() == 1))
}

/// Rows of each mix. The nth result of a mix stands beside the nth of the same mix in the other results, whichever CPUs their machines have.
/// `named`: whether the variants of a mix say which they are, by their number.
fn rows(all: &[ByMix<'_>], named: impl Fn(usize) -> bool) -> Vec<BarRow> {
    let mut rows = Vec::new();
    for mix in sorted(all.iter().flat_map(BTreeMap::keys).copied()) {
        let of_mix: Vec<&[&Measurement]> = all.iter().map(|by_mix| by_mix.get(&mix).map_or(&[][..], Vec::as_slice)).collect();
        let variants = of_mix.iter().map(|ms| ms.len()).max().unwrap_or(0);
        for n in 0..variants {
            let found: Vec<Option<&Measurement>> = of_mix.iter().map(|ms| ms.get(n).copied()).collect();
            let first = found.iter().flatten().next().filter(|_| named(variants));
            rows.push(row(mix, first.map(|m| variant(&m.at)), &found));
        }
    }
    rows
}

/// A row of one mix: a bar for each result. The detail is the mix's description where nothing else is given.
fn row(mix: Option<Mix>, detail: Option<String>, found: &[Option<&Measurement>]) -> BarRow {
    let described = mix.map_or("", Mix::description);
    BarRow {
        name: mix.map_or_else(|| "mix not stated".to_owned(), |m| m.name().to_owned()),
        detail: detail.filter(|d| !d.is_empty()).unwrap_or_else(|| described.to_owned()),
        bars: found.iter().enumerate().map(|(i, m)| Bar::for_measurement(*m, series(i))).collect(),
    }
}

/// What distinguishes results of one mix.
fn variant(at: &Coordinates) -> String {
    let parts =
        [at.cpus.as_ref().map(wording::cpus), at.memory_node().map(|n| format!("node {n}")), at.delay_cycles.map(|d| format!("delay {d}"))];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn bars(sets: &[ResultSet<'_>], title: &str, rows: Vec<BarRow>) -> Bars {
    let ms: Vec<&Measurement> = sets.iter().flat_map(|s| s.ms.iter().copied()).collect();
    let drawn = || rows.iter().flat_map(|r| &r.bars).filter_map(|b| b.limit);
    let cpus: BTreeSet<_> = ms.iter().filter_map(|m| m.at.cpus.as_ref()).collect();
    let cpus = if cpus.len() == 1 { cpus.iter().map(|c| wording::cpus(c)).collect() } else { String::new() };
    let counted = "GB/s that programs read and write, with the 95 % interval";
    let mut caption = caption(sets, title, &[counted, &cpus], false);
    if sets.len() > 1 {
        caption.key = sets.iter().enumerate().map(|(i, s)| (Style::of_bars(i), s.name.unwrap_or_default().to_owned())).collect();
    }
    // The line is named where it stands at the limit itself; otherwise a note explains it.
    let limit_name = limit(&ms).filter(|l| drawn().all(|d| d == l.gbs)).map(|l| format!("limit {}", l.text()));
    if limit_name.is_none() && drawn().next().is_some() {
        let all: Vec<String> = limits(&ms).iter().map(Limit::text).collect();
        let less = if ms.iter().any(|m| reads_first(m)) { ", minus what stores read first" } else { "" };
        caption.notes.push(format!("Dashed: the limit of the traffic on the bus, {}{less}.", all.join(" or ")));
    }
    Bars { caption, unit: "GB/s", rows, limit_name }
}

/// Whether the bus is known to have moved more than the program asked for.
fn reads_first(m: &Measurement) -> bool {
    limit_of_program(m).zip(m.verdict.limit).is_some_and(|(program, bus)| program < bus)
}

/// Lines over the number of CPUs, one for each mix, place and result.
pub(crate) fn ramps(sets: &[ResultSet<'_>]) -> Vec<Box<dyn Panel>> {
    let all: Vec<_> = sets.iter().flat_map(|set| groups::ramps(&set.ms).into_iter().map(move |(ramp, ms)| (set.name, ramp, ms))).collect();
    let mixes = sorted(all.iter().map(|(_, (mix, ..), _)| *mix));
    let several = |node: fn(&Ramp) -> Option<u32>| sorted(all.iter().map(|(_, ramp, _)| node(ramp))).len() > 1;
    let name = |set: Option<&str>, (mix, from, memory): Ramp| {
        let parts = [
            set.map(str::to_owned),
            mix.filter(|_| mixes.len() > 1).map(|m| m.to_string()),
            memory.filter(|_| several(|ramp| ramp.2)).map(|n| format!("node {n}")),
            from.filter(|_| several(|ramp| ramp.1)).map(|n| format!("from node {n}")),
        ];
        Some(parts.into_iter().flatten().collect::<Vec<_>>().join(", ")).filter(|name| !name.is_empty())
    };
    let only = mixes.first().filter(|_| mixes.len() == 1).copied().flatten().map(|m| format!(", {m}")).unwrap_or_default();
    let lines: Vec<_> = all.iter().map(|(set, ramp, ms)| (name(*set, *ramp), ms.clone())).collect();
    let title = format!("Bandwidth by number of CPUs{only}");
    boxed(ramp(sets, &title, &lines).in_parts(false))
}

fn ramp(sets: &[ResultSet<'_>], title: &str, lines: &[(Option<String>, Vec<&Measurement>)]) -> Chart {
    let ms: Vec<&Measurement> = lines.iter().flat_map(|l| l.1.iter().copied()).collect();
    let largest = ms.iter().map(|m| thread_count(m)).max().unwrap_or(1).max(2);
    let samples: Vec<Sample> = ms.iter().filter_map(|m| sample(thread_count(m) as f64, m)).collect();
    let peak = reach(samples.iter()).map_or(1.0, |b| b.1);
    let limit = limit(&ms);
    let shown = limit.as_ref().filter(|l| l.gbs <= peak * MAX_LIMIT_RATIO && bus_moves_what_is_asked(&ms));
    let top = shown.map_or(peak, |l| l.gbs.max(peak));
    let mut caption = caption(sets, title, &["GB/s that programs read and write, with the 95 % interval"], true);
    caption.notes.extend(limit.as_ref().filter(|_| shown.is_none()).map(|l| limit_note(l, &ms)));
    let x = Axis::doublings("CPUs", 1, largest as u64, 12);
    let mut chart = Chart::new(caption, x, Axis::linear("Bandwidth (GB/s)", 0.0, top, 7));
    for (i, (name, ms)) in lines.iter().enumerate() {
        let samples: Vec<Sample> = ms.iter().filter_map(|m| sample(thread_count(m) as f64, m)).collect();
        let best = samples.iter().max_by(|a, b| a.y.total_cmp(&b.y)).copied();
        chart.point_labels.extend(best.map(|s| {
            let name = format!("{} GB/s with {:.0} {}", number(s.y), s.x, if s.x > 1.0 { "CPUs" } else { "CPU" });
            PointLabel::new((s.x, s.y), name, INK, &[ABOVE, UPPER_LEFT, BELOW, LEFT]).optional_if(lines.len() > 1)
        }));
        chart.series.push(Series { name: name.clone(), style: Style::of_points(i), samples, joined: true });
    }
    chart.guides.extend(shown.map(|l| Guide::level(l.gbs, format!("limit {}", l.text()), GREY)));
    chart
}

/// A matrix by node of the CPUs and node of the memory, for each mix.
pub(crate) fn matrices(set: &ResultSet<'_>) -> Vec<Box<dyn Panel>> {
    boxed(layers(&set.ms, |m| m.at.mix).into_iter().map(|(mix, ms)| {
        let of_mix = ResultSet { ms, ..*set };
        let name = mix.map(|m| format!(", {m}")).unwrap_or_default();
        let counted = "GB/s that programs read and write, all CPUs of a node together";
        let caption = of_mix.caption(&format!("Bandwidth by node{name}"), &[counted], false);
        node_map(caption, &of_mix)
    }))
}
