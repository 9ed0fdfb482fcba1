//! One document on its way through a grammar. A token that the grammar did not offer ends the walk with an error.

use std::sync::{Arc, Mutex, PoisonError};

use llguidance::TokenParser;
use llguidance::derivre::StateID;
use llguidance::earley::{BiasComputer, ParserRecognizer};
use toktrie::{Recognizer, SimpleVob, TokEnv, TokTrie};

use crate::model::LanguageModel;

/// A walk that cannot go on; says why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GrammarLost(pub String);

/// A document on its way through a grammar.
pub(crate) struct GrammarWalk {
    parser: TokenParser,
    weights: Arc<dyn LanguageModel>,
}

impl GrammarWalk {
    pub(super) fn new(parser: TokenParser, weights: Arc<dyn LanguageModel>) -> Self {
        Self { parser, weights }
    }

    /// A walk of its own from here.
    pub(crate) fn fork(&self) -> Self {
        Self { parser: self.parser.deep_clone(), weights: Arc::clone(&self.weights) }
    }

    /// Whether the document is whole.
    pub(crate) fn is_over(&self) -> bool {
        self.parser.stopped()
    }

    /// Takes the tokens that nothing else can be put in place of.
    pub(crate) fn forced(&mut self) -> Result<Vec<u32>, GrammarLost> {
        if self.is_over() {
            return Ok(Vec::new());
        }
        let tokens = self.parser.consume_ff_tokens().map_err(lost)?;
        self.parser.check_stop().map_err(lost)?;
        Ok(tokens)
    }

    /// Bytes that must come next but are not yet a token, because the token may be longer than they are.
    pub(crate) fn pending(&mut self) -> &[u8] {
        self.parser.parser.force_bytes()
    }

    /// The tokens that may come next.
    pub(crate) fn mask(&mut self) -> Result<SimpleVob, GrammarLost> {
        self.parser.compute_mask().map_err(lost)
    }

    /// Whether a token may come next: the same as to find it in the mask, at a small part of the cost.
    pub(crate) fn allows(&mut self, token: u32) -> bool {
        self.parser.validate_token(token).unwrap_or(false)
    }

    /// Takes a token.
    pub(crate) fn take(&mut self, token: u32) -> Result<(), GrammarLost> {
        self.parser.consume_token(token).map_err(lost)?;
        self.parser.check_stop().map_err(lost)?;
        Ok(())
    }

    /// Takes text and says which tokens it is. The text begins with what is pending.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<Vec<u32>, GrammarLost> {
        let vocabulary = self.weights.vocabulary();
        let tokens = vocabulary.encode(bytes);
        let length: usize = tokens.iter().map(|token| vocabulary.bytes(*token).len()).sum();
        if length != bytes.len() {
            return Err(GrammarLost("the vocabulary has no tokens for the end of the document".to_owned()));
        }
        for token in &tokens {
            self.parser.consume_token(*token).map_err(lost)?;
        }
        self.parser.check_stop().map_err(lost)?;
        Ok(tokens)
    }

    /// Tries bytes from here without taking them. The walk is afterwards where it was.
    pub(crate) fn explore<T: Send>(
        &mut self,
        task: impl FnOnce(&mut Steps<'_, '_>) -> T + Send,
    ) -> Option<T> {
        if self.is_over() {
            return None;
        }
        let scout = Scout { env: self.parser.token_env.clone(), task: Mutex::new((Some(task), None)) };
        // A mask that starts with a byte is never kept for later, so what the scout returns cannot be taken for one.
        self.parser.parser.compute_bias(&scout, &[0]);
        scout.task.into_inner().unwrap_or_else(PoisonError::into_inner).1
    }
}

fn lost(error: impl std::fmt::Display) -> GrammarLost {
    let text = error.to_string();
    GrammarLost(text.lines().next().unwrap_or_default().to_owned())
}

/// Uses the place where masks are computed, because only there work is limited.
struct Scout<T, F> {
    env: TokEnv,
    task: Mutex<(Option<F>, Option<T>)>,
}

impl<T: Send, F: FnOnce(&mut Steps<'_, '_>) -> T + Send> BiasComputer for Scout<T, F> {
    fn compute_bias(&self, recognizer: &mut ParserRecognizer<'_>, _: &[u8]) -> SimpleVob {
        let mut slot = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = slot.0.take() {
            recognizer.trie_started("explore");
            slot.1 = Some(task(&mut Steps { recognizer }));
            recognizer.trie_finished();
        }
        self.trie().alloc_token_set()
    }

    fn trie(&self) -> &TokTrie {
        self.env.tok_trie()
    }
}

/// Bytes to try, with a way back.
pub(crate) struct Steps<'a, 'b> {
    recognizer: &'a mut ParserRecognizer<'b>,
}

impl Steps<'_, '_> {
    /// Goes one byte further if the grammar allows it.
    pub(crate) fn push(&mut self, byte: u8) -> bool {
        self.recognizer.try_push_byte(byte)
    }

    /// Goes all the way or not at all.
    pub(crate) fn push_all(&mut self, bytes: &[u8]) -> bool {
        for (count, byte) in bytes.iter().enumerate() {
            if !self.push(*byte) {
                self.pop(count);
                return false;
            }
        }
        true
    }

    /// Goes back.
    pub(crate) fn pop(&mut self, count: usize) {
        self.recognizer.pop_bytes(count);
    }

    /// Whether a byte could come next.
    pub(crate) fn allows(&mut self, byte: u8) -> bool {
        self.recognizer.byte_allowed(byte)
    }

    /// Which state the current word is in. Two ways to the same state of one word have the same future.
    pub(crate) fn state(&self) -> StateID {
        self.recognizer.lexer_state()
    }
}
