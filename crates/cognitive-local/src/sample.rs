//! The next token, from what the model finds likely and the grammar allows. The same seed gives the same tokens.
//! Allocates nothing per token.

use std::f32::consts::{LN_2, LOG2_E};

use toktrie::SimpleVob;

/// How many of the likeliest tokens take part when there is a temperature.
const MOST_CANDIDATES: usize = 40;
/// Small models repeat themselves for ever without it; 1.3 begins to damage copied dates.
const REPETITION_PENALTY: f32 = 1.1;
/// How far back a repetition counts.
const WINDOW: usize = 64;
/// How many logits are handled at once: as many as a word of the mask has bits.
const LANES: usize = 32;

/// A small generator of numbers (splitmix64): the same seed always gives the same numbers.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
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

/// What is being written decides how a token is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// One of a few values: the likeliest, whatever the temperature. No dice are thrown.
    Decision,
    /// Free text: by temperature, and what was said before is less likely.
    Prose,
    /// Numbers, names and signs: by temperature.
    Structure,
}

/// A chosen token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Choice {
    pub token: u32,
    /// How likely the model found it among the tokens that were allowed: before temperature and penalty.
    pub probability: f32,
}

/// Chooses tokens.
#[derive(Debug)]
pub(crate) struct Sampler {
    temperature: f32,
    dice: Dice,
    /// The last tokens of free text, in a ring.
    recent: [u32; WINDOW],
    written: usize,
    /// How often each token is in the ring.
    counts: Vec<u8>,
    candidates: [(f32, u32); MOST_CANDIDATES],
}

impl Sampler {
    pub(crate) fn new(vocabulary: usize, temperature: f64, seed: u64) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "a temperature needs no more than a float")]
        let temperature = if temperature.is_finite() { temperature.max(0.0) as f32 } else { 0.0 };
        Self {
            temperature,
            dice: Dice::new(seed),
            recent: [0; WINDOW],
            written: 0,
            counts: vec![0; vocabulary],
            candidates: [(f32::NEG_INFINITY, 0); MOST_CANDIDATES],
        }
    }

    /// Chooses among the allowed tokens; `None` if there is none.
    pub(crate) fn choose(&mut self, logits: &[f32], allowed: &SimpleVob, manner: Manner) -> Option<Choice> {
        let (mut count, mut highest, mut bar) = (0, f32::NEG_INFINITY, f32::NEG_INFINITY);
        each_block(logits, allowed, |first, block| {
            let best =
                block.iter().fold(f32::NEG_INFINITY, |best, logit| if *logit > best { *logit } else { best });
            highest = highest.max(best);
            // A penalty only lowers, so whoever is below the bar without one is below it with one.
            if best > bar {
                for (token, logit) in (first..).zip(block) {
                    if *logit <= bar {
                        continue;
                    }
                    let is_repeated = manner == Manner::Prose
                        && self.counts.get(token as usize).is_some_and(|count| *count > 0);
                    let logit = if is_repeated { penalised(*logit) } else { *logit };
                    bar = insert(&mut self.candidates, &mut count, (logit, token));
                }
            }
        });
        let token = self.draw(count, manner)?;
        let chosen = logits.get(token as usize).copied()?;
        let mut sums = [0.0; LANES];
        each_block(logits, allowed, |_, block| {
            sums.iter_mut().zip(block).for_each(|(sum, logit)| *sum += power(*logit - highest));
        });
        Some(Choice { token, probability: power(chosen - highest) / sums.iter().sum::<f32>() })
    }

    /// Remembers a token of free text. One that holds a quote ends the text, and ends may repeat.
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

    fn draw(&mut self, count: usize, manner: Manner) -> Option<u32> {
        let candidates = self.candidates.get(..count)?;
        let (highest, likeliest) = *candidates.first()?;
        if self.temperature <= 0.0 || manner == Manner::Decision {
            return Some(likeliest);
        }
        let weight = |logit: f32| ((logit - highest) / self.temperature).exp();
        let sum: f32 = candidates.iter().map(|(logit, _)| weight(*logit)).sum();
        let mut left = self.dice.fraction() * sum;
        for (logit, token) in candidates {
            left -= weight(*logit);
            if left < 0.0 {
                return Some(*token);
            }
        }
        Some(likeliest)
    }
}

/// How likely all allowed tokens are together. Comparable only between calls with the same logits.
pub(crate) fn mass(logits: &[f32], allowed: &SimpleVob) -> f32 {
    let finite = logits.iter().copied().filter(|logit| logit.is_finite());
    let highest = finite.fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    each_block(logits, allowed, |_, block| {
        let likely = block.iter().filter(|logit| logit.is_finite());
        sum += likely.map(|logit| power(logit - highest)).sum::<f32>();
    });
    sum
}

