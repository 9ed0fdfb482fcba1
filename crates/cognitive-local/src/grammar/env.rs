//! Adapts the vocabulary to the grammar engine. Forced text is split into tokens by the model's own tokenizer, because
//! a model writes worse after unfamiliar tokens.

use std::sync::Arc;

use toktrie::{TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv};

use crate::model::LanguageModel;

struct Env {
    weights: Arc<dyn LanguageModel>,
    trie: TokTrie,
}

impl TokenizerEnv for Env {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.trie
            .tokenize_with_greedy_fallback(bytes, |text| self.weights.vocabulary().encode(text.as_bytes()))
    }
}

/// Returns the vocabulary as a tree. Control tokens get a mark that no text contains, so no grammar of text allows
/// them.
pub(super) fn env(weights: Arc<dyn LanguageModel>) -> TokEnv {
    let vocabulary = weights.vocabulary();
    let count = u32::try_from(vocabulary.len()).unwrap_or(u32::MAX);
    let words: Vec<Vec<u8>> = (0..count)
        .map(|token| {
            let bytes = vocabulary.bytes(token);
            let mark = vocabulary.is_control(token).then_some(TokTrie::SPECIAL_TOKEN_MARKER);
            mark.into_iter().chain(bytes.iter().copied()).collect()
        })
        .collect();
    let info = TokRxInfo::new(count, vocabulary.end_of_turn());
    let trie = TokTrie::from(&info, &words);
    Arc::new(Env { weights, trie })
}
