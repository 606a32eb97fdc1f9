//! Adds up the mappings of a process: smaps says how much of each is present and in which pages, numa_maps on which nodes. Both list mappings by
//! ascending address and are read side by side, so that memory does not grow with them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, BufRead};

use memgauge_model::result::{MappingKind, MappingMemory, MemorySums, PageBytes, PageKind};
use memgauge_model::units::Bytes;

use crate::policy::parse_policy;

/// Mappings that are kept: the largest.
const KEPT: usize = 10;
/// Unnamed mappings are counted until there are so many; then only the largest stay.
const COUNTED: usize = 4096;
/// Files that are counted one by one. Programs map some thousands at most.
const FILES: usize = 65_536;

/// Sizes of pages, and where pages are if nothing says so.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pages {
    /// Of the kernel.
    pub(super) base: u64,
    /// Transparent huge ones.
    pub(super) transparent: u64,
    /// The node of all pages, if the machine has only one and nothing shows it.
    pub(super) only_node: Option<u32>,
}

/// Reads the mappings of a process.
pub(super) struct MapsReader<S, N> {
    smaps: S,
    nodes: Option<NumaMaps<N>>,
    pages: Pages,
    sums: MemorySums,
    by_page: BTreeMap<(PageKind, u64), u64>,
    by_policy: BTreeMap<String, u64>,
    unnamed: Vec<MappingMemory>,
    /// The end of the last unnamed mapping.
    unnamed_to: u64,
    named: BTreeMap<(MappingKind, String), MappingMemory>,
}

/// An entry of smaps.
#[derive(Debug, Default)]
struct SmapsEntry {
    start: u64,
    end: u64,
    kind: Option<MappingKind>,
    name: Option<String>,
    present: u64,
    touched: Option<u64>,
    proportional: u64,
    shared: u64,
    swapped: u64,
    transparent: u64,
    pool: u64,
    page: u64,
}

impl<S: BufRead, N: BufRead> MapsReader<S, N> {
    pub(super) fn new(smaps: S, numa_maps: Option<N>, pages: Pages) -> Self {
        Self {
            smaps,
            nodes: numa_maps.map(NumaMaps::new),
            pages,
            sums: MemorySums::default(),
            by_page: BTreeMap::new(),
            by_policy: BTreeMap::new(),
            unnamed: Vec::new(),
            unnamed_to: 0,
            named: BTreeMap::new(),
        }
    }

    /// Reads all of them.
    ///
    /// # Errors
    /// Those of reading.
    pub(super) fn read(&mut self) -> io::Result<()> {
        let mut line = Vec::new();
        let mut entry: Option<SmapsEntry> = None;
        loop {
            line.clear();
            let read = self.smaps.read_until(b'\n', &mut line)?;
            let text = String::from_utf8_lossy(&line);
            match head(&text) {
                Some(next) => entry.replace(next).map_or(Ok(()), |done| self.add(done))?,
                None if read == 0 => return entry.map_or(Ok(()), |done| self.add(done)),
                None => entry.iter_mut().for_each(|entry| entry.take(&text)),
            }
        }
    }

    /// All that was read: sums, the largest mappings, and bytes by policy.
    pub(super) fn into_sums(mut self) -> (MemorySums, Vec<MappingMemory>, BTreeMap<String, u64>) {
        let bytes = |((kind, page), bytes)| PageBytes { kind, page: Bytes(page), bytes: Bytes(bytes) };
        self.sums.by_page = self.by_page.into_iter().map(bytes).collect();
        let mut mappings: Vec<MappingMemory> = self.unnamed.into_iter().chain(self.named.into_values()).collect();
        largest(&mut mappings);
        (self.sums, mappings, self.by_policy)
    }

