//! Checks the values of parts that the prompt inserts with `{{part.path}}`: unknown part names, and paths that the
//! contract of the part lacks. Other braces stay text and are not reported.

use std::collections::BTreeSet;

use cognitive_contract::compose::calls::Insert;
use cognitive_contract::compose::plan::AnswerSource;
use cognitive_contract::compose::{Composition, PathStep};

use super::flow::unknown_name_message;
use super::follow::follow;
use super::view::ContractView;
use crate::finding::{Finding, FindingLocation, Findings, Severity};
use crate::validate::composition::PROMPT_FILE;
use crate::validate::nearest_name::{did_you_mean, nearest};

const RULE: &str = "prompt/insert";

/// Checks all inserts. `view` returns the contract of a part or of a called module, by name.
pub(super) fn check<'a>(
    made_of: &Composition,
    view: &dyn Fn(&str) -> Option<&'a ContractView>,
    found: &mut Findings,
) {
    // A prompt that is never sent needs no check.
    if made_of.plan.answer != AnswerSource::Prompt {
        return;
    }
    let called = made_of.directives.calls.iter().map(|call| call.module.as_str());
    let names: BTreeSet<&str> =
        made_of.plan.parts.iter().map(|part| part.name.as_str()).chain(called).collect();
    for insert in &made_of.directives.inserts {
        if !names.contains(insert.module.as_str()) {
            stranger(insert, &names, found);
            continue;
        }
        let Some(envelope) = view(&insert.module).and_then(ContractView::envelope) else { continue };
        let Err(astray) = follow(insert.path.steps(), &envelope) else { continue };
        let name = |step: &PathStep| step.name().unwrap_or("[…]").to_owned();
        let steps: Vec<String> = insert.path.steps().iter().map(name).collect();
        let wrong = steps.get(astray.step).cloned().unwrap_or_default();
        let before = steps.get(..astray.step).unwrap_or_default().join(".");
        let before =
            if before.is_empty() { insert.module.clone() } else { format!("{}.{before}", insert.module) };
        // A missing value leaves a gap in the prompt and a warning in the answer; the run continues.
        let (_, message) = unknown_name_message(&wrong, &before, &astray);
        let at = FindingLocation::Span(insert.span.clone());
        let finding = Finding::warning(PROMPT_FILE, at, RULE, message);
        found.push(Finding { hint: did_you_mean(&wrong, astray.known.iter().copied()), ..finding });
    }
}

/// Reports a name that is similar to that of a part; any other one is text in braces.
fn stranger(insert: &Insert, names: &BTreeSet<&str>, found: &mut Findings) {
    let Some(near) = nearest(&insert.module, names.iter().copied()) else { return };
    let message = "no part has this name, so the prompt keeps the braces";
    let finding = Finding::error(PROMPT_FILE, FindingLocation::Span(insert.span.clone()), RULE, message);
    found.push(Finding { severity: Severity::Warning, ..finding }.hint(format!("Did you mean `{near}`?")));
}
