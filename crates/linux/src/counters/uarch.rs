//! The core designs that have a table of events.

use memgauge_core::topology::Identity;

/// A core design that has a table of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Microarchitecture {
    /// Intel Skylake-SP.
    SkylakeX,
    /// Intel Cascade Lake and Cooper Lake.
    CascadeLakeX,
    /// Intel Ice Lake-SP and -D.
    IceLakeX,
    /// Intel Sapphire Rapids.
    SapphireRapids,
    /// Intel Emerald Rapids.
    EmeraldRapids,
    /// Intel Granite Rapids.
    GraniteRapids,
    /// AMD Zen 2.
    Zen2,
    /// AMD Zen 3.
    Zen3,
    /// AMD Zen 4.
    Zen4,
    /// AMD Zen 5.
    Zen5,
    /// Arm Neoverse N1.
    NeoverseN1,
    /// Arm Neoverse V1.
    NeoverseV1,
    /// Arm Neoverse N2.
    NeoverseN2,
    /// Arm Neoverse V2.
    NeoverseV2,
}

impl Microarchitecture {
    /// Every one.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 14] = [
        Self::SkylakeX,
        Self::CascadeLakeX,
        Self::IceLakeX,
        Self::SapphireRapids,
        Self::EmeraldRapids,
        Self::GraniteRapids,
        Self::Zen2,
        Self::Zen3,
        Self::Zen4,
        Self::Zen5,
        Self::NeoverseN1,
        Self::NeoverseV1,
        Self::NeoverseN2,
        Self::NeoverseV2,
    ];

    /// The design of this machine's CPUs; `None` when it has no table, or when the CPUs differ.
    pub(crate) fn identify(identity: &Identity) -> Option<Self> {
        let field = |name: &str| identity.model.get(name).map(String::as_str);
        let number = |name: &str| field(name)?.parse::<u32>().ok();
        match identity.vendor.as_deref()? {
            "GenuineIntel" => Self::intel(number("family")?, number("model")?, number("stepping")),
            "AuthenticAMD" => Self::amd(number("family")?, number("model")?),
            "ARM" => Self::arm(field("part")?),
            _ => None,
        }
    }

    /// Models of family 6, from Linux `arch/x86/include/asm/intel-family.h`.
    fn intel(family: u32, model: u32, stepping: Option<u32>) -> Option<Self> {
        if family != 6 {
            return None;
        }
        Some(match model {
            // One model, three products. Cascade Lake starts at stepping 5.
            0x55 if stepping.is_some_and(|s| s >= 5) => Self::CascadeLakeX,
            0x55 => Self::SkylakeX,
            0x6a | 0x6c => Self::IceLakeX,
            0x8f => Self::SapphireRapids,
            0xcf => Self::EmeraldRapids,
            0xad | 0xae => Self::GraniteRapids,
            _ => return None,
        })
    }

    /// Families and models, from Linux `arch/x86/kernel/cpu/amd.c` (`bsp_init_amd`).
    fn amd(family: u32, model: u32) -> Option<Self> {
        Some(match (family, model) {
            (0x17, 0x30..=0x4f | 0x60..=0x7f | 0x90..=0x91 | 0xa0..=0xaf) => Self::Zen2,
            (0x19, 0x00..=0x0f | 0x20..=0x5f) => Self::Zen3,
            (0x19, 0x10..=0x1f | 0x60..=0xaf) => Self::Zen4,
            (0x1a, 0x00..=0x2f | 0x40..=0x4f | 0x60..=0x7f) => Self::Zen5,
            _ => return None,
        })
    }

    /// Part numbers, from Linux `arch/arm64/include/asm/cputype.h`.
    fn arm(part: &str) -> Option<Self> {
        Some(match part {
            "0xd0c" => Self::NeoverseN1,
            "0xd40" => Self::NeoverseV1,
            "0xd49" => Self::NeoverseN2,
            "0xd4f" => Self::NeoverseV2,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(vendor: &str, fields: &[(&str, &str)]) -> Identity {
        Identity {
            vendor: Some(vendor.into()),
            model: fields.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            ..Identity::default()
        }
    }

    #[test]
    fn designs_by_family_model_and_stepping() {
        use Microarchitecture as M;
        let intel = |model, stepping| {
            Microarchitecture::identify(&identity("GenuineIntel", &[("family", "6"), ("model", model), ("stepping", stepping)]))
        };
        assert_eq!(intel("85", "4"), Some(M::SkylakeX));
        assert_eq!(intel("85", "7"), Some(M::CascadeLakeX));
        assert_eq!(intel("106", "6"), Some(M::IceLakeX));
        assert_eq!(intel("143", "8"), Some(M::SapphireRapids));
        assert_eq!(intel("207", "2"), Some(M::EmeraldRapids));
        assert_eq!(intel("173", "1"), Some(M::GraniteRapids));
        assert_eq!(intel("175", "3"), None, "Sierra Forest has other events");
        let amd = |family, model| Microarchitecture::identify(&identity("AuthenticAMD", &[("family", family), ("model", model)]));
        assert_eq!(amd("23", "49"), Some(M::Zen2), "Rome");
        assert_eq!(amd("23", "1"), None, "Naples");
        assert_eq!(amd("25", "1"), Some(M::Zen3), "Milan");
        assert_eq!(amd("25", "17"), Some(M::Zen4), "Genoa");
        assert_eq!(amd("25", "160"), Some(M::Zen4), "Bergamo");
        assert_eq!(amd("26", "2"), Some(M::Zen5), "Turin");
        let arm = |part| Microarchitecture::identify(&identity("ARM", &[("part", part)]));
        assert_eq!(arm("0xd0c"), Some(M::NeoverseN1));
        assert_eq!(arm("0xd4f"), Some(M::NeoverseV2));
        assert_eq!(arm("0xd05,0xd0b"), None, "cores that differ");
        assert_eq!(Microarchitecture::identify(&Identity::default()), None);
    }
}
