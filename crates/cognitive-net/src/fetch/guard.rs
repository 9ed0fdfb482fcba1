//! The guarded HTTP client: it resolves a name once, dials only checked addresses, and checks the connected address
//! again. Every request to an untrusted URL uses this client. Follows no redirect and reads no body: the caller does
//! both, and has each further URL admitted first.
//!
//! If a proxy of the machine applies, the proxy resolves and dials. The URL itself is still checked (scheme, port, IP
//! literal, `localhost`). A public name that resolves to a private address must then be refused by the proxy, because
//! this process never sees the address.

use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use cognitive_contract::ports::PortFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::HeaderMap;
use reqwest::{Body, Client, Method, Response, Url};

use super::address::blocked_reason;
use super::rules::{Policy, Reason, Refusal, check_parsed, judge};
use crate::client::{GuardedSetup, guarded_client};
use crate::config::{Proxies, proxies};
use crate::proxy;
use crate::tls::is_tls;

/// A resolver of host names.
pub trait Lookup: Send + Sync {
    /// Returns all addresses of a host.
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

/// Sends requests to public addresses and to origins trusted by the policy. (SEC-001, SEC-011)
pub(crate) struct GuardedClient {
    policy: Policy,
    lookup: Arc<dyn Lookup>,
    proxies: Proxies,
    /// Can dial public addresses only.
    guarded: OnceLock<Option<Client>>,
    /// For trusted origins only.
    trusting: OnceLock<Option<Client>>,
    /// For requests through a proxy of the machine.
    proxied: OnceLock<Option<Client>>,
}

/// The reason why a request has no answer.
#[derive(Debug)]
pub(crate) enum GuardError {
    /// The request was not sent, or it reached a blocked address.
    Refused(Refusal),
    /// A proxy variable is invalid; the text names it and a remedy.
    Proxy(String),
    /// The request failed.
    Broken(reqwest::Error),
}

impl From<Refusal> for GuardError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl GuardError {
    /// Converts the error into a refusal of this URL.
    pub(crate) fn into_refusal(self, url: &Url) -> Refusal {
        match self {
            Self::Refused(refusal) => refusal,
            Self::Proxy(_) => Refusal::new(Reason::Setup, Some(url)),
            Self::Broken(error) => transport_refusal(&error, url),
        }
    }
}

/// The way in which the address of a connection is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DialWay {
    Judged,
    Trusting,
    Proxied,
}

impl GuardedClient {
    /// Creates a client with the resolver of this machine. HTTP clients are created at the first request.
    pub(crate) fn new(policy: Policy, proxies: Proxies) -> Self {
        Self {
            policy,
            lookup: Arc::new(SystemLookup),
            proxies,
            guarded: OnceLock::new(),
            trusting: OnceLock::new(),
            proxied: OnceLock::new(),
        }
    }

    /// Replaces the resolver.
    pub(crate) fn with_lookup(mut self, lookup: Arc<dyn Lookup>) -> Self {
        self.lookup = lookup;
        self
    }

    /// Sets the proxy setting.
    pub(crate) fn with_proxies(mut self, proxies: Proxies) -> Self {
        self.proxies = proxies;
        self
    }

    /// Returns the policy.
    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Replaces the policy. Must be called before the first request.
    pub(crate) fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Checks a URL that was found in an answer.
    pub(crate) fn admit(&self, url: Url) -> Result<Url, Refusal> {
        check_parsed(url, &self.policy)
    }

    /// Sends one request to an admitted URL. A redirect is returned like any other answer.
    pub(crate) async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Option<Body>,
    ) -> Result<Response, GuardError> {
        let way = self.way(url)?;
        let client = self.client(way).ok_or_else(|| Refusal::new(Reason::Setup, Some(url)))?;
        // reqwest omits the fragment and turns the credentials of the URL into a header.
        let mut request = client.request(method, url.clone()).headers(headers);
        if let Some(body) = body {
            request = request.body(body);
        }
        let response = request.send().await.map_err(GuardError::Broken)?;
        // A second check, on the connected address. It does not rely on the checks above, which already block such
        // addresses.
        let reached = response.remote_addr().map(|address| address.ip());
        if way == DialWay::Judged && reached.is_none_or(|address| blocked_reason(address).is_some()) {
            return Err(Refusal::new(Reason::BlockedAddress, Some(url)).into());
        }
        Ok(response)
    }

    fn way(&self, url: &Url) -> Result<DialWay, GuardError> {
        if proxies(self.proxies, url) == Proxies::OfTheMachine {
            let to = url.origin().ascii_serialization().parse();
            let to = to.map_err(|_| Refusal::new(Reason::InvalidUrl, Some(url)))?;
            let found = proxy::system_proxy(&to).map_err(|error| GuardError::Proxy(error.to_string()))?;
            if found.is_some() {
                return Ok(DialWay::Proxied);
            }
        }
        Ok(if self.policy.trusts(url) { DialWay::Trusting } else { DialWay::Judged })
    }

    fn client(&self, way: DialWay) -> Option<&Client> {
        let (place, proxies) = match way {
            DialWay::Judged => (&self.guarded, Proxies::None),
            DialWay::Trusting => (&self.trusting, Proxies::None),
            DialWay::Proxied => (&self.proxied, Proxies::OfTheMachine),
        };
        let make = || {
            let resolver =
                GuardedResolver { lookup: Arc::clone(&self.lookup), trusted: way != DialWay::Judged };
            let setup = GuardedSetup { connect: self.policy.connect, proxies };
            guarded_client(Arc::new(resolver), setup).ok()
        };
        place.get_or_init(make).as_ref()
    }
}

