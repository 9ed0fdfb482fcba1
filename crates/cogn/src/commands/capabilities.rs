//! `cogn capabilities`: what this runtime can do, as it also tells over HTTP (CAP-003).

use cognitive_contract::Capabilities;

use crate::printer::{Exit, Printer};

/// Prints the declaration.
pub fn capabilities(printer: &Printer) -> Exit {
    printer.json(&cognitive_runtime::declaration(&Capabilities::default()));
    Exit::Good
}
