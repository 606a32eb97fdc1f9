//! The jobs, one a file.

use crate::Job;

mod numa;

pub(crate) const ALL: &[&Job] = &[&numa::JOB];
