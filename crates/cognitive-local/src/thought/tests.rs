//! Thoughts of a scripted model: their end, their text, and that marks are not part of them.

use super::*;
use crate::toy::{END, START, Toy};

/// Returns the tokens of a script in order, regardless of the input; then an endless `x`.
struct Scripted {
    script: Vec<u32>,
    read: Vec<u32>,
    said: usize,
    logits: Vec<f32>,
    context: usize,
}

impl Scripted {
    fn new(script: &[&str]) -> Self {
        let token = |word: &&str| match *word {
            "START" => vec![START],
            "END" => vec![END],
            text => text.bytes().map(u32::from).collect(),
        };
        let script = script.iter().flat_map(token).collect();
        Self { script, read: Vec::new(), said: 0, logits: Vec::new(), context: usize::MAX }
    }
}

impl ModelState for Scripted {
    fn tokens(&self) -> &[u32] {
        &self.read
    }

    fn truncate(&mut self, length: usize) {
        self.read.truncate(length);
    }

    fn feed(&mut self, tokens: &[u32], cancelled: &dyn Fn() -> bool) -> Result<&[f32], FeedError> {
        if cancelled() {
            return Err(FeedError::Cancelled);
        }
        if self.read.len() + tokens.len() > self.context {
            return Err(FeedError::Full);
        }
        self.read.extend_from_slice(tokens);
        let next = self.script.get(self.said).copied().unwrap_or(u32::from(b'x'));
        self.said += 1;
        // So far above the others that no penalty for repetition changes the choice.
        self.logits = (0..400).map(|token| if token == next { 900.0 } else { -900.0 }).collect();
        Ok(&self.logits)
    }
}

fn thought(model: &mut Scripted, limit: usize) -> (String, Thought) {
    let toy = Toy::default();
    let prompt: Vec<u32> = b"in".iter().map(|byte| u32::from(*byte)).collect();
    let request =
        ThoughtRequest { vocabulary: &toy, prompt: &prompt, form: MARKED, limit, temperature: 0.0, seed: 1 };
    let thought = think(model, &request, &|| false).unwrap();
    let bytes: Vec<u8> = thought.tokens.iter().flat_map(|token| toy.bytes(*token).to_vec()).collect();
    (String::from_utf8(bytes).unwrap(), thought)
}

#[test]
fn a_thought_ends_where_the_model_ends_it_and_its_mark_is_ours() {
    for end in ["</think>", "END", "START"] {
        let (text, thought) = thought(&mut Scripted::new(&["a b. \n", end, "{}"]), 100);
        assert_eq!(text, "a b.\n</think>\n\n", "{end}");
        assert!(!thought.closed, "{end}");
        let control = |token: &&u32| [START, END].contains(*token);
        assert_eq!(thought.tokens.iter().filter(control).count(), 0, "no turn mark is kept");
    }
}

#[test]
fn a_thought_that_does_not_end_is_closed_at_its_limit() {
    for limit in [1, 7, 64] {
        let mut model = Scripted::new(&[]);
        let (text, thought) = thought(&mut model, limit);
        assert_eq!(text, format!("{}\n</think>\n\n", "x".repeat(limit)));
        assert!(thought.closed && thought.written == limit);
        assert_eq!(model.said, limit, "nothing is computed for a token that is not wanted");
    }
}

#[test]
fn a_full_context_closes_a_thought_too() {
    let mut model = Scripted { context: 6, ..Scripted::new(&[]) };
    let (text, thought) = thought(&mut model, 100);
    assert!(text.ends_with("</think>\n\n") && thought.closed, "{text}");
}

#[test]
fn half_a_character_at_the_limit_is_left_out() {
    let (text, _) = thought(&mut Scripted::new(&["ä", "你"]), 4);
    assert_eq!(text, "ä\n</think>\n\n");
}

#[test]
fn an_opening_mark_within_a_thought_is_text() {
    let (text, _) = thought(&mut Scripted::new(&["a <think> b", "</think>"]), 100);
    assert_eq!(text, "a <think> b\n</think>\n\n");
}

#[test]
fn what_was_read_is_not_read_again() {
    let mut model = Scripted::new(&["abc", "END"]);
    let (_, thought) = thought(&mut model, 100);
    assert_eq!(thought.tokens.get(..3), model.read.get(2..5));
}

