//! The capabilities that this runtime declares (CAP-001, CAP-003): one declaration for the command line, the server
//! and the library.

use cognitive_contract::Capabilities;
use cognitive_contract::capabilities::SPEC_VERSIONS;
use serde_json::{Value, json};

/// The highest level of the specification that is complete; `docs/conformance.md` shows it.
pub const CONFORMANCE_LEVEL: u8 = 4;

/// Returns the declaration of a runtime with these capabilities.
#[must_use]
pub fn declaration(capabilities: &Capabilities) -> Value {
    json!({
        "runtime": "cogn",
        "version": env!("CARGO_PKG_VERSION"),
        "spec_versions": SPEC_VERSIONS,
        "conformance_level": CONFORMANCE_LEVEL,
        "capabilities": capabilities,
    })
}
