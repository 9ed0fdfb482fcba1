//! HTTP clients for everything except model calls, which use `service`: files, media at untrusted URLs, spans. TLS
//! uses ring and the system's root certificates. HTTP/1.1, five seconds to connect, no decompression, no cookies.
//! Follows no redirect that would send a key to another origin.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cognitive_contract::ports::ProviderError;
use reqwest::dns::Resolve;
use reqwest::redirect::{Action, Attempt, Policy};
use reqwest::{Client, ClientBuilder, StatusCode, Url};
use rustls::crypto::ring;

use crate::config::Proxies;
use crate::proxy;

/// The connection timeout of every attempt. A host that does not answer would otherwise use up the time of the whole
/// call.
pub(crate) const CONNECT: Duration = Duration::from_secs(5);
/// The user agent.
pub(crate) const AGENT: &str = concat!("cogn/", env!("CARGO_PKG_VERSION"));
/// The most redirects within one origin, such as to a path with a trailing slash. Without the limit, two addresses
/// could redirect to each other.
const REDIRECTS: usize = 3;
/// The most redirects of a file download: to its host, and from there to a nearby mirror.
const FILE_REDIRECTS: usize = 5;
/// The longest time a download may receive no bytes. Without it, a dead connection would never be noticed.
const SILENCE: Duration = Duration::from_secs(30);

/// Creates a client for the collector at this address.
pub(crate) fn client(base: &Url, proxies: Proxies) -> Result<Client, ProviderError> {
    make(base, proxies, &|| builder(proxies))
}

/// Creates a client for a public file. It sends no key, so it follows redirects to other origins, which file servers
/// use. A connection that receives nothing for [`SILENCE`] is aborted.
pub(crate) fn file_client(base: &Url, proxies: Proxies) -> Result<Client, ProviderError> {
    let policy = || Policy::custom(redirect_file);
    make(base, proxies, &|| builder(proxies).redirect(policy()).read_timeout(SILENCE))
}

/// The settings that differ between the guarded clients.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GuardedSetup {
    /// The connection timeout.
    pub(crate) connect: Duration,
    pub(crate) proxies: Proxies,
}

/// Creates a client for untrusted URLs. Only the given resolver decides which addresses are dialled, redirects are
/// returned like any other answer, and connections are not reused.
pub(crate) fn guarded_client(
    resolver: Arc<dyn Resolve>,
    setup: GuardedSetup,
) -> Result<Client, ProviderError> {
    let made = || {
        builder(setup.proxies)
            .connect_timeout(setup.connect)
            .redirect(Policy::none())
            .referer(false)
            .pool_max_idle_per_host(0)
            .dns_resolver(Arc::clone(&resolver))
    };
    install_tls();
    made().build().or_else(|_| made().tls_certs_only([]).build()).map_err(|_| setup_error())
}

fn make(base: &Url, proxies: Proxies, builder: &dyn Fn() -> ClientBuilder) -> Result<Client, ProviderError> {
    install_tls();
    if proxies == Proxies::OfTheMachine {
        proxy::check_for(base)?;
    }
    // A client without root certificates: it trusts no server.
    let rootless = || builder().tls_certs_only([]).build();
    // Loading the system's root certificates is the slowest step, and a model on this machine needs none.
    let plain = base.scheme() == "http" && proxies == Proxies::None;
    let built = if plain { rootless() } else { builder().build() };
    // A machine without root certificates can still use plain HTTP. TLS connections will fail and report why.
    built.or_else(|_| rootless()).map_err(|_| setup_error())
}

fn setup_error() -> ProviderError {
    ProviderError::Misconfigured("the HTTP client cannot be set up".to_owned())
}

fn builder(proxies: Proxies) -> ClientBuilder {
    let builder = Client::builder()
        .user_agent(AGENT)
        .connect_timeout(CONNECT)
        .tcp_keepalive(Duration::from_secs(30))
        .redirect(Policy::custom(redirect))
        // Attempts are counted and reported, so the client must not retry silently.
        .retry(reqwest::retry::never());
    match proxies {
        Proxies::OfTheMachine => builder,
        Proxies::None => builder.no_proxy(),
    }
}

/// Installs the TLS provider of the process. If the program has already installed one, that one is used.
pub(crate) fn install_tls() {
    static DONE: OnceLock<()> = OnceLock::new();
    DONE.get_or_init(|| {
        let _already_chosen = ring::default_provider().install_default();
    });
}

/// Follows a redirect only within the same origin, and only if method and body stay the same.
fn redirect(attempt: Attempt<'_>) -> Action {
    let kept = matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let same = attempt.previous().last().is_some_and(|from| same_place(from, attempt.url()));
    if kept && same && attempt.previous().len() <= REDIRECTS { attempt.follow() } else { attempt.stop() }
}

/// Follows a redirect to any origin, but never from TLS to plain HTTP.
fn redirect_file(attempt: Attempt<'_>) -> Action {
    let was_safe = attempt.previous().iter().any(|from| from.scheme() == "https");
    if was_safe && attempt.url().scheme() != "https" {
        return attempt.error("it was redirected to an address without TLS");
    }
    if attempt.previous().len() > FILE_REDIRECTS {
        return attempt.error("it was redirected too often");
    }
    attempt.follow()
}

pub(crate) fn same_place(from: &Url, to: &Url) -> bool {
    from.origin() == to.origin()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_scheme_host_and_port() {
        let url = |text: &str| Url::parse(text).unwrap();
        assert!(same_place(&url("https://a/x"), &url("https://a:443/y")));
        for other in ["http://a/x", "https://b/x", "https://a:444/x", "https://a.b/x"] {
            assert!(!same_place(&url("https://a/x"), &url(other)), "{other}");
        }
    }

    #[test]
    fn clients_can_be_made_more_than_once() {
        for base in ["http://a", "https://a"] {
            let base = Url::parse(base).unwrap();
            assert!(client(&base, Proxies::None).is_ok());
            assert!(client(&base, Proxies::OfTheMachine).is_ok());
        }
    }
}
