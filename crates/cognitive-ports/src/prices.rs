//! Model prices: a dated table by provider and model, and the cost of a call. Amounts are whole picodollars per
//! token.
//! A model outside the table has no price; prices are never guessed.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use cognitive_contract::money::Money;
use cognitive_contract::ports::Usage;
use serde::{Deserialize, Serialize};

/// The bundled price table: dollars as on 2026-11-19, from the price file of `LiteLLM` 1.109.1. `DeepSeek`'s are those of
/// peak hours. `OpenRouter`, which that file does not have, passes on the price of the provider.
const BUILT_IN: &str = include_str!("prices.json");

/// The maximum length of a model name, and the maximum number of models, in one table. A table is read at every start
/// and held in memory.
const MAX_NAME_LENGTH: usize = 200;
const MAX_MODELS: usize = 10_000;

/// A price table. An overriding table replaces earlier ones model by model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceTable {
    entries: Vec<PriceEntry>,
    /// The date of the prices.
    pub as_of: String,
}

/// An entry of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceEntry {
    /// `provider/model`; a trailing `*` matches any suffix.
    pub model: String,
    /// Its price.
    pub price: ModelPrice,
    /// The date of the price.
    pub as_of: String,
}

/// The price of a model, per token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModelPrice {
    /// The regular rates.
    pub rates: TokenRates,
    /// The token count above which an input is billed at other rates, and those rates.
    pub long: Option<(u64, TokenRates)>,
    /// The maximum number of thinking tokens before an answer.
    pub thinking_tokens: u64,
    /// The maximum number of tokens of one image; `None` if no bound is known.
    pub image_tokens: Option<u64>,
    /// The vocabulary of its tokens, if published.
    pub vocabulary: BilledVocabulary,
}

/// The vocabulary that a model is billed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BilledVocabulary {
    /// Not published. A token then counts as at least one byte.
    #[default]
    Unknown,
    /// The vocabulary that OpenAI publishes under this name.
    O200k,
}

/// Prices of one token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenRates {
    /// Input tokens.
    pub input: Money,
    /// Output tokens, including thinking.
    pub output: Money,
    /// Input tokens read from the service's prompt cache.
    pub cache_read: Money,
    /// Input tokens written to that cache.
    pub cache_write: Money,
}

/// The file format of a table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableFile {
    as_of: String,
    #[serde(default)]
    currency: Option<String>,
    models: BTreeMap<String, PriceFile>,
}

/// Prices in the usual unit of services: dollars per million tokens.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceFile {
    #[serde(flatten)]
    rates: RatesFile,
    #[serde(default)]
    long_context: Option<LongFile>,
    #[serde(default)]
    thinking_tokens: u64,
    #[serde(default)]
    image_tokens: Option<u64>,
    #[serde(default)]
    vocabulary: BilledVocabulary,
}

#[derive(Debug, Deserialize)]
struct RatesFile {
    input: Money,
    output: Money,
    #[serde(default)]
    cache_read: Option<Money>,
    #[serde(default)]
    cache_write: Option<Money>,
}

#[derive(Debug, Deserialize)]
struct LongFile {
    above_tokens: u64,
    #[serde(flatten)]
    rates: RatesFile,
}

/// An entry for display and for programs, in dollars per million tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PriceRow<'a> {
    /// `provider/model`.
    pub model: &'a str,
    /// The input price.
    pub input: Money,
    /// The output price.
    pub output: Money,
    /// The price of input read from the service's cache.
    pub cache_read: Money,
    /// The price of input written to it.
    pub cache_write: Money,
    /// The date of the price.
    pub as_of: &'a str,
}

impl PriceTable {
    /// Returns the bundled table.
    #[must_use]
    pub fn built_in() -> Arc<Self> {
        static TABLE: OnceLock<Arc<PriceTable>> = OnceLock::new();
        let empty = || Self { entries: Vec::new(), as_of: String::new() };
        // A test parses the file, so the table is never empty.
        let read = || serde_json::from_str(BUILT_IN).ok().and_then(|file| Self::from_file(file).ok());
        Arc::clone(TABLE.get_or_init(|| Arc::new(read().unwrap_or_else(empty))))
    }

