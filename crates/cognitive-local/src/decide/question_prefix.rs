//! Questions in the form of a conversation: the instructions of the contract, the questions that its examples answer,
//! and the real question. All questions of a contract start with the same turns, so a model reads those once. Judges
//! nothing itself.

use cognitive_contract::ports::{Example, ModelCall};
use serde_json::Value;

use super::DecisionRequest;
use super::question::{self, AskedQuestion, DecisionKind, DecisionQuestion};
use super::scale::{Scale, beginning};
use crate::chat::{self, ChatPrompt, TurnMarks};
use cognitive_llama::FeedError;

/// The answer if a text contains nothing of the kind.
pub(super) const NONE: &str = "none";
/// A choice is judged by the first characters of a long text. The time to read it grows with its length.
const MAX_CHARACTERS: usize = 2_000;

/// The turns that all questions start with.
pub(super) struct QuestionPrefix<'a> {
    told: String,
    turns: Vec<Example>,
    marks: &'a TurnMarks<'a>,
    end: u32,
}

impl<'a> QuestionPrefix<'a> {
    pub(super) fn new(request: &DecisionRequest<'a>) -> Self {
        let told = question::instruction(request.schema).unwrap_or_default().to_owned();
        let turns = request.examples.iter().flat_map(|example| turns(request.schema, example)).collect();
        Self { told, turns, marks: request.marks, end: request.vocabulary.end_of_turn() }
    }

    /// Returns the tokens that all questions start with.
    pub(super) fn common_tokens(&self) -> Vec<u32> {
        let mut prompt = self.prompt(String::new());
        prompt.tokens.truncate(prompt.fixed);
        prompt.tokens
    }

    fn prompt(&self, question: String) -> ChatPrompt {
        let mut call = ModelCall::new(self.told.clone(), question, 0.0);
        call.examples.clone_from(&self.turns);
        chat::prompt(&call, self.marks)
    }

    /// Returns the tokens before the answer to a question, and the mark that ends the answer.
    pub(super) fn tokens_before_answer(&self, question: String) -> (Vec<u32>, u32) {
        (self.prompt(question).tokens, self.end)
    }

    /// Returns the log-likelihood of each candidate as the whole answer to a question about a text. If the question
    /// lists them, it is asked in both orders, because a model prefers some positions.
    pub(super) fn weigh(
        &self,
        scale: &mut Scale<'_>,
        ask: &AskedQuestion<'_>,
        text: &str,
        candidates: &[String],
    ) -> Result<Vec<f64>, FeedError> {
        let text = beginning(text, MAX_CHARACTERS);
        let mut questions = vec![ask.with_text(text, candidates.iter())];
        if ask.lists_options() {
            questions.push(ask.with_text(text, candidates.iter().rev()));
        }
        let count = if questions.len() > 1 { 2.0 } else { 1.0 };
        let mut weights = vec![0.0; candidates.len()];
        for question in questions {
            let (before, end) = self.tokens_before_answer(question);
            let answers: Vec<Vec<u32>> =
                candidates.iter().map(|text| scale.answer_tokens(text, end)).collect();
            for (weight, likelihood) in weights.iter_mut().zip(scale.log_probabilities(&before, &answers)?) {
                *weight += likelihood / count;
            }
        }
        Ok(weights)
    }
}

impl Scale<'_> {
    /// Returns the tokens of a text as the whole answer.
    fn answer_tokens(&self, text: &str, end: u32) -> Vec<u32> {
        let mut tokens = self.vocabulary.encode(text.as_bytes());
        tokens.push(end);
        tokens
    }

    /// Returns the log-probability of a text as the whole answer.
    pub(super) fn answer(&mut self, before: &[u32], text: &str, end: u32) -> Result<f64, FeedError> {
        let tokens = self.answer_tokens(text, end);
        Ok(self.likelihoods(before, &tokens)?.into_iter().map(f64::from).sum())
    }
}

/// Returns the questions that an example answers, with their answers.
fn turns(schema: &Value, example: &Example) -> Vec<Example> {
    let (Ok(input), Ok(answer)) =
        (serde_json::from_str::<Value>(&example.input), serde_json::from_str::<Value>(&example.answer))
    else {
        return Vec::new();
    };
    let Some(data) = answer.get("data") else { return Vec::new() };
    question::all(schema, &input).iter().flat_map(|question| answered_examples(question, data)).collect()
}

fn answered_examples(question: &DecisionQuestion<'_>, data: &Value) -> Vec<Example> {
    let Some(ask) = &question.ask else { return Vec::new() };
    let value = question.path.iter().try_fold(data, |value, name| value.get(name));
    let turn = |text: &str, options: &[String], answer: &str| Example {
        input: ask.with_text(text, options.iter()),
        answer: answer.to_owned(),
    };
    match &question.kind {
        DecisionKind::Choice(candidates) => {
            let value = value.and_then(Value::as_str);
            value.map(|value| turn(question.text, candidates, value)).into_iter().collect()
        }
        DecisionKind::Piece { .. } => {
            vec![turn(question.text, &[], value.and_then(Value::as_str).unwrap_or(NONE))]
        }
        DecisionKind::Order { entries, entry, level, levels } => {
            let items = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let level_of = |text: &String| {
                let item = items.iter().find(|item| item.get(entry).and_then(Value::as_str) == Some(text))?;
                Some(turn(text, levels, item.get(level)?.as_str()?))
            };
            entries.iter().filter_map(level_of).collect()
        }
        DecisionKind::Topic { .. } => Vec::new(),
    }
}
