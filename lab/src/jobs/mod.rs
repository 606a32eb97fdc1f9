//! The jobs, one a file.

use crate::job::Job;

mod arm;
mod cgroup;
mod confined;
mod cxl;
mod gigapages;
mod hotplug;
mod hugepages;
mod icount;
mod inherited;
mod interleave;
mod interleave_auto;
mod isolated;
mod kmem;
mod limits;
mod limits_v1;
mod msr;
mod numa;
mod offline;
mod pmem;
mod pmem_faults;
mod pmem_files;
mod pmem_nodes;
mod poison;
mod policies;
mod quick;
mod scan;
mod selinux;

pub(crate) const ALL: &[&Job] = &[
    &numa::JOB,
    &hugepages::JOB,
    &gigapages::JOB,
    &gigapages::SCAN,
    &cgroup::JOB,
    &offline::JOB,
    &limits::JOB,
    &limits_v1::JOB,
    &hotplug::JOB,
    &poison::JOB,
    &confined::JOB,
    &selinux::JOB,
    &isolated::JOB,
    &policies::JOB,
    &inherited::JOB,
    &kmem::JOB,
    &pmem::JOB,
    &pmem_nodes::JOB,
    &cxl::JOB,
    &interleave::JOB,
    &interleave_auto::JOB,
    &scan::JOB,
    &quick::JOB,
    &msr::JOB,
    &msr::LOCKDOWN,
    &icount::JOB,
    &arm::JOB,
];
