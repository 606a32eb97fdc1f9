use super::*;

const BOOT_ID: &str = "proc/sys/kernel/random/boot_id";

/// A kernel with weights 3 and 1 below a folder of its own.
struct Kernel {
    root: PathBuf,
}

impl Kernel {
    fn new(name: &str, auto: Option<(&str, &str)>) -> Self {
        let root = std::env::temp_dir().join(format!("memgauge-weights-{name}-{}", std::process::id()));
        let kernel = Self { root };
        for folder in [WEIGHTS_DIR, "proc/sys/kernel/random", "run"] {
            fs::create_dir_all(kernel.root.join(folder)).unwrap();
        }
        kernel.put("node0", "3\n");
        kernel.put("node2", "1\n");
        fs::write(kernel.root.join(BOOT_ID), "boot-one\n").unwrap();
        auto.iter().for_each(|(file, text)| kernel.put(file, text));
        kernel
    }

    fn put(&self, file: &str, text: &str) {
        fs::write(self.root.join(WEIGHTS_DIR).join(file), text).unwrap();
    }

    fn get(&self, file: &str) -> String {
        read(&self.root.join(WEIGHTS_DIR).join(file)).unwrap()
    }

    fn weights(&self) -> KernelWeights {
        KernelWeights::new(&self.root, &self.root.join("run"))
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn weights(text: &str) -> Weights {
    text.parse().unwrap()
}

#[test]
fn weights_are_written_as_given_beside_a_node_that_keeps_its_own() {
    let kernel = Kernel::new("as-given", None);
    kernel.put("node1", "1\n");
    kernel.weights().apply(&weights("0=10,1=10")).unwrap();
    let written = ["node0", "node1", "node2"].map(|node| kernel.get(node));
    assert_eq!(written, ["10", "10", "1"], "a tenth of what each of the others has");
}

#[test]
fn what_was_before_the_first_change_is_put_back() {
    let kernel = Kernel::new("twice", None);
    let before = kernel.weights().apply(&weights("0=5,2=2")).unwrap();
    assert_eq!((before.weights, before.auto), ([(0, 3), (2, 1)].into(), None));
    assert_eq!((kernel.get("node0"), kernel.get("node2")), ("5".into(), "2".into()));
    // Another process, as after one that was killed.
    kernel.weights().apply(&weights("0=7,2=4")).unwrap();
    assert_eq!(kernel.weights().restore().unwrap().unwrap().before.weights, [(0, 3), (2, 1)].into());
    assert_eq!((kernel.get("node0"), kernel.get("node2")), ("3".into(), "1".into()));
    assert_eq!(kernel.weights().restore().unwrap(), None, "once");
}

#[test]
fn automatic_weights_become_automatic_again() {
    for (file, text) in [("auto", "true\n"), ("__auto_type", "Y\n")] {
        let kernel = Kernel::new(&format!("auto-{file}"), Some((file, text)));
        assert_eq!(kernel.weights().apply(&weights("0=5,2=2")).unwrap().auto, Some(true));
        // The kernel does this when a weight is written.
        kernel.put(file, "false\n");
        assert!(kernel.weights().restore().unwrap().unwrap().automatic);
        assert_eq!((kernel.get(file), kernel.get("node0")), ("1".into(), "5".into()), "the weights are the kernel's to compute");
    }
}

#[test]
fn a_kernel_that_does_not_go_back_to_automatic_weights_gets_the_ones_it_had() {
    let kernel = Kernel::new("refused", Some(("auto", "true\n")));
    kernel.weights().apply(&weights("0=5,2=2")).unwrap();
    let auto = kernel.root.join(WEIGHTS_DIR).join("auto");
    fs::remove_file(&auto).unwrap();
    // Every write to it fails, as one to the kernel's file does where firmware states no bandwidths.
    std::os::unix::fs::symlink("/dev/full", &auto).unwrap();
    let restored = kernel.weights().restore().unwrap().unwrap();
    assert_eq!((restored.automatic, restored.before.auto), (false, Some(true)));
    assert_eq!((kernel.get("node0"), kernel.get("node2")), ("3".into(), "1".into()));
    assert_eq!(kernel.weights().restore().unwrap(), None, "the journal is gone");
}

#[test]
fn another_boot_has_nothing_to_put_back() {
    let kernel = Kernel::new("boot", None);
    kernel.weights().apply(&weights("0=5,2=2")).unwrap();
    fs::write(kernel.root.join(BOOT_ID), "boot-two\n").unwrap();
    kernel.put("node0", "9\n");
    assert_eq!(kernel.weights().restore().unwrap(), None);
    assert_eq!(kernel.get("node0"), "9");
}

/// As for the journal of registers: what cannot be known is not taken for another boot.
#[test]
fn weights_are_put_back_when_the_boot_is_unknown_before_or_after() {
    for hidden_at_first in [true, false] {
        let kernel = Kernel::new("unknown-boot", None);
        let id = kernel.root.join(BOOT_ID);
        if hidden_at_first {
            fs::remove_file(&id).unwrap();
        }
        kernel.weights().apply(&weights("0=5,2=2")).unwrap();
        if hidden_at_first {
            fs::write(&id, "boot-one\n").unwrap();
        } else {
            fs::write(&id, "").unwrap();
        }
        assert_eq!(kernel.weights().restore().unwrap().unwrap().before.weights, [(0, 3), (2, 1)].into());
        assert_eq!((kernel.get("node0"), kernel.get("node2")), ("3".into(), "1".into()));
    }
}

#[test]
fn what_cannot_be_set_changes_nothing() {
    let kernel = Kernel::new("refused", None);
    let unknown = kernel.weights().apply(&weights("0=5,7=2")).unwrap_err();
    assert!(unknown.to_string().contains("no weight for node 7; its nodes are 0, 2"), "{unknown}");
    // A file that keeps nothing, as a kernel would that limits weights.
    fs::remove_file(kernel.root.join(WEIGHTS_DIR).join("node2")).unwrap();
    std::os::unix::fs::symlink("/dev/null", kernel.root.join(WEIGHTS_DIR).join("node2")).unwrap();
    assert!(kernel.weights().apply(&weights("0=5,2=2")).is_err());
    assert_eq!((kernel.get("node0"), kernel.weights().restore().unwrap()), ("3".into(), None));
    fs::remove_dir_all(kernel.root.join(WEIGHTS_DIR)).unwrap();
    assert!(kernel.weights().apply(&weights("0=5,2=2")).unwrap_err().to_string().contains("6.9"));
}

#[test]
fn damaged_journals_and_those_of_others_are_not_used() {
    let kernel = Kernel::new("damaged", None);
    kernel.weights().apply(&weights("0=5,2=2")).unwrap();
    let path = kernel.weights().journal_file();
    let whole = fs::read_to_string(&path).unwrap();
    for text in [&whole[..whole.len() - 4], &whole.replace("weight 3", "weight 300"), "", "x"] {
        fs::write(&path, text).unwrap();
        assert!(kernel.weights().restore().unwrap_err().to_string().contains("damaged"), "{text}");
        assert_eq!(kernel.get("node0"), "5");
    }
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
    assert!(kernel.weights().restore().unwrap_err().to_string().contains("symbolic link"));
}

#[test]
fn two_changes_at_once_are_refused() {
    let kernel = Kernel::new("busy", None);
    let first = kernel.weights();
    let _held = first.lock().unwrap();
    assert!(matches!(kernel.weights().apply(&weights("0=5,2=2")), Err(WeightsError::Busy(_))));
}

#[test]
fn a_journal_that_cannot_be_looked_at_is_not_one_that_is_missing() {
    let kernel = Kernel::new("loop", None);
    kernel.weights().apply(&weights("0=5,2=2")).unwrap();
    // As for a user who may not enter the folder, which root always may: a link that leads to itself.
    fs::remove_dir_all(kernel.root.join("run")).unwrap();
    std::os::unix::fs::symlink("run", kernel.root.join("run")).unwrap();
    assert!(matches!(kernel.weights().restore(), Err(WeightsError::Io(..))));
    fs::remove_file(kernel.root.join("run")).unwrap();
    assert_eq!(kernel.weights().restore().unwrap(), None);
}

#[test]
fn weights_are_not_changed_where_the_journal_would_go_with_a_container() {
    let kernel = Kernel::new("container", None);
    fs::create_dir_all(kernel.root.join("proc/self/ns")).unwrap();
    std::os::unix::fs::symlink("pid:[4026532281]", kernel.root.join("proc/self/ns/pid")).unwrap();
    let refused = kernel.weights().apply(&weights("0=5,2=2")).unwrap_err();
    assert!(matches!(&refused, WeightsError::Container(_)) && refused.to_string().contains("docker run -v"), "{refused}");
    assert_eq!((kernel.get("node0"), kernel.get("node2")), ("3".into(), "1".into()));
}
