//! How a registry is told who asks: its challenge becomes a header, by way of a token where it wants one. Remembers what
//! was given for as long as the client lives. Credentials go to the origin that the user named and to the giver of tokens
//! that this origin names, if the guard lets it through; never to anybody else.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use cognitive_contract::failure::Failure;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, Url};
use serde::Deserialize;

use super::challenge::{AuthChallenge, TokenPlace, challenges};
use super::credentials::{Credentials, LoginKind, basic_header, bearer_header};
use super::report::RegistryReport;
use super::transfer::{BodyBound, SMALL_ANSWER_TIME, Setback, Transfer, WebAnswer, WebRequest};
use crate::redact::Redactor;
use crate::secret::Secret;

/// A token is a few kilobytes.
const MAX_TOKEN_ANSWER: u64 = 64 * 1024;
/// The longest address of a giver of tokens.
const MAX_REALM: usize = 8 * 1024;
/// Who asks for tokens.
const CLIENT_ID: &str = "cogn";

/// What is to be done with a repository.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RegistryScope {
    pub(crate) repository: String,
    /// Whether something is sent there.
    pub(crate) push: bool,
}

/// Who asks, and what was given for it.
pub(crate) struct RegistryLogin {
    credentials: Option<Credentials>,
    given: Mutex<GivenTokens>,
}

#[derive(Default)]
struct GivenTokens {
    headers: HashMap<RegistryScope, HeaderValue>,
    /// So that no text repeats them.
    tokens: Vec<Secret>,
}

/// What a giver of tokens answers.
#[derive(Deserialize)]
struct TokenAnswer {
    token: Option<String>,
    access_token: Option<String>,
}

impl RegistryLogin {
    pub(crate) fn new(credentials: Option<Credentials>) -> Self {
        Self { credentials, given: Mutex::default() }
    }

    pub(crate) fn exists(&self) -> bool {
        self.credentials.is_some()
    }

    /// Removes everything secret from texts.
    pub(crate) fn redactor(&self) -> Redactor {
        let own = self.credentials.as_ref().map(|credentials| credentials.secret().clone());
        Redactor::of(own.into_iter().chain(self.given().tokens.iter().cloned()))
    }

    /// The header that is known to be wanted.
    pub(crate) fn header(&self, scope: &RegistryScope) -> Option<HeaderValue> {
        match self.credentials.as_ref().map(Credentials::kind) {
            Some(LoginKind::Bearer(token)) => bearer_header(token),
            _ => self.given().headers.get(scope).cloned(),
        }
    }

    /// The header that a challenge wants; `None` if nothing here answers it.
    pub(crate) async fn answer(
        &self,
        challenged: &WebAnswer,
        scope: &RegistryScope,
        transfer: &Transfer,
        report: &RegistryReport,
    ) -> Result<Option<HeaderValue>, Failure> {
        let kind = self.credentials.as_ref().map(Credentials::kind);
        if matches!(kind, Some(LoginKind::Bearer(_))) {
            // The registry has seen all that there is.
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
                    bearer_header(&token).ok_or_else(|| report.nonsense("gave a token that is none"))?;
                self.given().tokens.push(token);
                header
            }
            (None, Some(LoginKind::Basic { user, password })) if wanted.contains(&AuthChallenge::Basic) => {
                basic_header(user, password).ok_or_else(|| report.unsayable())?
            }
            _ => return Ok(None),
        };
        self.given().headers.insert(scope.clone(), header.clone());
        Ok(Some(header))
    }

    async fn token(
        &self,
        place: &TokenPlace,
        scope: &RegistryScope,
        transfer: &Transfer,
        report: &RegistryReport,
    ) -> Result<Secret, Failure> {
        let refused = |setback: &Setback| report.setback_of("sends the login to", setback);
        let realm = Url::parse(&place.realm).ok().filter(|_| place.realm.len() <= MAX_REALM);
        let nowhere = || report.nonsense("names no address at which a token is to be had");
        // Whether it may be asked is for the guard to say, before anything is sent.
        let mut realm = realm.ok_or_else(nowhere)?;
        // A name and a password in this address are not the user's.
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
                    let header = basic_header(user, password).ok_or_else(|| report.unsayable())?;
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
        token.ok_or_else(|| report.nonsense("gave no token, although it asks for one"))
    }

    fn given(&self) -> MutexGuard<'_, GivenTokens> {
        // What is in there is whole at every moment.
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the token is for.
fn wishes(place: &TokenPlace, scope: &RegistryScope) -> Vec<(&'static str, String)> {
    let asked = place.scope.as_deref().filter(|asked| !asked.trim().is_empty());
    let own = format!("repository:{}:pull", scope.repository);
    let scopes = asked.unwrap_or(&own).split_whitespace().map(|each| widened(each, scope.push));
    let service = place.service.iter().map(|service| ("service", service.clone()));
    service.chain(scopes.map(|scope| ("scope", scope))).collect()
}

/// The scope with the right to push, if something will be: the first question of a push only reads, so the challenge to
/// it asks for less than what comes next, and some registries answer that with 403 and no further challenge.
fn widened(scope: &str, push: bool) -> String {
    let actions = scope.rsplit_once(':').map_or("", |(_, actions)| actions);
    let may_push = actions.split(',').any(|action| matches!(action, "push" | "*"));
    let is_repository = scope.starts_with("repository:");
    if push && is_repository && !may_push { format!("{scope},push") } else { scope.to_owned() }
}

/// Exchanges an identity token for one of the registry.
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
    WebRequest::new(Method::POST, realm).with(CONTENT_TYPE, kind).carrying(body)
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
            assert_eq!(widened(scope, true), expected);
            assert_eq!(widened(scope, false), scope);
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
