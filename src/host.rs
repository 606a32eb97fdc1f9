//! Which host a report comes from: its name, a hash of its machine ID, the user's labels, and an ID of the run.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use hmac::{Hmac, KeyInit, Mac};
use memgauge_model::printable::is_obeyed;
use memgauge_model::result::{Host, MAX_LABEL_BYTES, Run};
use memgauge_os::{clock, host};
use sha2::Sha256;

use crate::exit::UsageError;

/// memgauge's own ID, random once and for all. The machine ID itself must not be published; see machine-id(5).
const APPLICATION_ID: [u8; 16] = [0x6f, 0x1b, 0x3d, 0x52, 0x0c, 0x7e, 0x4a, 0x91, 0xb6, 0x28, 0xe5, 0x94, 0xd7, 0x03, 0x5a, 0xcf];

/// More labels than this are a mistake of a script.
const MAX_LABELS: usize = 64;

/// What a report may say about its host, as the command line asks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct HostIdentity {
    /// Leave out the hostname and the machine ID.
    withheld: bool,
    labels: BTreeMap<String, String>,
}

impl HostIdentity {
    /// # Errors
    /// When a key occurs twice, two keys get one name in OpenMetrics, or there are too many labels.
    pub(crate) fn new(withheld: bool, labels: Vec<Label>) -> Result<Self, UsageError> {
        if labels.len() > MAX_LABELS {
            return Err(UsageError(format!("--label: there are {} labels; at most {MAX_LABELS} are allowed", labels.len())));
        }
        let mut identity = Self { withheld, labels: BTreeMap::new() };
        for Label { key, value } in labels {
            if identity.labels.insert(key.clone(), value).is_some() {
                return Err(UsageError(format!("--label: the key '{key}' is given twice")));
            }
        }
        let length: usize = identity.labels.iter().map(|(key, value)| key.len() + value.len()).sum();
        if length > MAX_LABEL_BYTES {
            return Err(UsageError(format!("--label: all labels together have {length} bytes, and may have {MAX_LABEL_BYTES}")));
        }
        if let Some((one, other, name)) = memgauge_render::same_label(identity.labels.keys().map(String::as_str)) {
            return Err(UsageError(format!(
                "--label: '{one}' and '{other}' have the same name in OpenMetrics, {name}; choose another key"
            )));
        }
        Ok(identity)
    }

    /// Whether the report says nothing about its host.
    pub(crate) const fn is_withheld(&self) -> bool {
        self.withheld
    }

    /// Neither hostname nor machine ID, and no labels.
    pub(crate) fn withheld() -> Self {
        Self { withheld: true, labels: BTreeMap::new() }
    }
}

/// A label of the user's, `KEY=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Label {
    key: String,
    value: String,
}

impl FromStr for Label {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = text.split_once('=').ok_or("a label is KEY=VALUE")?;
        if key.is_empty() || !key.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b)) {
            return Err("the key of a label has letters, digits, '_', '.' and '-' only".into());
        }
        if value.chars().any(is_obeyed) {
            return Err("the value of a label has no control characters, and none that change the direction of text".into());
        }
        Ok(Self { key: key.to_owned(), value: value.to_owned() })
    }
}

/// This run, and what `identity` allows of the host whose files are below `root`.
pub(crate) fn describe_run(root: &Path, identity: &HostIdentity) -> Run {
    let host = (!identity.withheld).then(|| read_host(root));
    Run { id: new_run_id(), labels: identity.labels.clone(), host }
}

fn read_host(root: &Path) -> Host {
    Host { hostname: host::name(root), machine_id_hash: host::machine_id(root).and_then(|id| hash_machine_id(&id)) }
}

/// The application-specific ID of machine-id(5), as `sd_id128_get_machine_app_specific` makes it: HMAC-SHA256 of our ID, keyed with the
/// machine ID, marked as a random UUID. `None` when `id` is not 32 hexadecimal digits.
fn hash_machine_id(id: &str) -> Option<String> {
    let id = u128::from_str_radix(id, 16).ok().filter(|_| id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit()))?;
    Some(format!("{:032x}", uuid_bits(hmac(&id.to_be_bytes(), &APPLICATION_ID)?)))
}

/// The first 128 bits of an HMAC-SHA256. A key may have any length, so `None` does not occur.
fn hmac(key: &[u8], message: &[u8]) -> Option<u128> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    mac.update(message);
    let digest = mac.finalize().into_bytes();
    digest.first_chunk().map(|first| u128::from_be_bytes(*first))
}

/// Version 4 and variant 1, as RFC 9562 marks random UUIDs.
const fn uuid_bits(random: u128) -> u128 {
    random & !(0xf000 << 64) & !(0xc000 << 48) | (0x4000 << 64) | (0x8000 << 48)
}

