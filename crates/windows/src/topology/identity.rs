//! The identity of the machine: the registry, the version of Windows, and the hypervisor.

use core::ffi::{CStr, c_char};
use std::collections::BTreeMap;
use std::mem::transmute;

use memgauge_model::topology::{HYPERVISOR_OF_FIRMWARE, Identity, OperatingSystem};
use windows_sys::Wdk::System::SystemServices::RtlGetVersion;
use windows_sys::Win32::Foundation::FARPROC;
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress};
use windows_sys::Win32::System::SystemInformation::OSVERSIONINFOW;

use super::cpuid::{self, Hypervisor};
use super::smbios;
use crate::registry::{self, wide};

/// The registry key that describes the first CPU; Windows writes it at every start.
const PROCESSOR: &str = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0";
/// The registry key with the firmware's description of the machine (SMBIOS types 0, 1 and 2).
const BIOS: &str = r"HARDWARE\DESCRIPTION\System\BIOS";
const VERSION: &str = r"SOFTWARE\Microsoft\Windows NT\CurrentVersion";

/// The first build of Windows 11, whose `ProductName` still says Windows 10.
const WINDOWS_11: u32 = 22_000;

/// Values below [`BIOS`], and the names that they have on Linux. Serial numbers are not among them.
const FIRMWARE: [(&str, &str); 9] = [
    ("SystemManufacturer", "sys_vendor"),
    ("SystemProductName", "product_name"),
    ("SystemFamily", "product_family"),
    ("SystemVersion", "product_version"),
    ("BaseBoardManufacturer", "board_vendor"),
    ("BaseBoardProduct", "board_name"),
    ("BIOSVendor", "bios_vendor"),
    ("BIOSVersion", "bios_version"),
    ("BIOSReleaseDate", "bios_date"),
];

/// The machine's identity.
pub(super) fn read() -> Identity {
    let firmware = firmware();
    let mut model = registry::text(PROCESSOR, "Identifier").map(|text| model(&text)).unwrap_or_default();
    model.extend(microcode().map(|revision| ("microcode".to_owned(), revision)));
    let stated = || smbios::is_of_virtual_machine().then(|| HYPERVISOR_OF_FIRMWARE.to_owned());
    let hypervisor = hypervisor(cpuid::hypervisor().as_ref(), &firmware).or_else(|| stated().filter(|_| !cpuid::ANNOUNCES));
    let unknown = !cpuid::ANNOUNCES && hypervisor.is_none() && !smbios::has_chassis();
    Identity {
        arch: std::env::consts::ARCH.to_owned(),
        vendor: registry::text(PROCESSOR, "VendorIdentifier"),
        // Makers pad names with spaces.
        model_name: registry::text(PROCESSOR, "ProcessorNameString").map(|name| name.split_whitespace().collect::<Vec<_>>().join(" ")),
        model,
        system: OperatingSystem::Windows,
        kernel: kernel(),
        hypervisor,
        memory_encryption: None,
        hypervisor_unknown: unknown.then(|| "neither the CPU nor firmware (DMI) says so".to_owned()),
        firmware,
        installed: smbios::read(),
    }
}

