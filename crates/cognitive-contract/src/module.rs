//! A loaded module: manifest, compiled contract, prompt. Judges answers by the module's own law.
//! Comes from `cognitive-library` whatever the format on disk was; nothing here knows files.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use cognitive_schema::{
    Contract, EmittedContext, EnvelopeRules, InsightRule, MAX_VIOLATIONS, PlainSections, ProviderSchema,
    SchemaTarget, Section, envelope_schema, in_order, plain_sections, provider_schema,
};
use serde_json::{Map, Value};

use crate::code::ErrorCode;
use crate::compose::calls::Directives;
use crate::compose::{Composition, MadeOf};
use crate::envelope::{self, Envelope, Strictness};
use crate::failure::Failure;
use crate::format::Format;
use crate::manifest::{EnumStrategy, Manifest, RiskRule, Tier};
use crate::meta::{CONFIDENCE_AGGREGATION, EXPLAIN_LIMIT, OF_THE_RUNTIME, RiskForm, Warning};
use crate::risk_level::Risk;
use crate::shared_text::SharedText;
use crate::trained::TrainedModel;
use crate::violation::{Side, Violation};

/// A module, ready to run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Module {
    /// What it may do, all defaults decided.
    pub manifest: Manifest,
    /// What goes in and out.
    pub contract: Arc<Contract>,
    /// What the model reads.
    pub prompt: String,
    /// Where it was loaded from, for paths that are relative to it; `None` for one that came from no directory.
    pub folder: Option<PathBuf>,
    /// Worked examples, in the order in which the model reads them. The contract accepts each of them.
    pub examples: Vec<WorkedExample>,
    /// What models have learned from its labelled cases.
    pub trained: Arc<[TrainedModel]>,
    /// The format of its folder.
    pub format: Format,
    /// Notices about the module itself, such as its age.
    pub warnings: Vec<Warning>,
    /// What exactly was loaded.
    pub digest: Digest,
    explains_envelope: bool,
    made_of: MadeOf,
    provider_schemas: ProviderSchemas,
    instructions: Arc<OnceLock<SharedText>>,
}

/// An input and the answer that a model should give to it.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkedExample {
    /// What the author calls it.
    pub name: String,
    /// The input.
    pub input: Value,
    /// The whole envelope, its members in the order in which a model writes them.
    pub answer: Value,
}

/// SHA-256 of what was loaded, in lower-case hex, for receipts. Empty for a module that came from no files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Digest {
    /// Of all files that were read, with their names.
    pub module: String,
    /// Of `schema.json`.
    pub schema: String,
}

/// The contract in the dialect of each target, written when it is first asked for.
#[derive(Debug, Clone, Default)]
struct ProviderSchemas(Arc<[OnceLock<Arc<ProviderSchema>>; SchemaTarget::ALL.len()]>);

/// Whether schemas are enforced. The envelope contract always is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Enforcement {
    /// Everything.
    #[default]
    Full,
    /// The envelope contract only (`--no-validate`).
    EnvelopeOnly,
}

impl Module {
    /// Puts the parts together.
    #[must_use]
    pub fn new(manifest: Manifest, contract: Contract, prompt: String, format: Format) -> Self {
        let deprecation = format.deprecation().map(|message| Warning::new("DEPRECATED", message));
        let custom_risk = (manifest.meta.risk_rule == RiskRule::CustomFunction).then(|| {
            let message =
                "`meta.risk_rule: custom_function` has no declared form; the model's own risk is used";
            Warning::new("MANIFEST", message)
        });
        let made_of = MadeOf::new(manifest.composition.as_ref(), &prompt);
        Self {
            manifest,
            contract: Arc::new(contract),
            explains_envelope: explains_envelope(&prompt),
            made_of,
            prompt,
            folder: None,
            examples: Vec::new(),
            trained: Arc::default(),
            format,
            warnings: deprecation.into_iter().chain(custom_risk).collect(),
            digest: Digest::default(),
            provider_schemas: ProviderSchemas::default(),
            instructions: Arc::default(),
        }
    }

