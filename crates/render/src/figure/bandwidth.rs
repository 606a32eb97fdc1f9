//! Bandwidth: by mix, by number of CPUs, node matrices, searches.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_core::experiment::Coordinates;
use memgauge_core::result::Measurement;
use memgauge_core::traffic::Mix;

use super::axis::Axis;
use super::bars::{Bars, Row};
use super::chart::{Chart, Mark, Rule, Sample, Series};
use super::frame::{Panel, Words};
use super::labels::{ABOVE, BELOW, LEFT, UPPER_LEFT};
use super::latency::node_matrix;
use super::palette::{GREY, INK, series};
use super::source::{
    FAR, Limit, MOST_SERIES, Set, about, bar, bus_moves_what_is_asked, common_pages, interval, is_degraded, limit, limit_note,
    limit_of_program, limits, notes, part_of, shared_title,
};
use crate::text::cpus_name;
use crate::text::number::{bounds, number, value_of};

/// Node of the CPUs and node of the memory.
type Place = (Option<u32>, Option<u32>);

/// What a bar or a line is of: everything but the mix, the number of CPUs and the delay.
fn place(at: &Coordinates) -> Place {
    (at.cpu_node, at.memory_node)
}

fn mix_order(mix: Option<Mix>) -> usize {
    Mix::ALL.iter().position(|m| Some(*m) == mix).unwrap_or(usize::MAX)
}

/// The same for the CPUs behind each last-level cache.
pub(crate) fn by_domain(sets: &[Set<'_>]) -> Bars {
    let bars = by_mix(sets);
    Bars { words: Words { title: shared_title(sets, "Bandwidth by last-level cache"), ..bars.words }, ..bars }
}

/// Bars, a group for each mix and a bar for each result.
pub(crate) fn by_mix(sets: &[Set<'_>]) -> Bars {
    // The nth result of a mix stands beside the nth of the same mix in the other results, whichever CPUs their machines have.
    let of_mix = |s: &Set<'_>, mix| s.ms.iter().filter(|m| m.at.mix == mix).count();
    let mixes: BTreeSet<(usize, Option<Mix>)> = sets.iter().flat_map(|s| &s.ms).map(|m| (mix_order(m.at.mix), m.at.mix)).collect();
    let mut rows = Vec::new();
    for (_, mix) in mixes {
        let most = sets.iter().map(|s| of_mix(s, mix)).max().unwrap_or(0);
        for n in 0..most {
            let found: Vec<Option<&Measurement>> = sets.iter().map(|s| s.ms.iter().copied().filter(|m| m.at.mix == mix).nth(n)).collect();
            let described = mix.map_or("", Mix::description);
            let first = found.iter().flatten().next();
            rows.push(Row {
                name: mix.map_or_else(|| "mix not stated".to_owned(), |m| m.name().to_owned()),
                detail: first.filter(|_| most > 1).map_or_else(|| described.to_owned(), |m| variant(&m.at, described)),
                bars: found.into_iter().enumerate().map(|(i, m)| bar(m, series(i))).collect(),
            });
        }
    }
    bars(sets, "Bandwidth by mix of traffic", rows)
}

/// What tells results of one mix apart.
fn variant(at: &Coordinates, otherwise: &str) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(at.cpus.as_ref().map(cpus_name));
    parts.extend(at.memory_node.map(|n| format!("node {n}")));
    parts.extend(at.delay_cycles.map(|d| format!("delay {d}")));
    if parts.is_empty() { otherwise.to_owned() } else { parts.join(", ") }
}

/// The highest of each mix, of everything that a search tried.
pub(crate) fn search(sets: &[Set<'_>]) -> Bars {
    let mixes: BTreeSet<(usize, Option<Mix>)> = sets.iter().flat_map(|s| &s.ms).map(|m| (mix_order(m.at.mix), m.at.mix)).collect();
    let rows = mixes
        .into_iter()
        .map(|(_, mix)| {
            let found: Vec<Option<&Measurement>> = sets.iter().map(|s| best(s, mix)).collect();
            let detail = match found.as_slice() {
                [Some(m)] => variant(&m.at, ""),
                _ => mix.map_or("", Mix::description).to_owned(),
            };
            Row {
                name: mix.map_or_else(|| "mix not stated".to_owned(), |m| m.name().to_owned()),
                detail,
                bars: found.into_iter().enumerate().map(|(i, m)| bar(m, series(i))).collect(),
            }
        })
        .collect();
    bars(sets, "Highest bandwidth of each mix", rows)
}

fn best<'a>(set: &Set<'a>, mix: Option<Mix>) -> Option<&'a Measurement> {
    let value = |m: &Measurement| value_of(&m.estimate).unwrap_or(-1.0);
    set.ms.iter().copied().filter(|m| m.at.mix == mix).max_by(|a, b| value(a).total_cmp(&value(b)))
}

