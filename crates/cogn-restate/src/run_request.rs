//! Parses requests: the input of a module, and `_options` next to it. Decides nothing about modules: invalid
//! JSON is passed on unchanged, and the run reports the error.

use cogn::ModuleRun;
use cognitive_contract::{ErrorCode, Failure, RunSettings, numbers};
use cognitive_runtime::RunOptions;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The member of a body that contains the run options.
const OPTIONS: &str = "_options";

/// The run options of a caller.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct DurableRunOptions {
    /// The options that every surface has.
    #[serde(flatten)]
    settings: RunSettings,
    review: ReviewWait,
    /// Everything else, which is refused.
    #[serde(flatten)]
    unknown: Map<String, Value>,
}

/// Selects when an answer that needs a review is returned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReviewWait {
    /// The review is queued, and the answer returned immediately.
    #[default]
    Queue,
    /// The answer is returned after the decision.
    Wait,
}

/// The input of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum GivenBody {
    /// Parsed JSON.
    Json(Value),
    /// Text that the run parses.
    Raw(String),
}

impl DurableRunOptions {
    /// Returns whether the answer waits for a person.
    pub(crate) fn waits(&self) -> bool {
        self.review == ReviewWait::Wait
    }

    pub(crate) fn apply(&self, options: &mut RunOptions) {
        options.settings = self.settings.or(options.settings);
    }

    /// Refuses `wait` for a run without a key, because a decision needs one.
    pub(crate) fn refuse_waiting(&self) -> Result<(), Failure> {
        if self.waits() {
            let message = "this run cannot wait for a review: it has no key for the decision";
            let hint = "Call a composition or `cogn-run` by a key, or the service `cogn`";
            return Err(Failure::new(ErrorCode::InvalidInput, message).suggest(hint));
        }
        Ok(())
    }
}

impl GivenBody {
    pub(crate) fn give(self, run: ModuleRun) -> ModuleRun {
        match self {
            Self::Json(value) => run.input(value),
            Self::Raw(text) => run.raw_json(text),
        }
    }
}

/// Parses a body that is an input with `_options` among its members.
pub(crate) fn read(body: &[u8]) -> Result<(GivenBody, DurableRunOptions), Failure> {
    let text = String::from_utf8_lossy(body);
    if text.trim().is_empty() {
        return Ok((GivenBody::Json(Value::Object(Map::new())), DurableRunOptions::default()));
    }
    let names_options = text.contains("\"_options\"") && numbers::rounded_numbers(&text).is_empty();
    match names_options.then(|| serde_json::from_str(&text)) {
        Some(Ok(Value::Object(mut members))) => {
            let wishes = take_wishes(&mut members)?;
            Ok((GivenBody::Json(Value::Object(members)), wishes))
        }
        _ => Ok((GivenBody::Raw(text.into_owned()), DurableRunOptions::default())),
    }
}

/// A body that names a module: `{"module", "input", "_options"}`, with optional `key` and `session`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NamedBody {
    pub(crate) module: String,
    pub(crate) input: Value,
    pub(crate) options: Option<Value>,
    pub(crate) key: Option<String>,
    pub(crate) session: Option<String>,
}

impl NamedBody {
    pub(crate) fn read(body: &[u8]) -> Result<Self, Failure> {
        let refused = |what: String| {
            Failure::new(ErrorCode::InvalidInput, what)
                .suggest("Send {\"module\": \"text-classifier\", \"input\": {\"text\": \"…\"}}")
        };
        let text = String::from_utf8_lossy(body);
        if let Some(number) = numbers::rounded_numbers(&text).first() {
            return Err(refused(format!("a number loses precision: {number:?}")));
        }
        let Ok(Value::Object(mut members)) = serde_json::from_str::<Value>(&text) else {
            return Err(refused("the body must be a JSON object".to_owned()));
        };
        let mut word = |name: &str| match members.shift_remove(name) {
            Some(Value::String(word)) if !word.is_empty() => Ok(Some(word)),
            Some(Value::Null) | None => Ok(None),
            Some(_) => Err(refused(format!("`{name}` must be a string"))),
        };
        let (module, key, session) = (word("module")?, word("key")?, word("session")?);
        let module = module.ok_or_else(|| refused("the body has no `module`".to_owned()))?;
        let input = members.shift_remove("input").unwrap_or_else(|| Value::Object(Map::new()));
        let options = members.shift_remove(OPTIONS).filter(|options| !options.is_null());
        if let Some(name) = members.keys().next() {
            return Err(refused(format!("unknown name: `{name}`")));
        }
        Ok(Self { module, input, options, key, session })
    }