/// The resolver of the HTTP client: every address that it returns may be dialled. It is queried once per connection,
/// and the socket connects to its answer, so no second lookup can return another address. (SEC-011)
struct GuardedResolver {
    lookup: Arc<dyn Lookup>,
    trusted: bool,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        let (found, trusted) = (self.lookup.lookup(host.clone()), self.trusted);
        Box::pin(async move {
            // Every resolver error is treated as a name without addresses.
            let found = found.await.unwrap_or_default();
            let found = if trusted && !found.is_empty() { found } else { judge(&host, found)? };
            // The HTTP client replaces port 0 with the port of the URL.
            let found = found.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(found) as Addrs)
        })
    }
}

/// Returns the target of a redirect, which still has to be admitted. Refuses a redirect from TLS to plain HTTP.
pub(crate) fn redirect_target(from: &Url, location: &str) -> Result<Url, Refusal> {
    let place = from.join(location).map_err(|_| Refusal::new(Reason::InvalidUrl, Some(from)));
    let mut place = place?;
    if from.scheme() == "https" && place.scheme() != "https" {
        return Err(Refusal::new(Reason::BlockedScheme, Some(&place)));
    }
    // Credentials are not sent to another origin. (MEDIA-007)
    if place.origin() != from.origin() {
        let _cannot_have_any = place.set_username("");
        let _cannot_have_any = place.set_password(None);
    }
    Ok(place)
}

/// Returns the reason why a request got no answer, or why the answer broke off.
pub(crate) fn transport_refusal(error: &reqwest::Error, url: &Url) -> Refusal {
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
    Refusal::new(reason, Some(url))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn credentials_stay_where_they_were_given_out() {
        let from = Url::parse("https://me:pw@a.example/a").unwrap();
        for (location, expected) in [
            ("/b", "https://me:pw@a.example/b"),
            ("https://b.example/b", "https://b.example/b"),
            ("//b.example/b", "https://b.example/b"),
            ("https://you:pw@b.example/b", "https://b.example/b"),
            ("https://a.example:444/b", "https://a.example:444/b"),
            ("https://me:pw@a.example:444/b", "https://a.example:444/b"),
        ] {
            assert_eq!(redirect_target(&from, location).unwrap().as_str(), expected, "{location}");
        }
    }

    #[test]
    fn a_protected_connection_is_never_left_for_an_open_one() {
        let to = |from: &str, location| {
            let found = redirect_target(&Url::parse(from).unwrap(), location);
            found.map(String::from).map_err(|refusal| refusal.reason())
        };
        for open in
            ["http://a.example/", "HTTP://a.example:443/", "file:///etc/passwd", "data:,x", "ftp://h/"]
        {
            assert_eq!(to("https://a.example/", open), Err(Reason::BlockedScheme), "{open}");
        }
        assert!(to("http://a.example/", "http://b.example/").is_ok());
        assert_eq!(to("https://a.example/", "http://["), Err(Reason::InvalidUrl));
    }

    /// Returns its answers one after the other.
    struct Rebinding(Mutex<Vec<Vec<IpAddr>>>);

    impl Lookup for Rebinding {
        fn lookup(&self, _: String) -> PortFuture<'static, io::Result<Vec<IpAddr>>> {
            let answer = self.0.lock().unwrap().pop().unwrap_or_default();
            Box::pin(async { Ok(answer) })
        }
    }

    // SEC-011: the current answer is checked and dialled, whatever an earlier lookup returned.
    #[test]
    fn sec_011_what_is_handed_to_the_connector_was_judged() {
        let (public, inside): (IpAddr, IpAddr) = ([93, 184, 216, 34].into(), [127, 0, 0, 1].into());
        let answers = vec![Vec::new(), vec![public, inside], vec![inside], vec![public]];
        let resolver = GuardedResolver { lookup: Arc::new(Rebinding(Mutex::new(answers))), trusted: false };
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
}
