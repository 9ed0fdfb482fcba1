//! Opens connections to a service: directly or through the machine's proxy, with TLS for `https`. Five seconds to
//! connect, the system's root certificates, HTTP/1.1. Refuses unknown kinds of proxies.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Intercept;
use rustls::{ClientConfig, RootCertStore};
use tower_service::Service as _;

use super::Trouble;
use super::line::{Carrier, Line};
use crate::client::{CONNECT, install_tls};
use crate::platform;

/// TCP keepalive: the idle time before the first probe, then the interval and the number of further probes. Without
/// probes, a connection that a firewall dropped is noticed only by the timeout of a call.
const SILENCE: Duration = Duration::from_secs(30);
const ASK_AGAIN: Duration = Duration::from_secs(15);
const ASKED: u32 = 3;
/// The longest time without an acknowledgement; after it the connection counts as dead.
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// Opens connections to one origin.
pub(crate) struct Dialer {
    to: Uri,
    connector: HttpsConnector<HttpConnector>,
    tls: Arc<ClientConfig>,
    proxy: Option<Intercept>,
}

impl Dialer {
    /// Creates a dialer for the origin of this URI, directly or through a proxy. Makes no connection.
    pub(crate) fn new(to: Uri, proxy: Option<Intercept>) -> Self {
        install_tls();
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        // The timeout is shared by all addresses of a name.
        http.set_connect_timeout(Some(CONNECT));
        http.set_keepalive(Some(SILENCE));
        http.set_keepalive_interval(Some(ASK_AGAIN));
        http.set_keepalive_retries(Some(ASKED));
        platform::limit_unacknowledged(&mut http, UNACKNOWLEDGED);
        // Loading the system's root certificates is the slowest step, and a model on this machine needs none.
        let plain = [Some(&to), proxy.as_ref().map(Intercept::uri)]
            .into_iter()
            .flatten()
            .all(|uri| uri.scheme_str() == Some("http"));
        let tls = Arc::new(if plain { without_roots() } else { trusting_the_system() });
        let connector = HttpsConnector::from((http, Arc::clone(&tls)));
        Self { to, connector, tls, proxy }
    }

    /// Returns the proxy if it can read the requests, because they are sent without TLS.
    pub(crate) fn reader(&self) -> Option<&Intercept> {
        self.proxy.as_ref().filter(|_| self.to.scheme_str() == Some("http"))
    }

    /// Opens a connection.
    pub(crate) async fn dial(&self) -> Result<Box<Line>, Trouble> {
        let carrier = tokio::time::timeout(CONNECT, self.carrier()).await.map_err(|_| Trouble::Late)?;
        let line =
            Line::connect_over(carrier.map_err(Trouble::Unreached)?).await.map_err(Trouble::Unanswered)?;
        Ok(Box::new(line))
    }

    async fn carrier(&self) -> Result<Box<dyn Carrier>, Box<dyn Error + Send + Sync>> {
        let mut connector = self.connector.clone();
        let Some(proxy) = &self.proxy else { return Ok(Box::new(connector.call(self.to.clone()).await?)) };
        if !matches!(proxy.uri().scheme_str(), Some("http" | "https")) {
            return Err("the proxy is neither `http://` nor `https://`".into());
        }
        if self.reader().is_some() {
            return Ok(Box::new(connector.call(proxy.uri().clone()).await?));
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), connector);
        if let Some(auth) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(auth.clone());
        }
        let mut connector = HttpsConnector::from((tunnel, Arc::clone(&self.tls)));
        Ok(Box::new(connector.call(self.to.clone()).await?))
    }
}

/// Without root certificates, plain HTTP still works. TLS connections will fail and report why.
fn trusting_the_system() -> ClientConfig {
    match ClientConfig::builder().try_with_platform_verifier() {
        Ok(builder) => builder.with_no_client_auth(),
        Err(_) => without_roots(),
    }
}

fn without_roots() -> ClientConfig {
    ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth()
}
