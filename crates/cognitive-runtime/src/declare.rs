//! The capabilities that this runtime declares (CAP-001, CAP-003): one declaration for the command line, the server
//! and the library.

use cognitive_contract::Capabilities;
use cognitive_contract::capabilities::SPEC_VERSIONS;
use schemars::JsonSchema;
use serde::Serialize;

/// The highest level of the specification that is complete; `docs/conformance.md` shows it.
pub const CONFORMANCE_LEVEL: u8 = 4;

/// The declaration of a runtime: its version and its capabilities.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "RuntimeCapabilities")]
#[non_exhaustive]
pub struct Declaration {
    /// The name of the runtime.
    pub runtime: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The versions of the specification that modules and envelopes may follow.
    #[schemars(with = "Vec<String>")]
    pub spec_versions: [&'static str; SPEC_VERSIONS.len()],
    /// The highest level of the specification that is complete.
    pub conformance_level: u8,
    /// The capabilities.
    pub capabilities: Capabilities,
}

/// Returns the declaration of a runtime with these capabilities.
#[must_use]
pub fn declaration(capabilities: &Capabilities) -> Declaration {
    Declaration {
        runtime: "cogn",
        version: env!("CARGO_PKG_VERSION"),
        spec_versions: SPEC_VERSIONS,
        conformance_level: CONFORMANCE_LEVEL,
        capabilities: capabilities.clone(),
    }
}
