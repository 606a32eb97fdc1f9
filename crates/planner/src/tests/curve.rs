use super::*;

/// The nodes of the loaders' buffers, by CPU.
fn homes(plan: &Plan) -> Vec<(u32, u32)> {
    let Work::Curve(LoadCurve { loaders, .. }) = &plan.steps[0].cells[0].work else { panic!() };
    let mut homes: Vec<(u32, u32)> = loaders.iter().map(|l| (l.cpu, l.buffer.node)).collect();
    homes.sort_unstable();
    homes
}

fn loading(nodes: &str, change: impl FnOnce(&mut Spec)) -> Result<Plan, PlanError> {
    planned(Task::loaded(), |s| {
        curve(s).load_nodes = Some(nodes.parse().unwrap());
        change(s);
    })
}

#[test]
fn another_nodes_own_cpus_load_it_while_the_chase_stays_at_home() {
    let plan = loading("1", |_| ()).unwrap();
    assert_eq!(homes(&plan), [(4, 1), (5, 1), (6, 1), (7, 1)], "CPUs of node 0 would only add traffic between the packages");
    let cell = &plan.steps[0].cells[0];
    let Work::Curve(LoadCurve { probe, .. }) = &cell.work else { panic!() };
    assert_eq!((probe.cpu, probe.buffer.node), (0, 0));
    assert_eq!((cell.at.memory_node(), cell.at.load_nodes.clone()), (Some(0), Some(IdSet::one(1))));
    assert_eq!(cell.at.cpus, Some("4-7".parse().unwrap()));
}

#[test]
fn memory_without_cpus_is_loaded_by_the_nearest_ones() {
    assert_eq!(homes(&loading("2", |_| ()).unwrap()), [(4, 2), (5, 2), (6, 2), (7, 2)], "node 1 is the nearest");
    let first_package = |s: &mut Spec| s.cpus = Some("0-3".parse().unwrap());
    assert_eq!(homes(&loading("2", first_package).unwrap()), [(2, 2), (3, 2)], "less the core of the chase");
}

#[test]
fn several_nodes_are_all_loaded() {
    assert_eq!(homes(&loading("0-1", |_| ()).unwrap()), [(2, 0), (3, 0), (4, 1), (5, 1), (6, 1), (7, 1)]);
    // CPUs 4 to 7 are near to both nodes 1 and 2 and are divided among them.
    assert_eq!(homes(&loading("1-2", |_| ()).unwrap()), [(4, 1), (5, 1), (6, 2), (7, 2)]);
    let other_chase = |s: &mut Spec| (curve(s).cpu, s.nodes) = (Some(4), Some(IdSet::one(2)));
    let plan = loading("1", other_chase).unwrap();
    let Work::Curve(LoadCurve { probe, .. }) = &plan.steps[0].cells[0].work else { panic!() };
    assert_eq!((probe.cpu, probe.buffer.node, homes(&plan)), (4, 2, vec![(6, 1), (7, 1)]));
}

#[test]
fn what_cannot_be_loaded_is_refused() {
    let refused = |nodes: &str, change: fn(&mut Spec)| loading(nodes, change).unwrap_err().to_string();
    assert!(refused("7", |_| ()).contains('7'));
    assert!(refused("1-2", |s| s.cpus = Some("0,4".parse().unwrap())).contains("no CPU is left to load the memory of node 2"));
    assert!(refused("1", |s| traffic(s).shared = true).contains("leave out --shared-buffer or"));
}

#[test]
fn shares_of_the_peak_are_planned_with_their_time() {
    let plain = planned(Task::loaded(), |_| ()).unwrap();
    let with = planned(Task::loaded(), |s| curve(s).at_percent = vec![50, 90]).unwrap();
    let Work::Curve(LoadCurve { at_percent, .. }) = &with.steps[0].cells[0].work else { panic!() };
    assert_eq!(*at_percent, [50, 90]);
    assert!(with.max_s > plain.max_s + 2.0 * plain.stop.budget_s);
}

#[test]
fn each_mix_has_a_curve_of_its_own() {
    let plan = planned(Task::loaded(), |s| traffic(s).load.mixes = vec![Mix::AllReads, Mix::R1W1]).unwrap();
    let mixes: Vec<Option<Mix>> = plan.steps[0].cells.iter().map(|c| c.at.mix).collect();
    assert_eq!(mixes, [Some(Mix::AllReads), Some(Mix::R1W1)]);
}
