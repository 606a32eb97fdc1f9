//! Every pair of CPUs, in rounds of pairs that share neither a CPU nor a core.
//!
//! Cores meet by the circle method of round-robin tournaments (M. Reiss, "Über eine Steinersche combinatorische Aufgabe", 1859): one stays,
//! the others turn around it, and those who face each other are a pair. Of `c` cores every two meet once in `c - 1` rounds (`c` where that is
//! odd, each core resting once). With several hardware threads a core, a meeting takes a round for each two threads, because two
//! threads of a core that worked for two pairs at a time would share its caches and its pipeline; and the threads of one core meet each other in
//! rounds of their own, all cores at once.

use crate::topology::Topology;
use crate::units::IdSet;

/// The rounds in which every two CPUs meet once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rounds {
    /// CPUs by core.
    cores: Vec<Vec<u32>>,
    /// Rounds of the threads of one core.
    within: usize,
    /// Rounds of each meeting of cores.
    between: Vec<usize>,
}

impl Rounds {
    /// The rounds of these CPUs. `topology` says which CPUs share a core; a CPU that it does not contain counts as a core.
    pub fn new(cpus: &IdSet, topology: &Topology) -> Self {
        let mut cores: Vec<Vec<u32>> = Vec::new();
        let mut seen = IdSet::new();
        for cpu in cpus.iter() {
            if seen.contains(cpu) {
                continue;
            }
            let siblings = topology.cpu(cpu).map(|c| c.siblings.intersection(cpus)).unwrap_or_default().union(&IdSet::one(cpu));
            cores.push(siblings.iter().filter(|&c| !seen.contains(c)).collect());
            seen = seen.union(&siblings);
        }
        let within = cores.iter().map(|c| c.len() * (c.len() - 1) / 2).max().unwrap_or(0);
        let turns = if cores.len() < 2 { 0 } else { cores.len().next_multiple_of(2) - 1 };
        let between =
            (0..turns).map(|turn| meetings(cores.len(), turn).map(|(a, b)| cores[a].len() * cores[b].len()).max().unwrap_or(0)).collect();
        Self { cores, within, between }
    }

    /// The number of rounds.
    pub fn count(&self) -> usize {
        self.within + self.between.iter().sum::<usize>()
    }

    /// The pairs of each round, with the lower CPU number first. No two pairs of a round share a core; the two CPUs of one pair may.
    pub fn iter(&self) -> impl Iterator<Item = Vec<(u32, u32)>> {
        let between = self.between.iter().enumerate().flat_map(move |(turn, &rounds)| {
            (0..rounds).map(move |round| {
                let met = meetings(self.cores.len(), turn).filter_map(|(a, b)| {
                    let (a, b) = (&self.cores[a], &self.cores[b]);
                    Some((*a.get(round % a.len())?, *b.get(round / a.len())?))
                });
                met.map(ascending).collect()
            })
        });
        let within = (0..self.within).map(move |round| self.cores.iter().filter_map(|core| nth_pair(core, round)).map(ascending).collect());
        between.chain(within)
    }
}

fn ascending((a, b): (u32, u32)) -> (u32, u32) {
    (a.min(b), a.max(b))
}

/// Which of `count` cores meet in a turn of the circle.
fn meetings(count: usize, turn: usize) -> impl Iterator<Item = (usize, usize)> {
    // With an odd number of cores one of them rests in each turn.
    let circle = count.next_multiple_of(2).max(2) - 1;
    let around = (1..circle.div_ceil(2)).map(move |k| ((turn + k) % circle, (turn + circle - k) % circle));
    std::iter::once((circle, turn)).chain(around).filter(move |&(a, b)| a < count && b < count)
}

/// The pairs of one core's threads, one by one.
fn nth_pair(core: &[u32], n: usize) -> Option<(u32, u32)> {
    let mut pairs = core.iter().enumerate().flat_map(|(i, &a)| core[i + 1..].iter().map(move |&b| (a, b)));
    pairs.nth(n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Cpu;
    use std::collections::BTreeSet;

    /// CPUs numbered as Linux does: first threads of all cores, then second ones. Cores beyond `smt` have one thread.
    fn machine(cores: u32, threads: u32, smt: u32) -> (IdSet, Topology) {
        let mut cpus = Vec::new();
        for thread in 0..threads {
            for core in 0..if thread == 0 { cores } else { smt } {
                let siblings = (0..if core < smt { threads } else { 1 }).map(|t| if t == 0 { core } else { cores + (t - 1) * smt + core });
                let id = if thread == 0 { core } else { cores + (thread - 1) * smt + core };
                cpus.push(Cpu {
                    id,
                    package: 0,
                    die: None,
                    cluster: None,
                    core,
                    siblings: siblings.collect(),
                    node: 0,
                    kind: None,
                    capacity: None,
                    max_mhz: None,
                });
            }
        }
        (cpus.iter().map(|c| c.id).collect(), Topology { cpus, ..Topology::default() })
    }

    fn check(cores: u32, threads: u32, smt: u32) -> usize {
        let (cpus, topology) = machine(cores, threads, smt);
        let rounds = Rounds::new(&cpus, &topology);
        let (mut met, mut count) = (vec![false; cpus.len() * cpus.len()], 0);
        for round in rounds.iter() {
            count += 1;
            assert!(!round.is_empty());
            let mut busy = vec![false; cores as usize];
            for (a, b) in round {
                assert!(a < b);
                let at = a as usize * cpus.len() + b as usize;
                assert!(!std::mem::replace(&mut met[at], true), "{a} and {b} meet twice");
                let core = |cpu: u32| if cpu < cores { cpu } else { (cpu - cores) % smt };
                let of: BTreeSet<u32> = [core(a), core(b)].into();
                for core in of {
                    assert!(!std::mem::replace(&mut busy[core as usize], true), "core {core} is in two pairs at once");
                }
            }
        }
        let n = cpus.len();
        assert_eq!(met.iter().filter(|m| **m).count(), n * n.saturating_sub(1) / 2, "all of {n} meet");
        assert_eq!(count, rounds.count());
        count
    }

    #[test]
    fn every_two_cpus_meet_once_and_no_cpu_is_in_two_pairs() {
        for n in (0..=70).chain([127, 128, 255, 256, 384, 576, 1023, 1024]) {
            let rounds = check(n, 1, 0);
            let least = if n < 2 { 0 } else { n.next_multiple_of(2) - 1 };
            assert_eq!(rounds as u32, least, "{n} CPUs");
        }
    }

    #[test]
    fn threads_of_a_core_are_never_in_two_pairs_at_once() {
        for cores in (1..=33).chain([256, 512]) {
            assert_eq!(check(cores, 2, cores) as u32, 4 * (if cores < 2 { 0 } else { cores.next_multiple_of(2) - 1 }) + 1);
        }
        check(24, 8, 24);
        check(24, 2, 8);
        check(7, 4, 3);
    }

    #[test]
    fn cpus_that_are_left_out_do_not_play() {
        let (_, topology) = machine(4, 2, 4);
        let some: IdSet = [0, 4, 2].into_iter().collect();
        let rounds: Vec<_> = Rounds::new(&some, &topology).iter().collect();
        assert_eq!(rounds, [vec![(0, 2)], vec![(2, 4)], vec![(0, 4)]]);
    }
}
