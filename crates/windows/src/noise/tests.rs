use memgauge_model::units::IdSet;

use super::*;

fn at(busy: f64, own_s: f64) -> Counters {
    Counters { busy: Some((2, busy)), own_s: Some(own_s) }
}

#[test]
fn others_are_what_is_busy_and_not_ours() {
    let second = Duration::from_secs(1);
    let share = |busy, own| at(10.0 + busy, 3.0 + own).others_since(&at(10.0, 3.0), second, 1);
    let others = share(1.5, 1.0).unwrap();
    assert!((others - (0.5 - 2f64.sqrt() * TICK_S) / 2.0).abs() < 1e-9, "{others}");
    assert_eq!(share(1.01, 1.0), Some(0.0), "rounding is no noise");
    assert_eq!(share(0.0, 0.5), Some(0.0));
    assert_eq!(share(9.0, 0.0), Some(1.0));
    assert_eq!(at(12.0, 3.0).others_since(&at(10.0, 3.0), MIN_TIME / 2, 1), None, "too short");
    let gone = Counters { busy: Some((1, 12.0)), own_s: Some(3.0) };
    assert_eq!(gone.others_since(&at(10.0, 3.0), second, 1), None, "a CPU went offline");
}

#[test]
fn pauses_count_as_before() {
    let mut start = at(10.0, 3.0);
    start.add(&at(11.0, 4.0), &at(14.0, 6.0));
    assert_eq!(start, at(13.0, 5.0));
    start.add(&Counters::default(), &at(14.0, 6.0));
    assert_eq!(start, Counters::default());
}

#[test]
fn busy_is_what_is_not_idle() {
    let time = SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION {
        IdleTime: 30_000_000,
        KernelTime: 45_000_000,
        UserTime: 20_000_000,
        ..Default::default()
    };
    assert!((busy(&time) - 3.5).abs() < 1e-9);
    let backwards = SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION { IdleTime: 50, KernelTime: 20, ..Default::default() };
    assert!(busy(&backwards).abs() < 1e-9);
}

#[test]
fn a_cpu_that_spins_is_busy() {
    let cpus: IdSet = (0..std::thread::available_parallelism().unwrap().get() as u32).collect();
    let before = busy_seconds(Path::new("/"), &cpus);
    let began = Instant::now();
    let own = own_cpu_seconds().unwrap();
    while began.elapsed() < Duration::from_millis(400) {
        std::hint::spin_loop();
    }
    let after = busy_seconds(Path::new("/"), &cpus);
    assert_eq!(after.len(), cpus.iter().count(), "{after:?}");
    let gained: f64 = after.iter().map(|(cpu, busy)| busy - before[cpu]).sum();
    assert!(gained > 0.1, "{before:?} {after:?}");
    let ran = own_cpu_seconds().unwrap() - own;
    assert!(ran > 0.05, "{ran}");
    assert!(busy_seconds(Path::new("/"), &IdSet::one(63 * 64 + 63)).is_empty());
}

#[test]
fn a_thread_in_a_group_answers_and_in_none_does_not() {
    assert!(!in_group(0, 0, group_times).is_empty());
    assert!(in_group(63, 0, group_times).is_empty());
}

#[test]
fn a_probe_finds_out_what_others_used() {
    let cpus = IdSet::one(0);
    let mut probe = NoiseProbe::start(Path::new("/"), &cpus);
    std::thread::sleep(Duration::from_millis(150));
    probe.pause();
    probe.resume();
    std::thread::sleep(Duration::from_millis(150));
    let noise = probe.finish(Some(3));
    assert!(noise.others.is_some_and(|others| (0.0..=1.0).contains(&others)), "{noise:?}");
    assert_eq!((noise.involuntary_switches, noise.steal, noise.memory_errors), (Some(3), None, None));
    assert_eq!(NoiseProbe::start(Path::new("/"), &cpus).finish(None).others, None, "too short");
}
