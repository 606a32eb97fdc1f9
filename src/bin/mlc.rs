//! The drop-in: mlc's command lines and text, memgauge's measuring.

fn main() -> std::process::ExitCode {
    memgauge::mlc_main()
}
