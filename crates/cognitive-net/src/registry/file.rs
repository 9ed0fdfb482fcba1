//! One file that a user named by its address, or that an index names which the user configured. Through the same guard as
//! everything else that strangers name; carries no key, keeps nothing and judges no content.

use std::fmt;
use std::sync::Arc;

use cognitive_contract::address::bare_url;
use cognitive_contract::failure::Failure;
use reqwest::{Method, Url};

use super::report::{AskedService, RegistryReport};
use super::transfer::{BodyBound, Setback, Transfer, WebRequest};
use crate::config::Proxies;
use crate::fetch::guard::GuardedClient;
use crate::fetch::{Lookup, Policy, Reason, Refusal};
use crate::redact::Redactor;
use crate::retry::Pause;

/// The longest address.
const MAX_URL: usize = 8 * 1024;

/// Fetches files. Costs nothing until something is fetched.
pub struct FileFetcher {
    transfer: Transfer,
}

impl fmt::Debug for FileFetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileFetcher").finish_non_exhaustive()
    }
}

impl FileFetcher {
    /// A fetcher of public files over `https`, and of whatever is at these origins, such as `http://files.internal:8080`:
    /// those that the user named. Fails if one of them is no origin.
    pub fn new(trusted_origins: &[String]) -> Result<Self, Refusal> {
        let policy = Policy::default().with_any_port();
        let policy = trusted_origins.iter().try_fold(policy, |policy, origin| policy.trusting(origin))?;
        Ok(Self { transfer: Transfer::new(GuardedClient::new(policy, Proxies::default())) })
    }

    /// Says whether proxies are used.
    #[must_use]
    pub fn with_proxies(mut self, proxies: Proxies) -> Self {
        self.transfer.guard = self.transfer.guard.with_proxies(proxies);
        self
    }

    /// Says how waiting is done.
    #[must_use]
    pub fn with_pause(mut self, pause: Arc<dyn Pause>) -> Self {
        self.transfer.pause = pause;
        self
    }

    /// With another resolver.
    #[must_use]
    pub fn with_lookup(mut self, lookup: Arc<dyn Lookup>) -> Self {
        self.transfer.guard = self.transfer.guard.with_lookup(lookup);
        self
    }

    /// The file at an address, if it has at most so many bytes. As long as it moves it may take its time.
    pub async fn get(&self, url: &str, max_bytes: u64) -> Result<Vec<u8>, Failure> {
        let parsed = Url::parse(url).ok().filter(|_| url.len() <= MAX_URL);
        let report = report(url, parsed.as_ref());
        let Some(parsed) = parsed else {
            return Err(report.setback(&Setback::from(Refusal::of(Reason::InvalidUrl, None))));
        };
        let request = WebRequest::new(Method::GET, parsed);
        let answer = self.transfer.fetch(&request, BodyBound::AtMost(max_bytes), None).await;
        let answer = answer.map_err(|setback| report.setback(&setback))?;
        if answer.status == 200 { Ok(answer.body) } else { Err(report.status(&answer)) }
    }
}

/// An address may hold a password or a signature; what is shown of it holds neither.
fn report(url: &str, parsed: Option<&Url>) -> RegistryReport {
    RegistryReport {
        service: AskedService::FileServer,
        host: parsed.and_then(Url::host_str).unwrap_or_default().to_owned(),
        subject: bare_url(url),
        has_login: false,
        redactor: Redactor::new(None, parsed),
    }
}
