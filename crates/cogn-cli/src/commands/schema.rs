//! `cogn schema`: the JSON Schemas that editors and gateways need, generated from the runtime's own types.

use clap::ValueEnum;
use cognitive_contract::{envelope_schema, manifest};

use crate::printer::{Exit, Printer};

/// Options of `schema`.
#[derive(Debug, clap::Args)]
pub struct SchemaArgs {
    /// Which schema to print
    #[arg(value_enum, default_value_t = What::Module)]
    what: What,
}

/// What there are schemas of.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum What {
    /// module.yaml, as an author writes it
    Module,
    /// The envelope that every run answers with
    Envelope,
}

/// Prints the schema.
pub fn schema(args: &SchemaArgs, printer: &Printer) -> Exit {
    match args.what {
        What::Module => printer.json(&manifest::json_schema()),
        What::Envelope => printer.json(&envelope_schema::json_schema()),
    }
    Exit::Good
}
