//! The kind of a node's memory, from the kernel's memory tiers, DAX devices that serve as memory, and CXL.
//!
//! The files are those of the kernel's Documentation/ABI (sysfs-kernel-mm-memory-tiers, sysfs-bus-dax, sysfs-bus-cxl,
//! sysfs-devices-memory).

use std::collections::BTreeSet;
use std::path::PathBuf;

use memgauge_model::topology::{CxlMemory, HmatAccess, Node, NodeDevice, NodeDeviceKind};
use memgauge_model::units::{Bytes, IdSet};

use super::nodes;
use crate::persistent::{ancestor, name};
use crate::tree::{Tree, field};

const TIERS_DIR: &str = "sys/devices/virtual/memory_tiering";
const DAX_DIR: &str = "sys/bus/dax/devices";
const CXL_DIR: &str = "sys/bus/cxl/devices";
const PCI_DIR: &str = "sys/bus/pci/devices";
const NVIDIA_DIR: &str = "proc/driver/nvidia/gpus";
const NVIDIA_MEMORY: &str = "System RAM (NVIDIA)";
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
    assign_gpus(tree, nodes);
    let with_cpus: IdSet = nodes.iter().filter(|node| !node.cpus.is_empty()).map(|node| node.id).collect();
    nodes.iter_mut().filter(|node| node.hmat.is_empty()).for_each(|node| node.hmat = cxl_claims(tree, node, &with_cpus));
}

/// The figures that the kernel computes for the CXL region of a node if firmware states nothing about that node (Linux 6.9 or later). They are
/// those of the nearest CPUs (class 1) or, if these are not stated, of the nearest device of any kind. Empty if the node has several regions,
/// because no single region describes the node.
fn cxl_claims(tree: Tree<'_>, node: &Node, with_cpus: &IdSet) -> Vec<HmatAccess> {
    let of_cxl = node.devices.iter().filter(|device| device.kind == NodeDeviceKind::Cxl);
    let regions: BTreeSet<&String> = of_cxl.map(|device| device.region.as_ref().unwrap_or(&device.name)).collect();
    let (Some(region), 1) = (regions.first(), regions.len()) else { return Vec::new() };
    let distance = |from: u32| node.distances.get(&from).copied();
    let nearest = with_cpus.iter().filter_map(distance).min();
    let initiators: IdSet = with_cpus.iter().filter(|from| distance(*from).is_some() && distance(*from) == nearest).collect();
    let read = |class: u8| {
        let folder = format!("{CXL_DIR}/{region}/access{class}");
        let found = nodes::access(tree, &folder, class, initiators.clone());
        let stated = found.read_latency_ns.or(found.write_latency_ns).or(found.read_bandwidth_mbs).or(found.write_bandwidth_mbs);
        stated.map(|_| HmatAccess { cxl_region: Some((*region).clone()), ..found })
    };
    // Class 0 may be of other devices than CPUs.
    [1, 0].into_iter().find_map(read).into_iter().collect()
}

/// Adds to nodes without CPUs the GPU whose memory they have: by its driver's state, by the name under which its driver added the memory
/// (which is all that there is where a GPU is divided, MIG), or else accelerators that the kernel has there.
fn assign_gpus(tree: Tree<'_>, nodes: &mut [Node]) {
    let bare: IdSet = nodes.iter().filter(|node| node.cpus.is_empty() && node.has_memory()).map(|node| node.id).collect();
    if bare.is_empty() {
        return;
    }
    let nvidia_nodes = nvidia_memory(tree);
    let by_driver = tree.names(NVIDIA_DIR).into_iter().filter_map(|gpu| Some((nvidia_node(tree, &gpu)?, gpu, NodeDeviceKind::Gpu)));
    let by_name = nvidia_nodes.iter().map(|node| (node, NVIDIA_MEMORY.to_owned(), NodeDeviceKind::Gpu));
    let by_class = tree
        .names(PCI_DIR)
        .into_iter()
        .filter_map(|device| Some((accelerator_node(tree, &device)?, device, NodeDeviceKind::PciAccelerator)));
    for (id, name, kind) in by_driver.chain(by_name).chain(by_class).filter(|(id, ..)| bare.contains(*id)) {
        let Some(node) = nodes.iter_mut().find(|node| node.id == id) else { continue };
        // Stronger evidence comes first. Only accelerators may be several.
        if node.devices.iter().all(|device| [device.kind, kind] == [NodeDeviceKind::PciAccelerator; 2]) {
            node.devices.push(NodeDevice { name, kind, region: None, qos_class: None });
        }
    }
}

