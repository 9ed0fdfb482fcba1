//! The liberties of the reader: one entry per place, with its byte offset, so that a person can look it up. Forgives
//! nothing itself; the grammar and `find.rs` do, and must record each liberty here.

use cognitive_contract::Warning;
use serde::Serialize;

/// The number of liberties of one kind that get a separate notice. A reply written entirely in single quotes would
/// otherwise bury every other notice.
const MAX_SHOWN_PER_RULE: usize = 5;

/// The number of liberties of one kind that are stored for the receipt. Further ones are only counted: a large reply
/// written entirely in single quotes would otherwise cost a hundred times its size.
const MAX_KEPT_PER_RULE: usize = 100;

/// A place where the reply was read as meant, although RFC 8259 forbids it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Liberty {
    /// Byte offset in the reply.
    pub at: usize,
    /// The kind of liberty.
    pub rule: LibertyRule,
    /// A description of the liberty.
    pub what: String,
    /// The number of further ones of this kind that are not stored. Only the last stored one of a kind has any.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The permitted liberties (D-01, S-11). There are no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LibertyRule {
    /// A byte order mark was skipped.
    Bom,
    /// The content of `<think>` was left out.
    Thinking,
    /// The object was taken out of a code fence.
    Fence,
    /// The object was taken out of the text around it.
    Prose,
    /// Other objects in the reply were not the answer.
    PassedOver,
    /// A comma before a closing bracket was skipped.
    TrailingComma,
    /// Two members on two lines were read without a comma between them.
    MissingComma,
    /// A comment was skipped.
    Comment,
    /// Quotes other than `"` were read as such, or `\'` as an apostrophe.
    Quotes,
    /// A name was read without quotes.
    BareName,
    /// `True`, `False` or `None` was read as in Python.
    PythonLiteral,
    /// An unescaped line break or tab in a string was accepted.
    RawBreak,
    /// A no-break space or another space unknown to JSON was skipped between two tokens.
    OtherBlank,
    /// A duplicate name in one object; the last value counts.
    RepeatedName,
}

impl LibertyRule {
    /// A description of the liberty.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Bom => "a byte order mark was skipped",
            Self::Thinking => "the model's thinking was skipped",
            Self::Fence => "the answer was taken out of a code fence",
            Self::Prose => "the answer was taken out of the text around it",
            Self::PassedOver => "other objects were not used as the answer",
            Self::TrailingComma => "a trailing comma was skipped",
            Self::MissingComma => "a comma was missing between two lines",
            Self::Comment => "a comment was skipped",
            Self::Quotes => "other quotes were read as double quotes",
            Self::BareName => "a name was read without quotes",
            Self::PythonLiteral => "`True`, `False` or `None` was read as in Python",
            Self::RawBreak => "a line break or tab inside a string was kept as it is",
            Self::OtherBlank => "a space that JSON does not allow was skipped",
            Self::RepeatedName => "a name occurs twice and the last value counts",
        }
    }
}

impl Liberty {
    pub(super) fn new(at: usize, rule: LibertyRule, what: impl Into<String>) -> Self {
        Self { at, rule, what: what.into(), more: 0 }
    }

    /// A liberty with the description of its rule.
    pub(super) fn from_rule(rule: LibertyRule, at: usize) -> Self {
        Self::new(at, rule, rule.words())
    }

    /// The liberty as a notice for `meta.warnings`.
    #[must_use]
    pub fn warning(&self) -> Warning {
        Warning::new("REPAIRED", format!("{}, at byte {}", self.what, self.at))
    }

    /// Returns the notices for all liberties: up to five of a kind separately; further ones of that kind are only
    /// counted.
    #[must_use]
    pub fn warnings(liberties: &[Self]) -> Vec<Warning> {
        let mut kinds: Vec<(&Self, usize)> = Vec::new();
        let mut warnings = Vec::new();
        for liberty in liberties {
            let known = kinds.iter_mut().find(|(first, _)| first.rule == liberty.rule);
            let Some((_, count)) = known else {
                kinds.push((liberty, 1 + liberty.more));
                warnings.push(liberty.warning());
                continue;
            };
            if *count < MAX_SHOWN_PER_RULE {
                warnings.push(liberty.warning());
            }
            *count += 1 + liberty.more;
        }
        let uncounted = kinds.into_iter().filter(|(_, count)| *count > MAX_SHOWN_PER_RULE);
        warnings.extend(uncounted.map(|(first, count)| {
            let rest = count - MAX_SHOWN_PER_RULE;
            Warning::new("REPAIRED", format!("{}, in {rest} more places", first.what))
        }));
        warnings
    }
}

/// The liberties of one reading, as they are taken.
#[derive(Debug, Default)]
pub(super) struct TakenLiberties {
    kept: Vec<Liberty>,
    /// The number of liberties of each kind that occurred.
    counts: Vec<(LibertyRule, usize)>,
}

impl TakenLiberties {
    /// Records a liberty; calls `what` only if it is stored.
    pub(super) fn take(&mut self, at: usize, rule: LibertyRule, what: impl FnOnce() -> String) {
        match self.counts.iter_mut().find(|(known, _)| *known == rule) {
            None => self.counts.push((rule, 1)),
            Some((_, count)) => {
                *count += 1;
                if *count > MAX_KEPT_PER_RULE {
                    return;
                }
            }
        }
        self.kept.push(Liberty::new(at, rule, what()));
    }

    /// Returns the stored liberties in the order of the text, with the number of those that were not stored.
    pub(super) fn list(mut self) -> Vec<Liberty> {
        for (rule, count) in self.counts {
            let last = self.kept.iter_mut().rev().find(|liberty| liberty.rule == rule);
            if let Some(last) = last {
                last.more = count.saturating_sub(MAX_KEPT_PER_RULE);
            }
        }
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn d_01_each_liberty_is_a_notice_with_words_and_place() {
        let liberty = Liberty::new(7, LibertyRule::TrailingComma, "a trailing comma was skipped");
        assert_eq!(liberty.warning(), Warning::new("REPAIRED", "a trailing comma was skipped, at byte 7"));
        assert_eq!(serde_json::to_value(&liberty).unwrap()["rule"], json!("trailing_comma"));
    }

    #[test]
    fn many_of_a_kind_do_not_bury_the_others() {
        let mut liberties: Vec<_> =
            (0..9).map(|at| Liberty::new(at, LibertyRule::Quotes, "quotes")).collect();
        liberties.push(Liberty::new(9, LibertyRule::Comment, "a comment"));
        let messages: Vec<_> =
            Liberty::warnings(&liberties).into_iter().map(|warning| warning.message).collect();
        assert_eq!(messages.len(), 7);
        assert_eq!(messages[5..], ["a comment, at byte 9", "quotes, in 4 more places"]);
    }

    #[test]
    fn of_a_kind_a_hundred_are_kept_and_the_rest_is_counted() {
        let mut forgiven = TakenLiberties::default();
        for at in 0..1_000_000 {
            forgiven.take(at, LibertyRule::Quotes, || "quotes".to_owned());
        }
        forgiven.take(1_000_000, LibertyRule::Comment, || "a comment".to_owned());
        let liberties = forgiven.list();
        assert_eq!((liberties.len(), liberties[99].more, liberties[100].more), (101, 999_900, 0));
        assert_eq!(serde_json::to_value(&liberties[99]).unwrap()["more"], json!(999_900));
        let messages: Vec<_> =
            Liberty::warnings(&liberties).into_iter().map(|warning| warning.message).collect();
        assert_eq!(messages[5..], ["a comment, at byte 1000000", "quotes, in 999995 more places"]);
    }
}
