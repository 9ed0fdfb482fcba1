//! `cogn capabilities`: the capabilities of this runtime with the configured provider, as HTTP also reports them
//! (CAP-002, CAP-003). Calls no service and needs no key.

use cognitive_contract::{Capabilities, Failure};
use cognitive_library::Library;
use cognitive_setup::{media, wiring};

use super::fail;
use crate::args::candidates;
use crate::args::provider::ProviderArgs;
use crate::printer::{Exit, Printer};
use crate::project;

/// Options of `capabilities`.
#[derive(Debug, clap::Args)]
pub struct CapabilitiesArgs {
    /// The provider; as configured if absent
    #[arg(long, short, value_name = "NAME", add = candidates::providers())]
    provider: Option<String>,
    /// The model that would be asked
    #[arg(long, short, value_name = "MODEL")]
    model: Option<String>,
}

/// Prints the declaration.
pub fn capabilities(args: &CapabilitiesArgs, library: &Library, printer: &Printer) -> Exit {
    match declared_capabilities(args, library) {
        Ok(capabilities) => {
            printer.json(&cognitive_runtime::declaration(&capabilities));
            Exit::Good
        }
        Err(failure) => fail(&failure, printer),
    }
}

fn declared_capabilities(args: &CapabilitiesArgs, library: &Library) -> Result<Capabilities, Failure> {
    let typed = ProviderArgs {
        provider: args.provider.clone(),
        model: args.model.clone(),
        ..ProviderArgs::default()
    };
    let settings = project::runtime(library, &typed)?.settings()?;
    let mut capabilities = Capabilities::default();
    capabilities.take_media(&media::limits(&settings.media)?);
    Ok(wiring::limited_by_provider(&settings, capabilities))
}
