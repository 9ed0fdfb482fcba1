//! The vocabulary of the real model, if its weights are available: random documents, and the cost of the grammar.

use std::time::{Duration, Instant};

use super::schemas::random_data;
use super::*;
use crate::model::{ModelState, SharedReading, Vocabulary};
use cognitive_llama::{Ensemble, FeedError, Model};

fn model() -> Option<Arc<Model>> {
    Some(Arc::new(Model::open(&cognitive_testkit::weights()?).unwrap()))
}

/// The real vocabulary with random logits.
struct Random(Arc<Model>);

impl LanguageModel for Random {
    fn vocabulary(&self) -> &dyn Vocabulary {
        self.0.tokenizer()
    }

    fn context_length(&self) -> usize {
        8_192
    }

    fn bytes_per_token(&self) -> u64 {
        self.0.bytes_per_token()
    }

    fn session(self: Arc<Self>) -> Box<dyn SharedReading> {
        Box::new(RandomSession { size: self.0.tokenizer().len(), tokens: Vec::new(), logits: Vec::new() })
    }
}

#[derive(Clone)]
struct RandomSession {
    size: usize,
    tokens: Vec<u32>,
    logits: Vec<f32>,
}

impl ModelState for RandomSession {
    fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    fn truncate(&mut self, length: usize) {
        self.tokens.truncate(length);
    }

    fn feed(&mut self, tokens: &[u32], _: &dyn Fn() -> bool) -> Result<&[f32], FeedError> {
        self.tokens.extend_from_slice(tokens);
        let seed =
            self.tokens.iter().fold(7_u64, |sum, token| sum.wrapping_mul(31).wrapping_add(u64::from(*token)));
        let mut dice = TokenRandom::new(seed);
        self.logits = (0..self.size).map(|_| 10.0 * dice.fraction()).collect();
        Ok(&self.logits)
    }
}

impl SharedReading for RandomSession {
    fn read(&mut self, tokens: &[u32], stop: &dyn Fn() -> bool) -> Result<(), FeedError> {
        self.feed(tokens, stop).map(drop)
    }

    fn fork(&self, length: usize) -> Box<dyn SharedReading> {
        let mut fork = self.clone();
        fork.truncate(length);
        Box::new(fork)
    }
}

#[test]
fn d_05_documents_in_the_words_of_the_real_model_obey_their_contracts() {
    let Some(model) = model() else { return };
    let weights: Arc<dyn LanguageModel> = Arc::new(Random(model));
    let guide = Guide::new(Arc::clone(&weights), false).unwrap();
    let mut seed = 10_000;
    let mut judged = 0;
    while judged < 60 {
        let module = std::iter::from_fn(|| {
            seed += 1;
            Some(module(&random_data(seed)))
        });
        let module = module.flatten().next().unwrap();
        let lowered = module.provider_schema(SchemaTarget::Grammar);
        if lowered.gaps().next().is_some() {
            continue;
        }
        judged += 1;
        let grammar = guide.grammar(&lowered.schema).unwrap();
        for budget in [1, 40, 90] {
            let (text, _) = document(&weights, &grammar, budget, seed).unwrap();
            assert_eq!(complaints(&module, &text), None, "{seed}");
        }
    }
}

/// Measures the time of the model; the rest is the cost of grammar and sampling.
struct Timed(Box<dyn SharedReading>, Duration);

impl ModelState for Timed {
    fn tokens(&self) -> &[u32] {
        self.0.tokens()
    }

    fn truncate(&mut self, length: usize) {
        self.0.truncate(length);
    }

    fn feed(&mut self, tokens: &[u32], stop: &dyn Fn() -> bool) -> Result<&[f32], FeedError> {
        let began = Instant::now();
        let fed = self.0.feed(tokens, stop);
        self.1 += began.elapsed();
        fed
    }
}

/// Masks and sampling must cost less than a twentieth of the time.
#[test]
#[ignore = "a figure for quiet machines: cargo test -p cognitive-local --lib share -- --ignored --nocapture"]
fn the_share_of_the_grammar_in_the_time_of_an_answer() {
    let Some(model) = model() else { return };
    let weights: Arc<dyn LanguageModel> = Arc::new(Ensemble::new(model, 1));
    let data = json!({ "type": "object", "required": ["mood", "parts"], "properties": {
        "mood": { "enum": ["good", "bad"] }, "parts": { "type": "array", "items": { "type": "string" } } } });
    let schema = lowered(&module(&data).unwrap());
    for slices in [false, true] {
        let guide = Guide::new(Arc::clone(&weights), slices).unwrap();
        let (mut tokens, mut whole, mut read) = (0, Duration::ZERO, Duration::ZERO);
        for seed in 0..8 {
            let prompt = weights.vocabulary().encode(b"Write a review of a phone as JSON.");
            let grammar = guide.grammar(&schema).unwrap();
            let vocabulary = weights.vocabulary();
            let order = GenerateRequest {
                grammar: &grammar,
                vocabulary,
                prompt: &prompt,
                input: "",
                decisions: &Decisions::default(),
                budget: 200,
                temperature: 0.8,
                seed,
            };
            let mut session = Timed(Arc::clone(&weights).session(), Duration::ZERO);
            session.feed(&prompt[..prompt.len() - 1], &|| false).unwrap();
            session.1 = Duration::ZERO;
            let began = Instant::now();
            tokens += compose(&mut session, &order, &|| false, &mut |_| {}).unwrap().tokens;
            whole += began.elapsed();
            read += session.1;
        }
        let share = 100.0 * whole.saturating_sub(read).as_secs_f64() / whole.as_secs_f64();
        let rate = f64::from(u32::try_from(tokens).unwrap()) / whole.as_secs_f64();
        println!(
            "slices {slices}: {tokens} tokens in {whole:.2?} ({rate:.0}/s), grammar and choice {share:.1} %"
        );
    }
}
