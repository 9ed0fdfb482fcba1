//! Stage 1: is the input fit to be sent to a model, and which context goes with it? (E1000, E1001)
//! Judges what the caller sent as it was sent; then members that are missing get the default of the input schema, which
//! the hash of the input does not know. Changes nothing else, and asks no model before it is sure.

use std::sync::OnceLock;

use cognitive_contract::code::Blame;
use cognitive_contract::context::{
    Access, MEMBER, Prepared, Sanitiser, prepare, prepare_text, without_context,
};
use cognitive_contract::json;
use cognitive_contract::{Enforcement, ErrorCode, Failure, Module, Warning, built, long, media, numbers};
use serde_json::{Map, Value, json};

use crate::host::RunInput;
use crate::receipt::canonical_sha256;
use crate::run::Run;
use crate::run_context::NOTICE;

/// What the caller sent, as JSON that was not judged yet. Only [`read`] makes one.
#[derive(Debug, Clone)]
pub struct ParsedInput {
    value: Value,
    arguments: Option<String>,
}

impl ParsedInput {
    /// The input.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The same for a surface that finds the input inside what was sent.
    #[must_use]
    pub fn into_value(self) -> Value {
        self.value
    }

    /// The same with context that the caller's own words have no place for.
    pub(crate) fn with_context(mut self, context: &Map<String, Value>) -> Self {
        if let Value::Object(members) = &mut self.value
            && !context.is_empty()
        {
            members.insert(MEMBER.to_owned(), Value::Object(context.clone()));
        }
        self
    }
}

/// Input that the module's contract accepts, and its context. Only [`validate`] makes one.
#[derive(Debug, Clone)]
pub struct ValidInput {
    prepared: Prepared,
    arguments: Option<String>,
    /// Made once: an input with media takes its time.
    sha256: OnceLock<String>,
}

impl ValidInput {
    /// The input object without context.
    #[must_use]
    pub fn value(&self) -> &Value {
        self.prepared.input()
    }

    /// The context that the model gets, by type.
    #[must_use]
    pub fn context(&self) -> &Map<String, Value> {
        self.prepared.context()
    }

    /// What is put down about the context; `None` if there is none.
    #[must_use]
    pub fn access(&self) -> Option<Access> {
        self.prepared.access()
    }

    /// Notices for `meta.warnings`.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.prepared.warnings
    }

    /// The hash of the input without context, whatever the order of its members: of what the caller sent, also when
    /// its media have been taken out. (MEDIA-023)
    #[must_use]
    pub fn sha256(&self) -> String {
        self.sha256.get_or_init(|| canonical_sha256(self.value())).clone()
    }

    /// Takes in the context that the modules which this one calls have changed. (CTX-050)
    pub(crate) fn update_context(
        &mut self,
        module: &Module,
        updates: &Map<String, Value>,
        enforcement: Enforcement,
        sanitiser: &Sanitiser,
    ) -> Vec<Warning> {
        let before = self.prepared.warnings.len();
        self.prepared.update(module, updates, sanitiser, enforcement);
        self.prepared.warnings.split_off(before)
    }

    /// Gives missing members the default of the input schema. The hash stays that of what the caller sent.
    fn fill_in(&mut self, module: &Module) {
        if module.contract.is_incomplete(self.value()) {
            let _ = self.sha256();
            module.contract.fill_in(self.prepared.input_mut());
        }
    }

    /// Takes the base64 text out of the media item at a place and leaves a note there.
    pub(crate) fn take_media(&mut self, place: &str, note: &str) -> Option<String> {
        let _ = self.sha256();
        match self.prepared.input_mut().pointer_mut(&format!("{place}/data"))? {
            Value::String(data) => Some(std::mem::replace(data, note.to_owned())),
            _ => None,
        }
    }

    /// Takes out of media items what only the one who fetches them may read. The hash stays that of what was sent.
    pub(crate) fn hide_secrets(&mut self) {
        if media::holds_secrets(self.value()) {
            let _ = self.sha256();
            media::hide_secrets(self.prepared.input_mut());
        }
    }

    /// The text that the caller sent in place of an object.
    pub(crate) fn given_text(&self) -> Option<&str> {
        self.arguments.as_deref()
    }

    /// The user's text for `$ARGUMENTS`: given as such, or taken from the members that stand for it.
    #[must_use]
    pub fn arguments(&self) -> Option<&str> {
        let member = |name: &str| self.value().get(name).and_then(Value::as_str);
        self.arguments.as_deref().or_else(|| member("$ARGUMENTS")).or_else(|| member("query"))
    }
}

