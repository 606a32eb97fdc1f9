use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// The circles of a package with these files, as names of modules, and its arrows as `from > to: paths`.
fn circles_among(files: &[(&str, &str)]) -> (Vec<Vec<String>>, Vec<String>) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("memgauge-circles-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let folder = std::env::temp_dir().join(name);
    for (file, text) in files {
        let path = folder.join("src").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let packages = Package::all(&folder).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    let arrows = Arrows::of(&packages[packages.len() - 1]);
    let said = |name: &Name| if name.is_empty() { "crate".to_owned() } else { name.join("::") };
    let arrow = |((from, to), paths): (&(Name, Name), &BTreeSet<String>)| {
        format!("{} > {}: {}", said(from), said(to), paths.iter().cloned().collect::<Vec<_>>().join(", "))
    };
    (arrows.circles().into_iter().collect(), arrows.0.iter().map(arrow).collect())
}

/// The arrows of files that must not form a circle.
fn arrows_among(files: &[(&str, &str)]) -> Vec<String> {
    let (circles, arrows) = circles_among(files);
    assert!(circles.is_empty(), "{circles:?}");
    arrows
}

#[test]
fn two_files_that_use_each_other_are_a_circle() {
    let (circles, arrows) = circles_among(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::b::B; pub struct A(B);"),
        ("b.rs", "pub struct B; impl B { fn a(&self) -> super::a::A { todo!() } }"),
        ("c.rs", "use crate::{a::A, b::B};"),
    ]);
    assert_eq!(circles, [["a", "b"]]);
    assert_eq!(arrows, ["a > b: crate::b::B", "b > a: super::a::A", "c > a: crate::a::A", "c > b: crate::b::B"]);
}

#[test]
fn a_facade_of_re_exports_is_in_no_circle() {
    let arrows = arrows_among(&[
        ("lib.rs", "pub mod plan; pub use plan::*;"),
        ("plan.rs", "mod cell; mod step; pub use cell::Cell; pub use self::step::*;"),
        ("plan/cell.rs", "pub struct Cell;"),
        ("plan/step.rs", "use super::Cell; pub struct Step(Cell, crate::Cell, crate::plan::Cell);"),
    ]);
    assert_eq!(
        arrows,
        [
            "crate > plan::cell: plan::*",
            "crate > plan::step: plan::*",
            "plan > plan::cell: cell::Cell",
            "plan > plan::step: self::step::*",
            "plan::step > plan::cell: crate::Cell, crate::plan::Cell, super::Cell",
        ]
    );
}

#[test]
fn a_facade_that_defines_what_its_child_uses_is() {
    let (circles, _) = circles_among(&[
        ("lib.rs", "mod plan;"),
        ("plan.rs", "mod cell; pub use cell::Cell; pub const SIZE: usize = 1;"),
        ("plan/cell.rs", "pub struct Cell([u8; super::SIZE]);"),
    ]);
    assert_eq!(circles, [["plan", "plan::cell"]]);
}

#[test]
fn the_import_of_a_module_is_no_arrow_but_the_paths_through_it_are() {
    let arrows = arrows_among(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::b; use crate::c as renamed; fn f() { renamed::g(); }"),
        ("b.rs", "use super::a;"),
        ("c.rs", "pub fn g() {}"),
    ]);
    assert_eq!(arrows, ["a > c: renamed::g"]);
}

#[test]
fn a_function_may_have_its_module_s_name() {
    let arrows = arrows_among(&[
        ("main.rs", "mod lab; use lab::lab; fn main() { lab(); lab::other() }"),
        ("lab/mod.rs", "pub fn lab() {} pub fn other() {}"),
    ]);
    assert_eq!(arrows, ["crate > lab: lab::lab, lab::other"]);
}

#[test]
fn code_for_tests_does_not_count() {
    let arrows = arrows_among(&[
        ("lib.rs", "mod a; mod b; #[cfg(test)] mod missing;"),
        ("a.rs", "pub struct A; #[cfg(all(test, unix))] mod tests { use crate::b::B; } #[test] fn t() { crate::b::B; }"),
        ("b.rs", "pub struct B; impl B { #[cfg(test)] fn t() { crate::b::u() } #[cfg(not(test))] fn u(_: crate::a::A) {} }"),
    ]);
    assert_eq!(arrows, ["b > a: crate::a::A"]);
}

#[test]
fn paths_in_macros_and_attributes_count() {
    let arrows = arrows_among(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "fn f() { assert!(matches!(x, [(crate::b::B, 1)])); } #[serde(with = \"crate::c::text\")] struct S;"),
        // Nothing in the source says that the macro makes the name `B`.
        ("b.rs", "rows! { B } pub(in crate::a) struct C;"),
        ("c.rs", "/// See [`crate::a::S`]\npub mod text { pub fn read() -> std::io::Result<()> {} }"),
    ]);
    assert_eq!(arrows, ["a > b: crate::b::B", "a > c: crate::c::text"]);
}

