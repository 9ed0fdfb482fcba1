//! Redacts every text that leaves this crate. Removes the key in every form that services quote, strings that look
//! like keys, quotes of the prompt, and control characters, and limits the length.

use std::borrow::Cow;
use std::fmt;
use std::sync::{LazyLock, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use regex::Regex;
use reqwest::Url;

use crate::secret::Secret;

/// The replacement for removed text.
pub(crate) const GONE: &str = "[redacted]";
/// The longest message, in characters. A longer one probably quotes the request.
const MAX_LENGTH: usize = 300;
/// Shorter "keys" are placeholders such as `x`; removing them would only damage the text.
const MIN_KEY_LENGTH: usize = 4;
/// A shorter part or encoding of a key could be a word.
const MIN_FORM_LENGTH: usize = 8;
/// Shorter secrets may be words of an answer, such as the name of a service.
pub(crate) const MIN_ANSWER_LENGTH: usize = 16;

/// Patterns of credentials in general: services often quote the one they received, truncated or masked.
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

/// The characters that most programs encode in a URL.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Removes the secrets of one provider from texts.
#[derive(Clone)]
pub(crate) struct Redactor {
    key: Option<Secret>,
    hidden: Vec<Secret>,
    /// The secrets in every form, built at the first failure.
    forms: OnceLock<Option<Regex>>,
    /// The forms of the longer secrets, built at the first answer.
    forms_in_answers: OnceLock<Option<Regex>>,
}

/// Hides the forms, because they contain the secrets.
impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").field("hidden", &self.hidden.len()).finish_non_exhaustive()
    }
}

impl Redactor {
    /// Creates a redactor for the key and for the secrets in the service's URL: its password and query values.
    pub(crate) fn new(key: Option<&Secret>, base: Option<&Url>) -> Self {
        let mut hidden: Vec<Secret> = key.cloned().into_iter().collect();
        if let Some(base) = base {
            hidden.extend(base.password().and_then(Secret::new));
            hidden.extend(base.query_pairs().filter_map(|(_, value)| Secret::new(value)));
        }
        hidden.retain(|secret| secret.reveal().len() >= MIN_KEY_LENGTH);
        Self { key: key.cloned(), hidden, forms: OnceLock::new(), forms_in_answers: OnceLock::new() }
    }

    /// Creates a redactor for these secrets.
    pub(crate) fn from_secrets(secrets: impl IntoIterator<Item = Secret>) -> Self {
        let hidden = secrets.into_iter().filter(|secret| secret.reveal().len() >= MIN_KEY_LENGTH).collect();
        Self { key: None, hidden, forms: OnceLock::new(), forms_in_answers: OnceLock::new() }
    }

    /// Returns the key.
    pub(crate) fn key(&self) -> Option<&Secret> {
        self.key.as_ref()
    }

    /// Returns the text in a form that may be shown: redacted, one line, limited in length.
    pub(crate) fn clean(&self, text: &str) -> String {
        shorten(&self.hide(text))
    }

    /// Removes the secrets from a member of an answer. Unlike in messages, texts that only look like a key stay.
    pub(crate) fn remove(&self, text: &mut String) {
        if text.len() < MIN_FORM_LENGTH {
            return;
        }
        let forms = self.forms_in_answers.get_or_init(|| {
            let long = self.hidden.iter().filter(|secret| secret.reveal().len() >= MIN_ANSWER_LENGTH);
            pattern(&long.cloned().collect::<Vec<_>>())
        });
        if let Some(Cow::Owned(cleaned)) = forms.as_ref().map(|forms| forms.replace_all(text, GONE)) {
            *text = cleaned;
        }
    }

    /// Returns the text without secrets, at full length.
    pub(crate) fn hide(&self, text: &str) -> String {
        let mut text = match self.forms.get_or_init(|| pattern(&self.hidden)) {
            Some(forms) => forms.replace_all(text, GONE).into_owned(),
            None => text.to_owned(),
        };
        for (shape, with) in SHAPES.iter() {
            text = shape.replace_all(&text, *with).into_owned();
        }
        text
    }
}

