//! Throttling by heat, as the kernel counts it (`thermal_throttle`, x86).

use std::collections::BTreeMap;
use std::path::Path;

use crate::tree::{CPU_DIR, Tree};

/// How often heat has throttled cores and packages since the machine started; `None` where the kernel does not count it.
pub fn thermal_throttles(root: &Path) -> Option<u64> {
    let tree = Tree::new(root);
    let mut cores: Option<u64> = None;
    let mut packages: BTreeMap<Option<u32>, u64> = BTreeMap::new();
    for cpu in tree.numbered(CPU_DIR, "cpu").iter() {
        let folder = format!("{CPU_DIR}/cpu{cpu}");
        let count = |what: &str| tree.parsed::<u64>(&format!("{folder}/thermal_throttle/{what}_throttle_count"));
        if let Some(count) = count("core") {
            cores = Some(cores.unwrap_or(0) + count);
        }
        // Every CPU shows the count of its package.
        if let Some(count) = count("package") {
            let package = packages.entry(tree.id(&format!("{folder}/topology/physical_package_id"))).or_default();
            *package = count.max(*package);
        }
    }
    let of_packages = packages.into_values().reduce(|sum, count| sum + count);
    cores.into_iter().chain(of_packages).reduce(|sum, count| sum + count)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn cores_count_for_themselves_and_packages_once() {
        let folder = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = folder.path().join(CPU_DIR).join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        };
        assert_eq!(thermal_throttles(folder.path()), None);
        for (cpu, package, core) in [(0, 0, 3), (1, 0, 4), (2, 1, 0)] {
            write(&format!("cpu{cpu}/topology/physical_package_id"), &package.to_string());
            write(&format!("cpu{cpu}/thermal_throttle/core_throttle_count"), &core.to_string());
            write(&format!("cpu{cpu}/thermal_throttle/package_throttle_count"), &(10 * (package + 1)).to_string());
        }
        assert_eq!(thermal_throttles(folder.path()), Some(3 + 4 + 10 + 20));
    }
}
