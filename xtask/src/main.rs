//! chores
fn main() {}
