//! Weighs candidates with a model. The weight is the likelihood of a candidate after a text, less its likelihood
//! without the text. Or it is the likelihood of the text after the candidate. Reuses the tokens that the model has read
//! if the next sentence starts with them.

use super::question::WeighingWay;
use crate::model::{ModelState, Vocabulary};
use cognitive_llama::FeedError;

/// Replaces the text when only the candidate itself is weighed.
const NO_TEXT: &str = "...";
/// A candidate is judged by the first characters of a long text. The time to read it grows with its length.
pub(super) const MAX_BEFORE: usize = 2_000;
/// The limit for a text that is weighed once per candidate; it is shorter, because the model reads it each time.
const MAX_AFTER: usize = 600;

/// A model that weighs.
pub(super) struct Scale<'a> {
    pub(super) reading: &'a mut dyn ModelState,
    pub(super) vocabulary: &'a dyn Vocabulary,
    pub(super) stop: &'a dyn Fn() -> bool,
    /// The number of tokens that were read.
    pub(super) read: usize,
    /// The turn marks for sentences that are built here. `None` if the vocabulary has others.
    marks: Option<(u32, u32)>,
}

impl<'a> Scale<'a> {
    pub(super) fn new(
        reading: &'a mut dyn ModelState,
        vocabulary: &'a dyn Vocabulary,
        stop: &'a dyn Fn() -> bool,
    ) -> Self {
        let marks = vocabulary.control("<|im_start|>").zip(vocabulary.control("<|im_end|>"));
        Self { reading, vocabulary, stop, read: 0, marks }
    }

    /// Returns whether sentences can be built for this model.
    pub(super) fn can_weigh(&self) -> bool {
        self.marks.is_some()
    }

    /// Returns the weight of each candidate, summed over all ways. A candidate with more weight fits better.
    pub(super) fn weigh(
        &mut self,
        ways: &[WeighingWay<'_>],
        text: &str,
        candidates: &[String],
    ) -> Result<Vec<f64>, FeedError> {
        let mut sums = vec![0.0; candidates.len()];
        for way in ways {
            let weights = self.weigh_by(way, text, candidates)?;
            sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += weight);
        }
        Ok(sums)
    }

    fn weigh_by(
        &mut self,
        way: &WeighingWay<'_>,
        text: &str,
        candidates: &[String],
    ) -> Result<Vec<f64>, FeedError> {
        if let WeighingWay::Given(given) = way {
            let text = self.vocabulary.encode(format!(" {}", beginning(text, MAX_AFTER)).as_bytes());
            let given =
                candidates.iter().map(|candidate| self.plain(&given.replace("{}", &label_text(candidate))));
            return self.text_likelihoods(given.collect(), &text);
        }
        let (with, without) =
            (self.tokens_before(way, beginning(text, MAX_BEFORE)), self.tokens_before(way, NO_TEXT));
        let endings: Vec<Vec<u32>> = candidates
            .iter()
            .map(|candidate| self.vocabulary.encode(format!(" {}", label_text(candidate)).as_bytes()))
            .collect();
        let (with, without) =
            (self.log_probabilities(&with, &endings)?, self.log_probabilities(&without, &endings)?);
        Ok(with.into_iter().zip(without).map(|(with, without)| with - without).collect())
    }

    /// Returns the log-likelihood of a text after each of these prefixes, which have a common start.
    fn text_likelihoods(&mut self, given: Vec<Vec<u32>>, text: &[u32]) -> Result<Vec<f64>, FeedError> {
        let Some(first) = given.first() else { return Ok(Vec::new()) };
        let alike = |other: &Vec<u32>| first.iter().zip(other).take_while(|(a, b)| a == b).count();
        // The last token of each must be read again, because the likelihood of the text after it is needed.
        let shortest = given.iter().map(Vec::len).min().unwrap_or_default().saturating_sub(1);
        let known = given.iter().map(alike).min().unwrap_or_default().min(shortest);
        let texts: Vec<Vec<u32>> =
            given.iter().map(|given| [given.get(known..).unwrap_or_default(), text].concat()).collect();
        self.read_exactly(first.get(..known).unwrap_or_default())?;
        self.read += texts.iter().map(Vec::len).sum::<usize>();
        let found = self.reading.likelihoods_of_each(&texts, self.stop)?;
        Ok(found.iter().map(|found| sum(found.iter().rev().take(text.len()))).collect())
    }

