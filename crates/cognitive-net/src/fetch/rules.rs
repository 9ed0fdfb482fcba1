//! The rules for untrusted URLs: `https`, default ports, public addresses, and the origins that the operator trusts.
//! Pure: the caller resolves names. A URL is parsed once, with the parser of the HTTP client, so that check and
//! request cannot disagree on the host.

use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use reqwest::Url;

use super::address::blocked_reason;

/// The longest URL, in bytes. URLs come from callers and are copied into records.
const MAX_LENGTH: usize = 8 * 1024;

/// The rules for fetching. The default is the policy of the specification. (S-04, S-31)
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// Allows `http` in addition to `https`.
    pub allow_http: bool,
    /// The allowed ports.
    pub ports: Vec<u16>,
    /// Allows every port. For files that a person requests: the target is still public and uses TLS.
    pub any_port: bool,
    /// The connection timeout.
    pub connect: Duration,
    /// The time limit for the whole fetch: resolution, redirects, body.
    pub total: Duration,
    trusted: Vec<Url>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            allow_http: false,
            ports: vec![80, 443],
            any_port: false,
            connect: Duration::from_secs(5),
            total: Duration::from_secs(15),
            trusted: Vec::new(),
        }
    }
}

impl Policy {
    /// Allows `http`.
    #[must_use]
    pub fn with_http(mut self) -> Self {
        self.allow_http = true;
        self
    }

    /// Allows exactly these ports.
    #[must_use]
    pub fn with_ports(mut self, ports: impl Into<Vec<u16>>) -> Self {
        self.ports = ports.into();
        self
    }

    /// Allows every port.
    #[must_use]
    pub fn with_any_port(mut self) -> Self {
        self.any_port = true;
        self
    }

    /// Returns whether the port of a URL is allowed.
    fn takes_port(&self, url: &Url) -> bool {
        url.port_or_known_default().is_some_and(|port| self.any_port || self.ports.contains(&port))
    }

    /// Trusts an origin such as `http://media.internal:9000`: its scheme, port and address are not checked. For an
    /// internal media server; every caller can then fetch any file that the server serves. Fails if the text is not
    /// an origin: a path would look like a restriction, but would have no effect.
    pub fn with_trusted_origin(mut self, origin: &str) -> Result<Self, Refusal> {
        let url = Url::parse(origin).map_err(|_| Refusal::new(Reason::InvalidUrl, None))?;
        let bare = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
        let usable =
            matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none();
        if !bare || !usable {
            return Err(Refusal::new(Reason::InvalidUrl, Some(&url)));
        }
        self.trusted.push(url);
        Ok(self)
    }

    /// Returns whether the operator trusts the origin of this URL.
    #[must_use]
    pub(crate) fn trusts(&self, url: &Url) -> bool {
        self.trusted.iter().any(|trusted| trusted.origin() == url.origin())
    }
}

/// The reason for a refusal, in the words of `details.reason`. (C-42)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The text is not a URL.
    InvalidUrl,
    /// The scheme is neither `https` nor another allowed one.
    BlockedScheme,
    /// The port is not allowed.
    BlockedPort,
    /// The address is not public.
    BlockedAddress,
    /// The name cannot be resolved.
    Dns,
    /// The host cannot be reached.
    Refused,
    /// TLS failed.
    Tls,
    /// The time limit was exceeded.
    Timeout,
    /// The server answered with this error status.
    HttpStatus(u16),
    /// There were too many redirects.
    TooManyRedirects,
    /// The body is compressed, although no compression was requested.
    Encoding,
    /// The connection was lost.
    Interrupted,
    /// The HTTP client could not be created.
    Setup,
}

impl Reason {
    /// Returns the word for `details.reason`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::InvalidUrl => "invalid_url",
            Self::BlockedScheme => "blocked_scheme",
            Self::BlockedPort => "blocked_port",
            Self::BlockedAddress => "blocked_address",
            Self::Dns => "dns",
            Self::Refused => "refused",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::HttpStatus(_) => "http_status",
            Self::TooManyRedirects => "too_many_redirects",
            Self::Encoding => "encoding",
            Self::Interrupted => "interrupted",
            Self::Setup => "setup",
        }
    }

    /// Returns whether a rule forbids the URL, as opposed to a failed request.
    #[must_use]
    pub fn is_block(self) -> bool {
        matches!(self, Self::InvalidUrl | Self::BlockedScheme | Self::BlockedPort | Self::BlockedAddress)
    }
}

/// A URL that is not fetched. Its text contains only the host, because the rest of the URL may hold credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    reason: Reason,
    host: String,
}

impl Refusal {
    /// Creates a refusal of this URL; `None` if the text was not a URL.
    #[must_use]
    pub(crate) fn new(reason: Reason, url: Option<&Url>) -> Self {
        Self { reason, host: url.and_then(Url::host_str).unwrap_or_default().to_owned() }
    }

    /// Returns the reason.
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.reason
    }
}

