//! Writes one answer, token by token. Text forced by the grammar is written without the model. Otherwise the model
//! chooses among the tokens that the grammar allows, and near the limit the document is closed. Knows no queue and no
//! provider.
//!
//! A label is a decision, not prose. For listed values, tags and booleans the likeliest choice is taken at any
//! temperature, so that sampling never changes an answer. A small model also reports failure too often: `"ok": false`
//! counts only if the model is nearly sure of it.

use std::cell::RefCell;

use toktrie::SimpleVob;

use crate::confidence::ChoiceConfidence;
use crate::copying::{Copies, CopyTokens};
use crate::decide::Decisions;
use crate::grammar::{Grammar, GrammarLost, GrammarWalk};
use crate::json_cursor::{JsonCursor, NextText};
use crate::model::{ModelState, Vocabulary};
use crate::sample::{Sampler, SamplingMode};
use crate::say;
use crate::shape::SchemaParts;
use crate::shortest_ending::{self, ClosingTarget, Labels};
use cognitive_llama::FeedError;

/// The token limit for `meta.explain` when a document is closed: one short sentence.
const MAX_WORDS: usize = 24;
/// The tokens that the model may need for this and for labels that are not the shortest.
const MARGIN: usize = 12 + MAX_WORDS;
/// The minimum probability of `"ok": false`. A model of this size reports failure far too often: in 83 of 200 random
/// runs of bundled modules. The number is a judgement, not a measurement.
const SURE_OF_FAILURE: f32 = 0.9;

/// The input of a generation.
pub(crate) struct GenerateRequest<'a> {
    pub grammar: &'a Grammar,
    pub vocabulary: &'a dyn Vocabulary,
    /// The whole prompt; tokens that the session has already read are not read again.
    pub prompt: &'a [u32],
    /// The input as sent: values that are copies are copied from here.
    pub input: &'a str,
    /// The decisions made before anything is written.
    pub decisions: &'a Decisions,
    /// The token limit of the answer. If the shortest document is longer, the limit is exceeded.
    pub budget: usize,
    pub temperature: f64,
    pub seed: u64,
}

/// The result of a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GenerationResult {
    pub tokens: usize,
    /// True if the limit cut it short.
    pub closed: bool,
    /// True if the model chose any token, so that it had to read the prompt.
    pub asked: bool,
    /// The source of its confidence.
    pub confidence_from: Option<&'static str>,
}

/// The reason why a document is incomplete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Halt {
    /// The caller cancelled.
    Stopped,
    /// The grammar failed, or no valid end of the document was found.
    Lost(String),
}

impl From<GrammarLost> for Halt {
    fn from(lost: GrammarLost) -> Self {
        Self::Lost(lost.0)
    }
}

/// Writes a document. `stop` is checked at least once per token; `out` gets the bytes as they are decided.
pub(crate) fn compose(
    reading: &mut dyn ModelState,
    order: &GenerateRequest<'_>,
    stop: &dyn Fn() -> bool,
    out: &mut dyn FnMut(&[u8]),
) -> Result<GenerationResult, Halt> {
    let known = reading.tokens().len();
    let unread = order.prompt.get(known..).unwrap_or_default().to_vec();
    let mut composer = Composer {
        order,
        out,
        shape: SchemaParts::new(&order.grammar.schema),
        walk: order.grammar.walk(),
        place: JsonCursor::default(),
        unread,
        sampler: Sampler::new(order.vocabulary.len(), order.temperature, order.seed),
        confidence: ChoiceConfidence::new(order.decisions.probability()),
        label: (u32::MAX, false),
        copies: Copies::new(order.input),
        look_at: 0,
        can_ask: true,
        words: 0,
        offered_confidence: false,
        offered: None,
        written: GenerationResult { tokens: 0, closed: false, asked: false, confidence_from: None },
    };
    composer.run(reading, stop)?;
    Ok(composer.written)
}

