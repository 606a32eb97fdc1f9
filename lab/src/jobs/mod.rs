//! The jobs, one a file.

use crate::Job;

mod arm;
mod icount;
mod numa;

pub(crate) const ALL: &[&Job] = &[&numa::JOB, &icount::JOB, &arm::JOB];
