//! Fetches media by URL. Follows redirects itself, checks each target with the guard, and stops reading at the limit.
//! Never decompresses and never retries: the caller decides on retries.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use cognitive_contract::code::ErrorCode;
use cognitive_contract::failure::Failure;
use cognitive_contract::media::{LoadedMedia, UrlFetch};
use cognitive_contract::ports::PortFuture;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Method, Response, Url};
use serde_json::json;
use tokio::time::timeout;

use super::guard::{GuardedClient, Lookup, redirect_target, transport_refusal};
use super::rules::{Policy, Reason, Refusal, check};
use crate::config::Proxies;

/// The most redirects of one medium. (S-31) Each hop is resolved and checked again.
const REDIRECTS: usize = 3;

/// Fetches media by URL. Uses no proxy, because the dialled address could not be checked behind one.
/// (MEDIA-007, MEDIA-009, SEC-001, SEC-002, SEC-011)
pub struct Fetcher {
    guard: GuardedClient,
}

impl Fetcher {
    /// Creates a fetcher with the resolver of this machine. Clients are created at the first fetch.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self { guard: GuardedClient::new(policy, Proxies::None) }
    }

    /// Replaces the resolver.
    #[must_use]
    pub fn with_lookup(self, lookup: Arc<dyn Lookup>) -> Self {
        Self { guard: self.guard.with_lookup(lookup) }
    }

    async fn get(&self, url: &str, largest: u64) -> Result<LoadedMedia, Stop> {
        let mut url = check(url, self.guard.policy())?;
        for _ in 0..=REDIRECTS {
            let response = self.send(&url).await?;
            // Some servers send unescaped non-ASCII characters.
            let location =
                response.headers().get(LOCATION).and_then(|place| str::from_utf8(place.as_bytes()).ok());
            let Some(place) = next_place(&url, response.status().as_u16(), location)? else {
                return read(response, &url, largest).await;
            };
            url = self.guard.admit(place)?;
        }
        Err(Refusal::new(Reason::TooManyRedirects, Some(&url)).into())
    }

    async fn send(&self, url: &Url) -> Result<Response, Refusal> {
        let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("identity"))]);
        let sent = self.guard.send(Method::GET, url, headers, None).await;
        sent.map_err(|error| error.into_refusal(url))
    }
}

impl UrlFetch for Fetcher {
    fn fetch<'a>(&'a self, url: &'a str, largest: u64) -> PortFuture<'a, Result<LoadedMedia, Failure>> {
        Box::pin(async move {
            let in_time = timeout(self.guard.policy().total, self.get(url, largest)).await;
            let too_late = |_| {
                let url = Url::parse(url).ok();
                Err(Refusal::new(Reason::Timeout, url.as_ref()).into())
            };
            in_time.unwrap_or_else(too_late).map_err(Failure::from)
        })
    }
}

/// The reason why no bytes are returned.
enum Stop {
    Refused(Refusal),
    TooLarge(u64),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::TooLarge(largest) => {
                let message = format!("the fetched item is larger than the limit of {largest} bytes");
                Self::new(ErrorCode::MediaTooLarge, message).suggest("Send a smaller one")
            }
            Stop::Refused(refusal) => {
                let reason = refusal.reason();
                let mut failure = Self::new(ErrorCode::MediaFetchFailed, refusal.to_string())
                    .with_detail("reason", json!(reason.word()));
                if let Reason::HttpStatus(status) = reason {
                    failure = failure.with_detail("status", json!(status));
                }
                if reason.is_block() {
                    failure = failure.suggest("Use a public `https://` address, or send the bytes as base64");
                }
                failure
            }
        }
    }
}