struct Composer<'a> {
    order: &'a GenerateRequest<'a>,
    out: &'a mut dyn FnMut(&[u8]),
    shape: SchemaParts<'a>,
    walk: GrammarWalk,
    place: JsonCursor,
    /// Tokens that the model has not read yet.
    unread: Vec<u32>,
    sampler: Sampler,
    confidence: ChoiceConfidence,
    /// A value, and whether it is a label.
    label: (u32, bool),
    copies: Copies,
    /// The number of tokens after which to check again whether the document must be closed.
    look_at: usize,
    can_ask: bool,
    /// The number of tokens of an explanation that the model has written during closing.
    words: usize,
    offered_confidence: bool,
    /// The last value for which a decision was tried.
    offered: Option<u32>,
    written: GenerationResult,
}

impl Composer<'_> {
    fn run(&mut self, reading: &mut dyn ModelState, stop: &dyn Fn() -> bool) -> Result<(), Halt> {
        loop {
            if stop() {
                return Err(Halt::Stopped);
            }
            let forced = self.walk.forced_tokens()?;
            self.emit(&forced);
            if self.walk.is_over() {
                return Ok(());
            }
            let here = self.cursor();
            if self.write_confidence(&here)? {
                continue;
            }
            if self.write_decided(&here)? {
                continue;
            }
            if !self.written.closed && (self.write_name(&here)? || self.write_list(&here)?) {
                continue;
            }
            if !self.written.closed && self.written.tokens >= self.look_at {
                self.look_ahead()?;
            }
            if self.written.closed && self.close(&here)? {
                continue;
            }
            self.ask(reading, stop, &here)?;
        }
    }

    /// Returns the place after the pending bytes of the grammar.
    fn cursor(&mut self) -> JsonCursor {
        let mut here = self.place.clone();
        here.advance(self.walk.pending());
        here
    }

    fn emit(&mut self, tokens: &[u32]) {
        for token in tokens {
            if !self.order.vocabulary.is_control(*token) {
                let bytes = self.order.vocabulary.bytes(*token);
                self.place.advance(bytes);
                (self.out)(bytes);
            }
        }
        self.unread.extend_from_slice(tokens);
        self.written.tokens += tokens.len();
    }

    /// Writes the measured confidence at its place, if the grammar allows it.
    fn write_confidence(&mut self, here: &JsonCursor) -> Result<bool, Halt> {
        if self.offered_confidence || !shortest_ending::is_at_confidence(here) {
            return Ok(false);
        }
        self.offered_confidence = true;
        let Some((number, source)) = self.confidence.number_text() else { return Ok(false) };
        let fits = self.walk.explore(|steps| shortest_ending::fits(steps, &number)).unwrap_or(false);
        if fits {
            let bytes = [self.walk.pending(), number.as_bytes()].concat();
            let tokens = self.walk.write(&bytes)?;
            self.emit(&tokens);
            self.written.confidence_from = Some(source);
        }
        Ok(fits)
    }

    /// Writes the next name if the input lists the wanted ones, or the end after the last; if the grammar allows it.
    fn write_name(&mut self, here: &JsonCursor) -> Result<bool, Halt> {
        if !matches!(here.now(), NextText::Member | NextText::Next) {
            return Ok(false);
        }
        let known = self.shape.listed_members(here);
        let decisions = self.order.decisions;
        let is_left_out = |name: &str| {
            let above = here.path().count().saturating_sub(1);
            let path = here.words().take(above).chain([name.into()]);
            decisions.at(path).is_some_and(|decision| decision.value.is_none())
        };
        let Some(name) = self.copies.next_name(&known, is_left_out, here) else { return Ok(false) };
        let fits = self.walk.explore(|steps| {
            let fits = steps.push_all(name.as_bytes());
            steps.pop(if fits { name.len() } else { 0 });
            fits
        });
        if fits == Some(true) {
            self.write(&name)?;
        }
        Ok(fits == Some(true))
    }

    /// Continues or ends a list according to the decided items, if the grammar allows it.
    fn write_list(&mut self, here: &JsonCursor) -> Result<bool, Halt> {
        let Some(item) = here.item() else { return Ok(false) };
        let above = here.path().count().saturating_sub(1);
        let is_decided = |item: usize| {
            self.order.decisions.has_item_decision(here.words().take(above).chain([item.to_string().into()]))
        };
        if !is_decided(item) {
            return Ok(false);
        }
        let sign = if is_decided(item + 1) { "," } else { "]" };
        let fits = self.walk.explore(|steps| {
            let fits = steps.push_all(sign.as_bytes());
            steps.pop(usize::from(fits));
            fits
        });
        if fits == Some(true) {
            self.write(sign)?;
        }
        Ok(fits == Some(true))
    }

    /// Writes a decided value, or the text about decisions, if it belongs here and the grammar allows it.
    fn write_decided(&mut self, here: &JsonCursor) -> Result<bool, Halt> {
        let is_new = here.in_value() && self.offered != Some(here.values());
        if self.order.decisions.is_empty() || !is_new {
            return Ok(false);
        }
        self.offered = Some(here.values());
        let Some(value) = self.decided_value(here) else { return Ok(false) };
        // Some of it may already be pending.
        let written = here.raw_string();
        let rest = match here.now() {
            NextText::String => {
                value.strip_prefix('"').and_then(|text| text.as_bytes().strip_prefix(written))
            }
            _ => Some(value.as_bytes()),
        };
        let Some(rest) = rest.and_then(|rest| std::str::from_utf8(rest).ok()) else { return Ok(false) };
        let fits = self.walk.explore(|steps| {
            let fits = steps.push_all(rest.as_bytes());
            steps.pop(if fits { rest.len() } else { 0 });
            fits
        });
        if fits == Some(true) {
            self.write(rest)?;
        }
        Ok(fits == Some(true))
    }

    /// Returns the value at this place as JSON, if it is decided. If decisions were made, the module succeeded, so `ok`
    /// is true.
    fn decided_value(&self, here: &JsonCursor) -> Option<String> {
        if is_ok(here) {
            return Some("true".to_owned());
        }
        let decisions = self.order.decisions;
        let value = match decisions.at(here.words()) {
            Some(decision) => decision.value.clone()?,
            None => say::sentence(
                self.shape.sentence_templates(here).filter(|_| !self.written.closed)?,
                decisions,
            )?,
        };
        Some(serde_json::Value::from(value).to_string())
    }

    /// Writes text after the pending bytes.
    fn write(&mut self, text: &str) -> Result<(), Halt> {
        let bytes = [self.walk.pending(), text.as_bytes()].concat();
        let tokens = self.walk.write(&bytes)?;
        self.emit(&tokens);
        Ok(())
    }

    /// Checks the length of the shortest end, and whether the document must be closed now.
    fn look_ahead(&mut self) -> Result<(), Halt> {
        let plan =
            shortest_ending::plan(&mut self.walk.fork(), &self.place, self.shape, None, Labels::Shortest);
        let left = self.order.budget.saturating_sub(self.written.tokens);
        if !plan.is_whole() {
            self.look_at = self.written.tokens + MARGIN;
            return if left > 0 {
                Ok(())
            } else {
                Err(Halt::Lost("no valid end of the document was found".to_owned()))
            };
        }
        let end = self.order.vocabulary.encode(&plan.bytes).len() + MARGIN;
        let slack = left.saturating_sub(end);
        // A new list or object makes the end longer, so checks are more frequent near the limit.
        self.look_at = self.written.tokens + (slack / 4).max(1);
        self.written.closed = slack == 0;
        Ok(())
    }

    /// Writes the end, or the text up to the next label. Returns `false` if the model has to write.
    fn close(&mut self, here: &JsonCursor) -> Result<bool, Halt> {
        if self.can_ask && shortest_ending::is_explain(here) && self.words < MAX_WORDS {
            self.words += 1;
            return Ok(false);
        }
        if self.can_ask && here.in_value() && here.now() != NextText::Value && self.is_label(here) {
            return Ok(false);
        }
        let labels = if self.can_ask { Labels::Model } else { Labels::Shortest };
        let confidence = self.confidence.number_text();
        let number = confidence.as_ref().map(|(number, _)| number.as_str());
        let pending = self.walk.pending().len();
        let plan = shortest_ending::plan(&mut self.walk, &self.place, self.shape, number, labels);
        match plan.end {
            ClosingTarget::Stuck => {
                return Err(Halt::Lost("no valid end of the document was found".to_owned()));
            }
            ClosingTarget::Label if plan.bytes.len() == pending => return Ok(false),
            ClosingTarget::Label | ClosingTarget::Whole => {}
        }
        let tokens = self.walk.write(&plan.bytes)?;
        self.emit(&tokens);
        if plan.has_confidence {
            self.offered_confidence = true;
            self.written.confidence_from = confidence.map(|(_, source)| source);
        }
        Ok(true)
    }

    /// Lets the model choose a token.
    fn ask(
        &mut self,
        reading: &mut dyn ModelState,
        stop: &dyn Fn() -> bool,
        here: &JsonCursor,
    ) -> Result<(), Halt> {
        let is_label = here.in_value() && self.is_label(here);
        let in_text = here.now() == NextText::String && !is_label;
        let in_copy = in_text && self.shape.copied_from(here).is_some();
        let mask = if in_text && !in_copy { None } else { Some(self.walk.mask()?) };
        self.written.asked = true;
        let logits = match reading.feed(&self.unread, stop) {
            Ok(logits) => logits,
            Err(FeedError::Cancelled) => return Err(Halt::Stopped),
            Err(FeedError::Full) => {
                // The context is full, so the model cannot be asked any more.
                self.can_ask = false;
                self.written.closed = true;
                return Ok(());
            }
        };
        self.unread.clear();
        let Some(mask) = mask else { return self.write_freely(logits, here) };
        let parts = if in_copy { self.parts(&mask, here) } else { None };
        let manner = match (is_label || parts.is_some(), in_text) {
            (true, _) => SamplingMode::Decision,
            (_, true) => SamplingMode::Prose,
            _ => SamplingMode::Structure,
        };
        let mask = match parts.map_or(Ok(mask), |parts| parts.likelier(logits)) {
            Ok(mask) => mask,
            Err(probability) => {
                self.confidence.note(here, false, probability);
                return self.write("\"");
            }
        };
        let choice = self.sampler.choose(logits, &mask, manner).ok_or_else(no_opinion)?;
        if is_ok(here) && choice.probability < SURE_OF_FAILURE && self.write_success(choice.token)? {
            return Ok(());
        }
        self.confidence.note(here, is_label, choice.probability);
        self.take(choice.token, manner)
    }

    /// Lets the model choose a token of free text, where the grammar allows nearly everything.
    fn write_freely(&mut self, logits: &[f32], here: &JsonCursor) -> Result<(), Halt> {
        let walk = RefCell::new(&mut self.walk);
        let choice = self.sampler.choose_freely(
            logits,
            |token| walk.borrow_mut().allows(token),
            || walk.borrow_mut().mask(),
        );
        let choice = choice?.ok_or_else(no_opinion)?;
        self.confidence.note(here, false, choice.probability);
        self.take(choice.token, SamplingMode::Prose)
    }

    fn take(&mut self, token: u32, manner: SamplingMode) -> Result<(), Halt> {
        if manner == SamplingMode::Prose {
            self.sampler.remember(token, self.order.vocabulary.bytes(token));
        }
        self.walk.take(token)?;
        self.emit(&[token]);
        Ok(())
    }

    /// Returns the tokens that continue a copy and those that end it, if the value here is a copy and there are such
    /// tokens.
    fn parts(&mut self, mask: &SimpleVob, here: &JsonCursor) -> Option<CopyTokens> {
        let member = self.shape.copied_from(here)?;
        let pending = self.walk.pending();
        self.copies.texts(member)?.parts(mask, here.raw_string(), pending, self.order.vocabulary)
    }

    /// Writes `true` instead of a token that starts another word, if the grammar allows it.
    fn write_success(&mut self, instead_of: u32) -> Result<bool, Halt> {
        let whole = [self.walk.pending(), b"true"].concat();
        if whole.starts_with(self.order.vocabulary.bytes(instead_of)) {
            return Ok(false);
        }
        let fits = self.walk.explore(|steps| shortest_ending::fits(steps, "true")).unwrap_or(false);
        if fits {
            let tokens = self.walk.write(&whole)?;
            self.emit(&tokens);
        }
        Ok(fits)
    }

    fn is_label(&mut self, here: &JsonCursor) -> bool {
        if self.label.0 != here.values() {
            self.label = (here.values(), self.shape.is_label(here));
        }
        self.label.1
    }
}

fn no_opinion() -> Halt {
    Halt::Lost("the model gave no token a usable probability".to_owned())
}

/// Returns whether the next value is the `ok` of the document.
fn is_ok(place: &JsonCursor) -> bool {
    place.now() == NextText::Value && place.path().eq([Some(b"ok".as_slice())])
}
