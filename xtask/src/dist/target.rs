//! The targets of a release, and their names in each kind of package.

use anyhow::{Result, bail};

/// An instruction set of Linux, or another system.
#[derive(Debug)]
pub(super) struct Target {
    /// Of an instruction set of Linux: as `uname -m` says it.
    pub(super) name: &'static str,
    /// Rust's names, the preferred one first, each with its linker.
    pub(super) builds: &'static [Build],
    pub(super) system: System,
}

/// The system that the programs run on.
#[derive(Debug)]
pub(super) enum System {
    Linux(Names),
    /// A zip of programs for x86-64. A whole release leaves it out if its linker is not available.
    Windows,
}

/// The names of an instruction set in packages of Linux.
#[derive(Debug)]
pub(super) struct Names {
    pub(super) deb: &'static str,
    pub(super) rpm: &'static str,
    /// In an image: GOARCH.
    pub(super) oci: &'static str,
    /// Tags of wheels: a static program needs no C library, so it runs on the oldest glibc and on musl.
    pub(super) wheel: &'static str,
}

/// A way to build programs that need no library but the system's.
#[derive(Debug)]
pub(super) struct Build {
    pub(super) triple: &'static str,
    pub(super) linker: &'static str,
    /// The command that installs the C toolchain that it needs besides Rust, if it needs one.
    pub(super) needs: Option<&'static str>,
    /// For the linker.
    pub(super) flags: &'static [&'static str],
}

/// With musl and Rust's own linker: no C toolchain is needed.
const fn musl(triple: &'static str) -> Build {
    // Relative relocations are packed: 0.8 MB less.
    Build { triple, linker: "rust-lld", needs: None, flags: &["-zpack-relative-relocs"] }
}

const TARGETS: &[Target] = &[
    Target {
        name: "x86_64",
        builds: &[musl("x86_64-unknown-linux-musl")],
        system: System::Linux(Names {
            deb: "amd64",
            rpm: "x86_64",
            oci: "amd64",
            wheel: "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
        }),
    },
    Target {
        name: "aarch64",
        builds: &[musl("aarch64-unknown-linux-musl")],
        system: System::Linux(Names {
            deb: "arm64",
            rpm: "aarch64",
            oci: "arm64",
            wheel: "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
        }),
    },
    Target {
        name: "riscv64",
        // Not every mirror of Rust has the first; the second links glibc statically.
        builds: &[
            musl("riscv64gc-unknown-linux-musl"),
            Build {
                triple: "riscv64gc-unknown-linux-gnu",
                linker: "riscv64-linux-gnu-gcc",
                needs: Some("apt-get install gcc-riscv64-linux-gnu libc6-dev-riscv64-cross"),
                flags: &[],
            },
        ],
        system: System::Linux(Names {
            deb: "riscv64",
            rpm: "riscv64",
            oci: "riscv64",
            // The oldest glibc of this instruction set that images of manylinux have.
            wheel: "manylinux_2_31_riscv64.musllinux_1_1_riscv64",
        }),
    },
    Target {
        name: "windows",
        // Windows on Arm (aarch64-pc-windows-gnullvm) needs llvm-mingw, which Debian does not have.
        builds: &[Build {
            triple: "x86_64-pc-windows-gnu",
            linker: "x86_64-w64-mingw32-gcc",
            needs: Some("apt-get install gcc-mingw-w64-x86-64"),
            // The header of a program would say when it was linked.
            flags: &["-Wl,--no-insert-timestamp"],
        }],
        system: System::Windows,
    },
];

impl Target {
    /// Whether its programs run on this machine.
    pub(super) fn runs_here(&self) -> bool {
        self.linux().is_some() && self.name == std::env::consts::ARCH
    }

    /// Its names in packages of Linux, if it is a target of Linux.
    pub(super) const fn linux(&self) -> Option<&Names> {
        match &self.system {
            System::Linux(names) => Some(names),
            System::Windows => None,
        }
    }

    /// The end of names for this target, after the version: the names of the archive and its folder.
    pub(super) fn platform(&self) -> String {
        match self.system {
            System::Linux(_) => format!("{}-linux", self.name),
            System::Windows => "x86_64-windows".to_owned(),
        }
    }
}

/// The file name of a program.
pub(super) fn program(name: &str, triple: &str) -> String {
    if is_windows(triple) { format!("{name}.exe") } else { name.to_owned() }
}

/// Whether a target of Rust's is one of Windows.
pub(super) fn is_windows(triple: &str) -> bool {
    triple.contains("-windows-")
}

/// Those with these names, or all.
pub(super) fn chosen(names: &[String]) -> Result<Vec<&'static Target>> {
    if let Some(unknown) = names.iter().find(|name| !TARGETS.iter().any(|target| target.name == **name)) {
        bail!("--arch: '{unknown}' is none of {}", TARGETS.iter().map(|target| target.name).collect::<Vec<_>>().join(", "));
    }
    Ok(TARGETS.iter().filter(|target| names.is_empty() || names.iter().any(|name| name == target.name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_chosen_by_name() {
        let names = |names: &[&str]| -> Vec<&str> {
            chosen(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap().iter().map(|target| target.name).collect()
        };
        assert_eq!(names(&[]), ["x86_64", "aarch64", "riscv64", "windows"]);
        assert_eq!(names(&["x86_64"]), ["x86_64"]);
        assert_eq!(names(&["windows", "aarch64"]), ["aarch64", "windows"]);
        let error = chosen(&["i686".to_owned()]).unwrap_err().to_string();
        assert_eq!(error, "--arch: 'i686' is none of x86_64, aarch64, riscv64, windows");
    }

    /// `cargo deny` checks the crates that are linked into a release.
    #[test]
    fn dependencies_of_every_target_are_checked() {
        let settings: toml::Table = include_str!("../../../deny.toml").parse().unwrap();
        let checked: Vec<&str> = settings["graph"]["targets"].as_array().unwrap().iter().filter_map(toml::Value::as_str).collect();
        let missing = TARGETS.iter().flat_map(|target| target.builds).filter(|build| !checked.contains(&build.triple));
        assert_eq!(missing.map(|build| build.triple).collect::<Vec<_>>(), Vec::<&str>::new());
    }

    #[test]
    fn files_say_the_system() {
        let platforms: Vec<String> = TARGETS.iter().map(Target::platform).collect();
        assert_eq!(platforms, ["x86_64-linux", "aarch64-linux", "riscv64-linux", "x86_64-windows"]);
        assert_eq!(program("mlc", "x86_64-unknown-linux-musl"), "mlc");
        assert_eq!(program("mlc", "x86_64-pc-windows-gnu"), "mlc.exe");
        assert!(TARGETS.iter().all(|target| target.builds.iter().all(|build| is_windows(build.triple) == target.linux().is_none())));
    }
}