/// A random UUID of the system's.
fn new_run_id() -> String {
    if let Some(uuid) = host::random_uuid() {
        return uuid;
    }
    // Without /proc: the time and the process are unique enough to tell runs apart.
    let now = clock::moment();
    let this_run = format!("{} {} {}", now.utc, now.monotonic_ns, std::process::id());
    let digits = format!("{:032x}", uuid_bits(hmac(&APPLICATION_ID, this_run.as_bytes()).unwrap_or_default()));
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn labels(texts: &[&str]) -> Vec<Label> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    /// A directory that looks like the root of a host.
    fn fake_root(name: &str, machine_id: &str) -> std::path::PathBuf {
        let root = std::env::temp_dir().join(format!("memgauge-host-{name}-{}", std::process::id()));
        fs::create_dir_all(root.join("proc/sys/kernel")).unwrap();
        fs::create_dir_all(root.join("etc")).unwrap();
        fs::write(root.join("proc/sys/kernel/hostname"), "node7\n").unwrap();
        fs::write(root.join("etc/machine-id"), machine_id).unwrap();
        root
    }

    #[test]
    fn labels_are_checked() {
        assert_eq!("rack=B 12=b".parse(), Ok(Label { key: "rack".into(), value: "B 12=b".into() }));
        assert_eq!("a.B_c-9=".parse(), Ok(Label { key: "a.B_c-9".into(), value: String::new() }));
        for bad in ["", "=x", "no", "a b=x", "ä=x", "a=\n", "a=\u{1b}[31m"] {
            assert!(bad.parse::<Label>().is_err(), "{bad:?}");
        }
        assert!(HostIdentity::new(false, labels(&["a=1", "b=2"])).is_ok());
        assert!(HostIdentity::new(false, labels(&["a=1", "a=1"])).unwrap_err().0.contains("'a' is given twice"));
        let alike = HostIdentity::new(false, labels(&["row.a=1", "rack=2", "row-a=1"])).unwrap_err().0;
        assert!(alike.contains("'row-a' and 'row.a'") && alike.contains("label_row_a"), "{alike}");
        let many: Vec<Label> = (0..65).map(|i| format!("k{i}=v").parse().unwrap()).collect();
        assert!(HostIdentity::new(false, many[..64].to_vec()).is_ok());
        assert!(HostIdentity::new(false, many).unwrap_err().0.contains("65 labels"));
    }

    #[test]
    fn a_host_is_read_unless_it_is_withheld() {
        let root = fake_root("read", "0123456789abcdef0123456789abcdef\n");
        let run = describe_run(&root, &HostIdentity::new(false, labels(&["rack=12"])).unwrap());
        let host = run.host.unwrap();
        assert_eq!((host.hostname.as_deref(), run.labels["rack"].as_str()), (Some("node7"), "12"));
        assert_eq!(host.machine_id_hash.as_ref().map(String::len), Some(32));
        let withheld = describe_run(&root, &HostIdentity::new(true, labels(&["rack=12"])).unwrap());
        assert_eq!((withheld.host, withheld.labels["rack"].as_str()), (None, "12"));
        fs::write(root.join("etc/machine-id"), "uninitialized\n").unwrap();
        let fresh = describe_run(&root, &HostIdentity::default()).host.unwrap();
        assert_eq!((fresh.hostname.as_deref(), fresh.machine_id_hash), (Some("node7"), None));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn the_hash_is_a_uuid_that_depends_on_the_machine() {
        let (one, two) = ("0123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcdee");
        let hash = hash_machine_id(one).unwrap();
        assert_eq!(Some(&hash), hash_machine_id(one).as_ref());
        assert_ne!(Some(&hash), hash_machine_id(two).as_ref());
        assert_eq!(hash.as_bytes()[12], b'4');
        assert!(b"89ab".contains(&hash.as_bytes()[16]), "{hash}");
        for bad in ["", "0123", "+123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcdefff"] {
            assert_eq!(hash_machine_id(bad), None, "{bad}");
        }
    }

    #[test]
    fn hmac_matches_rfc_4231() {
        assert_eq!(hmac(&[0x0b; 20], b"Hi There"), Some(0xb034_4c61_d8db_3853_5ca8_afce_af0b_f12b));
        assert_eq!(hmac(b"Jefe", b"what do ya want for nothing?"), Some(0x5bdc_c146_bf60_754e_6a04_2426_0895_75c7));
    }

    #[test]
    fn every_run_has_its_own_id() {
        let (one, two) = (new_run_id(), new_run_id());
        assert_ne!(one, two);
        assert_eq!((one.len(), one.matches('-').count()), (36, 4));
    }
}
