//! What the process arranges for itself before it does anything else.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use windows_sys::Win32::Foundation::{HANDLE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::Media::timeBeginPeriod;
use windows_sys::Win32::System::Console::{
    ENABLE_VIRTUAL_TERMINAL_PROCESSING, GetConsoleMode, GetStdHandle, STD_ERROR_HANDLE, STD_HANDLE, STD_OUTPUT_HANDLE, SetConsoleMode,
};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, PROCESS_POWER_THROTTLING_CURRENT_VERSION, PROCESS_POWER_THROTTLING_EXECUTION_SPEED,
    PROCESS_POWER_THROTTLING_IGNORE_TIMER_RESOLUTION, PROCESS_POWER_THROTTLING_STATE, ProcessPowerThrottling, SetProcessInformation,
};

/// Stack of the thread that runs `main`. The linker gives the main thread 1 MiB, which does not hold the command line's parser in a debug
/// build.
const STACK: usize = 8 << 20;
/// What helps where no more threads can be started.
pub const MORE_THREADS: &str = "close other programs, or raise the memory limit of its job object";
/// What helps where there is not enough stack to begin.
pub const MORE_STACK: &str = MORE_THREADS;
/// Milliseconds between two ticks of the system's timer, for waits that end in time. The default is 15.6.
const TICK_MS: u32 = 1;

/// Runs `main` in a thread with a stack of 8 MiB. The process is kept from being slowed down to save energy (EcoQoS), the system's timer
/// ticks every millisecond, and consoles show colours. The priority stays what the user has given the process, as on other systems.
///
/// # Errors
/// When that thread cannot be started.
pub fn run<T: Send>(main: impl FnOnce() -> T + Send) -> io::Result<T> {
    take_full_speed();
    // SAFETY: the function takes a number. The system gives the resolution back when the process ends. A refusal makes waits longer, no
    // more.
    unsafe { timeBeginPeriod(TICK_MS) };
    [STD_OUTPUT_HANDLE, STD_ERROR_HANDLE].into_iter().for_each(show_colours);
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("main".to_owned()).stack_size(STACK).spawn_scoped(scope, main)?;
        thread.join().map_err(|panic| std::panic::resume_unwind(panic))
    })
}

/// Tells the system that this process is not to be throttled, even in the background, and that its timer is to be kept exact
/// (`SetProcessInformation`, `ProcessPowerThrottling`). Each is asked for alone, because older versions know only the first.
fn take_full_speed() {
    for control in [PROCESS_POWER_THROTTLING_EXECUTION_SPEED, PROCESS_POWER_THROTTLING_IGNORE_TIMER_RESOLUTION] {
        let state =
            PROCESS_POWER_THROTTLING_STATE { Version: PROCESS_POWER_THROTTLING_CURRENT_VERSION, ControlMask: control, StateMask: 0 };
        // SAFETY: the function reads one structure of the size that is passed. The pseudo handle is that of this process. A refusal leaves
        // the process as the system treats it.
        unsafe {
            let bytes = size_of::<PROCESS_POWER_THROTTLING_STATE>() as u32;
            SetProcessInformation(GetCurrentProcess(), ProcessPowerThrottling, (&raw const state).cast(), bytes);
        }
    }
}

/// Lets a console interpret escape sequences. It stays so after the program, as other programs leave it.
fn show_colours(which: STD_HANDLE) {
    let mut mode = 0;
    // SAFETY: the functions take a handle, which is invalid or no console's where there is none; the first then writes nothing and fails.
    unsafe {
        let console = GetStdHandle(which);
        if GetConsoleMode(console, &raw mut mode) != 0 {
            SetConsoleMode(console, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
        }
    }
}

/// Sleeps at least so long.
pub fn sleep(time: Duration) {
    let end = Instant::now() + time;
    while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        thread::sleep(left);
    }
}

/// Whether the program was started without a standard output, as by a service or from a program with windows.
pub fn standard_output_was_closed() -> bool {
    // SAFETY: the function takes a number. The handle is not used.
    is_missing(unsafe { GetStdHandle(STD_OUTPUT_HANDLE) })
}

fn is_missing(handle: HANDLE) -> bool {
    handle.is_null() || handle == INVALID_HANDLE_VALUE
}

/// Whether the program has privileges that the user who started it does not have: Windows has no such programs.
pub const fn has_more_privileges_than_its_user() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn main_has_more_than_a_mebibyte_of_stack_and_its_result_comes_back() {
        fn deep(levels: usize) -> usize {
            let filled = std::hint::black_box([levels as u8; 64 << 10]);
            if levels == 0 { filled.len() } else { deep(levels - 1) + usize::from(filled[0] == 255) }
        }
        assert_eq!(run(|| deep(40)).unwrap(), 64 << 10, "2.5 MiB");
        assert_eq!(run(|| thread::current().name().map(str::to_owned)).unwrap().as_deref(), Some("main"));
        let panicked = std::panic::catch_unwind(|| run(|| panic!("as main did")));
        assert!(panicked.is_err(), "a panic is handed on");
    }

    #[test]
    fn a_sleep_is_never_too_short() {
        let began = Instant::now();
        sleep(Duration::from_millis(3));
        assert!(began.elapsed() >= Duration::from_millis(3));
    }

    #[test]
    fn a_missing_output_is_known() {
        assert!(is_missing(std::ptr::null_mut()) && is_missing(INVALID_HANDLE_VALUE));
        assert!(!standard_output_was_closed(), "tests have one");
    }
}
