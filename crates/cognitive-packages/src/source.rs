//! Parses the address of a package, as users type it (REG-004):
//!
//! | form | source |
//! |---|---|
//! | `./folder`, `/folder`, `m-1.0.0.tar.gz` | a folder or an archive on this machine |
//! | `https://…/m-1.0.0.tar.gz[#sha256:…]` | an archive on the web |
//! | `github:owner/repo[/path][@ref]` | a folder of a repository on GitHub |
//! | `git+https://…[#path=…][@ref]`, `git+ssh://…`, `git@host:…` | a folder of any git repository |
//! | `oci://host/repository[:tag][@sha256:…]` | an OCI registry |
//! | `registry:name[@range]`, `name[@range]` | a name of the configured index |
//!
//! Only parses. Refuses any text that another program could read as an option, other git protocols, and paths that
//! leave a folder.

use std::fmt;
use std::path::PathBuf;

use cognitive_contract::address::bare_url;
use cognitive_contract::compose::VersionRange;
use cognitive_contract::text::{cut, escape_controls};

use crate::name::{check_name, path_fault};
use crate::{OciReference, PackageError};

/// The maximum length of an address. An address may come from an untrusted index.
const MAX_LENGTH: usize = 2_048;

/// The source of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PackageSource {
    /// A folder or an archive on this machine.
    Path(PathBuf),
    /// An archive on the web, with its expected hash.
    Web {
        /// The address.
        url: String,
        /// 64 hexadecimal digits.
        sha256: Option<String>,
    },
    /// A folder of a repository on GitHub.
    GitHub {
        /// `owner/repo`.
        repository: String,
        /// The folder; empty for the root of the repository.
        path: String,
        /// Branch, tag or commit.
        reference: Option<String>,
    },
    /// A folder of any git repository.
    Git {
        /// The address for `git`.
        url: String,
        /// The folder; empty for the root of the repository.
        path: String,
        /// Branch, tag or commit.
        reference: Option<String>,
    },
    /// An artifact in an OCI registry.
    Oci(OciReference),
    /// A name in the index.
    Registry {
        /// The name.
        name: String,
        /// The accepted versions, as written.
        range: String,
    },
}

impl PackageSource {
    /// Parses an address.
    pub fn parse(text: &str) -> Result<Self, PackageError> {
        let text = text.trim();
        if text.is_empty() || text.len() > MAX_LENGTH || text.chars().any(char::is_control) {
            return Err(unknown_source(text, "it is empty, too long or has control characters"));
        }
        if let Some(rest) = text.strip_prefix("oci://") {
            return OciReference::parse(rest).map(Self::Oci).map_err(|reason| unknown_source(text, &reason));
        }
        if let Some(rest) = text.strip_prefix("github:") {
            return github(rest).map_err(|reason| unknown_source(text, &reason));
        }
        if text.starts_with("git+") || text.starts_with("git@") || text.starts_with("ssh://") {
            return git(text).map_err(|reason| unknown_source(text, &reason));
        }
        if let Some(rest) = text.strip_prefix("registry:") {
            return registry(rest).map_err(|reason| unknown_source(text, &reason));
        }
        if text.starts_with("https://") || text.starts_with("http://") {
            return web(text).map_err(|reason| unknown_source(text, &reason));
        }
        if is_path(text) {
            return Ok(Self::Path(PathBuf::from(text)));
        }
        if text.contains("://") || text.contains("::") {
            return Err(unknown_source(text, "unsupported kind of address"));
        }
        registry(text).map_err(|reason| unknown_source(text, &reason))
    }
}

/// Returns whether a text is a path and not a name, as in `cogn run`: it has a separator or names an archive.
fn is_path(text: &str) -> bool {
    let is_archive = [".tar.gz", ".tgz"].iter().any(|end| text.ends_with(end));
    let has_scheme = text.contains("://") || text.contains("::");
    !has_scheme
        && (is_archive
            || text.starts_with('.')
            || text.starts_with('/')
            || text.contains(std::path::MAIN_SEPARATOR))
}

fn web(text: &str) -> Result<PackageSource, String> {
    let (url, sha256) = match text.split_once('#') {
        None => (text, None),
        Some((url, hash)) => {
            let hash = hash.strip_prefix("sha256:").or_else(|| hash.strip_prefix("sha256=")).unwrap_or(hash);
            if hash.len() != 64 || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err("the part after `#` is not `sha256:` with 64 hexadecimal digits".to_owned());
            }
            (url, Some(hash.to_ascii_lowercase()))
        }
    };
    check_no_password(url)?;
    // Without TLS, a package can be replaced in transit, unless its hash is known.
    if url.starts_with("http://") && sha256.is_none() && !is_loopback(url) {
        return Err("without TLS it needs a hash: add `#sha256:…`, or use `https://`".to_owned());
    }
    Ok(PackageSource::Web { url: url.to_owned(), sha256 })
}

