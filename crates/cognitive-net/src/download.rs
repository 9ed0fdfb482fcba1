//! Downloads one public file of known length over HTTP and resumes after a disconnect. Sends no key, writes no file
//! and does not check the content: the caller stores the bytes and compares their hash.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_RANGE, RANGE};
use reqwest::{Client, Response, Url};

use crate::client::file_client;
use crate::config::{Proxies, proxies};
use crate::fault::deepest;
use crate::retry::{Pause, RealPause, RetryDecision, wait};
use crate::tls::is_tls;

/// The most connections for one file. Bounds a download whose connections each deliver only a few bytes.
const CONNECTIONS: u32 = 50;
/// A download has no overall time limit; the client aborts one that stalls.
const NO_HURRY: Duration = Duration::MAX;

/// The destination of the downloaded bytes.
pub trait FileSink: Send {
    /// Returns the number of bytes already stored.
    fn length(&self) -> u64;

    /// Discards the stored bytes, because the server sends the file from the start.
    fn restart(&mut self) -> io::Result<()>;

    /// Appends the next bytes.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;
}

/// The file to download.
#[derive(Clone)]
#[non_exhaustive]
pub struct Download {
    /// The URL.
    pub url: String,
    /// The length in bytes. A file of another length is refused, if possible before it is read.
    pub length: u64,
    /// The proxy setting.
    pub proxies: Proxies,
    /// The clock and jitter for the pauses between attempts.
    pub pause: Arc<dyn Pause>,
}

impl fmt::Debug for Download {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Download").field("length", &self.length).finish_non_exhaustive()
    }
}

/// The reason why a download failed. Bytes already received stay in the sink.
#[derive(Debug)]
#[non_exhaustive]
pub enum DownloadError {
    /// The URL is invalid or not `http://` or `https://`.
    Address,
    /// The server cannot be reached.
    Unreachable(String),
    /// The server answered with this error status.
    Status(String, u16),
    /// The connection was lost too often.
    Lost(String),
    /// The server offers a file of another length.
    Length(String, u64),
    /// The sink failed to write the bytes.
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

/// A failed attempt, and whether to retry.
type FailedAttempt = (DownloadError, RetryDecision);

impl Download {
    /// Creates a download of a file with this length and default settings.
    #[must_use]
    pub fn new(url: impl Into<String>, length: u64) -> Self {
        Self { url: url.into(), length, proxies: Proxies::default(), pause: Arc::new(RealPause) }
    }

    /// Sets the clock and jitter for the pauses between attempts.
    #[must_use]
    pub fn with_pause(mut self, pause: Arc<dyn Pause>) -> Self {
        self.pause = pause;
        self
    }

    /// Downloads the bytes that the sink does not have yet. Reconnects after a disconnect; connections that deliver
    /// bytes reset the retry count.
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

    /// Runs one connection.
    async fn attempt(
        &self,
        client: &Client,
        url: &Url,
        sink: &mut dyn FileSink,
    ) -> Result<(), FailedAttempt> {
        if sink.length() > self.length {
            sink.restart().map_err(write_failed)?;
        }
        let from = sink.length();
        if from == self.length {
            return Ok(());
        }
        let mut request = client.get(url.clone());
        if from > 0 {
            request = request.header(RANGE, format!("bytes={from}-"));
        }
        let response = request.send().await.map_err(|error| connect_failed(url, &error))?;
        self.begin(&response, sink)?;
        self.read(response, sink).await
    }

    /// Checks that the answer carries the missing bytes.
    fn begin(&self, response: &Response, sink: &mut dyn FileSink) -> Result<(), FailedAttempt> {
        let (host, status, from) = (host(response.url()), response.status().as_u16(), sink.length());
        match status {
            200 => {
                let offered = response.content_length().filter(|length| *length != self.length);
                if let Some(found) = offered {
                    return Err((DownloadError::Length(host, found), RetryDecision::Never));
                }
                if from > 0 { sink.restart().map_err(write_failed) } else { Ok(()) }
            }
            206 if from > 0 => match content_range(response) {
                Some((start, total)) if start == from && total.is_none_or(|total| total == self.length) => {
                    Ok(())
                }
                Some((start, Some(total))) if start == from => {
                    Err((DownloadError::Length(host, total), RetryDecision::Never))
                }
                _ => Err(start_over(sink, "the server sends another range than requested")),
            },
            // The sink holds more bytes than the server's file.
            416 => Err(start_over(sink, "the server does not have the requested range")),
            408 | 425 | 429 | 500..=599 => Err((DownloadError::Status(host, status), RetryDecision::Later)),
            _ => Err((DownloadError::Status(host, status), RetryDecision::Never)),
        }
    }

    async fn read(&self, mut response: Response, sink: &mut dyn FileSink) -> Result<(), FailedAttempt> {
        let lost = |error: reqwest::Error| (DownloadError::Lost(deepest(&error)), RetryDecision::Later);
        while let Some(bytes) = response.chunk().await.map_err(lost)? {
            let length = sink.length().saturating_add(bytes.len() as u64);
            if length > self.length {
                return Err((DownloadError::Length(host(response.url()), length), RetryDecision::Never));
            }
            sink.write(&bytes).map_err(write_failed)?;
        }
        if sink.length() == self.length {
            return Ok(());
        }
        Err((DownloadError::Lost("the file ended too early".to_owned()), RetryDecision::Later))
    }
}

/// A failed write is not retried: a full disk stays full.
fn write_failed(error: io::Error) -> FailedAttempt {
    (DownloadError::Sink(error), RetryDecision::Never)
}

/// Discards the stored bytes, so that the next connection starts from the beginning.
fn start_over(sink: &mut dyn FileSink, why: &str) -> FailedAttempt {
    match sink.restart() {
        Ok(()) => (DownloadError::Lost(why.to_owned()), RetryDecision::Later),
        Err(error) => write_failed(error),
    }
}

fn connect_failed(url: &Url, error: &reqwest::Error) -> FailedAttempt {
    let (host, why) = (host(url), deepest(error));
    if error.is_timeout() {
        let text = format!("{host} cannot be reached: no connection in time");
        return (DownloadError::Unreachable(text), RetryDecision::Never);
    }
    let again = if is_tls(error) || error.is_redirect() || error.is_connect() {
        RetryDecision::Never
    } else {
        RetryDecision::Later
    };
    (DownloadError::Unreachable(format!("{host} cannot be reached: {why}")), again)
}

fn host(url: &Url) -> String {
    url.host_str().unwrap_or("the server").to_owned()
}

/// Parses `bytes 5-9/10` into 5 and 10; the total length may be unknown.
fn content_range(response: &Response) -> Option<(u64, Option<u64>)> {
    let text = response.headers().get(CONTENT_RANGE)?.to_str().ok()?;
    let (part, total) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (start, _) = part.split_once('-')?;
    let total = if total.trim() == "*" { None } else { Some(total.trim().parse().ok()?) };
    Some((start.trim().parse().ok()?, total))
}
