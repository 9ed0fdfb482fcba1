//! One public file of a known length over HTTP, taken up where it broke off. Carries no key, writes no file itself and
//! judges no content: the caller keeps the bytes and compares their hash.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_RANGE, RANGE};
use reqwest::{Client, Response, Url};

use crate::client::file_client;
use crate::config::{Proxies, proxies};
use crate::fault::deepest;
use crate::retry::{Again, Pause, RealPause, wait};
use crate::tls::is_tls;

/// However much each of them brings, so many connections are enough for one file.
const CONNECTIONS: u32 = 50;
/// A download has no time limit of its own; one that stands still is noticed by the client.
const NO_HURRY: Duration = Duration::MAX;

/// Where the bytes go.
pub trait FileSink: Send {
    /// How many bytes are there already.
    fn length(&self) -> u64;

    /// Forgets them: the server sends the file from its beginning.
    fn restart(&mut self) -> io::Result<()>;

    /// Takes the next bytes.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;
}

/// What is to be fetched.
#[derive(Clone)]
#[non_exhaustive]
pub struct Download {
    /// The address.
    pub url: String,
    /// How long the file is. Anything else is refused, if possible before it is read.
    pub length: u64,
    /// Whether proxies are used.
    pub proxies: Proxies,
    /// How waiting between tries is done.
    pub pause: Arc<dyn Pause>,
}

impl fmt::Debug for Download {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Download").field("length", &self.length).finish_non_exhaustive()
    }
}

/// Why a file could not be fetched. What arrived before stays in the sink.
#[derive(Debug)]
#[non_exhaustive]
pub enum DownloadError {
    /// The address is none.
    Address,
    /// Nobody answers there.
    Unreachable(String),
    /// The server does not give the file.
    Status(String, u16),
    /// The connection broke too often.
    Lost(String),
    /// The server offers a file of another length.
    Length(String, u64),
    /// The sink did not take the bytes.
    Sink(io::Error),
}

impl fmt::Display for DownloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address => f.write_str("the address is not `http://` or `https://`"),
            Self::Unreachable(why) => f.write_str(why),
            Self::Status(host, status) => write!(f, "{host} answered {status}"),
            Self::Lost(why) => write!(f, "the connection was lost: {why}"),
            Self::Length(host, found) => write!(f, "{host} offers another file, of {found} bytes"),
            Self::Sink(error) => write!(f, "the file cannot be written: {error}"),
        }
    }
}

impl std::error::Error for DownloadError {}

/// A failed try, and whether another makes sense.
type Failed = (DownloadError, Again);

impl Download {
    /// A file of this length at this address.
    #[must_use]
    pub fn new(url: impl Into<String>, length: u64) -> Self {
        Self { url: url.into(), length, proxies: Proxies::default(), pause: Arc::new(RealPause) }
    }

    /// Says how waiting is done.
    #[must_use]
    pub fn with_pause(mut self, pause: Arc<dyn Pause>) -> Self {
        self.pause = pause;
        self
    }