    /// The same module in another tier: how freely it speaks, how exactly it must be read and how sure it has to be
    /// are those of the tier. Its contract stays what the author wrote, and is shared.
    #[must_use]
    pub fn in_tier(&self, tier: Tier) -> Self {
        let mut module = self.clone();
        module.manifest.tier = tier;
        module
    }

    /// The contract in the dialect of a target; written once per module.
    #[must_use]
    pub fn provider_schema(&self, target: SchemaTarget) -> Arc<ProviderSchema> {
        let write = || Arc::new(provider_schema(&self.contract, &self.envelope_rules(), target));
        let slot = SchemaTarget::ALL.iter().position(|each| *each == target);
        match slot.and_then(|slot| self.provider_schemas.0.get(slot)) {
            Some(cell) => Arc::clone(cell.get_or_init(write)),
            None => write(),
        }
    }

    /// The envelope contract of this module as one Draft-07 schema that needs no other file.
    #[must_use]
    pub fn envelope_schema(&self) -> Value {
        envelope_schema(&self.contract, &self.envelope_rules())
    }

    /// What a caller of this module sends and gets, for descriptions such as `OpenAPI`.
    #[must_use]
    pub fn plain_sections(&self) -> PlainSections {
        plain_sections(&self.contract, &self.envelope_rules())
    }

