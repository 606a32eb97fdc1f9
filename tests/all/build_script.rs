//! What the build script finds out about the commit, in a clone, in a worktree, and in sources without git.

use std::fs;
use std::path::Path;
use std::process::Command;

use memgauge_testing::not_tested;

#[path = "../../build.rs"]
mod build;

fn git(folder: &Path, line: &str) -> String {
    let mut command = Command::new("git");
    command.current_dir(folder).args(["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]);
    let output = command.args(line.split(' ')).output().unwrap();
    assert!(output.status.success(), "git {line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Watched files all exist, and one of them is another after a commit.
fn follows_commits(folder: &Path) {
    let seen = || {
        let files = build::watched(folder);
        assert!(!files.is_empty() && files.iter().all(|file| file.exists()), "{files:?}");
        files.iter().map(|file| (file.clone(), fs::read(file).ok(), file.metadata().unwrap().modified().unwrap())).collect::<Vec<_>>()
    };
    for _ in 0..2 {
        assert_eq!(build::commit(folder).unwrap(), git(folder, "rev-parse --short=12 HEAD"));
        let before = seen();
        assert_eq!(before, seen(), "nothing to build again");
        git(folder, "commit --quiet --allow-empty -m more");
        assert_ne!(before, seen());
    }
}

#[test]
fn a_build_knows_its_commit_and_asks_for_nothing_that_is_missing() {
    if Command::new("git").arg("--version").output().is_err() {
        not_tested!("git is not installed");
    }
    let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("commit-{}", std::process::id()));
    let _ = fs::remove_dir_all(&all);
    let (clone, worktree, sources) = (all.join("clone"), all.join("worktree"), all.join("clone/vendor/memgauge"));
    fs::create_dir_all(&clone).unwrap();
    git(&clone, "init --quiet");
    git(&clone, "commit --quiet --allow-empty -m first");
    follows_commits(&clone);
    // A clone that was just fetched has its branches in one file.
    git(&clone, "pack-refs --all --prune");
    follows_commits(&clone);
    git(&clone, &format!("worktree add --quiet -b other {}", worktree.display()));
    assert!(worktree.join(".git").is_file());
    follows_commits(&worktree);
    git(&worktree, "checkout --quiet --detach");
    follows_commits(&worktree);
    // Sources in another project's checkout: of an archive, and of a package.
    fs::create_dir_all(&sources).unwrap();
    assert_eq!((build::watched(&sources), build::commit(&sources)), (vec![], None));
    let sha1 = "0123456789abcdef0123456789abcdef01234567";
    fs::write(sources.join(".cargo_vcs_info.json"), format!("{{\n  \"git\": {{\n    \"sha1\": \"{sha1}\"\n  }}\n}}")).unwrap();
    assert_eq!((build::watched(&sources), build::commit(&sources)), (vec![], Some("0123456789ab".to_owned())));
    fs::write(sources.join(".cargo_vcs_info.json"), "{\"git\": {\"sha1\": \"damaged\"}}").unwrap();
    assert_eq!(build::commit(&sources), None);
    fs::remove_dir_all(all).unwrap();
}

#[test]
fn the_version_says_the_commit() {
    let output = Command::new(env!("CARGO_BIN_EXE_memgauge")).arg("--version").output().unwrap();
    let (said, commit) = (String::from_utf8(output.stdout).unwrap(), build::commit(Path::new(env!("CARGO_MANIFEST_DIR"))));
    if commit.is_none() && !said.contains("commit unknown") {
        not_tested!("git told the commit when the program was built, and does not tell it to the user who runs this");
    }
    let commit = commit.unwrap_or_else(|| "commit unknown".into());
    assert_eq!(said, format!("memgauge {} ({commit})\n", env!("CARGO_PKG_VERSION")));
}
