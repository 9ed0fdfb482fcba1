//! `cogn media inspect`: the contents of a file or an address, and the form that each provider would get.
//! Calls no provider and uploads nothing.

use std::sync::Arc;

use cognitive_contract::manifest::InputModality;
use cognitive_contract::media::{
    AcceptedForm, FormedMedia, LoadedMedia, MediaFacts, MediaLimits, MediaSource, MediaType, Reference,
    WantedMedia, judge,
};
use cognitive_contract::ports::Provider;
use cognitive_contract::text::hex;
use cognitive_contract::{ErrorCode, Failure};
use cognitive_net::{Kind, ProviderConfig, Secret};
use cognitive_setup::media::MediaAccess;
use cognitive_setup::{async_runtime, media};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::fail;
use crate::printer::{Exit, FAINT, NOTE, Printer};
use crate::project;

/// Options of `media`.
#[derive(Debug, clap::Args)]
pub struct MediaArgs {
    #[command(subcommand)]
    command: MediaCommand,
}

#[derive(Debug, clap::Subcommand)]
enum MediaCommand {
    /// Show the content of a file or URL, and the form that each provider would get
    Inspect(InspectArgs),
}

#[derive(Debug, clap::Args)]
struct InspectArgs {
    /// A file, or a URL that begins with `https://`
    item: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn media(args: &MediaArgs, printer: &Printer) -> Exit {
    let MediaCommand::Inspect(args) = &args.command;
    match async_runtime::on_this_thread_and_others().and_then(|runtime| runtime.block_on(inspect(&args.item)))
    {
        Ok(found) if args.json => {
            printer.json(&found);
            Exit::Good
        }
        Ok(found) => {
            show(&args.item, &found, printer);
            Exit::Good
        }
        Err(failure) => fail(&failure, printer),
    }
}

/// The main function of the document worker: reads one request and writes one answer.
pub fn read_document() -> Exit {
    let (input, output) = (std::io::stdin().lock(), std::io::stdout().lock());
    if cognitive_media::worker::serve(input, output).is_ok() { Exit::Good } else { Exit::Bad }
}

async fn inspect(given: &str) -> Result<Value, Failure> {
    let config = project::config()?.media;
    let access = MediaAccess { document_reader: Some(project::this_program()), ..MediaAccess::default() };
    let (source, limits) = (media::source(&config, access)?, media::limits(&config)?);
    let everything =
        [InputModality::Image, InputModality::Audio, InputModality::Video, InputModality::Document];
    let is_url = given.starts_with("https://") || given.starts_with("http://");
    let LoadedMedia { bytes, media_type, .. } = load(&source, given, is_url, &limits).await?;
    let named = media_type.as_deref().and_then(MediaType::parse);
    let path = given.split(['?', '#']).next().filter(|_| is_url).unwrap_or(given);
    let claimed = named.or_else(|| MediaType::from_file_name(path, &everything)).ok_or_else(|| {
        let message = "unknown media type: neither the file name nor the source has it".to_owned();
        Failure::new(ErrorCode::UnsupportedMediaType, message)
            .suggest("Give the file its usual extension, such as `.png` or `.pdf`")
    })?;
    let facts = source.examine(bytes.clone(), claimed).await?;
    let mut found = facts.to_value(0);
    if let Value::Object(members) = &mut found {
        members.shift_remove("index");
        members.insert("category".to_owned(), json!(facts.media_type.category().word()));
        members.insert("sha256".to_owned(), json!(hex(&Sha256::digest(&bytes))));
        members.insert("animated".to_owned(), json!(facts.animated));
        members.insert("turned".to_owned(), json!(facts.turned));
        members.insert("metadata".to_owned(), json!(facts.annotated));
        let verdict = judge(&facts, &limits);
        members.insert("valid".to_owned(), json!(verdict.is_ok()));
        let providers = match &verdict {
            Ok(()) => providers_get(&source, &bytes, &facts).await,
            Err(failure) => {
                let problem = json!({ "code": failure.code().number(), "message": failure.message() });
                members.insert("problem".to_owned(), problem);
                // A run would fail before the conversion.
                let nothing =
                    |provider: Arc<dyn Provider>| as_value(provider.name(), refusal_members(failure));
                providers_by_name().map(nothing).collect()
            }
        };
        members.insert("providers".to_owned(), Value::Array(providers));
    }
    Ok(found)
}

async fn load(
    source: &dyn MediaSource,
    given: &str,
    is_url: bool,
    limits: &MediaLimits,
) -> Result<LoadedMedia, Failure> {
    let absolute = std::path::absolute(given).ok().and_then(|path| path.to_str().map(str::to_owned));
    let path = absolute.unwrap_or_else(|| given.to_owned());
    let reference = if is_url { Reference::Url(given) } else { Reference::File(&path) };
    let loaded = source.load(&WantedMedia::new(reference, limits.largest)).await;
    // The source hides the name of a file, because HTTP clients must not learn about this machine. Here it is added.
    loaded.map_err(|failure| {
        if is_url {
            return failure;
        }
        Failure::new(failure.code(), format!("{}: `{given}`", failure.message()))
            .suggest(failure.suggestion().unwrap_or("Check the path"))
    })
}

/// Returns every service, with its default model. The supported media do not depend on a key.
fn providers_by_name() -> impl Iterator<Item = Arc<dyn Provider>> {
    Kind::all().filter_map(|kind| {
        let key = Secret::new("no-key-is-needed-to-look");
        cognitive_net::provider(ProviderConfig::new(kind).with_key(key)).ok()
    })
}

/// Returns the form that each provider would get. Most share a form, so each form is created only once.
async fn providers_get(source: &dyn MediaSource, bytes: &bytes::Bytes, facts: &MediaFacts) -> Vec<Value> {
    let mut made: Vec<(Option<AcceptedForm>, Map<String, Value>)> = Vec::new();
    let mut all = Vec::new();
    for provider in providers_by_name() {
        let form = provider.takes(facts.media_type.category());
        let known = made.iter().find(|(other, _)| *other == form).map(|(_, gets)| gets.clone());
        let gets = match known {
            Some(gets) => gets,
            None => {
                let gets = received_members(source, form.as_ref(), bytes, facts).await;
                made.push((form, gets.clone()));
                gets
            }
        };
        all.push(as_value(provider.name(), gets));
    }
    all
}

fn as_value(provider: &str, gets: Map<String, Value>) -> Value {
    let mut members = Map::new();
    members.insert("provider".to_owned(), json!(provider));
    members.extend(gets);
    Value::Object(members)
}

fn refusal_members(failure: &Failure) -> Map<String, Value> {
    let code = failure.code().number();
    members([("gets", json!("nothing")), ("code", json!(code)), ("message", json!(failure.message()))])
}

fn members<const N: usize>(pairs: [(&str, Value); N]) -> Map<String, Value> {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns the media that a provider with this form would get.
async fn received_members(
    source: &dyn MediaSource,
    form: Option<&AcceptedForm>,
    bytes: &bytes::Bytes,
    facts: &MediaFacts,
) -> Map<String, Value> {
    let as_text = facts.media_type == MediaType::Pdf;
    if form.is_none() && !as_text {
        return members([("gets", json!("nothing"))]);
    }
    match source.fit(bytes.clone(), facts, form).await {
        Ok(FormedMedia::AsItIs) => members([("gets", json!("as_it_is"))]),
        Ok(FormedMedia::Changed { media_type, bytes }) => members([
            ("gets", json!("converted")),
            ("media_type", json!(media_type.mime())),
            ("size_bytes", json!(bytes.len())),
        ]),
        Ok(FormedMedia::Text(text)) => members([("gets", json!("text")), ("size_bytes", json!(text.len()))]),
        Err(failure) => refusal_members(&failure),
    }
}

fn show(given: &str, found: &Value, printer: &Printer) {
    let text = |name: &str| found.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let number = |name: &str| found.get(name).and_then(Value::as_u64);
    let mut facts = vec![text("media_type"), format!("{} bytes", number("size_bytes").unwrap_or(0))];
    if let Some(size) = found.get("dimensions") {
        facts.push(format!(
            "{}×{}",
            size.get("width").unwrap_or(&Value::Null),
            size.get("height").unwrap_or(&Value::Null)
        ));
    }
    if let Some(milliseconds) = number("duration_ms") {
        facts.push(format!("{}.{:03} s", milliseconds / 1000, milliseconds % 1000));
    }
    facts.extend(number("pages").map(|pages| format!("{pages} pages")));
    let notes = [("animated", "animated"), ("turned", "needs rotation"), ("metadata", "carries metadata")];
    facts.extend(
        notes
            .iter()
            .filter(|(name, _)| found.get(*name) == Some(&Value::Bool(true)))
            .map(|(_, note)| (*note).to_owned()),
    );
    printer.print_line(format!("{NOTE}{given}{NOTE:#}: {}", facts.join(", ")));
    printer.print_line(format!("{FAINT}sha256 {}{FAINT:#}", text("sha256")));
    if let Some(problem) = found.get("problem") {
        let part = |name: &str| problem.get(name).and_then(Value::as_str).unwrap_or_default();
        printer.print_line(format!("refused: {} ({})", part("message"), part("code")));
    }
    for provider in found.get("providers").and_then(Value::as_array).into_iter().flatten() {
        let part = |name: &str| provider.get(name).and_then(Value::as_str).unwrap_or_default();
        let size = provider.get("size_bytes").and_then(Value::as_u64).unwrap_or(0);
        let gets = match part("gets") {
            "as_it_is" => "unchanged".to_owned(),
            "converted" => format!("converted to {}, {size} bytes", part("media_type")),
            "text" => format!("its text, {size} bytes"),
            _ if part("message").is_empty() => "nothing: it does not accept this kind of media".to_owned(),
            _ => format!("nothing: {} ({})", part("message"), part("code")),
        };
        printer.print_line(format!("  {:<12} {gets}", part("provider")));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use cognitive_contract::media::Checksum;
    use cognitive_contract::ports::PortFuture;

    use super::*;

    /// Counts conversions.
    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl MediaSource for Counting {
        fn load<'a>(&'a self, _: &'a WantedMedia<'a>) -> PortFuture<'a, Result<LoadedMedia, Failure>> {
            Box::pin(async { Err(Failure::new(ErrorCode::InternalError, "not here")) })
        }

        fn verify<'a>(&'a self, _: bytes::Bytes, _: &'a Checksum<'a>) -> PortFuture<'a, Result<(), Failure>> {
            Box::pin(async { Ok(()) })
        }

