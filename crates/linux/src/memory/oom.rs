//! What happens to this process when memory runs out.

/// Asks the kernel to end this process first when memory runs out: a benchmark must not cost a machine's real work.
///
/// Raising one's own score needs no privilege; where `/proc` may not be written nothing happens.
pub fn prefer_out_of_memory_kill() {
    // 1000 is the highest score (proc(5), oom_score_adj). Not being able to raise it is no reason not to measure.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}