impl Refusal {
    /// Returns the host of the URL; empty if it has none.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Returns the reason as a clause about the URL.
    pub(crate) fn clause(&self) -> &'static str {
        match self.reason {
            Reason::InvalidUrl => "it is not a valid URL",
            Reason::BlockedScheme => "its scheme is not allowed",
            Reason::BlockedPort => "its port is not allowed",
            // The message omits the address, so that attackers cannot use it to map a network.
            Reason::BlockedAddress => "its address is not public",
            Reason::Dns => "its host name cannot be resolved",
            Reason::Refused => "its host cannot be reached",
            Reason::Tls => "no TLS connection is possible",
            Reason::Timeout => "it took too long",
            Reason::HttpStatus(_) => "it answered with an error",
            Reason::TooManyRedirects => "it was redirected too often",
            Reason::Encoding => "it is compressed, which was not requested",
            Reason::Interrupted => "the connection was lost",
            Reason::Setup => "the HTTP client cannot be set up",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = Host(&self.host);
        match self.reason {
            Reason::HttpStatus(status) => write!(f, "the media URL{host} answered {status}"),
            _ => write!(f, "the media URL{host} cannot be fetched: {}", self.clause()),
        }
    }
}

struct Host<'a>(&'a str);

impl fmt::Display for Host<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " at `{}`", self.0) }
    }
}

impl Error for Refusal {}

/// Checks a URL before the request. A host name still has to be resolved, and its addresses checked. (SEC-001)
pub(crate) fn check(url: &str, policy: &Policy) -> Result<Url, Refusal> {
    let parsed = if url.len() > MAX_LENGTH { None } else { Url::parse(url).ok() };
    let parsed = parsed.ok_or_else(|| Refusal::new(Reason::InvalidUrl, None))?;
    check_parsed(parsed, policy)
}

/// Checks a URL that is already parsed, such as a redirect target.
pub(crate) fn check_parsed(url: Url, policy: &Policy) -> Result<Url, Refusal> {
    let refuse = |reason| Err(Refusal::new(reason, Some(&url)));
    let scheme_is_right = url.scheme() == "https" || url.scheme() == "http" && policy.allow_http;
    let trusted = policy.trusts(&url);
    if !trusted && !scheme_is_right {
        return refuse(Reason::BlockedScheme);
    }
    if url.host_str().is_none_or(|host| host.trim_matches('.').is_empty()) {
        return refuse(Reason::InvalidUrl);
    }
    if !trusted && !policy.takes_port(&url) {
        return refuse(Reason::BlockedPort);
    }
    if !trusted && (literal(&url).is_some_and(|address| blocked_reason(address).is_some()) || is_local(&url))
    {
        return refuse(Reason::BlockedAddress);
    }
    Ok(url)
}

/// Returns the address if the host is an IP literal. The parser has normalised every numeric spelling.
pub(crate) fn literal(url: &Url) -> Option<IpAddr> {
    let host = url.host_str()?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.parse().ok()
}

/// Returns whether the host is `localhost` or below it. Both are this machine by definition, whatever a resolver
/// returns.
fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    host == "localhost" || host.ends_with(".localhost")
}

/// Returns the addresses of a host if all of them are public. One private address is enough to refuse the host: it
/// suggests that its owner targets an internal service. (SEC-011)
pub(crate) fn judge(host: &str, addresses: Vec<IpAddr>) -> Result<Vec<IpAddr>, Refusal> {
    let refuse = |reason| Err(Refusal { reason, host: host.to_owned() });
    if addresses.is_empty() {
        return refuse(Reason::Dns);
    }
    if addresses.iter().any(|address| blocked_reason(*address).is_some()) {
        return refuse(Reason::BlockedAddress);
    }
    Ok(addresses)
}

