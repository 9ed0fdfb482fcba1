//! Stage 5: checks whether the answer keeps the contract. Repairs once, checks again, applies the rules beyond the
//! schema, settles the risk, and applies the tier's gate. (E2001, E3001, E3003–E3006)
//! All rules come from `cognitive-contract`; this file only fixes the order.

use cognitive_contract::context::{EMITTED, not_context};
use cognitive_contract::envelope::mistyped_ok;
use cognitive_contract::insights::UNDECLARED;
use cognitive_contract::manifest::Tier;
use cognitive_contract::media::check_output;
use cognitive_contract::meta::OF_THE_RUNTIME;
use cognitive_contract::meta::{self, RiskForm};
use cognitive_contract::module::output_code;
use cognitive_contract::numbers::RoundedNumber;
use cognitive_contract::repair::{self, Repair};
use cognitive_contract::tier::Gate;
use cognitive_contract::{
    Confidence, Enforcement, Envelope, ErrorCode, Failure, Module, Violation, Warning, risk, wrap_v21,
};
use serde_json::{Map, Value};

use super::parse::{Draft, Liberty};

/// A judged answer: an envelope, and the changes that led to it.
#[derive(Debug)]
pub struct JudgedAnswer {
    /// Success, a failure that the module's model reported, or a failure of this check.
    pub outcome: Result<Envelope, Failure>,
    /// The liberties taken with the model's syntax.
    pub liberties: Vec<Liberty>,
    /// The changes by repair.
    pub repairs: Vec<Repair>,
    /// Notices about the answer for `meta.warnings`. Those about the run are stored with the run.
    pub warnings: Vec<Warning>,
    /// The data needed to restore the model's original answer.
    pub(crate) original: Original,
    /// True if the answer kept the form of the contract, and was refused for its confidence or its risk.
    pub(crate) is_gated: bool,
}

/// The model's answer before any change. The payload, which is most of it, is not copied: the original is restored
/// from the changed answer.
#[derive(Debug, Default)]
pub(crate) enum Original {
    /// Nothing was changed.
    #[default]
    Unchanged,
    /// The whole answer, because its shape was different.
    Whole(Map<String, Value>),
    /// The original values of changed payload members, each with its path in the answer.
    Changed(Vec<(String, Value)>),
}

impl Original {
    /// Returns the partial data of a failed run, restored from the current reply.
    fn partial(self, module: &Module, mut reply: Map<String, Value>) -> Option<Map<String, Value>> {
        match self {
            Self::Unchanged => {}
            Self::Whole(original) => return module.partial_data(original),
            Self::Changed(values) => {
                for (path, before) in values {
                    repair::restore_value(&mut reply, &path, before);
                }
            }
        }
        module.partial_data(reply)
    }
}

impl JudgedAnswer {
    /// An unchanged answer.
    #[must_use]
    pub fn new(outcome: Result<Envelope, Failure>) -> Self {
        let (liberties, repairs, warnings) = (Vec::new(), Vec::new(), Vec::new());
        Self { outcome, liberties, repairs, warnings, original: Original::Unchanged, is_gated: false }
    }

    /// A text without a readable object.
    #[must_use]
    pub fn unreadable(failure: Failure) -> Self {
        Self::new(Err(failure))
    }

    /// Returns whether another answer can honestly cure the failure. To ask for more confidence or less risk would invite
    /// the model to lie. (D-23)
    pub(crate) fn is_curable(&self) -> bool {
        let Err(failure) = &self.outcome else { return false };
        let of_form = matches!(
            failure.code(),
            ErrorCode::ParseError
                | ErrorCode::SchemaValidationFailed
                | ErrorCode::MissingRationale
                | ErrorCode::OverflowLimit
                | ErrorCode::InvalidEnum
                | ErrorCode::ConstraintViolation
        );
        of_form && !self.is_gated
    }

