//! Samples the next token from the logits of the model and the tokens that the grammar allows. The same seed gives the
//! same tokens. Allocates nothing per token.
//!
//! In free text the grammar allows nearly every token, and listing the allowed tokens costs more than checking a single
//! one. So the sampler first proposes a token without the list. Only if that token is refused, the list is computed and
//! another token is drawn. The distribution is the same as if the list had been known from the start.

use toktrie::SimpleVob;

use cognitive_llama::{Kernel, sum_of_powers};

/// The number of likeliest tokens that take part in sampling with a temperature. Less likely ones would mostly add
/// nonsense.
const MAX_CANDIDATES: usize = 40;
/// Without it small models repeat themselves endlessly; 1.3 starts to damage copied dates.
const REPETITION_PENALTY: f32 = 1.1;
/// The number of tokens within which a repetition is penalised. A larger one would penalise words that an answer must
/// repeat.
const WINDOW: usize = 64;
/// The number of logits in a block: the number of bits in a word of the mask.
const LANES: usize = 32;

/// A small random number generator (splitmix64): the same seed always gives the same numbers.
#[derive(Debug, Clone)]
pub(crate) struct TokenRandom(u64);

impl TokenRandom {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to, but not including, 1.
    #[expect(clippy::cast_precision_loss, reason = "24 bits fit a float exactly")]
    pub(crate) fn fraction(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1_u32 << 24) as f32
    }
}

/// The method of choosing a token, depending on the kind of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SamplingMode {
    /// One of a few values: the likeliest at any temperature, without randomness.
    Decision,
    /// Free text: by temperature, with a penalty for repetition.
    Prose,
    /// Numbers, names and signs, which are sampled with the temperature.
    Structure,
}

/// A chosen token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ChosenToken {
    pub token: u32,
    /// Its probability before temperature and penalty: among the allowed tokens after [`Sampler::choose`], among all
    /// tokens after [`Sampler::choose_freely`].
    pub probability: f32,
}

/// The best tokens by penalised logit, best first.
#[derive(Debug, Clone)]
struct TopTokens {
    list: [(f32, u32); MAX_CANDIDATES],
    count: usize,
    /// The highest logit without any penalty.
    highest: f32,
}

impl TopTokens {
    const NONE: Self =
        Self { list: [(f32::NEG_INFINITY, 0); MAX_CANDIDATES], count: 0, highest: f32::NEG_INFINITY };

    fn candidates(&self) -> &[(f32, u32)] {
        self.list.get(..self.count).unwrap_or_default()
    }

    fn has(&self, token: u32) -> bool {
        self.candidates().iter().any(|(_, candidate)| *candidate == token)
    }

    /// Returns the highest logit, and the sum of the candidates' weights at a temperature, where the likeliest has
    /// weight one.
    fn sum(&self, temperature: f32) -> (f32, f32) {
        let top = self.candidates().first().map_or(f32::NEG_INFINITY, |(logit, _)| *logit);
        (top, self.candidates().iter().map(|(logit, _)| ((logit - top) / temperature).exp()).sum())
    }
}

/// Chooses tokens.
#[derive(Debug)]
pub(crate) struct Sampler {
    temperature: f32,
    dice: TokenRandom,
    kernel: Kernel,
    /// The last tokens of free text, in a ring buffer.
    recent: [u32; WINDOW],
    written: usize,
    /// The number of occurrences of each token in the ring buffer.
    counts: Vec<u8>,
    best: TopTokens,
}

