//! Which hosts a word means: a host's name, its machine id, or both.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::row::{HostId, HostRun};
use crate::rows::ID_DIGITS;
use memgauge_model::words::Knob;

/// Digits of a machine id that choose it at least: a host's name may well be `c0` or `beef`.
const FEWEST_DIGITS: usize = 8;
/// Hosts that a message names.
const NAMED: usize = 8;

/// Why a word means no single host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// No host has this name, and no machine id begins so.
    #[error("no host '{word}'{}", if .similar.is_empty() { String::new() } else { format!("; it has {}", .similar.join(", ")) })]
    Unknown {
        /// What was asked for.
        word: String,
        /// Names that resemble it, at most five.
        similar: Vec<String>,
    },
    /// Several machines have this name, or several names this id.
    #[error("'{word}' means {} machines: {}", .hosts.len(), named(.hosts))]
    Several {
        /// What was asked for.
        word: String,
        /// The machines.
        hosts: Vec<KnownHost>,
    },
}

/// A host, and what is known of its runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownHost {
    /// Its name.
    pub host: String,
    /// What chooses it and no other; `None` where it has no machine id.
    pub choice: Option<String>,
    /// Its runs.
    pub runs: usize,
    /// When the latest of them began.
    pub latest: String,
}

impl fmt::Display for KnownHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (runs, day) = (self.runs, self.latest.split('T').next().unwrap_or_default());
        match &self.choice {
            Some(choice) => write!(f, "{} {choice}", Knob::Host)?,
            None => write!(f, "{} without a machine id", self.host)?,
        }
        write!(f, " ({runs} {}, the latest {day})", if runs == 1 { "run" } else { "runs" })
    }
}

fn named(hosts: &[KnownHost]) -> String {
    let mut list: Vec<String> = hosts.iter().take(NAMED).map(ToString::to_string).collect();
    if hosts.len() > NAMED {
        list.push(format!("and {} more", hosts.len() - NAMED));
    }
    list.join(", ")
}

/// The hosts that runs are of.
pub(crate) struct Hosts<'a> {
    runs: BTreeMap<HostId, Vec<&'a HostRun>>,
}

impl<'a> Hosts<'a> {
    /// The hosts of these runs. Each run is passed once.
    pub(crate) fn from_runs(runs: impl IntoIterator<Item = &'a HostRun>) -> Self {
        let mut hosts: BTreeMap<HostId, Vec<&HostRun>> = BTreeMap::new();
        runs.into_iter().for_each(|run| hosts.entry(run.id()).or_default().push(run));
        Self { runs: hosts }
    }

    /// The hosts that a word means: those with this name; else those whose machine id begins so; else those whose name, `-` and beginning of
    /// the machine id it is, as exports write hosts of one name.
    ///
    /// # Errors
    /// When it means none.
    pub(crate) fn find(&self, word: &str) -> Result<BTreeSet<HostId>, HostError> {
        let with = |wanted: &dyn Fn(&HostId) -> bool| -> Option<BTreeSet<HostId>> {
            let found: BTreeSet<HostId> = self.runs.keys().filter(|id| wanted(id)).cloned().collect();
            (!found.is_empty()).then_some(found)
        };
        let has_id = |id: &HostId, digits: &str| {
            let is_id = digits.len() >= FEWEST_DIGITS && digits.bytes().all(|b| b.is_ascii_hexdigit());
            is_id && id.1.as_ref().is_some_and(|id| id.starts_with(&digits.to_ascii_lowercase()))
        };
        let by_name = || with(&|id| id.0 == word);
        let by_id = || with(&|id| has_id(id, word));
        let by_both = || word.rsplit_once('-').and_then(|(name, digits)| with(&|id| id.0 == name && has_id(id, digits)));
        by_name().or_else(by_id).or_else(by_both).ok_or_else(|| HostError::Unknown { word: word.to_owned(), similar: self.similar(word) })
    }

    /// The one host that a word means.
    ///
    /// # Errors
    /// When it means none, or several.
    pub(crate) fn one(&self, word: &str) -> Result<HostId, HostError> {
        let found = self.find(word)?;
        if found.len() > 1 {
            return Err(HostError::Several { word: word.to_owned(), hosts: found.iter().map(|id| self.known(id)).collect() });
        }
        found.into_iter().next().ok_or_else(|| HostError::Unknown { word: word.to_owned(), similar: Vec::new() })
    }

    fn known(&self, id: &HostId) -> KnownHost {
        let runs = self.runs.get(id).map(Vec::as_slice).unwrap_or_default();
        let choices = id.1.iter().flat_map(|whole| {
            let digits: String = whole.chars().take(ID_DIGITS).collect();
            // The shortest first.
            [digits.clone(), format!("{}-{digits}", id.0), format!("{}-{whole}", id.0)]
        });
        KnownHost {
            host: id.0.clone(),
            choice: choices.into_iter().find(|choice| self.find(choice).is_ok_and(|found| found.len() == 1)),
            runs: runs.len(),
            latest: runs.iter().map(|run| run.started.clone()).max().unwrap_or_default(),
        }
    }

