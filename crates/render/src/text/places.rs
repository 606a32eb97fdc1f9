//! Nodes and directories: what stands behind a directory, and what each node's CPUs get from each.

use memgauge_model::directory::MemoryDir;
use memgauge_model::experiment::{ChaseOrder, Experiment};
use memgauge_model::persistent::{PersistentDevice, PersistentModule};
use memgauge_model::result::Measurement;
use memgauge_model::traffic::{Access, Mix};
use memgauge_model::wording;

use super::context::Context;
use super::footnotes::Footnotes;
use super::grid::matrix;
use super::page::{Page, Style};
use crate::number::human;
use crate::pivot::{Pivot, sorted};

/// The namespace, region and modules behind a directory; empty where it is on something else.
pub(super) fn device(dir: &MemoryDir) -> Vec<String> {
    let Some(found) = &dir.persistent else { return Vec::new() };
    let size = |bytes: Option<_>| bytes.map(|bytes| format!(" of {}", human(bytes))).unwrap_or_default();
    let mode = found.mode.as_ref().map(|mode| format!(" ({mode})")).unwrap_or_default();
    let mut items = Vec::new();
    items.extend(found.namespace.as_ref().map(|namespace| format!("{namespace}{mode}{}", size(found.bytes))));
    let mut of_region = region(found);
    if let Some(first) = of_region.first_mut() {
        *first = format!("{} of {first}", found.region);
    }
    items.extend(of_region);
    items
}

/// Describes a region, and the modules behind it.
pub(super) fn region(found: &PersistentDevice) -> Vec<String> {
    let size = found.region_bytes.map_or_else(|| "an unknown size".to_owned(), human);
    let mut items = vec![format!("{size} at {}", found.node.map_or("an unknown node".into(), |n| format!("node {n}")))];
    items.extend(found.interleave_set.as_ref().map(|set| format!("interleave set {set}")));
    items.extend(found.persistence_domain.as_ref().map(|domain| format!("durable from {}", domain.replace('_', " "))));
    items.extend(found.provider.as_ref().map(|provider| format!("provider {provider}")));
    items.extend(found.modules.iter().map(module));
    items
}

fn module(module: &PersistentModule) -> String {
    let PersistentModule { name, model, firmware, faults, dirty_shutdowns, security, .. } = module;
    let parts = [
        module.capacity.or(module.bytes).map(human),
        model.clone(),
        firmware.as_ref().map(|version| format!("firmware {version}")),
        Some(if faults.is_empty() { "no faults".to_owned() } else { faults.join(" ") }),
        dirty_shutdowns.filter(|count| *count > 0).map(|count| format!("{count} dirty shutdowns")),
        security.as_ref().filter(|state| *state != "disabled").cloned(),
    ];
    format!("{name}: {}", parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

/// Which measurements a matrix has.
type Keep<'a> = &'a dyn Fn(&Measurement) -> bool;

/// Local and remote: a matrix of nodes and directories for latency and for reads, where there are several of either.
pub(super) fn matrices(page: &mut Page, context: &mut Context<'_>) {
    let wanted = |m: &&Measurement| m.at.memory_dir.is_some() && m.at.cpu_node.is_some();
    let ms: Vec<&Measurement> = context.report.results.iter().filter(wanted).collect();
    let directories = sorted(ms.iter().filter_map(|m| m.at.memory_dir.as_deref()));
    let latency = |m: &Measurement| m.experiment == Experiment::IdleLatency && m.at.order == Some(ChaseOrder::WindowLocal);
    let reads = |m: &Measurement| {
        m.experiment == Experiment::Bandwidth && m.at.mix == Some(Mix::AllReads) && m.at.access == Some(Access::Sequential)
    };
    if !ms.iter().any(|m| reads(m)) {
        return;
    }
    let kinds: [(&str, Keep<'_>); 2] = [("Idle latency in ns, window-local", &latency), ("All reads in GB/s, sequential", &reads)];
    let mut headed = false;
    for (title, kind) in kinds {
        let cells: Vec<&Measurement> = ms.iter().copied().filter(|m| kind(m)).collect();
        let mut table = Pivot::new(&cells, |m| (m.at.cpu_node, m.at.memory_dir.as_deref().unwrap_or_default()));
        table.columns.clone_from(&directories);
        if table.rows.len() * table.columns.len() < 2 {
            continue;
        }
        if !std::mem::replace(&mut headed, true) {
            page.heading("Nodes and directories", "from each node's CPUs to the files of each directory");
        }
        page.paragraph(Style::Plain, title);
        let mut footnotes = Footnotes::new(context, &cells);
        let name = |directory: &str| {
            let home = cells.iter().find(|m| m.at.memory_dir.as_deref() == Some(directory)).and_then(|m| m.evidence.file.as_ref());
            let node = home.and_then(|file| file.device_node).map(|node| format!(" (node {node})")).unwrap_or_default();
            home.map_or_else(|| directory.to_owned(), memgauge_model::directory::FileEvidence::label) + &node
        };
        matrix(page, "CPUs ↓  files →", &table, |row| wording::node(*row), |directory| name(directory), |m, _, _| footnotes.cell(m));
        footnotes.print(page, &mut context.advised);
    }
}
