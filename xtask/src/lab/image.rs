//! The kernel and the root image of a guest: the kernel as QEMU starts it fastest, the image in memory with memgauge, the tests and the modules.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use memgauge_lab::Arch;
use memgauge_lab::contract::{KERNEL_TESTS, MODULES};

use crate::programs::run;

/// Modules of every guest: the folder shared with the host.
const EVERYWHERE: &[&str] = &["virtio_pci", "9pnet_virtio", "9p"];

/// The kernel of an unpacked package as a file that QEMU boots at once.
///
/// # Errors
/// When its compression is unknown.
pub(crate) fn kernel(package: &Path, release: &str, arch: Arch) -> Result<PathBuf> {
    let packed = package.join("boot").join(format!("vmlinuz-{release}"));
    let packed = if packed.exists() { packed } else { modules_folder(package, release).join("vmlinuz") };
    if arch == Arch::Aarch64 {
        return Ok(packed);
    }
    // Unpacking itself under emulation would take the kernel longer than everything else (3 s): QEMU boots the ELF file inside.
    let unpacked = package.join("vmlinux");
    if !unpacked.exists() {
        let bytes = fs::read(&packed).with_context(|| format!("cannot read {}", packed.display()))?;
        let elf = PACKERS
            .iter()
            .find_map(|(magic, program)| unpack(&bytes, magic, program))
            .with_context(|| format!("no kernel found in {}: it is packed in a way that is not known here", packed.display()))?;
        let partial = package.join("vmlinux.partial");
        fs::write(&partial, elf)?;
        fs::rename(partial, &unpacked)?;
    }
    Ok(unpacked)
}

/// The folder of a kernel package's modules. Since Linux 7 it has the kernel, too.
fn modules_folder(package: &Path, release: &str) -> PathBuf {
    let folders = ["lib/modules", "usr/lib/modules"].map(|folder| package.join(folder).join(release));
    if folders[0].exists() { folders[0].clone() } else { folders[1].clone() }
}

/// How kernels are packed: the first bytes, and a command that unpacks it and ignores anything after it.
const PACKERS: [(&[u8], &[&str]); 2] =
    [(b"\xfd7zXZ\0", &["xz", "-dc", "--single-stream"]), (b"\x28\xb5\x2f\xfd", &["zstd", "-dc", "--no-progress", "-q"])];

fn unpack(bytes: &[u8], magic: &[u8], program: &[&str]) -> Option<Vec<u8>> {
    let starts = bytes.windows(magic.len()).enumerate().filter(|(_, w)| *w == magic).map(|(at, _)| at);
    starts.filter_map(|at| filter(program, &bytes[at..])).find(|out| out.starts_with(b"\x7fELF"))
}

/// The output of a program for these bytes. The program may complain about trailing bytes.
fn filter(program: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    let mut command = Command::new(program[0]);
    command.args(&program[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let mut stdin = child.stdin.take()?;
    std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output().ok().map(|output| output.stdout)
    })
}

/// The contents of an image besides the modules.
pub(crate) struct Contents<'a> {
    /// The released program.
    pub(crate) memgauge: &'a Path,
    /// The tests, as the guest's first process.
    pub(crate) lab: &'a Path,
    /// The folder of an unpacked package with `bin/busybox`.
    pub(crate) busybox: &'a Path,
    /// Test programs of the kernels crate.
    pub(crate) kernel_tests: &'a [PathBuf],
    /// Programs for the job's tests.
    pub(crate) tools: &'a [PathBuf],
}

/// Packs the root image of a machine with these modules into `image`, by way of the folder `root`, which is made anew.
///
/// # Errors
/// When a part is missing.
pub(crate) fn build(root: &Path, image: &Path, modules: &[&str], kernel: (&Path, &str), contents: &Contents<'_>) -> Result<()> {
    let _ = fs::remove_dir_all(root);
    for folder in ["bin", "dev", "proc", "sys", "tmp", "modules", "tools"] {
        fs::create_dir_all(root.join(folder))?;
    }
    copy(contents.lab, &root.join("init"))?;
    copy(contents.memgauge, &root.join("bin/memgauge"))?;
    copy(&contents.busybox.join("bin/busybox"), &root.join("bin/busybox"))?;
    symlink("busybox", root.join("bin/sh"))?;
    let tests = root.join(&KERNEL_TESTS[1..]);
    fs::create_dir_all(&tests)?;
    for test in contents.kernel_tests {
        copy(test, &tests.join(test.file_name().context("a test without name")?))?;
    }
    for tool in contents.tools {
        add_tool(root, tool)?;
    }
    let mut order = String::new();
    for path in Modules::find(kernel.0, kernel.1)?.in_order(EVERYWHERE.iter().chain(modules))? {
        let name = path.file_name().and_then(|n| n.to_str()).context("a module without name")?;
        match name.strip_suffix(".xz") {
            Some(plain) => {
                let bytes = filter(&["xz", "-dc"], &fs::read(&path)?).context("xz")?;
                fs::write(root.join("modules").join(plain), bytes)?;
                order += &format!("/modules/{plain}\n");
            }
            None => {
                copy(&path, &root.join("modules").join(name))?;
                order += &format!("/modules/{name}\n");
            }
        }
    }
    fs::write(root.join(&MODULES[1..]), order)?;
    pack(root, image)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

/// Where a program of this machine is.
///
/// # Errors
/// When it is not installed.
pub(crate) fn installed(tool: &str) -> Result<PathBuf> {
    let path = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].iter().map(|d| Path::new(d).join(tool)).find(|p| p.exists());
    path.with_context(|| format!("the program {tool} is not installed here"))
}

