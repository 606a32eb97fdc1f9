//! Published values: beside what was measured, and the table itself.

use std::collections::BTreeMap;

use memgauge_analysis::reference::PublishedValue;
use memgauge_model::result::{Comparable, NoReference, Position, PublishedSpan, Report, Unreferenced};
use memgauge_model::words::{Command, Knob, Verb};

use super::block::Block;
use super::grid::{Cell, Column};
use super::page::{Page, Style};
use crate::number::{bounds, from_to, number, unit};

/// The compared quantity, and how it was measured elsewhere.
const fn words(comparable: Comparable) -> &'static str {
    match comparable {
        Comparable::IdleLocalRandom => "idle latency, random chase over the whole buffer",
        Comparable::IdleLocalTranslationHidden => "idle latency, random chase, address translation hidden",
        Comparable::IdleRemoteRandom => "idle latency to another socket, random chase over the whole buffer",
        Comparable::ReadPerSocket => "all-reads per socket, same channels and speed",
        Comparable::TransferSameSocket => "modified line from the same socket",
        Comparable::TransferOtherSocket => "modified line from another socket",
    }
}

/// Prints the published values for machines like this one, a line each.
pub(super) fn references(page: &mut Page, report: &Report) {
    if report.references.is_empty() && report.no_reference.is_none() {
        return;
    }
    page.heading("Published", "what others saw on CPUs of this generation; nothing is judged by it");
    for reference in &report.references {
        page.text(Style::Plain, "  ", "    ", &line(reference));
    }
    if let Some(none) = &report.no_reference {
        page.text(Style::Plain, "  ", "    ", &without(none));
    }
    let mixed = |r: &PublishedSpan| r.virtual_values > 0 && r.virtual_values < r.n;
    if report.references.iter().any(mixed) {
        let warning = "Virtual machines and bare metal stand in one span, because too few values are of machines like this one. \
                       Virtual machines of one generation differ by up to 1.6 times.";
        page.text(Style::Dim, "  ", "  ", warning);
    }
    if let Some(first) = report.references.first() {
        let generation = format!("'{}'", first.microarch.to_lowercase());
        let command = Command::new(Verb::Reference).word(generation).with(Knob::Sources);
        page.text(Style::Dim, "  ", "  ", &format!("Sources: {command}"));
    }
}

/// `Zen 4, bare metal, idle latency, random chase …: 113–133 ns (n = 8); here 138 ns, above that`.
fn line(r: &PublishedSpan) -> String {
    let machines = match r.virtual_machines {
        Some(true) => ", virtual machines".to_owned(),
        Some(false) => ", bare metal".to_owned(),
        None if r.virtual_values > 0 && r.metal_values > 0 => ", virtual machines and bare metal".to_owned(),
        None if r.virtual_values > 0 => ", virtual machines and others".to_owned(),
        None => String::new(),
    };
    let memory = r.memory.as_ref().map_or_else(String::new, |kind| format!(", {kind}"));
    let span = if r.low == r.high { number(r.low) } else { from_to(number(r.low), number(r.high)) };
    let position = match r.position {
        Position::Below => ", below that",
        Position::Within => "",
        Position::Above => ", above that",
    };
    let mut about = vec![format!("n = {}", r.n)];
    about.extend((r.corrected > 0).then(|| format!("{} corrected for cache hits", r.corrected)));
    about.extend((r.other_nodes_possible > 0).then(|| format!("NUMA mode not known to be the same for {}", r.other_nodes_possible)));
    let unit = unit(r.unit);
    format!(
        "{}{memory}{machines}, {}: {span} {unit} ({}); here {} {unit}{position}",
        r.microarch,
        words(r.comparable),
        about.join(", "),
        number(r.measured)
    )
}

/// `no published reference for idle latency, …: memgauge cannot tell this CPU's generation`.
fn without(none: &Unreferenced) -> String {
    let generation = none.microarch.as_deref().unwrap_or("this generation");
    let why = match none.reason {
        NoReference::GenerationUnknown => "memgauge does not know this CPU's generation".to_owned(),
        NoReference::GenerationNotInTable => format!("the table has no values of {generation}"),
        NoReference::NothingComparable => {
            format!("the values of {generation} in the table were measured otherwise, or with other memory, channels or NUMA modes")
        }
    };
    let quantities: Vec<&str> = none.comparables.iter().map(|&c| words(c)).collect();
    format!("no published reference: {why} ({})", quantities.join("; "))
}