fn penalised(logit: f32) -> f32 {
    if logit > 0.0 { logit / REPETITION_PENALTY } else { logit * REPETITION_PENALTY }
}

/// Keeps the list of the best sorted, best first, and returns the worst of them once the list is full. Of equals the
/// first stays first, so the order is always the same.
fn insert(best: &mut [(f32, u32); MOST_CANDIDATES], count: &mut usize, new: (f32, u32)) -> f32 {
    let worst = |best: &[(f32, u32)], count: usize| match best.last() {
        Some((logit, _)) if count == MOST_CANDIDATES => *logit,
        _ => f32::NEG_INFINITY,
    };
    let bar = worst(best, *count);
    if *count == MOST_CANDIDATES && new.0 <= bar {
        return bar;
    }
    *count = (*count + 1).min(MOST_CANDIDATES);
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

/// The logits in blocks; what is not allowed, or no number, is as unlikely as can be. Blocks without anything allowed
/// are passed over. Written without branches, so that many numbers are handled at once.
fn each_block(logits: &[f32], allowed: &SimpleVob, mut visit: impl FnMut(u32, &[f32; LANES])) {
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

/// `e` to the power of a number that is not positive, to four digits: enough for a probability with two, and quick
/// enough to be summed over a whole vocabulary.
#[inline]
fn power(exponent: f32) -> f32 {
    // Adding this leaves the nearest whole number in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    let exponent = if exponent > -80.0 { exponent } else { -80.0 } * LOG2_E;
    let shifted = exponent + ROUND;
    let rest = exponent - (shifted - ROUND);
    let series = 1.0 + rest * (LN_2 + rest * (0.240_227 + rest * (0.055_504 + rest * 0.009_618)));
    f32::from_bits(series.to_bits().wrapping_add(shifted.to_bits() << 23))
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
        let choice = sampler.choose(&logits, &allow(&[40, 99]), Manner::Structure).unwrap();
        assert_eq!(choice.token, 40);
        assert!((choice.probability - 0.731).abs() < 0.001, "{choice:?}");
        assert_eq!(sampler.choose(&logits, &allow(&[]), Manner::Structure), None);
    }

    #[test]
    fn the_same_seed_gives_the_same_tokens_and_another_does_not() {
        let all: Vec<u32> = (0..100).collect();
        let logits: Vec<f32> = (0..100_u8).map(|token| f32::from(token % 7) / 3.0).collect();
        let run = |seed| {
            let mut sampler = Sampler::new(100, 0.8, seed);
            (0..50)
                .map(|_| sampler.choose(&logits, &allow(&all), Manner::Structure).unwrap().token)
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
        let decided = (0..50).map(|_| sampler.choose(&logits, &allow(&all), Manner::Decision).unwrap().token);
        assert!(decided.collect::<Vec<_>>().iter().all(|token| *token == 40));
        let prose = |sampler: &mut Sampler| {
            let choose = |_| sampler.choose(&logits, &allow(&all), Manner::Prose).unwrap().token;
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
        assert_eq!(sampler.choose(&logits, &allow(&[10, 11]), Manner::Prose).unwrap().token, 11);
        assert_eq!(sampler.choose(&logits, &allow(&[10, 11]), Manner::Structure).unwrap().token, 10);
        (0..64).for_each(|_| sampler.remember(11, b"other"));
        assert_eq!(sampler.choose(&logits, &allow(&[10, 11]), Manner::Prose).unwrap().token, 10);
        let mut sampler = Sampler::new(100, 0.0, 1);
        sampler.remember(10, b"\",");
        assert_eq!(sampler.choose(&logits, &allow(&[10, 11]), Manner::Prose).unwrap().token, 10);
    }

    #[test]
    fn powers_are_good_to_four_digits() {
        for step in 0..8_000_u16 {
            let exponent = f32::from(step) / -100.0;
            assert!((power(exponent) / exponent.exp() - 1.0).abs() < 1e-4, "{exponent}");
        }
        assert!(power(f32::NEG_INFINITY) < 1e-30);
    }

    #[test]
    fn a_model_that_says_nonsense_is_survived() {
        let mut sampler = Sampler::new(100, 0.8, 1);
        let mut logits = vec![f32::NAN; 100];
        assert_eq!(sampler.choose(&logits, &allow(&[1, 2]), Manner::Prose), None);
        logits[2] = 0.0;
        assert_eq!(sampler.choose(&logits, &allow(&[1, 2]), Manner::Prose).unwrap().token, 2);
    }
}
