//! The model fallback chain of a run: the first model that fits is asked, and the next one if its answer is not good
//! enough.
//! Decides only whether to ask the next model; requests and judgement are the same for every model. Never merges
//! answers of two models, and a stream never shows text of a discarded answer.

use std::fmt;
use std::sync::Arc;

use cognitive_contract::code::Blame;
use cognitive_contract::ports::Provider;
use cognitive_contract::{Confidence, Envelope, ErrorCode, Failure, Risk, Warning, json_cmp};
use serde::Serialize;
use serde_json::Value;

use crate::attempt;
use crate::receipt::Receipt;
use crate::run::Run;
use crate::stages::output::JudgedAnswer;
use crate::stages::prompt::Prompt;

/// The members of `data` that are not part of the decision.
const BESIDES: [&str; 2] = ["rationale", "extensions"];

/// The fallback models above the host's provider, and the rules for asking them.
#[derive(Clone, Default)]
pub struct Ladder {
    /// The fallback models in the order in which they are asked.
    pub rungs: Vec<Arc<dyn Provider>>,
    /// The rules for asking the next model.
    pub rules: ClimbRules,
}

/// The rules for an answer that is not good enough. A failure that the model or the provider caused never is good
/// enough.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct ClimbRules {
    /// Rejects an answer with a lower confidence.
    pub below_confidence: Option<Confidence>,
    /// Rejects an answer with a higher risk.
    pub above_risk: Option<Risk>,
    /// Accepts an answer below `below_confidence` if an earlier model gave the same answer, and one of the two is at
    /// least this sure.
    pub unless_agreed: Option<Confidence>,
}

/// A model whose answer was rejected, for the receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftRung {
    /// The `provider/model`, as the server named it, else as it was asked for.
    pub model: String,
    /// The reason: a code, or the fault in `meta`.
    pub because: String,
    /// The number of repair prompts before.
    pub reasked: u32,
}

/// A valid but rejected answer, in case no later model has a valid one.
struct PassedAnswer {
    answer: JudgedAnswer,
    receipt: Receipt,
}

impl fmt::Debug for Ladder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.rungs.iter().map(|rung| rung.name()).collect();
        f.debug_struct("Ladder").field("rungs", &names).field("rules", &self.rules).finish()
    }
}

impl ClimbRules {
    /// Rejects answers with a lower confidence.
    #[must_use]
    pub fn with_confidence(mut self, least: Confidence) -> Self {
        self.below_confidence = Some(least);
        self
    }

    /// Rejects answers with a higher risk.
    #[must_use]
    pub fn with_risk(mut self, most: Risk) -> Self {
        self.above_risk = Some(most);
        self
    }

    /// Accepts answers that two models give if either of them has at least this confidence.
    #[must_use]
    pub fn with_agreement(mut self, least: Confidence) -> Self {
        self.unless_agreed = Some(least);
        self
    }

    /// Returns the rejected answer that agrees with this one of `model`, if that is enough to accept it. A model does
    /// not agree with itself, and an answer that was too risky never counts as agreement.
    fn find_agreeing<'p>(
        &self,
        answer: &Envelope,
        model: Option<&str>,
        passed: &'p [PassedAnswer],
    ) -> Option<&'p PassedAnswer> {
        let least = self.unless_agreed?.get();
        passed.iter().find(|passed| {
            let Ok(other) = &passed.answer.outcome else { return false };
            let surer = answer.meta().confidence.get().max(other.meta().confidence.get());
            let is_risky = self.above_risk.is_some_and(|most| other.meta().risk.level() > most);
            let is_another = passed.receipt.model.as_deref() != model;
            surer >= least && is_another && !is_risky && is_same_answer(answer, other)
        })
    }

    /// The reason why an outcome is not good enough, else `None`. An answer that models agree on needs no confidence.
    fn reason(&self, outcome: Result<&Envelope, &Failure>, is_agreed: bool) -> Option<String> {
        match outcome {
            // A refusal by the model itself.
            Ok(envelope) if !envelope.ok() => {
                Some(envelope.error().map_or_else(|| "error".to_owned(), |error| error.code().to_owned()))
            }
            Ok(envelope) => {
                let (confidence, risk) = (envelope.meta().confidence, envelope.meta().risk.level());
                let unsure =
                    self.below_confidence.filter(|least| !is_agreed && confidence.get() < least.get());
                let risky = self.above_risk.filter(|most| risk > *most);
                unsure
                    .map(|least| format!("confidence {} is below {}", confidence.get(), least.get()))
                    .or_else(|| {
                        risky.map(|most| format!("risk `{}` is above `{}`", risk.word(), most.word()))
                    })
            }
            Err(failure) => may_climb(failure).then(|| failure.code().number().to_owned()),
        }
    }
}

