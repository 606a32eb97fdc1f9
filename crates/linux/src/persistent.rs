//! Persistent memory in sysfs: from a block device to its namespace, region, bus and modules; and all regions with their namespaces.
//!
//! The files are those of the kernel's Documentation/ABI (testing/sysfs-bus-nd, sysfs-bus-nfit, sysfs-bus-papr-pmem, sysfs-bus-cxl) and of its
//! drivers/nvdimm. Firmware versions and health of DIMMs need commands to them that only root may give; their flags are here for everybody.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use memgauge_model::persistent::{PersistentDevice, PersistentModule, PersistentNamespace, PersistentRegion};
use memgauge_model::units::Bytes;

use crate::tree::Tree;

/// The most modules that a region may be spread over (`ND_MAX_MAPPINGS`).
const MAX_MAPPINGS: u32 = 32;
const ND_DIR: &str = "sys/bus/nd/devices";
const DAX_DIR: &str = "sys/bus/dax/devices";
/// The kinds of claims. A claim formats a namespace, and has a file that names this namespace; btt is block translation.
const CLAIMS: [&str; 3] = ["pfn", "btt", "dax"];

/// Devices of the device mapper are made of others, which may be such devices again.
const MAX_DEPTH: u32 = 8;

/// Describes the persistent memory that a block device is, given its folder in sysfs; `None` for other devices. A device that is made of
/// several of them (a striped volume) has no namespace of its own; if one part is emulated, the whole device counts as emulated.
pub(crate) fn read(device: &Path, root: &Path) -> Option<PersistentDevice> {
    made_of(device, root, MAX_DEPTH)
}

fn made_of(device: &Path, root: &Path, depth: u32) -> Option<PersistentDevice> {
    if let Some(own) = namespace_of(device, root) {
        return Some(own);
    }
    let below = |link: fs::DirEntry| made_of(&fs::canonicalize(link.path()).ok()?, root, depth.checked_sub(1)?);
    let mut parts: Vec<PersistentDevice> = fs::read_dir(device.join("slaves")).ok()?.flatten().filter_map(below).collect();
    parts.sort_by_key(|part| (part.emulated.is_none(), part.region.clone()));
    let several = parts.len() > 1;
    let first = parts.into_iter().next()?;
    Some(if several { PersistentDevice { namespace: None, mode: None, bytes: None, ..first } } else { first })
}

fn namespace_of(device: &Path, root: &Path) -> Option<PersistentDevice> {
    let node = Attributes(ancestor(device, "region")?);
    let claim = ["namespace"].iter().chain(&CLAIMS).find_map(|kind| ancestor(device, kind));
    // A claim (pfn0.1, btt0.1) names the namespace that it formats.
    let namespace = claim.map(|claim| match name(claim) {
        own if own.starts_with("namespace") => own,
        _ => Attributes(claim).text("namespace").unwrap_or_else(|| name(claim)),
    });
    let of_namespace = namespace.as_ref().map(|n| node.0.join(n)).filter(|folder| folder.is_dir());
    let of_namespace = of_namespace.as_deref().map(Attributes);
    Some(PersistentDevice {
        mode: of_namespace.as_ref().and_then(Attributes::mode),
        bytes: of_namespace.as_ref().and_then(|n| n.bytes("size")),
        namespace,
        capacities: capacities(Tree::new(root)),
        ..PersistentDevice::from(&region(node.0, root))
    })
}

/// All regions, ascending, with their namespaces.
pub(crate) fn regions(tree: Tree<'_>) -> Vec<PersistentRegion> {
    let root = tree.path("");
    let read = |number: u32| {
        let folder = fs::canonicalize(tree.path(&format!("{ND_DIR}/region{number}"))).ok()?;
        let namespaces = namespaces(&folder, number, tree);
        let mut found = PersistentRegion { namespaces, ..region(&folder, &root) };
        found.modules.iter_mut().for_each(|module| module.serial = None);
        Some(found)
    };
    tree.numbered(ND_DIR, "region").iter().filter_map(read).collect()
}

