//! The work of loaders: mixes, the kernels that can produce them, and buffers.

use std::collections::BTreeSet;

use memgauge_model::integrity;
use memgauge_model::plan::{BufferPlan, Cell, KernelRow, Loader, Traffic, Work};
use memgauge_model::spec::WidthRequest;
use memgauge_model::traffic::{Access, Form, LineUse, Mix, Width};
use memgauge_model::wording;
use memgauge_model::words;
use memgauge_model::words::{Knob, Words};

use crate::check::{LINE, PlanError, invalid};
use crate::context::Planner;
use crate::room::Reserved;

/// Delays that a search tries, in core cycles after every four lines. A core that reads 10 GB/s at 3 GHz takes about 80 cycles for four lines:
/// longer delays can only lose bandwidth, shorter ones thin out the queue at the memory controllers.
pub(super) const SEARCH_DELAYS: [u32; 5] = [0, 10, 25, 50, 80];

impl Planner<'_> {
    /// The form for a mix with this access, and the mix that has kernels in it.
    fn form(&self, mix: Mix, access: Access) -> (Form, Mix) {
        let requested = self.requested.traffic;
        let strided = access == Access::Sequential && requested.stride.is_some_and(|s| s.0 > LINE);
        let form = Form::new(mix, if strided { Access::Strided } else { access }, requested.line);
        (form, if access == Access::Random { mix.with_one_read_stream() } else { mix })
    }

    /// The requested mixes, or the default ones.
    pub(super) fn mixes(&self, default: &[Mix]) -> Result<Vec<Mix>, PlanError> {
        let requested = if self.requested.mixes.is_empty() { default } else { self.requested.mixes };
        let runnable = |m: &Mix| self.has_kernel(*m, self.requested.traffic.access);
        let mixes: Vec<Mix> = requested.iter().copied().filter(runnable).collect();
        match requested.iter().find(|m| !runnable(m)) {
            Some(missing) if !self.requested.mixes.is_empty() || mixes.is_empty() => {
                invalid(self.no_kernel(*missing, self.requested.traffic.access))
            }
            _ => Ok(mixes),
        }
    }

    fn no_kernel(&self, mix: Mix, access: Access) -> Words {
        let widths: BTreeSet<&str> = self.matching_kernels(mix, access).map(|k| k.width.name()).collect();
        match self.requested.width {
            WidthRequest::Is(width) if !widths.is_empty() => {
                let widths = Vec::from_iter(widths).join(", ");
                words!["this CPU has no {width} kernel for the mix {mix}; it has {widths}: use one of these or ", Knob::Width, " best"]
            }
            _ => {
                let (form, mix) = self.form(mix, access);
                let kind = form_name(form);
                let others: BTreeSet<&str> = self.kernels.iter().filter(|k| k.form == form).map(|k| k.mix.name()).collect();
                match Vec::from_iter(others).join(", ").as_str() {
                    "" => words!["this CPU has no kernel for {kind}"],
                    others => words!["this CPU has no kernel for {kind} with the mix {mix}; it has {others}"],
                }
            }
        }
    }

    /// The kernels for a mix. Kernels of other forms are other measurements.
    fn matching_kernels(&self, mix: Mix, access: Access) -> impl Iterator<Item = &KernelRow> {
        let (form, mix) = self.form(mix, access);
        self.kernels.iter().filter(move |k| k.mix == mix && k.form == form)
    }

    /// Whether there is a kernel for a mix, or none is known because the plan is for another machine.
    pub(super) fn has_kernel(&self, mix: Mix, access: Access) -> bool {
        self.kernels.is_empty() || !self.candidates(mix, access).is_empty()
    }

    fn candidates(&self, mix: Mix, access: Access) -> Vec<String> {
        self.matching_kernels(mix, access)
            .filter(|k| match self.requested.width {
                WidthRequest::Best => true,
                // The fill mix exists only as a string instruction. A requested width applies to the other mixes.
                WidthRequest::Is(width) => k.width == width || (mix == Mix::Fill && k.width == Width::String),
            })
            .map(|k| k.name.clone())
            .collect()
    }

    /// The traffic of loaders with this mix.
    pub(super) fn traffic(&self, mix: Mix) -> Result<Traffic, PlanError> {
        self.traffic_with_access(mix, self.requested.traffic.access)
    }

    pub(super) fn traffic_with_access(&self, mix: Mix, access: Access) -> Result<Traffic, PlanError> {
        let kernels = self.candidates(mix, access);
        if kernels.is_empty() && !self.kernels.is_empty() {
            return invalid(self.no_kernel(mix, access));
        }
        let requested = self.requested.traffic;
        let burst_lines = requested.burst_lines.get(&mix).copied();
        let (form, mix) = self.form(mix, access);
        Ok(Traffic {
            mix,
            kernels,
            form,
            stride: match form.line {
                // A part of each of the machine's lines, if these are longer than the kernels'.
                LineUse::Part => Some(self.machine.topology.line()).filter(|line| line.0 > LINE),
                _ => requested.stride.filter(|_| form.access == Access::Strided && form.line == LineUse::Whole),
            },
            window: requested.window.filter(|_| form.access == Access::Random),
            patterns: integrity::each_once(&requested.patterns),
            hold_s: requested.hold.map_or(0.0, |hold| hold.as_secs_f64()),
            burst_lines,
            block: None,
        })
    }

    /// A step's title, with whatever is unusual about its traffic.
    pub(super) fn titled(&self, title: &str) -> String {
        let requested = self.requested.traffic;
        let mut title = title.to_owned();
        let form = self.form(Mix::R1W1, requested.access).0;
        if let (true, Some(stride)) = (form.access == Access::Strided && form.line == LineUse::Whole, requested.stride) {
            title = format!("{title}, one line every {stride}");
        } else if let (Access::Random, Some(window)) = (form.access, requested.window) {
            title = format!("{title}, random access in windows of {window}");
        } else if !form.is_plain() {
            title = format!("{title}, {}", form_name(form));
        }
        if requested.shared { format!("{title}, one buffer for all") } else { title }
    }

    /// Loaders on `cpus` with memory on `node`, or each on its own node.
    pub(super) fn loaders(&mut self, cpus: &[u32], node: Option<u32>, reserved: Reserved<'_>) -> Result<Vec<Loader>, PlanError> {
        if self.requested.traffic.shared {
            let first = cpus.first().copied().unwrap_or(0);
            let home = (first, node.unwrap_or_else(|| self.local_node(first)));
            let one = self.sizes.loader_buffers(&[home], reserved, &mut self.notes)?;
            let Some(Loader { buffer, .. }) = one.into_iter().next() else { return Ok(Vec::new()) };
            let buffer = BufferPlan { shared: true, ..buffer };
            return Ok(cpus.iter().map(|&cpu| Loader { cpu, buffer: buffer.clone(), own: None }).collect());
        }
        let homes = match node {
            Some(node) => cpus.iter().map(|&cpu| (cpu, vec![node])).collect(),
            None => self.own_homes(cpus),
        };
        let first = |(cpu, nodes): &(u32, Vec<u32>)| Some((*cpu, *nodes.first()?));
        let firsts: Vec<(u32, u32)> = homes.iter().filter_map(first).collect();
        let mut loaders = self.sizes.loader_buffers(&firsts, reserved, &mut self.notes)?;
        for (loader, (_, nodes)) in loaders.iter_mut().zip(homes) {
            self.sizes.spread_over(&mut loader.buffer, &nodes);
        }
        Ok(loaders)
    }

    /// The CPUs that a search tries: all of them, one thread of each core, three quarters and half of those.
    pub(super) fn search_cpu_sets(&self, order: &[u32]) -> Vec<Vec<u32>> {
        let cores = self.machine.topology.one_per_core(&self.cpus).len();
        let counts: BTreeSet<usize> = [order.len(), cores, cores * 3 / 4, cores / 2].into_iter().filter(|n| *n > 0).collect();
        // `order` has one thread of each core before second threads.
        counts.into_iter().rev().map(|n| order[..n.min(order.len())].to_vec()).collect()
    }
}

/// A bandwidth cell at each of these delays; the cell itself if there are none.
pub(super) fn with_delays(cell: Cell, delays: &[u32]) -> Vec<Cell> {
    let delayed = |cycles: &u32| {
        let mut cell = cell.clone();
        if let Work::Bandwidth(loading) = &mut cell.work {
            loading.delay = *cycles;
        }
        cell.at.delay_cycles = Some(*cycles);
        cell
    };
    if delays.is_empty() { vec![cell] } else { delays.iter().map(delayed).collect() }
}

/// The form in words.
fn form_name(form: Form) -> String {
    wording::line_use(form.line).filter(|_| form.access != Access::Random).unwrap_or_else(|| wording::access(form.access).to_owned())
}
