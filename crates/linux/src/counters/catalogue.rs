//! The events that this machine has. The code of an event comes from sysfs, or else from the table of the core design, or else it is one of
//! the kernel's generic events.

use std::path::Path;

use memgauge_model::counters::Event;
use memgauge_model::metrics::Role;
use memgauge_model::topology::Identity;

use super::events::{self, Code, Row, Table};
use super::perf_event::{Config, CounterError};
use super::pmu::{Pmu, Pmus, parse_number};

/// An event with its code.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodedEvent {
    /// The event as results show it.
    pub event: Event,
    /// The code, or why there is none.
    pub(crate) config: Result<Config, CounterError>,
    /// The CPUs to open it on, for events that a unit of the chip counts; empty for events of a thread.
    pub cpus: Vec<u32>,
    /// Counts that are one line of 64 bytes, for memory traffic in other units.
    pub(crate) per_line: f64,
}

impl EncodedEvent {
    /// An event of threads.
    fn new(name: &str, roles: &[Role], code: String, source: &str, config: Result<Config, CounterError>) -> Self {
        let event = Event { name: name.to_owned(), roles: roles.to_vec(), code, source: source.to_owned() };
        Self { event, config, cpus: Vec::new(), per_line: 1.0 }
    }
}

/// Events in groups that are counted together.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EventSet {
    /// Events of threads, in groups.
    pub groups: Vec<Vec<EncodedEvent>>,
    /// Events of the memory controllers, one for each controller.
    pub system: Vec<EncodedEvent>,
    /// Events of the mesh, one for each home agent. A machine has a hundred of them: too many to be switched within a burst.
    pub mesh: Vec<EncodedEvent>,
    /// Units whose memory traffic is left out of what the machine counts, and what they are.
    pub uncounted: Vec<String>,
}

impl EventSet {
    /// The memory traffic that the machine's count leaves out, in words; `None` if none is known to be left out.
    pub fn left_out(&self) -> Option<String> {
        (!self.uncounted.is_empty()).then(|| format!("memory traffic of {}", self.uncounted.join(", ")))
    }

    /// Whether some of the events are counted by a unit that one kind of core has. On a hybrid machine they count nothing on others.
    pub fn counts_one_kind_of_core(&self) -> bool {
        self.groups.iter().flatten().any(|event| event.config.as_ref().is_ok_and(|config| !config.is_software()))
    }

    /// Every event, in order.
    pub fn events(&self) -> impl Iterator<Item = &EncodedEvent> {
        self.groups.iter().flatten().chain(&self.system)
    }
}

/// The events of a machine.
#[derive(Debug)]
pub struct Catalogue {
    pmus: Pmus,
    /// The table of events for its cores, where there is one.
    table: Option<&'static Table>,
    hypervisor: Option<String>,
    cpu: u32,
    arm: bool,
}

impl Catalogue {
    /// Reads the events of the machine, for the kind of core that `cpu` is.
    pub fn read(root: &Path, identity: &Identity, cpu: u32) -> Self {
        let pmus = Pmus::read(root);
        let efficiency = pmus.core_unit(cpu).is_some_and(|unit| unit.name == "cpu_atom");
        Self {
            pmus,
            table: events::table_for(identity, efficiency),
            hypervisor: identity.hypervisor.clone(),
            cpu,
            arm: identity.arch == "aarch64",
        }
    }

    fn core(&self) -> Result<&Pmu, CounterError> {
        self.pmus.core_unit(self.cpu).ok_or_else(|| {
            CounterError::NoPmu(match &self.hypervisor {
                Some(name) => format!("no hardware counters: the hypervisor ({name}) gives this virtual machine no PMU"),
                None => "no hardware counters: the kernel shows no PMU of the CPUs in /sys/bus/event_source/devices".to_owned(),
            })
        })
    }

    /// The events that metrics are computed from, as far as this machine has them.
    ///
    /// # Errors
    /// When it has no hardware counters.
    pub fn metrics(&self) -> Result<EventSet, CounterError> {
        let core = self.core()?;
        // On an Arm core without a table, sysfs shows the architected events that the core has. Any other code would count nothing.
        let (table, sysfs_only) = match self.table {
            Some(table) => (table, false),
            None if self.arm => (events::ARM_COMMON, true),
            None => (&events::GENERIC, false),
        };
        let mut groups: Vec<Vec<EncodedEvent>> = Vec::new();
        let mut roles: Vec<Role> = Vec::new();
        for rows in table.groups {
            let usable = rows.iter().filter(|row| !sysfs_only || sysfs_code(core, row).is_some());
            let group: Vec<EncodedEvent> = usable.map(|row| encode(core, row, table.source)).collect();
            roles.extend(group.iter().flat_map(|c| c.event.roles.iter().copied()));
            groups.push(group);
        }
        // Newer Arm cores count reads in flight, and sysfs shows these events.
        if let (Some(outstanding), Some(reads)) = (core.events.get("mem_access_rd_percyc"), core.events.get("mem_access_rd")) {
            let both = [("mem_access_rd_percyc", Role::ReadsOutstanding, outstanding), ("mem_access_rd", Role::Reads, reads)];
            groups.push(both.map(|(name, role, terms)| from_sysfs(core, name, &[role], terms)).into());
        }
        let missing = |row: &&Row| row.roles.iter().any(|r| !roles.contains(r)) && !row.roles.iter().any(|r| roles.contains(r));
        if sysfs_only {
            groups.push(events::GENERIC.rows().filter(missing).map(|row| encode(core, row, events::GENERIC.source)).collect());
        }
        groups.retain(|g| !g.is_empty());
        let (system, uncounted) = self.memory_controllers();
        Ok(EventSet { groups, system, mesh: self.mesh(), uncounted })
    }

