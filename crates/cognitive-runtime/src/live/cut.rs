//! What becomes of a reply that the fuse cut: a failure with what there was of the data, and a line in the receipt.
//! The failure depends on the text alone, not on the pieces in which it came.

use cognitive_contract::manifest::Tier;
use cognitive_contract::module::output_code;
use cognitive_contract::{ErrorCode, Failure, Module};
use serde::Serialize;
use serde_json::{Value, json};

use super::fuse::{Fuse, Verdict};
use super::root::{Member, Root};
use super::scanner::Scanner;
use super::step::{Heed, Step};
use super::tree::Tree;
use super::watch::{Cut, Watch};
use crate::host::RunOptions;
use crate::receipt::Receipt;
use crate::stages::output::Answer;
use crate::stages::prompt::estimated_tokens;

/// The fuse in the books of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Blown {
    /// JSON pointer to what could not become valid any more.
    pub path: String,
    /// The rule that it broke.
    pub rule: &'static str,
    /// The offset in the reply at which that was sure.
    pub at: usize,
    /// About how many tokens the model had written when it was stopped.
    pub tokens_written: u64,
    /// How many more it could have written at most, if there was a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_saved_at_most: Option<u64>,
}

impl Blown {
    pub(crate) fn new(cut: &Cut, limit: Option<u64>) -> Self {
        let tokens_written = estimated_tokens(&cut.text);
        Self {
            path: cut.verdict.violation.path.clone(),
            rule: cut.verdict.violation.rule,
            at: cut.verdict.at,
            tokens_written,
            tokens_saved_at_most: limit.map(|limit| limit.saturating_sub(tokens_written)),
        }
    }
}

/// The failure that a cut reply ends in, which is also put down in the books.
pub(crate) fn failure(
    module: &Module,
    watch: &mut Watch<'_, '_>,
    receipt: &mut Receipt,
    options: &RunOptions,
) -> Failure {
    let Some(cut) = watch.cut() else {
        return Failure::new(ErrorCode::InternalError, "a call was cut and nobody knows why");
    };
    receipt.cut(&cut, options.max_output_tokens);
    refusal(module, &cut.verdict, &cut.text, is_strict(module, options))
        .with_detail("cut_at", json!(cut.verdict.at))
        .suggest(
            "Run it again; the call was ended early, because no further text could make the answer valid",
        )
}

fn is_strict(module: &Module, options: &RunOptions) -> bool {
    options.strict_parse || module.manifest.tier == Tier::Exec
}

/// Refuses an answer that passed only because the reply took back what had broken the contract before: by a second member
/// of the same name, by a second object, or by calling the first one thinking. Such a reply has two readings (D-01), and
/// what had gone out as a stream was the first. Without this rule the same text would pass or fail by how fast it came.
pub(crate) fn unless_taken_back(
    module: &Module,
    answer: Answer,
    fuse: impl FnOnce() -> Option<Fuse>,
    text: &str,
    options: &RunOptions,
) -> Answer {
    let takes_back = answer.liberties.iter().any(|liberty| liberty.rule.leaves_out());
    let suspicious = takes_back && answer.outcome.is_ok();
    let Some(mut fuse) = suspicious.then(fuse).flatten() else { return answer };
    let strict = is_strict(module, options);
    Scanner::new(strict).push(text, &mut fuse);
    let Some(verdict) = fuse.verdict() else { return answer };
    let failure = refusal(module, verdict, text, strict)
        .with_detail("taken_back_at", json!(verdict.at))
        .suggest("Run it again; the reply broke the contract first and took it back later");
    Answer { outcome: Err(failure), repairs: Vec::new(), ..answer }
}

fn refusal(module: &Module, verdict: &Verdict, text: &str, strict: bool) -> Failure {
    let found = std::slice::from_ref(&verdict.violation);
    let read = text.get(..verdict.at).unwrap_or(text);
    let partial = partial_data_to(read, strict).filter(|_| module.manifest.failure.partial_allowed);
    Failure::of_violations(output_code(found), found).with_partial(partial)
}

/// What there is of `data`, as far as it had come.
pub(crate) fn partial_data(text: &str, strict: bool) -> Option<serde_json::Map<String, Value>> {
    let mut gathered = Gathered::default();
    Scanner::new(strict).push(text, &mut gathered);
    gathered.partial()
}

/// The same for a text that ends with what broke the contract, so that a number at its end is known to be whole.
fn partial_data_to(text: &str, strict: bool) -> Option<serde_json::Map<String, Value>> {
    let (mut gathered, mut scanner) = (Gathered::default(), Scanner::new(strict));
    scanner.push(text, &mut gathered);
    if !gathered.data.in_text() {
        scanner.push(" ", &mut gathered);
    }
    gathered.partial()
}

#[derive(Default)]
struct Gathered {
    root: Root,
    data: Tree,
}

impl Gathered {
    fn partial(&self) -> Option<serde_json::Map<String, Value>> {
        match self.data.so_far() {
            Some(Value::Object(data)) => Some(data),
            _ => None,
        }
    }
}

impl Heed for Gathered {
    fn step(&mut self, step: Step<'_>, _: usize) {
        self.root.step(step);
        if self.root.member == Member::Data && (self.root.depth >= 2) {
            self.data.step(step);
        }
        if step == Step::Close {
            self.root.closed();
        }
    }
}
