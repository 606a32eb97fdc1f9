//! Cache-to-cache transfers: which pairs of CPUs, and on which node the lines have their home.

use std::collections::BTreeMap;

use memgauge_model::experiment::{ChaseOrder, Coordinates, Experiment, LineState};
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::pairing::Rounds;
use memgauge_model::plan::{BufferPlan, Cell, Handoff, MIN_TRANSFER_S, Step, TransferEnd, Transfers, Work};
use memgauge_model::spec::{TransferShape, TransferSpec};
use memgauge_model::units::{Bytes, IdSet};
use memgauge_model::words;
use memgauge_model::words::{Command, Knob, Problem, Verb, Way};

use crate::check::{PlanError, check_cpus, invalid, named, unavailable};
use crate::context::{LARGE_MATRIX, Planner};
use crate::room::Reserved;

/// If pairs disturb each other, all pairs of a matrix are measured one by one as long as that takes no longer than this.
const MAX_ONE_BY_ONE_S: f64 = 600.0;

/// The readers' buffers of a matrix use at most one in this many bytes of the memory that may be used.
const PART: u64 = 4;

/// A transfer to be planned.
struct Transfer {
    reader: u32,
    holder: u32,
    /// The home node of the lines.
    home: u32,
    state: LineState,
}

impl Planner<'_> {
    pub(super) fn c2c(&mut self, request: &TransferSpec) -> Result<Step, PlanError> {
        let (pair, sharer) = (self.pair(request)?, self.sharer(request)?);
        if pair.is_none() && self.cpus.len() < 2 {
            let limits = self.cpu_limits();
            return unavailable(Problem::new(
                "cache-to-cache transfers need two CPUs",
                Way::from(format!("allow another ({limits})")).either_or(Way::name("two", Knob::Cpus)),
            ));
        }
        let transfers = match (pair, request.shape) {
            (Some(pair), _) => self.in_states(request, &[pair]),
            (None, TransferShape::Representatives) => self.in_states(request, &self.representative_pairs(request)),
            (None, TransferShape::CpuMatrix) => return self.all_pairs(request),
            (None, TransferShape::NodeMatrix) => {
                self.notes.extend(self.one_node_note());
                self.between_nodes(request)?
            }
        };
        if transfers.is_empty() {
            return unavailable(Problem::new("no CPU that may be used is left to hold the lines", Way::name("more", Knob::Cpus)));
        }
        let mut cells = Vec::new();
        for transfer in transfers {
            if let Some(cpu) = sharer.filter(|s| [transfer.reader, transfer.holder].contains(s)) {
                let does = if cpu == transfer.reader { "reads" } else { "holds" };
                return invalid(words![Knob::Sharer, " names CPU {cpu}, which {does} the lines"].advise("name a third CPU"));
            }
            let mut cell = self.transfer(request, &transfer, sharer)?;
            cell.at.holder_node = (request.shape == TransferShape::NodeMatrix).then(|| self.cpu_node(transfer.holder));
            cells.push(cell);
        }
        Ok(self.step("Cache to cache", Experiment::CacheToCache, cells))
    }

    /// The note that one node is not enough for a matrix.
    fn one_node_note(&self) -> Option<Note> {
        let nodes: IdSet = self.cpus.iter().map(|cpu| self.cpu_node(cpu)).collect();
        let only = nodes.first().filter(|_| nodes.len() == 1)?;
        let text = format!("all CPUs that may be used are of node {only}: there are no two nodes to transfer between, only a pair of CPUs");
        Some(Note::warning(NoteCode::OneNode, text).advise(words!["for every pair of CPUs: ", Command::new(Verb::C2c).with(Knob::Matrix)]))
    }

    /// The pair that the user names.
    fn pair(&self, request: &TransferSpec) -> Result<Option<(u32, u32)>, PlanError> {
        if request.shape != TransferShape::Representatives && (request.holder.is_some() || request.reader.is_some()) {
            return invalid(words![Knob::Reader, " and ", Knob::Holder, " name one pair, but a matrix has all pairs"].advise(words![
                "leave out ",
                Knob::Reader,
                " and ",
                Knob::Holder,
                ", or the matrix"
            ]));
        }
        let Some(holder) = request.holder else { return Ok(None) };
        check_cpus(&IdSet::one(holder), self.machine).map_err(|e| named(Knob::Holder, e))?;
        match request.reader {
            None => {
                invalid(words![Knob::Holder, " {holder} names only half of a pair"].advise(Way::name("the CPU that reads", Knob::Reader)))
            }
            Some(reader) if reader == holder => invalid(Problem::new(
                format!("CPU {reader} cannot be both reader and holder"),
                words!["name two CPUs with ", Knob::Reader, " and ", Knob::Holder],
            )),
            Some(reader) => Ok(Some((reader, holder))),
        }
    }

    fn sharer(&self, request: &TransferSpec) -> Result<Option<u32>, PlanError> {
        let Some(sharer) = request.sharer else { return Ok(None) };
        check_cpus(&IdSet::one(sharer), self.machine).map_err(|e| named(Knob::Sharer, e))?;
        if request.holder.is_none() || request.shape != TransferShape::Representatives {
            return invalid(words![Knob::Sharer, " {sharer} joins one pair"].advise(words![
                "name that with ",
                Knob::Reader,
                " and ",
                Knob::Holder
            ]));
        }
        Ok(Some(sharer))
    }

    /// Every ordered pair in every state: one cell, which names each CPU once.
    fn all_pairs(&mut self, request: &TransferSpec) -> Result<Step, PlanError> {
        let stride = self.sizes.stride()?;
        let ends = self.transfer_ends(request, stride)?;
        let rounds = Rounds::new(&self.cpus, &self.machine.topology);
        let mut transfers = Transfers {
            ends,
            states: request.selected_states(),
            stride,
            order: request.order,
            holder_pushes: request.holder_pushes,
            reader_pushes: request.reader_pushes,
            rounds: rounds.count() as u64,
            at_once: rounds.iter().map(|r| r.len()).max().unwrap_or(0) as u32,
            representatives: Vec::new(),
            each_s: self.budget(),
            one_by_one_s: 0.0,
        };
        // With many transfers each gets the time of three runs. With few, or if a time was asked for, each may go on until its interval is
        // narrow.
        if transfers.results() > LARGE_MATRIX as u64 && self.spec.time.or(self.spec.budget).is_none() {
            transfers.each_s = MIN_TRANSFER_S;
        }
        transfers.one_by_one_s = transfers.results() as f64 * transfers.one_s();
        if transfers.at_once > 1 && transfers.one_by_one_s > MAX_ONE_BY_ONE_S {
            transfers.representatives = self.representative_pairs(request);
        }
        if transfers.at_once > 1 {
            self.notes.push(at_once_note(&transfers));
        }
        let at = Coordinates { cpus: Some(self.cpus.clone()), order: request.order, ..Coordinates::default() };
        let cell = Cell::new(at, Work::Transfers(transfers));
        Ok(self.step("Cache to cache", Experiment::CacheToCacheMatrix, vec![cell]))
    }

    /// Each CPU as reader and as holder, with its buffers.
    fn transfer_ends(&mut self, request: &TransferSpec, stride: Bytes) -> Result<Vec<TransferEnd>, PlanError> {
        let cpus = self.cpus.clone();
        let mut homes = Vec::new();
        for cpu in cpus.iter() {
            match self.spec.nodes {
                Some(_) => homes.extend(self.nodes.iter().map(|node| (cpu, node))),
                None => homes.push((cpu, self.chase_home(cpu))),
            }
        }
        let pushes = request.holder_pushes.0.saturating_add(request.reader_pushes.0);
        let mut buffers = self.readers_buffers(&homes, Reserved::Bytes(pushes.saturating_mul(cpus.len() as u64)))?;
        if let Some(touch) = request.touch {
            buffers.iter_mut().for_each(|buffer| buffer.touch = IdSet::one(touch));
        }
        let smallest = buffers.iter().map(|b| b.bytes).min().unwrap_or_default();
        let homes_per_cpu = homes.len() / cpus.len().max(1);
        let mut buffers = buffers.into_iter();
        let mut ends = Vec::with_capacity(cpus.len());
        for cpu in cpus.iter() {
            let window = self.sizes.handoff_window(request.window, cpu, stride, smallest)?;
            ends.push(TransferEnd { cpu, node: self.cpu_node(cpu), buffers: buffers.by_ref().take(homes_per_cpu).collect(), window });
        }
        if let Some(first) = cpus.first() {
            let clean = request.selected_states().contains(&LineState::Hit);
            self.warn_of_own_cache(first, smallest, stride, clean);
        }
        Ok(ends)
    }

    /// These pairs of reader and holder in every state, with the lines' home on each node that matters.
    fn in_states(&mut self, request: &TransferSpec, pairs: &[(u32, u32)]) -> Vec<Transfer> {
        let mut transfers = Vec::new();
        for &(reader, holder) in pairs {
            let homes = match (&self.spec.nodes, request.touch) {
                (Some(_), _) => self.nodes.iter().collect(),
                (None, Some(_)) => vec![self.chase_home(reader)],
                (None, None) => self.homes_of(reader, holder),
            };
            transfers.extend(homes.into_iter().flat_map(|home| in_each_state(request, reader, holder, home)));
        }
        transfers
    }

    /// A near pair in every state, and modified lines from every node with CPUs to every other, with their home at the holder and at the
    /// reader.
    fn between_nodes(&mut self, request: &TransferSpec) -> Result<Vec<Transfer>, PlanError> {
        if self.spec.nodes.is_some() {
            return invalid(
                words![Knob::NodeMatrix, " measures lines with their home at each CPU of a pair"].advise(Way::LeaveOut(Knob::Node)),
            );
        }
        let mut transfers = Vec::new();
        if let Some((reader, holder)) = self.near_pair() {
            let home = self.local_node(reader);
            transfers.extend(in_each_state(request, reader, holder, home));
        }
        if !request.selected_states().contains(&LineState::Hitm) {
            return Ok(transfers);
        }
        let firsts: Vec<u32> = self.cpu_nodes().iter().filter_map(|node| self.cpus_on(node).first()).collect();
        for &holder in &firsts {
            for &reader in firsts.iter().filter(|&&reader| reader != holder) {
                let homes = self.homes_of(holder, reader);
                transfers.extend(homes.into_iter().map(|home| Transfer { reader, holder, home, state: LineState::Hitm }));
            }
        }
        Ok(transfers)
    }

    /// The node of each CPU's local memory, once if it is the same.
    fn homes_of(&mut self, first: u32, second: u32) -> Vec<u32> {
        let mut homes = vec![self.local_node(first), self.local_node(second)];
        homes.dedup();
        homes
    }

    /// Reader and holder on two cores of one node. If there are none, of one package, then on one core, then any two.
    fn near_pair(&self) -> Option<(u32, u32)> {
        let topology = &self.machine.topology;
        let reader = topology.cpu(self.cpus.first()?)?;
        let distance = |holder: &u32| match topology.cpu(*holder)? {
            h if reader.siblings.contains(h.id) => Some(2),
            h if reader.package != h.package => Some(3),
            h if reader.node != h.node => Some(1),
            _ => Some(0),
        };
        let holder = self.cpus.iter().filter(|&c| c != reader.id).min_by_key(distance)?;
        Some((reader.id, holder))
    }

    fn transfer(&mut self, request: &TransferSpec, transfer: &Transfer, sharer: Option<u32>) -> Result<Cell, PlanError> {
        let &Transfer { reader, holder, home, state } = transfer;
        let (holder_pushes, reader_pushes) = (request.holder_pushes, request.reader_pushes);
        let stride = self.sizes.stride()?;
        let reserved = Reserved::Bytes(holder_pushes.0.saturating_add(reader_pushes.0));
        let buffer = self.sizes.transfer_buffer(reader, home, reserved, 0, &mut self.notes)?;
        let window = self.sizes.handoff_window(request.window, holder, stride, buffer.bytes)?;
        let chase_window = transfer_chase_window(request, stride, buffer.bytes)?;
        self.warn_of_own_cache(reader, buffer.bytes, stride, state == LineState::Hit);
        let (hops, order) = (request.hops, request.order.unwrap_or(ChaseOrder::WindowLocal));
        let handoff =
            Handoff { holder, reader, state, buffer, window, stride, order, chase_window, hops, sharer, holder_pushes, reader_pushes };
        Ok(Cell::new(handoff.place(self.cpu_node(reader), request.order), Work::Handoff(handoff)))
    }

    /// Warns that the reader may find clean lines in its own caches, left there one lap over the buffer ago.
    fn warn_of_own_cache(&mut self, reader: u32, buffer: Bytes, stride: Bytes, clean: bool) {
        if clean && self.sizes.may_hold(reader, buffer, stride) {
            let message =
                format!("a reader's buffer of {buffer} has fewer lines than its own caches: clean lines (HIT) may be found there");
            let advice = Way::Larger(Knob::Size).or(Way::name("fewer CPUs", Knob::Cpus));
            self.notes.push(Note::warning(NoteCode::HitInOwnCache, message).advise(advice));
        }
    }

    /// One buffer for each reader. Each is as large as for a single chase if a quarter of the memory is enough for all of them, and smaller
    /// otherwise.
    fn readers_buffers(&mut self, homes: &[(u32, u32)], reserved: Reserved<'_>) -> Result<Vec<BufferPlan>, PlanError> {
        let allowed = &self.machine.allowed;
        let mut on_node: BTreeMap<u32, u64> = BTreeMap::new();
        let mut alone = Vec::new();
        for &(cpu, node) in homes {
            let buffer = BufferPlan { derived: false, ..self.sizes.transfer_buffer(cpu, node, reserved, 0, &mut Vec::new())? };
            *on_node.entry(node).or_default() += buffer.bytes.0;
            alone.push(buffer);
        }
        let fits =
            on_node.iter().all(|(node, bytes)| allowed.node_memory.get(node).is_none_or(|limit| bytes.saturating_mul(PART) <= limit.0))
                && on_node.values().sum::<u64>().saturating_mul(PART) <= allowed.room();
        if fits && self.spec.memory_dir.is_none() {
            return Ok(alone);
        }
        Ok(self.sizes.loader_buffers(homes, reserved, &mut self.notes)?.into_iter().map(|l| l.buffer).collect())
    }

    /// One reader, and a holder at each kind of distance: same core, same L2, same last-level cache, same package, each other package.
    fn representative_pairs(&self, request: &TransferSpec) -> Vec<(u32, u32)> {
        let topology = &self.machine.topology;
        let Some(reader) = request.reader.or_else(|| self.cpus.first()) else { return Vec::new() };
        let mut seen = std::collections::BTreeSet::new();
        let mut pairs = Vec::new();
        for holder in self.cpus.iter().filter(|&c| c != reader) {
            let (Some(a), Some(b)) = (topology.cpu(reader), topology.cpu(holder)) else { continue };
            let shares = |level: u8| topology.cpu_caches(reader).any(|c| c.level == level && c.cpus.contains(holder));
            let llc = topology.last_level_cache(reader).map_or(0, |c| c.level);
            let relation = match () {
                () if a.siblings.contains(holder) => (0, 0, 0),
                () if llc > 2 && shares(2) => (1, 0, 0),
                () if shares(llc) => (2, 0, 0),
                () if a.package == b.package => (3, b.die.unwrap_or(0), b.node),
                () => (4, b.package, b.node),
            };
            if seen.insert((relation, b.kind.clone())) {
                pairs.push((reader, holder));
            }
        }
        pairs
    }
}

