//! Runs a program.

use std::io;
use std::process::Command;
use std::sync::OnceLock;

use memgauge_model::counters::ProgramRun;
use windows_sys::Win32::Foundation::STATUS_CONTROL_C_EXIT;
use windows_sys::Win32::System::Console::SetConsoleCtrlHandler;
use windows_sys::core::BOOL;

use crate::signals::{INTERRUPT, keep_alive_after};

/// Runs the program to its end. From the first call on, events of the console (Ctrl-C) have no effect on this process: the program gets
/// them itself, because it is in the same console. One that they have ended counts as killed.
///
/// # Errors
/// When the program cannot be started or the handler cannot be installed.
pub fn run(command: &mut Command) -> io::Result<ProgramRun> {
    leave_events_to_the_program()?;
    let status = command.spawn()?.wait()?;
    Ok(ended(status.code().unwrap_or_default()))
}

/// The meaning of an exit status. A program without a handler of its own ends with `STATUS_CONTROL_C_EXIT` when an event of the console ends it.
const fn ended(code: i32) -> ProgramRun {
    match code {
        STATUS_CONTROL_C_EXIT => ProgramRun::Killed(INTERRUPT),
        code => ProgramRun::Exited(code),
    }
}

fn leave_events_to_the_program() -> io::Result<()> {
    // The number of the error: an error itself cannot be kept.
    static INSTALLED: OnceLock<Option<i32>> = OnceLock::new();
    let failed = INSTALLED.get_or_init(|| {
        // SAFETY: `ignore` has the signature of a handler, and is there as long as the process.
        let installed = unsafe { SetConsoleCtrlHandler(Some(ignore), 1) } != 0;
        if installed { None } else { io::Error::last_os_error().raw_os_error() }
    });
    failed.map_or(Ok(()), |code| Err(io::Error::from_raw_os_error(code)))
}

/// Nothing is asked of this process, which ends after the program.
unsafe extern "system" fn ignore(event: u32) -> BOOL {
    keep_alive_after(event);
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_status_is_that_of_the_program() {
        let shell = |script: &str| run(Command::new("cmd").args(["/c", script])).unwrap();
        assert_eq!((shell("exit 0"), shell("exit 7")), (ProgramRun::Exited(0), ProgramRun::Exited(7)));
        assert!(run(&mut Command::new("memgauge no such program")).is_err());
    }

    #[test]
    fn what_an_event_has_ended_was_killed() {
        assert_eq!(ended(0xC000_013A_u32.cast_signed()), ProgramRun::Killed(INTERRUPT));
        let violation = 0xC000_0005_u32.cast_signed();
        assert_eq!(ended(violation), ProgramRun::Exited(violation));
    }
}
