//! Parses the authentication challenges of a registry, from `WWW-Authenticate`. Accepts what real registries send,
//! and ignores challenges that it does not understand.

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

/// The longest header that is parsed. The header comes from an untrusted server.
const MAX_LENGTH: usize = 16 * 1024;

/// One authentication method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AuthChallenge {
    /// A user name and a password with every request.
    Basic,
    /// A token from a token server.
    Bearer(TokenPlace),
}

/// The token server, and the service and scope to request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TokenPlace {
    pub(crate) realm: String,
    pub(crate) service: Option<String>,
    pub(crate) scope: Option<String>,
}

/// Returns all supported methods of an answer, in order.
pub(crate) fn challenges(headers: &HeaderMap) -> Vec<AuthChallenge> {
    let values = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
    values.filter(|value| value.len() <= MAX_LENGTH).flat_map(read).collect()
}

fn read(value: &str) -> Vec<AuthChallenge> {
    let mut reader = ChallengeReader { rest: value };
    let mut found = Vec::new();
    let mut scheme = reader.word();
    while let Some(name) = scheme.take() {
        let mut place = TokenPlace::default();
        // A word with `=` is a parameter of this scheme; a word without it starts the next scheme.
        while let Some(word) = reader.word() {
            let Some(text) = reader.value() else {
                scheme = Some(word);
                break;
            };
            match word.to_ascii_lowercase().as_str() {
                "realm" => place.realm = text,
                "service" => place.service = Some(text),
                "scope" => place.scope = Some(text),
                _ => {}
            }
        }
        if name.eq_ignore_ascii_case("bearer") && !place.realm.is_empty() {
            found.push(AuthChallenge::Bearer(place));
        } else if name.eq_ignore_ascii_case("basic") {
            found.push(AuthChallenge::Basic);
        }
    }
    found
}

struct ChallengeReader<'a> {
    rest: &'a str,
}

impl<'a> ChallengeReader<'a> {
    /// Returns the next word, after white space and commas.
    fn word(&mut self) -> Option<&'a str> {
        let rest = self.rest.trim_start_matches([' ', '\t', ',']);
        let end = rest.find(|letter: char| !is_token(letter)).unwrap_or(rest.len());
        let (word, rest) = rest.split_at_checked(end)?;
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }

    /// Returns the value after `=`, if one follows.
    fn value(&mut self) -> Option<String> {
        let rest = self.rest.trim_start_matches([' ', '\t']).strip_prefix('=')?;
        let rest = rest.trim_start_matches([' ', '\t']);
        let Some(quoted) = rest.strip_prefix('"') else {
            let end = rest.find([' ', '\t', ',']).unwrap_or(rest.len());
            let (text, rest) = rest.split_at_checked(end)?;
            self.rest = rest;
            return Some(text.to_owned());
        };
        let (mut text, mut letters) = (String::new(), quoted.chars());
        loop {
            // An unterminated quoted string ends the header.
            match letters.next()? {
                '"' => break,
                '\\' => text.push(letters.next()?),
                letter => text.push(letter),
            }
        }
        self.rest = letters.as_str();
        Some(text)
    }
}

fn is_token(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(letter)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bearer(realm: &str, service: Option<&str>, scope: Option<&str>) -> AuthChallenge {
        let text = |text: Option<&str>| text.map(str::to_owned);
        AuthChallenge::Bearer(TokenPlace {
            realm: realm.to_owned(),
            service: text(service),
            scope: text(scope),
        })
    }

    #[test]
    fn challenges_as_registries_send_them() {
        for (header, expected) in [
            (
                r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:library/a:pull""#,
                vec![bearer(
                    "https://auth.docker.io/token",
                    Some("registry.docker.io"),
                    Some("repository:library/a:pull"),
                )],
            ),
            (r#"Basic realm="basic-realm""#, vec![AuthChallenge::Basic]),
            (r#"BASIC realm="", charset="UTF-8""#, vec![AuthChallenge::Basic]),
            ("Basic", vec![AuthChallenge::Basic]),
            (
                r#"Bearer realm="https://h/t", scope="a:b:pull,push", error="insufficient_scope""#,
                vec![bearer("https://h/t", None, Some("a:b:pull,push"))],
            ),
            ("bearer realm=https://h/t,service=s", vec![bearer("https://h/t", Some("s"), None)]),
            (
                r#"Basic realm="x, y=z", Bearer realm = "https://h/t" , service="a \"b\"""#,
                vec![AuthChallenge::Basic, bearer("https://h/t", Some("a \"b\""), None)],
            ),
            (r#"Negotiate, Basic realm="x""#, vec![AuthChallenge::Basic]),
            // Challenges that are not understood are ignored.
            ("", vec![]),
            ("Bearer", vec![]),
            (r#"Bearer service="s""#, vec![]),
            (r#"Bearer realm="https://h/t"#, vec![]),
            ("\"", vec![]),
            ("Negotiate YII=", vec![]),
        ] {
            assert_eq!(read(header), expected, "{header}");
        }
    }

    #[test]
    fn several_headers_count_and_endless_ones_do_not() {
        let mut headers = HeaderMap::new();
        headers.append(WWW_AUTHENTICATE, "Basic realm=a".parse().unwrap());
        headers.append(WWW_AUTHENTICATE, "Bearer realm=\"https://h\"".parse().unwrap());
        assert_eq!(challenges(&headers), [AuthChallenge::Basic, bearer("https://h", None, None)]);
        let endless = format!("Basic realm=\"{}\"", "x".repeat(MAX_LENGTH));
        headers.insert(WWW_AUTHENTICATE, endless.parse().unwrap());
        assert_eq!(challenges(&headers), []);
    }

    proptest! {
        #[test]
        fn no_header_stops_the_reader(header in r#"[ -~]{0,200}|((Bearer|Basic|realm|=|"|,| |\\|x)){0,40}"#) {
            prop_assert!(read(&header).len() <= header.len());
        }
    }
}
