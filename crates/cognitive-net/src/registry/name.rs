//! Validates hosts, repositories, tags and digests, and builds URLs from them. Pure. Refuses every character that
//! could end a path or start another one, so that a name cannot reach outside its repository.

use cognitive_contract::code::ErrorCode;
use cognitive_contract::failure::Failure;
use cognitive_contract::text::hex;
use reqwest::Url;
use sha2::{Digest as _, Sha256};

use crate::config::is_loopback;

/// The longest repository name, from the protocol specification.
const MAX_REPOSITORY: usize = 255;
/// The longest tag, from the protocol specification.
const MAX_TAG: usize = 128;
/// The prefix of a digest. Every registry supports this algorithm; no other is supported here.
const SHA256: &str = "sha256:";

/// A registry named by the user.
#[derive(Debug, Clone)]
pub(crate) struct RegistryHost {
    /// Scheme, host and port. The only origin that receives credentials.
    origin: Url,
    /// The host as written by the user, for messages.
    shown: String,
    is_docker_hub: bool,
}

impl RegistryHost {
    /// Parses `ghcr.io` or `localhost:5000`. Uses plain HTTP only if `plain_http` is set or the host is this machine;
    /// a leading `https://` forces TLS.
    pub(crate) fn parse(host: &str, plain_http: bool) -> Result<Self, Failure> {
        let shown = host.trim().trim_end_matches('/');
        let (bare, wants_tls) = match shown.strip_prefix("https://") {
            Some(bare) => (bare, true),
            None => (shown, false),
        };
        let is_docker_hub = is_docker_hub(bare);
        let name = if is_docker_hub { "registry-1.docker.io" } else { bare };
        let usable = |url: &Url| {
            let bare = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
            bare && url.has_host() && url.username().is_empty() && url.password().is_none()
        };
        // Characters that the URL parser would remove, or read as the end of the host.
        let odd = |letter: char| letter.is_whitespace() || letter.is_control() || "/\\@?#%".contains(letter);
        let parsed = Url::parse(&format!("https://{name}")).ok().filter(usable);
        let parsed = parsed.filter(|_| !name.contains(odd));
        let origin = parsed.ok_or_else(|| {
            invalid("invalid registry host", host)
                .suggest("Write a host such as `ghcr.io` or `localhost:5000`")
        })?;
        if (plain_http || is_loopback(&origin)) && !wants_tls {
            // Parsed again, because the default port depends on the scheme.
            let plain = Url::parse(&format!("http://{name}")).unwrap_or(origin);
            return Ok(Self { origin: plain, shown: bare.to_owned(), is_docker_hub });
        }
        Ok(Self { origin, shown: bare.to_owned(), is_docker_hub })
    }

    /// Returns scheme, host and port.
    pub(crate) fn origin(&self) -> &Url {
        &self.origin
    }

    /// Returns the host as written by the user.
    pub(crate) fn as_written(&self) -> &str {
        &self.shown
    }

    /// Checks a repository name and returns the registry's name for it.
    pub(crate) fn repository(&self, name: &str) -> Result<String, Failure> {
        if !is_repository(name) {
            return Err(invalid("invalid repository name", name).suggest(
                "Use lower-case letters, digits and `.`, `_`, `-` between them, in parts divided by `/`, \
                 such as `team/modules`",
            ));
        }
        // Docker Hub keeps repositories without an owner under `library`.
        let alone = self.is_docker_hub && !name.contains('/');
        Ok(if alone { format!("library/{name}") } else { name.to_owned() })
    }

    /// Returns a URL below a checked repository name.
    pub(crate) fn url(&self, repository: &str, rest: &str) -> Url {
        let mut url = self.origin.clone();
        url.set_path(&format!("/v2/{repository}/{rest}"));
        url
    }

    /// Returns the name of a repository, or of an item in it, for messages.
    pub(crate) fn subject(&self, repository: &str, reference: &str) -> String {
        let between = match reference {
            "" => "",
            digest if digest.starts_with(SHA256) => "@",
            _ => ":",
        };
        format!("{}/{repository}{between}{reference}", self.shown)
    }
}

/// Returns whether a host is Docker Hub, under any of its names.
pub(crate) fn is_docker_hub(host: &str) -> bool {
    ["docker.io", "index.docker.io", "registry-1.docker.io"]
        .iter()
        .any(|name| host.eq_ignore_ascii_case(name))
}

/// Checks a tag or a digest.
pub(crate) fn check_reference(reference: &str) -> Result<(), Failure> {
    if is_tag(reference) || is_digest(reference) {
        return Ok(());
    }
    Err(invalid("neither a tag nor a digest", reference)
        .suggest("Write a tag such as `1.0.0`, or `sha256:` with 64 lower-case hexadecimal digits"))
}

/// Checks a digest.
pub(crate) fn check_digest(digest: &str) -> Result<(), Failure> {
    if is_digest(digest) {
        return Ok(());
    }
    Err(invalid("invalid digest", digest).suggest("Write `sha256:` with 64 lower-case hexadecimal digits"))
}