    /// Returns the tokens before a candidate.
    pub(super) fn tokens_before(&self, way: &WeighingWay<'_>, text: &str) -> Vec<u32> {
        match way {
            WeighingWay::Ask { ask, say } if ask.contains("{}") => self.turns(&ask.replace("{}", text), say),
            WeighingWay::Ask { ask, say } => self.turns(&format!("{ask}\n\n{text}"), say),
            WeighingWay::Say(say) | WeighingWay::Given(say) => self.plain(&format!("{text}\n{say}")),
        }
    }

    fn turns(&self, question: &str, answer: &str) -> Vec<u32> {
        let mut tokens = self.plain(&format!("user\n{question}"));
        tokens.extend(self.marks.map(|(_, end)| end));
        tokens.extend(self.vocabulary.encode(b"\n"));
        tokens.extend(self.plain(&format!("assistant\n{answer}")));
        tokens
    }

    fn plain(&self, text: &str) -> Vec<u32> {
        let mut tokens: Vec<u32> = self.marks.map(|(start, _)| start).into_iter().collect();
        tokens.extend(self.vocabulary.encode(text.as_bytes()));
        tokens
    }

    /// Returns the log-probability of each of these texts after some tokens.
    pub(super) fn log_probabilities(
        &mut self,
        before: &[u32],
        texts: &[Vec<u32>],
    ) -> Result<Vec<f64>, FeedError> {
        let Some((last, before)) = before.split_last() else { return Ok(vec![0.0; texts.len()]) };
        self.read_exactly(before)?;
        let texts: Vec<Vec<u32>> = texts.iter().map(|text| [&[*last], text.as_slice()].concat()).collect();
        self.read += texts.iter().map(Vec::len).sum::<usize>();
        let found = self.reading.likelihoods_of_each(&texts, self.stop)?;
        Ok(found.iter().map(|found| sum(found.iter())).collect())
    }

    /// Returns the log-likelihoods of one text, token by token.
    pub(super) fn likelihoods(&mut self, before: &[u32], tokens: &[u32]) -> Result<Vec<f32>, FeedError> {
        let Some((last, before)) = before.split_last() else { return Ok(Vec::new()) };
        self.read_exactly(before)?;
        let tokens: Vec<u32> = std::iter::once(*last).chain(tokens.iter().copied()).collect();
        self.read += tokens.len();
        let found = self.reading.likelihoods(&tokens, self.stop);
        self.reading.truncate(before.len());
        found
    }

    /// Returns the state of the last of these tokens after each layer.
    pub(super) fn states(&mut self, tokens: &[u32]) -> Result<Vec<Vec<f32>>, FeedError> {
        let Some((last, before)) = tokens.split_last() else { return Ok(Vec::new()) };
        let known = self.reading.tokens().iter().zip(before).take_while(|(one, other)| one == other).count();
        self.reading.truncate(known);
        let unread = [before.get(known..).unwrap_or_default(), &[*last]].concat();
        self.read += unread.len();
        self.reading.states(&unread, self.stop)
    }

    /// Reads exactly these tokens.
    pub(super) fn read_exactly(&mut self, tokens: &[u32]) -> Result<(), FeedError> {
        let known = self.reading.tokens().iter().zip(tokens).take_while(|(one, other)| one == other).count();
        self.reading.truncate(known);
        match tokens.get(known..) {
            Some(unread) if !unread.is_empty() => {
                self.read += unread.len();
                self.reading.feed(unread, self.stop).map(drop)
            }
            _ => Ok(()),
        }
    }
}

fn sum<'f>(likelihoods: impl Iterator<Item = &'f f32>) -> f64 {
    likelihoods.copied().map(f64::from).sum()
}

/// Returns a label in natural language.
fn label_text(label: &str) -> String {
    label.replace('_', " ")
}

/// Returns the first characters of a text.
pub(super) fn beginning(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).map_or(text, |(end, _)| text.get(..end).unwrap_or(text))
}