/// Builds one case-insensitive expression for all forms of all secrets.
fn pattern(hidden: &[Secret]) -> Option<Regex> {
    let mut forms: Vec<String> = hidden.iter().flat_map(|secret| forms(secret.reveal())).collect();
    // Longer forms first, so that a whole key matches before its parts.
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    forms.dedup();
    let any: Vec<String> = forms.iter().map(|form| regex::escape(form)).collect();
    (!any.is_empty()).then(|| Regex::new(&format!("(?i){}", any.join("|"))).ok()).flatten()
}

/// Returns the forms of a secret: itself, without its prefix, URL-encoded, hexadecimal and base64.
fn forms(secret: &str) -> Vec<String> {
    let mut forms = vec![secret.to_owned()];
    if secret.len() < MIN_FORM_LENGTH {
        return forms;
    }
    let separators = secret.match_indices(['-', '_', ':', '.']);
    let parts = separators.filter_map(|(at, _)| secret.get(at + 1..));
    forms.extend(parts.filter(|part| part.len() >= MIN_FORM_LENGTH).map(str::to_owned));
    forms.extend([NON_ALPHANUMERIC, RESERVED].map(|set| utf8_percent_encode(secret, set).to_string()));
    forms.push(cognitive_contract::text::hex(secret.as_bytes()));
    forms.extend((0..3).flat_map(|before| in_base64(secret.as_bytes(), before)));
    forms
}

/// Returns the base64 digits of a secret that do not depend on its neighbours, if `before` other bytes precede it.
fn in_base64(secret: &[u8], before: usize) -> [String; 2] {
    let bytes = [&vec![0; before], secret].concat();
    let (first, last) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
    let digits = |text: String| text.get(first..last).unwrap_or_default().to_owned();
    [digits(STANDARD_NO_PAD.encode(&bytes)), digits(URL_SAFE_NO_PAD.encode(&bytes))]
}

/// Returns one line of limited length.
fn shorten(text: &str) -> String {
    let line = text.split(|letter: char| letter.is_whitespace() || letter.is_control());
    let line: Vec<&str> = line.filter(|word| !word.is_empty()).collect();
    let line = line.join(" ");
    match line.char_indices().nth(MAX_LENGTH) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// Returns whether a text quotes the prompt. Checks windows half as long as the shortest forbidden quote, so that
/// every such quote contains a whole window.
pub(crate) fn quotes(text: &str, prompt: &str) -> bool {
    // A shorter window would match usual words, a longer one would miss short quotes.
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

    // ERR-015: the key, and strings that look like one.
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

    // A key in every form in which services quote it.
    #[test]
    fn a_key_is_redacted_in_base64_in_capitals_encoded_and_without_its_prefix() {
        let secret = "sk-proj-AbC+dEf/0123456789xyz";
        let key = Secret::new(secret);
        let redactor = Redactor::new(key.as_ref(), None);
        let base64 = |text: String| [STANDARD_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(&text)];
        let mut told = vec![
            secret.to_uppercase(),
            secret.to_lowercase(),
            "proj-AbC+dEf/0123456789xyz".to_owned(),
            "AbC+dEf/0123456789xyz".to_owned(),
            "ABC+DEF/0123456789XYZ".to_owned(),
            utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string(),
            "sk-proj-AbC%2BdEf%2F0123456789xyz".to_owned(),
            cognitive_contract::text::hex(secret.as_bytes()),
        ];
        for before in ["", "B", "Be", "Bearer ", "user:", ":"] {
            told.extend(base64(format!("{before}{secret}")));
            told.extend(base64(format!("{before}{secret}\n")));
        }
        for form in told {
            let cleaned = redactor.clean(&format!("bad key <{form}>"));
            assert!(cleaned.contains("[redacted]"), "{form}: {cleaned}");
            for part in ["0123456789", "MDEyMzQ1Njc4", "AxMjM0NTY3OD", "wMTIzNDU2Nzg5", "30313233"] {
                assert!(!cleaned.contains(part), "{form}: {cleaned}");
            }
        }
        assert!(!format!("{redactor:?}").contains("AbC"));
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
        assert_eq!(long.chars().count(), MAX_LENGTH + 1);
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
