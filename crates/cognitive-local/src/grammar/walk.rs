//! The path of one document through a grammar. A token that the grammar does not allow ends it with an error.

use std::sync::Arc;

use cognitive_contract::lock::Lock;
use llguidance::TokenParser;
use llguidance::derivre::StateID;
use llguidance::earley::{BiasComputer, ParserRecognizer};
use toktrie::{Recognizer, SimpleVob, TokEnv, TokTrie};

use crate::model::LanguageModel;

/// The reason why a walk cannot continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GrammarLost(pub String);

/// The path of a document through a grammar.
pub(crate) struct GrammarWalk {
    parser: TokenParser,
    weights: Arc<dyn LanguageModel>,
}

impl GrammarWalk {
    pub(super) fn new(parser: TokenParser, weights: Arc<dyn LanguageModel>) -> Self {
        Self { parser, weights }
    }

    /// Returns a separate walk that starts here.
    pub(crate) fn fork(&self) -> Self {
        Self { parser: self.parser.deep_clone(), weights: Arc::clone(&self.weights) }
    }

    /// Returns whether the document is complete.
    pub(crate) fn is_over(&self) -> bool {
        self.parser.stopped()
    }

    /// Consumes and returns the tokens that are the only possible continuation.
    pub(crate) fn forced_tokens(&mut self) -> Result<Vec<u32>, GrammarLost> {
        if self.is_over() {
            return Ok(Vec::new());
        }
        let tokens = self.parser.consume_ff_tokens().map_err(grammar_error)?;
        self.parser.check_stop().map_err(grammar_error)?;
        Ok(tokens)
    }

    /// Returns bytes that must come next but do not form a token yet, because the token may be longer.
    pub(crate) fn pending(&mut self) -> &[u8] {
        self.parser.parser.force_bytes()
    }

    /// Returns the tokens that may come next.
    pub(crate) fn mask(&mut self) -> Result<SimpleVob, GrammarLost> {
        self.parser.compute_mask().map_err(grammar_error)
    }

    /// Returns whether a token may come next. Equivalent to a lookup in the mask, at a small part of the cost.
    pub(crate) fn allows(&mut self, token: u32) -> bool {
        self.parser.validate_token(token).unwrap_or(false)
    }

    /// Consumes a token.
    pub(crate) fn take(&mut self, token: u32) -> Result<(), GrammarLost> {
        self.parser.consume_token(token).map_err(grammar_error)?;
        self.parser.check_stop().map_err(grammar_error)?;
        Ok(())
    }

    /// Consumes text and returns its tokens. The text starts with the pending bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<Vec<u32>, GrammarLost> {
        let vocabulary = self.weights.vocabulary();
        let tokens = vocabulary.encode(bytes);
        let length: usize = tokens.iter().map(|token| vocabulary.bytes(*token).len()).sum();
        if length != bytes.len() {
            return Err(GrammarLost("the vocabulary has no tokens for the end of the document".to_owned()));
        }
        for token in &tokens {
            self.parser.consume_token(*token).map_err(grammar_error)?;
        }
        self.parser.check_stop().map_err(grammar_error)?;
        Ok(tokens)
    }

    /// Tries bytes from here without consuming them. Afterwards the walk is unchanged.
    pub(crate) fn explore<T: Send>(
        &mut self,
        task: impl FnOnce(&mut Steps<'_, '_>) -> T + Send,
    ) -> Option<T> {
        if self.is_over() {
            return None;
        }
        let mask_task = MaskTask { env: self.parser.token_env.clone(), task: Lock::new((Some(task), None)) };
        // A mask with a start byte is never cached, so the result of the scout cannot be used as one.
        self.parser.parser.compute_bias(&mask_task, &[0]);
        mask_task.task.into_inner().1
    }
}

fn grammar_error(error: impl std::fmt::Display) -> GrammarLost {
    let text = error.to_string();
    GrammarLost(text.lines().next().unwrap_or_default().to_owned())
}

/// Runs a task where masks are computed, because only there the engine limits the work.
struct MaskTask<T, F> {
    env: TokEnv,
    task: Lock<(Option<F>, Option<T>)>,
}

impl<T: Send, F: FnOnce(&mut Steps<'_, '_>) -> T + Send> BiasComputer for MaskTask<T, F> {
    fn compute_bias(&self, recognizer: &mut ParserRecognizer<'_>, _: &[u8]) -> SimpleVob {
        let mut slot = self.task.lock();
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

/// Bytes to try, which can be undone.
pub(crate) struct Steps<'a, 'b> {
    recognizer: &'a mut ParserRecognizer<'b>,
}

impl Steps<'_, '_> {
    /// Advances by one byte if the grammar allows it.
    pub(crate) fn push(&mut self, byte: u8) -> bool {
        self.recognizer.try_push_byte(byte)
    }

    /// Advances by all bytes, or by none.
    pub(crate) fn push_all(&mut self, bytes: &[u8]) -> bool {
        for (count, byte) in bytes.iter().enumerate() {
            if !self.push(*byte) {
                self.pop(count);
                return false;
            }
        }
        true
    }

    /// Goes back by `count` bytes.
    pub(crate) fn pop(&mut self, count: usize) {
        self.recognizer.pop_bytes(count);
    }

    /// Returns whether a byte may come next.
    pub(crate) fn allows(&mut self, byte: u8) -> bool {
        self.recognizer.byte_allowed(byte)
    }

    /// Returns the lexer state of the current word. Equal states of one word have the same continuations.
    pub(crate) fn state(&self) -> StateID {
        self.recognizer.lexer_state()
    }
}
