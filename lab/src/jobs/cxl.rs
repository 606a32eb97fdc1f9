//! Volatile memory behind CXL, which the kernel makes a node without CPUs once its region is set up.

use std::path::Path;

use anyhow::{Result, ensure};
use memgauge_model::tiers::MemoryKind;
use memgauge_model::topology::NodeDeviceKind;
use memgauge_model::units::Bytes;

use super::kmem::{bandwidth_matrix, compares_tiers, latency_matrix, loaded, more_than_the_node_has, shows_the_node};
use super::residency::{BIND, INTERLEAVE, layouts_under};
use crate::guest;
use crate::job::{Job, Machine, PLAIN, Release, tests};
use crate::program::memgauge;

pub(crate) const JOB: Job = Job {
    name: "cxl",
    about: "CXL type 3 volatile memory as a node without CPUs and HMAT (QEMU 10, Linux 6.12)",
    optional: true,
    machine: Machine {
        qemu: QEMU,
        modules: &["cxl_acpi", "cxl_pci", "cxl_mem", "dax_cxl", "device_dax", "kmem"],
        release: Release::Backports,
        ..PLAIN
    },
    tests: tests![
        region_becomes_memory,
        info_shows_the_node,
        latency_matrix,
        bandwidth_matrix,
        loaded,
        tiers,
        where_sees_its_memory,
        more_than_the_node_has
    ],
};

/// In a virtual machine that says that it is one the kernel refuses to write its caches back, and with that the region.
const QEMU: &[&str] = &[
    "-machine q35,cxl=on",
    "-cpu max,vendor=GenuineIntel,hypervisor=off",
    "-smp 2",
    "-m 512M,slots=2,maxmem=8G",
    "-object memory-backend-ram,id=cx0,size=256M",
    "-device pxb-cxl,bus_nr=12,bus=pcie.0,id=cxl.1",
    "-device cxl-rp,port=0,bus=cxl.1,id=rp13,chassis=0,slot=2",
    "-device cxl-type3,bus=rp13,volatile-memdev=cx0,id=vmem0",
    "-M cxl-fmw.0.targets.0=cxl.1,cxl-fmw.0.size=4G",
];

/// Does the same as `cxl create-region --type ram` (kernel: `Documentation/ABI/testing/sysfs-bus-cxl`).
fn region_becomes_memory() -> Result<()> {
    let cxl = Path::new("/sys/bus/cxl");
    let at = |file: &str| cxl.join("devices").join(file);
    // Of the host, and of the memory device at the end of the way.
    let (root, end) = ("decoder0.0", "decoder2.0");
    guest::appears(&at(root))?;
    guest::appears(&at(end))?;
    let region = guest::read(at(root).join("create_ram_region"))?;
    for (file, value) in [
        (format!("{root}/create_ram_region"), region.as_str()),
        (format!("{region}/interleave_granularity"), "256"),
        (format!("{region}/interleave_ways"), "1"),
        (format!("{end}/mode"), "ram"),
        (format!("{end}/dpa_size"), "0x10000000"),
        (format!("{region}/size"), "0x10000000"),
        (format!("{region}/target0"), end),
        (format!("{region}/commit"), "1"),
    ] {
        guest::write(at(&file), value)?;
    }
    guest::write(cxl.join("drivers/cxl_region/bind"), &region)?;
    guest::appears(Path::new("/sys/devices/system/node/node1"))?;
    let target = guest::read("/sys/bus/dax/devices/dax0.0/target_node")?;
    ensure!(target == "1", "it became memory of node {target}");
    Ok(())
}

fn info_shows_the_node() -> Result<()> {
    let identity = memgauge("info").measure()?.machine.identity;
    // The CPU does not say so here.
    ensure!(identity.hypervisor.as_deref() == Some("QEMU"), "{identity:?}");
    shows_the_node(Bytes::mib(256), 20)
}

/// `memgauge where` beside `move_pages`: memory on the node without CPUs, interleaved with the other, and moved there by half.
fn where_sees_its_memory() -> Result<()> {
    layouts_under(&[(BIND, 0b10), (INTERLEAVE, 0b11)], (0b1, 0b10))
}

fn tiers() -> Result<()> {
    compares_tiers(MemoryKind::Cxl, NodeDeviceKind::Cxl, "CXL dax0.0")
}