    /// Turns a success into a refusal because of later findings, such as in the bytes of its media.
    pub(crate) fn refuse(&mut self, module: &Module, found: &[Violation]) {
        if let Ok(envelope) = &self.outcome
            && !found.is_empty()
        {
            let reply = serde_json::to_value(envelope).unwrap_or_default();
            let written = into_members(reply)
                .and_then(|reply| std::mem::take(&mut self.original).partial(module, reply));
            self.outcome = Err(refusal(found).with_partial(written));
        }
    }

    /// Returns all notices about the answer and its run: liberties and repairs come last.
    #[must_use]
    pub fn notices(&self, of_the_run: &[Warning]) -> Vec<Warning> {
        let repairs = self.repairs.iter().map(Repair::warning);
        let said = self.warnings.iter().chain(of_the_run).cloned();
        said.chain(Liberty::warnings(&self.liberties)).chain(repairs).collect()
    }
}

/// Judges an answer.
#[must_use]
pub fn judge(module: &Module, mut draft: Draft, enforcement: Enforcement, gate: Gate) -> JudgedAnswer {
    let mut judge = Judge::new(module, enforcement);
    let outcome = match judge.numbers(&mut draft) {
        Some(failure) => Err(failure),
        None => judge.settle(draft.object).and_then(|envelope| judge.pass_gate(gate, envelope)),
    };
    let Judge { repairs, warnings, original, is_gated, .. } = judge;
    JudgedAnswer { outcome, liberties: draft.liberties, repairs, warnings, original, is_gated }
}

/// The failure of an answer that breaks the contract. The same request may fail in the same way, so its suggestion is
/// another one.
fn refusal(found: &[Violation]) -> Failure {
    Failure::from_violations(output_code(found), found)
        .suggest("See `error.details.violations`; `--reask 1` shows them to the model, which then answers again")
        .suggest_remotely(
            "See `error.details.violations`; `_options.reask` shows them to the model, which then answers again",
        )
}

/// Returns whether an object keeps the contract, repairs included. Does not check the requirements of the tier.
#[must_use]
pub fn keeps_contract(module: &Module, object: Map<String, Value>, enforcement: Enforcement) -> bool {
    Judge::new(module, enforcement).settle(object).is_ok()
}

/// Removes members that the runtime writes itself if the model's value has the wrong type. Also removes the marks of
/// a stream, and token counts, which only the service knows. A well-formed value stays until the module's own schema
/// has seen it.
fn drop_nonsense(reply: &mut Map<String, Value>) {
    if let Some(Value::Object(meta)) = reply.get_mut("meta")
        // Models rarely write these members, and this lookup is cheaper than the check.
        && meta.keys().any(|name| OF_THE_RUNTIME.contains(&name.as_str()))
    {
        let found = meta::check(meta, RiskForm::Words);
        for name in OF_THE_RUNTIME {
            if found.iter().any(|violation| violation.path.strip_prefix('/') == Some(name)) {
                meta.shift_remove(name);
            }
        }
    }
    // A lookup is cheaper than the removal of an absent member.
    for mark in ["streaming", "session_id", "usage"] {
        if reply.get(mark).is_some() {
            reply.shift_remove(mark);
        }
    }
}

fn precision_violation(number: &RoundedNumber) -> Violation {
    let message = format!("a number that loses precision: {}", number.written);
    Violation::new(number.path.clone(), ErrorCode::SchemaValidationFailed, "number", message)
}

fn into_members(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(members) => Some(members),
        _ => None,
    }
}

struct Judge<'a> {
    module: &'a Module,
    enforcement: Enforcement,
    /// See [`Original`]; recorded from the first change on.
    original: Original,
    repairs: Vec<Repair>,
    warnings: Vec<Warning>,
    /// See [`JudgedAnswer`].
    is_gated: bool,
}

impl<'a> Judge<'a> {
    fn new(module: &'a Module, enforcement: Enforcement) -> Self {
        let (original, repairs, warnings) = (Original::Unchanged, Vec::new(), Vec::new());
        Self { module, enforcement, original, repairs, warnings, is_gated: false }
    }