#[test]
fn paths_of_modules_and_inline_modules_are_followed() {
    let arrows = arrows_among(&[
        (
            "lib.rs",
            "#[cfg(unix)] mod unix; #[cfg(unix)] use unix as arch; #[path = \"elsewhere/two.rs\"] mod two; pub fn f() { arch::g() }",
        ),
        ("unix.rs", "pub fn g() {} mod inner { use super::super::two::Two; mod below; }"),
        ("unix/inner/below.rs", "use super::Two;"),
        ("elsewhere/two.rs", "pub struct Two;"),
    ]);
    assert_eq!(arrows, ["crate > unix: arch::g", "unix > two: super::super::two::Two", "unix::inner::below > two: super::Two",]);
}

#[test]
fn imports_that_lead_to_themselves_end() {
    let arrows = arrows_among(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub use super::b::*; use serde::serde; use crate::a::Nothing;"),
        ("b.rs", "pub use super::a::*; pub use nothing::nothing;"),
    ]);
    assert_eq!(arrows, Vec::<String>::new());
}

#[test]
fn modules_with_what_is_below_them_are_circles_too() {
    let (circles, _) = circles_among(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "mod one; mod two; pub use one::One;"),
        ("a/one.rs", "pub struct One(crate::b::three::Three);"),
        ("a/two.rs", "pub struct Two;"),
        ("b.rs", "pub mod three; mod four;"),
        ("b/three.rs", "pub struct Three;"),
        ("b/four.rs", "use crate::a::two::Two; pub struct Four(Two);"),
    ]);
    assert_eq!(circles, [["a", "b"]], "no file is in a circle");
}

#[test]
fn circles_are_told_apart() {
    let arrows = [(0, 1), (1, 2), (1, 3), (2, 0), (3, 4), (4, 5), (5, 3), (5, 4), (6, 6)];
    let found = groups(&arrows.map(|(a, b): (u8, u8)| (a.to_string(), b.to_string())).into());
    assert_eq!(found, [vec!["0", "1", "2"], vec!["3", "4", "5"]]);
}

#[test]
fn every_package_below_the_root_is_found() {
    let found = packages(&crate::folders::project_folder()).unwrap();
    let names: Vec<_> = found.iter().filter_map(|folder| folder.file_name()?.to_str()).collect();
    for name in ["analysis", "kernels", "lab", "model", "planner", "xtask"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(packages(&crate::folders::project_folder().join("docs")).is_err());
}

#[test]
fn a_cfg_of_a_system_is_found_outside_of_its_places() {
    let folder = std::env::temp_dir().join(format!("memgauge-systems-{}", std::process::id()));
    let os = "#[cfg(target_os = \"linux\")] use a as system; #[cfg(windows)] use b as system;";
    for (file, text) in [
        ("Cargo.toml", "[target.'cfg(target_os = \"linux\")'.dev-dependencies]\nfuser = \"1\""),
        ("xtask/Cargo.toml", "[target.'cfg(target_os = \"linux\")'.dependencies]\nfuser = \"1\""),
        ("crates/os/src/lib.rs", os),
        ("crates/kernels/src/lib.rs", "#[cfg(target_arch = \"x86_64\")] mod x86_64; fn f() -> bool { cfg!(windows) }"),
        ("crates/windows/src/topology/cpuid.rs", "#[cfg(not(target_arch = \"x86_64\"))] fn f() {}"),
        ("crates/windows/src/cpu.rs", "#[cfg(target_arch = \"x86_64\")] #[cfg(windows)] fn f() {}"),
        ("crates/model/src/lib.rs", os),
        ("crates/model/Cargo.toml", "[target.'cfg(windows)'.dependencies]\na = \"1\""),
        ("src/lib.rs", "// #[cfg(windows)]\nfn f() -> &'static str { if cfg!(target_os = \"linux\") { \"#[cfg(unix)]\" } else { \"\" } }"),
        ("src/a.rs", "#[cfg(test)] mod tests { #[cfg_attr(unix, ignore)] #[test] fn windows() {} }"),
        ("target/debug/built.rs", os),
    ] {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let found = systems::misplaced(&folder).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(
        found,
        [
            "crates/model/Cargo.toml: windows",
            "crates/model/src/lib.rs: target_os",
            "crates/model/src/lib.rs: windows",
            "crates/windows/src/cpu.rs: target_arch",
            "src/a.rs: unix",
            "src/lib.rs: target_os",
        ]
    );
    assert_eq!(systems::misplaced(&crate::folders::project_folder()).unwrap(), [] as [String; 0], "this workspace keeps the rule");
}