    /// Parses an operator's own table from a JSON or YAML value. The error says what is wrong with it.
    pub fn from_value(value: serde_json::Value) -> Result<Self, String> {
        Self::from_file(serde_json::from_value(value).map_err(|error| error.to_string())?)
    }

    fn from_file(file: TableFile) -> Result<Self, String> {
        let as_of = file.as_of;
        if !is_day(&as_of) {
            return Err(format!("expected a day such as `2026-11-17` in `as_of`: `{as_of}`"));
        }
        if let Some(other) = file.currency.filter(|currency| currency != cognitive_contract::money::CURRENCY)
        {
            return Err(format!("prices must be in US dollars, not in: `{other}`"));
        }
        if file.models.len() > MAX_MODELS {
            return Err(format!("a table has at most {MAX_MODELS} models"));
        }
        let entry = |(model, price): (String, PriceFile)| {
            let star = model.find('*').is_some_and(|at| at + 1 != model.len());
            if star || !model.contains('/') || model.len() > MAX_NAME_LENGTH {
                return Err(format!("expected `provider/model`, with a `*` at most at its end: `{model}`"));
            }
            let price =
                price.per_token().ok_or_else(|| format!("a price has more than six decimals: `{model}`"))?;
            Ok(PriceEntry { model, price, as_of: as_of.clone() })
        };
        let entries = file.models.into_iter().map(entry).collect::<Result<_, String>>()?;
        Ok(Self { entries, as_of })
    }

    /// Returns this table, overridden by another one.
    #[must_use]
    pub fn overridden_by(&self, other: Self) -> Self {
        let as_of = self.as_of.clone().max(other.as_of.clone());
        let is_replaced = |entry: &&PriceEntry| other.entries.iter().all(|new| new.model != entry.model);
        let kept: Vec<PriceEntry> = self.entries.iter().filter(is_replaced).cloned().collect();
        Self { entries: other.entries.into_iter().chain(kept).collect(), as_of }
    }

    /// Returns the price of a model. An exact name takes precedence over a prefix, and a longer prefix over a
    /// shorter one.
    #[must_use]
    pub fn price(&self, provider: &str, model: &str) -> Option<ModelPrice> {
        self.entry(provider, model).map(|entry| entry.price)
    }

    /// Returns the entry for display, with its date.
    #[must_use]
    pub fn row(&self, provider: &str, model: &str) -> Option<PriceRow<'_>> {
        self.entry(provider, model).map(PriceEntry::row)
    }

    fn entry(&self, provider: &str, model: &str) -> Option<&PriceEntry> {
        let fits = |entry: &&PriceEntry| {
            let Some(name) = entry.model.strip_prefix(provider).and_then(|rest| rest.strip_prefix('/'))
            else {
                return false;
            };
            match name.strip_suffix('*') {
                Some(beginning) => model.starts_with(beginning),
                None => name == model,
            }
        };
        let rank = |entry: &&PriceEntry| (!entry.model.ends_with('*'), entry.model.len());
        // Of two equal matches the first one wins, because overriding entries come first.
        let fitting = self.entries.iter().filter(fits);
        fitting.rev().max_by_key(rank)
    }

    /// Returns the batch prices. Every service that accepts batches bills half of the regular price.
    #[must_use]
    pub fn for_posts(&self) -> Self {
        let entries = self.entries.iter().cloned();
        let entries = entries.map(|entry| PriceEntry { price: entry.price.halve(), ..entry }).collect();
        Self { entries, as_of: self.as_of.clone() }
    }

    /// Returns all entries for display, sorted by name.
    #[must_use]
    pub fn rows(&self) -> Vec<PriceRow<'_>> {
        let mut rows: Vec<PriceRow<'_>> = self.entries.iter().map(PriceEntry::row).collect();
        rows.sort_by_key(|row| row.model);
        rows
    }
}

impl PriceEntry {
    fn row(&self) -> PriceRow<'_> {
        let million = |money: Money| money.times(1_000_000);
        let rates = &self.price.rates;
        PriceRow {
            model: &self.model,
            input: million(rates.input),
            output: million(rates.output),
            cache_read: million(rates.cache_read),
            cache_write: million(rates.cache_write),
            as_of: &self.as_of,
        }
    }
}