        fn examine(&self, _: bytes::Bytes, _: MediaType) -> PortFuture<'_, Result<MediaFacts, Failure>> {
            Box::pin(async { Err(Failure::new(ErrorCode::InternalError, "not here")) })
        }

        fn fit<'a>(
            &'a self,
            _: bytes::Bytes,
            _: &'a MediaFacts,
            _: Option<&'a AcceptedForm>,
        ) -> PortFuture<'a, Result<FormedMedia, Failure>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Box::pin(async { Ok(FormedMedia::AsItIs) })
        }
    }

    #[tokio::test]
    async fn each_form_is_made_once_however_many_providers_take_it() {
        let counting = Counting::default();
        let facts = MediaFacts::new(MediaType::Png, 9);
        let all = providers_get(&counting, &bytes::Bytes::from_static(b"picture"), &facts).await;
        let mut forms = Vec::new();
        for form in providers_by_name().filter_map(|provider| provider.takes(facts.media_type.category())) {
            if !forms.contains(&form) {
                forms.push(form);
            }
        }
        let takers = all.iter().filter(|each| each["gets"] == "as_it_is").count();
        assert_eq!(counting.0.load(Ordering::Relaxed), forms.len());
        assert!(takers > forms.len(), "{takers} of {}: {all:?}", forms.len());
    }
}
