//! Debian's kernels and a shell, fetched by the ordinary package client into a folder of its own and never installed.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use memgauge_lab::{Arch, Release};

use crate::programs::{find_program, run};

/// The mirror to fetch Debian from, unless `MEMGAUGE_LAB_MIRROR` names another one.
const MIRROR: &str = "http://deb.debian.org";
/// Debian's own keys; on other distributions of the package `debian-archive-keyring`.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// The release whose kernels the guests run.
const SUITE: &str = "bookworm";
/// The release after it, whose backports have newer kernels. Other packages of it do not run here.
const NEXT_SUITE: &str = "trixie";

/// Packages of one architecture and release, unpacked below a folder.
pub(crate) struct Packages {
    folder: PathBuf,
    arch: Arch,
    release: Release,
}

impl Packages {
    pub(crate) fn new(cache: &Path, arch: Arch, release: Release) -> Self {
        let name = match release {
            Release::Stable => format!("packages-{arch}"),
            Release::Backports => format!("packages-{arch}-backports"),
            Release::NewKernel => format!("packages-{arch}-new-kernel"),
        };
        Self { folder: cache.join(name), arch, release }
    }

    fn debian_arch(&self) -> &'static str {
        match self.arch {
            Arch::X86_64 => "amd64",
            Arch::Aarch64 => "arm64",
        }
    }

    /// The suite that packages are preferred from.
    fn target(&self) -> Vec<String> {
        let suite = match self.release {
            Release::Stable => return Vec::new(),
            Release::Backports => SUITE,
            Release::NewKernel => NEXT_SUITE,
        };
        vec!["-t".to_owned(), format!("{suite}-backports")]
    }

    /// The folder of this package's files. The package is fetched and unpacked if it is not there yet.
    ///
    /// # Errors
    /// When it cannot be fetched.
    pub(crate) fn get(&self, package: &str) -> Result<PathBuf> {
        let unpacked = self.folder.join(package);
        if unpacked.is_dir() {
            return Ok(unpacked);
        }
        self.update()?;
        println!("fetching {package} ({})", self.debian_arch());
        let downloads = self.folder.join("downloads");
        fs::create_dir_all(&downloads)?;
        let download = || {
            let mut apt = self.apt("apt-get");
            run(apt.args(self.target()).args(["-qq", "-o", "Acquire::Retries=3", "download", package]).current_dir(&downloads))
        };
        if download().is_err() {
            // The lists may be older than what the mirror has.
            let _ = fs::remove_file(self.folder.join("apt/updated"));
            self.update()?;
            download()?;
        }
        let prefix = format!("{package}_");
        let deb = fs::read_dir(&downloads)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with(&prefix)))
            .with_context(|| format!("apt-get download {package} left no such file in {}", downloads.display()))?;
        // Complete or not there at all: a run that is stopped half way must not leave half a package behind.
        let partial = self.folder.join(format!("{package}.partial"));
        let _ = fs::remove_dir_all(&partial);
        run(Command::new("dpkg").arg("-x").arg(&deb).arg(&partial))?;
        fs::rename(&partial, &unpacked)?;
        fs::remove_file(deb)?;
        Ok(unpacked)
    }

    /// The folder of the current kernel, and its release as `uname -r` says it.
    ///
    /// # Errors
    /// When it cannot be fetched.
    pub(crate) fn kernel(&self) -> Result<(PathBuf, String)> {
        // Any kernel that is there will do: a new one appears every few weeks, and fetching each would need the network.
        let prefix = "linux-image-";
        let here = fs::read_dir(&self.folder).into_iter().flatten().filter_map(|e| e.ok()?.file_name().into_string().ok());
        let here = here.filter(|n| n.starts_with(prefix) && !n.ends_with(".partial")).max();
        let name = if let Some(name) = here {
            name
        } else {
            self.update()?;
            let mut cache = self.apt("apt-cache");
            cache.args(self.target());
            // The package without version depends on the current one.
            let text = run(cache.args(["depends", &format!("{prefix}{}", self.debian_arch())]))?;
            let mut names = text.lines().filter_map(|l| l.trim().strip_prefix("Depends: "));
            names.find(|name| name.starts_with(prefix)).context("apt-cache names no kernel")?.to_owned()
        };
        // Before a signed kernel appears in backports, its unsigned twin does.
        let (package, release) = (self.get(&name)?, name.trim_start_matches(prefix).to_owned());
        if !package.join("boot").join(format!("vmlinuz-{release}")).exists() {
            self.put_together(&package, &release)?;
        }
        Ok((package, release))
    }

    /// Since Linux 7, the package of a kernel is empty and depends on its parts: copies them to where it is unpacked.
    fn put_together(&self, package: &Path, release: &str) -> Result<()> {
        if package.join("usr/lib/modules").join(release).join("vmlinuz").exists() {
            return Ok(());
        }
        // The kernel last: it shows that all others are there.
        for part in ["base", "modules", "binary"] {
            let part = self.get(&format!("linux-{part}-{release}"))?;
            run(Command::new("cp").arg("-a").arg(part.join(".")).arg(package))?;
            fs::remove_dir_all(part)?;
        }
        Ok(())
    }

    /// QEMU and the folder of its firmware: the installed one, or that of the release, which runs from where it was unpacked.
    ///
    /// # Errors
    /// When it cannot be fetched.
    pub(crate) fn qemu(&self, (program, package): (&str, &str)) -> Result<(PathBuf, Vec<PathBuf>)> {
        if self.release != Release::Backports {
            return Ok((find_program(program).with_context(|| format!("{program} is not installed"))?, Vec::new()));
        }
        let (data, bios, qemu) = (self.get("qemu-system-data")?, self.get("seabios")?, self.get(package)?);
        Ok((qemu.join("usr/bin").join(program), vec![data.join("usr/share/qemu"), bios.join("usr/share/seabios")]))
    }

    /// Brings the lists of packages, in a folder of our own: the system's are not touched and no other architecture is added to it.
    fn update(&self) -> Result<()> {
        let state = self.folder.join("apt");
        if state.join("updated").exists() {
            return Ok(());
        }
        for folder in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(state.join(folder))?;
        }
        if !Path::new(KEYRING).exists() {
            bail!("{KEYRING} is missing; install it with: apt-get install debian-archive-keyring");
        }
        let mirror = std::env::var("MEMGAUGE_LAB_MIRROR").unwrap_or_else(|_| MIRROR.into());
        let line = |path: &str, suite: String| format!("deb [signed-by={KEYRING}] {mirror}/{path} {suite} main\n");
        let mut sources = line("debian", SUITE.into()) + &line("debian-security", format!("{SUITE}-security"));
        match self.release {
            Release::Stable => {}
            Release::Backports => sources += &line("debian", format!("{SUITE}-backports")),
            Release::NewKernel => sources += &line("debian", format!("{NEXT_SUITE}-backports")),
        }
        fs::write(state.join("sources.list"), sources)?;
        run(self.apt("apt-get").args(["-qq", "-o", "Acquire::Retries=3", "update"]))?;
        fs::write(state.join("updated"), "")?;
        Ok(())
    }

    fn apt(&self, program: &str) -> Command {
        let state = self.folder.join("apt");
        let mut command = Command::new(program);
        let option = |name: &str, value: &dyn AsRef<OsStr>| {
            let mut text = std::ffi::OsString::from(format!("{name}="));
            text.push(value);
            text
        };
        let arch = self.debian_arch();
        for setting in [
            option("Dir::State", &state),
            option("Dir::State::status", &"/dev/null"),
            option("Dir::Cache", &state.join("cache")),
            option("Dir::Etc::SourceList", &state.join("sources.list")),
            option("Dir::Etc::SourceParts", &"/dev/null"),
            option("APT::Architecture", &arch),
            option("APT::Architectures", &arch),
            // Ours are the folders; another user could not write there.
            option("APT::Sandbox::User", &"root"),
        ] {
            command.arg("-o").arg(setting);
        }
        command
    }
}
