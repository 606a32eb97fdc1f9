//! The identity of the machine: `/proc/cpuinfo`, DMI, and the hypervisor.

use std::collections::BTreeMap;

use memgauge_core::topology::{Identity, OperatingSystem};

use super::smbios;
use crate::substitute::Substitutes;
use crate::tree::{CPU_DIR, Tree};

/// In an x86 `cpuinfo`, the block of the first processor has less than 8 KiB. The other blocks repeat it, and on some kernels reading them
/// interrupts every CPU to get its frequency.
const FIRST_BLOCK: u64 = 16 << 10;
/// On other architectures the file shows the design of each CPU. 1,024 CPUs take less than 1 MiB.
const WHOLE_FILE: u64 = 16 << 20;

/// DMI fields that every user may read. Serial numbers are not among them.
const DMI: [&str; 9] = [
    "sys_vendor",
    "product_name",
    "product_family",
    "product_version",
    "board_vendor",
    "board_name",
    "bios_vendor",
    "bios_version",
    "bios_date",
];

/// The beginning of a `/proc/cpuinfo` without the block that it may end within: a value that is cut is another value.
fn whole_blocks(head: &str) -> &str {
    // A shorter text is all that there is.
    let cut = head.len() as u64 > FIRST_BLOCK / 2;
    head.rsplit_once("\n\n").filter(|_| cut).map_or(head, |(whole, _)| whole)
}

/// `/proc/cpuinfo`, by processor.
#[derive(Debug, Default)]
pub(crate) struct CpuInfo {
    blocks: BTreeMap<u32, BTreeMap<String, String>>,
    /// Lines outside the processors' blocks.
    common: BTreeMap<String, String>,
    /// The numbers of processors are those of a container's CPUs, counted from 0 (lxcfs).
    renumbered: bool,
}

impl CpuInfo {
    pub(crate) fn read(tree: Tree<'_>) -> Self {
        let head = tree.text_up_to("proc/cpuinfo", FIRST_BLOCK).unwrap_or_default();
        let x86 = head.contains("vendor_id") && head.contains("flags");
        let info = if x86 {
            Self::parse(whole_blocks(&head))
        } else {
            Self::parse(&tree.text_up_to("proc/cpuinfo", WHOLE_FILE).unwrap_or_default())
        };
        Self { renumbered: Substitutes::read(tree).cover("proc/cpuinfo"), ..info }
    }

    fn parse(text: &str) -> Self {
        let mut info = Self::default();
        let mut processor = None;
        for line in text.lines() {
            let Some((key, value)) = line.split_once(':') else {
                if line.trim().is_empty() {
                    processor = None;
                }
                continue;
            };
            let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
            if key == "processor"
                && let Ok(id) = value.parse()
            {
                processor = Some(id);
                info.blocks.entry(id).or_default();
                continue;
            }
            let block = match processor.and_then(|id| info.blocks.get_mut(&id)) {
                Some(block) => block,
                None => &mut info.common,
            };
            block.entry(key).or_insert(value);
        }
        info
    }

    /// The value of a field for one processor. Where processors are numbered anew, only a value that all of them have.
    pub(crate) fn field(&self, cpu: u32, key: &str) -> Option<&str> {
        if self.renumbered {
            let first = self.first(key)?;
            return self.blocks.values().all(|block| block.get(key).is_some_and(|value| value == first)).then_some(first);
        }
        self.blocks.get(&cpu)?.get(key).map(String::as_str).filter(|v| !v.is_empty())
    }

    /// The value of the lowest processor that has the field, or of the whole file.
    pub(crate) fn first(&self, key: &str) -> Option<&str> {
        self.blocks.values().chain([&self.common]).find_map(|block| block.get(key)).map(String::as_str).filter(|v| !v.is_empty())
    }

    /// Distinct values over all processors, in order of appearance, joined by commas.
    fn distinct(&self, key: &str) -> Option<String> {
        let values = self.blocks.values().filter_map(|block| block.get(key)).map(String::as_str);
        let values = distinct(values.filter(|value| !value.is_empty()));
        (!values.is_empty()).then(|| values.join(","))
    }

