//! What tells the kind of a node's memory: the kernel's memory tiers, DAX devices that serve as memory, and CXL.
//!
//! The files are those of the kernel's Documentation/ABI (sysfs-kernel-mm-memory-tiers, sysfs-bus-dax, sysfs-bus-cxl,
//! sysfs-devices-memory).

use std::path::PathBuf;

use memgauge_core::topology::{CxlMemory, Node, NodeDevice, NodeDeviceKind};
use memgauge_core::units::Bytes;

use crate::persistent::{ancestor, name};
use crate::tree::Tree;

const TIERS_DIR: &str = "sys/devices/virtual/memory_tiering";
const DAX_DIR: &str = "sys/bus/dax/devices";
const CXL_DIR: &str = "sys/bus/cxl/devices";
const BLOCKS_DIR: &str = "sys/devices/system/memory";

/// Adds to each node the kernel's tier of it and the devices whose memory it has.
pub(crate) fn assign(tree: Tree<'_>, nodes: &mut [Node]) {
    for tier in tree.numbered(TIERS_DIR, "memory_tier").iter() {
        let of_tier = tree.ids(&format!("{TIERS_DIR}/memory_tier{tier}/nodelist")).unwrap_or_default();
        nodes.iter_mut().filter(|node| of_tier.contains(node.id)).for_each(|node| node.memory_tier = Some(tier));
    }
    let mut add = |found: Option<(u32, NodeDevice)>| {
        let Some((id, device)) = found else { return };
        if let Some(node) = nodes.iter_mut().find(|node| node.id == id) {
            // A region that is memory through a DAX device is that device.
            let is_same = |d: &NodeDevice| d.kind == device.kind && d.region.as_ref() == Some(&device.name);
            if !node.devices.iter().any(is_same) {
                node.devices.push(device);
            }
        }
    };
    tree.names(DAX_DIR).iter().for_each(|name| add(dax(tree, name)));
    tree.numbered(CXL_DIR, "region").iter().for_each(|number| add(cxl_region(tree, number)));
}

/// A DAX device that the driver kmem has made memory of a node.
fn dax(tree: Tree<'_>, device: &str) -> Option<(u32, NodeDevice)> {
    let folder = format!("{DAX_DIR}/{device}");
    let driver = link(tree, &format!("{folder}/driver"))?;
    if driver.file_name()? != "kmem" {
        return None;
    }
    // The link's text says which devices it is below; a recording may lack their folders.
    let path = link(tree, &folder)?;
    let kind = match () {
        () if ancestor(&path, "ndbus").is_some() => NodeDeviceKind::Nvdimm,
        () if ancestor(&path, "dax_region").is_some() => NodeDeviceKind::Cxl,
        () if ancestor(&path, "hmem.").is_some() => NodeDeviceKind::SpecificPurpose,
        () => NodeDeviceKind::Other,
    };
    let region = ancestor(&path, "region").map(name);
    Some((
        tree.id(&format!("{folder}/target_node"))?,
        NodeDevice { name: device.to_owned(), kind, region, qos_class: qos_class(tree, &path) },
    ))
}

/// A CXL region with ordinary memory. The node is that of the memory block where it begins.
fn cxl_region(tree: Tree<'_>, number: u32) -> Option<(u32, NodeDevice)> {
    let folder = format!("{CXL_DIR}/region{number}");
    let block = hexadecimal(&tree.text(&format!("{BLOCKS_DIR}/block_size_bytes"))?).filter(|bytes| *bytes > 0)?;
    let start = hexadecimal(&tree.text(&format!("{folder}/resource"))?)?;
    let node = tree.numbered(&format!("{BLOCKS_DIR}/memory{}", start / block), "node").first()?;
    let qos_class = link(tree, &folder).and_then(|path| qos_class(tree, &path));
    Some((node, NodeDevice { name: format!("region{number}"), kind: NodeDeviceKind::Cxl, region: None, qos_class }))
}

/// The class of service of the window of addresses (root decoder) that a device's path leads through.
fn qos_class(tree: Tree<'_>, path: &std::path::Path) -> Option<u32> {
    tree.id(&format!("{CXL_DIR}/{}/qos_class", name(ancestor(path, "decoder")?)))
}

/// The CXL devices with volatile memory.
pub(crate) fn cxl_memory(tree: Tree<'_>) -> Vec<CxlMemory> {
    let device = |number: u32| {
        let at = |file: &str| format!("{CXL_DIR}/mem{number}/{file}");
        let bytes = Bytes(hexadecimal(&tree.text(&at("ram/size"))?).filter(|bytes| *bytes > 0)?);
        Some(CxlMemory {
            name: format!("mem{number}"),
            cpu_node: tree.id(&at("numa_node")),
            bytes,
            qos_class: tree.id(&at("ram/qos_class")),
        })
    };
    tree.numbered(CXL_DIR, "mem").iter().filter_map(device).collect()
}

