//! `memgauge quick` and the earlier checks of this machine: kept without being asked, compared with, left out.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output};

use memgauge_model::result::Report;

use crate::scheduled::{NOBODY, is_root};
use crate::support::simulated;
use crate::support::{copy_program, temporary, text, unwrapped};

/// A check on the simulated machine, whose checks are kept in a folder.
fn check(folder: &Path, more: &str) -> Output {
    let mut command = simulated::program("memgauge");
    command.env("MEMGAUGE_STATE", folder).arg("quick").args(more.split_whitespace());
    command.output().unwrap()
}

/// The names of the results that are kept.
fn kept(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.retain(|name| name.ends_with("Z.json"));
    names.sort_unstable();
    names
}

fn histories(output: &Output) -> usize {
    let report: Report = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(&output.stderr)));
    report.health.unwrap().compared_with.iter().filter(|with| *with == "history").count()
}

#[test]
fn checks_are_kept_and_the_next_one_is_compared_with_them() {
    let folder = temporary("history").join("state");
    let first = check(&folder, "");
    assert!(text(&first.stderr).contains(&format!("kept in {}", folder.display())), "{}", text(&first.stderr));
    let second = check(&folder, "");
    assert!(!text(&second.stderr).contains("kept"), "said once: {}", text(&second.stderr));
    let page = unwrapped(text(&second.stdout));
    assert!(page.contains("; as fast as in an earlier check of "), "{page}");
    assert!(page.contains("compared with earlier checks: "), "{page}");
    let third = check(&folder, "-q");
    assert!(text(&third.stdout).contains("; as fast as in 2 earlier checks since "), "{}", text(&third.stdout));
    assert_eq!((kept(&folder).len(), text(&third.stderr)), (3, ""));
    assert_eq!(fs::read_link(folder.join("latest.json")).unwrap().to_str(), kept(&folder).last().map(String::as_str));
}

#[test]
fn checks_are_left_out_where_they_are_not_wanted() {
    let folder = temporary("no-history").join("state");
    check(&folder, "-q");
    assert_eq!(kept(&folder).len(), 1);
    assert_eq!(histories(&check(&folder, "--format json")), 1);
    assert_eq!(histories(&check(&folder, "--format json --no-history")), 0);
    assert_eq!(histories(&check(Path::new(""), "--format json")), 0, "an empty name");
    check(&folder, "--plan");
    assert_eq!(kept(&folder).len(), 2, "neither of these is kept");
    // A folder that was named is a history, too.
    let named = check(&folder, &format!("--format json --state {}", folder.display()));
    assert_eq!((histories(&named), kept(&folder).len()), (1, 3));
}

#[test]
fn a_check_that_cannot_be_kept_is_worth_as_much() {
    let folder = temporary("not-kept");
    // A file is in the place of the folder.
    let file = folder.join("file");
    fs::write(&file, "").unwrap();
    let check_in = |path: &Path, more: &str| {
        let output = check(path, more);
        assert!(output.status.code().is_some_and(|code| code <= 2), "{output:?}");
        text(&output.stderr).to_owned()
    };
    let said = check_in(&file, "");
    assert!(said.contains("earlier checks are left out, and this one is not kept: ") && said.contains("file"), "{said}");
    assert_eq!(check_in(&file, "-q"), "", "a line was asked for");
    let open = folder.join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(check_in(&open, "").contains("everybody may write"));
    // What is no result, or a part of one, is passed over.
    let torn = folder.join("torn");
    check(&torn, "-q");
    fs::write(torn.join("2026-11-01T03-00-00.000Z.json"), "{\"schema_version\":").unwrap();
    assert_eq!(histories(&check(&torn, "--format json")), 1);
}

#[test]
fn a_user_has_a_folder_of_their_own() {
    // Others do not reach the program's own folder.
    let home = Path::new("/tmp").join(format!("memgauge-history-{}", std::process::id()));
    fs::create_dir(&home).unwrap();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o777)).unwrap();
    let copy = home.join("simulated");
    copy_program(&simulated::path(), &copy);
    let check = |variable: &str, path: &Path| {
        let mut command = Command::new(&copy);
        command.arg0("memgauge").args(["quick", "-q"]).env_remove("MEMGAUGE_STATE").env_remove("XDG_STATE_HOME").env(variable, path);
        // Root has a folder for all of them.
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        let output = command.output().unwrap();
        assert!(output.status.code().is_some_and(|code| code <= 2), "{output:?}");
    };
    check("XDG_STATE_HOME", &home.join("states"));
    assert_eq!(kept(&home.join("states/memgauge")).len(), 1);
    check("HOME", &home.join("own"));
    assert_eq!(kept(&home.join("own/.local/state/memgauge")).len(), 1);
    // A relative path counts for nothing.
    check("XDG_STATE_HOME", Path::new("relative"));
    assert!(!Path::new("relative").exists());
    fs::remove_dir_all(home).unwrap();
}
