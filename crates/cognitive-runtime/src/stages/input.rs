//! Stage 1: is the input fit to be sent to a model, and which context goes with it? (E1000, E1001)
//! Judges what the caller sent as it was sent; then members that are missing get the default of the input schema, which
//! the hash of the input does not know. Changes nothing else, and asks no model before it is sure.

use std::sync::{Arc, OnceLock};

use cognitive_contract::code::Blame;
use cognitive_contract::context::{Access, GivenInput, MEMBER, Prepared, Sanitiser, prepare_given};
use cognitive_contract::json;
use cognitive_contract::{
    Enforcement, ErrorCode, Failure, Module, Warning, built, large_json, media, numbers,
};
use serde_json::{Map, Value, json};

use crate::host::RunInput;
use crate::receipt::canonical_sha256;
use crate::run::Run;
use crate::run_context::NOTICE;

/// What the caller sent, as JSON that was not judged yet. Only [`read`] makes one.
#[derive(Debug, Clone)]
pub struct ParsedInput {
    value: Arc<Value>,
    /// Context that the value has no place for.
    aside: Map<String, Value>,
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
        Arc::unwrap_or_clone(self.value)
    }

    fn new(value: impl Into<Arc<Value>>, arguments: Option<String>) -> Self {
        Self { value: value.into(), aside: Map::new(), arguments }
    }

    /// The same with context beside it.
    pub(crate) fn with_context(self, context: &Map<String, Value>) -> Self {
        Self { aside: context.clone(), ..self }
    }

    /// The context that came with it.
    pub(crate) fn context(&self) -> Option<&Map<String, Value>> {
        let own = || self.value.get(MEMBER).and_then(Value::as_object);
        if self.aside.is_empty() { own() } else { Some(&self.aside) }
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

    /// The input object without context, for a part that gets the same one.
    pub(crate) fn shared(&self) -> &Arc<Value> {
        self.prepared.shared_input()
    }

    /// Takes the base64 text out of media items and leaves a note in the place of each. An input that other runs have too
    /// stays as it is: this run gets one of its own, and the texts are left out of it instead of copied.
    pub(crate) fn take_media(&mut self, notes: &[MediaPlaceNote]) -> Vec<Option<String>> {
        if notes.is_empty() {
            return Vec::new();
        }
        let _ = self.sha256();
        let Some(input) = self.prepared.unshared_input() else {
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

/// The place of a media item, and what is to stand there instead of its bytes.
pub(crate) type MediaPlaceNote = (String, String);

/// The way to a text, name by name, and what is to stand there.
type TokenNote<'n> = (&'n [String], &'n str);

/// The names on the way to the bytes of a media item.
fn tokens(place: &str) -> Vec<String> {
    let names = place.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~"));
    names.chain(["data".to_owned()]).collect()
}

/// A copy of a value with notes in place of some texts, which are never copied.
fn copied_with(value: &Value, notes: &[TokenNote<'_>]) -> Value {
    if notes.is_empty() {
        return value.clone();
    }
    match value {
        Value::Object(members) => {
            let copies =
                members.iter().map(|(name, value)| (name.clone(), copied_with(value, &below(notes, name))));
            Value::Object(copies.collect())
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.map(|(index, item)| copied_with(item, &below(notes, &index.to_string()))).collect()
        }
        other => match notes.iter().find(|(tokens, _)| tokens.is_empty()) {
            Some((_, note)) => Value::from(*note),
            None => other.clone(),
        },
    }
}

/// The notes that are below a member.
fn below<'n>(notes: &[TokenNote<'n>], name: &str) -> Vec<TokenNote<'n>> {
    let split = notes.iter().filter_map(|(tokens, note)| Some((tokens.split_first()?, *note)));
    split.filter(|((first, _), _)| *first == name).map(|((_, rest), note)| (rest, note)).collect()
}

/// Takes the input of a run, with the context of earlier ones. Also gives the context that the module's parts may be given:
/// what came with the input, and what was recalled.
pub(crate) fn accept(
    run: &mut Run<'_, '_>,
    given: RunInput,
) -> Result<(ValidInput, Map<String, Value>), Failure> {
    let given = read(given)?.with_context(&run.lineage.context);
    let (recalled, warnings) = run.context.recall(run.module, &given);
    run.warnings.extend(warnings);
    let context = if run.module.stands_alone() { Map::new() } else { given_to_parts(&given, &recalled) };
    let enforcement = run.plan.settings.enforced();
    let input = validate(run.module, given, &recalled, enforcement, &run.host.sanitiser)?;
    run.receipt.sha256.input = run.receipt.hash(|| input.sha256());
    run.warnings.extend_from_slice(input.warnings());
    Ok((input, context))
}

fn given_to_parts(given: &ParsedInput, recalled: &Map<String, Value>) -> Map<String, Value> {
    let own = given.context().into_iter().flatten();
    own.chain(recalled).map(|(kind, value)| (kind.clone(), value.clone())).collect()
}

/// Reads what the caller sent.
pub fn read(input: RunInput) -> Result<ParsedInput, Failure> {
    Ok(match input {
        // Free text fits no schema by design; it becomes an object with the two customary names.
        RunInput::Text(text) => ParsedInput::new(json!({ "$ARGUMENTS": text, "query": text }), Some(text)),
        RunInput::Json(value) => ParsedInput::new(value, None),
        RunInput::Shared(value) => ParsedInput::new(value, None),
        RunInput::Raw(text) => ParsedInput::new(parse(text)?, None),
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
                // The input would count as shared.
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
    let message = format!("stored context does not fit the module and was left out: {}", kinds.join(", "));
    Warning::new(NOTICE, message)
}

fn parse(mut text: String) -> Result<Value, Failure> {
    let marks = text.len() - text.trim_start_matches('\u{feff}').len();
    text.drain(..marks);
    built::within(text.as_bytes(), built::MAX_COUNT)?;
    // A number that nothing can hold makes the parser fail, so numbers are looked at first; the order of the codes stays.
    let inexact = numbers::refusal(&text);
    let overflows = || numbers::rounded(&text).iter().any(|number| number.overflows);
    if let Some(failure) = inexact
        && (overflows() || json::parse(&text).is_ok())
    {
        return Err(failure);
    }
    large_json::parse(&mut text).map_or_else(|| json::parse(&text), Ok).map_err(|error| {
        let (line, column) = error.position(&text);
        let message = format!("the input is not JSON: {} (line {line}, column {column})", error.message);
        Failure::new(ErrorCode::ParseError, message)
            .blaming(Blame::Caller)
            .with_detail("source", json!("caller"))
            .with_detail("line", json!(line))
            .with_detail("column", json!(column))
            .suggest("Pass an object such as `--input '{\"text\": \"…\"}'`, or free text with `--args`")
            .suggest_remotely("Send a JSON object such as `{\"text\": \"…\"}`")
    })
}
