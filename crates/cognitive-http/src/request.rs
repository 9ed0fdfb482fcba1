//! Parses a run request: the input, the wanted response, and the position to resume from (EXT-NEG, EXT-REC). Checks
//! nothing about modules: invalid JSON is passed on unchanged, so that the run itself reports the error.

use axum::http::{HeaderMap, HeaderName, header};
use cognitive_contract::capabilities::WantedAnswer;
use cognitive_contract::manifest::ChunkType;
use cognitive_contract::stream::Checkpoint;
use cognitive_contract::{ErrorCode, Failure, RunSettings, numbers};
use cognitive_ports::module_editor::ChangedFiles;
use cognitive_runtime::host::RunInput;
use cognitive_runtime::large_json;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::header_names;
use crate::transport::Framing;

/// A parsed run request.
#[derive(Debug)]
pub(crate) struct ParsedRunRequest {
    pub(crate) input: RunInput,
    pub(crate) wanted: Option<WantedAnswer>,
    pub(crate) framing: Framing,
    pub(crate) options: Options,
    pub(crate) left_off: Option<LeftOff>,
    /// True if the client understands trailers.
    pub(crate) trailers: bool,
}

/// The options that only this server has, besides those of [`RunSettings`].
const OWN_OPTIONS: [&str; 11] = [
    "response_mode",
    "chunk_type",
    "require_streaming",
    "resume_only",
    "ask_again",
    "session",
    "media_out",
    "model",
    "draft",
    "version",
    "record",
];

/// The options of a run.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "RequestOptions")]
#[expect(clippy::struct_excessive_bools, reason = "the flags are independent words of the request")]
pub(crate) struct Options {
    /// The options that every surface has.
    #[serde(flatten)]
    pub(crate) settings: RunSettings,
    #[schemars(extend("enum" = ["sync", "streaming"]))]
    response_mode: Option<String>,
    pub(crate) chunk_type: Option<ChunkType>,
    /// Refuse a sync response instead of a stream (CAP-013).
    pub(crate) require_streaming: bool,
    /// Refuse a new run if the stream cannot be resumed, since it would have to be paid for again.
    pub(crate) resume_only: bool,
    /// Start a new run if the server of a stream died before its end, instead of returning the part so far.
    pub(crate) ask_again: bool,
    /// The conversation of the stored context; visible to this client only.
    pub(crate) session: Option<String>,
    pub(crate) media_out: MediaOut,
    /// One of `GET /v1/models`, overriding the default model.
    pub(crate) model: Option<String>,
    /// Files that replace those of the module, for this run only.
    pub(crate) draft: Option<ChangedFiles>,
    /// One of `GET /v1/modules/{module}/versions`, overriding the installed one.
    pub(crate) version: Option<String>,
    /// Record the model's replies for a while, so that the answer can be saved as a test with them.
    pub(crate) record: bool,
    /// Everything else, which is refused.
    #[serde(flatten)]
    #[schemars(skip)]
    unknown: Map<String, Value>,
}

/// The form in which a client wants the media of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum MediaOut {
    /// As the module returned them.
    #[default]
    Base64,
    /// As temporary URLs (MEDIA-019).
    Url,
}

/// The length limit of a conversation name, in bytes. The name is a part of every stored key.
const MAX_SESSION_LENGTH: usize = 128;

impl Options {
    /// Returns whether the run uses other files than the installed ones.
    pub(crate) fn replaces_files(&self) -> bool {
        self.draft.is_some() || self.version.is_some()
    }

    /// Returns the options of the run, unless the request has one that does not exist.
    pub(crate) fn settings(&self) -> Result<RunSettings, Failure> {
        RunSettings::refuse_unknown(&self.unknown, &OWN_OPTIONS).map(|()| self.settings)
    }

