//! Programs of Windows (Microsoft's PE format, of 64 bits): what they need, and when they say that they were linked.

use anyhow::{Context, Result, ensure};

/// Libraries that are part of every Windows since version 10. Those whose names begin with `api-ms-win-` are names of others of these.
const SYSTEM: &[&str] = &[
    "advapi32.dll",
    "bcrypt.dll",
    "bcryptprimitives.dll",
    "kernel32.dll",
    "kernelbase.dll",
    "msvcrt.dll",
    "ntdll.dll",
    "pdh.dll",
    "powrprof.dll",
    "psapi.dll",
    "ucrtbase.dll",
    "userenv.dll",
    "winmm.dll",
    "ws2_32.dll",
];

/// The directories of a header: imports, and imports that are loaded when they are first called; bytes of an entry, and where in it the name
/// of the library is.
const IMPORTS: [(usize, usize, usize); 2] = [(1, 20, 12), (13, 32, 4)];

/// A program.
pub(super) struct Program<'a> {
    bytes: &'a [u8],
    /// Where the header of the file is.
    header: usize,
}

impl<'a> Program<'a> {
    /// # Errors
    /// When it is none for x86-64.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self> {
        ensure!(bytes.starts_with(b"MZ"), "it does not begin as a program of Windows does");
        let signature = number(bytes, 0x3c, 4)?;
        ensure!(
            bytes.get(signature..signature.saturating_add(4)) == Some(b"PE\0\0".as_slice()),
            "it has no header of a program of Windows"
        );
        let program = Self { bytes, header: signature + 4 };
        ensure!(number(bytes, program.header, 2)? == 0x8664, "it is not for x86-64");
        ensure!(number(bytes, program.optional(), 2)? == 0x20b, "it is not of 64 bits");
        Ok(program)
    }

    /// Seconds since 1970; 0 where it does not say.
    ///
    /// # Errors
    /// When it ends too early.
    pub(super) fn linked_at(&self) -> Result<usize> {
        number(self.bytes, self.header + 4, 4)
    }

    /// The libraries that it needs, in small letters, which are not part of Windows.
    ///
    /// # Errors
    /// When its tables lead out of it.
    pub(super) fn foreign_libraries(&self) -> Result<Vec<String>> {
        let foreign = |name: &String| !name.starts_with("api-ms-win-") && !SYSTEM.contains(&name.as_str());
        Ok(self.libraries()?.into_iter().filter(foreign).collect())
    }

    /// The libraries that it needs, in small letters.
    fn libraries(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        let directories = number(self.bytes, self.optional() + 108, 4)?;
        for (directory, size, name) in IMPORTS.into_iter().filter(|(directory, ..)| *directory < directories) {
            let table = number(self.bytes, self.optional() + 112 + 8 * directory, 4)?;
            if table == 0 {
                continue;
            }
            let mut entry = self.place(table)?;
            // An entry without a name is the last one. Each step goes on in the file, so this ends.
            loop {
                let at = number(self.bytes, entry + name, 4)?;
                if at == 0 {
                    break;
                }
                let text = self.bytes.get(self.place(at)?..).context("a name is not in the file")?;
                let end = text.iter().position(|byte| *byte == 0).context("a name has no end")?;
                names.push(String::from_utf8_lossy(&text[..end]).to_ascii_lowercase());
                entry += size;
            }
        }
        Ok(names)
    }

    /// A section by its name, of up to eight letters.
    ///
    /// # Errors
    /// When its tables lead out of it.
    pub(super) fn section(&self, name: &str) -> Result<Option<&'a [u8]>> {
        let sections = self.optional() + number(self.bytes, self.header + 16, 2)?;
        for i in 0..number(self.bytes, self.header + 2, 2)? {
            let header = sections + 40 * i;
            let named = self.bytes.get(header..header + 8).context("a section has no name")?;
            if named.iter().copied().take_while(|byte| *byte != 0).eq(name.bytes()) {
                let (size, data) = (number(self.bytes, header + 16, 4)?, number(self.bytes, header + 20, 4)?);
                return self.bytes.get(data..data + size).context("a section is not in the file").map(Some);
            }
        }
        Ok(None)
    }

    /// Where in the file is what is loaded to this address.
    fn place(&self, address: usize) -> Result<usize> {
        let sections = self.optional() + number(self.bytes, self.header + 16, 2)?;
        for i in 0..number(self.bytes, self.header + 2, 2)? {
            let field = |at: usize| number(self.bytes, sections + 40 * i + at, 4);
            let (begin, size, data) = (field(12)?, field(16)?, field(20)?);
            if let Some(inside) = address.checked_sub(begin).filter(|inside| *inside < size) {
                return Ok(data + inside);
            }
        }
        Err(anyhow::anyhow!("address {address:#x} is in no section"))
    }

    /// Where the header is that only programs have.
    const fn optional(&self) -> usize {
        self.header + 20
    }
}

