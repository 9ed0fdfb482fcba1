//! The client for the OCI distribution protocol: manifests and blobs by repository, tag and digest. Uploads are in
//! `push`, the tag list in `tags`. All content returned has the requested digest, or is returned together with its
//! digest. Interprets no manifest and uses no referrers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cognitive_contract::failure::Failure;
use reqwest::Method;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};

use super::credentials::Credentials;
use super::login::{RegistryLogin, RegistryScope};
use super::name::{RegistryHost, check_digest, check_reference, digest_of, is_digest};
use super::report::{RegistryReport, RegistryService};
use super::transfer::{BodyBound, SMALL_ANSWER_TIME, Transfer, WebAnswer, WebRequest};
use crate::client::same_place;
use crate::config::Proxies;
use crate::fetch::guard::GuardedClient;
use crate::fetch::{Lookup, Policy, Refusal};
use crate::retry::Pause;

/// The largest manifest, from the protocol specification.
const MAX_MANIFEST: u64 = 4 * 1024 * 1024;
/// The largest blob. It is held in memory, and its size comes from an untrusted manifest.
const MAX_BLOB: u64 = 512 * 1024 * 1024;
/// The manifest types to accept. A registry may answer 404 for a type that is not requested, or convert it.
const MANIFESTS: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
                         application/vnd.docker.distribution.manifest.v2+json, \
                         application/vnd.docker.distribution.manifest.list.v2+json";
/// The header with the digest of the content that a registry sent or stored.
const CONTENT_DIGEST: &str = "docker-content-digest";

/// A client for one registry. Makes no connection until the first request.
///
/// ```
/// use cognitive_net::registry::OciClient;
///
/// assert!(OciClient::new("ghcr.io", None, false).is_ok());
/// let failure = OciClient::new("ghcr.io/team", None, false).err().unwrap();
/// assert_eq!(failure.message(), "invalid registry host: `ghcr.io/team`");
/// ```
pub struct OciClient {
    pub(crate) host: RegistryHost,
    login: RegistryLogin,
    transfer: Transfer,
}

/// A manifest from a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OciManifest {
    /// The media type reported by the registry; empty if none.
    pub media_type: String,
    /// The digest of the bytes, `sha256:…`, computed locally.
    pub digest: String,
    /// The bytes of the manifest.
    pub bytes: Vec<u8>,
}

/// The way to send a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SendMode {
    /// Reads: follows redirects and retries transient errors.
    Fetch(BodyBound, Option<Duration>),
    /// Writes: sent once.
    Send,
}

impl fmt::Debug for OciClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OciClient").field("host", &self.host.as_written()).finish_non_exhaustive()
    }
}

impl OciClient {
    /// Creates a client for the registry at `host`, as typed by the user: `ghcr.io`, `localhost:5000`. `docker.io` is
    /// Docker Hub. Uses plain HTTP on this machine and if `plain_http` is set; the network path can then read the
    /// credentials. Fails if the text is not a host.
    pub fn new(host: &str, credentials: Option<Credentials>, plain_http: bool) -> Result<Self, Failure> {
        let host = RegistryHost::parse(host, plain_http)?;
        // The user named this origin, so it may be anywhere. URLs that it names may not.
        let policy = Policy::default().with_any_port().with_trusted_origin(host.origin().as_str());
        let guard = GuardedClient::new(policy.unwrap_or_default(), Proxies::default());
        Ok(Self { host, login: RegistryLogin::new(credentials), transfer: Transfer::new(guard) })
    }

    /// Creates a client for a registry that an index names and not the user: only over TLS and at a public address,
    /// unless [`Self::with_trusted_origin`] allows its origin.
    pub fn for_indexed_host(host: &str, credentials: Option<Credentials>) -> Result<Self, Failure> {
        let host = host.strip_prefix("https://").unwrap_or(host);
        let host = RegistryHost::parse(&format!("https://{host}"), false)?;
        let guard = GuardedClient::new(Policy::default().with_any_port(), Proxies::default());
        Ok(Self { host, login: RegistryLogin::new(credentials), transfer: Transfer::new(guard) })
    }