/// Published values as a table: how many each generation has of each quantity and method, and their span. With `sources`, each value.
pub(crate) fn published_blocks(values: &[PublishedValue<'_>], sources: bool) -> Vec<Block> {
    let mut page = Page::new(true);
    if sources {
        every_value(&mut page, values);
    } else {
        spans(&mut page, values);
    }
    page.into_blocks()
}

fn spans(page: &mut Page, values: &[PublishedValue<'_>]) {
    let mut groups: BTreeMap<(&str, &str, &str, &str), Vec<f64>> = BTreeMap::new();
    for v in values {
        groups.entry((v.microarch, quantity(v.quantity), method(v.method), v.unit)).or_default().push(v.value);
    }
    let span = |all: &Vec<f64>| bounds(all.iter().copied()).map(|(low, high)| from_to(number(low), number(high)));
    page.table([
        Column::text("CPU generation", groups.keys().map(|k| if k.0.is_empty() { "(not stated)" } else { k.0 })),
        Column::text("quantity", groups.keys().map(|k| k.1)),
        Column::text("method", groups.keys().map(|k| k.2)),
        Column::numbers("values", groups.values().map(|all| Cell::number(all.len().to_string()))),
        Column::text("span", groups.values().map(span)),
        Column::text("unit", groups.keys().map(|k| k.3)),
    ]);
}

/// A quantity of the table as people say it.
fn quantity(name: &str) -> &str {
    QUANTITIES.iter().find(|row| row.0 == name).map_or(name, |row| row.1)
}

/// The names of quantities in the table, and their words.
const QUANTITIES: [(&str, &str); 24] = [
    ("bw_vm_gbs", "bandwidth of a VM"),
    ("c2c_cross_domain_ns", "transfer, other cache, same socket"),
    ("c2c_cross_socket_ns", "transfer, other socket"),
    ("c2c_same_domain_ns", "transfer, same cache or socket"),
    ("c2c_smt_ns", "transfer within a core"),
    ("cxl_latency_ns", "CXL latency"),
    ("idle_latency_cluster_ns", "idle latency, same socket, other node"),
    ("idle_latency_local_mixed_ns", "idle latency, partly from cache"),
    ("idle_latency_local_ns", "idle latency"),
    ("idle_latency_local_structural_ns", "idle latency without TLB misses"),
    ("idle_latency_remote_ns", "idle latency, other socket"),
    ("l1_ns", "L1 latency"),
    ("l2_ns", "L2 latency"),
    ("l3_ns", "L3 latency"),
    ("loaded_latency_sat_ns", "latency at full load"),
    ("mixed_bw_socket_gbs", "reads and writes per socket"),
    ("pmem_latency_random_ns", "persistent memory, random reads"),
    ("pmem_read_bw_gbs", "persistent memory, reads"),
    ("pmem_write_bw_gbs", "persistent memory, writes"),
    ("read_bw_1thread_gbs", "reads, one thread"),
    ("read_bw_socket_gbs", "reads per socket"),
    ("stream_socket_gbs", "STREAM per socket"),
    ("triad_socket_gbs", "triad per socket"),
    ("triad_vm_gbs", "triad of a VM"),
];

/// The name of a method: what stands before its details.
fn method(text: &str) -> &str {
    const DETAILS: [&str; 8] = [": pointer", ";", " (", ", CPU 0", ", private buffers", ", at ", ", expected", ", total"];
    let end = DETAILS.iter().filter_map(|mark| text.find(mark)).min().unwrap_or(text.len());
    &text[..end]
}

fn every_value(page: &mut Page, values: &[PublishedValue<'_>]) {
    for v in values {
        let corrected = v.corrected.map_or_else(String::new, |c| format!(" ({} without cache hits, our estimate)", number(c)));
        page.gap();
        page.line(Style::Bold, &format!("{} {} {}{corrected}", quantity(v.quantity), number(v.value), v.unit));
        let memory = [
            v.mem_type.to_owned(),
            v.channels.map(|n| format!("{n} channels")).unwrap_or_default(),
            v.mts.map(|n| format!("{n} MT/s")).unwrap_or_default(),
        ];
        page.items(Style::Plain, "  ", [v.microarch, v.cpu_model, v.mode, memory.join(" ").trim(), v.pages]);
        page.paragraph(Style::Plain, v.method);
        page.paragraph(Style::Dim, format!("{}: {}", v.confidence, v.source));
        page.paragraph(Style::Dim, v.note);
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::lay_out;
    use super::*;

    #[test]
    fn every_quantity_of_the_table_has_words_and_each_method_a_line() {
        let values: Vec<_> = memgauge_analysis::reference::published().collect();
        for v in &values {
            assert!(QUANTITIES.iter().any(|row| row.0 == v.quantity), "{}", v.quantity);
        }
        let text = lay_out(&published_blocks(&values, false), 200, false);
        let zen5: Vec<&str> = text.lines().filter(|l| l.starts_with("  Zen 5  ") && l.contains("idle latency")).collect();
        assert_eq!(zen5.len(), 2, "membench and Chips and Cheese: {zen5:#?}");
        assert!(!text.contains("_ns") && !text.contains("_gbs"), "{text}");
    }
}
