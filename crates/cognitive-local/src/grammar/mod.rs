//! The contract as a grammar: which tokens may come next. Grammars are compiled once per schema and kept; a schema that
//! does not compile is refused with the keyword that is to blame. Nothing is read leniently: what a grammar lets through
//! obeys its schema.

mod env;
mod refusal;
mod walk;

#[cfg(test)]
pub(crate) mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use llguidance::api::TopLevelGrammar;
use llguidance::earley::SlicedBiasComputer;
use llguidance::{ParserFactory, TokenParser};
use serde_json::Value;
use toktrie::InferenceCapabilities;

use crate::json_cursor::JsonCursor;
use crate::model::LanguageModel;
use crate::shape::SchemaParts;
use crate::shortest_ending::{self, Labels};

pub(crate) use refusal::KeywordRefusal;
pub(crate) use walk::{GrammarLost, GrammarWalk, Steps};

/// More grammars than this are not kept; the next one starts anew.
const MAX_GRAMMARS: usize = 64;
/// Work that one mask or one search may cost, in units of the grammar engine: about 70 ms at the very worst.
const MAX_FUEL: u64 = 1_000_000;
/// The same for its items: about 25 ms.
const MAX_ITEMS: usize = 500_000;

/// Turns schemas into grammars over one vocabulary.
pub(crate) struct Guide {
    weights: Arc<dyn LanguageModel>,
    factory: ParserFactory,
    grammars: Mutex<HashMap<String, Arc<Grammar>>>,
}

/// A schema, ready to bind a writer.
pub(crate) struct Grammar {
    /// Nobody has walked this one; walks are copies.
    pristine: Mutex<TokenParser>,
    weights: Arc<dyn LanguageModel>,
    /// The schema as it was compiled.
    pub schema: Value,
    /// How many tokens the shortest document has; `None` if none was found.
    pub shortest: Option<usize>,
}

impl Guide {
    /// Prepares the vocabulary. `slices` cost 60 ms now and make every mask four times cheaper: worth it from about 200
    /// tokens on, so for servers.
    pub(crate) fn new(weights: Arc<dyn LanguageModel>, slices: bool) -> Result<Self, String> {
        let env = env::env(Arc::clone(&weights));
        let capabilities = InferenceCapabilities { ff_tokens: true, ..InferenceCapabilities::default() };
        let slices = if slices { SlicedBiasComputer::json_slices() } else { Vec::new() };
        let mut factory =
            ParserFactory::new(&env, capabilities, &slices).map_err(|error| error.to_string())?;
        factory.quiet();
        let limits = factory.limits_mut();
        limits.step_lexer_fuel = MAX_FUEL;
        limits.step_max_items = MAX_ITEMS;
        // An error must not quote what was written.
        limits.verbose_errors = false;
        Ok(Self { weights, factory, grammars: Mutex::default() })
    }

    /// The grammar of a schema.
    pub(crate) fn grammar(&self, schema: &Value) -> Result<Arc<Grammar>, KeywordRefusal> {
        let key = schema.to_string();
        if let Some(known) = self.lock().get(&key) {
            return Ok(Arc::clone(known));
        }
        let grammar = Arc::new(self.compile(schema)?);
        let mut grammars = self.lock();
        if grammars.len() >= MAX_GRAMMARS {
            grammars.clear();
        }
        grammars.insert(key, Arc::clone(&grammar));
        Ok(grammar)
    }

    fn compile(&self, schema: &Value) -> Result<Grammar, KeywordRefusal> {
        let parser = self.parser(schema);
        let parser = parser
            .map_err(|message| KeywordRefusal::of(schema, &message, &|part| self.parser(part).is_ok()))?;
        let mut grammar = Grammar {
            pristine: Mutex::new(parser),
            weights: Arc::clone(&self.weights),
            schema: schema.clone(),
            shortest: None,
        };
        grammar.shortest = shortest(&grammar);
        Ok(grammar)
    }

    fn parser(&self, schema: &Value) -> Result<TokenParser, String> {
        let grammar = TopLevelGrammar::from_json_schema(schema.clone());
        let mut parser = self.factory.create_parser(grammar).map_err(|error| error.to_string())?;
        parser.start_without_prompt();
        Ok(parser)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Grammar>>> {
        // A panic while the lock was held leaves at worst a missing entry.
        self.grammars.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Grammar {
    /// A walk from the beginning.
    pub(crate) fn walk(&self) -> GrammarWalk {
        let pristine = self.pristine.lock().unwrap_or_else(PoisonError::into_inner);
        GrammarWalk::new(pristine.deep_clone(), Arc::clone(&self.weights))
    }
}

fn shortest(grammar: &Grammar) -> Option<usize> {
    let shape = SchemaParts::new(&grammar.schema);
    let plan =
        shortest_ending::plan(&mut grammar.walk(), &JsonCursor::default(), shape, None, Labels::Shortest);
    plan.is_whole().then(|| grammar.weights.vocabulary().encode(&plan.bytes).len())
}