fn in_each_state(request: &TransferSpec, reader: u32, holder: u32, home: u32) -> impl Iterator<Item = Transfer> + use<> {
    request.selected_states().into_iter().map(move |state| Transfer { reader, holder, home, state })
}

/// The window within which the chase is random, if it is named; no larger than the buffer.
fn transfer_chase_window(request: &TransferSpec, stride: Bytes, buffer: Bytes) -> Result<Option<Bytes>, PlanError> {
    match request.chase_window {
        Some(window) if window.0 / 2 < stride.0 || !window.0.is_multiple_of(stride.0) => {
            invalid(format!("a random window of {window} must be a multiple of the stride ({stride}) and at least twice it"))
        }
        named => Ok(named.map(|window| window.min(buffer))),
    }
}

/// Says how long all pairs take, at once and one by one.
fn at_once_note(transfers: &Transfers) -> Note {
    let one_by_one_s = transfers.one_by_one_s;
    let instead = match transfers.representatives.len() {
        0 => format!("all pairs one by one take about {one_by_one_s:.0} s"),
        n => {
            let hours = one_by_one_s / 3600.0;
            format!("all pairs one by one would take {hours:.1} hours, and {n} pairs that stand for the others are measured")
        }
    };
    let (pairs, together_s, Transfers { rounds, at_once, .. }) = (transfers.pairs(), transfers.together_s(), transfers);
    let message = format!(
        "{pairs} ordered pairs in {rounds} rounds of up to {at_once} pairs at once, about {together_s:.0} s, if a calibration shows that pairs do not disturb each other; otherwise {instead}"
    );
    Note::info(NoteCode::PairsAtOnce, message)
}