/// The persistent capacity of every module that a region uses.
fn capacities(tree: Tree<'_>) -> BTreeMap<String, Bytes> {
    let root = tree.path("");
    let mut all: BTreeMap<String, Bytes> = BTreeMap::new();
    for number in tree.numbered(ND_DIR, "region").iter() {
        let mappings = (0..MAX_MAPPINGS).map_while(|n| tree.text(&format!("{ND_DIR}/region{number}/mapping{n}")));
        for module in mappings.filter_map(|line| module(&line, &root)) {
            // The kernel's own figure does not grow with the number of regions.
            match (module.capacity, all.get_mut(&module.name)) {
                (Some(stated), _) => _ = all.insert(module.name, stated),
                (None, Some(sum)) => sum.0 = sum.0.saturating_add(module.bytes.unwrap_or_default().0),
                (None, None) => _ = module.bytes.map(|bytes| all.insert(module.name, bytes)),
            }
        }
    }
    all
}

/// The region that is this folder, without its namespaces.
fn region(folder: &Path, root: &Path) -> PersistentRegion {
    let node = Attributes(folder);
    let bus = ancestor(folder, "ndbus").map(Attributes);
    let provider = bus.as_ref().and_then(|bus| bus.text("provider"));
    let scrub = bus.as_ref().and_then(|bus| bus.text("nfit/scrub"));
    let modules = (0..MAX_MAPPINGS).map_while(|n| node.text(&format!("mapping{n}"))).filter_map(|line| module(&line, root)).collect();
    PersistentRegion {
        name: name(folder),
        bytes: node.bytes("size"),
        available: node.bytes("available_size"),
        // -1 where firmware does not state it.
        node: node.text("numa_node").and_then(|n| n.parse().ok()),
        persistence_domain: node.text("persistence_domain").filter(|domain| !domain.is_empty()),
        // The kernel shows zero if the modules have no labels.
        interleave_set: node.text("set_cookie").filter(|cookie| cookie.trim_start_matches("0x").bytes().any(|b| b != b'0')),
        read_only: node.text("read_only").is_some_and(|flag| flag == "1"),
        bad_ranges: node.text("badblocks").map_or(0, |list| list.lines().count() as u32),
        // The number of searches so far, and a plus sign while another one runs.
        scrubbing: scrub.map(|count| count.ends_with('+')),
        emulated: emulated(provider.as_deref(), folder, root),
        provider,
        modules,
        namespaces: Vec::new(),
    }
}

/// The namespaces of a region that have a size, and what they are used as. The kernel keeps an empty one as a seed for the next.
fn namespaces(folder: &Path, number: u32, tree: Tree<'_>) -> Vec<PersistentNamespace> {
    let region = Tree::new(folder);
    let claims: Vec<String> = CLAIMS.iter().flat_map(|kind| region.numbered_twice(kind, number)).collect();
    let read = |name: String| {
        let own = folder.join(&name);
        let bytes = Attributes(&own).bytes("size").filter(|bytes| bytes.0 > 0)?;
        let claim = claims.iter().find(|claim| region.text(&format!("{claim}/namespace")).as_deref() == Some(&name));
        let holder = claim.map_or_else(|| own.clone(), |claim| folder.join(claim));
        let block = Tree::new(&holder).names("block").into_iter().next();
        let dax = claim.and_then(|claim| dax_device(claim, tree));
        let memory_node = dax.as_ref().and_then(|(_, node)| *node);
        let device = block.or_else(|| dax.map(|(name, _)| name)).map(|name| format!("/dev/{name}"));
        let mode = Attributes(&own).mode();
        Some(PersistentNamespace { name, mode, bytes: Some(bytes), device, memory_node })
    };
    region.numbered_twice("namespace", number).into_iter().filter_map(read).collect()
}

/// The DAX device below a claim, and the node whose memory it is.
fn dax_device(claim: &str, tree: Tree<'_>) -> Option<(String, Option<u32>)> {
    // The link's text says what it is below; a recording may lack the folders.
    let below = |name: &String| {
        let path = fs::read_link(tree.path(&format!("{DAX_DIR}/{name}"))).unwrap_or_default();
        path.ancestors().skip(1).any(|folder| folder.file_name().is_some_and(|own| own == claim))
    };
    let name = tree.names(DAX_DIR).into_iter().find(below)?;
    let driver = fs::read_link(tree.path(&format!("{DAX_DIR}/{name}/driver"))).unwrap_or_default();
    let serves = driver.file_name().is_some_and(|driver| driver == "kmem");
    let node = tree.id(&format!("{DAX_DIR}/{name}/target_node")).filter(|_| serves);
    Some((name, node))
}