    /// Fetches what the sink does not have yet. A broken connection is taken up again as long as each brings something.
    pub async fn fetch(&self, sink: &mut dyn FileSink) -> Result<(), DownloadError> {
        let url = Url::parse(&self.url).map_err(|_| DownloadError::Address)?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(DownloadError::Address);
        }
        let client = file_client(&url, proxies(self.proxies, &url))
            .map_err(|error| DownloadError::Unreachable(error.to_string()))?;
        let (mut fruitless, mut connections) = (0, 0);
        loop {
            let before = sink.length();
            let Err((error, again)) = self.attempt(&client, &url, sink).await else { return Ok(()) };
            connections += 1;
            if sink.length() > before {
                fruitless = 0;
            }
            let pause = wait(again, fruitless, NO_HURRY, self.pause.jitter());
            let Some(pause) = pause.filter(|_| connections < CONNECTIONS) else { return Err(error) };
            fruitless += 1;
            self.pause.sleep(pause).await;
        }
    }

    /// One connection.
    async fn attempt(&self, client: &Client, url: &Url, sink: &mut dyn FileSink) -> Result<(), Failed> {
        if sink.length() > self.length {
            sink.restart().map_err(unwritten)?;
        }
        let from = sink.length();
        if from == self.length {
            return Ok(());
        }
        let mut request = client.get(url.clone());
        if from > 0 {
            request = request.header(RANGE, format!("bytes={from}-"));
        }
        let response = request.send().await.map_err(|error| unanswered(url, &error))?;
        self.begin(&response, sink)?;
        self.read(response, sink).await
    }

    /// Decides whether what the server sends is what is missing.
    fn begin(&self, response: &Response, sink: &mut dyn FileSink) -> Result<(), Failed> {
        let (host, status, from) = (host(response.url()), response.status().as_u16(), sink.length());
        match status {
            200 => {
                let offered = response.content_length().filter(|length| *length != self.length);
                if let Some(found) = offered {
                    return Err((DownloadError::Length(host, found), Again::Never));
                }
                if from > 0 { sink.restart().map_err(unwritten) } else { Ok(()) }
            }
            206 if from > 0 => match content_range(response) {
                Some((start, total)) if start == from && total.is_none_or(|total| total == self.length) => {
                    Ok(())
                }
                Some((start, Some(total))) if start == from => {
                    Err((DownloadError::Length(host, total), Again::Never))
                }
                _ => Err(anew(sink, "the server sends another range than requested")),
            },
            // What is there is more than the server has.
            416 => Err(anew(sink, "the server does not have the requested range")),
            408 | 425 | 429 | 500..=599 => Err((DownloadError::Status(host, status), Again::Later)),
            _ => Err((DownloadError::Status(host, status), Again::Never)),
        }
    }

    async fn read(&self, mut response: Response, sink: &mut dyn FileSink) -> Result<(), Failed> {
        let lost = |error: reqwest::Error| (DownloadError::Lost(deepest(&error)), Again::Later);
        while let Some(bytes) = response.chunk().await.map_err(lost)? {
            let length = sink.length().saturating_add(bytes.len() as u64);
            if length > self.length {
                return Err((DownloadError::Length(host(response.url()), length), Again::Never));
            }
            sink.write(&bytes).map_err(unwritten)?;
        }
        if sink.length() == self.length {
            return Ok(());
        }
        Err((DownloadError::Lost("the file ended too early".to_owned()), Again::Later))
    }
}

/// A full disk does not empty itself.
fn unwritten(error: io::Error) -> Failed {
    (DownloadError::Sink(error), Again::Never)
}

/// The next connection begins at the beginning.
fn anew(sink: &mut dyn FileSink, why: &str) -> Failed {
    match sink.restart() {
        Ok(()) => (DownloadError::Lost(why.to_owned()), Again::Later),
        Err(error) => unwritten(error),
    }
}

fn unanswered(url: &Url, error: &reqwest::Error) -> Failed {
    let (host, why) = (host(url), deepest(error));
    if error.is_timeout() {
        let text = format!("{host} cannot be reached: no connection in time");
        return (DownloadError::Unreachable(text), Again::Never);
    }
    let again =
        if is_tls(error) || error.is_redirect() || error.is_connect() { Again::Never } else { Again::Later };
    (DownloadError::Unreachable(format!("{host} cannot be reached: {why}")), again)
}

fn host(url: &Url) -> String {
    url.host_str().unwrap_or("the server").to_owned()
}

/// `bytes 5-9/10` → 5 and 10; the whole length may be unknown.
fn content_range(response: &Response) -> Option<(u64, Option<u64>)> {
    let text = response.headers().get(CONTENT_RANGE)?.to_str().ok()?;
    let (part, total) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (start, _) = part.split_once('-')?;
    let total = if total.trim() == "*" { None } else { Some(total.trim().parse().ok()?) };
    Some((start.trim().parse().ok()?, total))
}
