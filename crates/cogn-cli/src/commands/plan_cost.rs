//! The cost ceiling of one run of a module, for `compose plan --cost`. Calls no model and needs no key.

use cognitive_contract::Failure;
use cognitive_contract::Module;
use cognitive_library::Library;
use cognitive_runtime::cost;
use cognitive_runtime::{CostCeiling, PartCost};

use crate::args::provider::ProviderArgs;
use crate::figures::{count_text, dollars};
use crate::printer::{FAINT, HEAD, Printer};
use crate::project;
use crate::text_table::TextTable;

/// The assumed length of the input in bytes, if none is given.
pub(super) const USUAL_INPUT_BYTES: u64 = 4096;

/// Returns the ceiling for the configured and typed models and limits.
pub(super) fn ceiling(
    module: &Module,
    library: &Library,
    typed: &ProviderArgs,
    input_bytes: u64,
) -> Result<CostCeiling, Failure> {
    let runtime =
        project::runtime(library, typed)?.for_module(&module.manifest.name).for_estimates().build()?;
    cost::ceiling(&runtime.host(), module, &runtime.run_options(), input_bytes)
}

/// Prints the ceiling.
pub(super) fn show(ceiling: &CostCeiling, printer: &Printer) {
    printer.print_line(format!("\n{HEAD}at most{HEAD:#}"));
    let heads = ["MODULE", "CALLS", "TOKENS IN", "OUT", "COST"];
    let mut table =
        TextTable::new(heads).right(&[1, 2, 3, 4]).indent(2).with(ceiling.parts.iter().map(cells));
    let sum =
        |of: fn(&PartCost) -> u64| ceiling.parts.iter().map(of).fold(0, u64::saturating_add).to_string();
    if ceiling.parts.len() > 1 {
        let tokens = [sum(|part| part.input_tokens), sum(|part| part.output_tokens)];
        let [read, written] = tokens;
        table.push(vec!["all".to_owned(), ceiling.calls.to_string(), read, written, dollars(ceiling.cost)]);
    }
    printer.table(&table);
    let bytes = count_text(ceiling.input_bytes, "byte");
    printer.notice(format!("{FAINT}for an input of {bytes}; `--input-bytes` changes it{FAINT:#}"));
}

fn cells(part: &PartCost) -> Vec<String> {
    vec![
        part.module.clone(),
        part.calls.to_string(),
        part.input_tokens.to_string(),
        part.output_tokens.to_string(),
        dollars(part.cost),
    ]
}
