//! memgauge
fn main() {}