    /// What holds for the envelope of this module besides its schemas.
    #[must_use]
    pub fn envelope_rules(&self) -> EnvelopeRules<'_> {
        let manifest = &self.manifest;
        let limit = manifest.overflow.limit();
        let emits = manifest.context.emits.iter();
        EnvelopeRules {
            partial_allowed: manifest.failure.partial_allowed,
            strict_enums: manifest.enums.strategy == EnumStrategy::Strict,
            unknown_tag: &manifest.enums.unknown_tag,
            rationale_object: self.format <= Format::V1,
            error_schema_enforced: manifest.failure.must_return_error_schema,
            insights: InsightRule {
                most: if limit.enabled { limit.max_items } else { 0 },
                mapping_required: limit.mapping_required,
            },
            emits: emits
                .map(|emit| EmittedContext { kind: &emit.kind, schema: emit.schema.as_deref() })
                .collect(),
            risk_words: &Risk::WORDS,
            explain_limit: EXPLAIN_LIMIT,
            not_asked: OF_THE_RUNTIME.into_iter().chain([CONFIDENCE_AGGREGATION]).collect(),
        }
    }

    /// Whether the module is made of itself alone: it has no parts, and its prompt calls no module.
    #[must_use]
    pub fn stands_alone(&self) -> bool {
        self.made_of.stands_alone
    }

    /// The calls and values in the prompt; read once, when the module was made.
    #[must_use]
    pub fn directives(&self) -> &Directives {
        &self.made_of.directives
    }

    /// What the module is made of, compiled once; `None` if it stands alone. The error is that its composition is wrong.
    pub fn composition(&self) -> Result<Option<&Composition>, Failure> {
        self.made_of.composition(self.manifest.composition.as_ref())
    }

    /// The instructions of the module, where nothing in them depends on a run; made when they are first asked for, from
    /// what the module was then.
    #[must_use]
    pub fn instructions(&self, make: impl FnOnce() -> String) -> SharedText {
        self.instructions.get_or_init(|| make().into()).clone()
    }

    /// The failure of an input that breaks the contract.
    pub(crate) fn refuse_input(&self, found: &[Violation]) -> Failure {
        let name = &self.manifest.name;
        Failure::of_violations(ErrorCode::InvalidInput, found)
            .suggest(format!("Run `cogn info {name}` to see what the module takes"))
            .suggest_remotely(format!("`GET /api/modules/{name}` shows what the module takes"))
    }

    /// Adds a worked example; the error is what the contract has against its answer.
    /// Whether the input fits is for its section of the contract to say.
    pub fn add_example(&mut self, name: &str, input: Value, answer: Value) -> Result<(), Vec<Violation>> {
        let ordered = in_order(&self.contract, &self.envelope_rules(), &answer);
        self.accept(answer, Enforcement::Full).map_err(|(_, found)| found)?;
        self.examples.push(WorkedExample { name: name.to_owned(), input, answer: ordered });
        Ok(())
    }

    /// Everything that is wrong with a finished envelope of this module. No repair.
    #[must_use]
    pub fn envelope_violations(&self, value: &Value, enforcement: Enforcement) -> Vec<Violation> {
        let mut found = match enforcement {
            Enforcement::Full => self.schema_violations(value),
            Enforcement::EnvelopeOnly => Vec::new(),
        };
        // Most answers are right, and then there is nothing to compare with.
        if found.is_empty() {
            found = envelope::check(value, self.strictness());
            found.truncate(MAX_VIOLATIONS);
            return found;
        }
        // The module's own schema has often said the same; one complaint per place is enough. Too many insights are
        // said whatever else is wrong there, because they decide the code.
        let said: HashSet<(String, bool)> = found.iter().map(place).collect();
        let further = envelope::check(value, self.strictness()).into_iter();
        let is_new = |violation: &Violation| {
            let (path, overflow) = place(violation);
            !said.contains(&(path.clone(), true)) && (overflow || !said.contains(&(path, false)))
        };
        found.extend(further.filter(is_new));
        found.truncate(MAX_VIOLATIONS);
        found
    }

    /// Reads a finished envelope of this module, or gives it back with everything that is wrong.
    pub fn accept(
        &self,
        value: Value,
        enforcement: Enforcement,
    ) -> Result<Envelope, (Value, Vec<Violation>)> {
        let mut found = self.envelope_violations(&value, enforcement);
        if found.is_empty() && enforcement == Enforcement::Full {
            found = self.rule_violations(&value);
        }
        if !found.is_empty() {
            return Err((value, found));
        }
        let unread = || Violation::new("", ErrorCode::SchemaValidationFailed, "type", "expected an envelope");
        Envelope::from_checked(value).ok_or_else(|| (Value::Null, vec![unread()]))
    }

    /// What the schemas admit and the module's other rules do not: custom values under strict enums.
    #[must_use]
    pub fn rule_violations(&self, value: &Value) -> Vec<Violation> {
        let Some(data) = value.get("data") else { return Vec::new() };
        let refused = self.contract.refused_custom_values(data);
        refused
            .into_iter()
            .map(|violation| {
                let message = "custom values are refused, because the module's enums are strict";
                Violation::new(violation.path, ErrorCode::InvalidEnum, "strategy", message).below("/data")
            })
            .collect()
    }

    fn schema_violations(&self, value: &Value) -> Vec<Violation> {
        let mut found = Vec::new();
        if let (Some(section), Some(meta)) = (self.contract.meta(), value.get("meta")) {
            found.extend(judge(section, meta, "/meta"));
        }
        match value.get("ok").and_then(Value::as_bool) {
            Some(true) => {
                if let Some(data) = value.get("data") {
                    found.extend(judge(self.contract.data(), data, "/data"));
                }
            }
            Some(false) if self.manifest.failure.must_return_error_schema => {
                if let (Some(section), Some(error)) = (self.contract.error(), value.get("error")) {
                    found.extend(judge_error(section, error));
                }
            }
            _ => {}
        }
        for violation in &mut found {
            if violation.path == "/data/extensions/insights" && violation.rule == "maxItems" {
                violation.code = ErrorCode::OverflowLimit;
            }
            if violation.path == "/data/rationale" {
                violation.code = ErrorCode::MissingRationale;
            }
        }
        found
    }

    /// What this module changes about the common envelope contract.
    #[must_use]
    pub fn strictness(&self) -> Strictness<'_> {
        let tag = self.manifest.enums.unknown_tag.as_str();
        let open = self.contract.meta().is_some() && self.manifest.enums.strategy == EnumStrategy::Extensible;
        Strictness {
            // Whether this module's meta schema admits the object is for that schema to say.
            risk: if open { RiskForm::WordsOrCustom { tag } } else { RiskForm::Words },
            insights: self.manifest.overflow.limit(),
            rationale_object: self.format <= Format::V1,
            partial_allowed: self.manifest.failure.partial_allowed,
        }
    }

    /// Whether the module's own prompt tells the model about the envelope.
    #[must_use]
    pub fn explains_envelope(&self) -> bool {
        self.explains_envelope
    }

    /// The payload that a failed run may hand over: the model's own, unrepaired.
    #[must_use]
    pub fn partial_data(&self, mut original: Map<String, Value>) -> Option<Map<String, Value>> {
        if !self.manifest.failure.partial_allowed {
            return None;
        }
        match original.get_mut("data") {
            Some(Value::Object(data)) => Some(std::mem::take(data)),
            _ => Some(original),
        }
    }
}