    /// Returns the name of the conversation, or a failure if it is invalid.
    pub(crate) fn session(&self) -> Result<Option<String>, Failure> {
        let Some(session) = self.session.as_ref().filter(|session| !session.is_empty()) else {
            return Ok(None);
        };
        if session.len() > MAX_SESSION_LENGTH || session.chars().any(char::is_control) {
            let what = format!("`session` must be a string of at most {MAX_SESSION_LENGTH} bytes");
            return Err(
                Failure::new(ErrorCode::InvalidInput, what).suggest("Give each conversation a short name")
            );
        }
        Ok(Some(session.clone()))
    }
}

/// The stream that a client lost, and the position it reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeftOff {
    pub(crate) session: String,
    pub(crate) place: Place,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// The number of events of all kinds (`Last-Event-ID`).
    Events(usize),
    /// Numbered chunks up to this one, and the checkpoint of the last field.
    Chunks(u64, Option<Checkpoint>),
}

/// The query parameters.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Query {
    response_mode: Option<String>,
}

/// The content of a body, as far as the route has parsed it.
#[derive(Debug)]
pub(crate) enum Content {
    /// The whole body.
    Whole(RunInput),
    /// The members besides `module` of a body that names one.
    Members(Map<String, Value>),
    /// Free text in place of an input, which no schema validates (PROMPT-006), and the other members.
    Args(String, Map<String, Value>),
}

impl Content {
    /// Parses a body that contains only an input and its options. Invalid JSON is left as text, like a body whose
    /// numbers would lose precision.
    pub(crate) fn parse(mut text: String) -> Self {
        let exact = numbers::rounded_numbers(&text).is_empty();
        let parsed = exact
            .then(|| large_json::parse(&mut text).or_else(|| serde_json::from_str(&text).ok()))
            .flatten();
        Self::Whole(parsed.map_or_else(|| RunInput::Raw(text), RunInput::Json))
    }
}

/// Parses a request. `takes_input` is true if the module's own input has a member called `input`.
pub(crate) fn read(
    headers: &HeaderMap,
    query: &Query,
    body: Content,
    takes_input: bool,
) -> Result<ParsedRunRequest, Failure> {
    let (input, mut options, recovery) = match body {
        Content::Whole(RunInput::Json(Value::Object(members))) | Content::Members(members) => {
            unwrap(members, takes_input)?
        }
        Content::Whole(other) => (other, Options::default(), None),
        Content::Args(text, members) => {
            let (_, options, left_off) = unwrap(members, takes_input)?;
            (RunInput::Text(text), options, left_off)
        }
    };
    let (accepted, framing) = accept(headers);
    let word = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let by_words = [
        word(&header_names::RESPONSE_MODE),
        options.response_mode.as_deref(),
        query.response_mode.as_deref(),
    ];
    let wanted = match by_words.into_iter().flatten().next() {
        Some("sync") => Some(WantedAnswer::Sync),
        Some("streaming") => Some(WantedAnswer::Streaming),
        Some(other) => return Err(unknown_mode(other)),
        None => accepted,
    };
    let left_off = by_headers(headers).or(recovery);
    // As for the mode, a header takes precedence over the body.
    options.session = word(&header_names::SESSION).map(str::to_owned).or(options.session);
    let trailers = word(&header::TE).is_some_and(|te| te.contains("trailers"));
    Ok(ParsedRunRequest { input, wanted, framing, options, left_off, trailers })
}

/// The input, the options and the resume position of a body.
type RequestParts = (RunInput, Options, Option<LeftOff>);
/// Removes the `{input, _options}` wrapper of a body that has one.
fn unwrap(mut members: Map<String, Value>, takes_input: bool) -> Result<RequestParts, Failure> {
    let others = || members.keys().filter(|name| *name != "input");
    let extras_only = others().all(|name| matches!(name.as_str(), "_options" | "_recovery" | "_context"));
    let wrapped = members.get("input").is_some_and(Value::is_object)
        && extras_only
        && (others().next().is_some() || !takes_input);
    let options = take(&mut members, "_options")?.unwrap_or_default();
    let recovery: Option<RecoveryBody> = take(&mut members, "_recovery")?;
    let left_off = recovery.map(|body| LeftOff {
        session: body.session_id,
        place: Place::Chunks(body.last_seq, body.last_checkpoint),
    });
    if !wrapped {
        return Ok((RunInput::Json(Value::Object(members)), options, left_off));
    }
    let context = members.shift_remove("_context");
    let mut input = members.shift_remove("input").unwrap_or_default();
    if let (Some(context), Value::Object(inner)) = (context, &mut input) {
        inner.entry("_context").or_insert(context);
    }
    Ok((RunInput::Json(input), options, left_off))
}

