//! Answers of `GetLogicalProcessorInformationEx`, made by hand.

/// `PROCESSOR_CACHE_TYPE`.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Unified = 0,
    Instructions = 1,
    Data = 2,
    Other = 4,
}

/// Groups and masks.
type Masks<'a> = &'a [(u16, u64)];

/// An answer, record by record.
#[derive(Default)]
pub(super) struct Answer {
    records: Vec<Vec<u8>>,
}

impl Answer {
    /// A record: its relationship, its size, and the rest.
    pub(super) fn record(relationship: u32, body: &[u8]) -> Vec<u8> {
        let size = 8 + body.len() as u32;
        [&relationship.to_le_bytes()[..], &size.to_le_bytes(), body].concat()
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.records.concat()
    }

    /// Where the records of an answer end.
    pub(super) fn ends(answer: &[u8]) -> Vec<usize> {
        let (mut at, mut ends) = (0, Vec::new());
        while at < answer.len() {
            at += u32::from_le_bytes(answer[at + 4..at + 8].try_into().unwrap()) as usize;
            ends.push(at);
        }
        ends
    }

    /// The same in the form before Windows Server 2022: the number of groups of nodes and caches was reserved, and 0.
    pub(super) fn older(mut self) -> Self {
        for record in &mut self.records {
            let count = match record[0] {
                1 => 30,
                2 => 38,
                _ => continue,
            };
            record[count..count + 2].fill(0);
        }
        self
    }

    fn with(mut self, relationship: u32, body: &[u8]) -> Self {
        self.records.push(Self::record(relationship, body));
        self
    }

    /// `GROUP_AFFINITY` structures behind their number.
    fn masks(masks: Masks<'_>) -> Vec<u8> {
        let mut bytes = (masks.len() as u16).to_le_bytes().to_vec();
        for (group, mask) in masks {
            bytes.extend(mask.to_le_bytes());
            bytes.extend(group.to_le_bytes());
            bytes.extend([0; 6]);
        }
        bytes
    }

    /// `PROCESSOR_RELATIONSHIP`.
    fn processor(self, relationship: u32, class: u8, masks: Masks<'_>) -> Self {
        let threads: u32 = masks.iter().map(|(_, mask)| mask.count_ones()).sum();
        let flags = u8::from(relationship == 0 && threads > 1);
        self.with(relationship, &[vec![flags, class], vec![0; 20], Self::masks(masks)].concat())
    }

    pub(super) fn core(self, class: u8, masks: Masks<'_>) -> Self {
        self.processor(0, class, masks)
    }
    pub(super) fn package(self, masks: Masks<'_>) -> Self {
        self.processor(3, 0, masks)
    }
    pub(super) fn die(self, masks: Masks<'_>) -> Self {
        self.processor(5, 0, masks)
    }
    pub(super) fn module(self, masks: Masks<'_>) -> Self {
        self.processor(7, 0, masks)
    }

    /// `NUMA_NODE_RELATIONSHIP`.
    pub(super) fn node(self, number: u32, masks: Masks<'_>) -> Self {
        self.with(1, &[number.to_le_bytes().to_vec(), vec![0; 18], Self::masks(masks)].concat())
    }

    /// `CACHE_RELATIONSHIP`, with lines of 64 bytes.
    pub(super) fn cache(self, level: u8, ways: u8, size: u32, kind: Kind, masks: Masks<'_>) -> Self {
        let mut body = vec![level, ways, 64, 0];
        body.extend(size.to_le_bytes());
        body.extend((kind as u32).to_le_bytes());
        body.extend([0; 18]);
        body.extend(Self::masks(masks));
        self.with(2, &body)
    }

    /// `GROUP_RELATIONSHIP`, with the active CPUs of each group.
    pub(super) fn groups(self, active: &[u64]) -> Self {
        let count = (active.len() as u16).to_le_bytes();
        let mut body = [count, count].concat();
        body.extend([0; 20]);
        for mask in active {
            body.extend([64, mask.count_ones() as u8]);
            body.extend([0; 38]);
            body.extend(mask.to_le_bytes());
        }
        self.with(4, &body)
    }
}
