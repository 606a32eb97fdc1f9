//! Whether two sets of runs are of machines of one kind.

use memgauge_model::properties::differences;
use memgauge_model::result::{Difference, DifferentField, Report};

/// Why runs are not of machines of one kind: the CPU's model, or metal against virtual. Everything else can be what was changed.
/// `None` if they are.
pub fn unlike(before: &[Report], after: &[Report]) -> Option<Difference> {
    let another = |b: &Report| after.iter().any(|a| b.is_on_another_hypervisor_than(a));
    differences(before, after).into_iter().find(|difference| match difference.field {
        DifferentField::CpuModel => true,
        // Numbers say more than names do where there are any.
        DifferentField::Cpu => !before.iter().chain(after).all(|r| r.machine.identity.core_design().is_some()),
        DifferentField::Hypervisor => before.iter().any(another),
        _ => false,
    })
}
