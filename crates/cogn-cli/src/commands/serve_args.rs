//! The options of `cogn serve`, converted to the type of the configuration. Decides nothing: a missing flag is left to
//! the environment and to `cognitive.yaml`.

use std::net::IpAddr;
use std::path::PathBuf;

use cognitive_setup::serve_config::ServeConfig;

use crate::args::provider::ProviderArgs;

/// Options of `serve`. Missing ones are taken from `COGN_SERVE_*` or from `serve:` in `cognitive.yaml`
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "the flags are independent")]
pub struct ServeArgs {
    /// The address to listen on; any but a loopback address needs a key [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    host: Option<IpAddr>,
    /// The port; 0 picks a free one [default: 8000]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// File with keys, one `NAME KEY [ROLE,…]` per line, in addition to the key in `COGNITIVE_API_KEY`
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
    /// A folder whose modules authors may change in Studio; repeatable
    #[arg(long, value_name = "DIR")]
    edit: Vec<PathBuf>,
    /// Disable Studio; the API page at `/docs` remains
    #[arg(long)]
    no_studio: bool,
    /// A web origin that may call from a browser; repeatable
    #[arg(long, value_name = "ORIGIN")]
    cors: Vec<String>,
    /// The modules to offer, repeated or separated by commas; all by default
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    modules: Vec<String>,
    /// Offer your own modules only
    #[arg(long)]
    no_bundled: bool,
    /// The tools that agents see at `/mcp`: `all` modules, `search` (four tools that find and run them), or names
    /// separated by commas
    #[arg(long, value_name = "WHICH")]
    tools: Option<String>,
    /// Runs per minute and client; 0 is no limit. By default 60, and no limit for callers on this machine without key and proxy
    #[arg(long, value_name = "N")]
    rate: Option<u32>,
    /// Streams at once per client; 0 is no limit [default: 4]
    #[arg(long, value_name = "N")]
    streams: Option<usize>,
    /// Connections at once per address; 0 is no limit. By default 256, or no limit on a loopback address
    #[arg(long, value_name = "N")]
    per_address: Option<usize>,
    /// Maximum size of a request body, in MiB [default: 2]
    #[arg(long, value_name = "MIB")]
    max_body: Option<usize>,
    /// Seconds that a model call continues after its client disconnects; 0 cancels it at once [default: 30]
    #[arg(long, value_name = "SECONDS")]
    grace: Option<u64>,
    /// Seconds that open streams may take to finish when the server stops [default: 20]
    #[arg(long, value_name = "SECONDS")]
    drain: Option<u64>,
    /// Transports for streams, repeated or separated by commas; all by default
    #[arg(long, value_name = "WAY", value_enum, value_delimiter = ',')]
    transport: Vec<Transport>,
    /// Redis shared by several servers, such as `redis://10.0.0.7:6379`: they share rate limits, streams and logins
    #[arg(long, value_name = "URL")]
    shared: Option<String>,
    /// Send traces to this collector, as OTLP in JSON over HTTP; such as `http://127.0.0.1:4318`
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,
    /// Do not record runs; by default the server does not start if it cannot record them
    #[arg(long)]
    pub(super) no_audit: bool,
    /// Start no server; check that the one at this address and port is ready
    #[arg(long)]
    pub(super) check: bool,
    #[command(flatten)]
    pub(super) provider: ProviderArgs,
}

/// A way to carry a stream (STREAM-018).
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Transport {
    /// Server-sent events
    Sse,
    /// `GET /ws`
    Websocket,
    /// One JSON object per line
    Ndjson,
}

impl Transport {
    fn word(self) -> &'static str {
        match self {
            Self::Sse => "sse",
            Self::Websocket => "websocket",
            Self::Ndjson => "ndjson",
        }
    }
}

impl ServeArgs {
    /// Returns the typed flags as a configuration.
    pub(super) fn typed_config(&self) -> ServeConfig {
        let some = |list: &[String]| (!list.is_empty()).then(|| list.to_vec());
        let transports: Vec<String> = self.transport.iter().map(|way| way.word().to_owned()).collect();
        ServeConfig {
            host: self.host,
            port: self.port,
            keys: None,
            keys_file: self.keys.clone(),
            studio: self.no_studio.then_some(false),
            edit: (!self.edit.is_empty()).then(|| self.edit.clone()),
            models: None,
            cors: some(&self.cors),
            modules: some(&self.modules),
            bundled: self.no_bundled.then_some(false),
            tools: self.tools.clone(),
            rate: self.rate,
            streams: self.streams,
            per_address: self.per_address,
            max_body_mb: self.max_body,
            grace_seconds: self.grace,
            drain_seconds: self.drain,
            transports: some(&transports),
            shared: self.shared.clone(),
            otlp: self.otlp.clone(),
            access_log: None,
        }
    }
}
