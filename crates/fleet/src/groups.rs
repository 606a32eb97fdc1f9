//! Hosts that are alike, by fingerprint: the more alike the better, if eight hosts are.

use std::collections::BTreeMap;

use memgauge_analysis::fleet::{GroupField, GroupLevel, HostGroup, MIN_HOSTS};
use memgauge_model::result::DifferentField;
use memgauge_model::topology::common_hypervisor;

use crate::row::Fingerprint;

/// A fingerprint without what does not count at this level. Pages count at none: they are a matter of what was run, and values are
/// compared by their own.
pub(crate) fn key(fingerprint: &Fingerprint, level: GroupLevel) -> Fingerprint {
    let mut key = Fingerprint { pages: None, hypervisor: hypervisor(fingerprint), ..fingerprint.clone() };
    if level >= GroupLevel::Firmware {
        key.kernel = None;
    }
    if level >= GroupLevel::Hardware {
        (key.microcode, key.firmware) = (None, None);
    }
    key
}

/// The hypervisor as far as every user sees it: what older versions stored may have a name that only root reads.
fn hypervisor(fingerprint: &Fingerprint) -> Option<String> {
    fingerprint.hypervisor.as_deref().map(common_hypervisor).map(str::to_owned)
}

/// The properties of a fingerprint, the most important first; the last one, pages, does not belong to a group.
pub(crate) fn properties(fingerprint: &Fingerprint) -> [(DifferentField, Option<String>); 10] {
    let f = fingerprint;
    [
        (DifferentField::Cpu, f.cpu.clone()),
        (DifferentField::CpuModel, f.stepping.clone()),
        (DifferentField::Hypervisor, hypervisor(f)),
        (DifferentField::Cpus, Some(f.cpus.to_string())),
        (DifferentField::Nodes, Some(f.nodes.to_string())),
        (DifferentField::Channels, f.memory.clone()),
        (DifferentField::Microcode, f.microcode.clone()),
        (DifferentField::Firmware, f.firmware.clone()),
        (DifferentField::Kernel, f.kernel.clone()),
        (DifferentField::Pages, f.pages.clone()),
    ]
}

/// How many of the properties count at a level.
const fn properties_of(level: GroupLevel) -> usize {
    match level {
        GroupLevel::Hardware => 6,
        GroupLevel::Firmware => 8,
        GroupLevel::Kernel => 9,
    }
}

/// Hosts with one key.
pub(crate) struct Group {
    pub(crate) level: GroupLevel,
    pub(crate) key: Fingerprint,
    /// Indices of hosts.
    pub(crate) members: Vec<u32>,
}

impl Group {
    /// For outputs.
    pub(crate) fn describe(&self) -> HostGroup {
        let fields = properties(&self.key).into_iter().take(properties_of(self.level));
        let fields = fields.map(|(field, value)| GroupField { field, value }).collect();
        HostGroup { level: self.level, fields, hosts: self.members.len() as u32 }
    }
}

/// All groups of all levels.
pub(crate) struct Groups {
    pub(crate) all: Vec<Group>,
    /// The group of each host at each level, in the order of [`GroupLevel::ALL`].
    of_host: Vec<[u32; GroupLevel::ALL.len()]>,
}

impl Groups {
    /// The groups of hosts with these fingerprints.
    pub(crate) fn new(hosts: &[Fingerprint]) -> Self {
        let mut all = Vec::new();
        let mut of_host = vec![[0; GroupLevel::ALL.len()]; hosts.len()];
        for (place, level) in GroupLevel::ALL.into_iter().enumerate() {
            let mut members: BTreeMap<Fingerprint, Vec<u32>> = BTreeMap::new();
            for (host, fingerprint) in hosts.iter().enumerate() {
                members.entry(key(fingerprint, level)).or_default().push(host as u32);
            }
            for (key, members) in members {
                members.iter().for_each(|&host| of_host[host as usize][place] = all.len() as u32);
                all.push(Group { level, key, members });
            }
        }
        Self { all, of_host }
    }

    /// The groups that a host is in, the one with the most in common first.
    pub(crate) fn containing(&self, host: u32) -> [u32; GroupLevel::ALL.len()] {
        self.of_host[host as usize]
    }

    /// The group that a host is compared with: the first with eight hosts. `None` if there is none.
    pub(crate) fn chosen(&self, host: u32) -> Option<u32> {
        self.containing(host).into_iter().find(|&group| self.is_large(group))
    }

    pub(crate) fn is_large(&self, group: u32) -> bool {
        self.all[group as usize].members.len() >= MIN_HOSTS
    }

    /// How many hosts have the hardware of this one, itself among them.
    pub(crate) fn with_hardware_of(&self, host: u32) -> usize {
        self.containing(host).last().map_or(0, |&group| self.all[group as usize].members.len())
    }
}