#[derive(Debug, Deserialize)]
struct RecoveryBody {
    session_id: String,
    last_seq: u64,
    #[serde(default)]
    last_checkpoint: Option<Checkpoint>,
}

fn take<T: serde::de::DeserializeOwned>(
    members: &mut Map<String, Value>,
    name: &str,
) -> Result<Option<T>, Failure> {
    let Some(value) = members.shift_remove(name) else { return Ok(None) };
    serde_json::from_value(value).map(Some).map_err(|error| {
        Failure::new(ErrorCode::InvalidInput, format!("invalid `{name}`: {error}"))
            .suggest("See the schema of the request in `/openapi.json`")
    })
}

fn unknown_mode(word: &str) -> Failure {
    let word = cognitive_contract::text::cut(word, 40);
    Failure::new(ErrorCode::InvalidInput, format!("unknown response mode: `{word}`"))
        .suggest("Use `sync` or `streaming`")
}

/// Parses `Accept` (API-005). A stream has to be named, and preferred to an envelope by its quality (D-14); a
/// wildcard never selects a stream. If both are named with equal quality, the envelope wins. A name takes precedence
/// over a wildcard.
fn accept(headers: &HeaderMap) -> (Option<WantedAnswer>, Framing) {
    let mut streams: Option<(f32, Framing)> = None;
    let mut envelope = [None; 3];
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    for part in values.flat_map(|value| value.split(',')) {
        let mut words = part.split(';').map(str::trim);
        let media = words.next().unwrap_or_default().to_ascii_lowercase();
        let quality = quality(words);
        let framing = match media.as_str() {
            "text/event-stream" => Framing::Events,
            "application/x-ndjson" => Framing::Lines,
            other => {
                let names = ["application/json", "application/*", "*/*"];
                let place = names.iter().position(|name| *name == other);
                if let Some(slot) = place.and_then(|place| envelope.get_mut(place)) {
                    *slot = Some(quality);
                }
                continue;
            }
        };
        // The stream format with the higher quality wins; the first one if both are equal.
        if quality > streams.map_or(0.0, |(best, _)| best) {
            streams = Some((quality, framing));
        }
    }
    // The most specific name determines the quality of an envelope.
    let [named, ..] = envelope;
    let welcome = envelope.into_iter().flatten().next().unwrap_or(0.0);
    match streams {
        Some((quality, framing)) if quality > welcome || (quality >= welcome && named.is_none()) => {
            (Some(WantedAnswer::Streaming), framing)
        }
        _ => (named.filter(|quality| *quality > 0.0).map(|_| WantedAnswer::Sync), Framing::Events),
    }
}

/// Returns the quality of a media range, from 0 to 1. An invalid one counts as 0.
fn quality<'a>(mut parameters: impl Iterator<Item = &'a str>) -> f32 {
    let weight = parameters.find_map(|word| word.strip_prefix("q=").or_else(|| word.strip_prefix("Q=")));
    let Some(weight) = weight else { return 1.0 };
    weight.trim().parse().ok().filter(|weight| (0.0..=1.0).contains(weight)).unwrap_or(0.0)
}

