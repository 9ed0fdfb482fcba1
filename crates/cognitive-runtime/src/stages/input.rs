//! Stage 1: checks whether the input may be sent to a model, and selects its context. (E1000, E1001)
//! Judges the input as the caller sent it. Then missing members get the default of the input schema, which the hash
//! of the input does not include. Changes nothing else, and asks no model.

use std::sync::{Arc, OnceLock};

use cognitive_contract::code::Blame;
use cognitive_contract::context::{Access, GivenInput, MEMBER, PreparedInput, Sanitiser, prepare_given};
use cognitive_contract::json;
use cognitive_contract::{Enforcement, ErrorCode, Failure, Module, Warning, media, numbers};
use serde_json::{Map, Value, json};

use crate::host::RunInput;
use crate::receipt::canonical_sha256;
use crate::run::Run;
use crate::run_context::NOTICE;
use crate::{large_json, memory_estimate};

/// The caller's input, parsed but not yet checked. Only [`read`] creates one.
#[derive(Debug, Clone)]
pub struct ParsedInput {
    value: Arc<Value>,
    /// Context that was passed separately from the value.
    aside: Map<String, Value>,
    arguments: Option<String>,
}

impl ParsedInput {
    /// The input.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Takes the input, for a surface that finds the actual input inside of it.
    #[must_use]
    pub fn into_value(self) -> Value {
        Arc::unwrap_or_clone(self.value)
    }

    fn new(value: impl Into<Arc<Value>>, arguments: Option<String>) -> Self {
        Self { value: value.into(), aside: Map::new(), arguments }
    }

    /// Sets separate context.
    pub(crate) fn with_context(self, context: &Map<String, Value>) -> Self {
        Self { aside: context.clone(), ..self }
    }

    /// The context that came with the input.
    pub(crate) fn context(&self) -> Option<&Map<String, Value>> {
        let own = || self.value.get(MEMBER).and_then(Value::as_object);
        if self.aside.is_empty() { own() } else { Some(&self.aside) }
    }
}

/// Input that the module's contract accepts, and its context. Only [`validate`] creates one.
#[derive(Debug, Clone)]
pub struct ValidInput {
    prepared: PreparedInput,
    arguments: Option<String>,
    /// Computed once: hashing an input with media is slow.
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

    /// The audit data of the context; `None` if there is none.
    #[must_use]
    pub fn access(&self) -> Option<Access> {
        self.prepared.access()
    }

