//! How a test says that it could not show what it is about, and the recorded machines that tests read.
//!
//! libtest knows tests that pass and tests that fail. A test that finds out while it runs that this machine lacks something, that its fault came
//! too late, or that it got no CPU time prints `NOT TESTED: NAME: WHY` with one of these macros. libtest calls it passed all the same. `.ci/run`
//! takes such tests away from those that passed, and lists them.

mod recorded;

use std::fmt::Arguments;
use std::io::Write;

pub use recorded::unpacked;

/// Ends the test: what it is about cannot be shown here. The arguments say why, as those of `format!`.
///
/// It returns from the function that it is written in, so it belongs into the test itself and not into a helper or a closure.
#[macro_export]
macro_rules! not_tested {
    ($why:literal $(, $argument:expr)* $(,)?) => {{
        fn here() {}
        return $crate::say(&$crate::name_of(&here), format_args!($why $(, $argument)*));
    }};
}

/// Says that a part of the test cannot be shown here. The rest of the test goes on, and counts.
#[macro_export]
macro_rules! not_tested_in_part {
    ($why:literal $(, $argument:expr)* $(,)?) => {{
        fn here() {}
        $crate::say(&($crate::name_of(&here) + ", in part"), format_args!($why $(, $argument)*))
    }};
}

/// The path of the function in which an item is.
#[doc(hidden)]
pub fn name_of<T>(item: &T) -> String {
    let path = std::any::type_name_of_val(item).replace("::{{closure}}", "");
    path.rsplit_once("::").map_or(path.clone(), |(function, _)| function.to_owned())
}

/// Prints the line past libtest, which shows nothing of what a test that passes prints with `print!` and `eprint!`.
#[doc(hidden)]
pub fn say(name: &str, why: Arguments<'_>) {
    let why = why.to_string();
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    let _ = std::io::stderr().write_all(format!("NOT TESTED: {name}: {why}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_name_is_that_of_the_test() {
        fn here() {}
        assert_eq!(super::name_of(&here), "memgauge_testing::tests::the_name_is_that_of_the_test");
        let closure = || {
            fn here() {}
            super::name_of(&here)
        };
        assert_eq!(closure(), "memgauge_testing::tests::the_name_is_that_of_the_test");
    }
}