    /// Reads and writes of the memory controllers, and the units whose traffic is left out.
    fn memory_controllers(&self) -> (Vec<EncodedEvent>, Vec<String>) {
        let mut all = Vec::new();
        let mut unnamed: Vec<String> = Vec::new();
        for pmu in self.pmus.numbered("uncore_imc_") {
            // One event for the channel, or one for each of its two subchannels.
            let counted = self.named_traffic(pmu, ["cas_count_read", "cas_count_write"]);
            if counted.is_empty() {
                unnamed.push(format!("{} (a memory controller without named events)", pmu.name));
            }
            all.extend(counted);
        }
        for (prefix, table) in events::MEMORY_UNITS {
            let rows = |pmu| table.rows().map(move |row| self.on_unit(pmu, encode(pmu, row, table.source)));
            all.extend(self.pmus.numbered(prefix).flat_map(rows));
        }
        // Controllers of clients have events that always count, under names of their own.
        let client = self.pmus.named("uncore_imc").into_iter().chain(self.pmus.numbered("uncore_imc_free_running_"));
        let mut uncounted = unnamed;
        if all.is_empty() {
            all.extend(client.flat_map(|pmu| self.named_traffic(pmu, ["data_read", "data_write"])));
            // Their counters have the traffic of the others, too (Linux arch/x86/events/intel/uncore_snb.c: adl_uncore_imc_freerunning).
            if !all.is_empty() {
                uncounted.clear();
            }
        }
        if all.is_empty()
            && let Some((fabric, table)) = self.pmus.named("amd_df").zip(self.table.and_then(events::fabric_for))
        {
            all.extend(table.rows().map(|row| self.on_unit(fabric, encode(fabric, row, table.source))));
        }
        uncounted.extend(events::UNCOUNTED_UNITS.iter().filter_map(|(prefix, what)| {
            let names: Vec<&str> = self.pmus.beginning(prefix).map(|pmu| pmu.name.as_str()).collect();
            let first = names.first()?;
            let others = if names.len() > 1 { format!(" and {} more", names.len() - 1) } else { String::new() };
            Some(format!("{first}{others} ({what})"))
        }));
        (all, uncounted)
    }

    /// Reads beyond the last-level cache at each home agent of the mesh, and the cycles of one of these.
    fn mesh(&self) -> Vec<EncodedEvent> {
        let Some(table) = self.table.and_then(events::mesh_for) else { return Vec::new() };
        let mut all: Vec<EncodedEvent> = Vec::new();
        for pmu in self.pmus.numbered("uncore_cha_") {
            let encoded = table.rows().map(|row| self.on_unit(pmu, encode(pmu, row, table.source)));
            for event in encoded.filter(|event| event.config.is_ok()) {
                let cycles = event.event.roles.contains(&Role::MeshCycles);
                if !cycles {
                    all.push(event);
                } else if !all.iter().any(|e| e.event.roles.contains(&Role::MeshCycles)) {
                    let cpus = event.cpus[..event.cpus.len().min(1)].to_vec();
                    all.push(EncodedEvent { cpus, ..event });
                }
            }
        }
        // The home agents of Skylake-SP have these events behind filters.
        if all.iter().any(|e| e.event.roles.contains(&Role::MeshReads)) { all } else { Vec::new() }
    }

    /// The events of a controller whose names begin so: reads and writes, in lines of 64 bytes.
    fn named_traffic(&self, pmu: &Pmu, [reads, writes]: [&str; 2]) -> Vec<EncodedEvent> {
        let named = |prefix, role| {
            let events = pmu.events.iter().filter(move |(name, _)| name.starts_with(prefix));
            events.map(move |(name, terms)| self.on_unit(pmu, from_sysfs(pmu, name, &[role], terms)))
        };
        named(reads, Role::DramReads).chain(named(writes, Role::DramWrites)).collect()
    }

    /// Sets the CPUs to open an event of a chip unit on: those that the kernel names for the unit, one for each package.
    fn on_unit(&self, pmu: &Pmu, encoded: EncodedEvent) -> EncodedEvent {
        let cpus = pmu.cpus.as_ref().map_or_else(|| vec![self.cpu], |cpus| cpus.iter().collect());
        EncodedEvent { per_line: events::counts_per_line(&encoded.event.name), cpus, ..encoded }
    }