/// Refuses secrets in an address, because the lock file shows it to every reader of the project.
fn check_no_password(url: &str) -> Result<(), String> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    // Over ssh, a user name alone gives no access, but a password does. Over https, a name alone may be a token.
    let is_secret = |user: &str| user.contains(':') || url.starts_with("http");
    if user.is_some_and(is_secret) {
        return Err("it contains a password or a token, which would appear in the lock file".to_owned());
    }
    Ok(())
}

fn is_loopback(url: &str) -> bool {
    let host = url.split("://").nth(1).and_then(|rest| rest.split(['/', '?']).next()).unwrap_or_default();
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}

fn github(rest: &str) -> Result<PackageSource, String> {
    let (place, reference) = with_reference(rest)?;
    let mut parts = place.splitn(3, '/');
    let (owner, repository) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let is_name = |text: &str| {
        !text.is_empty()
            && text.len() <= 100
            && !text.starts_with(['.', '-'])
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
    };
    if !is_name(owner) || !is_name(repository) {
        return Err("write it as `github:owner/repo[/path][@ref]`".to_owned());
    }
    let path = folder(parts.next().unwrap_or_default())?;
    Ok(PackageSource::GitHub { repository: format!("{owner}/{repository}"), path, reference })
}

/// `git+https://host/repo.git#path=modules/m@v1`, or with only the reference. Accepts only the common transports for
/// code.
fn git(text: &str) -> Result<PackageSource, String> {
    let url = text.strip_prefix("git+").unwrap_or(text);
    let (url, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (path, reference) = match fragment.strip_prefix("path=") {
        Some(rest) => with_reference(rest)?,
        None if fragment.is_empty() => ("", None),
        None => with_reference(fragment.strip_prefix('@').map_or(fragment, |_| fragment)).map(
            |(rest, reference)| {
                // `#v1` and `#@v1` contain only the reference.
                ("", reference.or_else(|| Some(rest.to_owned()).filter(|rest| !rest.is_empty())))
            },
        )?,
    };
    if let Some(reference) = &reference {
        check_reference(reference)?;
    }
    let is_usual = url.starts_with("https://")
        || url.starts_with("ssh://")
        || url.starts_with("git@")
        || url.starts_with("file:///");
    // `ext::` and similar transports run programs; a leading hyphen would be an option.
    if !is_usual || url.contains("::") || url.contains(char::is_whitespace) || host_begins_with_hyphen(url) {
        return Err(
            "a git address is `git+https://…`, `git+ssh://…`, `git@host:…` or `git+file:///…`".to_owned()
        );
    }
    check_no_password(url)?;
    Ok(PackageSource::Git { url: url.to_owned(), path: folder(path)?, reference })
}

/// `ssh://-oProxyCommand=…` would be an option of ssh.
fn host_begins_with_hyphen(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    authority.starts_with('-') || authority.split('@').any(|part| part.starts_with('-'))
}

fn registry(rest: &str) -> Result<PackageSource, String> {
    let (name, range) = rest.split_once('@').unwrap_or((rest, ""));
    check_name(name).map_err(|refused| refused.message().to_owned())?;
    if VersionRange::parse(range).is_none() {
        return Err(format!("invalid version range: `{}`", cut(range, 80)));
    }
    Ok(PackageSource::Registry { name: name.to_owned(), range: range.to_owned() })
}

fn with_reference(text: &str) -> Result<(&str, Option<String>), String> {
    let Some((place, reference)) = text.rsplit_once('@') else { return Ok((text, None)) };
    check_reference(reference)?;
    Ok((place, Some(reference.to_owned())))
}

/// Refuses texts that git would not accept as a branch, tag or commit, or would read as an option.
fn check_reference(reference: &str) -> Result<(), String> {
    let is_taken =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/' | b'+');
    let is_good = !reference.is_empty()
        && reference.len() <= 200
        && !reference.starts_with(['-', '/', '.'])
        && !reference.contains("..")
        && reference.bytes().all(is_taken);
    if is_good { Ok(()) } else { Err(format!("invalid branch, tag or commit: `{}`", cut(reference, 80))) }
}

fn folder(path: &str) -> Result<String, String> {
    let path = path.trim_end_matches('/');
    match path_fault(path) {
        Some(fault) if !path.is_empty() => Err(format!("invalid folder: {fault}: `{}`", cut(path, 80))),
        _ => Ok(path.to_owned()),
    }
}

fn unknown_source(text: &str, reason: &str) -> PackageError {
    // Messages go into logs, so they must not contain a secret from an address.
    let has_user = text.split_once("://").is_some_and(|(_, rest)| rest.contains('@'));
    let shown = if has_user { bare_url(text) } else { text.to_owned() };
    PackageError::new(format!("unsupported package source: `{}`: {reason}", escape_controls(cut(&shown, 120)))).hint(
        "Use a folder, an archive, `https://…`, `github:owner/repo/path@ref`, `git+https://…`, `oci://host/repository:tag` or a name",
    )
}

impl fmt::Display for PackageSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |reference: &Option<String>| {
            reference.as_ref().map(|text| format!("@{text}")).unwrap_or_default()
        };
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Web { url, sha256: None } => f.write_str(url),
            Self::Web { url, sha256: Some(hash) } => write!(f, "{url}#sha256:{hash}"),
            Self::GitHub { repository, path, reference } => {
                let slash = if path.is_empty() { "" } else { "/" };
                write!(f, "github:{repository}{slash}{path}{}", at(reference))
            }
            Self::Git { url, path, reference } => {
                let scheme = if url.starts_with("git@") { "" } else { "git+" };
                match (path.as_str(), reference) {
                    ("", None) => write!(f, "{scheme}{url}"),
                    ("", Some(reference)) => write!(f, "{scheme}{url}#{reference}"),
                    (path, reference) => write!(f, "{scheme}{url}#path={path}{}", at(reference)),
                }
            }
            Self::Oci(reference) => write!(f, "oci://{reference}"),
            Self::Registry { name, range } if range.is_empty() => write!(f, "registry:{name}"),
            Self::Registry { name, range } => write!(f, "registry:{name}@{range}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> PackageSource {
        PackageSource::parse(text).unwrap_or_else(|refused| panic!("{refused}"))
    }

    #[test]
    fn reg_004_every_form_is_read_and_written_as_it_was() {
        let hash = "a".repeat(64);
        for text in [
            "./m",
            "/srv/modules/m",
            "m-1.0.0.tar.gz",
            "https://example.com/m-1.0.0.tar.gz",
            &format!("https://example.com/m.tar.gz#sha256:{hash}"),
            "http://127.0.0.1:8000/m.tar.gz",
            "github:owner/repo",
            "github:owner/repo/modules/m@v1.0",
            "git+https://example.com/repo.git",
            "git+https://example.com/repo.git#v1",
            "git+ssh://git@example.com/repo.git#path=modules/m@main",
            "git@example.com:owner/repo.git",
            "oci://localhost:5000/mods/m:1.0.0",
            &format!("oci://ghcr.io/acme/m@sha256:{hash}"),
            "registry:m",
            "registry:m@^1.2",
        ] {
            assert_eq!(parse(text).to_string(), text);
        }
        assert_eq!(parse("m@~1.0").to_string(), "registry:m@~1.0");
        assert!(matches!(parse("github:o/r/a/b@feature/x"), PackageSource::GitHub { path, reference, .. }
            if path == "a/b" && reference.as_deref() == Some("feature/x")));
    }

    #[test]
    fn reg_004_what_could_do_harm_is_no_source() {
        for text in [
            "",
            "ext::sh -c 'touch /tmp/x'",
            "git+ext::sh -c x",
            "git+https://x::y",
            "git+ssh://-oProxyCommand=x/repo",
            "git+ssh://git@-oProxyCommand=x/repo",
            "git+http://example.com/repo.git",
            "git+https://example.com/repo#--upload-pack=x",
            "git+https://example.com/repo#path=../..",
            "git+https://example.com/repo#path=m@-x",
            "github:owner",
            "github:../x",
            "github:-o/r",
            "github:o/r/../../x",
            "github:o/r@a..b",
            "http://example.com/m.tar.gz",
            "https://example.com/m.tar.gz#sha256:12",
            "https://token@example.com/m.tar.gz",
            "git+https://user:token@example.com/repo.git",
            "git+ssh://git:token@example.com/repo.git",
            "ftp://example.com/m",
            "file:///etc",
            "registry:../x",
            "registry:m@what",
            "con",
            "Name",
            "oci://",
            "oci://host",
            "oci://host/UPPER",
            "oci://host/a/../b",
            "oci://user:password@host/m",
            "a\u{1b}[2J",
            &"a".repeat(4_000),
        ] {
            let refused = PackageSource::parse(text).expect_err(text);
            assert!(refused.message().len() < 400 && !refused.message().contains('\u{1b}'), "{refused}");
            assert!(!refused.message().contains("token@"), "{refused}");
        }
    }
}
