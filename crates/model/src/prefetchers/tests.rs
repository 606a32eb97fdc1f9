use super::*;

fn intel(model: u32) -> Processor<'static> {
    Processor { arch: "x86_64", vendor: "GenuineIntel", family: Some(6), model: Some(model), ..Processor::default() }
}

fn amd(family: u32, announced: bool) -> Processor<'static> {
    Processor { arch: "x86_64", vendor: "AuthenticAMD", family: Some(family), model: Some(1), announced, ..Processor::default() }
}

#[test]
fn masks_by_model() {
    for (model, mask) in [
        (0x1A, 0xF),  // Nehalem
        (0x4F, 0xF),  // Broadwell-EP; the kernel's resctrl writes 0xf there
        (0x55, 0xF),  // Skylake-SP, Cascade Lake
        (0x6A, 0xF),  // Ice Lake-SP
        (0x8F, 0x3F), // Sapphire Rapids
        (0xCF, 0x3F), // Emerald Rapids
        (0xAD, 0xFF), // Granite Rapids
        (0x97, 0x2F), // Alder Lake, performance cores
        (0xAA, 0x6F), // Meteor Lake, performance cores
        (0x5F, 0x5),  // Goldmont; the kernel's resctrl writes 0x5
        (0x57, 0x3),  // Knights Landing
    ] {
        let control = control(&intel(model)).unwrap();
        assert_eq!((control.register, control.mask()), (0x1A4, mask), "{model:#x}");
        // Bit 11 is an errata work-around, and bits above are other features.
        assert_eq!(control.mask() >> 8, 0, "{model:#x}");
    }
    let zen = control(&amd(0x19, true)).unwrap();
    assert_eq!((zen.register, zen.mask()), (0xC000_0108, 0x2F));
    assert_eq!(control(&amd(0x1A, true)).unwrap(), zen);
}

#[test]
fn what_is_not_documented_is_left_alone() {
    let refused = |cpu: Processor<'_>, why: &str| {
        let error = control(&cpu).unwrap_err();
        assert!(error.contains(why), "{error}");
    };
    refused(amd(0x19, false), "EAX bit 13 is clear)");
    // DC_CFG of Zen 1 and 2 is known by hearsay only.
    refused(amd(0x17, true), "AMD family 0x17");
    refused(Processor { kind: Some("efficiency"), ..intel(0x97) }, "efficiency cores");
    assert!(control(&Processor { kind: Some("performance"), ..intel(0x97) }).is_ok());
    refused(intel(0xAF), "efficiency cores");
    // Core 2 had them elsewhere.
    refused(intel(0x0F), "family 0x6 model 0xf ");
    refused(Processor { family: Some(15), ..intel(0x1A) }, "family 0xf model 0x1a ");
    refused(Processor { model: None, ..intel(0) }, "family 0x6 model 0x0 ");
    let arm = Processor { arch: "aarch64", vendor: "ARM", ..Processor::default() };
    refused(arm, "on aarch64");
    let hygon = Processor { vendor: "HygonGenuine", ..amd(0x18, true) };
    refused(hygon, "CPUs of HygonGenuine");
    let this = Processor { virtual_machine: true, ..amd(0x1A, false) };
    refused(this, "hypervisors rarely pass it on");
}

#[test]
fn the_state_is_the_registers() {
    let control = control(&intel(0x55)).unwrap();
    let read = |values: &[Result<u64, &str>]| {
        let of = |value: &Result<u64, &str>| value.map(|v| (control, v)).map_err(str::to_owned);
        state(PrefetchRequest::Off, &(0..).zip(values.iter().map(of)).collect())
    };
    // Bit 11 has nothing to do with prefetchers.
    let off = read(&[Ok(0x80F), Ok(0xF)]);
    assert_eq!(off.status, PrefetchStatus::Off);
    assert_eq!(off.groups.len(), 2);
    assert_eq!(off.groups[0].off, ["l2-streamer", "l2-adjacent-line", "l1-streamer", "l1-ip-stride"]);
    assert_eq!(off.register.as_deref(), Some("0x1a4 MISC_FEATURE_CONTROL (Intel SDM volume 4)"));
    assert_eq!(read(&[Ok(0), Ok(0x800)]).status, PrefetchStatus::On);
    let partly = read(&[Ok(0x1), Ok(0x1)]);
    assert_eq!((partly.status, partly.groups.len()), (PrefetchStatus::Partly, 1));
    assert_eq!((partly.groups[0].off.len(), partly.groups[0].on.len()), (1, 3));
    assert_eq!(read(&[Ok(0), Ok(0xF)]).status, PrefetchStatus::Partly);
    let none = read(&[Err("gone"), Err("gone")]);
    assert_eq!((none.status, none.reason.as_deref(), none.groups.len()), (PrefetchStatus::Unknown, Some("gone"), 1));
    // Part of the CPUs could be read: what is claimed is claimed of these.
    let part = read(&[Ok(0xF), Err("gone")]);
    assert_eq!((part.groups[0].cpus.to_string(), part.groups[1].reason.as_deref()), ("0".into(), Some("gone")));
}
