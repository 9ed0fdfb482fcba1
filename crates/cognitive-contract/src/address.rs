//! URLs and paths without secrets, for models, messages and settings pages. Names, passwords, signatures and
//! local folders are removed.
//! Validates nothing: text that is not a URL is shortened too, and never gets longer.

use serde_json::Value;

/// Returns a URL without user name, password, query and fragment: `https://me:pw@host/a.png?sig=x` →
/// `https://host/a.png`. Cuts where a browser would cut, including spellings that only browsers accept.
#[must_use]
pub fn bare_url(text: &str) -> String {
    // URL parsers ignore control characters, so a secret must not hide behind one.
    let text: String = text.trim().chars().filter(|letter| !letter.is_control()).collect();
    let (scheme, rest) = split_scheme(&text);
    let end = rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let path = path.split(['?', '#']).next().unwrap_or_default();
    match scheme {
        Some(scheme) => format!("{}://{host}{path}", scheme.to_ascii_lowercase()),
        None => format!("{host}{path}"),
    }
}

/// Returns a setting for display: every URL in it without its secrets, at any depth.
#[must_use]
pub fn shown_setting(value: Value) -> Value {
    match value {
        Value::String(text) if text.contains("://") => Value::String(bare_url(&text)),
        Value::Array(items) => items.into_iter().map(shown_setting).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(name, value)| (name, shown_setting(value))).collect()
        }
        other => other,
    }
}

/// Returns the reason of a store for the readers of an answer. A remote caller does not learn where the store of the
/// server is.
#[must_use]
pub fn shown_reason(reason: &str, is_remote: bool) -> &str {
    let place = reason.strip_prefix("store `").filter(|_| is_remote);
    place.and_then(|place| place.split_once("`: ")).map_or(reason, |(_, why)| why)
}

/// Splits a URL into its scheme and the text after the colon and slashes.
fn split_scheme(text: &str) -> (Option<&str>, &str) {
    let Some((scheme, rest)) = text.split_once(':') else { return (None, text.trim_start_matches(SLASHES)) };
    let is_word = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter));
    // `host:8080` has no scheme, but `http:host` has one.
    let is_web = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    if is_word && (is_web || rest.starts_with(SLASHES)) {
        (Some(scheme), rest.trim_start_matches(SLASHES))
    } else {
        (None, text.trim_start_matches(SLASHES))
    }
}

const SLASHES: [char; 2] = ['/', '\\'];

/// Returns the last part of a path: `/home/ann/scan.pdf` → `scan.pdf`.
#[must_use]
pub fn base_name(path: &str) -> &str {
    path.trim_end_matches(SLASHES).rsplit(SLASHES).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_caller_does_not_learn_where_a_store_is() {
        let reason = "store `postgres://cogn@db.internal:5432/cogn`: the server cannot be reached: refused";
        assert_eq!(shown_reason(reason, true), "the server cannot be reached: refused");
        assert_eq!(shown_reason(reason, false), reason);
        assert_eq!(shown_reason("the disk is full", true), "the disk is full");
    }

    #[test]
    fn an_address_keeps_only_what_says_where_it_is() {
        for (text, expected) in [
            ("https://host/a.png", "https://host/a.png"),
            ("http://alice:PW@host/x.png?X-Amz-Signature=SIG", "http://host/x.png"),
            ("https://host:8443/x#token=t", "https://host:8443/x"),
            ("https://h?sig=1", "https://h"),
            ("https://a@b@host/x", "https://host/x"),
            ("https://a:p%40q@host/x@y?z", "https://host/x@y"),
            ("HTTPS:\\\\me:pw@host\\a?b", "https://host\\a"),
            ("https:me:pw@host/a", "https://host/a"),
            ("ht\ntps://me:p\tw@host/a", "https://host/a"),
            (" https://me:pw@[::1]:9/a ", "https://[::1]:9/a"),
            ("me:pw@gpu:11434/x?k=v", "gpu:11434/x"),
            ("gpu:11434", "gpu:11434"),
            ("//me:pw@host/x", "host/x"),
            ("", ""),
        ] {
            assert_eq!(bare_url(text), expected, "{text}");
        }
    }

    #[test]
    fn a_path_keeps_its_last_part() {
        for (path, expected) in [
            ("/home/ann/scan.pdf", "scan.pdf"),
            ("C:\\Users\\ann\\scan.pdf", "scan.pdf"),
            ("scan.pdf", "scan.pdf"),
            ("../secret/", "secret"),
            ("/", ""),
        ] {
            assert_eq!(base_name(path), expected);
        }
    }
}
