//! The machine, from `/sys` and `/proc` below a root folder.
//!
//! The formats are in the kernel's `Documentation/ABI` (sysfs-devices-system-cpu, sysfs-devices-node),
//! `Documentation/admin-guide/mm/numaperf.rst` and `cputopology.rst`. A field whose file is missing or malformed is unknown. Only a tree
//! without any CPU is an error.

mod arm;
mod caches;
mod cpuinfo;
mod devices;
mod encryption;
mod hypervisor;
mod identity;
mod kinds;
mod nodes;
mod smbios;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use memgauge_model::topology::{Cpu, Machine, Topology};
use memgauge_model::units::IdSet;

use crate::cpu::{self, online_and_offline};
use crate::security::explained;
use crate::tree::{CPU_DIR, Tree};
use crate::{limits, persistent};

pub use smbios::device_map;

/// Why the machine cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TopologyError {
    /// The root is not a folder that can be read.
    #[error("cannot read the machine below {root}: {1}; name a folder that holds the machine's sys/ and proc/", root = .0.display())]
    Root(PathBuf, #[source] std::io::Error),
    /// This machine's CPUs are not in sysfs.
    #[error(
        "/{CPU_DIR} shows no CPU: /sys is not mounted here, or hidden; mount it (mount -t sysfs sysfs /sys), or pass it into the sandbox or \
         chroot that this runs in"
    )]
    NoSysfs,
    /// This process may not read this machine's CPUs in sysfs.
    #[error(
        "/{CPU_DIR} cannot be read: {}; a security module (AppArmor, SELinux) or a sandbox denies it: let this program read /sys and /proc",
        explained(.0)
    )]
    SysfsDenied(#[source] std::io::Error),
    /// There is no CPU below the root.
    #[error(
        "{} holds no CPU: a recorded machine is a folder with sys/devices/system/cpu/cpu0 and so on in it (and, better, proc/); \
         name the folder above sys/",
        .0.display()
    )]
    NoCpus(PathBuf),
}

/// Reads the machine below `root`: `/` for this one, or a folder with `sys/` and `proc/` for a recorded one.
///
/// For `/`, the result has what this process may use. For a recorded folder, it has what the recording process could use, as far as its
/// `/proc/self` and control groups were recorded.
///
/// # Errors
/// When `root` is not a readable folder or contains no CPU.
pub fn read_machine(root: &Path) -> Result<Machine, TopologyError> {
    std::fs::read_dir(root).map_err(|error| TopologyError::Root(root.to_owned(), error))?;
    let tree = Tree::new(root);
    let info = cpuinfo::CpuInfo::read(tree);
    let (online, offline) = online_and_offline(tree);
    if online.is_empty() {
        let denied = std::fs::read_dir(tree.path(CPU_DIR)).err().filter(|error| error.kind() == std::io::ErrorKind::PermissionDenied);
        return Err(match denied {
            Some(error) if tree.is_live() => TopologyError::SysfsDenied(error),
            _ if tree.is_live() => TopologyError::NoSysfs,
            _ => TopologyError::NoCpus(root.to_owned()),
        });
    }
    let mut nodes = nodes::read(tree, &online);
    devices::assign(tree, &mut nodes);
    let mut cpus = read_cpus(tree, &online);
    nodes::assign(tree, &nodes, &mut cpus);
    let caches = caches::read(tree, &cpus);
    kinds::assign(tree, &mut cpus, &caches, &info);
    let smt_active = tree.parsed::<u8>(&format!("{CPU_DIR}/smt/active")).filter(|n| *n <= 1).map(|n| n == 1);
    let topology =
        Topology { cpus, offline, caches, nodes, smt_active, cxl_memory: devices::cxl_memory(tree), persistent: persistent::regions(tree) };
    let allowed = limits::read(tree, &topology.nodes, cpu::read_allowed(root, &topology));
    Ok(Machine { identity: identity::read(tree, &info), topology, allowed })
}

/// The online CPUs, without the fields that come from nodes and caches.
fn read_cpus(tree: Tree<'_>, online: &IdSet) -> Vec<Cpu> {
    let mut siblings: BTreeMap<u32, IdSet> = BTreeMap::new();
    let mut cpus = Vec::with_capacity(online.len());
    for id in online.iter() {
        let at = |file: &str| format!("{CPU_DIR}/cpu{id}/topology/{file}");
        if !siblings.contains_key(&id) {
            // `core_cpus` is the name since Linux 5.3. `thread_siblings` is the older name, which still exists.
            let mut set = tree
                .mask_or_ids(&at("core_cpus"), &at("core_cpus_list"))
                .or_else(|| tree.mask_or_ids(&at("thread_siblings"), &at("thread_siblings_list")))
                .unwrap_or_default()
                .intersection(online);
            set.insert(id);
            for other in set.iter() {
                siblings.entry(other).or_insert_with(|| set.clone());
            }
        }
        let own = siblings.get(&id).filter(|set| set.contains(id)).cloned().unwrap_or_else(|| IdSet::one(id));
        cpus.push(Cpu {
            id,
            package: tree.id(&at("physical_package_id")).unwrap_or(0),
            die: tree.id(&at("die_id")),
            // x86 kernels show BAD_APICID (65535) when firmware states no cluster.
            cluster: tree.id(&at("cluster_id")).filter(|&n| n != 65_535),
            core: tree.id(&at("core_id")).or(own.first()).unwrap_or(id),
            siblings: own,
            node: 0,
            kind: None,
            capacity: tree.id(&format!("{CPU_DIR}/cpu{id}/cpu_capacity")),
            max_mhz: tree.id(&format!("{CPU_DIR}/cpu{id}/cpufreq/cpuinfo_max_freq")).map(|khz| khz / 1000).filter(|&mhz| mhz > 0),
        });
    }
    cpus
}

#[cfg(test)]
mod tests;
