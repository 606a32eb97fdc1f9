//! Encryption of all memory, as far as the kernel shows it to every user.

use super::cpuinfo::CpuInfo;
use crate::tree::Tree;

/// Devices by which confidential guests ask for proof of what they are (`drivers/virt/coco` of Linux).
const GUEST_DEVICES: [(&str, &str); 3] = [
    ("sys/class/misc/sev-guest", "AMD SEV-SNP"),
    ("sys/class/misc/tdx_guest", "Intel TDX"),
    ("sys/bus/platform/devices/arm-cca-dev", "Arm CCA"),
];
/// The driver of AMD's secure processor says whether firmware encrypts all memory of the host (Linux 6.5 and later).
const SECURE_PROCESSORS: &str = "sys/bus/pci/drivers/ccp";

/// The technology that encrypts the memory of this system; `None` where the kernel shows none. It does not show all of them: Intel TME and AMD
/// SEV without SNP leave no trace that users can read.
pub(super) fn find(tree: Tree<'_>, info: &CpuInfo) -> Option<String> {
    let guest = GUEST_DEVICES.iter().find(|(device, _)| tree.exists(device)).map(|(_, name)| *name);
    let flag = || (info.flag("tdx_guest") == Some(true)).then_some("Intel TDX");
    let host = || {
        let on = |device: &String| tree.parsed::<u32>(&format!("{SECURE_PROCESSORS}/{device}/tsme_status")) == Some(1);
        tree.names(SECURE_PROCESSORS).iter().any(on).then_some("AMD TSME")
    };
    guest.or_else(flag).or_else(host).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn found(files: &[(&str, &str)]) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let path: &Path = folder.path();
        let tree = Tree::new(path);
        find(tree, &CpuInfo::read(tree))
    }

    #[test]
    fn guests_and_hosts_whose_memory_is_encrypted() {
        assert_eq!(found(&[("proc/cpuinfo", "processor : 0\nvendor_id : AuthenticAMD\nflags : fpu sev\n")]), None, "the CPU could do it");
        assert_eq!(found(&[("sys/class/misc/sev-guest/dev", "10:124\n")]).as_deref(), Some("AMD SEV-SNP"));
        assert_eq!(
            found(&[("proc/cpuinfo", "processor : 0\nvendor_id : GenuineIntel\nflags : fpu tdx_guest\n")]).as_deref(),
            Some("Intel TDX")
        );
        let host = |status| found(&[("sys/bus/pci/drivers/ccp/0000:22:00.1/tsme_status", status)]);
        assert_eq!((host("1\n").as_deref(), host("0\n")), (Some("AMD TSME"), None));
    }
}