    /// Notices for `meta.warnings`.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.prepared.warnings
    }

    /// The hash of the input without context, independent of the order of its members. It covers the input as sent,
    /// even after its media were taken out. (MEDIA-023)
    #[must_use]
    pub fn sha256(&self) -> String {
        self.sha256.get_or_init(|| canonical_sha256(self.value())).clone()
    }

    /// Merges the context that the called modules have changed. (CTX-050)
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

    /// Sets missing members to the default of the input schema. The hash still covers the input as sent.
    fn fill_in(&mut self, module: &Module) {
        if module.contract.is_incomplete(self.value()) {
            let _ = self.sha256();
            module.contract.fill_in(self.prepared.input_mut());
        }
    }

    /// The input object without context, for a part that gets the same one.
    pub(crate) fn shared_input(&self) -> &Arc<Value> {
        self.prepared.shared_input()
    }

    /// The input object, if it has other holders. As long as the result lives, this run changes only copies of it.
    pub(crate) fn if_shared(&self) -> Option<Arc<Value>> {
        let shared = self.prepared.shared_input();
        (Arc::strong_count(shared) > 1).then(|| Arc::clone(shared))
    }

    /// Takes the base64 text out of media items and leaves a note in each place. A shared input is not changed: this
    /// run gets a copy without the texts, so that they are not copied.
    pub(crate) fn take_media(&mut self, notes: &[MediaPlaceNote]) -> Vec<Option<String>> {
        if notes.is_empty() {
            return Vec::new();
        }
        let _ = self.sha256();
        let Some(input) = self.prepared.exclusive_input() else {
            let places: Vec<(Vec<String>, &str)> =
                notes.iter().map(|(place, note)| (tokens(place), note.as_str())).collect();
            let places: Vec<TokenNote<'_>> =
                places.iter().map(|(tokens, note)| (tokens.as_slice(), *note)).collect();
            let copy = copied_with(self.value(), &places);
            self.prepared.replace_input(copy);
            return vec![None; notes.len()];
        };
        let mut take = |(place, note): &MediaPlaceNote| match input.pointer_mut(&format!("{place}/data"))? {
            Value::String(data) => Some(std::mem::replace(data, note.clone())),
            _ => None,
        };
        notes.iter().map(&mut take).collect()
    }

    /// Removes secrets that only the media source may read from media items. The hash still covers the input as sent.
    pub(crate) fn hide_secrets(&mut self) {
        if media::holds_secrets(self.value()) {
            let _ = self.sha256();
            media::hide_secrets(self.prepared.input_mut());
        }
    }

    /// The text that the caller sent instead of an object.
    pub(crate) fn input_text(&self) -> Option<&str> {
        self.arguments.as_deref()
    }

    /// The user's text for `$ARGUMENTS`: sent as text, or taken from the members `$ARGUMENTS` or `query`.
    #[must_use]
    pub fn arguments(&self) -> Option<&str> {
        let member = |name: &str| self.value().get(name).and_then(Value::as_str);
        self.arguments.as_deref().or_else(|| member("$ARGUMENTS")).or_else(|| member("query"))
    }
}

/// The place of a media item, and the note that replaces its bytes.
pub(crate) type MediaPlaceNote = (String, String);

/// The path to a text as member names, and the note that replaces it.
type TokenNote<'n> = (&'n [String], &'n str);

/// Returns the path to the bytes of a media item.
fn tokens(place: &str) -> Vec<String> {
    let names = place.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~"));
    names.chain(["data".to_owned()]).collect()
}

/// Copies a value with notes instead of some texts, which are never copied.
fn copied_with(value: &Value, notes: &[TokenNote<'_>]) -> Value {
    if notes.is_empty() {
        return value.clone();
    }
    match value {
        Value::Object(members) => {
            let copies = members
                .iter()
                .map(|(name, value)| (name.clone(), copied_with(value, &notes_below(notes, name))));
            Value::Object(copies.collect())
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.map(|(index, item)| copied_with(item, &notes_below(notes, &index.to_string()))).collect()
        }
        other => match notes.iter().find(|(tokens, _)| tokens.is_empty()) {
            Some((_, note)) => Value::from(*note),
            None => other.clone(),
        },
    }
}

/// Returns the notes below a member.
fn notes_below<'n>(notes: &[TokenNote<'n>], name: &str) -> Vec<TokenNote<'n>> {
    let split = notes.iter().filter_map(|(tokens, note)| Some((tokens.split_first()?, *note)));
    split.filter(|((first, _), _)| *first == name).map(|((_, rest), note)| (rest, note)).collect()
}

/// Accepts the input of a run, with stored context. Also returns the context for the module's parts: the context of
/// the input and the stored context.
pub(crate) fn accept(
    run: &mut Run<'_, '_>,
    given: RunInput,
) -> Result<(ValidInput, Map<String, Value>), Failure> {
    let given = read(given)?.with_context(&run.lineage.context);
    let (recalled, warnings) = run.context.recall(run.module, &given);
    run.warnings.extend(warnings);
    let context = if run.module.is_standalone() { Map::new() } else { parts_context(&given, &recalled) };
    let enforcement = run.plan.settings.enforcement();
    let input = validate(run.module, given, &recalled, enforcement, &run.host.sanitiser)?;
    run.receipt.sha256.input = run.receipt.hash(|| input.sha256());
    run.warnings.extend_from_slice(input.warnings());
    Ok((input, context))
}

