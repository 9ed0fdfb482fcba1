//! `--reply` and `--reply-dialect`: a saved reply that replaces a model, and its dialect. One definition for every
//! command that takes a saved reply.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cognitive_contract::ports::Provider;
use cognitive_contract::recorded_reply::{self, RecordedReply, dialect_place, parse_dialect_file};
use cognitive_contract::{ErrorCode, Failure};
use cognitive_runtime::{Replay, Unavailable};
use cognitive_schema::SchemaTarget;
use cognitive_setup::RuntimeBuilder;

use super::input::read_text;
use super::provider::ProviderArgs;

/// The name of the provider that answers with a saved reply.
pub(crate) const REPLAY: &str = "replay";

/// Options for a saved reply, to be flattened into those of a command.
#[derive(Debug, Clone, clap::Args)]
pub struct ReplyArgs {
    /// File with a saved reply for `--provider replay`; `-` reads stdin
    #[arg(long, value_name = "FILE")]
    reply: Option<PathBuf>,
    /// Schema dialect that the reply was written under: openai, anthropic, gemini, ollama, grammar or none. By default the
    /// one recorded beside the file, else none
    #[arg(long, value_name = "NAME", requires = "reply", value_parser = reply_dialect)]
    reply_dialect: Option<ReplyDialect>,
}

/// A dialect from the command line, `none` included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ReplyDialect(Option<SchemaTarget>);

fn reply_dialect(name: &str) -> Result<ReplyDialect, String> {
    recorded_reply::dialect(name).map(ReplyDialect)
}

impl ReplyArgs {
    /// The file of the saved reply.
    pub fn path(&self) -> Option<&Path> {
        self.reply.as_deref()
    }

    /// Returns whether stdin is the saved reply.
    pub fn reads_stdin(&self) -> bool {
        self.path().is_some_and(|path| path.as_os_str() == "-")
    }

    /// Lets the saved reply answer, if there is one. A reply that cannot be read is reported by every run.
    pub fn answer(&self, builder: RuntimeBuilder, typed: &ProviderArgs) -> Result<RuntimeBuilder, Failure> {
        let Some(path) = self.path() else { return Ok(builder) };
        if let Some(other) = typed.provider.as_deref().filter(|name| *name != REPLAY) {
            let message = format!("`--reply` replaces the model, so it excludes `--provider {other}`");
            return Err(Failure::new(ErrorCode::InvalidInput, message).suggest("Remove one of the two"));
        }
        let provider: Arc<dyn Provider> = match self.recorded_reply(path) {
            Ok(reply) => Arc::new(Replay::from_recorded(reply)),
            Err(failure) => Arc::new(Unavailable::new(REPLAY, failure)),
        };
        Ok(builder.provider_name(REPLAY).shared_provider(provider))
    }

    fn recorded_reply(&self, path: &Path) -> Result<RecordedReply, Failure> {
        let text = read_text(Some(path))?;
        let dialect = match self.reply_dialect {
            Some(ReplyDialect(typed)) => typed,
            None => recorded_dialect(path)?,
        };
        Ok(RecordedReply::new(text, dialect))
    }
}

/// Returns the dialect that `cogn test --record` wrote beside a reply.
fn recorded_dialect(reply: &Path) -> Result<Option<SchemaTarget>, Failure> {
    let Some(place) = reply.to_str().and_then(dialect_place) else { return Ok(None) };
    let refused = |why: String| {
        Failure::new(ErrorCode::InvalidInput, format!("`{place}` {why}"))
            .suggest("Record the reply again, or name its dialect with `--reply-dialect`")
    };
    match fs::read_to_string(&place) {
        Ok(text) => parse_dialect_file(&text).map_err(refused),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(refused(format!("cannot be read: {error}"))),
    }
}
