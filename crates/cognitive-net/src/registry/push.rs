//! What is sent to a registry: blobs in one piece each, and the manifest that names them. Sent once: what became of a
//! request that got no answer is not known here, and a blob that did arrive is found by the next push.

use bytes::Bytes;
use cognitive_contract::failure::Failure;
use reqwest::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use reqwest::{Method, Url};

use super::login::RegistryScope;
use super::name::{check_reference, digest_of, is_digest};
use super::oci::{AskedWay, OciClient, confirm};
use super::report::RegistryReport;
use super::transfer::{Setback, WebRequest};
use crate::fetch::guard::redirected;

impl OciClient {
    /// Puts a blob into a repository, unless it is there already; gives its digest.
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
        let request = WebRequest::new(Method::PUT, place).with(CONTENT_TYPE, kind).carrying(body);
        let answer = self.exchange(request, AskedWay::Send, &scope, &report).await?;
        match answer.status {
            200 | 201 | 204 => confirm(&answer, &digest, &report).map(|()| digest),
            _ => Err(report.status(&answer)),
        }
    }

    /// Puts a manifest into a repository, by a tag or by its digest; gives its digest.
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
        let request = WebRequest::new(Method::PUT, url).with(CONTENT_TYPE, kind).carrying(body);
        let scope = RegistryScope { repository, push: true };
        let answer = self.exchange(request, AskedWay::Send, &scope, &report).await?;
        match answer.status {
            200 | 201 | 204 => confirm(&answer, &digest, &report).map(|()| digest),
            _ => Err(report.status(&answer)),
        }
    }

    /// Asks where a blob is to be sent. The registry may name a place of its own or another host; the latter has to pass
    /// the guard when it is asked, and gets no login.
    async fn upload_place(
        &self,
        digest: &str,
        scope: &RegistryScope,
        report: &RegistryReport,
    ) -> Result<Url, Failure> {
        let from = self.host.url(&scope.repository, "blobs/uploads/");
        let request = WebRequest::new(Method::POST, from.clone());
        let answer = self.exchange(request, AskedWay::Send, scope, report).await?;
        if answer.status != 202 {
            return Err(report.status(&answer));
        }
        let location = answer.header(LOCATION);
        let location = location.ok_or_else(|| report.nonsense("does not say where the upload goes"))?;
        let place = redirected(&from, location).map_err(Setback::from);
        let mut place = place.map_err(|setback| report.setback_of("sends the upload to", &setback))?;
        place.query_pairs_mut().append_pair("digest", digest);
        Ok(place)
    }
}
