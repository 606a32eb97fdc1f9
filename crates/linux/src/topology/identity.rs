//! The identity of the machine: `/proc/cpuinfo` and DMI.

use std::collections::BTreeMap;

use memgauge_core::topology::{Identity, OperatingSystem};

use super::{arm, hypervisor, smbios};
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

    /// The value of a field for one processor. If processors are numbered anew, it is only a value that all of them have.
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

    /// Whether the first processor has the flag; `None` where the file states no flags of an x86 CPU.
    pub(super) fn flag(&self, flag: &str) -> Option<bool> {
        self.first("vendor_id").and(self.first("flags")).map(|_| self.has_flag(flag))
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
        if self.first("CPU Family").is_some_and(|family| family.starts_with("Loongson")) {
            return Some("loongarch64");
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
    let arch = if tree.is_live() { Some(std::env::consts::ARCH) } else { info.arch() }.unwrap_or("unknown");
    let (hypervisor, hypervisor_unknown) = match hypervisor::find(tree, info, arch, &firmware) {
        Ok(found) => (found, None),
        Err(why) => (None, Some(why)),
    };
    Identity {
        arch: arch.to_owned(),
        vendor: vendor(info),
        model_name: model_name(info),
        model: model(tree, info),
        system: OperatingSystem::Linux,
        kernel: kernel(tree),
        hypervisor,
        hypervisor_unknown,
        firmware,
        installed: smbios::read(tree),
    }
}

fn vendor(info: &CpuInfo) -> Option<String> {
    match info.first("CPU implementer") {
        Some(code) => Some(arm::implementer(code).map_or_else(|| format!("implementer {code}"), str::to_owned)),
        None => info.first("vendor_id").or_else(|| info.first("mvendorid")).map(str::to_owned),
    }
}

fn model_name(info: &CpuInfo) -> Option<String> {
    if info.first("CPU implementer").is_some() && info.first("model name").is_none() {
        let name = |block: &BTreeMap<String, String>| Some(arm::name(block.get("CPU implementer")?, block.get("CPU part")?));
        let all: Vec<String> = info.blocks.values().filter_map(name).collect();
        let names = distinct(all.iter().map(String::as_str));
        return (!names.is_empty()).then(|| names.join(" + "));
    }
    ["model name", "Model Name", "uarch", "cpu model", "cpu"].iter().find_map(|key| info.first(key)).map(|name| {
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
        && let Some(version) = tree.text(&format!("{CPU_DIR}/cpu0/microcode/version")).filter(|version| !version.is_empty())
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

/// A field of DMI that every user may read.
pub(super) fn dmi(tree: Tree<'_>, field: &str) -> Option<String> {
    let folder = ["sys/class/dmi/id", "sys/devices/virtual/dmi/id"].into_iter().find(|folder| tree.exists(folder))?;
    tree.text(&format!("{folder}/{field}")).filter(|text| !text.is_empty())
}

fn firmware(tree: Tree<'_>) -> BTreeMap<String, String> {
    DMI.iter().filter_map(|field| Some(((*field).to_owned(), dmi(tree, field)?))).collect()
}
