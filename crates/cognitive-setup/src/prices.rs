//! The effective prices: the built-in table, overridden by the operator's table, overridden by the models that the
//! configuration names. Reads one file; refuses an invalid table.

use std::sync::Arc;

use cognitive_contract::Failure;
use cognitive_library::folder::{self, ReadError, TEXT_LIMIT};
use cognitive_library::yaml;
use cognitive_ports::prices::PriceTable;
use serde_json::{Value, json};

use crate::config::PricesConfig;

/// Returns all configured prices.
pub fn table(config: &PricesConfig) -> Result<Arc<PriceTable>, Failure> {
    let mut table = PriceTable::built_in();
    if let Some(path) = &config.file {
        let own = read(path).and_then(PriceTable::from_value);
        let own = own.map_err(|why| {
            invalid_prices(&format!("cannot use the price table: `{}`", path.display()), &why)
        })?;
        table = Arc::new(table.overridden_by(own));
    }
    if !config.models.is_empty() {
        let as_of = config.as_of.as_deref().unwrap_or_default();
        let own = PriceTable::from_value(json!({ "as_of": as_of, "models": config.models }));
        let own = own.map_err(|why| invalid_prices("cannot use `prices` of the configuration", &why))?;
        table = Arc::new(table.overridden_by(own));
    }
    Ok(table)
}

fn read(path: &std::path::Path) -> Result<Value, String> {
    let bytes = folder::read_file(path, TEXT_LIMIT).map_err(|error| match error {
        ReadError::Missing => "no such file".to_owned(),
        ReadError::Refused(reason) => reason,
    })?;
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())?;
    yaml::parse(&text).map_err(|error| error.message)
}

fn invalid_prices(what: &str, why: &str) -> Failure {
    Failure::config_fault(format!("{what}: {why}"))
        .suggest("Write `{as_of: 2026-11-17, models: {openai/gpt-4o: {input: 2.5, output: 10}}}`, in dollars per million tokens")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn config(text: &str) -> PricesConfig {
        Config::parse(text).unwrap().prices
    }

    #[test]
    fn a_file_counts_above_what_comes_along_and_the_configuration_above_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.yaml");
        std::fs::write(
            &path,
            "as_of: 2026-12-01\nmodels: {openai/gpt-4o: {input: 1, output: 1}, a/b: {input: 1, output: 1}}\n",
        )
        .unwrap();
        let text = format!(
            "prices: {{file: {}, as_of: 2026-12-02, models: {{a/b: {{input: 2, output: 3}}}}}}\n",
            path.display()
        );
        let table = table(&config(&text)).unwrap();
        let input = |provider, model| table.price(provider, model).unwrap().rates.input.pico();
        assert_eq!((input("openai", "gpt-4o"), input("a", "b")), (1_000_000, 2_000_000));
        assert!(table.price("anthropic", "claude-haiku-4-5").is_some());
        assert_eq!(table.as_of, "2026-12-02");
    }

    #[test]
    fn a_table_without_a_day_or_without_a_file_is_refused() {
        for (text, told) in [
            ("prices: {models: {a/b: {input: 2, output: 3}}}\n", "expected a day"),
            ("prices: {file: /nowhere/p.yaml}\n", "no such file"),
            (
                "prices: {as_of: 2026-12-02, models: {b: {input: 2, output: 3}}}\n",
                "expected `provider/model`",
            ),
        ] {
            let failure = table(&config(text)).unwrap_err();
            assert!(failure.message().contains(told), "{}", failure.message());
        }
    }
}
