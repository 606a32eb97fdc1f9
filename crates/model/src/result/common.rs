//! Values that the results of a long run share, written once to keep a file with thousands of results small.

use serde::{Deserialize, Serialize};

use crate::result::evidence::{Noise, PageEvidence};
use crate::result::measurement::Measurement;

/// A file with more results than this writes shared values once: a matrix of 16 nodes has 512, and is read by scripts as it is.
pub const MANY_RESULTS: usize = 1000;

/// Values that most results share in a file with more than a thousand. They apply to each result with a value that lacks the field.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Common {
    /// Fields of `evidence.noise`.
    pub noise: Noise,
    /// `evidence.pages`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<PageEvidence>,
}

/// Does something with each field of `Noise` that is a number.
macro_rules! for_each_number {
    ($each:ident) => {
        $each!(steal, others, bursts, bursts_disturbed, bursts_repeated, bursts_left_out, left_out);
        $each!(involuntary_switches, waited, migrations, ghz_before, ghz_after, pages_migrated);
        $each!(numa_hint_faults, thp_collapsed, cpu_pressure, memory_pressure, memory_errors);
    };
}

impl Common {
    /// The values that most of these results share. A field that one of them lacks is not shared: a missing field must have one meaning.
    pub(crate) fn from_results<'a>(results: impl Iterator<Item = &'a Measurement>) -> Self {
        let measured: Vec<&Measurement> = results.filter(|m| m.estimate.value.is_some()).collect();
        let mut common = Self::default();
        macro_rules! most_usual {
            ($($field:ident),*) => {
                $(common.noise.$field = most_usual(measured.iter().map(|m| m.evidence.noise.$field));)*
            };
        }
        for_each_number!(most_usual);
        let all_told = measured.iter().all(|m| m.evidence.pages != PageEvidence::default());
        let first = measured.first().map(|m| &m.evidence.pages).filter(|pages| all_told && pages.reason.is_none());
        common.pages = first.cloned();
        common
    }

    /// Takes from a result what it has in common with the others.
    pub(crate) fn take_from(&self, m: &mut Measurement) {
        let noise = &mut m.evidence.noise;
        macro_rules! take {
            ($($field:ident),*) => {
                $(noise.$field = noise.$field.filter(|value| Some(*value) != self.noise.$field);)*
            };
        }
        for_each_number!(take);
        if self.pages.as_ref() == Some(&m.evidence.pages) {
            m.evidence.pages = PageEvidence::default();
        }
    }

    /// Gives a result what it lacks.
    pub(crate) fn give_to(&self, m: &mut Measurement) {
        let noise = &mut m.evidence.noise;
        macro_rules! give {
            ($($field:ident),*) => {
                $(noise.$field = noise.$field.or(self.noise.$field);)*
            };
        }
        for_each_number!(give);
        if let Some(pages) = self.pages.as_ref().filter(|_| m.evidence.pages == PageEvidence::default()) {
            // Without the text: a small file from elsewhere could give a long one to thousands of results.
            m.evidence.pages = PageEvidence { reason: None, ..*pages };
        }
    }
}

/// The value that most have, if all have one.
fn most_usual<T: Copy + PartialEq>(values: impl Iterator<Item = Option<T>>) -> Option<T> {
    let values: Vec<T> = values.collect::<Option<_>>()?;
    // Boyer and Moore's majority vote: the value of more than half remains after each other value has taken one vote away.
    let (mut candidate, mut votes) = (*values.first()?, 0_usize);
    for &value in &values {
        match (votes, value == candidate) {
            (0, _) => (candidate, votes) = (value, 1),
            (_, true) => votes += 1,
            (_, false) => votes -= 1,
        }
    }
    let count = values.iter().filter(|&&value| value == candidate).count();
    (2 * count > values.len()).then_some(candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_usual_value_is_that_of_more_than_half_and_all_must_have_one() {
        let usual = |values: &[Option<u32>]| most_usual(values.iter().copied());
        assert_eq!(usual(&[Some(0), Some(2), Some(0)]), Some(0));
        assert_eq!(usual(&[Some(0), Some(2), Some(0), Some(3)]), None, "half is not most");
        assert_eq!(usual(&[Some(0), None, Some(0)]), None, "to lack it would mean two things");
        assert_eq!(usual(&[]), None);
    }
}