#[test]
fn prose_ends_where_the_answer_begins() {
    let mut text = ThoughtText::default();
    for (token, piece) in (0..).zip(["It is", " urgent.", "\n\n``", "`json"]) {
        text.push(token, piece.as_bytes());
        assert_eq!(text.end_at(PROSE.ends), piece == "`json", "{piece}");
    }
    assert_eq!(text.bytes, b"It is urgent.\n\n");
}

#[test]
fn whoever_stops_a_run_stops_its_thought() {
    let toy = Toy::default();
    let request =
        ThoughtRequest { vocabulary: &toy, prompt: &[1], form: MARKED, limit: 9, temperature: 0.0, seed: 1 };
    assert_eq!(think(&mut Scripted::new(&[]), &request, &|| true), Err(Halt::Stopped));
}

mod whole_answers {
    use std::sync::Arc;

    use cognitive_contract::ports::{Attempt, CallSink, ModelCall, ModelEnd, Provider};
    use cognitive_contract::thinking::ThoughtOutcome;
    use cognitive_schema::{ProviderSchema, SchemaTarget};
    use serde_json::{Value, json};

    use super::*;
    use crate::EmbeddedProvider;
    use crate::model::LanguageModel;

    #[derive(Default)]
    struct Heard(String);

    impl CallSink for Heard {
        fn piece(&mut self, text: &str) {
            self.0.push_str(text);
        }

        fn attempt(&mut self, _: Attempt) {}
    }

    async fn answer(toy: Toy, thinking: Option<u32>, seed: u64) -> (ModelEnd, Value, String) {
        let toy = Arc::new(toy);
        let embedded = EmbeddedProvider::new("toy", move || Ok(Arc::clone(&toy) as Arc<dyn LanguageModel>));
        let mut call = ModelCall::new("Say it.".to_owned(), "in".to_owned(), 0.7);
        let schema = json!({
            "type": "object", "required": ["mood", "text"], "additionalProperties": false, "properties": {
                "mood": { "enum": ["good", "bad"] }, "text": { "type": "string", "maxLength": 40 },
            },
        });
        call.schema = Some(Arc::new(ProviderSchema::new(SchemaTarget::Grammar, schema, Vec::new())));
        (call.thinking, call.seed) = (thinking, Some(seed));
        let mut heard = Heard::default();
        let end = embedded.ask(&call, &mut heard).await.unwrap();
        (end, serde_json::from_str(&heard.0).unwrap(), heard.0)
    }

    #[tokio::test]
    async fn every_answer_after_a_thought_keeps_the_contract_and_holds_nothing_of_the_thought() {
        let mut became = std::collections::BTreeMap::new();
        for seed in 0..60 {
            let (end, value, text) = answer(Toy::wordy(), Some(40), seed).await;
            assert!(text.starts_with('{') && ["good", "bad"].contains(&value["mood"].as_str().unwrap()));
            let usage = end.usage.unwrap();
            assert!((1..=40).contains(&usage.thinking_tokens), "{usage:?}");
            assert!(usage.output_tokens > usage.thinking_tokens + 5, "{usage:?}");
            *became.entry(format!("{:?}", end.thinking.unwrap())).or_insert(0) += 1;
        }
        assert_eq!(became.values().sum::<i32>(), 60);
        assert!(became.contains_key("Closed") && !became.contains_key("Ignored"), "{became:?}");
    }

    #[tokio::test]
    async fn none_and_nothing_said_are_the_same_answer_and_no_thought() {
        let (silent, _, text) = answer(Toy::wordy(), None, 1).await;
        let (none, _, same) = answer(Toy::wordy(), Some(0), 1).await;
        assert_eq!(text, same);
        assert_eq!((silent.thinking, none.thinking), (None, Some(ThoughtOutcome::Off)));
        assert_eq!((none.usage.unwrap().thinking_tokens, silent.usage), (0, none.usage));
        let (_, _, other) = answer(Toy::wordy(), Some(30), 1).await;
        assert_ne!(text, other, "what was thought is read before the answer");
    }

    #[tokio::test]
    async fn the_answer_has_its_room_before_the_thought_has() {
        let toy = Toy { context: 200, ..Toy::wordy() };
        let (end, _, _) = answer(toy, Some(4_000), 1).await;
        assert_eq!(end.thinking, Some(ThoughtOutcome::Ignored));
        let toy = Toy { context: 800, ..Toy::wordy() };
        let (end, _, _) = answer(toy, Some(4_000), 1).await;
        let thoughts = end.usage.unwrap().thinking_tokens;
        assert!((1..400).contains(&thoughts), "{thoughts}");
    }
}
