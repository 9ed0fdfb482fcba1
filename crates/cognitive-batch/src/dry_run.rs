//! Estimates the size and cost of a batch from its file and a sample of its rows. Calls no model and writes
//! nothing.

use std::collections::HashSet;
use std::io;

use cognitive_contract::money::Money;
use cognitive_contract::{Failure, Module};
use cognitive_ports::prices::ModelPrice;
use cognitive_runtime::cost::{ceiling_for_text, price_of};
use cognitive_runtime::host::RunInput;
use cognitive_runtime::{Host, RunOptions, preview};
use serde::Serialize;

use crate::batch_folder::unreadable_rows;
use crate::row_input::RowMapping;
use crate::row_source::RowFile;

/// The number of rows that are examined. Further rows are only counted, so that a dry run of a large file is fast.
const SAMPLE: u64 = 1000;

/// The estimate of a batch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BatchEstimate {
    /// All rows of the file.
    pub rows: u64,
    /// The number of examined rows, from the start of the file.
    pub sampled: u64,
    /// The number of examined rows with the same input as an earlier one.
    pub duplicates: u64,
    /// The number of examined rows that would fail before a model is called.
    pub refused: u64,
    /// The reason for the first of these failures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_refusal: Option<String>,
    /// The estimated input tokens of all rows.
    pub input_tokens: u64,
    /// The cost of these tokens, if there is a price. Does not include answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_cost: Option<Money>,
    /// The upper bound for the cost of all rows, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<Money>,
    /// The reason for a missing upper bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_ceiling: Option<String>,
}

/// Estimates a batch from its file.
pub fn estimate(
    rows: &RowFile,
    mapping: &RowMapping,
    host: &Host,
    module: &Module,
    options: &RunOptions,
) -> Result<BatchEstimate, Failure> {
    mapping.check(rows)?;
    look(rows, mapping, host, module, options).map_err(|error| unreadable_rows(&rows.path, &error))
}

fn look(
    rows: &RowFile,
    mapping: &RowMapping,
    host: &Host,
    module: &Module,
    options: &RunOptions,
) -> io::Result<BatchEstimate> {
    let mut reader = rows.open()?;
    let mut sample = Sample::default();
    let mut count = 0;
    while let Some(raw) = reader.next_row(count < SAMPLE)? {
        if count < SAMPLE {
            let ready = mapping.prepare(count, raw, module);
            let is_new = sample.seen.insert(ready.short_hash);
            sample.look(&ready.input, is_new, host, module, options);
        }
        count += 1;
    }
    let model = host.decide(&module.manifest.name, options).models.first;
    Ok(sample.estimate(count, price_of(host, model.as_ref())))
}

#[derive(Default)]
struct Sample {
    seen: HashSet<[u8; 16]>,
    rows: u64,
    duplicates: u64,
    refused: u64,
    first_refusal: Option<String>,
    tokens: u64,
    at_most: Money,
    no_ceiling: Option<String>,
}

impl Sample {
    fn look(
        &mut self,
        input: &Result<RunInput, Failure>,
        is_new: bool,
        host: &Host,
        module: &Module,
        options: &RunOptions,
    ) {
        self.rows += 1;
        self.duplicates += u64::from(!is_new);
        let shown = match input {
            Ok(input) => preview(
                module,
                input,
                host.decide(&module.manifest.name, options).settings.enforcement(),
                None,
            ),
            Err(failure) => Err(failure.clone()),
        };
        match shown {
            Ok(_) if !is_new => {}
            Ok(shown) => {
                self.tokens = self.tokens.saturating_add(shown.estimated_tokens);
                match ceiling_for_text(host, module, options, &shown.input) {
                    Ok(ceiling) => self.at_most = self.at_most.plus(ceiling.cost),
                    Err(failure) => {
                        self.no_ceiling.get_or_insert_with(|| failure.message().to_owned());
                    }
                }
            }
            Err(failure) => {
                self.refused += 1;
                self.first_refusal.get_or_insert_with(|| failure.message().to_owned());
            }
        }
    }

    fn estimate(self, rows: u64, price: Option<ModelPrice>) -> BatchEstimate {
        let scaled = |amount: u64| match self.rows {
            0 => 0,
            looked => {
                u64::try_from(u128::from(amount) * u128::from(rows) / u128::from(looked)).unwrap_or(u64::MAX)
            }
        };
        let input_tokens = scaled(self.tokens);
        BatchEstimate {
            rows,
            sampled: self.rows,
            duplicates: self.duplicates,
            refused: self.refused,
            first_refusal: self.first_refusal,
            input_tokens,
            input_cost: price.map(|price| price.rates.input.times(input_tokens)),
            at_most: self.no_ceiling.is_none().then(|| Money::from_pico(scaled(self.at_most.pico()))),
            no_ceiling: self.no_ceiling,
        }
    }
}
