//! Authenticates to a registry: turns its challenge into a header, with a token if the registry requires one. Caches
//! tokens for the lifetime of the client. Credentials are sent only to the origin that the user named, and to the
//! token server that this origin names, if the guard admits it.

use std::collections::HashMap;

use bytes::Bytes;
use cognitive_contract::failure::Failure;
use cognitive_contract::lock::Lock;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, Url};
use serde::Deserialize;

use super::challenge::{AuthChallenge, TokenPlace, challenges};
use super::credentials::{Credentials, LoginKind, basic_header, bearer_header};
use super::report::RegistryReport;
use super::transfer::{BodyBound, SMALL_ANSWER_TIME, Setback, Transfer, WebAnswer, WebRequest};
use crate::redact::Redactor;
use crate::secret::Secret;

/// The largest token answer. A token has a few kilobytes.
const MAX_TOKEN_ANSWER: u64 = 64 * 1024;
/// The longest URL of a token server, in bytes. It comes from an untrusted server.
const MAX_REALM: usize = 8 * 1024;
/// The client id for token requests.
const CLIENT_ID: &str = "cogn";

/// A repository and the intended access.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RegistryScope {
    pub(crate) repository: String,
    /// True for write access.
    pub(crate) push: bool,
}

/// The credentials and the tokens received for them.
pub(crate) struct RegistryLogin {
    credentials: Option<Credentials>,
    given: Lock<GivenTokens>,
}

#[derive(Default)]
struct GivenTokens {
    headers: HashMap<RegistryScope, HeaderValue>,
    /// The received tokens, for the redactor.
    tokens: Vec<Secret>,
}

/// The answer of a token server.
#[derive(Deserialize)]
struct TokenAnswer {
    token: Option<String>,
    access_token: Option<String>,
}

impl RegistryLogin {
    pub(crate) fn new(credentials: Option<Credentials>) -> Self {
        Self { credentials, given: Lock::default() }
    }

    pub(crate) fn exists(&self) -> bool {
        self.credentials.is_some()
    }

    /// Returns a redactor for the credentials and all received tokens.
    pub(crate) fn redactor(&self) -> Redactor {
        let own = self.credentials.as_ref().map(|credentials| credentials.secret().clone());
        Redactor::from_secrets(own.into_iter().chain(self.given.lock().tokens.iter().cloned()))
    }

    /// Returns the header that is known to be required.
    pub(crate) fn header(&self, scope: &RegistryScope) -> Option<HeaderValue> {
        match self.credentials.as_ref().map(Credentials::kind) {
            Some(LoginKind::Bearer(token)) => bearer_header(token),
            _ => self.given.lock().headers.get(scope).cloned(),
        }
    }

    /// Returns the header that a challenge requires; `None` if the credentials cannot answer it.
    pub(crate) async fn answer(
        &self,
        challenged: &WebAnswer,
        scope: &RegistryScope,
        transfer: &Transfer,
        report: &RegistryReport,
    ) -> Result<Option<HeaderValue>, Failure> {
        let kind = self.credentials.as_ref().map(Credentials::kind);
        if matches!(kind, Some(LoginKind::Bearer(_))) {
            // The registry has already refused the only token.
            return Ok(None);
        }
        let wanted = challenges(&challenged.headers);
        let place = wanted.iter().find_map(|challenge| match challenge {
            AuthChallenge::Bearer(place) => Some(place),
            AuthChallenge::Basic => None,
        });
        let header = match (place, kind) {
            (Some(place), _) => {
                let token = self.token(place, scope, transfer, report).await?;
                let header =
                    bearer_header(&token).ok_or_else(|| report.nonsense("returned an invalid token"))?;
                self.given.lock().tokens.push(token);
                header
            }
            (None, Some(LoginKind::Basic { user, password })) if wanted.contains(&AuthChallenge::Basic) => {
                basic_header(user, password).ok_or_else(|| report.invalid_credentials())?
            }
            _ => return Ok(None),
        };
        self.given.lock().headers.insert(scope.clone(), header.clone());
        Ok(Some(header))
    }

