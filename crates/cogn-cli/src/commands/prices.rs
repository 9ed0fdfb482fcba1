//! `cogn prices`: the prices of models, from the built-in table and the user's own. Calls no service.

use cognitive_ports::prices::{PriceRow, PriceTable};
use cognitive_setup::prices;
use serde_json::json;

use super::fail;
use crate::printer::{Exit, FAINT, NOTE, Printer};
use crate::project;
use crate::text_table::TextTable;

/// Options of `prices`.
#[derive(Debug, clap::Args)]
pub struct PricesArgs {
    /// Show only models whose `provider/model` contains this
    filter: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints the table.
pub fn prices(args: &PricesArgs, printer: &Printer) -> Exit {
    let table = match project::config().and_then(|config| prices::table(&config.prices)) {
        Ok(table) => table,
        Err(failure) => return fail(&failure, printer),
    };
    let rows = matching_rows(&table, args.filter.as_deref().unwrap_or_default());
    if args.json {
        printer.json(
            &json!({ "currency": "USD", "per_tokens": 1_000_000, "as_of": table.as_of, "models": rows }),
        );
        return Exit::Good;
    }
    let heads = ["MODEL", "INPUT", "OUTPUT", "FROM CACHE", "INTO CACHE", "AS OF"];
    let shown = TextTable::new(heads).right(&[1, 2, 3, 4]).optional_columns(&[4, 3, 5]);
    printer.table(&shown.with(rows.iter().map(cells)));
    printer.notice(format!(
        "{FAINT}in US dollars per million tokens; models on this machine cost nothing{FAINT:#}"
    ));
    if rows.is_empty() {
        printer.err("no price for this model; `prices` in the configuration adds one");
        return Exit::Bad;
    }
    Exit::Good
}

fn matching_rows<'t>(table: &'t PriceTable, filter: &str) -> Vec<PriceRow<'t>> {
    table.rows().into_iter().filter(|row| row.model.contains(filter)).collect()
}

fn cells(row: &PriceRow<'_>) -> Vec<String> {
    let model = format!("{NOTE}{}{NOTE:#}", row.model);
    let money = [row.input, row.output, row.cache_read, row.cache_write].map(|amount| amount.to_string());
    [vec![model], money.to_vec(), vec![row.as_of.to_owned()]].concat()
}