/// The context for the parts of a module: that of its input, and the stored context.
pub(crate) fn parts_context(given: &ParsedInput, recalled: &Map<String, Value>) -> Map<String, Value> {
    let own = given.context().into_iter().flatten();
    own.chain(recalled).map(|(kind, value)| (kind.clone(), value.clone())).collect()
}

/// Parses the caller's input.
pub fn read(input: RunInput) -> Result<ParsedInput, Failure> {
    Ok(match input {
        // Free text matches no schema by design; it becomes an object with the two customary names.
        RunInput::Text(text) => ParsedInput::new(json!({ "$ARGUMENTS": text, "query": text }), Some(text)),
        RunInput::Json(value) => ParsedInput::new(value, None),
        RunInput::Shared(value) => ParsedInput::new(value, None),
        RunInput::Raw(text) => ParsedInput::new(parse(text)?, None),
        RunInput::Unreadable(failure) => return Err(failure),
    })
}

/// Accepts or refuses an input. `recalled` is stored context of types that are missing from it. If it does not match
/// the schema any more, it is ignored: the caller is not responsible for it.
pub fn validate(
    module: &Module,
    given: ParsedInput,
    recalled: &Map<String, Value>,
    enforcement: Enforcement,
    sanitiser: &Sanitiser,
) -> Result<ValidInput, Failure> {
    let ParsedInput { value, aside, arguments } = given;
    let is_text = arguments.is_some();
    let given = if aside.is_empty() {
        GivenInput::split(module, value, is_text)?
    } else {
        GivenInput { input: value, context: aside, is_text }
    };
    let judge = |given: GivenInput| prepare_given(module, given, sanitiser, enforcement);
    let prepared = if recalled.is_empty() {
        judge(given)?
    } else {
        let mut whole = given.clone();
        whole.context.extend(recalled.iter().map(|(kind, value)| (kind.clone(), value.clone())));
        match judge(whole) {
            Ok(prepared) => {
                // Otherwise the input would count as shared.
                drop(given);
                prepared
            }
            Err(_) => {
                let mut prepared = judge(given)?;
                prepared.warnings.push(unfit(recalled));
                prepared
            }
        }
    };
    let mut input = ValidInput { prepared, arguments, sha256: OnceLock::new() };
    input.fill_in(module);
    Ok(input)
}

fn unfit(recalled: &Map<String, Value>) -> Warning {
    let kinds: Vec<String> = recalled.keys().map(|kind| format!("`{kind}`")).collect();
    let message = format!("stored context does not match the module and was left out: {}", kinds.join(", "));
    Warning::new(NOTICE, message)
}

fn parse(mut text: String) -> Result<Value, Failure> {
    let marks = text.len() - text.trim_start_matches('\u{feff}').len();
    text.drain(..marks);
    memory_estimate::estimate_within(text.as_bytes(), memory_estimate::MAX_COUNT)?;
    // A number that no type can hold makes the parser fail, so numbers are checked first; the order of the codes
    // stays.
    let inexact = numbers::refusal(&text);
    let overflows = || numbers::rounded_numbers(&text).iter().any(|number| number.overflows);
    if let Some(failure) = inexact
        && (overflows() || json::parse(&text).is_ok())
    {
        return Err(failure);
    }
    large_json::parse(&mut text).map_or_else(|| json::parse(&text), Ok).map_err(|error| {
        let (line, column) = error.position(&text);
        let message = format!("the input is not JSON: {} (line {line}, column {column})", error.message);
        Failure::new(ErrorCode::ParseError, message)
            .with_blame(Blame::Caller)
            .with_detail("source", json!("caller"))
            .with_detail("line", json!(line))
            .with_detail("column", json!(column))
            .suggest("Pass an object such as `--input '{\"text\": \"…\"}'`, or free text with `--args`")
            .suggest_remotely("Send a JSON object such as `{\"text\": \"…\"}`")
    })
}