    /// Handles numbers that differ from the model's text (D-10): refused in `exec` and if no type can hold them, a
    /// warning otherwise.
    fn numbers(&mut self, draft: &mut Draft) -> Option<Failure> {
        let exact = self.module.manifest.tier == Tier::Exec;
        let refused = |number: &&RoundedNumber| exact || number.overflows;
        let found: Vec<Violation> = draft.rounded.iter().filter(refused).map(precision_violation).collect();
        if !found.is_empty() {
            return Some(self.refuse(std::mem::take(&mut draft.object), &found));
        }
        let notice = |number: &RoundedNumber| {
            let RoundedNumber { path, written, .. } = number;
            Warning::new(
                "NUMBER_ROUNDED",
                format!("the model wrote {written} at `{path}`; it was rounded to the nearest float"),
            )
        };
        self.warnings.extend(draft.rounded.iter().map(notice));
        None
    }

    fn settle(&mut self, reply: Map<String, Value>) -> Result<Envelope, Failure> {
        let reply = Value::Object(self.current_shape(reply)?);
        let (mut reply, mut found) = match self.module.accept(reply, self.enforcement) {
            Ok(envelope) => return self.with_fit_media(envelope),
            Err(refused) => refused,
        };
        if self.repair(&mut reply, &found) {
            (reply, found) = match self.module.accept(reply, self.enforcement) {
                Ok(envelope) => return self.with_fit_media(envelope),
                Err(refused) => refused,
            };
        }
        Err(self.refuse(into_members(reply).unwrap_or_default(), &found))
    }

    /// Checks the media of the answer by the module's modalities, which no schema describes. Their bytes are checked
    /// later. (MEDIA-018)
    fn with_fit_media(&mut self, envelope: Envelope) -> Result<Envelope, Failure> {
        let modalities = &self.module.manifest.modalities;
        let found = envelope.data().map(|data| check_output(modalities, data)).unwrap_or_default();
        if found.is_empty() {
            return Ok(envelope);
        }
        let reply = serde_json::to_value(&envelope).ok().and_then(into_members).unwrap_or_default();
        Err(self.refuse(reply, &found))
    }

    /// Converts the answer to the shape `{ok, meta, …}` if the module accepts older shapes.
    fn current_shape(&mut self, mut reply: Map<String, Value>) -> Result<Map<String, Value>, Failure> {
        // First of all: whatever comes after takes an answer without a clear `ok` for one of v2.1.
        if let Some(fault) = mistyped_ok(&reply) {
            return Err(self.refuse(reply, &[fault]));
        }
        drop_nonsense(&mut reply);
        // Context is beside the answer: a value that cannot be context costs a notice, and not the answer.
        if reply.get(EMITTED).is_some_and(|given| !given.is_object()) {
            reply.shift_remove(EMITTED);
            self.warnings.push(not_context());
        }
        if let Some(broken) = self.missing_promise(&reply) {
            return Err(self.refuse(reply, &[broken]));
        }
        if self.module.manifest.compat.wraps() && !wrap_v21::is_current(&reply) {
            self.original = Original::Whole(reply.clone());
            self.warnings
                .push(Warning::new("DEPRECATED", "the model answered in the v2.1 format; it was wrapped"));
            reply = wrap_v21::wrap(reply);
        }
        // The model's own failure passes, without the partial result that the module does not allow. (D-20)
        if !self.module.manifest.failure.partial_allowed && reply.get("ok") == Some(&Value::Bool(false)) {
            reply.shift_remove("partial_data");
        }
        Ok(reply)
    }

    /// v1 modules could promise a confidence and a rationale; a default of 0.5 would break that promise silently.
    fn missing_promise(&self, reply: &Map<String, Value>) -> Option<Violation> {
        let promises = self.module.manifest.constraints;
        if !promises.require_confidence && !promises.require_rationale {
            return None;
        }
        if reply.get("ok") == Some(&Value::Bool(false)) {
            return None;
        }
        let payload = reply.get("data").and_then(Value::as_object).unwrap_or(reply);
        let stated =
            reply.get("meta").and_then(|meta| meta.get("confidence")).or_else(|| payload.get("confidence"));
        let confident = stated.and_then(Value::as_f64).and_then(Confidence::new).is_some();
        let reasoned = match payload.get("rationale") {
            Some(Value::String(text)) => !text.trim().is_empty(),
            Some(Value::Object(members)) => !members.is_empty(),
            _ => false,
        };
        let broken = if promises.require_confidence && !confident {
            ("confidence", "the module promises a confidence from 0 to 1")
        } else if promises.require_rationale && !reasoned {
            ("rationale", "the module promises a rationale")
        } else {
            return None;
        };
        let prefix = if reply.contains_key("data") { "/data" } else { "" };
        let (path, code) = (format!("{prefix}/{}", broken.0), ErrorCode::SchemaValidationFailed);
        Some(Violation::new(path, code, "promise", broken.1))
    }