/// Why persistent memory of this provider is not what it claims to be.
fn emulated(provider: Option<&str>, device: &Path, root: &Path) -> Option<String> {
    let tree = Tree::new(root);
    let vendor = tree.text("sys/class/dmi/id/sys_vendor").unwrap_or_default();
    let virtual_machine = ["QEMU", "Bochs"].iter().any(|maker| vendor.contains(maker));
    match provider {
        Some("e820") => Some("the kernel's command line declares DRAM to be persistent (memmap=, provider e820)".to_owned()),
        Some(test) if test.starts_with("nfit_test") || test.starts_with("ndtest") => Some(format!("a test module of the kernel ({test})")),
        _ if device.iter().any(|part| part.to_string_lossy().starts_with("virtio")) => Some("a virtual device (virtio-pmem)".to_owned()),
        _ if virtual_machine => Some(format!("an emulated device ({vendor})")),
        _ => None,
    }
}

/// The namespace's mode, which sysfs calls otherwise than the tool that sets it.
fn ndctl_mode(mode: &str) -> &str {
    match mode {
        "memory" => "fsdax",
        "safe" => "sector",
        "dax" => "devdax",
        other => other,
    }
}

/// A module from a region's line `nmem0,0,16777216,0`: its name, and where and how much the region uses of it.
fn module(line: &str, root: &Path) -> Option<PersistentModule> {
    let mut parts = line.split(',');
    let (name, _, bytes) = (parts.next()?, parts.next()?, parts.next()?);
    // A recorded tree may hold anything: only a name leads to a folder.
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    let path = fs::canonicalize(root.join("sys/bus/nd/devices").join(name)).ok();
    let dimm = path.as_deref().map(Attributes);
    let text = |file: &str| dimm.as_ref().and_then(|dimm| dimm.text(file));
    // NFIT and the papr_scm driver of POWER have the same facts in folders of their own.
    let either = |file: &str| text(&format!("nfit/{file}")).or_else(|| text(&format!("papr/{file}")));
    // The device that a CXL module's nmem belongs to.
    let cxl = path.as_deref().and_then(|path| path.ancestors().find(|folder| folder.join("firmware_version").is_file())).map(Attributes);
    let of_cxl = |file: &str| cxl.as_ref().and_then(|cxl| cxl.text(file));
    let words = |flags: String| flags.split_whitespace().map(str::to_owned).collect();
    Some(PersistentModule {
        name: name.to_owned(),
        bytes: bytes.parse().ok().map(Bytes),
        capacity: cxl.as_ref().and_then(|cxl| cxl.bytes("pmem/size")),
        model: text("nfit/vendor").zip(text("nfit/device")).map(|(vendor, device)| format!("{vendor}:{device}")),
        serial: text("nfit/serial").or_else(|| of_cxl("serial")),
        firmware: of_cxl("firmware_version"),
        faults: either("flags").map(words).unwrap_or_default(),
        dirty_shutdowns: either("dirty_shutdown").and_then(|count| count.parse().ok()),
        security: text("security").or_else(|| of_cxl("security/state")),
    })
}

/// A folder of sysfs.
struct Attributes<'a>(&'a Path);

impl Attributes<'_> {
    /// The mode of a namespace.
    fn mode(&self) -> Option<String> {
        self.text("mode").map(|mode| ndctl_mode(&mode).to_owned())
    }

    fn text(&self, file: &str) -> Option<String> {
        Tree::new(self.0).text(file)
    }

    /// A size in decimal or, with 0x, in hexadecimal digits.
    fn bytes(&self, file: &str) -> Option<Bytes> {
        let text = self.text(file)?;
        let bytes = text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok());
        bytes.map(Bytes)
    }
}

/// The nearest folder above that is called `kind` and a number.
pub(crate) fn ancestor<'a>(device: &'a Path, kind: &str) -> Option<&'a Path> {
    let numbered = |path: &&Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.strip_prefix(kind).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    device.ancestors().find(numbered)
}

