//! `cogn prompt MODULE`: prints the exact prompts of the model calls of a run, without the calls.

use cognitive_contract::Enforcement;
use cognitive_contract::ports::Example;
use cognitive_library::Library;
use cognitive_runtime::{
    Clock, Preview, PreviewedCall, PreviewedPrompt, RunContext, RunOptions, preview_calls,
};
use cognitive_setup::settings;
use cognitive_setup::stores::Stores;
use serde_json::{Map, Value, json};

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
        let calls = preview_calls(library, &module, &given, enforcement, Some(&memory))?;
        Ok((module.is_standalone(), calls))
    });
    let (stands_alone, calls) = match built {
        Ok(built) => built,
        Err(failure) => return fail(&failure, printer),
    };
    let only = calls.first().filter(|_| stands_alone).map(|call| &call.prompt);
    if let Some(PreviewedPrompt::Known(preview)) = only {
        if args.json {
            printer.json(&Value::Object(prompt_members(preview)));
        } else {
            show(preview, printer);
        }
        return Exit::Good;
    }
    if args.json {
        let calls: Vec<Value> = calls.iter().map(call).collect();
        printer.json(&json!({ "calls": calls }));
        return Exit::Good;
    }
    for (index, PreviewedCall { module, prompt, .. }) in calls.iter().enumerate() {
        let gap = if index == 0 { "" } else { "\n" };
        match prompt {
            PreviewedPrompt::Known(preview) => {
                printer.err(format!("{gap}{HEAD}{module}{HEAD:#}"));
                show(preview, printer);
            }
            PreviewedPrompt::WaitsFor(names) => {
                let names = names.join(", ");
                printer
                    .err(format!("{gap}{HEAD}{module}{HEAD:#}: the prompt depends on the answer of {names}"));
            }
            PreviewedPrompt::NotSent(why) => {
                printer.err(format!("{gap}{HEAD}{module}{HEAD:#}: no prompt is sent ({why})"));
            }
            _ => {}
        }
    }
    Exit::Good
}

/// A call for programs.
fn call(call: &PreviewedCall) -> Value {
    let mut members = match &call.prompt {
        PreviewedPrompt::Known(preview) => prompt_members(preview),
        PreviewedPrompt::WaitsFor(names) => Map::from_iter([("waits_for".to_owned(), json!(names))]),
        PreviewedPrompt::NotSent(why) => Map::from_iter([("not_sent".to_owned(), json!(why))]),
        _ => Map::new(),
    };
    members.shift_insert(0, "module".to_owned(), json!(call.module));
    Value::Object(members)
}

/// A prompt for programs.
fn prompt_members(preview: &Preview) -> Map<String, Value> {
    let turn = |example: &Example| json!({ "input": example.input, "answer": example.answer });
    let examples: Vec<Value> = preview.examples.iter().map(turn).collect();
    Map::from_iter([
        ("instructions".to_owned(), json!(preview.instructions)),
        ("examples".to_owned(), json!(examples)),
        ("input".to_owned(), json!(preview.input)),
        ("estimated_tokens".to_owned(), json!(preview.estimated_tokens)),
    ])
}

/// A prompt for people.
fn show(preview: &Preview, printer: &Printer) {
    printer.err(format!("{HEAD}instructions{HEAD:#}"));
    printer.print_line(preview.instructions.trim_end());
    for (index, example) in preview.examples.iter().enumerate() {
        printer.err(format!("\n{HEAD}example {}{HEAD:#}", index + 1));
        printer.print_line(example.input.trim_end());
        printer.print_line(&example.answer);
    }
    printer.err(format!("\n{HEAD}input{HEAD:#}"));
    printer.print_line(preview.input.trim_end());
    printer.err(format!("\n{FAINT}about {} tokens{FAINT:#}", preview.estimated_tokens));
}
