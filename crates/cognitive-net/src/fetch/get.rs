//! The guarded client: resolves a name once, dials only what was judged, follows redirects by hand, and stops reading at
//! the limit. Never decompresses and never tries again: the caller decides whether a medium is worth another try.

use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use bytes::{Bytes, BytesMut};
use cognitive_contract::code::ErrorCode;
use cognitive_contract::failure::Failure;
use cognitive_contract::media::{LoadedMedia, UrlFetch};
use cognitive_contract::ports::PortFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response, Url};
use serde_json::json;
use tokio::time::timeout;

use super::address::blocked;
use super::rules::{Policy, Reason, Refusal, check, check_parsed, judge};
use crate::client::media_client;
use crate::tls::is_tls;

/// How often a medium may be somewhere else. (S-31)
const REDIRECTS: usize = 3;

/// Someone who knows the addresses of names.
pub trait Lookup: Send + Sync {
    /// All addresses of a host.
    fn lookup(&self, host: String) -> PortFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// The resolver of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SystemLookup;

impl Lookup for SystemLookup {
    fn lookup(&self, host: String) -> PortFuture<'static, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Fetches media by URL. (MEDIA-007, MEDIA-009, SEC-001, SEC-002, SEC-011)
pub struct Fetcher {
    policy: Policy,
    lookup: Arc<dyn Lookup>,
    /// Can only dial public addresses.
    guarded: OnceLock<Option<Client>>,
    /// Only for origins that the operator trusts.
    trusting: OnceLock<Option<Client>>,
}

impl Fetcher {
    /// A fetcher with the resolver of this machine. Costs nothing until something is fetched.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self { policy, lookup: Arc::new(SystemLookup), guarded: OnceLock::new(), trusting: OnceLock::new() }
    }

    /// With another resolver.
    #[must_use]
    pub fn with_lookup(mut self, lookup: Arc<dyn Lookup>) -> Self {
        self.lookup = lookup;
        self
    }

    async fn get(&self, url: &str, largest: u64) -> Result<LoadedMedia, Stop> {
        let mut url = check(url, &self.policy)?;
        for _ in 0..=REDIRECTS {
            let response = self.send(&url).await?;
            // Not every server escapes what is not ASCII.
            let location =
                response.headers().get(LOCATION).and_then(|place| str::from_utf8(place.as_bytes()).ok());
            let Some(place) = next_place(&url, response.status().as_u16(), location)? else {
                return read(response, &url, largest).await;
            };
            url = check_parsed(place, &self.policy)?;
        }
        Err(Refusal::of(Reason::TooManyRedirects, Some(&url)).into())
    }

    async fn send(&self, url: &Url) -> Result<Response, Refusal> {
        let trusted = self.policy.trusts(url);
        let client = self.client(trusted).ok_or_else(|| Refusal::of(Reason::Setup, Some(url)))?;
        // The client leaves the fragment out, and makes a header of the credentials of this URL.
        let request = client.get(url.clone()).header(ACCEPT_ENCODING, "identity");
        let response = request.send().await.map_err(|error| lost(&error, url))?;
        // A second look at what was dialled. Nothing above lets another address through; this does not rely on it.
        let reached = response.remote_addr().map(|address| address.ip());
        if !trusted && reached.is_none_or(|address| blocked(address).is_some()) {
            return Err(Refusal::of(Reason::BlockedAddress, Some(url)));
        }
        Ok(response)
    }

    fn client(&self, trusted: bool) -> Option<&Client> {
        let place = if trusted { &self.trusting } else { &self.guarded };
        let make = || {
            let resolver = Judged { lookup: Arc::clone(&self.lookup), trusted };
            media_client(Arc::new(resolver), self.policy.connect).ok()
        };
        place.get_or_init(make).as_ref()
    }
}

impl UrlFetch for Fetcher {
    fn fetch<'a>(&'a self, url: &'a str, largest: u64) -> PortFuture<'a, Result<LoadedMedia, Failure>> {
        Box::pin(async move {
            let in_time = timeout(self.policy.total, self.get(url, largest)).await;
            let too_late = |_| {
                let url = Url::parse(url).ok();
                Err(Refusal::of(Reason::Timeout, url.as_ref()).into())
            };
            in_time.unwrap_or_else(too_late).map_err(Failure::from)
        })
    }
}

/// The resolver that the client gets: what it hands on may be dialled. It is asked once per connection, and the answer
/// is what the socket is connected to, so that no second answer can be another. (SEC-011)
struct Judged {
    lookup: Arc<dyn Lookup>,
    trusted: bool,
}

impl Resolve for Judged {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        let (found, trusted) = (self.lookup.lookup(host.clone()), self.trusted);
        Box::pin(async move {
            // Whatever a resolver has to complain about: the name has no address.
            let found = found.await.unwrap_or_default();
            let found = if trusted && !found.is_empty() { found } else { judge(&host, found)? };
            // The port of the URL takes the place of the zero.
            let found = found.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(found) as Addrs)
        })
    }
}

/// Why there are no bytes.
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