impl PriceFile {
    fn per_token(self) -> Option<ModelPrice> {
        let long = self.long_context.map(|long| Some((long.above_tokens, long.rates.per_token()?)));
        Some(ModelPrice {
            rates: self.rates.per_token()?,
            long: match long {
                Some(long) => Some(long?),
                None => None,
            },
            thinking_tokens: self.thinking_tokens,
            image_tokens: self.image_tokens,
            vocabulary: self.vocabulary,
        })
    }
}

impl RatesFile {
    /// Without cache prices, a service bills cached input at the regular input price.
    fn per_token(self) -> Option<TokenRates> {
        let each = |money: Money| {
            money.pico().is_multiple_of(1_000_000).then(|| Money::from_pico(money.pico() / 1_000_000))
        };
        let input = each(self.input)?;
        let of_cache = |money: Option<Money>| money.map_or(Some(input), each);
        Some(TokenRates {
            input,
            output: each(self.output)?,
            cache_read: of_cache(self.cache_read)?,
            cache_write: of_cache(self.cache_write)?,
        })
    }
}

impl ModelPrice {
    /// A price of zero, as for a local model.
    pub const FREE: Self = Self {
        rates: TokenRates {
            input: Money::ZERO,
            output: Money::ZERO,
            cache_read: Money::ZERO,
            cache_write: Money::ZERO,
        },
        long: None,
        thinking_tokens: 0,
        image_tokens: Some(0),
        vocabulary: BilledVocabulary::Unknown,
    };

    /// Returns half of the price, rounded up, so that cost limits still hold.
    fn halve(self) -> Self {
        let rates = |rates: TokenRates| {
            let half = |money: Money| Money::from_pico(money.pico().div_ceil(2));
            TokenRates {
                input: half(rates.input),
                output: half(rates.output),
                cache_read: half(rates.cache_read),
                cache_write: half(rates.cache_write),
            }
        };
        Self { rates: rates(self.rates), long: self.long.map(|(above, long)| (above, rates(long))), ..self }
    }

    /// Returns the cost of one call. Not valid for sums of calls: a long call may have higher rates.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> Money {
        let rates = self.rates_for(usage.input_tokens);
        let cached = usage.cache_read_tokens.saturating_add(usage.cache_write_tokens);
        rates
            .input
            .times(usage.input_tokens.saturating_sub(cached))
            .plus(rates.cache_read.times(usage.cache_read_tokens))
            .plus(rates.cache_write.times(usage.cache_write_tokens))
            .plus(rates.output.times(usage.output_tokens))
    }

    /// Returns the maximum cost of a call with at most these tokens. `may_write` is the number of input tokens
    /// that the service may write to its cache.
    #[must_use]
    pub fn worst(&self, input_tokens: u64, may_write: u64, output_tokens: u64) -> Money {
        let below = self.rates;
        let at_most = |rates: TokenRates| {
            let plain = rates.input.max(rates.cache_read);
            let written = plain.max(rates.cache_write);
            let may_write = may_write.min(input_tokens);
            plain
                .times(input_tokens - may_write)
                .plus(written.times(may_write))
                .plus(rates.output.times(output_tokens))
        };
        at_most(below).max(at_most(self.rates_for(input_tokens)))
    }

    fn rates_for(&self, input_tokens: u64) -> TokenRates {
        self.long.filter(|(above, _)| input_tokens > *above).map_or(self.rates, |(_, rates)| rates)
    }
}

