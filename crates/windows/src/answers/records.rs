//! The records of `GetLogicalProcessorInformationEx`, from their bytes.
//!
//! The layout is that of `SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX` and its relationships in 64-bit Windows, as Microsoft documents them
//! (`sysinfoapi.h`, `winnt.h`). Bytes are parsed, and no structures are laid over them, so that answers can be made by hand and tested on
//! any system, and so that no answer can be read past its end.

use memgauge_model::units::{IdSet, MAX_ID};

/// CPUs in a processor group, at most.
pub(crate) const GROUP_CPUS: u32 = u64::BITS;

/// `RelationProcessorCore` and so on.
const CORE: u32 = 0;
const NODE: u32 = 1;
const CACHE: u32 = 2;
const PACKAGE: u32 = 3;
const GROUP: u32 = 4;
const DIE: u32 = 5;
const NODE_EX: u32 = 6;
const MODULE: u32 = 7;

/// The relationship and the size in front of each record.
const HEADER: usize = 8;
/// `GROUP_AFFINITY`: a mask, a group, three reserved words.
const GROUP_AFFINITY: usize = 16;
/// `PROCESSOR_GROUP_INFO`: two counts, 38 reserved bytes, a mask.
const GROUP_INFO: usize = 48;
/// `CACHE_RELATIONSHIP.Associativity` of a fully associative cache.
const FULLY_ASSOCIATIVE: u8 = 0xFF;

/// One record that is used here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Record {
    /// The hardware threads of a core.
    Core {
        /// 0 on machines whose cores are all alike; otherwise higher numbers are for faster cores that take more power.
        efficiency: u8,
        /// Its CPUs.
        cpus: IdSet,
    },
    /// The CPUs of a package.
    Package(IdSet),
    /// The CPUs of a die.
    Die(IdSet),
    /// The CPUs of a module: cores that share something, such as an L2.
    Module(IdSet),
    /// The CPUs of a memory node.
    Node {
        /// Its number.
        number: u32,
        /// Its CPUs; those of its first group only, where the answer has the older form.
        cpus: IdSet,
    },
    /// A cache.
    Cache(CacheRecord),
    /// The CPUs that are active, in all groups.
    Active(IdSet),
}

/// A cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CacheRecord {
    /// 1, 2, 3 …
    pub(crate) level: u8,
    /// In ways; `None` where it is fully associative, or not stated.
    pub(crate) ways: Option<u32>,
    /// Line size in bytes, if stated.
    pub(crate) line: Option<u32>,
    /// In bytes.
    pub(crate) size: u32,
    /// What it holds.
    pub(crate) kind: CacheKind,
    /// The CPUs that share it.
    pub(crate) cpus: IdSet,
}

/// `PROCESSOR_CACHE_TYPE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheKind {
    /// Data and instructions.
    Unified,
    /// Instructions, or traces of them.
    Instructions,
    /// Data.
    Data,
    /// Something that Windows does not name.
    Unknown,
}

/// Reads all records. Relationships that are not known here are passed over: later versions of Windows add some.
///
/// # Errors
/// Says at which byte the answer is cut or contradicts itself. Nothing of such an answer is used, because a record that is left out would
/// be a CPU or a node that seems not to be there.
pub(crate) fn parse(answer: &[u8]) -> Result<Vec<Record>, String> {
    let mut records = Vec::new();
    let mut at = 0;
    while at < answer.len() {
        let rest = Bytes(&answer[at..]);
        let size = rest.u32(4).map_or(0, |size| size as usize);
        if size < HEADER || size > rest.0.len() {
            return Err(format!("the record at byte {at} of {} states a size of {size}", answer.len()));
        }
        let record = Bytes(&rest.0[..size]);
        let relationship = record.u32(0).unwrap_or(u32::MAX);
        match record.read(relationship) {
            Some(found) => records.extend(found),
            None => {
                return Err(format!(
                    "the record at byte {at} (relationship {relationship}, {size} bytes) is too short for what it holds, or names a CPU or \
                     node that no machine has"
                ));
            }
        }
        at += size;
    }
    Ok(records)
}

/// A part of an answer, whose numbers are little-endian, as on every processor that Windows runs on.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn array<const N: usize>(self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..at.checked_add(N)?)?.try_into().ok()
    }
    fn u8(self, at: usize) -> Option<u8> {
        self.0.get(at).copied()
    }
    fn u16(self, at: usize) -> Option<u16> {
        self.array(at).map(u16::from_le_bytes)
    }
    fn u32(self, at: usize) -> Option<u32> {
        self.array(at).map(u32::from_le_bytes)
    }
    fn u64(self, at: usize) -> Option<u64> {
        self.array(at).map(u64::from_le_bytes)
    }

    /// This record; `Some(None)` where its relationship is not used here, `None` where it is too short.
    fn read(self, relationship: u32) -> Option<Option<Record>> {
        Some(Some(match relationship {
            CORE => Record::Core { efficiency: self.u8(9)?, cpus: self.masks(30, 32)? },
            PACKAGE => Record::Package(self.masks(30, 32)?),
            DIE => Record::Die(self.masks(30, 32)?),
            MODULE => Record::Module(self.masks(30, 32)?),
            NODE | NODE_EX => Record::Node { number: self.u32(8).filter(|number| *number < MAX_ID)?, cpus: self.masks(30, 32)? },
            CACHE => Record::Cache(self.cache()?),
            GROUP => Record::Active(self.groups()?),
            _ => return Some(None),
        }))
    }

    /// The CPUs of an array of `GROUP_AFFINITY` whose length is at `count`. Before Windows Server 2022 the length was reserved in nodes and
    /// caches, and 0. There is one element then.
    fn masks(self, count: usize, first: usize) -> Option<IdSet> {
        let elements = usize::from(self.u16(count)?.max(1));
        let mut cpus = Vec::new();
        for element in 0..elements {
            let at = first + element * GROUP_AFFINITY;
            let (mask, group) = (self.u64(at)?, self.u16(at + 8)?);
            cpus.extend(ids_in(group, mask)?);
        }
        Some(cpus.into_iter().collect())
    }

    fn cache(self) -> Option<CacheRecord> {
        let (level, ways, line) = (self.u8(8)?, self.u8(9)?, self.u16(10)?);
        let kind = match self.u32(16)? {
            0 => CacheKind::Unified,
            1 | 3 => CacheKind::Instructions,
            2 => CacheKind::Data,
            _ => CacheKind::Unknown,
        };
        Some(CacheRecord {
            level,
            ways: Some(ways).filter(|&ways| ways != 0 && ways != FULLY_ASSOCIATIVE).map(u32::from),
            line: Some(line).filter(|&line| line != 0).map(u32::from),
            size: self.u32(12)?,
            kind,
            cpus: self.masks(38, 40)?,
        })
    }

    fn groups(self) -> Option<IdSet> {
        let mut cpus = Vec::new();
        for group in 0..self.u16(10)? {
            let mask = self.u64(32 + usize::from(group) * GROUP_INFO + 40)?;
            cpus.extend(ids_in(group, mask)?);
        }
        Some(cpus.into_iter().collect())
    }
}

/// The numbers of the CPUs of a mask; `None` where they are beyond all numbers of CPUs.
pub(crate) fn ids_in(group: u16, mask: u64) -> Option<impl Iterator<Item = u32>> {
    let first = u32::from(group) * GROUP_CPUS;
    (first + GROUP_CPUS <= MAX_ID).then(|| (0..GROUP_CPUS).filter(move |bit| mask >> bit & 1 == 1).map(move |bit| first + bit))
}
