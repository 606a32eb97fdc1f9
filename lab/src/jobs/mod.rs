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
mod residency;
mod scan;
mod selinux;

/// The longest first, so that at the end no job runs alone. `numa` has the most CPUs, so jobs that mostly use one run beside it: a run without CPU
/// time is repeated.
pub(crate) const ALL: &[&Job] = &[
    &numa::JOB,
    &icount::JOB,
    &arm::JOB,
    &limits::JOB,
    &pmem_nodes::JOB,
    &offline::JOB,
    &pmem::JOB,
    &inherited::JOB,
    &hotplug::JOB,
    &scan::JOB,
    &poison::JOB,
    &cgroup::JOB,
    &hugepages::JOB,
    &kmem::JOB,
    &limits_v1::JOB,
    &confined::JOB,
    &selinux::JOB,
    &policies::JOB,
    &residency::JOB,
    &isolated::JOB,
    &quick::JOB,
    &gigapages::JOB,
    &msr::JOB,
    &msr::LOCKDOWN,
    &gigapages::SCAN,
    &cxl::JOB,
    &interleave::JOB,
    &interleave_auto::JOB,
];