fn bars(sets: &[Set<'_>], title: &str, rows: Vec<Row>) -> Bars {
    let ms: Vec<&Measurement> = sets.iter().flat_map(|s| s.ms.iter().copied()).collect();
    let drawn = || rows.iter().flat_map(|r| &r.bars).filter_map(|b| b.limit);
    let cpus: BTreeSet<_> = ms.iter().filter_map(|m| m.at.cpus.as_ref()).collect();
    let cpus = if cpus.len() == 1 { cpus.iter().map(|c| cpus_name(c)).collect() } else { String::new() };
    let counted = "GB/s that programs read and write, with the 95 % interval";
    let mut words = Words::new(shared_title(sets, title), about(&[counted, &cpus, &common_pages(sets)]));
    notes(&mut words, sets, false);
    if sets.len() > 1 {
        words.key = sets.iter().enumerate().map(|(i, s)| (series(i), s.name.unwrap_or_default().to_owned())).collect();
    }
    // Named at the line where that stands at the limit itself, else explained.
    let limit_name = limit(&ms).filter(|l| drawn().all(|d| d == l.gbs)).map(|l| format!("limit {}", l.text()));
    if limit_name.is_none() && drawn().next().is_some() {
        let all: Vec<String> = limits(&ms).iter().map(Limit::text).collect();
        let less = if ms.iter().any(|m| reads_first(m)) { ", less what stores read first" } else { "" };
        words.notes.push(format!("Dashed: the limit of what crosses the bus, {}{less}.", all.join(" or ")));
    }
    Bars { words, unit: "GB/s", rows, limit_name }
}

/// Whether more crossed the bus than the program asked for, as far as that is known.
fn reads_first(m: &Measurement) -> bool {
    limit_of_program(m).zip(m.verdict.limit).is_some_and(|(program, bus)| program < bus)
}

/// Lines over the number of CPUs, one for each mix, place and result.
pub(crate) fn ramps(sets: &[Set<'_>]) -> Vec<Box<dyn Panel>> {
    let mixes: BTreeSet<Option<Mix>> = sets.iter().flat_map(|s| &s.ms).map(|m| m.at.mix).collect();
    let places: BTreeSet<_> = sets.iter().flat_map(|s| &s.ms).map(|m| place(&m.at)).collect();
    let mut lines: Vec<(Option<String>, Vec<&Measurement>)> = Vec::new();
    for set in sets {
        let mut of_set: BTreeMap<(usize, Option<Mix>, Place), Vec<&Measurement>> = BTreeMap::new();
        for m in &set.ms {
            of_set.entry((mix_order(m.at.mix), m.at.mix, place(&m.at))).or_default().push(m);
        }
        for ((_, mix, (_, memory)), mut ms) in of_set {
            ms.sort_by_key(|m| threads(m));
            let mut parts: Vec<String> = set.name.iter().map(|n| (*n).to_owned()).collect();
            parts.extend(mix.filter(|_| mixes.len() > 1).map(|m| m.to_string()));
            parts.extend(memory.filter(|_| places.len() > 1).map(|n| format!("node {n}")));
            lines.push(((!parts.is_empty()).then(|| parts.join(", ")), ms));
        }
    }
    let only = mixes.iter().next().filter(|_| mixes.len() == 1).copied().flatten().map(|m| format!(", {m}")).unwrap_or_default();
    let title = shared_title(sets, &format!("Bandwidth by number of CPUs{only}"));
    let of = lines.len().div_ceil(MOST_SERIES);
    let chart = |(part, lines)| Box::new(ramp(sets, &(title.clone() + &part_of(part, of)), lines)) as Box<dyn Panel>;
    lines.chunks(MOST_SERIES).enumerate().map(chart).collect()
}

fn threads(m: &Measurement) -> usize {
    m.at.cpus.as_ref().map_or(m.evidence.threads as usize, |c| c.len())
}

fn ramp(sets: &[Set<'_>], title: &str, lines: &[(Option<String>, Vec<&Measurement>)]) -> Chart {
    let ms: Vec<&Measurement> = lines.iter().flat_map(|l| l.1.iter().copied()).collect();
    let most = ms.iter().map(|m| threads(m)).max().unwrap_or(1).max(2);
    let values = ms.iter().flat_map(|m| [value_of(&m.estimate), interval(m).map(|i| i.1)]).flatten();
    let peak = bounds(values).map_or(1.0, |b| b.1);
    let limit = limit(&ms);
    let shown = limit.as_ref().filter(|l| l.gbs <= peak * FAR && bus_moves_what_is_asked(&ms));
    let top = shown.map_or(peak, |l| l.gbs.max(peak));
    let mut words = Words::new(title, about(&["GB/s that programs read and write, with the 95 % interval", &common_pages(sets)]));
    words.notes.extend(limit.as_ref().filter(|_| shown.is_none()).map(|l| limit_note(l, &ms)));
    notes(&mut words, sets, true);
    let x = Axis::doublings("CPUs", 1, most as u64, 12);
    let mut chart = Chart::new(words, x, Axis::linear("Bandwidth (GB/s)", 0.0, top, 7));
    for (i, (name, ms)) in lines.iter().enumerate() {
        let samples: Vec<Sample> = ms
            .iter()
            .filter_map(|m| {
                let y = value_of(&m.estimate)?;
                Some(Sample { x: threads(m) as f64, y, y_interval: interval(m), degraded: is_degraded(m), x_interval: None })
            })
            .collect();
        let best = samples.iter().max_by(|a, b| a.y.total_cmp(&b.y)).copied();
        chart.marks.extend(best.map(|s| Mark {
            at: (s.x, s.y),
            name: format!("{} GB/s with {:.0} {}", number(s.y), s.x, if s.x > 1.0 { "CPUs" } else { "CPU" }),
            colour: INK,
            ring: false,
            optional: lines.len() > 1,
            directions: vec![ABOVE, UPPER_LEFT, BELOW, LEFT],
        }));
        chart.series.push(Series { name: name.clone(), colour: series(i), samples, joined: true });
    }
    chart.rules.extend(shown.map(|l| Rule { at: l.gbs, vertical: false, name: format!("limit {}", l.text()), colour: GREY }));
    chart
}

/// A matrix by node of the CPUs and node of the memory, for each mix.
pub(crate) fn matrices(set: Set<'_>) -> Vec<Box<dyn Panel>> {
    let mixes: BTreeSet<(usize, Option<Mix>)> = set.ms.iter().map(|m| (mix_order(m.at.mix), m.at.mix)).collect();
    let mut panels: Vec<Box<dyn Panel>> = Vec::new();
    for (_, mix) in mixes {
        let of_mix = Set { ms: set.ms.iter().copied().filter(|m| m.at.mix == mix).collect(), ..set };
        let name = mix.map(|m| format!(", {m}")).unwrap_or_default();
        let pages = common_pages(std::slice::from_ref(&of_mix));
        let counted = "GB/s that programs read and write, all CPUs of a node together";
        let words = Words::new(of_mix.title(&format!("Bandwidth by node{name}")), about(&[counted, &pages]));
        panels.push(Box::new(node_matrix(words, "GB/s", &of_mix)));
    }
    panels
}
