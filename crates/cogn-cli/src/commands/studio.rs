//! `cogn studio`: starts the local server, and opens its page in the browser. Takes the options of `cogn serve`, with
//! two differences: another port is used if the default one is taken, and the page is opened.

use cognitive_library::Library;

use super::serve::{Listening, ServeArgs, serve_then};
use crate::platform;
use crate::printer::{Exit, Printer};

/// Options of `studio`: those of `serve`, and whether the browser is opened
#[derive(Debug, clap::Args)]
pub struct StudioArgs {
    /// Print the address of the page instead of opening it
    #[arg(long)]
    no_open: bool,
    #[command(flatten)]
    serve: ServeArgs,
}

/// Serves until a signal arrives, and opens the page.
pub fn studio(args: &StudioArgs, library: &Library, printer: &Printer) -> Exit {
    let then = if args.no_open { None } else { Some(open as fn(&str)) };
    serve_then(&args.serve, library, printer, &Listening { any_port: true, then })
}

/// A browser that cannot be opened is no reason to stop: the address is printed.
fn open(address: &str) {
    let named = cognitive_setup::wiring::environment(cognitive_setup::env_vars::BROWSER);
    if let Err(error) = platform::open_page(named.as_deref(), address) {
        Printer.warning(&format!("cannot open the browser: {error}"));
    }
}
