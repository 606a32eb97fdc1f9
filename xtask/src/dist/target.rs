//! The instruction sets of a release, and what each is called where.

use anyhow::{Result, bail};

/// An instruction set.
#[derive(Debug)]
pub(super) struct Target {
    /// As `uname -m` says it.
    pub(super) name: &'static str,
    /// Rust's names, the preferred one first, each with its linker.
    pub(super) builds: &'static [Build],
    pub(super) deb: &'static str,
    pub(super) rpm: &'static str,
    /// In an image: GOARCH.
    pub(super) oci: &'static str,
    /// Tags of wheels: a static program needs no C library, so it runs on the oldest glibc and on musl.
    pub(super) wheel: &'static str,
}

/// A way to build static programs.
#[derive(Debug)]
pub(super) struct Build {
    pub(super) triple: &'static str,
    pub(super) linker: &'static str,
    /// What it needs besides Rust, as a command.
    pub(super) needs: Option<&'static str>,
}

/// With musl and Rust's own linker: no C toolchain is needed.
const fn musl(triple: &'static str) -> Build {
    Build { triple, linker: "rust-lld", needs: None }
}

const TARGETS: &[Target] = &[
    Target {
        name: "x86_64",
        builds: &[musl("x86_64-unknown-linux-musl")],
        deb: "amd64",
        rpm: "x86_64",
        oci: "amd64",
        wheel: "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    },
    Target {
        name: "aarch64",
        builds: &[musl("aarch64-unknown-linux-musl")],
        deb: "arm64",
        rpm: "aarch64",
        oci: "arm64",
        wheel: "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
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
            },
        ],
        deb: "riscv64",
        rpm: "riscv64",
        oci: "riscv64",
        // The oldest glibc of this instruction set that images of manylinux have.
        wheel: "manylinux_2_31_riscv64.musllinux_1_1_riscv64",
    },
];

impl Target {
    /// Whether its programs run on this machine.
    pub(super) fn runs_here(&self) -> bool {
        self.name == std::env::consts::ARCH
    }
}

/// Those with these names, or all.
pub(super) fn chosen(names: &[String]) -> Result<Vec<&'static Target>> {
    if let Some(unknown) = names.iter().find(|name| !TARGETS.iter().any(|target| target.name == **name)) {
        bail!("--arch: '{unknown}' is none of {}", TARGETS.iter().map(|target| target.name).collect::<Vec<_>>().join(", "));
    }
    Ok(TARGETS.iter().filter(|target| names.is_empty() || names.iter().any(|name| name == target.name)).collect())
}
