//! Parses arbitrary bytes as an answer, cut into arbitrary pieces: the result must not depend on the cuts. For the
//! fuzzer and for tests that replay its findings; not part of release builds.

use std::sync::LazyLock;

use cognitive_contract::ports::{Attempt, CallSink, ModelCall};
use cognitive_ports::openai_api::OpenAiApi;
use hyper::header::HeaderValue;

use super::*;
use crate::config::{ProviderConfig, remote};
use crate::kind::Kind;
use crate::secret::Secret;

/// Collects the text.
#[derive(Default)]
struct TextCollector(String);

impl CallSink for TextCollector {
    fn piece(&mut self, text: &str) {
        self.0.push_str(text);
    }

    fn attempt(&mut self, _: Attempt) {}
}

/// The result of an answer: its text, its end, and the parse error.
#[derive(Debug, PartialEq)]
struct FuzzReply {
    text: String,
    end: Option<ModelEnd>,
    fault: Option<String>,
}

/// The name of OpenAI's other API.
const RESPONSES: &str = "responses";

/// The services, created once because each loads the system's root certificates.
static SERVICES: LazyLock<Vec<(&str, Remote)>> = LazyLock::new(|| {
    let key = || Secret::new("a-key-of-nobody");
    let make = |name: &'static str| {
        let config = ProviderConfig::new(Kind::parse(name)?).with_model("m");
        Some((name, remote(&config.with_key(key())).ok()?))
    };
    let responses = ProviderConfig::new(Kind::OpenAi).with_api(OpenAiApi::Responses).with_key(key());
    let responses = remote(&responses).ok().map(|remote| (RESPONSES, remote));
    let named = ["openai", "anthropic", "gemini", "openrouter", "ollama"].into_iter().filter_map(make);
    named.chain(responses).collect()
});

/// Checks arbitrary server-sent events, for each service that sends them. The first byte selects the service and the
/// piece size.
pub fn events(data: &[u8]) {
    let kinds = ["openai", "anthropic", "gemini", "openrouter"];
    check(data, &kinds, "text/event-stream");
}

/// Checks JSON lines, and documents sent instead of a stream.
pub fn lines(data: &[u8]) {
    check(data, &["ollama"], "application/x-ndjson");
    check(data, &["openai", "anthropic", "gemini", "ollama"], "application/json");
}

fn check(data: &[u8], kinds: &[&str], content_type: &'static str) {
    let Some((choice, body)) = data.split_first() else { return };
    let choice = usize::from(*choice);
    // The upper half selects the API that came later, so that older seeds keep their meaning.
    let (kind, size) = match choice.checked_sub(128) {
        Some(size) => (Some(&RESPONSES), size + 1),
        None => (kinds.get(choice % kinds.len()), choice / kinds.len() + 1),
    };
    let Some((_, remote)) = SERVICES.iter().find(|(name, _)| Some(name) == kind) else { return };
    let whole = read(remote, content_type, [body].into_iter());
    assert_eq!(whole, read(remote, content_type, body.chunks(size)), "in pieces of {size}");
}

/// Reads a body in pieces, like [`Remote::read`].
fn read<'b>(
    remote: &Remote,
    content_type: &'static str,
    pieces: impl Iterator<Item = &'b [u8]>,
) -> FuzzReply {
    let call = ModelCall::new("i".to_owned(), String::new(), 0.0);
    let reporter = Reporter { name: remote.name, redactor: &remote.redactor, call: Some(&call) };
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    let mut heard = TextCollector::default();
    let mut feed = Feed::new(&mut heard, None, Echo::new(remote.redactor.key()));
    let mut reading = Reading::default();
    let outcome = (|| -> Result<(), Fault> {
        let unreadable = |why| unreadable(why, reporter);
        let mut frames = remote.frames(&headers, MAX_BODY_LENGTH).map_err(unreadable)?;
        for mut piece in pieces {
            while let Some(frame) = frames.next(&mut piece).map_err(unreadable)? {
                remote.frame(&frame, &mut reading, &mut feed, reporter)?;
                if reading.closed {
                    return Ok(());
                }
            }
        }
        reading.is_document = frames.is_document();
        frames.last().map_or(Ok(()), |frame| remote.frame(&frame, &mut reading, &mut feed, reporter))
    })();
    feed.end_text();
    reading.settle_halves();
    let fault = outcome.err().map(|fault| fault.error.to_string());
    let end = fault.is_none().then(|| remote.end(&reading, Bind::Prompt));
    FuzzReply { text: heard.0, end, fault }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the check on the seeds of a target.
    fn replay(target: &str, check: fn(&[u8])) {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
        let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
        assert!(files.len() >= 10, "{}", folder.display());
        assert_eq!(SERVICES.len(), 6);
        for file in files {
            check(&std::fs::read(file).unwrap());
        }
    }

    #[test]
    fn the_seeds_of_events_says_the_same_in_any_pieces() {
        replay("events", events);
    }

    #[test]
    fn the_seeds_of_lines_says_the_same_in_any_pieces() {
        replay("lines", lines);
    }
}