/// The node of a GPU's memory, if NVIDIA's driver has brought it online (`nv_procfs_read_numa_status`).
fn nvidia_node(tree: Tree<'_>, gpu: &str) -> Option<u32> {
    let status = tree.text(&format!("{NVIDIA_DIR}/{gpu}/numa_status"))?;
    field(&status, "Node")?.parse().ok().filter(|_| field(&status, "Status") == Some("online"))
}

/// The nodes of memory that NVIDIA's driver has added under its name (`os_numa_add_gpu_memory`). Only root sees addresses.
fn nvidia_memory(tree: Tree<'_>) -> IdSet {
    let block = tree.text(&format!("{BLOCKS_DIR}/block_size_bytes")).and_then(|text| hexadecimal(&text)).filter(|bytes| *bytes > 0);
    let node = |line: &str| {
        let (range, _) = line.trim().split_once(" : ").filter(|(_, name)| *name == NVIDIA_MEMORY)?;
        let start = hexadecimal(range.split_once('-')?.0).filter(|start| *start > 0)?;
        tree.numbered(&format!("{BLOCKS_DIR}/memory{}", start / block?), "node").first()
    };
    tree.text("proc/iomem").unwrap_or_default().lines().filter_map(node).collect()
}

/// The node of a PCI device that is a display controller (class 3) or a processing accelerator (class 18).
fn accelerator_node(tree: Tree<'_>, device: &str) -> Option<u32> {
    let class = hexadecimal(&tree.text(&format!("{PCI_DIR}/{device}/class"))?)? >> 16;
    tree.id(&format!("{PCI_DIR}/{device}/numa_node")).filter(|_| [0x03, 0x12].contains(&class))
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
        let nodes = topology.nodes;
        let devices: Vec<Vec<NodeDevice>> = nodes.iter().map(|n| n.devices.clone()).collect();
        let expected = [
            vec![],
            found("dax2.0", NodeDeviceKind::Nvdimm, Some("region2"), None),
            found("dax0.0", NodeDeviceKind::Cxl, Some("region0"), Some(7)),
            found("region1", NodeDeviceKind::Cxl, None, Some(7)),
            vec![],
        ];
        assert_eq!(devices, expected);
        assert!(nodes.iter().all(|node| node.hmat.is_empty()), "nobody claims anything");
        let memory = CxlMemory { name: "mem1".into(), cpu_node: Some(0), bytes: Bytes::gib(1), qos_class: Some(5) };
        assert_eq!(topology.cxl_memory, [memory]);
    }

    #[test]
    fn gpus_with_memory_of_nodes() {
        let mut tree = Fixture::new().cpus(2).node(0, "0-1", 1024);
        for node in 1..6 {
            tree = tree.node(node, "", 1024);
        }
        // Like a Grace Hopper: node 1 by its driver's state, node 2 by the name of memory that the driver added. The GPU of node 3 is offline.
        let gpu =
            |node: u32, status: &str| format!("Node:      {node}\nStatus:    {status}\nAddress:   420000000000\nSize:      1800000000\n");
        let tree = tree.files(&[
            ("proc/driver/nvidia/gpus/0009:01:00.0/numa_status", &gpu(1, "online")),
            ("proc/driver/nvidia/gpus/0019:01:00.0/numa_status", &gpu(3, "offline")),
            ("proc/iomem", "80000000-ffffffff : System RAM\n420000000000-4217ffffffff : System RAM (NVIDIA)\n490000000-49fffffff : System RAM (kmem)\n"),
            ("sys/devices/system/memory/block_size_bytes", "8000000"),
            // 0x420000000000 / 0x8000000
            ("sys/devices/system/memory/memory540672/node2/x", ""),
            ("sys/bus/pci/devices/0009:01:00.0/class", "0x030200"),
            ("sys/bus/pci/devices/0009:01:00.0/numa_node", "0"),
            ("sys/bus/pci/devices/0029:01:00.0/class", "0x120000"),
            ("sys/bus/pci/devices/0029:01:00.0/numa_node", "4"),
            ("sys/bus/pci/devices/0029:02:00.0/class", "0x020000"),
            ("sys/bus/pci/devices/0029:02:00.0/numa_node", "5"),
        ]);
        let topology = read_machine(tree.root()).unwrap().topology;
        let found: Vec<Vec<(&str, NodeDeviceKind)>> =
            topology.nodes.iter().map(|n| n.devices.iter().map(|d| (d.name.as_str(), d.kind)).collect()).collect();
        use NodeDeviceKind::{Gpu, PciAccelerator};
        let expected = [
            vec![],
            vec![("0009:01:00.0", Gpu)],
            vec![("System RAM (NVIDIA)", Gpu)],
            vec![],
            vec![("0029:01:00.0", PciAccelerator)],
            vec![],
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_region_states_what_firmware_does_not_state_of_its_node() {
        let root = "platform/ACPI0017:00/root0/decoder0.0";
        let made = |claimed_of_the_node: bool| {
            let mut tree = Fixture::new().cpus(4).node(0, "0-1", 1024).node(1, "2-3", 1024).node(2, "", 1024);
            for (node, distances) in [(0, "10 21 24"), (1, "21 10 14"), (2, "24 14 10")] {
                tree = tree.file(&format!("sys/devices/system/node/node{node}/distance"), distances);
            }
            let region = format!("{root}/region3");
            tree = device(tree, "dax", &format!("{region}/dax_region3/dax3.0"), &[("target_node", "2")]);
            let figures = [
                ("access0/read_latency", "310"),
                ("access0/read_bandwidth", "30720"),
                ("access1/read_latency", "330"),
                ("access1/write_latency", "350"),
                ("access1/read_bandwidth", "28672"),
                ("access1/write_bandwidth", "0"),
            ];
            tree = device(tree, "cxl", &region, &figures);
            driver(&tree, &format!("{region}/dax_region3/dax3.0"), "kmem");
            if claimed_of_the_node {
                let folder = "sys/devices/system/node/node2/access1/initiators";
                tree = tree.file(&format!("{folder}/node1/x"), "").file(&format!("{folder}/read_latency"), "240");
            }
            let topology = read_machine(tree.root()).unwrap().topology;
            let of_far = topology.node(2).unwrap().hmat.clone();
            let claim = topology.claim(1, 2).cloned();
            assert!(topology.claim(0, 2).is_none(), "of the nearest CPUs only");
            (of_far, claim.unwrap())
        };
        let (of_region, claim) = made(false);
        let expected = HmatAccess {
            class: 1,
            initiators: IdSet::one(1),
            read_latency_ns: Some(330),
            write_latency_ns: Some(350),
            read_bandwidth_mbs: Some(28672),
            write_bandwidth_mbs: None,
            cxl_region: Some("region3".into()),
        };
        assert_eq!((of_region, claim), (vec![expected.clone()], expected), "what is of CPUs");
        let (one, claim) = made(true);
        assert_eq!((one.len(), claim.read_latency_ns, claim.cxl_region), (1, Some(240), None), "firmware's own figures count");
    }
}