/// Returns whether a text has the shape of a date, such as `2026-11-17`.
fn is_day(text: &str) -> bool {
    let shape = text.bytes().map(|byte| if byte.is_ascii_digit() { b'0' } else { byte });
    shape.eq(*b"0000-00-00")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pico(per_token: u64) -> Money {
        Money::from_pico(per_token)
    }

    #[test]
    fn the_table_that_comes_along_is_dated_and_has_the_usual_models() {
        let table = PriceTable::built_in();
        assert!(is_day(&table.as_of), "{}", table.as_of);
        assert!(table.rows().len() > 20);
        // Two dollars per million tokens are two microdollars per token.
        let sonnet = table.price("anthropic", "claude-sonnet-5").unwrap().rates;
        assert_eq!((sonnet.input, sonnet.output), (pico(2_000_000), pico(10_000_000)));
        for (provider, model) in
            [("openai", "gpt-5.4-mini"), ("gemini", "gemini-2.5-flash"), ("openai", "gpt-4o-2024-08-06")]
        {
            assert!(table.price(provider, model).is_some(), "{provider}/{model}");
        }
        for (provider, model) in
            [("openai", "gpt-4o-audio-preview"), ("embedded", "x"), ("open", "ai/gpt-4o")]
        {
            assert_eq!(table.price(provider, model), None, "{provider}/{model}");
        }
    }

    #[test]
    fn a_table_of_somebodys_own_counts_first_and_a_whole_name_before_a_beginning() {
        let own = json!({ "as_of": "2027-01-02", "models": {
            "openai/gpt-4o": { "input": 1, "output": "2.5" },
            "openai/gpt-4o-*": { "input": 7, "output": 7 },
            "house/*": { "input": 0, "output": 0.000_001 },
        } });
        let table = PriceTable::built_in().overridden_by(PriceTable::from_value(own).unwrap());
        let input = |provider, model| table.price(provider, model).map(|price| price.rates.input);
        assert_eq!(input("openai", "gpt-4o"), Some(pico(1_000_000)));
        assert_eq!(input("openai", "gpt-4o-mini"), Some(pico(150_000)), "a whole name of the table below");
        assert_eq!(input("openai", "gpt-4o-new"), Some(pico(7_000_000)));
        assert_eq!(table.price("house", "any").unwrap().rates.output, pico(1));
        assert_eq!(table.as_of, "2027-01-02");
    }

    #[test]
    fn what_is_posted_costs_half_rounded_up() {
        let own = json!({ "as_of": "2027-01-02", "models": {
            "a/b": { "input": 3, "output": 10, "cache_read": 0.000_001,
                     "long_context": { "above_tokens": 5, "input": 6, "output": 20 } },
        } });
        let price = PriceTable::from_value(own).unwrap().for_posts().price("a", "b").unwrap();
        assert_eq!((price.rates.input, price.rates.output), (pico(1_500_000), pico(5_000_000)));
        assert_eq!((price.rates.cache_read, price.long.unwrap().1.output), (pico(1), pico(10_000_000)));
    }

    #[test]
    fn a_table_that_could_mislead_is_refused() {
        let models = json!({ "a/b": { "input": 1, "output": 1 } });
        for bad in [
            json!({ "models": models }),
            json!({ "as_of": "yesterday", "models": models }),
            json!({ "as_of": "2026-01-01", "currency": "EUR", "models": models }),
            json!({ "as_of": "2026-01-01", "models": { "b": { "input": 1, "output": 1 } } }),
            json!({ "as_of": "2026-01-01", "models": { "a/*b": { "input": 1, "output": 1 } } }),
            json!({ "as_of": "2026-01-01", "models": { "a/b": { "input": 1 } } }),
            json!({ "as_of": "2026-01-01", "models": { "a/b": { "input": -1, "output": 1 } } }),
            json!({ "as_of": "2026-01-01", "models": { "a/b": { "input": 0.000_000_1, "output": 1 } } }),
            json!({ "as_of": "2026-01-01", "models": { "a/b": { "input": 1, "output": 1, "cached": 0 } } }),
        ] {
            assert!(PriceTable::from_value(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn cached_tokens_have_prices_of_their_own_and_long_prompts_too() {
        let table = json!({ "as_of": "2026-01-01", "models": { "a/b": {
            "input": 10, "output": 50, "cache_read": 1, "cache_write": 12.5,
            "long_context": { "above_tokens": 1000, "input": 20, "output": 100 },
        } } });
        let price = PriceTable::from_value(table).unwrap().price("a", "b").unwrap();
        let usage = Usage::new(100, 10).with_cache(60, 30);
        // 10 regular input tokens, 60 read from the cache, 30 written to it, 10 output tokens.
        assert_eq!(
            price.cost(&usage),
            pico(10 * 10_000_000 + 60 * 1_000_000 + 30 * 12_500_000 + 10 * 50_000_000)
        );
        assert_eq!(price.cost(&Usage::new(1001, 1)), pico(1001 * 20_000_000 + 100_000_000));
        assert_eq!(price.worst(100, 0, 10), pico(100 * 10_000_000 + 10 * 50_000_000));
        assert!(price.worst(100, 30, 10) >= price.cost(&usage));
        assert_eq!(price.cost(&Usage::new(u64::MAX, u64::MAX)), Money::MAX);
    }
}
