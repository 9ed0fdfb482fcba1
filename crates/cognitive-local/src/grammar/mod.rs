//! Compiles the contract to a grammar: the set of tokens that may come next. Grammars are compiled once per schema and
//! cached. A schema that does not compile is refused, and the error names the keyword. Nothing is read leniently: all
//! text that a grammar allows obeys its schema.

mod env;
mod refusal;
mod walk;

#[cfg(test)]
pub(crate) mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use cognitive_contract::lock::Lock;
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

/// The largest number of cached grammars; when it is reached, the cache is cleared. Each grammar holds memory, and a
/// changed contract has a new one.
const MAX_GRAMMARS: usize = 64;
/// The work limit of one mask or one search, in units of the grammar engine: about 70 ms in the worst case. Without
/// it, a hostile contract could block a worker at every token.
const MAX_FUEL: u64 = 1_000_000;
/// The limit of items of the grammar engine, for the same reason: about 25 ms.
const MAX_ITEMS: usize = 500_000;

/// Compiles schemas to grammars over one vocabulary.
pub(crate) struct Guide {
    weights: Arc<dyn LanguageModel>,
    factory: ParserFactory,
    grammars: Lock<HashMap<String, Arc<Grammar>>>,
}

/// A compiled schema.
pub(crate) struct Grammar {
    /// The initial state; walks are copies of it.
    pristine: Lock<TokenParser>,
    weights: Arc<dyn LanguageModel>,
    /// The schema as it was compiled.
    pub schema: Value,
    /// The number of tokens in the shortest document; `None` if none was found.
    pub shortest: Option<usize>,
}

impl Guide {
    /// Prepares the vocabulary. `slices` cost 60 ms once and make every mask four times cheaper. They pay off from
    /// about 200 tokens on, so servers use them.
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
        // Error messages must not quote the output.
        limits.verbose_errors = false;
        Ok(Self { weights, factory, grammars: Lock::default() })
    }

    /// Returns the grammar of a schema.
    pub(crate) fn grammar(&self, schema: &Value) -> Result<Arc<Grammar>, KeywordRefusal> {
        let key = schema.to_string();
        if let Some(known) = self.grammars.lock().get(&key) {
            return Ok(Arc::clone(known));
        }
        let grammar = Arc::new(self.compile(schema)?);
        let mut grammars = self.grammars.lock();
        if grammars.len() >= MAX_GRAMMARS {
            grammars.clear();
        }
        grammars.insert(key, Arc::clone(&grammar));
        Ok(grammar)
    }

    fn compile(&self, schema: &Value) -> Result<Grammar, KeywordRefusal> {
        let parser = self.parser(schema);
        let parser = parser
            .map_err(|message| KeywordRefusal::find(schema, &message, &|part| self.parser(part).is_ok()))?;
        let mut grammar = Grammar {
            pristine: Lock::new(parser),
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
}

impl Grammar {
    /// Starts a walk from the initial state.
    pub(crate) fn walk(&self) -> GrammarWalk {
        let pristine = self.pristine.lock();
        GrammarWalk::new(pristine.deep_clone(), Arc::clone(&self.weights))
    }
}

fn shortest(grammar: &Grammar) -> Option<usize> {
    let shape = SchemaParts::new(&grammar.schema);
    let plan =
        shortest_ending::plan(&mut grammar.walk(), &JsonCursor::default(), shape, None, Labels::Shortest);
    plan.is_whole().then(|| grammar.weights.vocabulary().encode(&plan.bytes).len())
}
