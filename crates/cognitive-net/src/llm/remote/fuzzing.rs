//! Parses arbitrary bytes as an answer, cut into arbitrary pieces: the result must not depend on the cuts. For the
//! fuzzer and for tests that replay its findings; not part of release builds.

use std::sync::LazyLock;

use cognitive_contract::ports::{Attempt, CallSink, ModelCall};
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

/// The services, created once because each loads the system's root certificates.
static SERVICES: LazyLock<Vec<(&str, Remote)>> = LazyLock::new(|| {
    let make = |name: &'static str| {
        let config = ProviderConfig::new(Kind::parse(name)?).with_model("m");
        Some((name, remote(&config.with_key(Secret::new("a-key-of-nobody"))).ok()?))
    };
    ["openai", "anthropic", "gemini", "openrouter", "ollama"].into_iter().filter_map(make).collect()
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
    let kind = kinds.get(usize::from(*choice) % kinds.len());
    let Some((_, remote)) = SERVICES.iter().find(|(name, _)| Some(name) == kind) else { return };
    let size = usize::from(*choice) / kinds.len() + 1;
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
        assert_eq!(SERVICES.len(), 5);
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
