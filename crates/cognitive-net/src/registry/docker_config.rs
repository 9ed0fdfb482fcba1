//! Parses the credentials that `docker login` and `podman login` store in their files. Reads no file, starts no
//! program and makes no request: the caller runs credential helpers. No message quotes the file.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use cognitive_contract::code::{Blame, ErrorCode};
use cognitive_contract::failure::Failure;
use serde::Deserialize;
use zeroize::Zeroizing;

use super::credentials::Credentials;
use super::name::is_docker_hub;
use crate::secret::Secret;

/// The key of Docker Hub in docker's file and for credential helpers.
const DOCKER_HUB: &str = "https://index.docker.io/v1/";
/// The user name with which a helper marks an identity token.
const TOKEN_USER: &str = "<token>";
/// Some tools omit the padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The entry of a configuration for one registry.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum DockerLogin {
    /// No entry.
    None,
    /// The credentials.
    Credentials(Credentials),
    /// A credential helper that stores them.
    Helper(CredentialHelper),
}

/// A program that stores credentials. The caller writes [`server`](Self::server) to its standard input, limits its
/// run time, and passes its output to [`read`](Self::read).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CredentialHelper {
    /// The program, such as `docker-credential-desktop`; its only argument is `get`. Always a name, never a path.
    pub program: String,
    /// The name of the registry for the helper.
    pub server: String,
}

/// `config.json` of docker or `auth.json` of podman. Every member may be missing or `null`.
#[derive(Deserialize)]
struct DockerConfig {
    auths: Option<BTreeMap<String, Option<DockerAuth>>>,
    #[serde(rename = "credHelpers")]
    helpers: Option<BTreeMap<String, String>>,
    #[serde(rename = "credsStore")]
    store: Option<String>,
}

#[derive(Deserialize)]
struct DockerAuth {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    identitytoken: Option<String>,
    registrytoken: Option<String>,
}

/// The output of a helper.
#[derive(Deserialize)]
struct HelperAnswer {
    #[serde(rename = "Username")]
    username: Option<String>,
    #[serde(rename = "Secret")]
    secret: Option<String>,
}

/// Finds the credentials of a host in the text of docker's or podman's file. A helper for this host takes precedence,
/// then an entry in the file, then the helper for all hosts.
pub fn docker_credentials(config_json: &str, host: &str) -> Result<DockerLogin, Failure> {
    let config: DockerConfig = serde_json::from_str(config_json).map_err(|error| {
        // The parser's error quotes its input, which may be a password.
        let (line, column) = (error.line(), error.column());
        unusable(&format!("invalid syntax at line {line}, column {column}"))
    })?;
    let server = if is_docker_hub(host) { DOCKER_HUB } else { host };
    if let Some(name) = config.helpers.as_ref().and_then(|helpers| host_entry(helpers, host)) {
        return helper(name, server);
    }
    if let Some(Some(auth)) = config.auths.as_ref().and_then(|auths| host_entry(auths, host)) {
        let found = auth.credentials()?;
        if let Some(found) = found {
            return Ok(DockerLogin::Credentials(found));
        }
    }
    match config.store.as_deref().filter(|name| !name.is_empty()) {
        Some(name) => helper(name, server),
        None => Ok(DockerLogin::None),
    }
}

/// Returns the entry of a host, under its exact name or another spelling used by tools.
fn host_entry<'a, T>(entries: &'a BTreeMap<String, T>, host: &str) -> Option<&'a T> {
    entries
        .get(host)
        .or_else(|| entries.iter().find(|(key, _)| names_host(key, host)).map(|(_, entry)| entry))
}

/// Returns whether a key such as `https://ghcr.io/v2/` names the host `ghcr.io`. Other paths name something else,
/// such as a podman namespace.
fn names_host(key: &str, host: &str) -> bool {
    let bare = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key);
    let (name, path) = bare.split_once('/').unwrap_or((bare, ""));
    let same = name.eq_ignore_ascii_case(host) || is_docker_hub(name) && is_docker_hub(host);
    same && matches!(path.trim_end_matches('/'), "" | "v1" | "v2")
}

