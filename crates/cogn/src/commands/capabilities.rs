//! `cogn capabilities`: what this runtime can do, as it also tells over HTTP (CAP-003).

use cognitive_contract::Capabilities;

use super::fail;
use crate::printer::{Exit, Printer};
use crate::{media, wiring};

/// Prints the declaration.
pub fn capabilities(printer: &Printer) -> Exit {
    let mut capabilities = Capabilities::default();
    match wiring::config().and_then(|config| media::limits(&config.media)) {
        Ok(limits) => capabilities.take_media(&limits),
        Err(failure) => return fail(&failure, printer),
    }
    printer.json(&cognitive_runtime::declaration(&capabilities));
    Exit::Good
}
