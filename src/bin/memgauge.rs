//! The native command line; answers to mlc's where it was started under that name.

fn main() -> std::process::ExitCode {
    memgauge::main()
}