/// Returns the resume position in the headers. An invalid number becomes an unknown position, so that the stream
/// starts again. It must not start a second run.
pub(crate) fn by_headers(headers: &HeaderMap) -> Option<LeftOff> {
    let word = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(session) = word(&header_names::RECOVERY_SESSION) {
        let seq = word(&header_names::RECOVERY_SEQ).and_then(|seq| seq.parse().ok());
        return Some(LeftOff {
            session: session.to_owned(),
            place: Place::Chunks(seq.unwrap_or(u64::MAX), None),
        });
    }
    // An empty id means that the client has none.
    let last = word(&header_names::LAST_EVENT_ID).filter(|id| !id.is_empty())?;
    let (session, place) = last.rsplit_once(':').unwrap_or((last, ""));
    Some(LeftOff { session: session.to_owned(), place: Place::Events(place.parse().unwrap_or(usize::MAX)) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ask(headers: &[(&'static str, &str)], body: &Value, takes_input: bool) -> ParsedRunRequest {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        read(&map, &Query::default(), bytes(&body.to_string()), takes_input).unwrap()
    }

    fn bytes(body: &str) -> Content {
        Content::parse(body.to_owned())
    }

    fn input(ask: &ParsedRunRequest) -> &Value {
        match &ask.input {
            RunInput::Json(value) => value,
            other => panic!("{other:?}"),
        }
    }

    // EXT-NEG: header, then body, then query, then Accept.
    #[test]
    fn ext_neg_the_first_way_of_asking_wins() {
        let body = json!({ "input": {}, "_options": { "response_mode": "sync" } });
        let header = [("x-cognitive-response-mode", "streaming"), ("accept", "application/json")];
        assert_eq!(ask(&header, &body, true).wanted, Some(WantedAnswer::Streaming));
        assert_eq!(ask(&[("accept", "text/event-stream")], &body, true).wanted, Some(WantedAnswer::Sync));
        let plain = json!({});
        assert_eq!(ask(&[("accept", "application/x-ndjson")], &plain, true).framing, Framing::Lines);
        let query = Query { response_mode: Some("sync".to_owned()) };
        let mut headers = HeaderMap::new();
        headers.insert("accept", "text/event-stream".parse().unwrap());
        let ask_by_query = read(&headers, &query, bytes("{}"), true).unwrap();
        assert_eq!(ask_by_query.wanted, Some(WantedAnswer::Sync));
        let query = Query { response_mode: Some("fast".to_owned()) };
        assert!(read(&HeaderMap::new(), &query, bytes("{}"), true).is_err());
    }

    #[test]
    fn api_005_accept_chooses_between_three_answers() {
        let wanted = |accept: &str| ask(&[("accept", accept)], &json!({}), true).wanted;
        assert_eq!(wanted("text/event-stream"), Some(WantedAnswer::Streaming));
        assert_eq!(wanted("text/html, application/x-ndjson;q=0.5"), Some(WantedAnswer::Streaming));
        assert_eq!(wanted("application/json"), Some(WantedAnswer::Sync));
        assert_eq!(wanted("text/event-stream;q=0, */*"), None);
        assert_eq!(wanted("*/*"), None);
    }

    // D-14, API-005, STREAM-021: the quality decides, and a wildcard never selects a stream.
    #[test]
    fn a_stream_is_what_accept_prefers_by_its_quality() {
        let sync = (Some(WantedAnswer::Sync), Framing::Events);
        let (events, lines) = (
            (Some(WantedAnswer::Streaming), Framing::Events),
            (Some(WantedAnswer::Streaming), Framing::Lines),
        );
        let silent = (None, Framing::Events);
        for (value, expected) in [
            ("text/event-stream", events),
            ("TEXT/Event-Stream; Q=1", events),
            ("application/x-ndjson", lines),
            ("text/event-stream, application/json;q=0.9", events),
            ("application/json;q=0.9, text/event-stream", events),
            ("application/json, text/event-stream;q=0.9", sync),
            ("text/event-stream;q=0.5, application/json", sync),
            ("text/event-stream;q=0.5, */*", silent),
            ("text/event-stream;q=0.2, application/*;q=0.3", silent),
            ("text/event-stream, */*;q=0.1", events),
            ("text/event-stream, */*", events),
            ("application/json, text/event-stream", sync),
            ("text/event-stream, application/json", sync),
            ("application/json;q=0.1, */*, text/event-stream;q=0.5", events),
            ("text/event-stream;q=0.4, application/x-ndjson;q=0.6", lines),
            ("application/x-ndjson, text/event-stream", lines),
            ("text/event-stream;q=0", silent),
            ("text/event-stream;q=best", silent),
            ("text/event-stream;q=7, application/json;q=0", silent),
            ("application/*", silent),
            ("text/*", silent),
            ("*/*", silent),
            ("", silent),
        ] {
            let asked = ask(&[("accept", value)], &json!({}), true);
            assert_eq!((asked.wanted, asked.framing), expected, "{value}");
        }
    }

    #[test]
    fn ext_neg_a_wrapper_is_told_from_an_input() {
        let wrapped = json!({ "input": { "a": 1 }, "_options": {} });
        assert_eq!(input(&ask(&[], &wrapped, true)), &json!({ "a": 1 }));
        let bare = json!({ "input": { "a": 1 } });
        assert_eq!(input(&ask(&[], &bare, true)), &bare, "the module has an input called `input`");
        assert_eq!(input(&ask(&[], &bare, false)), &json!({ "a": 1 }));
        let more = json!({ "input": { "a": 1 }, "b": 2 });
        assert_eq!(input(&ask(&[], &more, false)), &more);
        let context = json!({ "input": { "a": 1 }, "_context": { "c": 1 } });
        assert_eq!(input(&ask(&[], &context, true)), &json!({ "a": 1, "_context": { "c": 1 } }));
        let bare = json!({ "a": 1, "_options": { "receipt": true } });
        let asked = ask(&[], &bare, true);
        assert_eq!(input(&asked), &json!({ "a": 1 }));
        assert!(asked.options.settings.wants_receipt());
    }

    #[test]
    fn ext_rec_a_client_says_in_three_ways_where_it_left_off() {
        let events = ask(&[("last-event-id", "sess_a:7")], &json!({}), true).left_off.unwrap();
        assert_eq!(events, LeftOff { session: "sess_a".to_owned(), place: Place::Events(7) });
        let headers = [("x-cognitive-recovery-session", "sess_a"), ("x-cognitive-recovery-seq", "3")];
        assert_eq!(ask(&headers, &json!({}), true).left_off.unwrap().place, Place::Chunks(3, None));
        let body = json!({ "_recovery": { "session_id": "sess_b", "last_seq": 2, "last_checkpoint": { "offset": 4, "hash": "abcdef" } } });
        let left_off = ask(&[], &body, true).left_off.unwrap();
        let checkpoint = Checkpoint { offset: 4, hash: "abcdef".to_owned() };
        assert_eq!(left_off.place, Place::Chunks(2, Some(checkpoint)));
        for odd in ["nonsense", "sess_a:-1", "sess_a:99999999999999999999999", "sess_a:", ":"] {
            let left_off = ask(&[("last-event-id", odd)], &json!({}), true).left_off.unwrap();
            assert_eq!(left_off.place, Place::Events(usize::MAX), "{odd}: a place that never was");
        }
        assert_eq!(ask(&[("last-event-id", "")], &json!({}), true).left_off, None);
        let without = ask(&[("x-cognitive-recovery-session", "sess_a")], &json!({}), true).left_off.unwrap();
        assert_eq!(without.place, Place::Chunks(u64::MAX, None));
    }

    #[test]
    fn what_is_no_json_is_left_to_the_run() {
        let asked = read(&HeaderMap::new(), &Query::default(), bytes("{nope"), true).unwrap();
        assert!(matches!(asked.input, RunInput::Raw(_)));
        for odd in [r#"{"_options": {"seed": "x"}}"#, r#"{"_options": {"media_out": "folder"}}"#] {
            assert!(read(&HeaderMap::new(), &Query::default(), bytes(odd), true).is_err(), "{odd}");
        }
    }
}