fn link(tree: Tree<'_>, path: &str) -> Option<PathBuf> {
    std::fs::read_link(tree.path(path)).ok()
}

/// A number in hexadecimal digits, with or without `0x`.
fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::tests::fixture::Fixture;
    use crate::topology::read_machine;

    /// Links `sys/bus/{bus}/devices/{name}` to a device's folder, as the kernel does.
    fn device(tree: Fixture, bus: &str, path: &str, files: &[(&str, &str)]) -> Fixture {
        let folder = format!("sys/devices/{path}");
        let tree = files.iter().fold(tree, |tree, (file, text)| tree.file(&format!("{folder}/{file}"), text));
        let links = tree.root().join(format!("sys/bus/{bus}/devices"));
        std::fs::create_dir_all(&links).unwrap();
        symlink(format!("../../../devices/{path}"), links.join(path.rsplit('/').next().unwrap())).unwrap();
        tree
    }

    fn driver(tree: &Fixture, path: &str, name: &str) {
        symlink(format!("../../bus/dax/drivers/{name}"), tree.root().join(format!("sys/devices/{path}/driver"))).unwrap();
    }

    #[test]
    fn devices_and_tiers_of_nodes() {
        let mut tree = Fixture::new().cpus(2).files(&[
            ("sys/devices/virtual/memory_tiering/memory_tier4/nodelist", "0"),
            ("sys/devices/virtual/memory_tiering/memory_tier22/nodelist", "1-2,7"),
            ("sys/devices/virtual/memory_tiering/uevent", ""),
            ("sys/devices/system/memory/block_size_bytes", "8000000"),
            // 0x490000000 / 0x8000000
            ("sys/devices/system/memory/memory146/node3/x", ""),
        ]);
        for node in 0..5 {
            tree = tree.node(node, if node == 0 { "0-1" } else { "" }, 1024);
        }
        let root = "platform/ACPI0017:00/root0/decoder0.0";
        let (pmem, expander, reserved) =
            ("ndbus0/region2/dax2.1/dax2.0", format!("{root}/region0/dax_region0/dax0.0"), "platform/hmem.4/dax4.0");
        tree = device(tree, "dax", pmem, &[("target_node", "1")]);
        tree = device(tree, "dax", &expander, &[("target_node", "2")]);
        tree = device(tree, "dax", reserved, &[("target_node", "4")]);
        tree = device(tree, "cxl", root, &[("qos_class", "7")]);
        // The region of that DAX device, and one that firmware made memory, at the start of a memory block.
        tree = device(tree, "cxl", &format!("{root}/region0"), &[("resource", "0x100000000")]);
        tree = device(tree, "cxl", &format!("{root}/region1"), &[("resource", "0x490000000")]);
        tree = device(tree, "cxl", "pci0000:37/mem1", &[("ram/size", "0x40000000"), ("ram/qos_class", "5"), ("numa_node", "0")]);
        tree = device(tree, "cxl", "pci0000:37/mem2", &[("ram/size", "0x0"), ("numa_node", "-1")]);
        driver(&tree, pmem, "kmem");
        driver(&tree, &expander, "kmem");
        driver(&tree, reserved, "device_dax");
        let topology = read_machine(tree.root()).unwrap().topology;
        assert_eq!(topology.nodes.iter().map(|n| n.memory_tier).collect::<Vec<_>>(), [Some(4), Some(22), Some(22), None, None]);
        let found = |name: &str, kind, region: Option<&str>, qos_class| {
            vec![NodeDevice { name: name.into(), kind, region: region.map(Into::into), qos_class }]
        };
        let devices: Vec<Vec<NodeDevice>> = topology.nodes.into_iter().map(|n| n.devices).collect();
        let expected = [
            vec![],
            found("dax2.0", NodeDeviceKind::Nvdimm, Some("region2"), None),
            found("dax0.0", NodeDeviceKind::Cxl, Some("region0"), Some(7)),
            found("region1", NodeDeviceKind::Cxl, None, Some(7)),
            vec![],
        ];
        assert_eq!(devices, expected);
        let memory = CxlMemory { name: "mem1".into(), cpu_node: Some(0), bytes: Bytes::gib(1), qos_class: Some(5) };
        assert_eq!(topology.cxl_memory, [memory]);
    }
}
