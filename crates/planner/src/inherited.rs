//! Memory for which no option names a node follows the memory policy that the process was started with (`numactl`, `set_mempolicy`).

use memgauge_model::directory::FileBacking;
use memgauge_model::interleave::Weights;
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::spec::Spec;
use memgauge_model::topology::Machine;
use memgauge_model::units::IdSet;
use memgauge_model::wording;
use memgauge_model::words::{Knob, Way};

use crate::requested::Requested;

/// The place of memory if no option names a node for it.
pub(super) struct Inherited {
    /// The nodes of the policy that may be used.
    pub(super) nodes: IdSet,
    /// The weights with which pages are on these nodes in turn; `None` if memory is on the nearest of them.
    pub(super) turns: Option<Weights>,
}

impl Inherited {
    /// Applies the inherited policy to this request and adds a note; `None` if the policy changes nothing: each CPU's own node may be used, the
    /// request names nodes, or the experiment itself does.
    pub(super) fn read(spec: &Spec, requested: &Requested<'_>, machine: &Machine, notes: &mut Vec<Note>) -> Option<Self> {
        if spec.nodes.is_some() || requested.names_nodes {
            return None;
        }
        let policy = machine.allowed.inherited_policy()?;
        let nodes = policy.nodes.intersection(&machine.allowed.nodes);
        let turns = policy.turns(&nodes);
        if nodes.is_empty() || (turns.is_none() && nodes == machine.allowed.nodes) {
            return None;
        }
        let words = wording::memory_policy(policy);
        match spec.memory_dir.as_ref().map(|dir| (dir.file.backing, &dir.file.path)) {
            // A file with DAX is where its device is.
            Some((FileBacking::Dax, _)) => return None,
            Some((_, path)) if turns.is_some() => {
                let message = format!("files in {path} do not follow the inherited memory policy ({words}): each is on one node");
                notes.push(
                    Note::warning(NoteCode::MemoryPolicy, message).advise(Way::LeaveOut(Knob::MemoryDir).to("have pages on nodes in turn")),
                );
                return None;
            }
            _ => {}
        }
        let message = format!("memory for which no option names a node follows the inherited memory policy: {words}");
        notes.push(Note::info(NoteCode::MemoryPolicy, message).advise(Way::name("a node", Knob::Node).to("measure another")));
        Some(Self { nodes, turns })
    }
}
