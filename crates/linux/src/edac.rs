//! Memory errors as the memory controllers have counted them (EDAC): of each controller, and of each DIMM if the driver tells.

use std::path::Path;

use memgauge_model::result::DimmErrors;

use crate::tree::Tree;

const CONTROLLERS: &str = "sys/devices/system/edac/mc";
/// Drivers that know DIMMs name them so; those that know only ranks have the same files there.
const PARTS: [&str; 2] = ["dimm", "rank"];

/// Corrected and uncorrected errors of all memory controllers since the machine started; `None` when no EDAC driver is loaded.
pub fn memory_errors(root: &Path) -> Option<(u64, u64)> {
    let tree = Tree::new(root);
    let count = |mc: u32, file: &str| tree.parsed::<u64>(&format!("{CONTROLLERS}/mc{mc}/{file}"));
    let controllers = tree.numbered(CONTROLLERS, "mc");
    let counts = controllers.iter().filter_map(|mc| {
        let (corrected, uncorrected) = (count(mc, "ce_count"), count(mc, "ue_count"));
        corrected.or(uncorrected).map(|_| (corrected.unwrap_or(0), uncorrected.unwrap_or(0)))
    });
    counts.reduce(|sum, count| (sum.0 + count.0, sum.1 + count.1))
}

/// Errors of each DIMM since the machine started; empty if the driver does not distinguish DIMMs.
pub fn dimm_errors(root: &Path) -> Vec<DimmErrors> {
    let tree = Tree::new(root);
    let mut all = Vec::new();
    for mc in tree.numbered(CONTROLLERS, "mc").iter() {
        let controller = format!("{CONTROLLERS}/mc{mc}");
        for part in PARTS {
            for number in tree.numbered(&controller, part).iter() {
                let file = |name: &str| format!("{controller}/{part}{number}/{name}");
                let (corrected, uncorrected) = (tree.parsed(&file("dimm_ce_count")), tree.parsed(&file("dimm_ue_count")));
                if corrected.or(uncorrected).is_none() {
                    continue;
                }
                let told = |name: &str| tree.text(&file(name)).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
                let place = || told("dimm_location").map_or_else(String::new, |place| format!(" ({place})"));
                let dimm = told("dimm_label").unwrap_or_else(|| format!("mc{mc} {part}{number}{}", place()));
                all.push(DimmErrors { dimm, corrected: corrected.unwrap_or(0), uncorrected: uncorrected.unwrap_or(0) });
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_tree_with_memory_controllers_and_dimms() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        let write = |file: &str, text: &str| {
            let path = root.join(CONTROLLERS).join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        };
        for (mc, ce, ue) in [("mc0", "3", "1"), ("mc1", "5", "0")] {
            write(&format!("{mc}/ce_count"), ce);
            write(&format!("{mc}/ue_count"), ue);
        }
        write("power/control", "auto");
        assert_eq!((memory_errors(&root), dimm_errors(&root)), (Some((8, 1)), vec![]), "no driver that knows DIMMs");
        for (dimm, label, ce, ue) in [("mc0/dimm0", "CPU_SrcID#0_MC#0_Chan#0_DIMM#0", "3", "1"), ("mc1/dimm2", "", "4", "0")] {
            write(&format!("{dimm}/dimm_label"), label);
            write(&format!("{dimm}/dimm_location"), "channel 1 slot 0");
            write(&format!("{dimm}/dimm_ce_count"), ce);
            write(&format!("{dimm}/dimm_ue_count"), ue);
        }
        write("mc1/rank3/dimm_label", "B2");
        write("mc1/rank3/dimm_ce_count", "1");
        write("mc1/dimm7/dimm_label", "without counts");
        let dimm = |dimm: &str, corrected, uncorrected| DimmErrors { dimm: dimm.into(), corrected, uncorrected };
        let expected = [dimm("CPU_SrcID#0_MC#0_Chan#0_DIMM#0", 3, 1), dimm("mc1 dimm2 (channel 1 slot 0)", 4, 0), dimm("B2", 1, 0)];
        let found = dimm_errors(&root);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(found, expected);
        assert!(memory_errors(&root).is_none() && dimm_errors(&root).is_empty());
    }
}
