//! The identity of the machine: `/proc/cpuinfo` and DMI.

use std::collections::BTreeMap;

use memgauge_model::topology::{Identity, OperatingSystem};

use super::cpuinfo::{CpuInfo, distinct};
use super::smbios::dmi;
use super::{arm, encryption, hypervisor, smbios};
use crate::tree::{CPU_DIR, Tree};

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
        memory_encryption: encryption::find(tree, info),
        firmware,
        installed: smbios::read(tree),
    }
}

fn vendor(info: &CpuInfo) -> Option<String> {
    match info.first("CPU implementer") {
        Some(code) => Some(arm::implementer(code).map_or_else(|| format!("implementer {code}"), str::to_owned)),
        None => info.first("vendor_id").map(str::to_owned).or_else(|| info.first("mvendorid").map(riscv_vendor)),
    }
}

/// The maker of a RISC-V processor by its JEDEC number (arch/riscv/include/asm/vendorid_list.h of Linux); the number, where it is not listed.
fn riscv_vendor(mvendorid: &str) -> String {
    let name = match mvendorid {
        "0x29" => "Microchip",
        "0x31e" => "Andes",
        "0x489" => "SiFive",
        "0x5b7" => "T-Head",
        "0x710" => "SpacemiT",
        _ => return format!("mvendorid {mvendorid}"),
    };
    name.to_owned()
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

fn firmware(tree: Tree<'_>) -> BTreeMap<String, String> {
    DMI.iter().filter_map(|field| Some(((*field).to_owned(), dmi(tree, field)?))).collect()
}