    fn add(&mut self, entry: SmapsEntry) -> io::Result<()> {
        let placed = match &mut self.nodes {
            Some(nodes) => nodes.within(entry.start, entry.end)?,
            None => Placed::default(),
        };
        let present = entry.present + entry.pool;
        if present == 0 && entry.swapped == 0 {
            return Ok(());
        }
        let page = if entry.pool > 0 { entry.page } else { self.pages.base };
        let mut by_node: BTreeMap<u32, Bytes> =
            placed.pages.iter().map(|(node, pages)| (*node, Bytes(pages.saturating_mul(page)))).collect();
        by_node.extend(self.pages.only_node.map(|node| (node, Bytes(present))));
        let sums = &mut self.sums;
        sums.present.0 += present;
        sums.proportional.0 += entry.proportional;
        sums.shared.0 += entry.shared;
        sums.swapped.0 += entry.swapped;
        sums.unplaced.0 += present.saturating_sub(by_node.values().map(|bytes| bytes.0).sum());
        by_node.iter().for_each(|(node, bytes)| sums.by_node.entry(*node).or_default().0 += bytes.0);
        if let Some(part) = entry.touched {
            let touched = sums.touched.get_or_insert_default();
            for (node, bytes) in &by_node {
                touched.entry(*node).or_default().0 += entry.touched_of(part, *bytes).0;
            }
        }
        let kind = entry.kind.unwrap_or(MappingKind::Anonymous);
        sums.by_kind.entry(kind).or_default().0 += present;
        let transparent = entry.transparent.min(entry.present);
        let of_pages = [
            (PageKind::Base, self.pages.base, entry.present - transparent),
            (PageKind::Thp, self.pages.transparent, transparent),
            (PageKind::Pool, entry.page, entry.pool),
        ];
        for (kind, page, bytes) in of_pages.into_iter().filter(|(_, _, bytes)| *bytes > 0) {
            *self.by_page.entry((kind, page)).or_default() += bytes;
        }
        if let Some(policy) = placed.policy {
            *self.by_policy.entry(policy).or_default() += present;
        }
        let mapping = MappingMemory { kind, name: entry.name, present: Bytes(present), by_node, huge: Bytes(transparent + entry.pool) };
        self.keep(mapping, entry.start, entry.end);
        Ok(())
    }

    /// Keeps a mapping as one of the largest: with the one before it if both have no name and touch, or with others of its name.
    fn keep(&mut self, mapping: MappingMemory, start: u64, end: u64) {
        let Some(name) = mapping.name.clone() else {
            let touches = self.unnamed_to == start;
            self.unnamed_to = end;
            match self.unnamed.last_mut().filter(|last| touches && last.kind == mapping.kind) {
                Some(last) => join(last, &mapping),
                None => self.unnamed.push(mapping),
            }
            if self.unnamed.len() > COUNTED {
                largest(&mut self.unnamed);
                self.unnamed_to = 0;
            }
            return;
        };
        let has_room = self.named.len() < FILES;
        match self.named.entry((mapping.kind, name)) {
            Entry::Occupied(mut known) => join(known.get_mut(), &mapping),
            Entry::Vacant(new) if has_room => drop(new.insert(mapping)),
            Entry::Vacant(_) => {}
        }
    }
}

fn join(to: &mut MappingMemory, from: &MappingMemory) {
    to.present.0 += from.present.0;
    to.huge.0 += from.huge.0;
    from.by_node.iter().for_each(|(node, bytes)| to.by_node.entry(*node).or_default().0 += bytes.0);
}

fn largest(mappings: &mut Vec<MappingMemory>) {
    mappings.sort_by_key(|mapping| std::cmp::Reverse(mapping.present));
    mappings.truncate(KEPT);
}

/// The first line of an entry: `7f0000000000-7f0000200000 rw-p 00000000 00:00 0    [heap]`.
fn head(line: &str) -> Option<SmapsEntry> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let mut words = rest.splitn(5, ' ');
    let shared = words.next()?.ends_with('s');
    let name = words.nth(3).map_or("", str::trim);
    let (kind, name) = kind_and_name(name, shared);
    Some(SmapsEntry { start, end, kind: Some(kind), name, ..SmapsEntry::default() })
}

/// The kind and the name of a mapping, by its name in smaps. `[anon:NAME]` is a name that the program gave (`PR_SET_VMA_ANON_NAME`).
fn kind_and_name(name: &str, shared: bool) -> (MappingKind, Option<String>) {
    const SHARED: [&str; 4] = ["/dev/shm/", "/memfd:", "/SYSV", "/dev/zero"];
    let own = |prefix: &str| name.strip_prefix(prefix)?.strip_suffix(']').map(str::to_owned);
    match name {
        "[heap]" => (MappingKind::Heap, None),
        "[stack]" => (MappingKind::Stack, None),
        "" => (if shared { MappingKind::Shared } else { MappingKind::Anonymous }, None),
        _ if name.starts_with("[anon_shmem:") => (MappingKind::Shared, own("[anon_shmem:")),
        _ if name.starts_with('[') => (MappingKind::Anonymous, own("[anon:").or_else(|| Some(name.to_owned()))),
        // Memory of the pool without a file of its own.
        _ if name.starts_with("/anon_hugepage") => (if shared { MappingKind::Shared } else { MappingKind::Anonymous }, None),
        _ if SHARED.iter().any(|prefix| name.starts_with(prefix)) => (MappingKind::Shared, Some(name.to_owned())),
        _ => (MappingKind::File, Some(name.to_owned())),
    }
}

