//! What an import could not take over as it was, said so that an author can decide what to do about it: what, where, and why it
//! matters. Bounded: a file of a thousand tags gives no page of a thousand lines.

use cognitive_contract::text::{cut, written_out};
use serde_json::{Value, json};

/// The most losses that are listed one by one.
const MAX_LOSSES: usize = 200;
/// The longest quotation of what was lost.
const MAX_WHAT: usize = 200;

/// What became of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossKind {
    /// It is not in the module.
    Lost,
    /// It is there in another form, which a model may read otherwise.
    Changed,
    /// The file did not say it, and a module cannot do without it.
    MadeUp,
}

impl LossKind {
    /// The word for people and programs.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Changed => "changed",
            Self::MadeUp => "made up",
        }
    }
}

/// One thing that is not as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportLoss {
    /// What became of it.
    pub kind: LossKind,
    /// What it is, with literals in back quotes.
    pub what: String,
    /// Where it stands: a file, and a line or key in it.
    pub place: String,
    /// Why it matters.
    pub why: String,
}

impl ImportLoss {
    /// The same for programs.
    #[must_use]
    pub fn to_value(&self) -> Value {
        json!({ "kind": self.kind.word(), "what": self.what, "where": self.place, "why": self.why })
    }
}

/// The losses of one import, each once, in the order in which they were found.
#[derive(Debug, Default)]
pub(crate) struct LossList {
    list: Vec<ImportLoss>,
    left_out: usize,
}

impl LossList {
    pub(crate) fn lost(&mut self, what: impl Into<String>, place: &str, why: &str) {
        self.add(LossKind::Lost, what.into(), place, why);
    }

    pub(crate) fn changed(&mut self, what: impl Into<String>, place: &str, why: &str) {
        self.add(LossKind::Changed, what.into(), place, why);
    }

    pub(crate) fn made_up(&mut self, what: impl Into<String>, place: &str, why: &str) {
        self.add(LossKind::MadeUp, what.into(), place, why);
    }

    fn add(&mut self, kind: LossKind, what: String, place: &str, why: &str) {
        let one_line = what.split_whitespace().collect::<Vec<_>>().join(" ");
        let short = cut(&one_line, MAX_WHAT);
        let what = if short.len() < one_line.len() { format!("{short}…") } else { short.to_owned() };
        let shown = |text: &str| written_out(cut(text, MAX_WHAT)).into_owned();
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

    /// All of them. What went beyond the limit is counted.
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
            list.lost("a\n b\u{1b}[2J", "x:1", "y");
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
            list.changed(number.to_string(), "x", "y");
        }
        let list = list.finish();
        assert_eq!((list.len(), list[200].what.as_str()), (201, "800 more"));
    }
}
