//! The hypervisor. That nothing names one does not mean that there is none: only what says so counts.

use std::collections::BTreeMap;

use memgauge_kernels::hypervisor_announced;
use memgauge_model::installed::smbios::is_shape;
use memgauge_model::topology::{HYPERVISOR_OF_FIRMWARE, UNKNOWN_HYPERVISOR};

use super::cpuinfo::CpuInfo;
use super::smbios::{self, dmi};
use crate::tree::{Tree, field};

/// Words in DMI's vendor, product and BIOS fields that identify a hypervisor, the most specific first.
const HYPERVISORS: [(&str, &str); 27] = [
    ("Firecracker", "Firecracker"),
    ("Amazon EC2", "Amazon EC2 (Nitro)"),
    ("Google Compute Engine", "Google Compute Engine (KVM)"),
    ("Alibaba Cloud", "Alibaba Cloud (KVM)"),
    ("OpenStack", "OpenStack"),
    ("VMware", "VMware"),
    ("VirtualBox", "VirtualBox"),
    ("innotek GmbH", "VirtualBox"),
    ("Parallels", "Parallels"),
    ("BHYVE", "bhyve"),
    ("Apple Virtualization", "Apple Virtualization"),
    ("Xen", "Xen"),
    ("HVM domU", "Xen"),
    // Clouds and tools that run QEMU or the like on KVM under names of their own.
    ("Hetzner", "KVM"),
    ("KubeVirt", "KVM"),
    ("Tencent Cloud", "KVM"),
    ("Scaleway", "KVM"),
    ("DigitalOcean", "KVM"),
    ("Vultr", "KVM"),
    ("UpCloud", "KVM"),
    ("Nutanix AHV", "KVM"),
    ("oVirt", "KVM"),
    ("RHEV", "KVM"),
    ("crosvm", "KVM"),
    ("KVM", "KVM"),
    ("QEMU", "QEMU"),
    ("Bochs", "QEMU"),
];

/// Hypervisors whose firmware no physical machine has. Clouds rent physical machines under the same names as virtual ones.
const NEVER_METAL: [&str; 5] = ["VMware", "VirtualBox", "Parallels", "bhyve", "QEMU"];

/// Machines that only hypervisors describe, by `compatible` of the device tree's root.
const VIRTUAL_BOARDS: [(&str, &str); 4] =
    [("linux,dummy-virt", UNKNOWN_HYPERVISOR), ("riscv-virtio", "QEMU"), ("xen,xenvm", "Xen"), ("qemu,", "QEMU")];

/// Display and virtual-machine devices that only a hypervisor has, by vendor and device as the second field of /proc/bus/pci/devices has them.
/// VirtualBox may hide the CPU's flag, and a container or a recording DMI.
const VIRTUAL_DEVICES: [(&str, &str); 4] =
    [("80eebeef", "VirtualBox"), ("80eecafe", "VirtualBox"), ("15ad0405", "VMware"), ("15ad0740", "VMware")];

/// The hypervisor's name; `None` if the machine is physical.
///
/// # Errors
/// Why that is not known.
pub(super) fn find(tree: Tree<'_>, info: &CpuInfo, arch: &str, firmware: &BTreeMap<String, String>) -> Result<Option<String>, String> {
    if let Some(kind) = tree.text("sys/hypervisor/type").filter(|t| !t.is_empty()) {
        return Ok(Some(if kind == "xen" { "Xen".to_owned() } else { kind }));
    }
    let x86 = matches!(arch, "x86_64" | "x86" | "i686");
    let seen = Seen { tree, firmware, x86 };
    match arch {
        "s390x" => seen.by_sysinfo(),
        arch if arch.starts_with("powerpc") || arch.starts_with("ppc") => by_platform(info),
        _ => {
            // The CPU shows whether there is one, unless that is hidden from the guest (QEMU: `hypervisor=off`). No CPU but x86's does.
            let announced = info.flag("hypervisor").or_else(|| hypervisor_announced().filter(|_| tree.is_live()));
            seen.by_description(announced)
        }
    }
    .map(|name| name.map(str::to_owned))
}

type Found = Result<Option<&'static str>, String>;

/// The sources of names.
struct Seen<'a> {
    tree: Tree<'a>,
    firmware: &'a BTreeMap<String, String>,
    x86: bool,
}

