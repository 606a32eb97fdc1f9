//! The job of this process, which an administrator or a container gives it.

use std::ptr::null_mut;

use memgauge_model::units::IdSet;
use windows_sys::Win32::System::JobObjects::{JOBOBJECTINFOCLASS, JobObjectGroupInformationEx, QueryInformationJobObject};
use windows_sys::Win32::System::SystemInformation::GROUP_AFFINITY;

use crate::answers::ids_in;

/// Groups of a job object are fewer than this; Windows has at most 32 groups.
const MAX_GROUPS: usize = 1024;

/// A structure that describes the job of this process; `None` where it is in no job, or Windows does not say.
///
/// # Safety
/// `T` must be the structure that Windows has for `class`, or an array of such structures, and any bytes must be a valid `T`.
pub(crate) unsafe fn query<T: Copy>(class: JOBOBJECTINFOCLASS, mut found: T) -> Option<(T, usize)> {
    let mut size = 0u32;
    let room = u32::try_from(size_of::<T>()).ok()?;
    // SAFETY: no handle means the job of the calling process. The function writes at most `room` bytes, the size of `found`, and the size
    // of what it wrote. Both outlive the call.
    let known = unsafe { QueryInformationJobObject(null_mut(), class, (&raw mut found).cast(), room, &raw mut size) } != 0;
    known.then_some((found, size as usize))
}

/// The CPUs that the job of this process leaves to it; `None` where it says nothing.
pub(crate) fn cpus() -> Option<IdSet> {
    // SAFETY: the class has an array of this structure, which has numbers only.
    let (groups, size) = unsafe { query(JobObjectGroupInformationEx, [GROUP_AFFINITY::default(); MAX_GROUPS]) }?;
    cpus_of(groups.iter().take(size / size_of::<GROUP_AFFINITY>()).map(|group| (group.Group, group.Mask as u64)))
}

/// The CPUs of groups and their masks. A mask of 0 stands for all of the group; nothing at all for no limit.
fn cpus_of(groups: impl Iterator<Item = (u16, u64)>) -> Option<IdSet> {
    let cpus: IdSet = groups.filter_map(|(group, mask)| ids_in(group, if mask == 0 { u64::MAX } else { mask })).flatten().collect();
    (!cpus.is_empty()).then_some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_of_a_job() {
        let ids = |list: &str| list.parse::<IdSet>().unwrap();
        assert_eq!(cpus_of([(0, 0b101), (1, 0b1)].into_iter()), Some(ids("0,2,64")));
        assert_eq!(cpus_of([(1, 0)].into_iter()), Some(ids("64-127")));
        assert_eq!(cpus_of(std::iter::empty()), None);
    }
}