/// Whether a text tells a model about the envelope: by its name, or by its members. Whole words count, so that
/// "metadata" and "look" do not.
#[must_use]
pub fn explains_envelope(prompt: &str) -> bool {
    let lower = prompt.to_lowercase();
    let mut words = lower.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let (mut meta, mut data, mut outcome) = (false, false, false);
    words.any(|word| {
        meta |= word == "meta";
        data |= word == "data";
        outcome |= word == "ok" || word == "explain";
        word == "envelope" || word == "envelopes" || (meta && data && outcome)
    })
}

/// Where a violation stands, and whether it is about too many insights.
fn place(violation: &Violation) -> (String, bool) {
    (violation.path.clone(), violation.code == ErrorCode::OverflowLimit)
}

fn judge(section: &Section, value: &Value, prefix: &str) -> impl Iterator<Item = Violation> {
    Violation::find(section, value, Side::Output).into_iter().map(move |each| each.below(prefix))
}

/// Judges an error that the model made. A code in another spelling of the same number counts as that number.
fn judge_error(section: &Section, error: &Value) -> Vec<Violation> {
    let found: Vec<Violation> = judge(section, error, "/error").collect();
    if found.is_empty() {
        return found;
    }
    let Some(code) = error.get("code").and_then(Value::as_str).and_then(ErrorCode::find) else {
        return found;
    };
    let spellings = [code.number(), code.name()].into_iter().chain(code.aliases().iter().copied());
    let respelled = |spelling: &str| {
        let mut error = error.clone();
        if let Value::Object(members) = &mut error {
            members.insert("code".to_owned(), Value::from(spelling));
        }
        section.accepts(&error)
    };
    if spellings.into_iter().any(respelled) { Vec::new() } else { found }
}

/// The published code for a list of violations of an answer.
///
/// Too many insights are always E3004. What breaks a schema or the envelope is E3001. Only where both are
/// satisfied does the further rule give its own code: E3003 for a blank rationale, E3005 for a refused value, E3006 for
/// a medium that the module does not give.
#[must_use]
pub fn output_code(found: &[Violation]) -> ErrorCode {
    let is_further_rule = |violation: &Violation| {
        matches!(
            (violation.code, violation.rule),
            (ErrorCode::MissingRationale, "blank")
                | (ErrorCode::InvalidEnum, "strategy")
                | (ErrorCode::ConstraintViolation, "modalities.output")
        )
    };
    if found.iter().any(|violation| violation.code == ErrorCode::OverflowLimit) {
        return ErrorCode::OverflowLimit;
    }
    match found.first() {
        Some(first) if found.iter().all(is_further_rule) => first.code,
        _ => ErrorCode::SchemaValidationFailed,
    }
}

#[cfg(test)]
mod tests;