    /// Parses the run options.
    pub(crate) fn wishes(&self) -> Result<DurableRunOptions, Failure> {
        self.options.clone().map_or(Ok(DurableRunOptions::default()), parse_options)
    }

    /// Returns the body that the module's own service expects.
    pub(crate) fn input_with_options(&self) -> Value {
        match (self.input.clone(), self.options.clone()) {
            (Value::Object(mut members), Some(options)) => {
                members.insert(OPTIONS.to_owned(), options);
                Value::Object(members)
            }
            (input, _) => input,
        }
    }
}

fn take_wishes(members: &mut Map<String, Value>) -> Result<DurableRunOptions, Failure> {
    members.shift_remove(OPTIONS).map_or(Ok(DurableRunOptions::default()), parse_options)
}

fn parse_options(value: Value) -> Result<DurableRunOptions, Failure> {
    let wishes: DurableRunOptions = serde_json::from_value(value).map_err(|error| {
        Failure::new(ErrorCode::InvalidInput, format!("invalid `{OPTIONS}`: {error}"))
            .suggest(format!("The options are {} and review", RunSettings::NAMES.join(", ")))
    })?;
    RunSettings::refuse_unknown(&wishes.unknown, &["review"])?;
    Ok(wishes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn options_are_taken_out_and_everything_else_is_left_to_the_run() {
        let (given, wishes) = read(br#"{"text": "t", "_options": {"seed": 1, "review": "wait"}}"#).unwrap();
        assert_eq!(given, GivenBody::Json(json!({ "text": "t" })));
        assert!(wishes.settings.seed == Some(1) && wishes.waits() && wishes.refuse_waiting().is_err());
        for text in
            [r#"{"text": "t"}"#, "no JSON", "[1]", r#"{"n": 12345678901234567890123, "_options": {}}"#]
        {
            let (given, wishes) = read(text.as_bytes()).unwrap();
            assert_eq!((given, wishes), (GivenBody::Raw(text.to_owned()), DurableRunOptions::default()));
        }
        assert_eq!(read(b" ").unwrap().0, GivenBody::Json(json!({})));
        for wrong in
            [r#"{"_options": {"sed": 1}}"#, r#"{"_options": {"review": "later"}}"#, r#"{"_options": 1}"#]
        {
            assert_eq!(read(wrong.as_bytes()).unwrap_err().number(), "E1001", "{wrong}");
        }
    }

    #[test]
    fn a_body_that_names_its_module_is_read_strictly() {
        let body = br#"{"module": "m", "input": {"a": 1}, "key": "k", "_options": {"receipt": true}}"#;
        let named = NamedBody::read(body).unwrap();
        assert_eq!(
            (named.module.as_str(), named.key.as_deref(), named.session.as_deref()),
            ("m", Some("k"), None)
        );
        assert!(named.wishes().unwrap().settings.wants_receipt());
        assert_eq!(named.input_with_options(), json!({ "a": 1, "_options": { "receipt": true } }));
        for wrong in ["{}", "[]", r#"{"module": 1}"#, r#"{"module": "m", "inputs": {}}"#, "x"] {
            assert_eq!(NamedBody::read(wrong.as_bytes()).unwrap_err().number(), "E1001", "{wrong}");
        }
    }
}
