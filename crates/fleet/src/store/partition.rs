//! The folders of a store's measurements: one for each kind of hardware.

use sha2::{Digest, Sha256};

use crate::row::Fingerprint;

/// Characters of the readable part of a folder's name.
const READABLE: usize = 48;
/// Digits of the hash that tells kinds with one readable name apart.
const DIGITS: usize = 8;

/// How the names of folders begin: readers take it for a column.
const COLUMN: &str = "fingerprint=";

/// The kind of a host's hardware. A store has a folder of measurements for each kind.
pub(crate) fn kind(print: &Fingerprint) -> String {
    name(print).split_off(COLUMN.len())
}

/// The folder of the hosts with this hardware: `fingerprint=intel-xeon-platinum-8480-2n-1f0c77a2`. It names the CPU and the number of nodes,
/// and hashes the properties that a host keeps through updates: model, stepping, hypervisor, CPUs and nodes. Properties that updates change
/// (microcode, firmware, kernel) or that only root may read (the memory's channels) are in columns only: a host's history stays in one folder.
pub(super) fn name(print: &Fingerprint) -> String {
    let Fingerprint { cpu, stepping, hypervisor, cpus, nodes, .. } = print;
    let mut readable = String::new();
    for c in cpu.as_deref().unwrap_or("unknown").chars() {
        match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() => readable.push(c),
            _ if readable.ends_with('-') || readable.is_empty() => {}
            _ => readable.push('-'),
        }
    }
    readable.truncate(READABLE);
    // With lengths, so that no two lists of words have one text.
    let words = [cpu, stepping, hypervisor].map(|word| word.as_ref().map(|w| (w.len(), w.as_str())));
    let hash = Sha256::digest(format!("{words:?} {cpus} {nodes}"));
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{COLUMN}{}-{nodes}n-{}", readable.trim_end_matches('-'), &hash[..DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_and_differ_with_the_hardware_only() {
        let print = Fingerprint { cpu: Some("../Intel(R) Xeon(R) 8480+ @ 2.0GHz".into()), cpus: 112, nodes: 2, ..Fingerprint::default() };
        let of = name(&print);
        assert!(of.starts_with("fingerprint=intel-r-xeon-r-8480-2-0ghz-2n-") && !of.contains(['/', '.', ' ']), "{of}");
        assert_eq!(name(&Fingerprint { kernel: Some("6.1".into()), microcode: Some("0x1".into()), ..print.clone() }), of);
        assert_eq!(name(&Fingerprint { memory: Some("8 channels".into()), ..print.clone() }), of, "known to root only");
        assert_ne!(name(&Fingerprint { hypervisor: Some("kvm".into()), ..print }), of);
        assert!(name(&Fingerprint { cpu: Some("é".repeat(300)), ..Fingerprint::default() }).len() < 80);
        assert!(name(&Fingerprint::default()).starts_with("fingerprint=unknown-0n-"));
    }
}
