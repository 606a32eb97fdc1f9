//! `dimm_info.dat`: the modules behind each directory as sysfs describes them, in the shape that scripts search for `Capacity=`.

use std::fmt::Display;

use memgauge_model::directory::MemoryDir;
use memgauge_model::persistent::{PersistentDevice, PersistentModule};

/// The modules of all directories.
pub(super) fn listed(directories: &[MemoryDir]) -> String {
    let mut text = String::from(
        "# From sysfs. Power budgets, and firmware of modules that are not CXL devices, are known to vendors' tools and ndctl only.\n",
    );
    for dir in directories {
        let file = &dir.file;
        let device = file.device.as_ref().map(|device| format!(" on {device}")).unwrap_or_default();
        text += &format!("# {}: {}{device}\n", file.path, file.filesystem);
        match (&dir.persistent, &file.volatile) {
            (Some(found), _) => text += &region(found),
            (None, Some(why)) => text += &format!("# no modules of persistent memory: {why}\n"),
            (None, None) => text += "# no modules of persistent memory: the kernel names no region behind it\n",
        }
        if let (Some(_), Some(why)) = (&dir.persistent, &file.volatile) {
            text += &format!("# volatile stand-in: {why}\n");
        }
    }
    text
}

fn region(found: &PersistentDevice) -> String {
    let mut text = format!("# {}", found.region);
    let namespace = found.namespace.as_ref().map(|name| match &found.mode {
        Some(mode) => format!("{name} ({mode})"),
        None => name.clone(),
    });
    text += &namespace.map(|name| format!(", {name}")).unwrap_or_default();
    text += &found.interleave_set.as_ref().map(|set| format!(", interleave set {set}")).unwrap_or_default();
    text.push('\n');
    if found.modules.is_empty() {
        text += "# the kernel names no modules behind it\n";
    }
    found.modules.iter().fold(text, |text, module| text + &one(module, found))
}

/// What is not known has no line, as no number is better than a wrong one.
fn one(module: &PersistentModule, region: &PersistentDevice) -> String {
    let mut text = format!("---DimmID={}---\n", module.name);
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            text += &format!("   {name}={value}\n");
        }
    };
    let said = |value: Option<&dyn Display>| value.map(ToString::to_string);
    // What regions take of a module may not be all of it, so that has another name.
    line("Capacity", said(module.capacity.as_ref().map(|bytes| bytes as &dyn Display)));
    line("RegionShare", said(module.bytes.as_ref().map(|bytes| bytes as &dyn Display)));
    line("HealthState", Some(if module.faults.is_empty() { "no flags set".to_owned() } else { module.faults.join(",") }));
    line("ARSStatus", region.scrubbing.map(|scrubbing| if scrubbing { "InProgress" } else { "Idle" }.to_owned()));
    line("FWVersion", module.firmware.clone());
    line("Model", module.model.clone());
    line("SerialNumber", module.serial.clone());
    line("DirtyShutdowns", said(module.dirty_shutdowns.as_ref().map(|count| count as &dyn Display)));
    line("LockState", module.security.clone());
    text
}

#[cfg(test)]
mod tests {
    use memgauge_model::directory::{FileBacking, FileEvidence};
    use memgauge_model::units::Bytes;

    use super::*;

    #[test]
    fn what_sysfs_tells_of_modules_is_listed_and_what_it_does_not_is_left_out() {
        let file = FileEvidence {
            path: "/mnt/pmem0".into(),
            filesystem: "xfs".into(),
            device: Some("/dev/pmem0".into()),
            device_node: Some(0),
            backing: FileBacking::Dax,
            map_sync: true,
            reason: None,
            volatile: None,
        };
        let module = |name: &str| PersistentModule { name: name.into(), bytes: Some(Bytes::gib(128)), ..PersistentModule::default() };
        let sick = PersistentModule {
            faults: vec!["save_fail".into()],
            capacity: Some(Bytes::gib(256)),
            firmware: Some("1.2".into()),
            ..module("mem1")
        };
        let region = PersistentDevice {
            region: "region0".into(),
            modules: vec![module("nmem0"), sick],
            capacities: [("nmem1".into(), Bytes::gib(1))].into(),
            scrubbing: Some(true),
            ..PersistentDevice::default()
        };
        let mut dir = MemoryDir { file, free: None, block: Bytes(4096), persistent: Some(region) };
        let text = listed(std::slice::from_ref(&dir));
        let modules: Vec<&str> = text.split("---DimmID=").skip(1).collect();
        assert_eq!(modules.len(), 2, "{text}");
        assert!(modules[0].starts_with("nmem0---\n   RegionShare=128 GiB\n   HealthState=no flags set\n"), "{text}");
        assert!(!modules[0].contains("Capacity=") && !modules[0].contains("FWVersion"), "{text}");
        for line in ["   Capacity=256 GiB\n", "HealthState=save_fail\n", "ARSStatus=InProgress\n", "FWVersion=1.2\n"] {
            assert!(modules[1].contains(line), "{line}: {text}");
        }
        (dir.persistent, dir.file.volatile) = (None, Some("tmpfs is DRAM".into()));
        assert!(listed(&[dir]).ends_with("# no modules of persistent memory: tmpfs is DRAM\n"));
    }
}
