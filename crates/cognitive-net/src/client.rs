//! The HTTP clients for everything but calls of models, which have `service`: files, media of strangers, spans. TLS with
//! ring and the roots of the system, HTTP/1.1, five seconds to connect, no decompression, no cookies.
//! Follows no redirect that would carry a key to another place.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cognitive_contract::ports::ProviderError;
use reqwest::dns::Resolve;
use reqwest::redirect::{Action, Attempt, Policy};
use reqwest::{Client, ClientBuilder, StatusCode, Url};
use rustls::crypto::ring;

use crate::config::Proxies;
use crate::proxy;

/// The time for a connection, of every try.
pub(crate) const CONNECT: Duration = Duration::from_secs(5);
/// Who asks.
pub(crate) const AGENT: &str = concat!("cogn/", env!("CARGO_PKG_VERSION"));
/// Redirects within the same place, such as to a path with a slash at its end.
const REDIRECTS: usize = 3;
/// Redirects of a file: to its place, and from there to a copy nearby.
const FILE_REDIRECTS: usize = 5;
/// How long a download may stand still.
const SILENCE: Duration = Duration::from_secs(30);

/// Makes a client for the collector at this address.
pub(crate) fn client(base: &Url, proxies: Proxies) -> Result<Client, ProviderError> {
    make(base, proxies, &|| builder(proxies))
}

/// Makes a client for a public file. It carries no key, so it may be sent to another place, as file servers do; a
/// connection on which nothing arrives for a while is given up.
pub(crate) fn file_client(base: &Url, proxies: Proxies) -> Result<Client, ProviderError> {
    let policy = || Policy::custom(redirect_file);
    make(base, proxies, &|| builder(proxies).redirect(policy()).read_timeout(SILENCE))
}

/// What differs between the clients of the guard.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GuardedSetup {
    /// The time for a connection.
    pub(crate) connect: Duration,
    pub(crate) proxies: Proxies,
}

/// Makes a client for addresses that strangers name: nobody but this resolver says where it connects, a redirect is an
/// answer like any other, and no connection is used twice.
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
    made().build().or_else(|_| made().tls_certs_only([]).build()).map_err(|_| not_made())
}

fn make(base: &Url, proxies: Proxies, builder: &dyn Fn() -> ClientBuilder) -> Result<Client, ProviderError> {
    install_tls();
    if proxies == Proxies::OfTheMachine {
        proxy::check_for(base)?;
    }
    // A client that trusts nobody.
    let rootless = || builder().tls_certs_only([]).build();
    // Reading the root certificates of the system takes longer than all the rest, and a model on this machine needs none.
    let plain = base.scheme() == "http" && proxies == Proxies::None;
    let built = if plain { rootless() } else { builder().build() };
    // A machine without any can be used all the same; TLS will fail, and say so.
    built.or_else(|_| rootless()).map_err(|_| not_made())
}

fn not_made() -> ProviderError {
    ProviderError::Misconfigured("the HTTP client cannot be set up".to_owned())
}

fn builder(proxies: Proxies) -> ClientBuilder {
    let builder = Client::builder()
        .user_agent(AGENT)
        .connect_timeout(CONNECT)
        .tcp_keepalive(Duration::from_secs(30))
        .redirect(Policy::custom(redirect))
        // Tries are counted and reported; none may happen behind our back.
        .retry(reqwest::retry::never());
    match proxies {
        Proxies::OfTheMachine => builder,
        Proxies::None => builder.no_proxy(),
    }
}

/// The process has one TLS provider. Somebody else may have chosen it already; then that one serves as well.
pub(crate) fn install_tls() {
    static DONE: OnceLock<()> = OnceLock::new();
    DONE.get_or_init(|| {
        let _already_chosen = ring::default_provider().install_default();
    });
}

/// Only to the same place, and only where the method and the body stay the same.
fn redirect(attempt: Attempt<'_>) -> Action {
    let kept = matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let same = attempt.previous().last().is_some_and(|from| same_place(from, attempt.url()));
    if kept && same && attempt.previous().len() <= REDIRECTS { attempt.follow() } else { attempt.stop() }
}

/// Anywhere, but never from a protected connection to an open one.
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
