use super::*;

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn identifiers_of_processors() {
    let intel = map(&[("family", "6"), ("model", "85"), ("stepping", "7")]);
    assert_eq!(model("Intel64 Family 6 Model 85 Stepping 7"), intel);
    assert_eq!(model("AMD64 Family 25 Model 33 Stepping 2"), map(&[("family", "25"), ("model", "33"), ("stepping", "2")]));
    let arm = map(&[("architecture", "8"), ("part", "0xd4b")]);
    assert_eq!(model("ARMv8 (64-bit) Family 8 Model D4B Revision   0"), arm);
    assert_eq!(model("Family Model x Stepping"), map(&[]));
}

#[test]
fn the_half_with_the_revision() {
    assert_eq!(revision(&[0, 0, 0, 0, 7, 0x37, 0, 5]), Some(0x0500_3707), "Intel");
    assert_eq!(revision(&[0x1d, 0x01, 0x20, 0x0a, 0, 0, 0, 0]), Some(0x0a20_011d), "AMD");
    assert_eq!(revision(&[0; 8]), None);
    assert_eq!(revision(&[1, 0, 0, 0, 2, 0, 0, 0]), None, "unclear which");
    assert_eq!(revision(&[1, 0, 0]), None);
}

#[test]
fn versions() {
    let windows = || "Windows 10.0.19045".to_owned();
    assert_eq!(named(windows(), 19_045, Some(3803), Some("Windows 10 Pro".into())), "Windows 10.0.19045.3803 (Windows 10 Pro)");
    assert_eq!(named(windows(), 19_045, None, None), "Windows 10.0.19045");
    let eleven = named("Windows 10.0.22631".into(), 22_631, Some(1), Some("Windows 10 Pro".into()));
    assert_eq!(eleven, "Windows 10.0.22631.1", "its registry still says Windows 10");
    let server = named("Windows 10.0.26100".into(), 26_100, None, Some("Windows Server 2025 Standard".into()));
    assert_eq!(server, "Windows 10.0.26100 (Windows Server 2025 Standard)");
}

#[test]
fn names_of_hypervisors() {
    let seen = |signatures: &[&str], owner| Hypervisor { signatures: signatures.iter().map(|s| (*s).to_owned()).collect(), owner };
    let name = |found: Option<Hypervisor>, firmware: &[(&str, &str)]| hypervisor(found.as_ref(), &map(firmware));
    let dell = [("sys_vendor", "Dell Inc."), ("product_name", "PowerEdge R740")];
    assert_eq!(name(None, &dell), None);
    assert_eq!(name(Some(seen(&["Microsoft Hv"], true)), &dell), None, "it owns the machine");
    let azure = [("sys_vendor", "Microsoft Corporation"), ("product_name", "Virtual Machine")];
    assert_eq!(name(Some(seen(&["Microsoft Hv"], false)), &azure).unwrap(), "Microsoft Hyper-V");
    assert_eq!(name(None, &azure).unwrap(), "Microsoft Hyper-V", "an Arm guest");
    let qemu = [("sys_vendor", "QEMU"), ("product_name", "Standard PC (Q35 + ICH9, 2009)")];
    assert_eq!(name(Some(seen(&["Microsoft Hv", "KVMKVMKVM"], false)), &qemu).unwrap(), "QEMU/KVM");
    assert_eq!(name(Some(seen(&["TCGTCGTCGTCG"], false)), &qemu).unwrap(), "QEMU");
    assert_eq!(name(None, &qemu).unwrap(), "QEMU", "hidden from the guest");
    let ec2 = [("sys_vendor", "Amazon EC2"), ("product_name", "c5.metal")];
    assert_eq!(name(None, &ec2), None, "a physical machine");
    assert_eq!(name(Some(seen(&["Microsoft Hv", "KVMKVMKVM"], false)), &ec2).unwrap(), "Amazon EC2 (Nitro)");
    assert_eq!(name(Some(seen(&["SomeThingNew"], false)), &dell).unwrap(), "unknown hypervisor (SomeThingNew)");
    assert_eq!(name(Some(seen(&[], false)), &dell).unwrap(), "unknown hypervisor");
}

#[test]
fn this_machine() {
    let identity = read();
    assert_eq!(identity.arch, std::env::consts::ARCH);
    let kernel = identity.kernel.unwrap();
    match wine_version() {
        Some(wine) => assert!(kernel.starts_with(&format!("Wine {wine} (Windows ")), "{kernel}"),
        None => assert!(kernel.starts_with("Windows 10.0."), "{kernel}"),
    }
    assert!(identity.model_name.is_some_and(|name| !name.contains("  ")));
    assert!(identity.vendor.is_some());
    assert!(identity.model.keys().all(|key| ["family", "model", "stepping", "microcode", "architecture", "part"].contains(&key.as_str())));
    assert!(identity.model.contains_key("model") || identity.model.contains_key("part"), "{:?}", identity.model);
}