fn helper(name: &str, server: &str) -> Result<DockerLogin, Failure> {
    // The name becomes part of a program name; other characters could form a path.
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if name.is_empty() || !name.chars().all(fits) {
        return Err(unusable(
            "the name of a credential helper has characters other than `A-Z`, `0-9`, `-`, `_`, `.`",
        ));
    }
    let program = format!("docker-credential-{name}");
    Ok(DockerLogin::Helper(CredentialHelper { program, server: server.to_owned() }))
}

impl DockerAuth {
    fn credentials(&self) -> Result<Option<Credentials>, Failure> {
        let secret = |text: &Option<String>| text.as_ref().and_then(|text| Secret::new(text.as_str()));
        if let Some(token) = secret(&self.identitytoken) {
            return Ok(Some(Credentials::identity(token)));
        }
        if let Some(token) = secret(&self.registrytoken) {
            return Ok(Some(Credentials::bearer(token)));
        }
        if let Some(auth) = self.auth.as_deref().filter(|auth| !auth.trim().is_empty()) {
            let broken = || unusable("the `auth` of the registry is not a name and a password in base64");
            let bytes = BASE64.decode(auth.trim()).map(Zeroizing::new).map_err(|_| broken())?;
            let text = str::from_utf8(&bytes).map_err(|_| broken())?;
            let (user, password) = text.split_once(':').ok_or_else(broken)?;
            // Old files have zero bytes after the password.
            let password = Secret::new(password.trim_matches('\0')).ok_or_else(broken)?;
            return Ok(Some(login_credentials(user, password)));
        }
        let user = self.username.as_deref().unwrap_or_default();
        Ok(secret(&self.password)
            .filter(|_| !user.is_empty())
            .map(|password| login_credentials(user, password)))
    }
}

impl CredentialHelper {
    /// Parses the output of the program.
    pub fn read(&self, stdout: &str) -> Result<Credentials, Failure> {
        let broken = || {
            let message = format!("the credential helper printed no login: `{}`", self.program);
            Failure::new(ErrorCode::PermissionDenied, message)
                .with_blame(Blame::Operator)
                .suggest(format!("Log in again with `docker login {}`", self.server))
        };
        // The parser's error would quote the output.
        let answer: HelperAnswer = serde_json::from_str(stdout).map_err(|_| broken())?;
        let secret = answer.secret.as_ref().and_then(|secret| Secret::new(secret.as_str()));
        Ok(login_credentials(&answer.username.unwrap_or_default(), secret.ok_or_else(broken)?))
    }
}

fn login_credentials(user: &str, secret: Secret) -> Credentials {
    if user == TOKEN_USER { Credentials::identity(secret) } else { Credentials::basic(user, secret) }
}

