//! The sentences of the page of `where`.

use memgauge_model::result::{Report, Residency};
use memgauge_model::units::Bytes;
use memgauge_render::{Appearance, Document, Format};

use crate::samples;

/// The page of the sample with this change, in one line.
fn page(change: impl FnOnce(&mut Residency)) -> String {
    let mut report: Report = samples::residency();
    change(report.residency.as_mut().unwrap());
    let page = report.render(Format::TEXT, &Appearance::default()).unwrap();
    String::from_utf8(page).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_narrower_placement_leads_to_weights() {
    let said = page(|residency| residency.cost.as_mut().unwrap().ceiling_gbs = Some(300.0));
    assert!(said.contains("at most, now 300.0. It is worse for programs that need more: memgauge interleave finds weights"), "{said}");
}

#[test]
fn the_last_sentence_says_of_which_processes_touched_pages_count() {
    let touched = |n: usize| {
        move |residency: &mut Residency| {
            residency.processes[..n].iter_mut().for_each(|one| one.memory.touched = Some([(0, Bytes::gib(1))].into()));
        }
    };
    assert!(page(touched(0)).contains("if all pages of a process are used alike"));
    assert!(page(touched(1)).contains("of 1 of 2 processes the touched pages, of the others all pages"));
    let all = page(touched(2));
    assert!(all.contains("if all touched pages of a process are used alike") && all.contains(" touched "), "{all}");
    // A process that touched nothing has no touched pages to price.
    let none = page(|residency| residency.processes.iter_mut().for_each(|one| one.memory.touched = Some([(0, Bytes(0))].into())));
    assert!(none.contains("if all pages of a process are used alike"), "{none}");
}

#[test]
fn pages_without_a_price_are_told() {
    let said = page(|residency| {
        residency.translation = None;
        residency.prices.as_mut().unwrap().translation_ns.remove(0);
    });
    assert!(said.contains("The cost of address translation is known only for pages of 2 MiB. --measure measures it"), "{said}");
}
