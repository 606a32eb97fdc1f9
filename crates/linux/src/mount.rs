//! The mount table of this process.

use crate::tree::Tree;

/// A line of the mount table.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) id: String,
    /// Major and minor number of the device, as in `98:0`.
    pub(crate) device: String,
    /// The part of the file system that is mounted.
    pub(crate) root: String,
    pub(crate) point: String,
    /// The name of the file system.
    pub(crate) kind: String,
    /// The source of the mount, such as `/dev/pmem0`.
    pub(crate) source: String,
    /// The options of the file system.
    pub(crate) options: String,
}

/// The mounts from `mountinfo`, or from `mounts` in recordings that have only that. Those have no id and no device.
pub(crate) fn read(tree: Tree<'_>) -> Vec<Mount> {
    let mountinfo = tree.text("proc/self/mountinfo").unwrap_or_default();
    let full: Vec<Mount> = mountinfo.lines().filter_map(parse_mountinfo).collect();
    if !full.is_empty() {
        return full;
    }
    let text = ["proc/self/mounts", "proc/mounts"].iter().find_map(|file| tree.text(file)).unwrap_or_default();
    text.lines().filter_map(parse_mounts).collect()
}

/// `36 35 98:0 /root /point opts tag:1 - kind source superopts`
fn parse_mountinfo(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let (mut before, mut after) = (before.split(' '), after.split(' '));
    Some(Mount {
        id: before.next()?.to_owned(),
        device: before.nth(1)?.to_owned(),
        root: unescape(before.next()?),
        point: unescape(before.next()?),
        kind: after.next()?.to_owned(),
        source: after.next()?.to_owned(),
        options: after.next().unwrap_or_default().to_owned(),
    })
}

/// `source /point kind opts 0 0`
fn parse_mounts(line: &str) -> Option<Mount> {
    let mut words = line.split(' ').skip(1);
    let (point, kind, options) = (words.next()?, words.next()?, words.next()?);
    Some(Mount { root: "/".to_owned(), point: unescape(point), kind: kind.to_owned(), options: options.to_owned(), ..Mount::default() })
}

/// Replaces escapes such as `\040`. The kernel escapes spaces, tabs, newlines and backslashes.
fn unescape(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|octal| u8::from_str_radix(octal, 8).ok()).filter(u8::is_ascii);
        match code {
            Some(code) => {
                plain.push(code as char);
                plain.push_str(&part[3..]);
            }
            None => {
                plain.push('\\');
                plain.push_str(part);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_mountinfo() {
        let mount = parse_mountinfo("35 31 0:32 /docker/x /sys/fs/cg\\040roup rw,relatime shared:9 - cgroup cgroup rw,memory").unwrap();
        assert_eq!((mount.root.as_str(), mount.point.as_str(), mount.kind.as_str()), ("/docker/x", "/sys/fs/cg roup", "cgroup"));
        assert_eq!(parse_mountinfo("35 31"), None);
        assert_eq!(unescape("a\\134b\\9\\é"), "a\\b\\9\\é");
        let pmem = parse_mountinfo("36 35 259:3 /sub /mnt\\040x rw,noatime master:1 shared:2 - ext4 /dev/pmem0 rw,dax=always").unwrap();
        assert_eq!((pmem.id.as_str(), pmem.device.as_str(), pmem.source.as_str()), ("36", "259:3", "/dev/pmem0"));
        let shm = parse_mountinfo("40 22 0:25 / /dev/shm rw - tmpfs tmpfs rw,size=64k").unwrap();
        assert_eq!((shm.id.as_str(), shm.kind.as_str()), ("40", "tmpfs"));
    }
}
