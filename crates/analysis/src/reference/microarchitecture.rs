//! Which CPU generation a machine has: the names that published values are filed under.

use memgauge_model::topology::Identity;

/// The generation of a machine's CPUs. `None` if the identity is missing, not in the list, or of several kinds of cores.
///
/// Families and models are those of Intel's Software Developer's Manual, volume 4, chapter 2; AMD's processor programming references;
/// Arm's technical reference manuals (MIDR_EL1).
pub fn microarchitecture(identity: &Identity) -> Option<&'static str> {
    let field = |name: &str| identity.model.get(name).map(String::as_str);
    let number = |name: &str| field(name)?.parse::<u32>().ok();
    let name = identity.model_name.as_deref().unwrap_or_default();
    match identity.vendor.as_deref() {
        Some("GenuineIntel") if number("family")? == 6 => intel(number("model")?, number("stepping"), name),
        Some("AuthenticAMD") => amd(number("family")?, number("model")?, name),
        _ if field("implementer").is_some() => arm(field("implementer")?, field("part")?),
        _ if field("marchid").is_some() => riscv(field("mvendorid")?, field("marchid")?),
        // /proc/cpuinfo has only a name: "POWER9 (architected), altivec supported".
        _ => ["POWER7", "POWER8", "POWER9"].into_iter().find(|power| name.starts_with(power)),
    }
}

fn intel(model: u32, stepping: Option<u32>, name: &str) -> Option<&'static str> {
    Some(match model {
        0x2c => "Westmere-EP",
        0x2d => "Sandy Bridge-EP",
        0x3e => "Ivy Bridge-EP",
        0x3f => "Haswell-EP",
        0x4f | 0x56 => "Broadwell-EP",
        // One model, three generations.
        0x55 => match stepping? {
            0..=4 if name.contains("Xeon(R) W-") => "Skylake-W",
            0..=4 => "Skylake-SP",
            5..=7 => "Cascade Lake-SP",
            _ => "Cooper Lake",
        },
        0x57 | 0x85 => "Knights Landing",
        0x6a | 0x6c => "Ice Lake-SP",
        0x8e | 0x9e => "Coffee/Kaby Lake",
        0x8f if name.contains("Max") => "Sapphire Rapids HBM",
        0x8f => "Sapphire Rapids",
        0x97 | 0x9a => "Alder Lake",
        0xa7 => "Rocket Lake",
        0xad | 0xae => "Granite Rapids",
        0xaf => "Sierra Forest",
        0xb7 | 0xba | 0xbf => "Raptor Lake",
        0xcf => "Emerald Rapids",
        _ => return None,
    })
}

fn amd(family: u32, model: u32, name: &str) -> Option<&'static str> {
    // Milan with stacked cache: EPYC 7373X, 7473X, 7573X, 7773X.
    let stacked = || name.split_whitespace().any(|word| word.starts_with('7') && word.ends_with("3X"));
    Some(match (family, model) {
        (0x17, 0x00..=0x2f) => "Zen",
        (0x17, 0x30..) => "Zen 2",
        (0x19, 0x00..=0x0f) if stacked() => "Zen 3 (Milan-X)",
        (0x19, 0x00..=0x0f | 0x20..=0x5f) => "Zen 3",
        (0x19, 0x10..=0x1f | 0x60..=0x7f) => "Zen 4",
        (0x19, 0xa0..=0xaf) => "Zen 4c",
        (0x1a, 0x00..=0x0f) => "Zen 5",
        (0x1a, 0x40..=0x4f) => "Zen 5 (client die)",
        _ => return None,
    })
}

fn arm(implementer: &str, part: &str) -> Option<&'static str> {
    // Its two kinds of cores, and those of Pro, Max and Ultra.
    if implementer == "0x61" && part.split(',').all(|p| ["0x022", "0x023", "0x024", "0x025", "0x028", "0x029"].contains(&p)) {
        return Some("Apple M1");
    }
    Some(match (implementer, part) {
        ("0x41", "0xd08") => "Cortex-A72",
        ("0x41", "0xd0c") => "Neoverse N1",
        ("0x41", "0xd40") => "Neoverse V1",
        ("0x41", "0xd49") => "Neoverse N2",
        ("0x41", "0xd4f") => "Neoverse V2",
        ("0x41", "0xd83" | "0xd84") => "Neoverse V3",
        ("0x41", "0xd8e") => "Neoverse N3",
        ("0x43", "0x0af") => "ThunderX2",
        ("0x46", "0x001") => "A64FX",
        ("0x48", "0xd01") => "TaiShan v110",
        ("0x70", "0x663") => "FTC663",
        _ => return None,
    })
}

