//! `cogn schema`: the JSON Schemas for editors and gateways, generated from the runtime's types.

use std::path::PathBuf;

use crate::editor_schemas::{self, EditorSchema};
use crate::printer::{Exit, Printer};

/// Options of `schema`.
#[derive(Debug, clap::Args)]
pub struct SchemaArgs {
    /// The schema to print
    #[arg(value_enum, default_value_t = EditorSchema::Module)]
    what: EditorSchema,
    #[arg(
        long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = editor_schemas::FOLDER,
        conflicts_with = "what", help = "Write all schemas to a folder instead, for editors"
    )]
    write: Option<PathBuf>,
}

/// Prints the schema, or writes all of them.
pub fn schema(args: &SchemaArgs, printer: &Printer) -> Exit {
    let Some(folder) = &args.write else {
        printer.json(&args.what.value());
        return Exit::Good;
    };
    match editor_schemas::write(folder) {
        Ok(written) => {
            for file in &written {
                printer.print_line(file.display().to_string());
            }
            Exit::Good
        }
        Err(error) => {
            let hint = "Choose a writable folder with `--write=DIR`";
            printer.error(&format!("cannot write schemas to `{}`: {error}", folder.display()), Some(hint));
            Exit::Bad
        }
    }
}
