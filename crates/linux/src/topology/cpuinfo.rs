//! `/proc/cpuinfo`, by processor.

use std::collections::BTreeMap;

use crate::substitute::Substitutes;
use crate::tree::Tree;

/// In an x86 `cpuinfo`, the block of the first processor has less than 8 KiB. The other blocks repeat it, and on some kernels reading them
/// interrupts every CPU to get its frequency.
const FIRST_BLOCK: u64 = 16 << 10;
/// On other architectures the file shows the design of each CPU. 1,024 CPUs take less than 1 MiB.
const WHOLE_FILE: u64 = 16 << 20;

/// The beginning of a `/proc/cpuinfo` without the block that it may end within: a value that is cut is another value.
fn whole_blocks(head: &str) -> &str {
    // A shorter text is all that there is.
    let cut = head.len() as u64 > FIRST_BLOCK / 2;
    head.rsplit_once("\n\n").filter(|_| cut).map_or(head, |(whole, _)| whole)
}

/// `/proc/cpuinfo`, by processor.
#[derive(Debug, Default)]
pub(crate) struct CpuInfo {
    pub(super) blocks: BTreeMap<u32, BTreeMap<String, String>>,
    /// Lines outside the processors' blocks.
    common: BTreeMap<String, String>,
    /// The numbers of processors are those of a container's CPUs, counted from 0 (lxcfs).
    renumbered: bool,
}

impl CpuInfo {
    pub(crate) fn read(tree: Tree<'_>) -> Self {
        let head = tree.text_up_to("proc/cpuinfo", FIRST_BLOCK).unwrap_or_default();
        let x86 = head.contains("vendor_id") && head.contains("flags");
        let info = if x86 {
            Self::parse(whole_blocks(&head))
        } else {
            Self::parse(&tree.text_up_to("proc/cpuinfo", WHOLE_FILE).unwrap_or_default())
        };
        Self { renumbered: Substitutes::read(tree).cover("proc/cpuinfo"), ..info }
    }

    fn parse(text: &str) -> Self {
        let mut info = Self::default();
        let mut processor = None;
        for line in text.lines() {
            let Some((key, value)) = line.split_once(':') else {
                if line.trim().is_empty() {
                    processor = None;
                }
                continue;
            };
            let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
            if key == "processor"
                && let Ok(id) = value.parse()
            {
                processor = Some(id);
                info.blocks.entry(id).or_default();
                continue;
            }
            let block = match processor.and_then(|id| info.blocks.get_mut(&id)) {
                Some(block) => block,
                None => &mut info.common,
            };
            block.entry(key).or_insert(value);
        }
        info
    }

    /// The value of a field for one processor. If processors are numbered anew, it is only a value that all of them have.
    pub(crate) fn field(&self, cpu: u32, key: &str) -> Option<&str> {
        if self.renumbered {
            let first = self.first(key)?;
            return self.blocks.values().all(|block| block.get(key).is_some_and(|value| value == first)).then_some(first);
        }
        self.blocks.get(&cpu)?.get(key).map(String::as_str).filter(|v| !v.is_empty())
    }

    /// The value of the lowest processor that has the field, or of the whole file.
    pub(crate) fn first(&self, key: &str) -> Option<&str> {
        self.blocks.values().chain([&self.common]).find_map(|block| block.get(key)).map(String::as_str).filter(|v| !v.is_empty())
    }

    /// Distinct values over all processors, in order of appearance, joined by commas.
    pub(super) fn distinct(&self, key: &str) -> Option<String> {
        let values = self.blocks.values().filter_map(|block| block.get(key)).map(String::as_str);
        let values = distinct(values.filter(|value| !value.is_empty()));
        (!values.is_empty()).then(|| values.join(","))
    }

    /// Whether the first processor has the flag; `None` where the file states no flags of an x86 CPU.
    pub(super) fn flag(&self, flag: &str) -> Option<bool> {
        self.first("vendor_id").and(self.first("flags")).map(|_| self.has_flag(flag))
    }

    fn has_flag(&self, flag: &str) -> bool {
        self.first("flags").is_some_and(|flags| flags.split_whitespace().any(|f| f == flag))
    }

    pub(super) fn arch(&self) -> Option<&'static str> {
        if self.first("CPU implementer").is_some() {
            let v8 = self.first("CPU architecture").is_some_and(|a| a == "8" || a == "AArch64");
            return Some(if v8 { "aarch64" } else { "arm" });
        }
        if let Some(isa) = self.first("isa") {
            return Some(if isa.starts_with("rv32") { "riscv32" } else { "riscv64" });
        }
        if self.first("CPU Family").is_some_and(|family| family.starts_with("Loongson")) {
            return Some("loongarch64");
        }
        match self.first("vendor_id") {
            Some("IBM/S390") => Some("s390x"),
            Some(_) if self.has_flag("lm") => Some("x86_64"),
            Some(_) if self.first("flags").is_some() => Some("i686"),
            _ => self.first("cpu").filter(|cpu| cpu.starts_with("POWER")).map(|_| "ppc64le"),
        }
    }
}

/// Each of the values once, in order of appearance.
pub(super) fn distinct<'a>(values: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut once = Vec::new();
    for value in values {
        if !once.contains(&value) {
            once.push(value);
        }
    }
    once
}