impl Seen<'_> {
    /// By what the CPU announces and what firmware and the kernel describe.
    fn by_description(&self, announced: Option<bool>) -> Found {
        let named = self.by_firmware().or_else(|| self.by_devices());
        if announced == Some(false) {
            return Ok(named.filter(|name| NEVER_METAL.contains(name)));
        }
        let rented_metal = self.firmware.get("product_name").is_some_and(|name| name.contains(".metal"));
        let named = named.filter(|_| !rented_metal).or_else(|| self.by_device_tree());
        let clocks = self.tree.text("sys/devices/system/clocksource/clocksource0/available_clocksource").unwrap_or_default();
        let named = named.or_else(|| self.by_acpi()).or_else(|| by_clock(&clocks));
        match named {
            // QEMU runs guests with and without KVM. The clocks of the guest show which.
            Some("QEMU") if clocks.contains("kvm-clock") => Ok(Some("QEMU/KVM")),
            Some(name) => Ok(Some(name)),
            None if announced == Some(true) => Ok(Some(UNKNOWN_HYPERVISOR)),
            None if smbios::is_of_virtual_machine(self.tree) => Ok(Some(HYPERVISOR_OF_FIRMWARE)),
            None if rented_metal || self.is_board() || self.has_chassis() => Ok(None),
            None => Err(if self.x86 {
                "/proc/cpuinfo, whose flags show a hypervisor, cannot be read".to_owned()
            } else {
                "neither the CPU nor firmware (DMI) nor a device tree says so".to_owned()
            }),
        }
    }

    fn by_firmware(&self) -> Option<&'static str> {
        let text = |field: &str| self.firmware.get(field).map_or("", String::as_str);
        if text("sys_vendor") == "Microsoft Corporation" && text("product_name").contains("Virtual Machine") {
            return Some("Microsoft Hyper-V");
        }
        let chassis = dmi(self.tree, "chassis_vendor").unwrap_or_default();
        let fields = ["sys_vendor", "product_name", "product_family", "bios_vendor", "board_vendor"].map(text);
        first_named(&[fields.as_slice(), &[&chassis]].concat().join("\n"), &HYPERVISORS)
    }

    fn by_devices(&self) -> Option<&'static str> {
        let devices = self.tree.text("proc/bus/pci/devices")?;
        let found = devices.lines().filter_map(|line| line.split_whitespace().nth(1));
        let named = |id: &str| VIRTUAL_DEVICES.iter().find(|(device, _)| *device == id).map(|(_, name)| *name);
        found.into_iter().find_map(named)
    }

    /// A file of the device tree. Its texts end with NUL.
    fn device_tree(&self, file: &str) -> Option<String> {
        ["proc/device-tree", "sys/firmware/devicetree/base"].iter().find_map(|folder| self.tree.text(&format!("{folder}/{file}")))
    }

    fn by_device_tree(&self) -> Option<&'static str> {
        if let Some(text) = self.device_tree("hypervisor/compatible") {
            return Some(if text.contains("xen") { "Xen" } else { "KVM" });
        }
        let board = self.device_tree("compatible").and_then(|text| first_named(&text, &VIRTUAL_BOARDS));
        board.or_else(|| self.calls_a_hypervisor().then_some(UNKNOWN_HYPERVISOR))
    }

    /// Whether the kernel starts CPUs by calls to a hypervisor (PSCI by `hvc`) and not to firmware (`smc`).
    fn calls_a_hypervisor(&self) -> bool {
        ["psci", "firmware/psci"].iter().find_map(|node| self.device_tree(&format!("{node}/method"))).is_some_and(|method| method == "hvc")
    }

    /// Whether a device tree describes a board. Those of guests are named, or call a hypervisor.
    fn is_board(&self) -> bool {
        self.device_tree("compatible").is_some_and(|text| !text.is_empty())
    }

    /// Whether firmware states the shape of a real chassis.
    fn has_chassis(&self) -> bool {
        dmi(self.tree, "chassis_type").and_then(|text| text.parse().ok()).is_some_and(is_shape)
    }

    /// The maker of the ACPI tables (bytes 10 to 15 of a table's header); readable by root only.
    fn by_acpi(&self) -> Option<&'static str> {
        let makers = [("FIRECK", "Firecracker"), ("BOCHS", "QEMU"), ("VRTUAL", "Microsoft Hyper-V"), ("CLOUDH", "Cloud Hypervisor")];
        first_named(&self.tree.text_up_to("sys/firmware/acpi/tables/FACP", 36)?, &makers)
    }

    /// On s390x no machine is without a hypervisor: beside that of z/VM and KVM, each partition (LPAR) is one of PR/SM's.
    fn by_sysinfo(&self) -> Found {
        let Some(text) = self.tree.text("proc/sysinfo").filter(|text| !text.is_empty()) else {
            return Err("/proc/sysinfo, which shows a hypervisor, cannot be read".to_owned());
        };
        let name = field(&text, "VM00 Control Program").map(|name| first_named(name, &[("KVM", "KVM"), ("z/VM", "z/VM")]));
        Ok(Some(name.map_or("PR/SM", |name| name.unwrap_or(UNKNOWN_HYPERVISOR))))
    }
}

/// On POWER, firmware gives a guest another platform than a physical machine (PowerNV).
fn by_platform(info: &CpuInfo) -> Found {
    match info.first("platform") {
        Some("pSeries") if info.first("machine").is_some_and(|machine| machine.contains("qemu")) => Ok(Some("QEMU")),
        Some("pSeries") => Ok(Some("PowerVM")),
        Some(_) => Ok(None),
        None => Err("/proc/cpuinfo states no platform (PowerNV or pSeries)".to_owned()),
    }
}

fn by_clock(clocks: &str) -> Option<&'static str> {
    first_named(clocks, &[("kvm-clock", "KVM"), ("hyperv_clocksource", "Microsoft Hyper-V"), ("xen", "Xen")])
}

/// The name that belongs to the first of the words that the text contains.
fn first_named(text: &str, words: &[(&str, &'static str)]) -> Option<&'static str> {
    words.iter().find(|(word, _)| text.contains(word)).map(|(_, name)| *name)
}