/// The parts of an identifier such as `Intel64 Family 6 Model 85 Stepping 7` or `ARMv8 (64-bit) Family 8 Model D4B Revision   0`.
fn model(identifier: &str) -> BTreeMap<String, String> {
    let words: Vec<&str> = identifier.split_whitespace().collect();
    let after = |name: &str| words.windows(2).find(|pair| pair[0] == name).map(|pair| pair[1]);
    let arm = identifier.starts_with("ARM");
    let decimal = |name: &str| after(name).filter(|text| text.parse::<u32>().is_ok()).map(str::to_owned);
    let parts = if arm {
        // Windows writes the part number as hexadecimal digits.
        let part = after("Model").and_then(|text| u32::from_str_radix(text, 16).ok()).map(|part| format!("0x{part:03x}"));
        vec![("architecture", decimal("Family")), ("part", part)]
    } else {
        vec![("family", decimal("Family")), ("model", decimal("Model")), ("stepping", decimal("Stepping"))]
    };
    parts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// The revision of the microcode, as Linux writes it.
fn microcode() -> Option<String> {
    revision(&registry::bytes(PROCESSOR, "Update Revision")?).map(|revision| format!("{revision:#x}"))
}

/// The value is that of the register 8Bh, whose upper half has the revision on Intel CPUs, the lower half on AMD's, and the other half
/// zeros.
fn revision(value: &[u8]) -> Option<u32> {
    let (halves, rest) = value.as_chunks::<4>();
    let stated: Vec<u32> = halves.iter().map(|half| u32::from_le_bytes(*half)).filter(|&half| half != 0).collect();
    match stated.as_slice() {
        [one] if halves.len() <= 2 && rest.is_empty() => Some(*one),
        _ => None,
    }
}

fn firmware() -> BTreeMap<String, String> {
    FIRMWARE.iter().filter_map(|(value, name)| Some(((*name).to_owned(), registry::text(BIOS, value)?))).collect()
}

/// The version of Windows, such as `Windows 10.0.20348.2113 (Windows Server 2022 Datacenter)`; under Wine, that of Wine and of the Windows
/// that it stands for.
fn kernel() -> Option<String> {
    let mut version = OSVERSIONINFOW { dwOSVersionInfoSize: size_of::<OSVERSIONINFOW>() as u32, ..OSVERSIONINFOW::default() };
    // SAFETY: the structure states its own size and outlives the call. This function tells every program the true version.
    if unsafe { RtlGetVersion(&raw mut version) } != 0 {
        return None;
    }
    let OSVERSIONINFOW { dwMajorVersion: major, dwMinorVersion: minor, dwBuildNumber: build, .. } = version;
    let windows = format!("Windows {major}.{minor}.{build}");
    Some(match wine_version() {
        Some(wine) => format!("Wine {wine} ({windows})"),
        None => named(windows, build, registry::number(VERSION, "UBR"), registry::text(VERSION, "ProductName")),
    })
}

/// The version with the update and the name of the product.
fn named(windows: String, build: u32, update: Option<u64>, product: Option<String>) -> String {
    let update = update.map_or(String::new(), |update| format!(".{update}"));
    let product = product.filter(|name| build < WINDOWS_11 || !name.starts_with("Windows 10"));
    let product = product.map_or(String::new(), |name| format!(" ({name})"));
    format!("{windows}{update}{product}")
}

/// The version of Wine, which runs programs for Windows on other systems; `None` on Windows.
pub(crate) fn wine_version() -> Option<String> {
    type Version = unsafe extern "C" fn() -> *const c_char;
    let name = wide("ntdll.dll");
    // SAFETY: the name ends with a zero. The library is part of every process and is never unloaded.
    let library = unsafe { GetModuleHandleW(name.as_ptr()) };
    if library.is_null() {
        return None;
    }
    // SAFETY: the library is loaded, and the name ends with a zero.
    let function = unsafe { GetProcAddress(library, c"wine_get_version".as_ptr().cast::<u8>()) };
    // SAFETY: only Wine has the function. It takes nothing and returns a text.
    let function = unsafe { transmute::<FARPROC, Option<Version>>(function) }?;
    // SAFETY: as above.
    let text = unsafe { function() };
    if text.is_null() {
        return None;
    }
    // SAFETY: the text ends with a zero and is part of the library.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    (!text.is_empty()).then_some(text)
}

/// Words in the vendor, product and BIOS fields that identify a hypervisor, the most specific first.
const HYPERVISORS: [(&str, &str); 13] = [
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
const NEVER_METAL: [&str; 6] = ["VMware", "VirtualBox", "Parallels", "bhyve", "QEMU", "Microsoft Hyper-V"];

/// Signatures that hypervisors show in CPUID.
const SIGNATURES: [(&str, &str); 9] = [
    ("KVMKVMKVM", "KVM"),
    ("TCGTCGTCGTCG", "QEMU"),
    ("VMwareVMware", "VMware"),
    ("XenVMMXenVMM", "Xen"),
    ("VBoxVBoxVBox", "VirtualBox"),
    ("prl hyperv", "Parallels"),
    ("bhyve bhyve", "bhyve"),
    ("ACRNACRNACRN", "ACRN"),
    ("Microsoft Hv", "Microsoft Hyper-V"),
];

/// The name of the hypervisor that this machine is a guest of.
fn hypervisor(found: Option<&Hypervisor>, firmware: &BTreeMap<String, String>) -> Option<String> {
    let by_firmware = by_firmware(firmware);
    // Hidden from the guest (QEMU: `hypervisor=off`), or not an x86 CPU.
    let Some(found) = found else { return by_firmware.filter(|name| NEVER_METAL.contains(name)).map(str::to_owned) };
    if found.owner {
        return None;
    }
    // KVM and others offer Hyper-V's interface to guests with Windows, beside their own.
    let by_cpu = SIGNATURES.iter().find(|(signature, _)| found.signatures.iter().any(|own| own == signature)).map(|(_, name)| *name);
    Some(match (by_firmware, by_cpu) {
        (Some("QEMU"), Some("KVM")) => "QEMU/KVM".to_owned(),
        (Some(name), _) | (None, Some(name)) => name.to_owned(),
        (None, None) => found.signatures.first().map_or("unknown hypervisor".to_owned(), |own| format!("unknown hypervisor ({own})")),
    })
}

fn by_firmware(firmware: &BTreeMap<String, String>) -> Option<&'static str> {
    let text = |field: &str| firmware.get(field).map_or("", String::as_str);
    if text("sys_vendor") == "Microsoft Corporation" && text("product_name").contains("Virtual Machine") {
        return Some("Microsoft Hyper-V");
    }
    let text = ["sys_vendor", "product_name", "bios_vendor", "board_vendor"].map(text).join("\n");
    HYPERVISORS.iter().find(|(word, _)| text.contains(word)).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests;