/// Where a server sends us instead; `None` if it answers itself.
fn next_place(from: &Url, status: u16, location: Option<&str>) -> Result<Option<Url>, Refusal> {
    let refuse = |reason| Refusal::of(reason, Some(from));
    if !matches!(status, 301 | 302 | 303 | 307 | 308) {
        // Nobody asked for a part, so a part is not what was asked for.
        let whole = (200..300).contains(&status) && status != 206;
        return if whole { Ok(None) } else { Err(refuse(Reason::HttpStatus(status))) };
    }
    let place = location.ok_or_else(|| refuse(Reason::HttpStatus(status)))?;
    let mut place = from.join(place).map_err(|_| refuse(Reason::InvalidUrl))?;
    if from.scheme() == "https" && place.scheme() != "https" {
        return Err(Refusal::of(Reason::BlockedScheme, Some(&place)));
    }
    // Credentials stay where they were given out. Whoever needs others somewhere else is not open to us. (MEDIA-007)
    if place.origin() != from.origin() {
        let _cannot_have_any = place.set_username("");
        let _cannot_have_any = place.set_password(None);
    }
    Ok(Some(place))
}

/// Reads a body, and not a byte more than allowed is kept. (SEC-002)
async fn read(mut response: Response, url: &Url, largest: u64) -> Result<LoadedMedia, Stop> {
    let packed = response
        .headers()
        .get_all(CONTENT_ENCODING)
        .iter()
        .any(|name| name != "identity" && !name.is_empty());
    if packed {
        return Err(Refusal::of(Reason::Encoding, Some(url)).into());
    }
    let announced = response.content_length();
    if announced.is_some_and(|length| length > largest) {
        return Err(Stop::TooLarge(largest));
    }
    let media_type =
        response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).map(str::to_owned);
    let mut bytes = Collected::new(announced);
    while let Some(piece) = response.chunk().await.map_err(|error| lost(&error, url))? {
        if bytes.length().saturating_add(piece.len() as u64) > largest {
            return Err(Stop::TooLarge(largest));
        }
        bytes.add(piece);
    }
    Ok(LoadedMedia::new(bytes.all(), media_type))
}

/// The pieces of a body. One piece is kept as it came; several are copied once, to where there is room for all.
struct Collected {
    announced: usize,
    only: Bytes,
    joined: BytesMut,
}

impl Collected {
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

/// Why a request got no answer, or an answer broke off.
fn lost(error: &reqwest::Error, url: &Url) -> Refusal {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    let mut refused = None;
    while let Some(inner) = cause {
        if let Some(refusal) = inner.downcast_ref::<Refusal>() {
            return refusal.clone();
        }
        if inner
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
        {
            refused = Some(Reason::Refused);
        }
        cause = inner.source();
    }
    let reason = match refused {
        Some(reason) => reason,
        None if error.is_timeout() => Reason::Timeout,
        None if is_tls(error) => Reason::Tls,
        None if error.is_connect() => Reason::Refused,
        None => Reason::Interrupted,
    };
    Refusal::of(reason, Some(url))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn next(from: &str, status: u16, location: Option<&str>) -> Result<Option<String>, Reason> {
        let from = Url::parse(from).unwrap();
        let next = next_place(&from, status, location).map_err(|refusal| refusal.reason())?;
        Ok(next.map(String::from))
    }

    #[test]
    fn s_31_credentials_stay_where_they_were_given_out() {
        for (location, expected) in [
            ("/b", "https://me:pw@a.example/b"),
            ("https://b.example/b", "https://b.example/b"),
            ("//b.example/b", "https://b.example/b"),
            ("https://you:pw@b.example/b", "https://b.example/b"),
            ("https://a.example:444/b", "https://a.example:444/b"),
            ("https://me:pw@a.example:444/b", "https://a.example:444/b"),
        ] {
            let found = next("https://me:pw@a.example/a", 302, Some(location));
            assert_eq!(found, Ok(Some(expected.to_owned())), "{location}");
        }
    }

    #[test]
    fn s_31_a_protected_connection_is_never_left_for_an_open_one() {
        let location = Some("http://a.example/");
        assert_eq!(next("https://a.example/", 301, location), Err(Reason::BlockedScheme));
        assert!(next("http://a.example/", 301, location).is_ok());
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

    /// Gives its answers one after the other.
    struct Rebinding(Mutex<Vec<Vec<IpAddr>>>);

    impl Lookup for Rebinding {
        fn lookup(&self, _: String) -> PortFuture<'static, io::Result<Vec<IpAddr>>> {
            let answer = self.0.lock().unwrap().pop().unwrap_or_default();
            Box::pin(async { Ok(answer) })
        }
    }

    // SEC-011: whatever an earlier answer was, it is the present one that is judged and dialled.
    #[test]
    fn sec_011_what_is_handed_to_the_connector_was_judged() {
        let (public, inside): (IpAddr, IpAddr) = ([93, 184, 216, 34].into(), [127, 0, 0, 1].into());
        let answers = vec![Vec::new(), vec![public, inside], vec![inside], vec![public]];
        let resolver = Judged { lookup: Arc::new(Rebinding(Mutex::new(answers))), trusted: false };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let ask = || {
            let found = runtime.block_on(resolver.resolve("rebind.example".parse().unwrap()));
            found
                .map(Iterator::collect::<Vec<_>>)
                .map_err(|error| error.downcast_ref::<Refusal>().unwrap().reason())
        };
        assert_eq!(ask(), Ok(vec![SocketAddr::new(public, 0)]));
        assert_eq!(ask(), Err(Reason::BlockedAddress));
        assert_eq!(ask(), Err(Reason::BlockedAddress));
        assert_eq!(ask(), Err(Reason::Dns));
    }

    #[test]
    fn pieces_are_joined_in_their_order_and_one_is_not_copied() {
        let all = |announced, pieces: &[&'static [u8]]| {
            let mut collected = Collected::new(announced);
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
