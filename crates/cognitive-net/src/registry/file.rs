//! Downloads one file from a URL given by the user or by an index that the user configured. Uses the guard for
//! untrusted URLs; sends no key, caches nothing and does not check the content.

use std::fmt;
use std::sync::Arc;

use cognitive_contract::address::bare_url;
use cognitive_contract::failure::Failure;
use reqwest::{Method, Url};

use super::report::{RegistryReport, RegistryService};
use super::transfer::{BodyBound, Setback, Transfer, WebRequest};
use crate::config::Proxies;
use crate::fetch::guard::GuardedClient;
use crate::fetch::{Lookup, Policy, Reason, Refusal};
use crate::redact::Redactor;
use crate::retry::Pause;

/// The longest URL, in bytes. URLs come from manifests and are copied into messages.
const MAX_URL: usize = 8 * 1024;

/// Downloads files. The HTTP client is created at the first download.
pub struct FileFetcher {
    transfer: Transfer,
}

impl fmt::Debug for FileFetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileFetcher").finish_non_exhaustive()
    }
}

impl FileFetcher {
    /// Creates a fetcher for public files over `https`, and for any file at these user-named origins, such as
    /// `http://files.internal:8080`. Fails if one of them is not an origin.
    pub fn new(trusted_origins: &[String]) -> Result<Self, Refusal> {
        let policy = Policy::default().with_any_port();
        let policy =
            trusted_origins.iter().try_fold(policy, |policy, origin| policy.with_trusted_origin(origin))?;
        Ok(Self { transfer: Transfer::new(GuardedClient::new(policy, Proxies::default())) })
    }

    /// Sets the proxy setting.
    #[must_use]
    pub fn with_proxies(mut self, proxies: Proxies) -> Self {
        self.transfer.guard = self.transfer.guard.with_proxies(proxies);
        self
    }

    /// Sets the clock and jitter for the pauses between attempts.
    #[must_use]
    pub fn with_pause(mut self, pause: Arc<dyn Pause>) -> Self {
        self.transfer.pause = pause;
        self
    }

    /// Replaces the resolver.
    #[must_use]
    pub fn with_lookup(mut self, lookup: Arc<dyn Lookup>) -> Self {
        self.transfer.guard = self.transfer.guard.with_lookup(lookup);
        self
    }

    /// Downloads the file at a URL, if it has at most `max_bytes` bytes. There is no overall time limit while bytes
    /// arrive.
    pub async fn get(&self, url: &str, max_bytes: u64) -> Result<Vec<u8>, Failure> {
        let parsed = Url::parse(url).ok().filter(|_| url.len() <= MAX_URL);
        let report = report(url, parsed.as_ref());
        let Some(parsed) = parsed else {
            return Err(report.setback(&Setback::from(Refusal::new(Reason::InvalidUrl, None))));
        };
        let request = WebRequest::new(Method::GET, parsed);
        let answer = self.transfer.fetch(&request, BodyBound::AtMost(max_bytes), None).await;
        let answer = answer.map_err(|setback| report.setback(&setback))?;
        if answer.status == 200 { Ok(answer.body) } else { Err(report.status(&answer)) }
    }
}

/// A URL may contain a password or a signature; the shown form contains neither.
fn report(url: &str, parsed: Option<&Url>) -> RegistryReport {
    RegistryReport {
        service: RegistryService::FileServer,
        host: parsed.and_then(Url::host_str).unwrap_or_default().to_owned(),
        subject: bare_url(url),
        has_login: false,
        redactor: Redactor::new(None, parsed),
    }
}
