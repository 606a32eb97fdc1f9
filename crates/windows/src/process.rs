//! Arrangements that the process makes for itself before it does anything else.

use std::io;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use windows_sys::Win32::Foundation::{HANDLE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::Media::{TIMERR_NOERROR, timeBeginPeriod};
use windows_sys::Win32::System::Console::{
    ENABLE_VIRTUAL_TERMINAL_PROCESSING, GetConsoleMode, GetStdHandle, STD_ERROR_HANDLE, STD_HANDLE, STD_OUTPUT_HANDLE, SetConsoleMode,
};
use windows_sys::Win32::System::Power::{ES_CONTINUOUS, ES_SYSTEM_REQUIRED, SetThreadExecutionState};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, PROCESS_POWER_THROTTLING_CURRENT_VERSION, PROCESS_POWER_THROTTLING_EXECUTION_SPEED,
    PROCESS_POWER_THROTTLING_IGNORE_TIMER_RESOLUTION, PROCESS_POWER_THROTTLING_STATE, ProcessPowerThrottling, SetProcessInformation,
};

/// Stack of the thread that runs `main`. The linker gives the main thread 1 MiB, which does not hold the command line's parser in a debug
/// build.
const STACK: usize = 8 << 20;
/// Advice if no more threads can be started.
pub const MORE_THREADS: &str = "close other programs, or raise the memory limit of its job object";
/// Advice if there is not enough stack to begin.
pub const MORE_STACK: &str = MORE_THREADS;
/// Milliseconds between two ticks of the system's timer, for waits that end in time. The default is 15.6.
const TICK_MS: u32 = 1;

/// What Windows refused when the process began.
static REFUSED: OnceLock<Vec<Refused>> = OnceLock::new();

/// What Windows refused this process. Measuring goes on without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Not to be slowed down to save energy (EcoQoS).
    FullSpeed,
    /// A timer that ticks every millisecond.
    Timer,
    /// That the machine stays awake.
    Awake,
}

/// What Windows refused when [`run`] began.
pub(crate) fn refused() -> &'static [Refused] {
    REFUSED.get().map_or(&[], Vec::as_slice)
}

/// Runs `main` in a thread with a stack of 8 MiB. The process is kept from being slowed down to save energy (EcoQoS), the system's timer
/// ticks every millisecond, an idle machine does not go to sleep meanwhile, and consoles show colours. The notes of the environment say which
/// of these Windows refused. The priority stays what the user has given the process, as on other systems: a higher one would keep off the
/// disturbances that the result has to show, and starve programs that share the CPUs.
///
/// # Errors
/// When that thread cannot be started.
pub fn run<T: Send>(main: impl FnOnce() -> T + Send) -> io::Result<T> {
    let awake = Awake::begin();
    // SAFETY: the function takes a number. The system gives the resolution back when the process ends.
    let ticks = unsafe { timeBeginPeriod(TICK_MS) } == TIMERR_NOERROR;
    let asked = [(take_full_speed(), Refused::FullSpeed), (ticks, Refused::Timer), (awake.granted, Refused::Awake)];
    REFUSED.get_or_init(|| asked.into_iter().filter(|(granted, _)| !granted).map(|(_, what)| what).collect());
    [STD_OUTPUT_HANDLE, STD_ERROR_HANDLE].into_iter().for_each(show_colours);
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("main".to_owned()).stack_size(STACK).spawn_scoped(scope, main)?;
        thread.join().map_err(|panic| std::panic::resume_unwind(panic))
    })
}

/// Tells the system that this process is not to be throttled, even in the background, and that its timer is to be kept exact
/// (`SetProcessInformation`, `ProcessPowerThrottling`). Each is asked for alone, because versions before Windows 11 know only the first. Returns
/// whether the first was granted.
fn take_full_speed() -> bool {
    let ask = |control| {
        let state =
            PROCESS_POWER_THROTTLING_STATE { Version: PROCESS_POWER_THROTTLING_CURRENT_VERSION, ControlMask: control, StateMask: 0 };
        // SAFETY: the function reads one structure of the size that is passed. The pseudo handle is that of this process. A refusal leaves
        // the process as the system treats it.
        unsafe {
            let bytes = size_of::<PROCESS_POWER_THROTTLING_STATE>() as u32;
            SetProcessInformation(GetCurrentProcess(), ProcessPowerThrottling, (&raw const state).cast(), bytes) != 0
        }
    };
    // A system that does not know this request keeps the timer exact in the background anyway.
    let _ = ask(PROCESS_POWER_THROTTLING_IGNORE_TIMER_RESOLUTION);
    ask(PROCESS_POWER_THROTTLING_EXECUTION_SPEED)
}

/// Keeps the machine from going to sleep because nobody types, while the value lives (`SetThreadExecutionState`). The state is one of the thread
/// that asks, so it cannot be sent to another.
struct Awake {
    granted: bool,
    _of_this_thread: PhantomData<*const ()>,
}

impl Awake {
    fn begin() -> Self {
        // SAFETY: the function takes flags.
        let granted = unsafe { SetThreadExecutionState(ES_CONTINUOUS | ES_SYSTEM_REQUIRED) } != 0;
        Self { granted, _of_this_thread: PhantomData }
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        // SAFETY: the function takes flags. Without others this one ends what was asked before.
        unsafe { SetThreadExecutionState(ES_CONTINUOUS) };
    }
}

/// Lets a console interpret escape sequences. It stays so after the program, as other programs leave it.
fn show_colours(which: STD_HANDLE) {
    let mut mode = 0;
    // SAFETY: the functions take a handle, which is invalid or not a console's if there is none; the first then writes nothing and fails.
    unsafe {
        let console = GetStdHandle(which);
        if GetConsoleMode(console, &raw mut mode) != 0 {
            SetConsoleMode(console, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
        }
    }
}

/// Whether escape sequences are interpreted wherever standard output and standard error are consoles. Consoles before Windows 10 do not, nor
/// those in legacy mode.
pub fn interprets_escapes() -> bool {
    let mut mode = 0;
    // SAFETY: as in `show_colours`.
    let shows_them =
        |which| unsafe { GetConsoleMode(GetStdHandle(which), &raw mut mode) != 0 && mode & ENABLE_VIRTUAL_TERMINAL_PROCESSING == 0 };
    ![STD_OUTPUT_HANDLE, STD_ERROR_HANDLE].into_iter().any(shows_them)
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

/// The folder in which programs keep their state for this user (`%LOCALAPPDATA%`); `None` where the environment does not say.
pub fn state_folder() -> Option<PathBuf> {
    std::env::var_os("LOCALAPPDATA").map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Whether the program has privileges that the user who started it does not have: Windows has no such programs.
pub const fn has_more_privileges_than_its_user() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// One test of both: Wine has one state for all threads.
    #[test]
    fn the_machine_stays_awake_only_meanwhile_and_main_has_its_stack() {
        // SAFETY: the function takes flags. Without others it ends what was asked before, and gives that.
        let state = || unsafe { SetThreadExecutionState(ES_CONTINUOUS) };
        let awake = Awake::begin();
        assert!(awake.granted);
        assert_eq!(state() & (ES_CONTINUOUS | ES_SYSTEM_REQUIRED), ES_CONTINUOUS | ES_SYSTEM_REQUIRED);
        drop(Awake::begin());
        assert_eq!(state() & ES_SYSTEM_REQUIRED, 0);
        main_has_more_than_a_mebibyte_of_stack_and_its_result_comes_back();
        assert_eq!(state() & ES_SYSTEM_REQUIRED, 0, "it is over when main returns");
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
