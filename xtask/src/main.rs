//! House-keeping.

fn main() {}