    fn has_flag(&self, flag: &str) -> bool {
        self.first("flags").is_some_and(|flags| flags.split_whitespace().any(|f| f == flag))
    }

    fn arch(&self) -> Option<&'static str> {
        if self.first("CPU implementer").is_some() {
            let v8 = self.first("CPU architecture").is_some_and(|a| a == "8" || a == "AArch64");
            return Some(if v8 { "aarch64" } else { "arm" });
        }
        if let Some(isa) = self.first("isa") {
            return Some(if isa.starts_with("rv32") { "riscv32" } else { "riscv64" });
        }
        match self.first("vendor_id") {
            Some("IBM/S390") => Some("s390x"),
            Some(_) if self.has_flag("lm") => Some("x86_64"),
            Some(_) if self.first("flags").is_some() => Some("i686"),
            _ => self.first("cpu").filter(|cpu| cpu.starts_with("POWER")).map(|_| "ppc64le"),
        }
    }
}

/// Each of the values once, in order of appearance.
fn distinct<'a>(values: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut once = Vec::new();
    for value in values {
        if !once.contains(&value) {
            once.push(value);
        }
    }
    once
}

/// The machine's identity.
pub(crate) fn read(tree: Tree<'_>, info: &CpuInfo) -> Identity {
    let firmware = firmware(tree);
    let arch = if tree.is_live() { Some(std::env::consts::ARCH) } else { info.arch() };
    Identity {
        arch: arch.unwrap_or("unknown").to_owned(),
        vendor: vendor(info),
        model_name: model_name(info),
        model: model(tree, info),
        system: OperatingSystem::Linux,
        kernel: kernel(tree),
        hypervisor: hypervisor(tree, info, &firmware),
        firmware,
        installed: smbios::read(tree),
    }
}

fn vendor(info: &CpuInfo) -> Option<String> {
    match info.first("CPU implementer") {
        Some(code) => Some(arm_implementer(code).map_or_else(|| format!("implementer {code}"), str::to_owned)),
        None => info.first("vendor_id").or_else(|| info.first("mvendorid")).map(str::to_owned),
    }
}

fn model_name(info: &CpuInfo) -> Option<String> {
    if info.first("CPU implementer").is_some() && info.first("model name").is_none() {
        let name = |block: &BTreeMap<String, String>| arm_part(block.get("CPU implementer")?, block.get("CPU part")?);
        let names = distinct(info.blocks.values().filter_map(name));
        return (!names.is_empty()).then(|| names.join(" + "));
    }
    ["model name", "uarch", "cpu"].iter().find_map(|key| info.first(key)).map(|name| {
        // Firmware pads names with spaces.
        name.split_whitespace().collect::<Vec<_>>().join(" ")
    })
}

fn model(tree: Tree<'_>, info: &CpuInfo) -> BTreeMap<String, String> {
    let keys = [
        ("cpu family", "family"),
        ("model", "model"),
        ("stepping", "stepping"),
        ("microcode", "microcode"),
        ("CPU implementer", "implementer"),
        ("CPU architecture", "architecture"),
        ("CPU variant", "variant"),
        ("CPU part", "part"),
        ("CPU revision", "revision"),
        ("isa", "isa"),
        ("mvendorid", "mvendorid"),
        ("marchid", "marchid"),
        ("mimpid", "mimpid"),
    ];
    let mut model: BTreeMap<String, String> =
        keys.iter().filter_map(|(key, name)| Some(((*name).to_owned(), info.distinct(key)?))).collect();
    if !model.contains_key("microcode")
        && let Some(version) = tree.text(&format!("{CPU_DIR}/cpu0/microcode/version"))
    {
        model.insert("microcode".to_owned(), version);
    }
    model
}

