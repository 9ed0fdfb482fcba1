//! What models cost: a table with a date, by provider and model, and what a call costs by it. Amounts are whole
//! picodollars per token. A model that is not in the table has no price: nobody guesses one.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use crate::money::Money;
use crate::usage::Usage;

/// The table that comes along.
const BUILT_IN: &str = include_str!("prices.json");

/// The longest name of a model in a table, and the most models in one.
const MAX_NAME_LENGTH: usize = 200;
const MAX_MODELS: usize = 10_000;

/// What models cost. Later tables count before earlier ones, model by model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceTable {
    entries: Vec<PriceEntry>,
    /// The day whose prices these are.
    pub as_of: String,
}

/// A line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceEntry {
    /// `provider/model`; a `*` at the end stands for anything that follows.
    pub model: String,
    /// What it costs.
    pub price: ModelPrice,
    /// The day whose price it is.
    pub as_of: String,
}

/// What a model costs, per token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModelPrice {
    /// What it reads.
    pub rates: TokenRates,
    /// From how many tokens of input on, and what it costs then.
    pub long: Option<(u64, TokenRates)>,
    /// How many tokens it may think before it answers.
    pub thinking_tokens: u64,
    /// The most tokens that one image counts; without it nobody knows a bound.
    pub image_tokens: Option<u64>,
    /// What its tokens are, where that is published.
    pub vocabulary: BilledVocabulary,
}

/// What the tokens of a model are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BilledVocabulary {
    /// Nobody says so. A token is at least a byte.
    #[default]
    Unknown,
    /// The one that OpenAI publishes under this name.
    O200k,
}

/// Prices of one token each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenRates {
    /// Read.
    pub input: Money,
    /// Written, thoughts included.
    pub output: Money,
    /// Read from the service's cache of prompts.
    pub cache_read: Money,
    /// Read, and put into that cache.
    pub cache_write: Money,
}

/// A table as it is written down.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableFile {
    as_of: String,
    #[serde(default)]
    currency: Option<String>,
    models: BTreeMap<String, PriceFile>,
}

/// Prices as services print them: dollars per million tokens.
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

/// What is written for people and programs: dollars per million tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PriceRow<'a> {
    /// `provider/model`.
    pub model: &'a str,
    /// What it reads.
    pub input: Money,
    /// What it writes.
    pub output: Money,
    /// What it reads from the service's cache.
    pub cache_read: Money,
    /// What it puts there.
    pub cache_write: Money,
    /// The day whose price it is.
    pub as_of: &'a str,
}

impl PriceTable {
    /// The table that comes along.
    #[must_use]
    pub fn built_in() -> Arc<Self> {
        static TABLE: OnceLock<Arc<PriceTable>> = OnceLock::new();
        let empty = || Self { entries: Vec::new(), as_of: String::new() };
        // A test reads the file, so it is never empty.
        let read = || serde_json::from_str(BUILT_IN).ok().and_then(|file| Self::of_file(file).ok());
        Arc::clone(TABLE.get_or_init(|| Arc::new(read().unwrap_or_else(empty))))
    }

    /// A table of somebody's own, as a value of JSON or YAML; the error says what is wrong with it.
    pub fn from_value(value: serde_json::Value) -> Result<Self, String> {
        Self::of_file(serde_json::from_value(value).map_err(|error| error.to_string())?)
    }

    fn of_file(file: TableFile) -> Result<Self, String> {
        let as_of = file.as_of;
        if !is_day(&as_of) {
            return Err(format!("expected a day such as `2026-11-17` in `as_of`: `{as_of}`"));
        }
        if let Some(other) = file.currency.filter(|currency| currency != crate::money::CURRENCY) {
            return Err(format!("prices are in US dollars, not in: `{other}`"));
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

    /// This table, with another one that counts before it.
    #[must_use]
    pub fn overridden_by(&self, other: Self) -> Self {
        let as_of = self.as_of.clone().max(other.as_of.clone());
        let is_replaced = |entry: &&PriceEntry| other.entries.iter().all(|new| new.model != entry.model);
        let kept: Vec<PriceEntry> = self.entries.iter().filter(is_replaced).cloned().collect();
        Self { entries: other.entries.into_iter().chain(kept).collect(), as_of }
    }

    /// What a model of a provider costs. A whole name counts before a beginning, and a longer beginning before a shorter.
    #[must_use]
    pub fn price(&self, provider: &str, model: &str) -> Option<ModelPrice> {
        self.entry(provider, model).map(|entry| entry.price)
    }

    /// The same as people read it, with its day.
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
        // The first of two that say the same, so that what overrides counts.
        let fitting = self.entries.iter().filter(fits);
        fitting.rev().max_by_key(rank)
    }

    /// The same for requests that are posted many at once: every service that takes them bills half of everything.
    #[must_use]
    pub fn for_posts(&self) -> Self {
        let entries = self.entries.iter().cloned();
        let entries = entries.map(|entry| PriceEntry { price: entry.price.halved(), ..entry }).collect();
        Self { entries, as_of: self.as_of.clone() }
    }

    /// All lines, by name, as people read them.
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
    /// A service without a price for its cache bills what it reads there like everything else.
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
    /// Nothing, as for a model on this machine.
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

    /// Half of it. What has no half is rounded up, so that no limit is exceeded for it.
    fn halved(self) -> Self {
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

    /// What one call cost. Not for sums of calls: a long one may be dearer per token.
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

    /// The most that a call can cost which reads and writes no more than this. `may_write` is how many tokens of the input
    /// the service may put into its cache.
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

/// `2026-11-17`.
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
        // Two dollars for a million are two microdollars for one.
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
        // 10 plain, 60 read from the cache, 30 put into it, 10 written.
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