/// A program, with the shared libraries of this machine that it needs, at the same places.
fn add_tool(root: &Path, tool: &Path) -> Result<()> {
    copy(tool, &root.join("tools").join(tool.file_name().context("a tool without name")?))?;
    for word in run(Command::new("ldd").arg(tool))?.split_whitespace().filter(|w| w.starts_with('/')) {
        let library = root.join(&word[1..]);
        fs::create_dir_all(library.parent().context("a library without folder")?)?;
        copy(Path::new(word), &library)?;
    }
    Ok(())
}

/// Packs a folder in the format that the kernel unpacks.
fn pack(root: &Path, image: &Path) -> Result<()> {
    let mut names = Vec::new();
    list(root, Path::new("."), &mut names)?;
    let partial = image.with_extension("partial");
    let mut cpio = Command::new("cpio");
    cpio.args(["--quiet", "-o", "-H", "newc", "-R", "0:0"]).current_dir(root).stdin(Stdio::piped()).stdout(fs::File::create(&partial)?);
    let mut child = cpio.spawn().context("cannot start cpio")?;
    child.stdin.take().context("cpio has no input")?.write_all(names.join("\n").as_bytes())?;
    ensure!(child.wait()?.success(), "cpio could not pack {}", root.display());
    fs::rename(partial, image)?;
    Ok(())
}

fn list(root: &Path, below: &Path, names: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let name = below.join(entry.file_name());
        names.push(name.to_str().with_context(|| format!("{} is not UTF-8", name.display()))?.to_owned());
        if entry.file_type()?.is_dir() {
            list(root, &name, names)?;
        }
    }
    Ok(())
}

/// The modules of a kernel, by name.
struct Modules {
    files: BTreeMap<String, PathBuf>,
    builtin: BTreeSet<String>,
}

impl Modules {
    fn find(package: &Path, release: &str) -> Result<Self> {
        let folder = modules_folder(package, release);
        let mut files = BTreeMap::new();
        let mut folders = vec![folder.join("kernel")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if let Some(name) = module_name(&path) {
                    files.insert(name, path);
                }
            }
        }
        let builtin = fs::read_to_string(folder.join("modules.builtin")).unwrap_or_default();
        Ok(Self { files, builtin: builtin.lines().filter_map(|l| module_name(Path::new(l))).collect() })
    }

    /// The files of these modules and of all that they depend on, those first that others need.
    fn in_order<'a>(&self, names: impl Iterator<Item = &'a &'a str>) -> Result<Vec<PathBuf>> {
        let (mut order, mut seen) = (Vec::new(), BTreeSet::new());
        for name in names {
            self.add(name, &mut order, &mut seen)?;
        }
        Ok(order)
    }

    fn add(&self, name: &str, order: &mut Vec<PathBuf>, seen: &mut BTreeSet<String>) -> Result<()> {
        let name = name.replace('-', "_");
        if self.builtin.contains(&name) || !seen.insert(name.clone()) {
            return Ok(());
        }
        let Some(path) = self.files.get(&name) else { bail!("this kernel has no module {name}") };
        for needed in depends(path)? {
            self.add(&needed, order, seen)?;
        }
        order.push(path.clone());
        Ok(())
    }
}

fn module_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    Some(name.strip_suffix(".xz").unwrap_or(name).strip_suffix(".ko")?.replace('-', "_"))
}

/// The names in a module's own `depends=` (section `.modinfo`): a package has no `modules.dep`, which is made when it is installed.
fn depends(path: &Path) -> Result<Vec<String>> {
    let mut bytes = fs::read(path)?;
    if path.extension().is_some_and(|e| e == "xz") {
        bytes = filter(&["xz", "-dc"], &bytes).context("xz")?;
    }
    let key = b"\0depends=";
    let at =
        bytes.windows(key.len()).position(|w| w == key).with_context(|| format!("{} does not say what it depends on", path.display()))?;
    let rest = &bytes[at + key.len()..];
    let text = String::from_utf8_lossy(&rest[..rest.iter().position(|&b| b == 0).unwrap_or(0)]).into_owned();
    Ok(text.split(',').filter(|n| !n.is_empty()).map(str::to_owned).collect())
}