fn kernel(tree: Tree<'_>) -> Option<String> {
    let release = tree.text("proc/sys/kernel/osrelease").filter(|t| !t.is_empty());
    // "Linux version 6.1.0-13-amd64 (…"
    release.or_else(|| tree.text("proc/version")?.strip_prefix("Linux version ")?.split_whitespace().next().map(str::to_owned))
}

fn firmware(tree: Tree<'_>) -> BTreeMap<String, String> {
    let folder = ["sys/class/dmi/id", "sys/devices/virtual/dmi/id"].into_iter().find(|folder| tree.exists(folder));
    let Some(folder) = folder else { return BTreeMap::new() };
    let read = |field: &&str| {
        let text = tree.text(&format!("{folder}/{field}")).filter(|t| !t.is_empty())?;
        Some(((*field).to_owned(), text))
    };
    DMI.iter().filter_map(read).collect()
}

/// Words in DMI's vendor, product and BIOS fields that identify a hypervisor, the most specific first.
const HYPERVISORS: [(&str, &str); 14] = [
    ("Firecracker", "Firecracker"),
    ("Amazon EC2", "Amazon EC2 (Nitro)"),
    ("Google Compute Engine", "Google Compute Engine (KVM)"),
    ("Alibaba Cloud", "Alibaba Cloud (KVM)"),
    ("OpenStack", "OpenStack"),
    ("VMware", "VMware"),
    ("VirtualBox", "VirtualBox"),
    ("Parallels", "Parallels"),
    ("BHYVE", "bhyve"),
    ("Apple Virtualization", "Apple Virtualization"),
    ("Xen", "Xen"),
    ("HVM domU", "Xen"),
    ("KVM", "KVM"),
    ("QEMU", "QEMU"),
];

/// Hypervisors whose firmware no physical machine has. Clouds rent physical machines under the same names as virtual ones.
const NEVER_METAL: [&str; 5] = ["VMware", "VirtualBox", "Parallels", "bhyve", "QEMU"];

/// The name of the hypervisor. On x86 the CPU shows that there is one, unless that is hidden from the guest (QEMU: `hypervisor=off`). On other
/// architectures only firmware does.
fn hypervisor(tree: Tree<'_>, info: &CpuInfo, firmware: &BTreeMap<String, String>) -> Option<String> {
    if let Some(kind) = tree.text("sys/hypervisor/type").filter(|t| !t.is_empty()) {
        return Some(if kind == "xen" { "Xen".to_owned() } else { kind });
    }
    let x86 = info.first("vendor_id").is_some() && info.first("flags").is_some();
    if x86 && !info.has_flag("hypervisor") {
        return by_firmware(firmware).filter(|name| NEVER_METAL.contains(name)).map(str::to_owned);
    }
    let metal = firmware.get("product_name").is_some_and(|name| name.contains(".metal"));
    let named = by_firmware(firmware).filter(|_| !metal).or_else(|| by_device_tree(tree));
    let clocks = tree.text("sys/devices/system/clocksource/clocksource0/available_clocksource").unwrap_or_default();
    let name = match named {
        // QEMU runs guests with and without KVM. The clocks of the guest show which.
        Some("QEMU") if clocks.contains("kvm-clock") => Some("QEMU/KVM"),
        Some(name) => Some(name),
        None if x86 => by_acpi(tree).or_else(|| by_clock(&clocks)).or(Some("unknown hypervisor")),
        None => None,
    };
    name.map(str::to_owned)
}

fn by_firmware(firmware: &BTreeMap<String, String>) -> Option<&'static str> {
    let text = |field: &str| firmware.get(field).map_or("", String::as_str);
    if text("sys_vendor") == "Microsoft Corporation" && text("product_name").contains("Virtual Machine") {
        return Some("Microsoft Hyper-V");
    }
    let text = ["sys_vendor", "product_name", "bios_vendor", "board_vendor"].map(text).join("\n");
    first_named(&text, &HYPERVISORS)
}

