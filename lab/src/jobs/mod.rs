//! The jobs, one a file.

use crate::job::Job;

mod arm;
mod cgroup;
mod cxl;
mod gigapages;
mod hugepages;
mod icount;
mod isolated;
mod kmem;
mod msr;
mod numa;
mod offline;
mod pmem;
mod policies;
mod quick;
mod scan;

pub(crate) const ALL: &[&Job] = &[
    &numa::JOB,
    &hugepages::JOB,
    &gigapages::JOB,
    &cgroup::JOB,
    &offline::JOB,
    &isolated::JOB,
    &policies::JOB,
    &kmem::JOB,
    &pmem::JOB,
    &cxl::JOB,
    &scan::JOB,
    &quick::JOB,
    &msr::JOB,
    &msr::LOCKDOWN,
    &icount::JOB,
    &arm::JOB,
];
