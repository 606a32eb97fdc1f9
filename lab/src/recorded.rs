//! Reading recordings back: that one says what the machine says, and whether two say the same.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use flate2::read::GzDecoder;
use memgauge_model::topology::{Identity, Topology};
use memgauge_os::topology::read_machine;

use crate::contract::SHARE;
use crate::record;

/// Records this machine for the host as `NAME.tar.gz`, and makes sure that the recording says of it what it says itself.
///
/// # Errors
/// When it cannot be written, or says something else.
pub fn to_share(name: &str) -> Result<()> {
    record::to_share(name)?;
    let there = Archived::read(&Path::new(SHARE).join(format!("{name}.tar.gz")), Path::new("/tmp/recorded"))?;
    let here = lasting(Path::new("/"))?;
    ensure!(here == there.machine, "recorded: {:?}\nthe machine itself: {here:?}", there.machine);
    Ok(())
}

/// What an archive holds. Two recordings of one machine are equal in this, though counters and free memory in them differ.
#[derive(Debug, PartialEq)]
pub struct Archived {
    /// Who the machine is and what it consists of.
    pub machine: (Identity, Topology),
    /// Files, folders and links.
    pub names: BTreeSet<PathBuf>,
}

impl Archived {
    /// Reads an archive by way of `folder`, which is made anew and taken away again.
    ///
    /// # Errors
    /// When it cannot be read, or holds no machine.
    pub fn read(archive: &Path, folder: &Path) -> Result<Self> {
        let open = || File::open(archive).with_context(|| format!("cannot open {}", archive.display()));
        let mut names = BTreeSet::new();
        for entry in tar::Archive::new(GzDecoder::new(open()?)).entries()? {
            names.insert(entry?.path()?.into_owned());
        }
        let top = names.first().and_then(|name| name.components().next()).with_context(|| format!("{} is empty", archive.display()))?;
        let _ = fs::remove_dir_all(folder);
        tar::Archive::new(GzDecoder::new(open()?)).unpack(folder)?;
        let machine = lasting(&folder.join(top));
        fs::remove_dir_all(folder)?;
        Ok(Self { machine: machine?, names })
    }
}

/// Of the machine below `root`, what does not change from one moment to the next, without what recordings leave out: firmware's table of
/// memory devices, which holds their serial numbers.
fn lasting(root: &Path) -> Result<(Identity, Topology)> {
    let mut machine = read_machine(root)?;
    machine.identity.installed = Default::default();
    for node in &mut machine.topology.nodes {
        node.free = None;
        for pool in &mut node.pools {
            pool.free = 0;
        }
    }
    Ok((machine.identity, machine.topology))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine of one CPU and one node, with this much memory and this much of it free.
    fn machine(folder: &Path, total: u32, free: u32) -> Archived {
        let root = folder.join("machine");
        for (file, text) in [
            ("proc/cpuinfo", "processor: 0\n".to_owned()),
            ("sys/devices/system/cpu/cpu0/topology/physical_package_id", "0\n".into()),
            ("sys/devices/system/node/node0/cpulist", "0\n".into()),
            ("sys/devices/system/node/node0/meminfo", format!("Node 0 MemTotal: {total} kB\nNode 0 MemFree: {free} kB\n")),
        ] {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let archive = folder.join("machine.tar.gz");
        record::record(&root, "machine", File::create(&archive).unwrap()).unwrap();
        Archived::read(&archive, &folder.join("unpacked")).unwrap()
    }

    #[test]
    fn free_memory_makes_no_other_machine() {
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("target");
        let folder = target.join(format!("recorded-{}", std::process::id()));
        let [one, later, larger] = [(4096, 1024), (4096, 512), (8192, 512)].map(|(total, free)| machine(&folder, total, free));
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(one.machine.1.nodes[0].stated_bytes(), 4 << 20);
        assert!(one.names.contains(Path::new("machine/sys/devices/system/node/node0/meminfo")), "{:?}", one.names);
        assert_eq!(one, later);
        assert_ne!(one, larger);
    }
}