/// Takes the input of a run, with the context of earlier ones. Also gives the context that the module's parts may be given:
/// what came with the input, and what was recalled.
pub(crate) fn accept(
    run: &mut Run<'_, '_>,
    given: RunInput,
) -> Result<(ValidInput, Map<String, Value>), Failure> {
    let given = read(given)?.with_context(&run.lineage.context);
    let (recalled, warnings) = run.context.recall(run.module, given.value());
    run.warnings.extend(warnings);
    let context =
        if run.module.stands_alone() { Map::new() } else { given_to_parts(given.value(), &recalled) };
    let enforcement = run.options.enforcement;
    let input = validate(run.module, given, &recalled, enforcement, &run.host.sanitiser)?;
    run.receipt.sha256.input = run.receipt.hash(|| input.sha256());
    run.warnings.extend_from_slice(input.warnings());
    Ok((input, context))
}

fn given_to_parts(given: &Value, recalled: &Map<String, Value>) -> Map<String, Value> {
    let own = given.get(MEMBER).and_then(Value::as_object).into_iter().flatten();
    own.chain(recalled).map(|(kind, value)| (kind.clone(), value.clone())).collect()
}

/// Reads what the caller sent.
pub fn read(input: RunInput) -> Result<ParsedInput, Failure> {
    Ok(match input {
        // Free text fits no schema by design; it becomes an object with the two customary names.
        RunInput::Text(text) => {
            ParsedInput { value: json!({ "$ARGUMENTS": text, "query": text }), arguments: Some(text) }
        }
        RunInput::Json(value) => ParsedInput { value, arguments: None },
        RunInput::Raw(text) => ParsedInput { value: parse(text)?, arguments: None },
    })
}

/// Accepts or refuses an input. `recalled` is kept context of types that it does not bring along; where that does not
/// fit any more, it counts as missing: the caller cannot help what an earlier run left behind.
pub fn validate(
    module: &Module,
    given: ParsedInput,
    recalled: &Map<String, Value>,
    enforcement: Enforcement,
    sanitiser: &Sanitiser,
) -> Result<ValidInput, Failure> {
    let judge = if given.arguments.is_some() { prepare_text } else { prepare };
    let prepared = match together(&given.value, recalled) {
        Some(whole) => judge(module, whole, sanitiser, enforcement).or_else(|_| {
            let mut prepared = judge(module, given.value, sanitiser, enforcement)?;
            prepared.warnings.push(unfit(recalled));
            Ok(prepared)
        })?,
        None => judge(module, given.value, sanitiser, enforcement)?,
    };
    let mut input = ValidInput { prepared, arguments: given.arguments, sha256: OnceLock::new() };
    input.fill_in(module);
    Ok(input)
}

/// An input with kept context beside its own; `None` if there is nothing to put together.
fn together(given: &Value, recalled: &Map<String, Value>) -> Option<Value> {
    if recalled.is_empty() {
        return None;
    }
    let mut context = match given.get(MEMBER) {
        None => Map::new(),
        Some(own) => own.as_object()?.clone(),
    };
    context.extend(recalled.iter().map(|(kind, value)| (kind.clone(), value.clone())));
    let Value::Object(mut members) = without_context(given) else { return None };
    members.insert(MEMBER.to_owned(), Value::Object(context));
    Some(Value::Object(members))
}

fn unfit(recalled: &Map<String, Value>) -> Warning {
    let kinds: Vec<String> = recalled.keys().map(|kind| format!("`{kind}`")).collect();
    let message = format!("kept context does not fit the module and was left out: {}", kinds.join(", "));
    Warning::new(NOTICE, message)
}

fn parse(mut text: String) -> Result<Value, Failure> {
    let marks = text.len() - text.trim_start_matches('\u{feff}').len();
    text.drain(..marks);
    built::within(text.as_bytes(), built::MOST)?;
    // A number that nothing can hold makes the parser fail, so numbers are looked at first; the order of the codes stays.
    let inexact = numbers::refusal(&text);
    let overflows = || numbers::rounded(&text).iter().any(|number| number.overflows);
    if let Some(failure) = inexact
        && (overflows() || json::parse(&text).is_ok())
    {
        return Err(failure);
    }
    long::parse(&mut text).map_or_else(|| json::parse(&text), Ok).map_err(|error| {
        let message = format!("the input is not JSON: {} (byte {})", error.message, error.offset);
        Failure::new(ErrorCode::ParseError, message)
            .blaming(Blame::Caller)
            .with_detail("source", json!("caller"))
            .suggest("Pass an object such as `--input '{\"text\": \"…\"}'`, or free text with `--args`")
    })
}
