use memgauge_model::experiment::{ChaseOrder, PageRequest};
use memgauge_model::plan::BufferPlan;
use memgauge_model::units::Bytes;
use memgauge_testing::not_tested;

use super::*;
use crate::burst::chase::{self, ChainSpec};

#[test]
fn three_participants_take_turns_and_push() {
    let cpus = memgauge_os::cpu::process_affinity().unwrap();
    let plan = BufferPlan { touch: cpus.clone(), ..BufferPlan::plain(Bytes::mib(1), 0, PageRequest::Auto) };
    let allocate = || Buffer::allocate(&plan, std::path::Path::new("/")).map(Arc::new);
    let (Ok(buffer), Ok(other)) = (allocate(), allocate()) else {
        not_tested!("no memory on node 0");
    };
    let spec = ChainSpec {
        bytes: plan.bytes,
        window: Bytes::kib(64),
        stride: Bytes(128),
        line: Bytes(64),
        order: ChaseOrder::WindowLocal,
        seed: 1,
        offset_in_line: 0,
        even: false,
    };
    let ring = chase::write(&buffer, &spec, &cpus, &|| false).unwrap();
    let clock = Clock::calibrate(std::path::Path::new("/"));
    for (participants, windows) in [(2, u64::MAX), (3, u64::MAX), (2, 5), (3, 1)] {
        let token = TurnToken::new();
        // A number of windows ends by itself; three participants on two CPUs may need a time slice for each turn.
        let longest = Duration::from_millis(if windows == u64::MAX { 300 } else { 10_000 });
        let end = clock.now() + clock.to_ticks(longest);
        let participant =
            Participant { participants, pushed: None, ring: ring.clone(), hops: 512, clock, end, windows, token: token.clone() };
        let holder = Participant { pushed: Some((other.clone(), 4096)), ..participant.clone() };
        let samples = std::thread::scope(|scope| {
            let reader = scope.spawn({
                let participant = participant.clone();
                || participant.read().0
            });
            if participants == 3 {
                scope.spawn(|| participant.share());
            }
            scope.spawn(|| holder.hold(LineState::Hitm));
            reader.join().unwrap()
        });
        assert!(!samples.is_empty() && samples.iter().all(|turn| turn.ns_per_line > 0.0), "{} windows", samples.len());
        assert!(windows == u64::MAX || samples.len() as u64 == windows, "{} windows of {windows}", samples.len());
        // Whichever participant noticed the end first, every window that was read had been through all hands.
        let turns = token.turn.load(Ordering::Acquire);
        assert_eq!(turns / participants, samples.len() as u64, "{turns} turns of {participants} participants");
    }
}
