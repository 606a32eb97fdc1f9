//! Events of the console that ask the program to end.

use std::io;
use std::process::Child;
use std::sync::OnceLock;
use std::time::Duration;

use windows_sys::Win32::System::Console::{
    CTRL_BREAK_EVENT, CTRL_C_EVENT, CTRL_CLOSE_EVENT, CTRL_LOGOFF_EVENT, CTRL_SHUTDOWN_EVENT, SetConsoleCtrlHandler,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, TerminateProcess};
use windows_sys::core::BOOL;

/// The number of Ctrl-C. Numbers are those of Windows and 1, because Ctrl-C is 0 there, which here means that nothing has arrived.
pub const INTERRUPT: i32 = number(CTRL_C_EVENT);
/// The number of Ctrl-Break, with which programs ask others to end.
pub const TERMINATE: i32 = number(CTRL_BREAK_EVENT);

/// Events after which the system ends the process as soon as its handler returns.
const LAST: [u32; 3] = [CTRL_CLOSE_EVENT, CTRL_LOGOFF_EVENT, CTRL_SHUTDOWN_EVENT];
/// Longer than any limit of the system's on the handler of such an event, which is some seconds.
const LONGER_THAN_ANY_LIMIT: Duration = Duration::from_secs(600);

const fn number(event: u32) -> i32 {
    event as i32 + 1
}

type Arrived = Box<dyn Fn(i32) + Send + Sync>;

static ARRIVED: OnceLock<Arrived> = OnceLock::new();

/// Calls `arrived` with the number of each event that asks to end, from now on (`SetConsoleCtrlHandler`). It runs in a thread that the
/// system starts. After the end of a console or a session, that thread waits, because the system ends the process when it returns: the main
/// thread then has the few seconds that the system gives to keep what was measured.
///
/// # Errors
/// When it was called before, or the system refuses a handler.
pub fn watch(arrived: impl Fn(i32) + Send + Sync + 'static) -> io::Result<()> {
    ARRIVED
        .set(Box::new(arrived))
        .map_err(|_| io::Error::new(io::ErrorKind::AlreadyExists, "events of the console are watched already"))?;
    // SAFETY: `handler` has the signature of a handler, and is there as long as the process.
    match unsafe { SetConsoleCtrlHandler(Some(handler), 1) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

unsafe extern "system" fn handler(event: u32) -> BOOL {
    let Some(arrived) = ARRIVED.get() else { return 0 };
    arrived(number(event));
    keep_alive_after(event);
    1
}

/// Does not return after an event after which returning would end the process.
pub(crate) fn keep_alive_after(event: u32) {
    if LAST.contains(&event) {
        crate::process::sleep(LONGER_THAN_ANY_LIMIT);
    }
}

/// What people call the event.
pub fn name(number: i32) -> String {
    let event = number.checked_sub(1).and_then(|event| u32::try_from(event).ok());
    match event {
        Some(CTRL_C_EVENT) => "Ctrl-C".to_owned(),
        Some(CTRL_BREAK_EVENT) => "Ctrl-Break".to_owned(),
        Some(CTRL_CLOSE_EVENT) => "the console was closed".to_owned(),
        Some(CTRL_LOGOFF_EVENT) => "the user logs off".to_owned(),
        Some(CTRL_SHUTDOWN_EVENT) => "the system shuts down".to_owned(),
        _ => format!("event {number} of the console"),
    }
}

/// The exit status of a program that this event ended. Windows has none for it: that of Ctrl-C elsewhere.
pub const fn status(_number: i32) -> u8 {
    130
}

/// Whether the event comes again by itself: none does.
pub const fn is_repeated(_number: i32) -> bool {
    false
}

/// Ends the program at once (`TerminateProcess`). Unlike `ExitProcess` it waits for no lock of another thread and runs no code of
/// libraries.
pub fn end_now(status: i32) -> ! {
    loop {
        // SAFETY: the pseudo handle is that of this process, which ends; the function does not return then.
        unsafe { TerminateProcess(GetCurrentProcess(), status.cast_unsigned()) };
    }
}

/// Asks a program that this one has started to end, as Ctrl-C does. A program in the same console gets all events of the console itself, so
/// nothing is left to do. Sending it one more would not reach it alone: all programs of a console get an event unless each was started in a
/// group of its own.
///
/// # Errors
/// None.
pub const fn interrupt_child(_child: &Child) -> io::Result<()> {
    Ok(())
}

/// Makes a write beyond a limit on file sizes fail with a reason: Windows has no such limit.
///
/// # Errors
/// None.
pub const fn survive_file_size_limit() -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::atomic::{AtomicI32, Ordering};

    use super::*;

    #[test]
    fn events_have_names_and_numbers_that_are_not_zero() {
        assert_eq!((name(INTERRUPT), name(TERMINATE)), ("Ctrl-C".to_owned(), "Ctrl-Break".to_owned()));
        assert_eq!(name(number(CTRL_SHUTDOWN_EVENT)), "the system shuts down");
        for number in [i32::MIN, 0, 4, i32::MAX] {
            assert!(name(number).contains(&number.to_string()));
        }
        assert!(INTERRUPT > 0 && !is_repeated(INTERRUPT));
    }

    #[test]
    fn an_event_arrives_and_a_second_watch_is_refused() {
        static SEEN: AtomicI32 = AtomicI32::new(0);
        watch(|number| SEEN.store(number, Ordering::SeqCst)).unwrap();
        // SAFETY: the handler may be called by anybody, with any event; after this one it returns.
        let handled = unsafe { handler(CTRL_BREAK_EVENT) };
        assert_eq!((handled, SEEN.load(Ordering::SeqCst)), (1, TERMINATE));
        assert_eq!(watch(|_| ()).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        // After these the process would end if the handler returned, so it does not, and the main thread keeps what was measured.
        for (event, name_of_event) in [
            (CTRL_CLOSE_EVENT, "the console was closed"),
            (CTRL_LOGOFF_EVENT, "the user logs off"),
            (CTRL_SHUTDOWN_EVENT, "the system shuts down"),
        ] {
            // SAFETY: as above; its thread ends with the test program.
            let waiting = std::thread::spawn(move || unsafe { handler(event) });
            while SEEN.load(Ordering::SeqCst) != number(event) && !waiting.is_finished() {
                std::thread::yield_now();
            }
            crate::process::sleep(Duration::from_millis(100));
            assert!(!waiting.is_finished(), "{}", name(number(event)));
            assert_eq!(name(SEEN.load(Ordering::SeqCst)), name_of_event);
        }
    }

    /// What the next test starts; without the variable it does nothing.
    #[test]
    fn ends_now_where_it_is_asked_to() {
        if std::env::var_os("MEMGAUGE_TEST_END_NOW").is_some() {
            end_now(77);
        }
    }

    #[test]
    fn the_end_has_the_status_and_needs_no_unwinding() {
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "signals::tests::ends_now_where_it_is_asked_to"]).env("MEMGAUGE_TEST_END_NOW", "1");
        let ended = again.output().unwrap();
        assert_eq!(ended.status.code(), Some(77), "{ended:?}");
    }
}
