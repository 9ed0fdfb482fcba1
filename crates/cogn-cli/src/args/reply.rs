//! `--reply` and `--reply-dialect`: a saved reply in the place of a model, and how to read it. One definition for every
//! command that takes a saved reply.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cogn::settings::{ProviderChoice, SettingOverrides, Settings};
use cogn::wiring::ChosenModels;
use cognitive_contract::ports::Provider;
use cognitive_contract::recorded_reply::{self, RecordedReply, dialect_place, parse_dialect_file};
use cognitive_contract::{ErrorCode, Failure};
use cognitive_runtime::Replay;
use cognitive_schema::SchemaTarget;

use super::input::read_text;

/// The options, to be flattened into those of a command.
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

/// A dialect that was typed, `none` included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ReplyDialect(Option<SchemaTarget>);

fn reply_dialect(name: &str) -> Result<ReplyDialect, String> {
    recorded_reply::dialect(name).map(ReplyDialect)
}

impl ReplyArgs {
    /// A saved reply that was named is what the user wants replayed, unless they name a provider.
    pub fn choose_replay(&self, wanted: &mut SettingOverrides) {
        if self.reply.is_some() && wanted.provider.is_none() {
            wanted.provider = Some("replay".to_owned());
        }
    }

    /// The file that was typed.
    pub fn path(&self) -> Option<&Path> {
        self.reply.as_deref()
    }

    /// Returns whether stdin is the saved reply of a run with these settings.
    pub fn reads_stdin(&self, settings: &Settings) -> bool {
        self.file(settings).is_some_and(|path| path.as_os_str() == "-")
    }

    /// The model that answers with the saved reply; `None` where another provider was chosen or no file was named.
    pub fn models(&self, settings: &Settings) -> Result<Option<ChosenModels>, Failure> {
        let Some(path) = self.file(settings) else { return Ok(None) };
        let text = read_text(Some(path))?;
        let dialect = match self.reply_dialect {
            Some(ReplyDialect(typed)) => typed,
            None => recorded_dialect(path)?,
        };
        let replay = Replay::recorded(RecordedReply::new(text, dialect));
        Ok(Some(ChosenModels::from(Arc::new(replay) as Arc<dyn Provider>)))
    }

    fn file(&self, settings: &Settings) -> Option<&Path> {
        self.reply.as_deref().filter(|_| settings.provider == ProviderChoice::Replay)
    }
}

/// The dialect that `cogn test --record` wrote beside a reply.
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