/// Runs all checks on a URL that need no connection. `resolve` returns the addresses of a name.
pub fn check_url(url: &str, resolve: impl Fn(&str) -> Vec<IpAddr>, policy: &Policy) -> Result<Url, Refusal> {
    let url = check(url, policy)?;
    if literal(&url).is_none() && !policy.trusts(&url) {
        let host = url.host_str().unwrap_or_default();
        judge(host, resolve(host))?;
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Texts that are often URLs, and often almost URLs.
    fn urls() -> impl Strategy<Value = String> {
        let pieces = prop::sample::select(vec![
            "127.0.0.1",
            "0x7f",
            "0177",
            "2130706433",
            "1",
            "0",
            ".",
            "::1",
            "::ffff:",
            "[",
            "]",
            "%",
            "%31",
            "２",
            "。",
            "@",
            ":",
            ":80",
            "/",
            "\\",
            "#",
            "?",
            "localhost",
            "a.example",
            "xn--",
            "-",
            "\t",
            " ",
            "\u{ad}",
            "é",
            "93.184.216.34",
        ]);
        let scheme = prop::sample::select(vec![
            "http://",
            "https://",
            "HTTP:",
            "https:/",
            "http:\\\\",
            "file://",
            "data:",
            "",
        ]);
        (scheme, prop::collection::vec(pieces, 0..8))
            .prop_map(|(scheme, pieces)| scheme.to_owned() + &pieces.concat())
    }

    proptest! {
        // SEC-001: if every name resolves to this machine, only URLs with a public IP literal pass.
        #[test]
        fn sec_001_no_spelling_gets_past_the_rules(url in urls()) {
            let policy = Policy::default().with_http();
            if let Ok(url) = check_url(&url, |_| vec![[127, 0, 0, 1].into()], &policy) {
                prop_assert!(literal(&url).is_some_and(|address| blocked_reason(address).is_none()), "{}", url);
            }
        }
    }

    fn reason(url: &str, policy: &Policy) -> Option<Reason> {
        check(url, policy).err().map(|refusal| refusal.reason())
    }

    #[test]
    fn https_on_usual_ports_unless_configured() {
        let usual = Policy::default();
        for (url, expected) in [
            ("https://a.example/x", None),
            ("https://a.example:443/x", None),
            ("https://a.example:80/x", None),
            ("https://93.184.216.34/x", None),
            ("https://[2606:4700::1111]/x", None),
            ("https://a.example:8443/x", Some(Reason::BlockedPort)),
            ("https://a.example:22/x", Some(Reason::BlockedPort)),
            ("http://a.example/x", Some(Reason::BlockedScheme)),
            ("data:image/png;base64,AA==", Some(Reason::BlockedScheme)),
            ("https://", Some(Reason::InvalidUrl)),
            ("https://./x", Some(Reason::InvalidUrl)),
        ] {
            assert_eq!(reason(url, &usual), expected, "{url}");
        }
        let open = usual.with_http().with_ports([8080]);
        assert_eq!(reason("http://a.example:8080/x", &open), None);
        assert_eq!(reason("http://a.example/x", &open), Some(Reason::BlockedPort));
        let endless = format!("https://a.example/{}", "x".repeat(MAX_LENGTH));
        assert_eq!(reason(&endless, &open), Some(Reason::InvalidUrl));
    }

    #[test]
    fn an_origin_is_trusted_and_its_neighbours_are_not() {
        let policy = Policy::default().with_trusted_origin("http://Media.Internal:9000").unwrap();
        assert_eq!(reason("http://media.internal:9000/x", &policy), None);
        for (url, expected) in [
            ("http://media.internal/x", Reason::BlockedScheme),
            ("https://media.internal:9000/x", Reason::BlockedPort),
            ("http://media.internal.example:9000/x", Reason::BlockedScheme),
            ("http://10.0.0.5:9000/x", Reason::BlockedScheme),
        ] {
            assert_eq!(reason(url, &policy), Some(expected), "{url}");
        }
        let inside = Policy::default().with_trusted_origin("https://10.0.0.5").unwrap();
        assert_eq!(reason("https://10.0.0.5/x", &inside), None);
        assert_eq!(reason("https://10.0.0.6/x", &inside), Some(Reason::BlockedAddress));
        for wrong in ["media.internal", "http://h/path", "http://h?q", "http://me:pw@h", "ftp://h", ""] {
            assert!(Policy::default().with_trusted_origin(wrong).is_err(), "{wrong}");
        }
    }

    // SEC-001, SEC-011: the published cases, with `http` allowed so that only the address can block them.
    #[test]
    fn sec_001_urls_and_what_their_names_resolve_to() {
        let policy = Policy::default().with_http();
        let inside = |answers: &'static [&str]| {
            move |_: &str| answers.iter().map(|each| each.parse().unwrap()).collect()
        };
        let of =
            |url: &str, answers| check_url(url, inside(answers), &policy).map_err(|refusal| refusal.reason());
        for url in ["http://127.0.0.1/x.png", "http://2130706433/x.png", "http://[::ffff:127.0.0.1]/x.png"] {
            assert_eq!(of(url, &[]), Err(Reason::BlockedAddress), "{url}");
        }
        let mixed: &[&str] = &["93.184.216.34", "127.0.0.1"];
        for answers in [&["10.0.0.5"][..], &["::1"], mixed] {
            assert_eq!(
                of("https://intern.example/x.png", answers),
                Err(Reason::BlockedAddress),
                "{answers:?}"
            );
        }
        assert!(of("https://cdn.example/x.png", &["93.184.216.34", "2606:4700::1111"]).is_ok());
        assert_eq!(of("https://nobody.example/x.png", &[]), Err(Reason::Dns));
        assert!(Reason::BlockedAddress.is_block() && !Reason::Dns.is_block());
    }

    // ERR-015: a URL may hold a password or a signature.
    #[test]
    fn err_015_a_refusal_names_the_host_and_nothing_else() {
        let url = "https://me:pa55word@10.0.0.1/s3cret/path?token=s1gned";
        let refusal = check(url, &Policy::default()).unwrap_err();
        let shown = format!("{refusal} {refusal:?}");
        assert!(refusal.to_string().starts_with("the media URL at `10.0.0.1` cannot be fetched"), "{shown}");
        for secret in ["me:", "pa55word", "s3cret", "s1gned"] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
}