    async fn token(
        &self,
        place: &TokenPlace,
        scope: &RegistryScope,
        transfer: &Transfer,
        report: &RegistryReport,
    ) -> Result<Secret, Failure> {
        let refused = |setback: &Setback| report.setback_failure("sends the login to", setback);
        let realm = Url::parse(&place.realm).ok().filter(|_| place.realm.len() <= MAX_REALM);
        let nowhere = || report.nonsense("requires a token but names no address for it");
        // The guard decides whether the token server may be contacted, before anything is sent.
        let mut realm = realm.ok_or_else(nowhere)?;
        // Credentials in this URL do not come from the user.
        let _cannot_have_any = realm.set_username("");
        let _cannot_have_any = realm.set_password(None);
        let wishes = wishes(place, scope);
        let answer = match self.credentials.as_ref().map(Credentials::kind) {
            Some(LoginKind::Identity(token)) => {
                transfer.send(&exchange(realm, &wishes, token)).await.map_err(|setback| refused(&setback))?
            }
            kind => {
                realm.query_pairs_mut().extend_pairs(&wishes);
                let mut request = WebRequest::new(Method::GET, realm);
                if let Some(LoginKind::Basic { user, password }) = kind {
                    let header = basic_header(user, password).ok_or_else(|| report.invalid_credentials())?;
                    request = request.with(AUTHORIZATION, header);
                }
                let bound = BodyBound::AtMost(MAX_TOKEN_ANSWER);
                let answer = transfer.fetch(&request, bound, Some(SMALL_ANSWER_TIME)).await;
                answer.map_err(|setback| refused(&setback))?
            }
        };
        if answer.status != 200 {
            return Err(report.status(&answer));
        }
        let given: Option<TokenAnswer> = serde_json::from_slice(&answer.body).ok();
        let token = given.and_then(|given| given.token.or(given.access_token)).and_then(Secret::new);
        token.ok_or_else(|| report.nonsense("returned no token"))
    }
}

/// Returns the service and the scopes of a token request.
fn wishes(place: &TokenPlace, scope: &RegistryScope) -> Vec<(&'static str, String)> {
    let asked = place.scope.as_deref().filter(|asked| !asked.trim().is_empty());
    let own = format!("repository:{}:pull", scope.repository);
    let scopes = asked.unwrap_or(&own).split_whitespace().map(|each| with_push_access(each, scope.push));
    let service = place.service.iter().map(|service| ("service", service.clone()));
    service.chain(scopes.map(|scope| ("scope", scope))).collect()
}

/// Adds push access to the scope if the client will push. The first request of a push only reads, so its challenge
/// asks for less than the push needs. Some registries then answer the push with 403 and no new challenge.
fn with_push_access(scope: &str, push: bool) -> String {
    let actions = scope.rsplit_once(':').map_or("", |(_, actions)| actions);
    let may_push = actions.split(',').any(|action| matches!(action, "push" | "*"));
    let is_repository = scope.starts_with("repository:");
    if push && is_repository && !may_push { format!("{scope},push") } else { scope.to_owned() }
}

/// Builds the request that exchanges an identity token for a registry token.
fn exchange(realm: Url, wishes: &[(&'static str, String)], token: &Secret) -> WebRequest {
    let mut form = realm.clone();
    form.set_query(None);
    form.query_pairs_mut()
        .append_pair("grant_type", "refresh_token")
        .append_pair("client_id", CLIENT_ID)
        .append_pair("refresh_token", token.reveal())
        .extend_pairs(wishes);
    let body = Bytes::from(form.query().unwrap_or_default().to_owned());
    let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
    WebRequest::new(Method::POST, realm).with(CONTENT_TYPE, kind).with_body(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_push_asks_for_the_right_to_push_at_once() {
        for (scope, expected) in [
            ("repository:a/b:pull", "repository:a/b:pull,push"),
            ("repository:a/b:pull,push", "repository:a/b:pull,push"),
            ("repository:a/b:*", "repository:a/b:*"),
            ("repository:h:5000/a:pull", "repository:h:5000/a:pull,push"),
            ("registry:catalog:read", "registry:catalog:read"),
        ] {
            assert_eq!(with_push_access(scope, true), expected);
            assert_eq!(with_push_access(scope, false), scope);
        }
    }

    #[test]
    fn a_challenge_without_a_scope_is_about_what_was_asked() {
        let scope = RegistryScope { repository: "a/b".to_owned(), push: true };
        let place = TokenPlace { realm: "https://h".to_owned(), service: None, scope: None };
        assert_eq!(wishes(&place, &scope), [("scope", "repository:a/b:pull,push".to_owned())]);
        let place = TokenPlace {
            service: Some("s".to_owned()),
            scope: Some("repository:a/b:pull repository:c:pull".to_owned()),
            ..place
        };
        let found: Vec<String> =
            wishes(&place, &scope).into_iter().map(|(name, value)| name.to_owned() + &value).collect();
        assert_eq!(found, ["services", "scoperepository:a/b:pull,push", "scoperepository:c:pull,push"]);
    }
}
