//! The checked-in completions, in the shells that are installed.

use memgauge_testing::not_tested;
use std::path::Path;
use std::process::Command;

/// What a shell prints when it runs a script in the folder of completions; `None` where the shell is not installed.
fn shell(program: &str, options: &[&str], script: &str) -> Option<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/completions");
    let output = Command::new(program).args(options).args(["-c", script]).current_dir(folder).output().ok()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{program}: {}{}", text(&output.stdout), text(&output.stderr));
    Some(text(&output.stdout))
}

#[test]
fn fish_completes_commands_options_and_values() {
    for (typed, completed) in [
        ("memgauge la", "latency"),
        ("memgauge adv", "advise"),
        ("memgauge latency --mat", "--matrix"),
        ("memgauge bandwidth --width sc", "scalar"),
        ("memgauge prefetch com", "compare"),
    ] {
        let script = format!("source memgauge.fish; complete -C '{typed}'");
        let Some(printed) = shell("fish", &["--no-config"], &script) else { not_tested!("the shell is not installed") };
        let words: Vec<&str> = printed.lines().filter_map(|line| line.split('\t').next()).collect();
        assert_eq!(words, [completed], "{typed}");
    }
}

#[test]
fn bash_completes_commands_and_options() {
    for (typed, completed) in [("la", "latency"), ("adv", "advise"), ("latency --mat", "--matrix")] {
        let count = typed.split(' ').count();
        let last = typed.rsplit(' ').next().unwrap();
        let script = format!(
            "source ./memgauge.bash; COMP_WORDS=(memgauge {typed}); COMP_CWORD={count}; _memgauge memgauge '{last}' memgauge; echo \"${{COMPREPLY[@]}}\""
        );
        let Some(printed) = shell("bash", &["--norc"], &script) else { not_tested!("the shell is not installed") };
        assert_eq!(printed.trim(), completed, "{typed}");
    }
}

#[test]
fn zsh_takes_the_completions_of_memgauge() {
    let script = "fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D; echo $_comps[memgauge]; zsh -n _memgauge";
    let Some(printed) = shell("zsh", &["-f"], script) else { not_tested!("the shell is not installed") };
    assert_eq!(printed.trim(), "_memgauge");
}
