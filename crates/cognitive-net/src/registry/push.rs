//! Uploads to a registry: each blob in one request, then the manifest that lists them. Never retries: the state of an
//! unanswered request is unknown, and the next push finds a blob that did arrive.

use bytes::Bytes;
use cognitive_contract::failure::Failure;
use reqwest::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use reqwest::{Method, Url};

use super::login::RegistryScope;
use super::name::{check_reference, digest_of, is_digest};
use super::oci::{OciClient, SendMode, confirm};
use super::report::RegistryReport;
use super::transfer::{Setback, WebRequest};
use crate::fetch::guard::redirect_target;

impl OciClient {
    /// Uploads a blob, unless the repository has it already. Returns its digest.
    pub async fn put_blob(&self, repository: &str, bytes: &[u8]) -> Result<String, Failure> {
        let repository = self.host.repository(repository)?;
        let digest = digest_of(bytes);
        let scope = RegistryScope { repository, push: true };
        if self.has(&digest, &scope).await? {
            return Ok(digest);
        }
        let report = self.report(&scope.repository, &digest);
        let place = self.upload_place(&digest, &scope, &report).await?;
        let kind = HeaderValue::from_static("application/octet-stream");
        let body = Bytes::copy_from_slice(bytes);
        let request = WebRequest::new(Method::PUT, place).with(CONTENT_TYPE, kind).with_body(body);
        let answer = self.exchange(request, SendMode::Send, &scope, &report).await?;
        match answer.status {
            200 | 201 | 204 => confirm(&answer, &digest, &report).map(|()| digest),
            _ => Err(report.status(&answer)),
        }
    }

    /// Uploads a manifest under a tag or its digest. Returns its digest.
    pub async fn put_manifest(
        &self,
        repository: &str,
        reference: &str,
        media_type: &str,
        bytes: &[u8],
    ) -> Result<String, Failure> {
        let repository = self.host.repository(repository)?;
        check_reference(reference)?;
        let report = self.report(&repository, reference);
        let digest = digest_of(bytes);
        if is_digest(reference) && reference != digest {
            return Err(report.not_its_digest(&digest));
        }
        let kind = HeaderValue::from_str(media_type).map_err(|_| report.no_media_type())?;
        let url = self.host.url(&repository, &format!("manifests/{reference}"));
        let body = Bytes::copy_from_slice(bytes);
        let request = WebRequest::new(Method::PUT, url).with(CONTENT_TYPE, kind).with_body(body);
        let scope = RegistryScope { repository, push: true };
        let answer = self.exchange(request, SendMode::Send, &scope, &report).await?;
        match answer.status {
            200 | 201 | 204 => confirm(&answer, &digest, &report).map(|()| digest),
            _ => Err(report.status(&answer)),
        }
    }

    /// Requests the upload URL of a blob. The registry may name a path or another host. Another host must pass the
    /// guard and receives no credentials.
    async fn upload_place(
        &self,
        digest: &str,
        scope: &RegistryScope,
        report: &RegistryReport,
    ) -> Result<Url, Failure> {
        let from = self.host.url(&scope.repository, "blobs/uploads/");
        let request = WebRequest::new(Method::POST, from.clone());
        let answer = self.exchange(request, SendMode::Send, scope, report).await?;
        if answer.status != 202 {
            return Err(report.status(&answer));
        }
        let location = answer.header(LOCATION);
        let location = location.ok_or_else(|| report.nonsense("names no address for the upload"))?;
        let place = redirect_target(&from, location).map_err(Setback::from);
        let mut place = place.map_err(|setback| report.setback_failure("sends the upload to", &setback))?;
        place.query_pairs_mut().append_pair("digest", digest);
        Ok(place)
    }
}