impl Sampler {
    pub(crate) fn new(vocabulary: usize, temperature: f64, seed: u64) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "a temperature needs no more than a float")]
        let temperature = if temperature.is_finite() { temperature.max(0.0) as f32 } else { 0.0 };
        Self {
            temperature,
            dice: TokenRandom::new(seed),
            kernel: Kernel::fastest(),
            recent: [0; WINDOW],
            written: 0,
            counts: vec![0; vocabulary],
            best: TopTokens::NONE,
        }
    }

    /// Chooses among the allowed tokens; `None` if there is none.
    pub(crate) fn choose(
        &mut self,
        logits: &[f32],
        allowed: &SimpleVob,
        manner: SamplingMode,
    ) -> Option<ChosenToken> {
        self.find_best(logits, Some(allowed), manner);
        let token = self.draw(manner, |_, weight| weight)?;
        let highest = self.best.highest;
        let mut sum = 0.0;
        each_block(logits, allowed, |_, block| sum += sum_of_powers(self.kernel, block, highest));
        self.choice(logits, token, highest, sum)
    }

    /// Chooses a token of free text. `allows` checks one token. `allowed` lists all allowed tokens and is called only
    /// if the first proposal is refused. An error of `allowed` ends the choice.
    ///
    /// Without temperature, the best token is taken if it is allowed; otherwise the best allowed one. With temperature,
    /// let `U` be the best of all tokens, `M` the best of the allowed ones, and `w` the weight of a token. The aim is
    /// to draw `t` from `M` with probability `w(t) / M`. The first draw yields a token that is in both with `w(t) / U`,
    /// which is less. So the second draw adds the missing `w(t) / M - w(t) / U`, and a token of `M` alone gets
    /// `w(t) / M`. Their sum is exactly the probability that the first draw left over. `M` is never heavier than `U`,
    /// so nothing is negative.
    pub(crate) fn choose_freely<E>(
        &mut self,
        logits: &[f32],
        allows: impl FnOnce(u32) -> bool,
        allowed: impl FnOnce() -> Result<SimpleVob, E>,
    ) -> Result<Option<ChosenToken>, E> {
        self.find_best(logits, None, SamplingMode::Prose);
        let highest = self.best.highest;
        let mut token = self.draw(SamplingMode::Prose, |_, weight| weight);
        if !token.is_some_and(allows) {
            let all = self.best.clone();
            self.find_best(logits, Some(&allowed()?), SamplingMode::Prose);
            let (top, sum) = self.best.sum(self.temperature);
            let (top_of_all, sum_of_all) = all.sum(self.temperature);
            let share = sum * ((top - top_of_all) / self.temperature).exp() / sum_of_all;
            let missing = (1.0 - share).max(0.0);
            token = self.draw(SamplingMode::Prose, |token, weight| {
                weight * if all.has(token) { missing } else { 1.0 }
            });
        }
        let Some(token) = token else { return Ok(None) };
        let sum = sum_of_powers(self.kernel, logits, highest);
        Ok(self.choice(logits, token, highest, sum))
    }

    fn choice(&self, logits: &[f32], token: u32, highest: f32, sum: f32) -> Option<ChosenToken> {
        let chosen = logits.get(token as usize).copied()?;
        Some(ChosenToken { token, probability: sum_of_powers(self.kernel, &[chosen], highest) / sum })
    }

    fn find_best(&mut self, logits: &[f32], allowed: Option<&SimpleVob>, manner: SamplingMode) {
        let (best, counts) = (&mut self.best, &self.counts);
        (best.count, best.highest) = (0, f32::NEG_INFINITY);
        let mut bar = f32::NEG_INFINITY;
        let mut look_at = |first: u32, block: &[f32]| {
            let top =
                block.iter().fold(f32::NEG_INFINITY, |top, logit| if *logit > top { *logit } else { top });
            best.highest = best.highest.max(top);
            // A penalty only lowers a logit, so a logit below the bar without it stays below with it.
            if top > bar {
                for (token, logit) in (first..).zip(block) {
                    // A NaN is never above the bar.
                    if *logit > bar {
                        let is_repeated = manner == SamplingMode::Prose
                            && counts.get(token as usize).is_some_and(|count| *count > 0);
                        let logit = if is_repeated { penalise(*logit) } else { *logit };
                        bar = insert(&mut best.list, &mut best.count, (logit, token));
                    }
                }
            }
        };
        match allowed {
            Some(allowed) => each_block(logits, allowed, look_at),
            None => (0..)
                .step_by(LANES)
                .zip(logits.chunks(LANES))
                .for_each(|(first, block)| look_at(first, block)),
        }
    }

    /// Remembers a token of free text. A token with a quote ends the text, and ends may repeat.
    pub(crate) fn remember(&mut self, token: u32, bytes: &[u8]) {
        if bytes.contains(&b'"') {
            return;
        }
        let Some(slot) = self.recent.get_mut(self.written % WINDOW) else { return };
        let forgotten = std::mem::replace(slot, token);
        if self.written >= WINDOW
            && let Some(count) = self.counts.get_mut(forgotten as usize)
        {
            *count = count.saturating_sub(1);
        }
        if let Some(count) = self.counts.get_mut(token as usize) {
            *count = count.saturating_add(1);
        }
        self.written += 1;
    }

    /// Draws one of the best by its weight, which `adjust` may lower.
    fn draw(&mut self, manner: SamplingMode, adjust: impl Fn(u32, f32) -> f32) -> Option<u32> {
        let candidates = self.best.candidates();
        let (highest, likeliest) = *candidates.first()?;
        if self.temperature <= 0.0 || manner == SamplingMode::Decision {
            return Some(likeliest);
        }
        let weight = |logit: f32, token: u32| adjust(token, ((logit - highest) / self.temperature).exp());
        let sum: f32 = candidates.iter().map(|(logit, token)| weight(*logit, *token)).sum();
        let mut left = self.dice.fraction() * sum;
        for (logit, token) in candidates {
            left -= weight(*logit, *token);
            if left < 0.0 {
                return Some(*token);
            }
        }
        Some(likeliest)
    }
}