    /// Repairs once, if there is something to repair. Too many insights cannot be repaired, and their code takes
    /// precedence. An answer of v2.1 has no `meta`, and a module may refuse a generated one. (D-11)
    fn repair(&mut self, reply: &mut Value, found: &[Violation]) -> bool {
        let overflows = found.iter().any(|each| each.code == ErrorCode::OverflowLimit);
        // Tier `exec` drops nothing that a model wrote as part of its data. (D-29)
        let is_exact = self.module.manifest.tier == Tier::Exec;
        let is_stray = is_exact && found.iter().any(|each| each.rule == UNDECLARED);
        let Value::Object(members) = reply else { return false };
        let has_meta = members.get("meta").is_some_and(|meta| !meta.is_null());
        if overflows || is_stray || (self.module.manifest.compat.refuses_v21_payload && !has_meta) {
            return false;
        }
        // If the payload is not an object, the whole answer counts as the model's original.
        if !matches!(self.original, Original::Whole(_)) && !members.get("data").is_some_and(Value::is_object)
        {
            self.original = Original::Whole(members.clone());
        }
        self.repairs = repair::repair(members, found, self.module.manifest.meta.risk_rule);
        if !matches!(self.original, Original::Whole(_)) {
            let in_payload = self.repairs.iter().filter(|repair| repair.path.starts_with("/data/"));
            let changed = in_payload.filter_map(|repair| Some((repair.path.clone(), repair.before.clone()?)));
            self.original = Original::Changed(changed.collect());
        }
        !self.repairs.is_empty()
    }

    fn refuse(&mut self, reply: Map<String, Value>, found: &[Violation]) -> Failure {
        refusal(found).with_partial(std::mem::take(&mut self.original).partial(self.module, reply))
    }

    fn pass_gate(&mut self, gate: Gate, mut envelope: Envelope) -> Result<Envelope, Failure> {
        let found = self.settle_risk(&mut envelope);
        for member in OF_THE_RUNTIME {
            envelope.meta_mut().extra.shift_remove(member);
        }
        let tier = self.module.manifest.tier;
        let why = if found.is_empty() { gate.refusal(tier, &envelope) } else { Some(refusal(&found)) };
        if let Some(why) = why {
            self.is_gated = true;
            let partial = match (std::mem::take(&mut self.original), envelope.into_data()) {
                (Original::Whole(original), _) => self.module.partial_data(original),
                (_, None) => None,
                (original, Some(data)) => {
                    let reply = Map::from_iter([("data".to_owned(), Value::Object(data))]);
                    original.partial(self.module, reply)
                }
            };
            return Err(why.with_partial(partial));
        }
        self.warnings.extend(gate.warning(tier, &envelope));
        Ok(envelope)
    }

    /// Raises the risk to that of the data. The module's own `meta` schema has judged the stated risk only, so it judges
    /// a raised one again.
    fn settle_risk(&self, envelope: &mut Envelope) -> Vec<Violation> {
        let Some(data) = envelope.data() else { return Vec::new() };
        let settled = risk::settle(&envelope.meta().risk, data, self.module.manifest.meta.risk_rule);
        if settled == envelope.meta().risk {
            return Vec::new();
        }
        envelope.meta_mut().risk = settled;
        match self.enforcement {
            Enforcement::Full => self.module.meta_violations(envelope.meta()),
            Enforcement::EnvelopeOnly => Vec::new(),
        }
    }
}