fn by_device_tree(tree: Tree<'_>) -> Option<&'static str> {
    let text = tree.text("proc/device-tree/hypervisor/compatible")?;
    Some(if text.contains("xen") { "Xen" } else { "KVM" })
}

/// The maker of the ACPI tables (bytes 10 to 15 of a table's header); readable by root only.
fn by_acpi(tree: Tree<'_>) -> Option<&'static str> {
    let makers = [("FIRECK", "Firecracker"), ("BOCHS", "QEMU"), ("VRTUAL", "Microsoft Hyper-V"), ("CLOUDH", "Cloud Hypervisor")];
    first_named(&tree.text_up_to("sys/firmware/acpi/tables/FACP", 36)?, &makers)
}

fn by_clock(clocks: &str) -> Option<&'static str> {
    first_named(clocks, &[("kvm-clock", "KVM"), ("hyperv_clocksource", "Microsoft Hyper-V"), ("xen", "Xen")])
}

/// The name that belongs to the first of the words that the text contains.
fn first_named(text: &str, words: &[(&str, &'static str)]) -> Option<&'static str> {
    words.iter().find(|(word, _)| text.contains(word)).map(|(_, name)| *name)
}

/// Makers of Arm cores by their number in MIDR_EL1 (Linux `arch/arm64/include/asm/cputype.h`).
fn arm_implementer(code: &str) -> Option<&'static str> {
    Some(match number(code)? {
        0x41 => "ARM",
        0x42 => "Broadcom",
        0x43 => "Cavium",
        0x46 => "Fujitsu",
        0x48 => "HiSilicon",
        0x4e => "NVIDIA",
        0x50 => "APM",
        0x51 => "Qualcomm",
        0x53 => "Samsung",
        0x61 => "Apple",
        0x6d => "Microsoft",
        0xc0 => "Ampere",
        _ => return None,
    })
}

/// Names of core designs by maker and part number (same source).
pub(crate) fn arm_part(implementer: &str, part: &str) -> Option<&'static str> {
    Some(match (number(implementer)?, number(part)?) {
        (0x41, 0xd03) => "Cortex-A53",
        (0x41, 0xd04) => "Cortex-A35",
        (0x41, 0xd05) => "Cortex-A55",
        (0x41, 0xd07) => "Cortex-A57",
        (0x41, 0xd08) => "Cortex-A72",
        (0x41, 0xd09) => "Cortex-A73",
        (0x41, 0xd0a) => "Cortex-A75",
        (0x41, 0xd0b) => "Cortex-A76",
        (0x41, 0xd0c) => "Neoverse-N1",
        (0x41, 0xd0d) => "Cortex-A77",
        (0x41, 0xd40) => "Neoverse-V1",
        (0x41, 0xd41) => "Cortex-A78",
        (0x41, 0xd44) => "Cortex-X1",
        (0x41, 0xd46) => "Cortex-A510",
        (0x41, 0xd47) => "Cortex-A710",
        (0x41, 0xd48) => "Cortex-X2",
        (0x41, 0xd49) => "Neoverse-N2",
        (0x41, 0xd4d) => "Cortex-A715",
        (0x41, 0xd4e) => "Cortex-X3",
        (0x41, 0xd4f) => "Neoverse-V2",
        (0x41, 0xd80) => "Cortex-A520",
        (0x41, 0xd81) => "Cortex-A720",
        (0x41, 0xd82) => "Cortex-X4",
        (0x41, 0xd83) => "Neoverse-V3AE",
        (0x41, 0xd84) => "Neoverse-V3",
        (0x41, 0xd85) => "Cortex-X925",
        (0x41, 0xd87) => "Cortex-A725",
        (0x41, 0xd8e) => "Neoverse-N3",
        (0x43, 0x0af) => "ThunderX2",
        (0x46, 0x001) => "A64FX",
        (0x48, 0xd01) => "Kunpeng-920",
        (0xc0, 0xac3) => "Ampere-1",
        (0xc0, 0xac4) => "Ampere-1A",
        _ => return None,
    })
}

fn number(hex: &str) -> Option<u32> {
    u32::from_str_radix(hex.strip_prefix("0x")?, 16).ok()
}