/// Returns the total weight of all allowed tokens. Comparable only between calls with the same logits.
pub(crate) fn mass(logits: &[f32], allowed: &SimpleVob) -> f32 {
    let finite = logits.iter().copied().filter(|logit| logit.is_finite());
    let highest = finite.fold(f32::NEG_INFINITY, f32::max);
    let kernel = Kernel::fastest();
    let mut sum = 0.0;
    each_block(logits, allowed, |_, block| sum += sum_of_powers(kernel, block, highest));
    sum
}

fn penalise(logit: f32) -> f32 {
    if logit > 0.0 { logit / REPETITION_PENALTY } else { logit * REPETITION_PENALTY }
}

/// Inserts into the sorted list, best first, and returns the worst entry once the list is full. Ties keep their order,
/// so the result is deterministic.
fn insert(best: &mut [(f32, u32); MAX_CANDIDATES], count: &mut usize, new: (f32, u32)) -> f32 {
    let worst = |best: &[(f32, u32)], count: usize| match best.last() {
        Some((logit, _)) if count == MAX_CANDIDATES => *logit,
        _ => f32::NEG_INFINITY,
    };
    let bar = worst(best, *count);
    if *count == MAX_CANDIDATES && new.0 <= bar {
        return bar;
    }
    *count = (*count + 1).min(MAX_CANDIDATES);
    let mut at = *count - 1;
    while at > 0 && best.get(at - 1).is_some_and(|before| before.0 < new.0) {
        best.swap(at, at - 1);
        at -= 1;
    }
    if let Some(slot) = best.get_mut(at) {
        *slot = new;
    }
    worst(best, *count)
}

