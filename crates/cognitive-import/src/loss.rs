//! The list of changes and losses of an import, with location and reason, so that an author can decide what to do.
//! The list is bounded: a file with a thousand tags does not produce a thousand lines.

use cognitive_contract::text::{cut, escape_controls};
use serde_json::{Value, json};

/// The maximum number of listed losses. A longer list would not be read.
const MAX_LOSSES: usize = 200;
/// The maximum length of a quoted text. A template tag may be a whole page.
const MAX_WHAT: usize = 200;

/// The kind of a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossKind {
    /// The module does not contain it.
    Lost,
    /// The module contains it in another form, which a model may read differently.
    Changed,
    /// A module needs it, but the file did not define it, so it was generated.
    MadeUp,
}

impl LossKind {
    /// The name for people and programs.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Changed => "changed",
            Self::MadeUp => "made up",
        }
    }
}

/// One difference between the source and the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportLoss {
    /// The kind of the difference.
    pub kind: LossKind,
    /// The affected part, with literals in back quotes.
    pub what: String,
    /// The location: a file, and a line or key in it.
    pub place: String,
    /// The reason, or the consequence.
    pub why: String,
}

impl ImportLoss {
    /// The loss as JSON.
    #[must_use]
    pub fn to_value(&self) -> Value {
        json!({ "kind": self.kind.word(), "what": self.what, "where": self.place, "why": self.why })
    }
}

/// The losses of one import, without duplicates, in the order of discovery.
#[derive(Debug, Default)]
pub(crate) struct LossList {
    list: Vec<ImportLoss>,
    left_out: usize,
}

impl LossList {
    pub(crate) fn add_lost(&mut self, what: impl Into<String>, place: &str, why: &str) {
        self.add(LossKind::Lost, what.into(), place, why);
    }

    pub(crate) fn add_changed(&mut self, what: impl Into<String>, place: &str, why: &str) {
        self.add(LossKind::Changed, what.into(), place, why);
    }

    pub(crate) fn add_invented(&mut self, what: impl Into<String>, place: &str, why: &str) {
        self.add(LossKind::MadeUp, what.into(), place, why);
    }

    fn add(&mut self, kind: LossKind, what: String, place: &str, why: &str) {
        let one_line = what.split_whitespace().collect::<Vec<_>>().join(" ");
        let short = cut(&one_line, MAX_WHAT);
        let what = if short.len() < one_line.len() { format!("{short}…") } else { short.to_owned() };
        let shown = |text: &str| escape_controls(cut(text, MAX_WHAT)).into_owned();
        let loss = ImportLoss { kind, what: shown(&what), place: shown(place), why: why.to_owned() };
        if self.list.contains(&loss) {
            return;
        }
        if self.list.len() < MAX_LOSSES {
            self.list.push(loss);
        } else {
            self.left_out += 1;
        }
    }

    /// Returns all losses. The number beyond the limit is added as the last entry.
    pub(crate) fn finish(mut self) -> Vec<ImportLoss> {
        if self.left_out > 0 {
            self.list.push(ImportLoss {
                kind: LossKind::Lost,
                what: format!("{} more", self.left_out),
                place: "all files".to_owned(),
                why: "only the first are listed".to_owned(),
            });
        }
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_listed_once_and_shown_on_one_harmless_line() {
        let mut list = LossList::default();
        for _ in 0..3 {
            list.add_lost("a\n b\u{1b}[2J", "x:1", "y");
        }
        let list = list.finish();
        assert_eq!(list.len(), 1);
        assert_eq!(list[0].what, "a b\\u001b[2J");
        assert_eq!(list[0].to_value()["kind"], "lost");
    }

    #[test]
    fn what_goes_beyond_the_limit_is_counted() {
        let mut list = LossList::default();
        for number in 0..1_000 {
            list.add_changed(number.to_string(), "x", "y");
        }
        let list = list.finish();
        assert_eq!((list.len(), list[200].what.as_str()), (201, "800 more"));
    }
}