fn unusable(why: &str) -> Failure {
    Failure::config_fault(format!("the login cannot be read from docker's configuration: {why}"))
        .suggest("Log in again with `docker login HOST` or `podman login HOST`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::credentials::{LoginKind, basic_header};

    /// Returns the credentials as one word.
    fn login_word(config: &str, host: &str) -> String {
        match docker_credentials(config, host).unwrap() {
            DockerLogin::None => "none".to_owned(),
            DockerLogin::Helper(helper) => format!("{} < {}", helper.program, helper.server),
            DockerLogin::Credentials(found) => shown(&found),
        }
    }

    fn shown(found: &Credentials) -> String {
        match found.kind() {
            LoginKind::Basic { user, password } => {
                assert!(basic_header(user, password).is_some());
                format!("{user} {}", password.reveal())
            }
            LoginKind::Bearer(token) => format!("bearer {}", token.reveal()),
            LoginKind::Identity(token) => format!("identity {}", token.reveal()),
        }
    }

    #[test]
    fn logins_by_every_spelling_of_a_host() {
        // `me:pa55:word`
        let entry = |key: &str| format!(r#"{{"auths": {{"{key}": {{"auth": "bWU6cGE1NTp3b3Jk"}}}}}}"#);
        for (key, host) in [
            ("ghcr.io", "ghcr.io"),
            ("GHCR.io", "ghcr.io"),
            ("https://ghcr.io", "ghcr.io"),
            ("https://ghcr.io/v2/", "ghcr.io"),
            ("http://localhost:5000/v1/", "localhost:5000"),
            ("https://index.docker.io/v1/", "docker.io"),
            ("docker.io", "registry-1.docker.io"),
        ] {
            assert_eq!(login_word(&entry(key), host), "me pa55:word", "{key}");
        }
        for (key, host) in [
            ("ghcr.io", "evil-ghcr.io"),
            ("ghcr.io", "ghcr.io.evil"),
            ("ghcr.io:444", "ghcr.io"),
            ("quay.io/team", "quay.io"),
            ("https://index.docker.io/v1/access-token", "docker.io"),
            ("localhost:5000", "localhost:5001"),
        ] {
            assert_eq!(login_word(&entry(key), host), "none", "{key}");
        }
    }

    #[test]
    fn logins_in_every_form() {
        for (entry, expected) in [
            (r#"{"auth": "bWU6cHc="}"#, "me pw"),
            (r#"{"auth": "bWU6cHc"}"#, "me pw"),
            (r#"{"auth": "bWU6cHcAAA=="}"#, "me pw"),
            (r#"{"auth": "bWU6cHc=", "identitytoken": "t0ken"}"#, "identity t0ken"),
            (r#"{"registrytoken": "t0ken"}"#, "bearer t0ken"),
            (r#"{"username": "me", "password": "pw"}"#, "me pw"),
            (r#"{"auth": "PHRva2VuPjp0MGtlbg=="}"#, "identity t0ken"),
            ("{}", "none"),
            ("null", "none"),
            (r#"{"auth": "", "email": "x"}"#, "none"),
        ] {
            assert_eq!(login_word(&format!(r#"{{"auths": {{"h": {entry}}}}}"#), "h"), expected, "{entry}");
        }
        for empty in
            ["{}", r#"{"auths": null, "credHelpers": null, "credsStore": ""}"#, r#"{"HttpHeaders": {}}"#]
        {
            assert_eq!(login_word(empty, "h"), "none", "{empty}");
        }
    }

    #[test]
    fn helpers_and_what_comes_before_them() {
        let config = r#"{"auths": {"a": {}, "b": {"auth": "bWU6cHc="}}, "credHelpers": {"c": "gcr"}, "credsStore": "desktop"}"#;
        assert_eq!(login_word(config, "a"), "docker-credential-desktop < a");
        assert_eq!(login_word(config, "b"), "me pw");
        assert_eq!(login_word(config, "c"), "docker-credential-gcr < c");
        assert_eq!(
            login_word(config, "docker.io"),
            "docker-credential-desktop < https://index.docker.io/v1/"
        );
        for name in ["../x", "a/b", "a b", "a;b", "a\\\\b"] {
            let config = format!(r#"{{"credsStore": "{name}"}}"#);
            assert!(docker_credentials(&config, "h").is_err(), "{name}");
        }
    }

    #[test]
    fn what_a_helper_prints() {
        let helper = CredentialHelper { program: "docker-credential-x".to_owned(), server: "h".to_owned() };
        let read = |text: &str| {
            helper.read(text).map(|found| shown(&found)).map_err(|failure| format!("{failure:?}"))
        };
        assert_eq!(read(r#"{"ServerURL": "h", "Username": "me", "Secret": "pw"}"#), Ok("me pw".to_owned()));
        assert_eq!(read(r#"{"Username": "<token>", "Secret": "t"}"#), Ok("identity t".to_owned()));
        for wrong in [
            "",
            "credentials not found in native keychain",
            r#"{"Username": "me"}"#,
            r#"{"Secret": ["pa55"]}"#,
        ] {
            let failure = read(wrong).unwrap_err();
            assert!(failure.contains("printed no login: `docker-credential-x`"), "{failure}");
            assert!(!failure.contains("pa55") && !failure.contains("keychain"), "{failure}");
        }
    }

    // ERR-015: messages do not quote a broken file.
    #[test]
    fn err_015_a_broken_file_shows_nothing_of_itself() {
        for config in [
            "",
            "[]",
            r#"{"auths": {"h": "s3cret"}}"#,
            r#"{"auths": {"h": {"auth": ["s3cret"]}}}"#,
            r#"{"auths": {"h": {"auth": "s3cret!"}}}"#,
            r#"{"auths": {"h": {"auth": "bm8gY29sb24="}}}"#,
        ] {
            let failure = docker_credentials(config, "h").unwrap_err();
            let shown = format!("{failure:?}");
            assert!(shown.contains("docker's configuration") && !shown.contains("s3cret"), "{shown}");
        }
    }
}