/// Returns the target of a redirect; `None` if the server sent the content itself.
fn next_place(from: &Url, status: u16, location: Option<&str>) -> Result<Option<Url>, Refusal> {
    let refuse = |reason| Refusal::new(reason, Some(from));
    if !matches!(status, 301 | 302 | 303 | 307 | 308) {
        // No range was requested, so a partial answer is an error.
        let whole = (200..300).contains(&status) && status != 206;
        return if whole { Ok(None) } else { Err(refuse(Reason::HttpStatus(status))) };
    }
    let place = location.ok_or_else(|| refuse(Reason::HttpStatus(status)))?;
    redirect_target(from, place).map(Some)
}

/// Reads a body, and stores at most `largest` bytes. (SEC-002)
async fn read(mut response: Response, url: &Url, largest: u64) -> Result<LoadedMedia, Stop> {
    let packed = response
        .headers()
        .get_all(CONTENT_ENCODING)
        .iter()
        .any(|name| name != "identity" && !name.is_empty());
    if packed {
        return Err(Refusal::new(Reason::Encoding, Some(url)).into());
    }
    let announced = response.content_length();
    if announced.is_some_and(|length| length > largest) {
        return Err(Stop::TooLarge(largest));
    }
    let media_type =
        response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).map(str::to_owned);
    let mut bytes = BodyChunks::new(announced);
    while let Some(piece) = response.chunk().await.map_err(|error| transport_refusal(&error, url))? {
        if bytes.length().saturating_add(piece.len() as u64) > largest {
            return Err(Stop::TooLarge(largest));
        }
        bytes.add(piece);
    }
    Ok(LoadedMedia::new(bytes.all(), media_type))
}

/// The chunks of a body. A single chunk is kept without a copy; several are copied once into one buffer.
struct BodyChunks {
    announced: usize,
    only: Bytes,
    joined: BytesMut,
}

impl BodyChunks {
    fn new(announced: Option<u64>) -> Self {
        let announced = announced.and_then(|length| usize::try_from(length).ok()).unwrap_or_default();
        Self { announced, only: Bytes::new(), joined: BytesMut::new() }
    }

    fn length(&self) -> u64 {
        (self.only.len() + self.joined.len()) as u64
    }

    fn add(&mut self, piece: Bytes) {
        if self.length() == 0 {
            self.only = piece;
            return;
        }
        if self.joined.is_empty() {
            self.joined.reserve(self.announced.max(self.only.len() + piece.len()));
            self.joined.extend_from_slice(&self.only);
            self.only = Bytes::new();
        }
        self.joined.extend_from_slice(&piece);
    }

    fn all(self) -> Bytes {
        if self.joined.is_empty() { self.only } else { self.joined.freeze() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(from: &str, status: u16, location: Option<&str>) -> Result<Option<String>, Reason> {
        let from = Url::parse(from).unwrap();
        let next = next_place(&from, status, location).map_err(|refusal| refusal.reason())?;
        Ok(next.map(String::from))
    }

    #[test]
    fn media_009_only_a_whole_answer_is_one() {
        for status in [200, 203] {
            assert_eq!(next("https://a.example/", status, Some("/ignored")), Ok(None));
        }
        for status in [206, 300, 304, 305, 401, 404, 500, 999] {
            assert_eq!(next("https://a.example/", status, Some("/b")), Err(Reason::HttpStatus(status)));
        }
        assert_eq!(next("https://a.example/", 302, None), Err(Reason::HttpStatus(302)));
        assert_eq!(next("https://a.example/", 302, Some("http://[")), Err(Reason::InvalidUrl));
    }

    #[test]
    fn pieces_are_joined_in_their_order_and_one_is_not_copied() {
        let all = |announced, pieces: &[&'static [u8]]| {
            let mut collected = BodyChunks::new(announced);
            for piece in pieces {
                collected.add(Bytes::from_static(piece));
            }
            collected.all()
        };
        let only: &'static [u8] = b"abc";
        assert_eq!(all(Some(3), &[only]).as_ptr(), only.as_ptr());
        assert_eq!(all(Some(6), &[b"abc", b"", b"def"]), "abcdef");
        assert_eq!(all(None, &[b"", b"a", b"b", b"c"]), "abc");
        assert_eq!(all(None, &[]), "");
    }
}