impl SmapsEntry {
    /// The touched part of this much of it, if so much of all is touched. The kernel does not say it of pages of pools: they all count.
    fn touched_of(&self, touched: u64, bytes: Bytes) -> Bytes {
        if self.pool > 0 || self.present == 0 {
            return bytes;
        }
        Bytes((u128::from(bytes.0) * u128::from(touched.min(self.present)) / u128::from(self.present)) as u64)
    }

    /// Takes in a line `Rss:     123 kB`.
    fn take(&mut self, line: &str) {
        let Some((name, value)) = line.split_once(':') else { return };
        let Some(bytes) = value.trim_start().split(' ').next().and_then(|n| n.parse::<u64>().ok()).map(|kib| kib.saturating_mul(1024))
        else {
            return;
        };
        match name {
            "Rss" => self.present = bytes,
            "Referenced" => self.touched = Some(bytes),
            "Pss" => self.proportional += bytes,
            "Shared_Clean" | "Shared_Dirty" => self.shared += bytes,
            "AnonHugePages" | "ShmemPmdMapped" | "FilePmdMapped" => self.transparent += bytes,
            "Private_Hugetlb" => {
                self.pool += bytes;
                self.proportional += bytes;
            }
            "Shared_Hugetlb" => {
                self.pool += bytes;
                self.shared += bytes;
            }
            "Swap" => self.swapped = bytes,
            "KernelPageSize" => self.page = bytes,
            _ => {}
        }
    }
}

/// Where pages of a mapping are.
#[derive(Debug, Default, PartialEq)]
struct Placed {
    /// Pages by node. Those of a pool count as one each, other huge pages as the base pages that they consist of.
    pages: BTreeMap<u32, u64>,
    /// The policy in the kernel's words.
    policy: Option<String>,
}

/// Reads numa_maps line by line: `7f00 bind:1 anon=512 dirty=512 N0=12 N1=500 kernelpagesize_kB=4`.
struct NumaMaps<N> {
    text: N,
    /// A line that was read and belongs to a later mapping.
    next: Option<(u64, Placed)>,
}

impl<N: BufRead> NumaMaps<N> {
    const fn new(text: N) -> Self {
        Self { text, next: None }
    }

    /// The pages of mappings that begin between these addresses. Earlier ones, which the caller did not ask for, are left out.
    fn within(&mut self, start: u64, end: u64) -> io::Result<Placed> {
        let mut sum = Placed::default();
        let mut line = Vec::new();
        loop {
            if self.next.is_none() {
                line.clear();
                if self.text.read_until(b'\n', &mut line)? == 0 {
                    return Ok(sum);
                }
                self.next = parse_numa(&String::from_utf8_lossy(&line));
            }
            match &self.next {
                Some((at, _)) if *at >= end => return Ok(sum),
                Some((at, _)) if *at < start => self.next = None,
                _ => {}
            }
            let Some((_, placed)) = self.next.take() else { continue };
            placed.pages.into_iter().for_each(|(node, pages)| *sum.pages.entry(node).or_default() += pages);
            sum.policy = sum.policy.or(placed.policy);
        }
    }
}

fn parse_numa(line: &str) -> Option<(u64, Placed)> {
    let (at, rest) = line.trim_end().split_once(' ')?;
    let at = u64::from_str_radix(at, 16).ok()?;
    // A policy of a later kernel has no name here.
    let behind = parse_policy(rest).map_or(rest, |(_, _, behind)| behind);
    let policy = rest[..rest.len() - behind.len()].trim_end();
    let count = |word: &str| {
        let (node, pages) = word.strip_prefix('N')?.split_once('=')?;
        Some((node.parse().ok()?, pages.parse().ok()?))
    };
    let pages = behind.split(' ').filter_map(count).collect();
    Some((at, Placed { pages, policy: Some(policy).filter(|policy| !policy.is_empty()).map(str::to_owned) }))
}