/// A number of up to four bytes, least significant first.
fn number(bytes: &[u8], at: usize, size: usize) -> Result<usize> {
    let bytes = bytes.get(at..at.saturating_add(size)).with_context(|| format!("it ends before byte {at}"))?;
    Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program with one section, loaded to 0x1000, in which are both tables of imports and the names.
    fn program(imported: &[&str], delayed: &[&str]) -> Vec<u8> {
        const SECTION: usize = 0x200;
        let mut bytes = vec![0; SECTION];
        let mut put = |at: usize, value: u32, size: usize| bytes[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
        put(0, u32::from_le_bytes(*b"MZ\0\0"), 2);
        put(0x3c, 0x80, 4);
        put(0x80, u32::from_le_bytes(*b"PE\0\0"), 4);
        put(0x84, 0x8664, 2);
        put(0x86, 1, 2); // sections
        put(0x88, 7, 4); // time
        put(0x94, 112 + 16 * 8, 2); // bytes of the optional header
        put(0x98, 0x20b, 2);
        put(0x98 + 108, 16, 4); // directories
        let delayed_at = 0x1000 + 20 * (imported.len() + 1);
        put(0x98 + 112 + 8, 0x1000, 4);
        put(0x98 + 112 + 13 * 8, delayed_at as u32, 4);
        let section = 0x98 + 112 + 16 * 8;
        put(section, u32::from_le_bytes(*b".tex"), 4);
        put(section + 4, u32::from(b't'), 4);
        put(section + 12, 0x1000, 4);
        put(section + 16, 0x400, 4);
        put(section + 20, SECTION as u32, 4);
        let mut tables = vec![0; 0x400];
        let mut text = 0x200;
        let entries = imported.iter().enumerate().map(|(i, name)| (20 * i + 12, name));
        let later = delayed.iter().enumerate().map(|(i, name)| (delayed_at - 0x1000 + 32 * i + 4, name));
        for (at, name) in entries.chain(later) {
            tables[at..at + 4].copy_from_slice(&(0x1000 + text as u32).to_le_bytes());
            tables[text..text + name.len()].copy_from_slice(name.as_bytes());
            text += name.len() + 1;
        }
        bytes.extend(tables);
        bytes
    }

    #[test]
    fn libraries_are_read_and_foreign_ones_named() {
        let own = program(&["KERNEL32.dll", "api-ms-win-core-synch-l1-2-0.dll", "msvcrt.dll"], &["WINMM.dll"]);
        let own = Program::read(&own).unwrap();
        assert_eq!(own.libraries().unwrap(), ["kernel32.dll", "api-ms-win-core-synch-l1-2-0.dll", "msvcrt.dll", "winmm.dll"]);
        assert!(own.foreign_libraries().unwrap().is_empty());
        assert_eq!(own.linked_at().unwrap(), 7);
        let other = program(&["KERNEL32.dll", "libgcc_s_seh-1.dll"], &["libwinpthread-1.dll"]);
        assert_eq!(Program::read(&other).unwrap().foreign_libraries().unwrap(), ["libgcc_s_seh-1.dll", "libwinpthread-1.dll"]);
        let whole = program(&["KERNEL32.dll"], &[]);
        let section = |name: &str| Program::read(&whole).unwrap().section(name).unwrap();
        assert_eq!((section(".text").map(<[u8]>::len), section(".tex"), section(".textual")), (Some(0x400), None, None));
        let none = program(&[], &[]);
        assert!(Program::read(&none).unwrap().libraries().unwrap().is_empty());
    }

    #[test]
    fn what_is_cut_off_or_something_else_is_an_error() {
        let whole = program(&["KERNEL32.dll"], &["WINMM.dll"]);
        let read = |bytes: &[u8]| Program::read(bytes).and_then(|program| program.libraries());
        for end in 0..0x200 + 20 {
            assert!(read(&whole[..end]).is_err(), "{end} bytes");
        }
        assert!(Program::read(b"\x7fELF").is_err());
        let mut other = whole.clone();
        other[0x84..0x86].copy_from_slice(&0xaa64_u16.to_le_bytes());
        assert_eq!(Program::read(&other).err().unwrap().to_string(), "it is not for x86-64");
        let mut lost = whole;
        lost[0x98 + 112 + 8..][..4].copy_from_slice(&0x9000_u32.to_le_bytes());
        assert_eq!(read(&lost).unwrap_err().to_string(), "address 0x9000 is in no section");
    }
}
