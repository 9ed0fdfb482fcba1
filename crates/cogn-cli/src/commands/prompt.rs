//! `cogn prompt MODULE`: prints the exact prompt of a model call, without the call.

use cognitive_contract::Enforcement;
use cognitive_contract::ports::Example;
use cognitive_library::Library;
use cognitive_runtime::{Clock, RunContext, RunOptions};
use cognitive_setup::settings;
use cognitive_setup::stores::Stores;
use serde_json::{Value, json};

use super::fail;
use crate::args::candidates;
use crate::args::input::InputArgs;
use crate::printer::{Exit, FAINT, HEAD, Printer};
use crate::project;

/// Options of `prompt`.
#[derive(Debug, clap::Args)]
pub struct PromptArgs {
    /// Name of an installed module, or path of a folder
    #[arg(add = candidates::modules())]
    module: String,
    #[command(flatten)]
    input: InputArgs,
    /// Do not enforce the input schema
    #[arg(long)]
    no_validate: bool,
    /// The user whose stored context would be read; none by default
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// The tenant of the user, if tenants are used
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
    /// The session whose stored context would be read
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints the prompt.
pub fn prompt(args: &PromptArgs, library: &Library, printer: &Printer) -> Exit {
    let enforcement = if args.no_validate { Enforcement::EnvelopeOnly } else { Enforcement::Full };
    let built = library.load(&args.module).and_then(|module| {
        let given = args.input.gather(Some(&module))?;
        let config = project::config()?;
        let (store, clock) = (Stores::context_of(&config), Clock::new());
        let options =
            RunOptions::default().for_user(args.user.clone(), args.tenant.clone(), args.session.clone());
        let sanitiser = settings::sanitiser(&config);
        let memory = RunContext::new(store.as_deref(), &clock, &options).with_sanitiser(sanitiser);
        cognitive_runtime::preview(&module, &given, enforcement, Some(&memory))
    });
    let preview = match built {
        Ok(preview) => preview,
        Err(failure) => return fail(&failure, printer),
    };
    if args.json {
        let turn = |example: &Example| json!({ "input": example.input, "answer": example.answer });
        let examples: Vec<Value> = preview.examples.iter().map(turn).collect();
        printer.json(&json!({
            "instructions": preview.instructions,
            "examples": examples,
            "input": preview.input,
            "estimated_tokens": preview.estimated_tokens,
        }));
        return Exit::Good;
    }
    printer.err(format!("{HEAD}instructions{HEAD:#}"));
    printer.out(preview.instructions.trim_end());
    for (index, example) in preview.examples.iter().enumerate() {
        printer.err(format!("\n{HEAD}example {}{HEAD:#}", index + 1));
        printer.out(example.input.trim_end());
        printer.out(&example.answer);
    }
    printer.err(format!("\n{HEAD}input{HEAD:#}"));
    printer.out(preview.input.trim_end());
    printer.err(format!("\n{FAINT}about {} tokens{FAINT:#}", preview.estimated_tokens));
    Exit::Good
}
