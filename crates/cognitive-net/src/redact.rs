//! Cleans every text that leaves this crate: no key, nothing that looks like one, no prompt, no control characters,
//! and short. Works on text only; it cannot put anything back.

use std::sync::LazyLock;

use regex::Regex;
use reqwest::Url;

use crate::secret::Secret;

/// What stands where something was removed.
const GONE: &str = "[redacted]";
/// A service that has more to say than this is quoting something.
const LONGEST: usize = 300;
/// Shorter "keys" are placeholders such as `x`; removing them would only garble the text.
const SHORTEST_KEY: usize = 4;

/// What looks like a credential even if it is not ours: services like to quote the one they were given, cut or masked.
static SHAPES: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    PATTERNS.iter().filter_map(|(pattern, with)| Some((Regex::new(pattern).ok()?, *with))).collect()
});

const PATTERNS: [(&str, &str); 5] = [
    (r#"(?i)\b(bearer|basic)\s+[^\s"',;]+"#, "${1} [redacted]"),
    (
        r#"(?i)([?&;\s"']|^)((?:[a-z]+[_-])?(?:key|token|secret|password|signature))=[^\s"'&,;]+"#,
        "${1}${2}=[redacted]",
    ),
    (
        r#"(?i)\b(authorization|x-api-key|x-goog-api-key|api[_ -]?key)(["']?\s*:\s*["']?)[^\s"',;}]+"#,
        "${1}${2}[redacted]",
    ),
    (
        r"\b(?:sk|pk|gsk|rk)-[A-Za-z0-9_*.\-]{6,}|\bAIza[A-Za-z0-9_*\-]{10,}|\bgsk_[A-Za-z0-9*]{6,}",
        "[redacted]",
    ),
    (r"://[^/\s@]+@", "://[redacted]@"),
];

/// Removes the secrets of one provider.
#[derive(Debug, Clone)]
pub(crate) struct Redactor {
    hidden: Vec<Secret>,
}

impl Redactor {
    /// Knows the key and what the address of the service may hide: a password, values of its query.
    pub(crate) fn new(key: Option<&Secret>, base: Option<&Url>) -> Self {
        let mut hidden: Vec<Secret> = key.cloned().into_iter().collect();
        if let Some(base) = base {
            hidden.extend(base.password().and_then(Secret::new));
            hidden.extend(base.query_pairs().filter_map(|(_, value)| Secret::new(value)));
        }
        hidden.retain(|secret| secret.reveal().len() >= SHORTEST_KEY);
        Self { hidden }
    }

    /// The text as it may be shown: one short line.
    pub(crate) fn clean(&self, text: &str) -> String {
        shorten(&self.hide(text))
    }

    /// The text without secrets, at its full length.
    pub(crate) fn hide(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.hidden {
            text = text.replace(secret.reveal(), GONE);
        }
        for (shape, with) in SHAPES.iter() {
            text = shape.replace_all(&text, *with).into_owned();
        }
        text
    }
}

/// One line, of bounded length.
fn shorten(text: &str) -> String {
    let line = text.split(|letter: char| letter.is_whitespace() || letter.is_control());
    let line: Vec<&str> = line.filter(|word| !word.is_empty()).collect();
    let line = line.join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// Whether a text repeats a stretch of the prompt. Looks at windows half as long as the stretch that must not pass, so
/// that wherever such a stretch stands, one window lies within it.
pub(crate) fn quotes(text: &str, prompt: &str) -> bool {
    const WINDOW: usize = 24;
    let letters: Vec<char> = text.chars().collect();
    letters.chunks_exact(WINDOW).any(|window| prompt.contains(&window.iter().collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(text: &str) -> String {
        let key = Secret::new("k3y-of-ours");
        let base = Url::parse("https://me:pa55word@host/v1?token=qu3ry").ok();
        Redactor::new(key.as_ref(), base.as_ref()).clean(text)
    }

    #[test]
    fn every_shape_is_a_regular_expression() {
        assert_eq!(SHAPES.len(), PATTERNS.len());
    }

    // ERR-015: the key, and whatever looks like one.
    #[test]
    fn err_015_keys_headers_and_addresses_are_removed() {
        for (text, expected) in [
            ("bad key k3y-of-ours!", "bad key [redacted]!"),
            ("Authorization: Bearer abc.def", "Authorization: [redacted] [redacted]"),
            ("got bearer abcdef, sorry", "got bearer [redacted], sorry"),
            ("GET /v1/models?key=AIzaSy123&alt=sse", "GET /v1/models?key=[redacted]&alt=sse"),
            ("https://h/p?access_token=zzz", "https://h/p?access_token=[redacted]"),
            ("{\"x-api-key\": \"abc\"}", "{\"x-api-key\": \"[redacted]\"}"),
            ("Incorrect API key provided: sk-ab***********wxyz.", "Incorrect API key provided: [redacted]"),
            ("API key: abcdefg", "API key: [redacted]"),
            ("https://me:pa55word@host/", "https://[redacted]@host/"),
            ("pa55word and qu3ry", "[redacted] and [redacted]"),
        ] {
            assert_eq!(clean(text), expected, "{text}");
        }
    }

    #[test]
    fn ordinary_sentences_stay() {
        for text in
            ["Invalid key in the object: `a`", "max_tokens: 9 > 8", "the token count exceeds 5", "sk-"]
        {
            assert_eq!(clean(text), text);
        }
    }

    #[test]
    fn a_text_is_one_short_line() {
        assert_eq!(clean("a\n\n\tb\u{1b}[31mc"), "a b [31mc");
        let long = clean(&"é".repeat(1_000));
        assert_eq!(long.chars().count(), LONGEST + 1);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn a_placeholder_of_a_key_garbles_nothing() {
        let key = Secret::new("a");
        assert_eq!(Redactor::new(key.as_ref(), None).clean("a banana"), "a banana");
    }

    #[test]
    fn a_stretch_of_the_prompt_is_noticed_wherever_it_stands() {
        let prompt = "The patient was born on the third of May and lives in a small town near the sea.";
        for start in 0..30 {
            let stretch = &prompt[start..start + 48];
            assert!(quotes(&format!("cannot read: '{stretch}'"), prompt), "{start}");
        }
        assert!(!quotes("The model is overloaded. Please try again in a few seconds.", prompt));
    }
}