fn riscv(vendor: &str, design: &str) -> Option<&'static str> {
    ((vendor, design) == ("0x710", "0x8000000058000001")).then_some("RISC-V X60")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(vendor: &str, model: &[(&str, &str)], name: &str) -> Identity {
        Identity {
            vendor: Some(vendor.into()),
            model: model.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            model_name: Some(name.into()),
            ..Identity::default()
        }
    }

    #[test]
    fn generations_are_told_by_their_numbers() {
        let x86 = |vendor, family, model, stepping, name| {
            microarchitecture(&identity(vendor, &[("family", family), ("model", model), ("stepping", stepping)], name))
        };
        assert_eq!(x86("GenuineIntel", "6", "85", "4", ""), Some("Skylake-SP"));
        assert_eq!(x86("GenuineIntel", "6", "85", "7", ""), Some("Cascade Lake-SP"));
        assert_eq!(x86("GenuineIntel", "6", "143", "8", "Intel(R) Xeon(R) CPU Max 9480"), Some("Sapphire Rapids HBM"));
        assert_eq!(x86("AuthenticAMD", "26", "2", "1", "AMD EPYC"), Some("Zen 5"));
        assert_eq!(x86("AuthenticAMD", "25", "1", "2", "AMD EPYC 7773X 64-Core Processor"), Some("Zen 3 (Milan-X)"));
        assert_eq!(x86("AuthenticAMD", "99", "1", "2", ""), None);
        let arm = |part| microarchitecture(&identity("ARM", &[("implementer", "0x41"), ("part", part)], ""));
        assert_eq!((arm("0xd4f"), arm("0xd87,0xd85")), (Some("Neoverse V2"), None));
        let m1 = |parts| microarchitecture(&identity("Apple", &[("implementer", "0x61"), ("part", parts)], ""));
        assert_eq!((m1("0x022,0x023"), m1("0x024,0x025"), m1("0x032,0x033")), (Some("Apple M1"), Some("Apple M1"), None));
        let power = Identity { model_name: Some("POWER9 (architected), altivec supported".into()), ..Identity::default() };
        assert_eq!(microarchitecture(&power), Some("POWER9"));
        let x60 = identity("0x710", &[("mvendorid", "0x710"), ("marchid", "0x8000000058000001")], "spacemit,x60");
        assert_eq!(microarchitecture(&x60), Some("RISC-V X60"));
        assert_eq!(x86("GenuineIntel", "6", "183", "1", "13th Gen Intel(R) Core(TM) i7-13700KF"), Some("Raptor Lake"));
        assert_eq!(x86("GenuineIntel", "6", "158", "13", "Intel(R) Core(TM) i9-9900K CPU @ 3.60GHz"), Some("Coffee/Kaby Lake"));
        assert_eq!(x86("GenuineIntel", "6", "85", "4", "Intel(R) Xeon(R) W-2150B CPU @ 3.00GHz"), Some("Skylake-W"));
    }

    /// Names in the table that no machine has: sources that do not tell one generation, and CPUs that memgauge is not built for.
    const NOT_TOLD: [&str; 7] =
        ["", "Intel Xeon Scalable (unknown)", "LA464", "LA664", "SPARC T4", "Sapphire Rapids / Emerald Rapids", "Skylake/Cascade Lake-SP"];

    #[test]
    fn every_generation_of_the_table_is_that_of_a_machine() {
        // A name that this file's text does not have cannot be the answer for any machine.
        let told = include_str!("microarchitecture.rs").split_once("#[cfg(test)]").unwrap().0;
        let names: std::collections::BTreeSet<&str> = crate::reference::published().map(|row| row.microarch).collect();
        let untold: Vec<_> = names.into_iter().filter(|name| !told.contains(&format!("{name:?}"))).collect();
        assert_eq!(untold, NOT_TOLD);
    }
}