    /// Names that have all letters of the word in its order, as `n005` has those of `n5`, or that the word contains.
    fn similar(&self, word: &str) -> Vec<String> {
        let wanted = word.to_lowercase();
        let resembles = |name: &&str| {
            let name = name.to_lowercase();
            let mut letters = name.chars();
            !wanted.is_empty() && (wanted.contains(&name) || wanted.chars().all(|letter| letters.any(|other| other == letter)))
        };
        let names: BTreeSet<&str> = self.runs.keys().map(|id| id.0.as_str()).filter(resembles).collect();
        names.into_iter().take(5).map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(host: &str, id: Option<&str>, started: &str) -> HostRun {
        let machine_id_hash = id.map(|id| id.repeat(64).chars().take(64).collect());
        HostRun { host: host.into(), machine_id_hash, started: started.into(), ..HostRun::default() }
    }

    /// Two machines called `node`, one that has no id, one that was renamed, and one whose name looks like an id.
    fn runs() -> Vec<HostRun> {
        vec![
            run("node", Some("a1b2c3d4e5"), "2026-03-01T00:00:00Z"),
            run("node", Some("a1b2c3d4e5"), "2026-03-05T00:00:00Z"),
            run("node", Some("b0"), "2026-03-02T00:00:00Z"),
            run("node", None, "2026-03-03T00:00:00Z"),
            run("old-name", Some("c0"), "2026-03-02T00:00:00Z"),
            run("new-name", Some("c0"), "2026-03-03T00:00:00Z"),
            run("b0b0b0b0", Some("d0"), "2026-03-03T00:00:00Z"),
            run("c0", Some("e0"), "2026-03-03T00:00:00Z"),
        ]
    }

    #[test]
    fn names_ids_and_both_choose_a_host() {
        let runs = runs();
        let hosts = Hosts::from_runs(&runs);
        let chosen = |word: &str| hosts.one(word).map(|(host, id)| (host, id.map(|id| id[..2].to_owned())));
        for (word, host, id) in [
            ("c0", "c0", "e0"),
            ("b0b0b0b0", "b0b0b0b0", "d0"),
            ("b0b0b0b0b0", "node", "b0"),
            ("a1b2c3d4e5a1", "node", "a1"),
            ("A1B2C3D4", "node", "a1"),
            ("node-b0b0b0b0b0b0", "node", "b0"),
            ("old-name-c0c0c0c0", "old-name", "c0"),
            ("new-name", "new-name", "c0"),
        ] {
            assert_eq!(chosen(word), Ok((host.to_owned(), Some(id.to_owned()))), "{word}");
        }
        // Fewer digits may be a name that is misspelled.
        for word in ["a1b2c3d", "node-b0b0b0", "d0", "", "node-", "zzzzzzzz"] {
            assert!(matches!(hosts.one(word), Err(HostError::Unknown { .. })), "{word}");
        }
    }

    #[test]
    fn what_several_machines_share_is_refused_with_what_chooses_each() {
        let runs = runs();
        let hosts = Hosts::from_runs(&runs);
        let said = hosts.one("node").unwrap_err().to_string();
        assert_eq!(
            said,
            "'node' means 3 machines: node without a machine id (1 run, the latest 2026-03-03), --host a1b2c3d4e5a1 (2 runs, the latest \
             2026-03-05), --host b0b0b0b0b0b0 (1 run, the latest 2026-03-02)"
        );
        let said = hosts.one("c0c0c0c0").unwrap_err().to_string();
        for choice in ["new-name-c0c0c0c0c0c0", "old-name-c0c0c0c0c0c0"] {
            assert!(said.contains(&format!("--host {choice} (1 run")), "{said}");
        }
        // What a message proposes chooses that machine.
        for word in ["node", "c0c0c0c0"] {
            let Err(HostError::Several { hosts: several, .. }) = hosts.one(word) else { panic!("{word} means one") };
            for known in several.iter().filter(|known| known.choice.is_some()) {
                assert_eq!(hosts.one(known.choice.as_ref().unwrap()).unwrap().0, known.host);
            }
        }
        // Twelve digits do not tell these apart.
        let alike = ["0".repeat(64), "0".repeat(63) + "1"];
        let alike = alike.map(|id| HostRun { machine_id_hash: Some(id.clone()), ..run("node", None, "2026-03-01T00:00:00Z") });
        let said = Hosts::from_runs(&alike).one("node").unwrap_err().to_string();
        assert!(alike.iter().all(|run| said.contains(&format!("--host node-{} ", run.machine_id_hash.as_ref().unwrap()))), "{said}");
        let many: Vec<HostRun> = (0..30).map(|i| run("node", Some(&format!("{i:08x}")), "2026-03-01T00:00:00Z")).collect();
        let said = Hosts::from_runs(&many).one("node").unwrap_err().to_string();
        assert!(said.starts_with("'node' means 30 machines: ") && said.ends_with(", and 22 more"), "{said}");
    }
}