pub(crate) fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use memgauge_model::note::{Code, NoteCode};

    use super::*;
    use crate::tests::fixture::Fixture;

    /// A root folder with files.
    struct Root(Fixture);

    impl Root {
        fn new(files: &[(&str, &str)]) -> Self {
            let root = Fixture::new().files(files);
            fs::create_dir_all(root.root().join("sys/bus/nd/devices")).unwrap();
            Self(root)
        }

        fn link(&self, name: &str, target: &str) {
            std::os::unix::fs::symlink(self.0.root().join(target), self.0.root().join("sys/bus/nd/devices").join(name)).unwrap();
        }

        fn read(&self, device: &str) -> Option<PersistentDevice> {
            read(&self.0.root().join(device), self.0.root())
        }
    }

    const NFIT: &str = "sys/devices/LNXSYSTM:00/ACPI0012:00/ndbus0";

    #[test]
    fn an_interleaved_set_of_modules() {
        let at = |path: &str| format!("{NFIT}/{path}");
        let files = [
            ("provider", "ACPI.NFIT\n"),
            ("nfit/scrub", "3+\n"),
            ("region1/size", "270582939648\n"),
            ("region1/numa_node", "1\n"),
            ("region1/set_cookie", "0x59a6887c48d2cbcc\n"),
            ("region1/persistence_domain", "memory_controller\n"),
            ("region1/read_only", "0\n"),
            ("region1/badblocks", "16 8\n4096 1\n"),
            ("region1/mapping0", "nmem4,268435456,135291469824,0\n"),
            ("region1/mapping1", "nmem5,268435456,135291469824,1\n"),
            ("region1/namespace1.0/mode", "memory\n"),
            ("region1/namespace1.0/size", "266352984064\n"),
            ("region1/pfn1.0/namespace", "namespace1.0\n"),
            ("region1/pfn1.0/block/pmem1/size", "1\n"),
            ("nmem4/nfit/vendor", "0x8089\n"),
            ("nmem4/nfit/device", "0x5141\n"),
            ("nmem4/nfit/serial", "0x0000161b\n"),
            ("nmem4/nfit/flags", "\n"),
            ("nmem4/nfit/dirty_shutdown", "3\n"),
            ("nmem4/security", "unlocked\n"),
            ("nmem5/nfit/flags", "save_fail smart_event \n"),
        ];
        let files: Vec<(String, &str)> = files.iter().map(|(path, text)| (at(path), *text)).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let root = Root::new(&files);
        root.link("nmem4", &at("nmem4"));
        root.link("nmem5", &at("nmem5"));
        let found = root.read(&at("region1/pfn1.0/block/pmem1")).unwrap();
        assert_eq!(
            (found.namespace.as_deref(), found.mode.as_deref(), found.region.as_str()),
            (Some("namespace1.0"), Some("fsdax"), "region1")
        );
        assert_eq!((found.bytes, found.region_bytes, found.node), (Some(Bytes(266_352_984_064)), Some(Bytes(270_582_939_648)), Some(1)));
        assert_eq!(
            (found.interleave_set.as_deref(), found.persistence_domain.as_deref()),
            (Some("0x59a6887c48d2cbcc"), Some("memory_controller"))
        );
        assert_eq!((found.bad_ranges, found.scrubbing, found.read_only, found.emulated), (2, Some(true), false, None));
        let [first, second] = &found.modules[..] else { panic!("{:?}", found.modules) };
        assert_eq!(
            (first.model.as_deref(), first.serial.as_deref(), first.dirty_shutdowns),
            (Some("0x8089:0x5141"), Some("0x0000161b"), Some(3))
        );
        assert_eq!((first.security.as_deref(), first.bytes, first.faults.len()), (Some("unlocked"), Some(Bytes(135_291_469_824)), 0));
        assert_eq!(second.faults, ["save_fail", "smart_event"]);
        assert_eq!(root.read("sys/devices/pci0/nvme0/nvme0n1"), None);
    }

    #[test]
    fn modules_of_mixed_capacities_are_told_by_what_all_regions_take_of_them() {
        let at = |path: &str| format!("{NFIT}/{path}");
        // Two of 128 GiB and one of 256 GiB in an interleave set that takes as much of each, and the rest in a region of its own.
        let files = [
            ("provider", "ACPI.NFIT\n"),
            ("region0/mapping0", "nmem0,0,137438953472,0\n"),
            ("region0/mapping1", "nmem1,0,137438953472,1\n"),
            ("region0/mapping2", "nmem2,0,137438953472,2\n"),
            ("region0/namespace0.0/mode", "raw\n"),
            ("region1/mapping0", "nmem2,137438953472,137438953472,0\n"),
        ];
        let files: Vec<(String, &str)> = files.iter().map(|(path, text)| (at(path), *text)).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let root = Root::new(&files);
        root.link("region0", &at("region0"));
        let device = at("region0/namespace0.0/block/pmem0");
        let codes = |found: &PersistentDevice| found.notes().into_iter().map(|note| note.code).collect::<Vec<_>>();
        assert_eq!(codes(&root.read(&device).unwrap()), Vec::<Code<NoteCode>>::new(), "as much of each");
        root.link("region1", &at("region1"));
        let found = root.read(&device).unwrap();
        let gib: Vec<(&str, u64)> = found.capacities.iter().map(|(name, bytes)| (name.as_str(), bytes.0 >> 30)).collect();
        assert_eq!(gib, [("nmem0", 128), ("nmem1", 128), ("nmem2", 256)]);
        assert_eq!(codes(&found), [NoteCode::PmemMixedCapacities]);
    }

    #[test]
    fn regions_and_what_their_namespaces_are_used_as() {
        let at = |path: &str| format!("{NFIT}/{path}");
        let files = [
            ("provider", "ACPI.NFIT\n"),
            ("region0/size", "1073741824\n"),
            ("region0/available_size", "268435456\n"),
            ("region0/numa_node", "-1\n"),
            ("region0/mapping0", "nmem0,0,1073741824,0\n"),
            ("nmem0/nfit/serial", "0x1234\n"),
            // The seed for the next one.
            ("region0/namespace0.0/size", "0\n"),
            ("region0/namespace0.1/size", "268435456\n"),
            ("region0/namespace0.1/mode", "memory\n"),
            ("region0/pfn0.3/namespace", "namespace0.1\n"),
            ("region0/pfn0.3/block/pmem0/size", "1\n"),
            ("region0/namespace0.2/size", "268435456\n"),
            ("region0/namespace0.2/mode", "dax\n"),
            ("region0/dax0.2/namespace", "namespace0.2\n"),
            ("region0/dax0.2/dax0.0/target_node", "2\n"),
            ("region0/namespace0.10/size", "268435456\n"),
            ("region0/namespace0.10/mode", "raw\n"),
            ("region0/pfn0.4/namespace", "\n"),
        ];
        let files: Vec<(String, &str)> = files.iter().map(|(path, text)| (at(path), *text)).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let root = Root::new(&files);
        root.link("region0", &at("region0"));
        root.link("nmem0", &at("nmem0"));
        let dax = root.0.root().join("sys/bus/dax/devices");
        fs::create_dir_all(&dax).unwrap();
        std::os::unix::fs::symlink(format!("../../../../{}", at("region0/dax0.2/dax0.0")), dax.join("dax0.0")).unwrap();
        let used = |driver: &str| {
            let link = root.0.root().join(at("region0/dax0.2/dax0.0/driver"));
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink(format!("../../bus/dax/drivers/{driver}"), link).unwrap();
            regions(Tree::new(root.0.root()))
        };
        let namespace = |name: &str, mode: &str, device: Option<&str>, memory_node| PersistentNamespace {
            name: name.into(),
            mode: Some(mode.into()),
            bytes: Some(Bytes::mib(256)),
            device: device.map(Into::into),
            memory_node,
        };
        for (driver, node) in [("kmem", Some(2)), ("device_dax", None)] {
            let [region] = &used(driver)[..] else { panic!("not one region") };
            assert_eq!((region.name.as_str(), region.node, region.available), ("region0", None, Some(Bytes::mib(256))));
            assert_eq!((region.modules.len(), region.modules[0].serial.as_deref()), (1, None), "a serial number identifies a machine");
            let expected = [
                namespace("namespace0.1", "fsdax", Some("/dev/pmem0"), None),
                namespace("namespace0.2", "devdax", Some("/dev/dax0.0"), node),
                namespace("namespace0.10", "raw", None, None),
            ];
            assert_eq!(region.namespaces, expected);
        }
        assert!(regions(Tree::new(Path::new("/nonexistent"))).is_empty());
    }

    #[test]
    fn memory_that_only_pretends() {
        let bus = "sys/devices/platform/e820_pmem/ndbus0";
        let root = Root::new(&[
            (&format!("{bus}/provider"), "e820\n"),
            (&format!("{bus}/region0/numa_node"), "-1\n"),
            (&format!("{bus}/region0/set_cookie"), "0x0\n"),
            (&format!("{bus}/region0/namespace0.0/mode"), "raw\n"),
            (&format!("{bus}/region0/mapping0"), "../../etc,0,1,0\n"),
        ]);
        let found = root.read(&format!("{bus}/region0/namespace0.0/block/pmem0")).unwrap();
        assert!(found.emulated.as_ref().is_some_and(|why| why.contains("memmap=")), "{found:?}");
        assert_eq!((found.node, found.interleave_set, found.mode.as_deref(), found.scrubbing), (None, None, Some("raw"), None));
        assert!(found.modules.is_empty(), "a path is no module's name");
        fs::write(root.0.root().join(bus).join("provider"), "ACPI.NFIT\n").unwrap();
        let device = format!("{bus}/region0/namespace0.0/block/pmem0");
        assert_eq!(root.read(&device).unwrap().emulated, None);
        fs::create_dir_all(root.0.root().join("sys/class/dmi/id")).unwrap();
        fs::write(root.0.root().join("sys/class/dmi/id/sys_vendor"), "QEMU\n").unwrap();
        assert!(root.read(&device).unwrap().emulated.unwrap().contains("QEMU"));
    }

    #[test]
    fn a_volume_is_what_it_is_made_of() {
        let bus = "sys/devices/platform/e820_pmem/ndbus0";
        let part = |n: u32| format!("{bus}/region{n}/namespace{n}.0/block/pmem{n}");
        let real = "sys/devices/LNXSYSTM:00/ndbus1/region7/namespace7.0/block/pmem7";
        let files = [
            (format!("{bus}/provider"), "e820\n"),
            (format!("{}/size", part(0)), "1\n"),
            (format!("{}/size", part(1)), "1\n"),
            (format!("{bus}/region1/namespace1.0/size"), "1048576\n"),
            ("sys/devices/LNXSYSTM:00/ndbus1/provider".to_owned(), "ACPI.NFIT\n"),
            (format!("{real}/size"), "1\n"),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let root = Root::new(&files);
        let volume = |name: &str, parts: &[&str]| {
            let folder = format!("sys/devices/virtual/block/{name}");
            fs::create_dir_all(root.0.root().join(&folder).join("slaves")).unwrap();
            for part in parts {
                let link = root.0.root().join(&folder).join("slaves").join(Path::new(part).file_name().unwrap());
                std::os::unix::fs::symlink(root.0.root().join(part), link).unwrap();
            }
            folder
        };
        let single = volume("dm-0", &[&part(1)]);
        let found = root.read(&single).unwrap();
        assert_eq!((found.namespace.as_deref(), found.bytes), (Some("namespace1.0"), Some(Bytes(1_048_576))));
        let striped = root.read(&volume("dm-1", &[real, &part(0)])).unwrap();
        assert!(striped.emulated.is_some_and(|why| why.contains("memmap=")), "one part is DRAM");
        assert_eq!((striped.namespace, striped.bytes), (None, None), "it is in several");
        assert!(root.read(&volume("dm-2", &[&single])).unwrap().emulated.is_some(), "a volume in a volume");
        assert_eq!(root.read(&volume("dm-3", &[])), None);
        let itself = volume("dm-4", &["sys/devices/virtual/block/dm-4"]);
        assert_eq!(root.read(&itself), None);
    }

    #[test]
    fn a_cxl_module_states_its_firmware() {
        let memory = "sys/devices/pci0000:0c/0000:0d:00.0/mem0";
        let bus = "sys/devices/platform/ACPI0017:00/root0/nvdimm-bridge0/ndbus0";
        let root = Root::new(&[
            (&format!("{memory}/firmware_version"), "BWFW VERSION 0\n"),
            (&format!("{memory}/serial"), "0x63\n"),
            (&format!("{memory}/pmem/size"), "0x10000000\n"),
            (&format!("{memory}/pmem0/nmem0/state"), "idle\n"),
            (&format!("{bus}/provider"), "CXL\n"),
            (&format!("{bus}/region0/mapping0"), "nmem0,0,268435456,0\n"),
        ]);
        root.link("nmem0", &format!("{memory}/pmem0/nmem0"));
        let found = root.read(&format!("{bus}/region0/namespace0.0/block/pmem0")).unwrap();
        let module = &found.modules[0];
        assert_eq!((module.firmware.as_deref(), module.serial.as_deref()), (Some("BWFW VERSION 0"), Some("0x63")));
        assert_eq!((module.capacity, module.bytes, found.emulated), (Some(Bytes::mib(256)), Some(Bytes::mib(256)), None));
    }
}