/// Returns whether a text is `sha256:` and 64 digits.
pub(crate) fn is_digest(text: &str) -> bool {
    let digits = text.strip_prefix(SHA256).unwrap_or_default();
    digits.len() == 64 && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns the digest of bytes.
pub(crate) fn digest_of(bytes: &[u8]) -> String {
    format!("{SHA256}{}", hex(&Sha256::digest(bytes)))
}

/// Returns whether a text is a valid tag.
pub(crate) fn is_tag(text: &str) -> bool {
    let inner = |letter: u8| letter.is_ascii_alphanumeric() || b"._-".contains(&letter);
    let first = text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric() || first == b'_');
    first && text.len() <= MAX_TAG && text.bytes().all(inner)
}

fn is_repository(name: &str) -> bool {
    name.len() <= MAX_REPOSITORY && name.split('/').all(is_component)
}

/// Returns whether a path component is valid: lower-case letters and digits, separated by one dot, one or two
/// underscores, or any number of hyphens.
fn is_component(part: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let separates = |run: &str| matches!(run, "." | "_" | "__") || run.bytes().all(|each| each == b'-');
    let ends_well = part.starts_with(is_letter) && part.ends_with(is_letter);
    ends_well && part.split(is_letter).all(|run| run.is_empty() || separates(run))
}

fn invalid(what: &str, text: &str) -> Failure {
    Failure::new(ErrorCode::InvalidInput, format!("{what}: `{text}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(host: &str, plain_http: bool) -> String {
        RegistryHost::parse(host, plain_http).unwrap().origin.to_string()
    }

    #[test]
    fn hosts_as_people_write_them() {
        for (host, plain, expected) in [
            ("ghcr.io", false, "https://ghcr.io/"),
            ("GHCR.io/", false, "https://ghcr.io/"),
            ("registry.example:5000", false, "https://registry.example:5000/"),
            ("registry.example:443", true, "http://registry.example:443/"),
            ("registry.example", true, "http://registry.example/"),
            ("localhost:5000", false, "http://localhost:5000/"),
            ("127.0.0.1:5000", false, "http://127.0.0.1:5000/"),
            ("[::1]:5000", false, "http://[::1]:5000/"),
            ("https://localhost:5000", false, "https://localhost:5000/"),
            ("10.0.0.5:5000", false, "https://10.0.0.5:5000/"),
            ("docker.io", false, "https://registry-1.docker.io/"),
            ("index.docker.io", false, "https://registry-1.docker.io/"),
        ] {
            assert_eq!(origin(host, plain), expected, "{host}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for host in [
            "",
            "http://ghcr.io",
            "ghcr.io/a",
            "me:pw@ghcr.io",
            "ghcr.io?x",
            "ghcr.io#x",
            "gh cr.io",
            "ghcr\n.io",
            "ghcr.io\\a",
            "h:99999",
            "%67hcr.io",
        ] {
            let failure = RegistryHost::parse(host, false).unwrap_err();
            assert!(failure.message().starts_with("invalid registry host: `"), "{host:?}");
        }
    }

    #[test]
    fn repositories_tags_and_digests() {
        for name in ["a", "a/b", "a0/b-c/d.e", "a__b/c_d", "a---b"] {
            assert!(is_repository(name), "{name}");
        }
        let long = "a".repeat(256);
        for name in [
            "", "/a", "a/", "a//b", "A", "a..b", "a._b", "a___b", "-a", "a-", "../a", "a/../b", "a?b",
            "a%2f", &long,
        ] {
            assert!(!is_repository(name), "{name}");
        }
        let (long, longest) = ("a".repeat(129), "a".repeat(128));
        for tag in ["1.0.0", "latest", "_x", "v1-rc.1", &longest] {
            assert!(is_tag(tag), "{tag}");
        }
        for tag in ["", ".a", "-a", "a b", "a/b", "a:b", "é", "a?", &long] {
            assert!(!is_tag(tag), "{tag}");
        }
        let digest = digest_of(b"");
        assert_eq!(digest, "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert!(is_digest(&digest) && !is_digest(&digest.to_uppercase()) && !is_digest("sha256:00"));
        assert!(check_reference("sha512:00").is_err() && check_digest("latest").is_err());
    }

    #[test]
    fn docker_hub_has_an_owner_for_what_has_none() {
        let hub = RegistryHost::parse("docker.io", false).unwrap();
        assert_eq!(hub.repository("busybox").unwrap(), "library/busybox");
        assert_eq!(hub.repository("me/mine").unwrap(), "me/mine");
        let other = RegistryHost::parse("ghcr.io", false).unwrap();
        assert_eq!(other.repository("busybox").unwrap(), "busybox");
        assert_eq!(other.subject("a/b", "1.0"), "ghcr.io/a/b:1.0");
        assert_eq!(other.url("a/b", "tags/list").as_str(), "https://ghcr.io/v2/a/b/tags/list");
    }
}