/// Returns whether two answers are the same except for rationale and extensions. Answers that have nothing else are
/// never the same.
fn is_same_answer(one: &Envelope, other: &Envelope) -> bool {
    let said = |envelope: &Envelope| {
        let mut data = envelope.data()?.clone();
        data.retain(|name, _| !BESIDES.contains(&name.as_str()));
        (!data.is_empty()).then_some(Value::Object(data))
    };
    said(one).zip(said(other)).is_some_and(|(one, other)| json_cmp::deep_equal(&one, &other))
}

/// Returns whether another model may do better. It cannot if the caller, the module or this runtime caused the
/// failure. A prompt that is too long for one model may fit another.
fn may_climb(failure: &Failure) -> bool {
    matches!(failure.code().blame(), Blame::Model | Blame::Provider)
        || failure.code() == ErrorCode::ContextOverflow
}

/// Asks one model after the other until an answer is good enough or no model is left. Most runs have one model.
pub(crate) async fn ask(run: &mut Run<'_, '_>, prompt: Prompt) -> Result<JudgedAnswer, Failure> {
    let mut passed = Vec::new();
    while !run.above.is_empty() {
        run.listeners.hold(true);
        let outcome = attempt::ask(run, prompt.clone()).await;
        if let Some(good) = climb(run, outcome, &mut passed) {
            return good;
        }
    }
    run.listeners.hold(false);
    let last = attempt::ask(run, prompt).await;
    match best_outcome(run, last, passed) {
        // Only an answer carries the warnings about models that were down.
        Err(failure) if !run.receipt.left.is_empty() => Ok(JudgedAnswer::unreadable(failure)),
        outcome => outcome,
    }
}

/// The `provider/model` that is asked now: as the server named it, else as it was asked for.
fn asked_model(run: &Run<'_, '_>) -> String {
    let requested = || run.provider.destination().unwrap_or_default().model_label(run.provider.name());
    run.receipt.model.clone().unwrap_or_else(requested)
}

/// Judges the outcome of a model that has others above it. Returns it if it is good enough, else switches to the next
/// model. A valid but rejected answer is stored in `passed`.
fn climb(
    run: &mut Run<'_, '_>,
    outcome: Result<JudgedAnswer, Failure>,
    passed: &mut Vec<PassedAnswer>,
) -> Option<Result<JudgedAnswer, Failure>> {
    let rules = run.plan.models.rules();
    let judged = outcome.as_ref().map_or_else(Err, |answer| answer.outcome.as_ref());
    let model = run.receipt.model.as_deref();
    let agreed = judged
        .ok()
        .filter(|envelope| envelope.ok())
        .and_then(|envelope| rules.find_agreeing(envelope, model, passed));
    let Some(because) = rules.reason(judged, agreed.is_some()) else {
        // Recorded only if the agreement decided.
        if rules.reason(judged, false).is_some() {
            run.receipt.agreed_with = agreed.and_then(|passed| passed.receipt.model.clone());
        }
        return Some(outcome);
    };
    let Some((next, above)) = run.above.split_first() else { return Some(outcome) };
    let (next, above) = (*next, above.to_vec());
    let model = asked_model(run);
    if let Err(failure) = judged
        && failure.code().blame() == Blame::Provider
    {
        let code = failure.code().number();
        let message = format!("`{model}` did not answer ({code}), so the next model was asked");
        run.warnings.push(Warning::new("PROVIDER_DOWN", message));
    }
    let receipt = &mut *run.receipt;
    let left = LeftRung { model, because, reasked: receipt.reasked };
    if let Ok(answer) = outcome
        && answer.outcome.as_ref().is_ok_and(Envelope::ok)
    {
        passed.push(PassedAnswer { answer, receipt: receipt.clone() });
    }
    receipt.left.push(left);
    receipt.begin_next_model();
    (run.provider, run.above) = (next, above);
    None
}

/// The outcome of the last model. If that failed, the valid answer of an earlier model, with a warning.
fn best_outcome(
    run: &mut Run<'_, '_>,
    outcome: Result<JudgedAnswer, Failure>,
    mut passed: Vec<PassedAnswer>,
) -> Result<JudgedAnswer, Failure> {
    let failed = match &outcome {
        Ok(answer) => answer.outcome.as_ref().map_or_else(|failure| Some(failure.code().number()), |_| None),
        Err(failure) => Some(failure.code().number()),
    };
    let (Some(code), Some(mut passed)) = (failed, passed.pop()) else { return outcome };
    let asked = asked_model(run);
    run.receipt.left.push(LeftRung {
        model: asked.clone(),
        because: code.to_owned(),
        reasked: run.receipt.reasked,
    });
    run.receipt.return_to(&passed.receipt);
    let message = format!("`{asked}` did not answer ({code}), so this is the answer of the model before it");
    passed.answer.warnings.push(Warning::new("CLIMB_FAILED", message));
    Ok(passed.answer)
}