    /// The event of this name or code, such as `page-faults`, `cycles`, `l1d_cache_refill`, `mem_load_retired.l3_miss`,
    /// `cpu/event=0xd1,umask=0x20/` or `r20d1`.
    ///
    /// # Errors
    /// When there is no such event.
    pub fn named(&self, name: &str) -> Result<EncodedEvent, CounterError> {
        let matches = |row: &&Row| row.name == name || row.aliases.contains(&name);
        if let Some(row) = events::SOFTWARE_EVENTS.iter().find(matches) {
            return Ok(from_kernel(row, "the kernel's software events, perf_event_open(2)"));
        }
        if let Some((unit, terms)) = name.strip_suffix('/').and_then(|n| n.split_once('/')) {
            let pmu =
                self.pmus.named(unit).ok_or_else(|| CounterError::Unknown(format!("no unit '{unit}' in /sys/bus/event_source/devices")))?;
            let code = pmu.events.get(terms).map_or(terms, String::as_str);
            let encoded = EncodedEvent::new(name, &[], format!("{unit}/{code}/"), "as named", Ok(pmu.encode(code)?));
            // For a unit of the chip, the kernel names the CPUs to open it on. For a unit of cores, it names the CPUs that belong to it.
            let chip_unit =
                pmu.cpus.is_some() && self.pmus.core_unit(self.cpu).is_none_or(|core| core.name != pmu.name) && !unit.starts_with("cpu");
            // Named events have no role, so their counts stay as they are.
            return Ok(if chip_unit { EncodedEvent { per_line: 1.0, ..self.on_unit(pmu, encoded) } } else { encoded });
        }
        let core = self.core();
        if let Ok(core) = core
            && let Some(terms) = core.events.get(name)
        {
            return Ok(from_sysfs(core, name, self.roles(name), terms));
        }
        let tables = self.table.into_iter().chain(self.arm.then_some(events::ARM_COMMON));
        for table in tables {
            if let Some(row) = table.rows().find(|r| matches(r)) {
                return Ok(match core {
                    Ok(core) => encode(core, row, table.source),
                    Err(error) => EncodedEvent::new(row.name, row.roles, String::new(), table.source, Err(error)),
                });
            }
        }
        if let Some(row) = events::GENERIC.rows().chain(events::NAMED).find(matches) {
            let mut encoded = from_kernel(row, events::GENERIC.source);
            if let Err(error) = core {
                encoded.config = Err(error);
            }
            return Ok(encoded);
        }
        if let Some(code) = name.strip_prefix('r').and_then(|hex| parse_number(&format!("0x{hex}"))) {
            let kind = core.map_or(events::RAW, |c| c.kind);
            let config = Config { kind, words: [code, 0, 0] };
            return Ok(EncodedEvent::new(name, &[], format!("raw {code:#x}"), "as named", Ok(config)));
        }
        Err(CounterError::Unknown(format!(
            "no event '{name}' here; name one of the kernel (page-faults, task-clock, cycles), of sysfs, of a vendor (mem_load_retired.l3_miss), \
             or a code (cpu/event=0xd1,umask=0x20/, r20d1)"
        )))
    }

    fn roles(&self, name: &str) -> &'static [Role] {
        let tables = self.table.into_iter().chain([events::ARM_COMMON, &events::GENERIC]);
        tables.flat_map(Table::rows).find(|r| r.name == name || r.aliases.contains(&name)).map_or(&[], |r| r.roles)
    }

    /// The kernel's own events that describe the run of a program.
    pub fn software(&self) -> Vec<EncodedEvent> {
        events::SOFTWARE_EVENTS[..4].iter().map(|row| from_kernel(row, "the kernel's software events, perf_event_open(2)")).collect()
    }
}

/// The code that sysfs has for an event of a table.
fn sysfs_code<'a>(pmu: &'a Pmu, row: &Row) -> Option<&'a str> {
    [row.name].iter().chain(row.aliases).find_map(|name| pmu.events.get(*name)).map(String::as_str)
}

fn encode(pmu: &Pmu, row: &Row, source: &str) -> EncodedEvent {
    let (terms, source) = match (sysfs_code(pmu, row), row.code) {
        (Some(terms), _) => (terms, "sysfs"),
        (None, Code::Terms(terms)) => (terms, source),
        (None, Code::Kernel(..)) => return from_kernel(row, source),
    };
    EncodedEvent::new(row.name, row.roles, format!("{}/{terms}/", pmu.name), source, pmu.encode(terms))
}

fn from_sysfs(pmu: &Pmu, name: &str, roles: &[Role], terms: &str) -> EncodedEvent {
    EncodedEvent::new(name, roles, format!("{}/{terms}/", pmu.name), "sysfs", pmu.encode(terms))
}

fn from_kernel(row: &Row, source: &str) -> EncodedEvent {
    let (code, config) = match row.code {
        Code::Kernel(kind, config) => (format!("type {kind} config {config:#x}"), Ok(Config { kind, words: [config, 0, 0] })),
        Code::Terms(terms) => (terms.to_owned(), Err(CounterError::Unknown("is an event of a core and not of the kernel".to_owned()))),
    };
    EncodedEvent::new(row.name, row.roles, code, source, config)
}

#[cfg(test)]
mod tests;