/// Visits the logits in blocks; tokens that are not allowed, and NaNs, become negative infinity. Blocks without an
/// allowed token are skipped. Written without branches, so that the compiler can vectorise it.
fn each_block(logits: &[f32], allowed: &SimpleVob, mut visit: impl FnMut(u32, &[f32])) {
    let mut first = 0;
    for (word, chunk) in allowed.as_slice().iter().zip(logits.chunks(LANES)) {
        if *word != 0 {
            let mut block = [f32::NEG_INFINITY; LANES];
            for ((slot, logit), bit) in block.iter_mut().zip(chunk).zip(0..) {
                let is_allowed = word & (1 << bit) != 0;
                *slot = if is_allowed && *logit > f32::NEG_INFINITY { *logit } else { f32::NEG_INFINITY };
            }
            visit(first, &block);
        }
        first += 32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allow(tokens: &[u32]) -> SimpleVob {
        let mut set = SimpleVob::alloc(100);
        for token in tokens {
            set.allow_token(*token);
        }
        set
    }

    fn logits(of: &[(usize, f32)]) -> Vec<f32> {
        let mut logits = vec![-5.0; 100];
        for (token, logit) in of {
            logits[*token] = *logit;
        }
        logits
    }

    #[test]
    fn without_temperature_the_likeliest_allowed_token_wins() {
        let mut sampler = Sampler::new(100, 0.0, 1);
        let logits = logits(&[(3, 9.0), (40, 2.0), (99, 1.0)]);
        let choice = sampler.choose(&logits, &allow(&[40, 99]), SamplingMode::Structure).unwrap();
        assert_eq!(choice.token, 40);
        assert!((choice.probability - 0.731).abs() < 0.001, "{choice:?}");
        assert_eq!(sampler.choose(&logits, &allow(&[]), SamplingMode::Structure), None);
    }

    #[test]
    fn the_same_seed_gives_the_same_tokens_and_another_does_not() {
        let all: Vec<u32> = (0..100).collect();
        let logits: Vec<f32> = (0..100_u8).map(|token| f32::from(token % 7) / 3.0).collect();
        let run = |seed| {
            let mut sampler = Sampler::new(100, 0.8, seed);
            (0..50)
                .map(|_| sampler.choose(&logits, &allow(&all), SamplingMode::Structure).unwrap().token)
                .collect::<Vec<_>>()
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
    }

    #[test]
    fn a_decision_is_the_likeliest_at_any_temperature_and_moves_no_dice() {
        let all: Vec<u32> = (0..100).collect();
        let logits = logits(&[(40, 1.0), (41, 0.9)]);
        let mut sampler = Sampler::new(100, 2.0, 7);
        let decided =
            (0..50).map(|_| sampler.choose(&logits, &allow(&all), SamplingMode::Decision).unwrap().token);
        assert!(decided.collect::<Vec<_>>().iter().all(|token| *token == 40));
        let prose = |sampler: &mut Sampler| {
            let choose = |_| sampler.choose(&logits, &allow(&all), SamplingMode::Prose).unwrap().token;
            (0..50).map(choose).collect::<Vec<_>>()
        };
        let after_decisions = prose(&mut sampler);
        assert!(after_decisions.iter().any(|token| *token != 40), "prose is drawn");
        assert_eq!(after_decisions, prose(&mut Sampler::new(100, 2.0, 7)));
    }

    #[test]
    fn free_text_does_not_repeat_itself_and_quotes_may() {
        let mut sampler = Sampler::new(100, 0.0, 1);
        let logits = logits(&[(10, 2.0), (11, 1.9)]);
        sampler.remember(10, b"word");
        assert_eq!(sampler.choose(&logits, &allow(&[10, 11]), SamplingMode::Prose).unwrap().token, 11);
        assert_eq!(sampler.choose(&logits, &allow(&[10, 11]), SamplingMode::Structure).unwrap().token, 10);
        (0..64).for_each(|_| sampler.remember(11, b"other"));
        assert_eq!(sampler.choose(&logits, &allow(&[10, 11]), SamplingMode::Prose).unwrap().token, 10);
        let mut sampler = Sampler::new(100, 0.0, 1);
        sampler.remember(10, b"\",");
        assert_eq!(sampler.choose(&logits, &allow(&[10, 11]), SamplingMode::Prose).unwrap().token, 10);
    }

    /// A choice of free text with only these tokens allowed, and whether the list was needed.
    fn freely(sampler: &mut Sampler, logits: &[f32], tokens: &[u32]) -> (Option<ChosenToken>, bool) {
        let mut listed = false;
        let choice = sampler.choose_freely(
            logits,
            |token| tokens.contains(&token),
            || {
                listed = true;
                Ok::<_, ()>(allow(tokens))
            },
        );
        (choice.unwrap(), listed)
    }

    #[test]
    fn without_temperature_free_text_needs_the_list_only_if_the_best_is_refused() {
        let mut sampler = Sampler::new(100, 0.0, 1);
        let logits = logits(&[(3, 9.0), (40, 2.0), (99, 1.0)]);
        let (choice, listed) = freely(&mut sampler, &logits, &[3, 40, 99]);
        assert_eq!((choice.unwrap().token, listed), (3, false));
        let (choice, listed) = freely(&mut sampler, &logits, &[40, 99]);
        assert_eq!((choice.unwrap().token, listed), (40, true));
        assert_eq!(freely(&mut sampler, &logits, &[]), (None, true));
    }

    /// Each token is drawn as often as with a known list. This includes refusals that admit tokens that were not among
    /// the best before.
    #[test]
    fn free_text_is_drawn_as_if_all_allowed_tokens_had_been_listed() {
        let logits: Vec<f32> =
            (0..100_u8).map(|token| f32::from(u16::from(token) * 37 % 100) / 40.0).collect();
        let allowed: Vec<u32> = (0..100).filter(|token| token % 3 != 0).collect();
        let draws = 200_000;
        let (mut known, mut proposed) = ([0_i32; 100], [0_i32; 100]);
        let mut one = Sampler::new(100, 0.8, 1);
        let mut other = Sampler::new(100, 0.8, 2);
        let mut lists = 0;
        for _ in 0..draws {
            known[one.choose(&logits, &allow(&allowed), SamplingMode::Prose).unwrap().token as usize] += 1;
            let (choice, listed) = freely(&mut other, &logits, &allowed);
            proposed[choice.unwrap().token as usize] += 1;
            lists += i32::from(listed);
        }
        assert!(lists * 5 > draws && lists * 2 < draws, "{lists}");
        let chosen = known.iter().filter(|count| **count > 0).count();
        assert_eq!(chosen, MAX_CANDIDATES);
        for (token, (known, proposed)) in known.iter().zip(proposed).enumerate() {
            // About 5,000 each; five standard deviations of the difference.
            let spread = 5.0 * f64::from(known + proposed).sqrt();
            assert!(f64::from(known - proposed).abs() <= spread, "{token}: {known} {proposed}");
        }
    }

    #[test]
    fn a_model_that_says_nonsense_is_survived() {
        let mut sampler = Sampler::new(100, 0.8, 1);
        let mut logits = vec![f32::NAN; 100];
        assert_eq!(sampler.choose(&logits, &allow(&[1, 2]), SamplingMode::Prose), None);
        logits[2] = 0.0;
        assert_eq!(sampler.choose(&logits, &allow(&[1, 2]), SamplingMode::Prose).unwrap().token, 2);
    }
}