    /// Trusts another origin, such as the token server or the storage of an internal registry:
    /// `https://auth.internal`. Redirects to it are followed and credentials sent to it, although its address is not
    /// public. Fails if the text is not an origin.
    pub fn with_trusted_origin(mut self, origin: &str) -> Result<Self, Refusal> {
        let policy = self.transfer.guard.policy().clone().with_trusted_origin(origin)?;
        self.transfer.guard = self.transfer.guard.with_policy(policy);
        Ok(self)
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

    /// Downloads the manifest with a tag or a digest. Its digest is compared with the requested one and with the one
    /// that the registry reports.
    pub async fn manifest(&self, repository: &str, reference: &str) -> Result<OciManifest, Failure> {
        let repository = self.host.repository(repository)?;
        check_reference(reference)?;
        let report = self.report(&repository, reference);
        let url = self.host.url(&repository, &format!("manifests/{reference}"));
        let request = WebRequest::new(Method::GET, url).with(ACCEPT, HeaderValue::from_static(MANIFESTS));
        let way = SendMode::Fetch(BodyBound::AtMost(MAX_MANIFEST), Some(SMALL_ANSWER_TIME));
        let scope = RegistryScope { repository, push: false };
        let answer = self.exchange(request, way, &scope, &report).await?;
        if answer.status != 200 {
            return Err(report.status(&answer));
        }
        let digest = digest_of(&answer.body);
        if is_digest(reference) && reference != digest {
            return Err(report.wrong_digest(reference, &digest));
        }
        confirm(&answer, &digest, &report)?;
        let kind = answer.header(CONTENT_TYPE).and_then(|kind| kind.split(';').next());
        let media_type = kind.unwrap_or_default().trim().to_owned();
        Ok(OciManifest { media_type, digest, bytes: answer.body })
    }

    /// Downloads the blob with this digest and size. Never reads more than `size` bytes, and returns only content
    /// with this digest.
    pub async fn blob(&self, repository: &str, digest: &str, size: u64) -> Result<Vec<u8>, Failure> {
        let repository = self.host.repository(repository)?;
        check_digest(digest)?;
        let report = self.report(&repository, digest);
        if size > MAX_BLOB {
            return Err(report.too_large(MAX_BLOB));
        }
        let request = WebRequest::new(Method::GET, self.host.url(&repository, &format!("blobs/{digest}")));
        let way = SendMode::Fetch(BodyBound::Exactly(size), None);
        let scope = RegistryScope { repository, push: false };
        let answer = self.exchange(request, way, &scope, &report).await?;
        if answer.status != 200 {
            return Err(report.status(&answer));
        }
        let found = digest_of(&answer.body);
        if found == digest { Ok(answer.body) } else { Err(report.wrong_digest(digest, &found)) }
    }

    /// Returns whether the registry has a blob.
    pub async fn has_blob(&self, repository: &str, digest: &str) -> Result<bool, Failure> {
        let repository = self.host.repository(repository)?;
        check_digest(digest)?;
        self.has(digest, &RegistryScope { repository, push: false }).await
    }

    /// Returns whether the registry has a blob, with the scope of a later push.
    pub(crate) async fn has(&self, digest: &str, scope: &RegistryScope) -> Result<bool, Failure> {
        let report = self.report(&scope.repository, digest);
        let url = self.host.url(&scope.repository, &format!("blobs/{digest}"));
        let way = SendMode::Fetch(BodyBound::Unread, Some(SMALL_ANSWER_TIME));
        let answer = self.exchange(WebRequest::new(Method::HEAD, url), way, scope, &report).await?;
        match answer.status {
            200 => Ok(true),
            404 => Ok(false),
            _ => Err(report.status(&answer)),
        }
    }

    /// Sends a request, and repeats it with credentials if the registry asks for them.
    pub(crate) async fn exchange(
        &self,
        mut request: WebRequest,
        way: SendMode,
        scope: &RegistryScope,
        report: &RegistryReport,
    ) -> Result<WebAnswer, Failure> {
        let is_here = same_place(&request.url, self.host.origin());
        if let Some(header) = self.login.header(scope).filter(|_| is_here) {
            request.headers.insert(AUTHORIZATION, header);
        }
        let answer = self.perform(&request, way, report).await?;
        // Only the registry itself receives credentials; challenges from other hosts are ignored.
        if answer.status != 401 || !is_here || !same_place(&answer.url, self.host.origin()) {
            return Ok(answer);
        }
        let header = self.login.answer(&answer, scope, &self.transfer, report).await?;
        let Some(header) = header else { return Ok(answer) };
        request.headers.insert(AUTHORIZATION, header);
        self.perform(&request, way, report).await
    }

    async fn perform(
        &self,
        request: &WebRequest,
        way: SendMode,
        report: &RegistryReport,
    ) -> Result<WebAnswer, Failure> {
        match way {
            SendMode::Fetch(bound, total) => {
                let answer = self.transfer.fetch(request, bound, total).await;
                answer.map_err(|setback| report.setback(&setback))
            }
            SendMode::Send => {
                let answer = self.transfer.send(request).await;
                answer.map_err(|setback| report.setback_failure("sends the upload to", &setback))
            }
        }
    }

    /// Creates a reporter for errors about an item in a repository.
    pub(crate) fn report(&self, repository: &str, reference: &str) -> RegistryReport {
        RegistryReport {
            service: RegistryService::Registry,
            host: self.host.as_written().to_owned(),
            subject: self.host.subject(repository, reference),
            has_login: self.login.exists(),
            redactor: self.login.redactor(),
        }
    }
}

/// Compares a digest with the one reported by the registry, if that is a SHA-256 digest.
pub(crate) fn confirm(answer: &WebAnswer, digest: &str, report: &RegistryReport) -> Result<(), Failure> {
    let said = answer.header(CONTENT_DIGEST).map(str::trim).filter(|said| is_digest(said));
    match said {
        Some(said) if said != digest => Err(report.wrong_digest(said, digest)),
        _ => Ok(()),
    }
}
