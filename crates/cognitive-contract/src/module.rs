//! A loaded module: manifest, compiled contract and prompt. Checks answers against the module's own rules.
//! `cognitive-library` builds it from every format on disk; this file knows no files.

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
use crate::insights;
use crate::manifest::{EnumStrategy, Manifest, RiskRule, Tier};
use crate::meta::{CONFIDENCE_AGGREGATION, EXPLAIN_LIMIT, Meta, OF_THE_RUNTIME, RiskForm, Warning};
use crate::risk_level::Risk;
use crate::shared_text::SharedText;
use crate::trained_model::TrainedModel;
use crate::violation::{Side, Violation};

/// A module, ready to run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Module {
    /// The manifest, with all defaults resolved.
    pub manifest: Manifest,
    /// The contract of input and output.
    pub contract: Arc<Contract>,
    /// The prompt for the model.
    pub prompt: String,
    /// The folder that it was loaded from, for relative paths; `None` for a module without a folder.
    pub folder: Option<PathBuf>,
    /// Worked examples, in the order in which the model reads them. Each satisfies the contract.
    pub examples: Vec<WorkedExample>,
    /// The trained models: weights learned from the module's labelled cases.
    pub trained: Arc<[TrainedModel]>,
    /// The format of the module's folder.
    pub format: Format,
    /// Notices about the module itself, such as a deprecated format.
    pub warnings: Vec<Warning>,
    /// The hashes of the loaded files.
    pub digest: Digest,
    explains_envelope: bool,
    made_of: MadeOf,
    provider_schemas: ProviderSchemas,
    instructions: Arc<OnceLock<SharedText>>,
}

/// An input with the expected answer of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkedExample {
    /// The author's name for it.
    pub name: String,
    /// The input.
    pub input: Value,
    /// The whole envelope, its members in the order in which a model writes them.
    pub answer: Value,
}

/// SHA-256 hashes of the loaded files, in lower-case hex, for receipts. Empty for a module without files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Digest {
    /// The hash of all files that were read, with their names.
    pub module: String,
    /// The hash of `schema.json`.
    pub schema: String,
}

/// The contract in the schema dialect of each target, generated on first use.
#[derive(Debug, Clone, Default)]
struct ProviderSchemas(Arc<[OnceLock<Arc<ProviderSchema>>; SchemaTarget::ALL.len()]>);

/// The level of schema enforcement. The envelope contract is always enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Enforcement {
    /// All schemas are enforced.
    #[default]
    Full,
    /// Only the envelope contract is enforced (`--no-validate`).
    EnvelopeOnly,
}

impl Module {
    /// Builds a module from its parts.
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

    /// Returns the same module in another tier. The tier sets how freely the module answers, how strictly its
    /// answers are parsed and how confident they must be. The author's contract is unchanged and shared.
    #[must_use]
    pub fn in_tier(&self, tier: Tier) -> Self {
        let mut module = self.clone();
        module.manifest.tier = tier;
        module
    }

    /// Returns the contract in the schema dialect of a target; generated once per module.
    #[must_use]
    pub fn provider_schema(&self, target: SchemaTarget) -> Arc<ProviderSchema> {
        let write = || Arc::new(provider_schema(&self.contract, &self.envelope_rules(), target));
        let slot = SchemaTarget::ALL.iter().position(|each| *each == target);
        match slot.and_then(|slot| self.provider_schemas.0.get(slot)) {
            Some(cell) => Arc::clone(cell.get_or_init(write)),
            None => write(),
        }
    }

    /// Returns the envelope contract of this module as one self-contained Draft-07 schema.
    #[must_use]
    pub fn envelope_schema(&self) -> Value {
        envelope_schema(&self.contract, &self.envelope_rules())
    }

    /// Returns the request and response schemas of this module, for descriptions such as `OpenAPI`.
    #[must_use]
    pub fn plain_sections(&self) -> PlainSections {
        plain_sections(&self.contract, &self.envelope_rules())
    }

    /// Returns the envelope rules of this module besides its schemas.
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

    /// Returns whether the module has no parts and its prompt calls no module.
    #[must_use]
    pub fn is_standalone(&self) -> bool {
        self.made_of.stands_alone
    }

    /// Returns the calls and values in the prompt, parsed once when the module was built.
    #[must_use]
    pub fn directives(&self) -> &Directives {
        &self.made_of.directives
    }

    /// Returns the composition of the module, compiled once; `None` if the module has no parts. Fails if the
    /// composition is invalid.
    pub fn composition(&self) -> Result<Option<&Composition>, Failure> {
        self.made_of.composition(self.manifest.composition.as_ref())
    }

    /// Returns the instructions of the module, if they do not depend on a run. The first call builds them from
    /// the module as it is then; later calls return the same text.
    #[must_use]
    pub fn instructions(&self, make: impl FnOnce() -> String) -> SharedText {
        self.instructions.get_or_init(|| make().into()).clone()
    }

    /// The failure for an input that violates the contract.
    pub(crate) fn refuse_input(&self, found: &[Violation]) -> Failure {
        let name = &self.manifest.name;
        Failure::from_violations(ErrorCode::InvalidInput, found)
            .suggest(format!("Run `cogn info {name}` to see the module's input"))
            .suggest_remotely(format!("`GET /api/modules/{name}` shows the module's input"))
    }

    /// Adds a worked example. Fails with the violations of its answer.
    /// Does not check the input, which has its own section in the contract.
    pub fn add_example(&mut self, name: &str, input: Value, answer: Value) -> Result<(), Vec<Violation>> {
        let ordered = in_order(&self.contract, &self.envelope_rules(), &answer);
        self.accept(answer, Enforcement::Full).map_err(|(_, found)| found)?;
        self.examples.push(WorkedExample { name: name.to_owned(), input, answer: ordered });
        Ok(())
    }

    /// Returns all violations of a finished envelope of this module. Repairs nothing.
    #[must_use]
    pub fn envelope_violations(&self, value: &Value, enforcement: Enforcement) -> Vec<Violation> {
        let mut found = match enforcement {
            Enforcement::Full => self.schema_violations(value),
            Enforcement::EnvelopeOnly => Vec::new(),
        };
        let undeclared = self.undeclared_members(value);
        found.retain(|each| undeclared.iter().all(|other| other.path != each.path));
        found.extend(undeclared);
        found.extend(blank_failure_texts(value));
        // Fast path: most answers have no schema violation, so there is nothing to compare with.
        if found.is_empty() {
            found = envelope::check(value, self.strictness());
            found.truncate(MAX_VIOLATIONS);
            return found;
        }
        // The module's own schema often reports the same place; one violation per place is enough. Too many
        // insights are always reported, because they determine the code.
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

    fn undeclared_members(&self, value: &Value) -> Vec<Violation> {
        let data = value.get("data").and_then(Value::as_object);
        data.map(|data| insights::undeclared_members(data, self.contract.overflow())).unwrap_or_default()
    }

    /// Parses a finished envelope of this module. An invalid one is returned with all its violations.
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

    /// Returns violations of rules beyond the schemas: custom values under strict enums.
    #[must_use]
    pub fn rule_violations(&self, value: &Value) -> Vec<Violation> {
        let Some(data) = value.get("data") else { return Vec::new() };
        let refused = self.contract.refused_custom_values(data);
        refused
            .into_iter()
            .map(|violation| {
                let message = "custom values are refused, because the module's enums are strict";
                Violation::new(violation.path, ErrorCode::InvalidEnum, "strategy", message)
                    .with_prefix("/data")
            })
            .collect()
    }

    /// Returns the violations of the module's own `meta` schema, if it has one.
    #[must_use]
    pub fn meta_violations(&self, meta: &Meta) -> Vec<Violation> {
        let Some(section) = self.contract.meta() else { return Vec::new() };
        serde_json::to_value(meta).map(|meta| judge(section, &meta, "/meta").collect()).unwrap_or_default()
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

    /// Returns the changes of this module to the common envelope contract.
    #[must_use]
    pub fn strictness(&self) -> Strictness<'_> {
        let tag = self.manifest.enums.unknown_tag.as_str();
        let open = self.contract.meta().is_some() && self.manifest.enums.strategy == EnumStrategy::Extensible;
        Strictness {
            // Only the module's meta schema decides whether the object is allowed.
            risk: if open { RiskForm::WordsOrCustom { tag } } else { RiskForm::Words },
            insights: self.manifest.overflow.limit(),
            rationale_object: self.format <= Format::V1,
            partial_allowed: self.manifest.failure.partial_allowed,
        }
    }

    /// Returns whether the module's own prompt describes the envelope.
    #[must_use]
    pub fn explains_envelope(&self) -> bool {
        self.explains_envelope
    }

    /// Returns the partial result of a failed run: the model's own payload, unrepaired.
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

/// Returns the violations of a failure whose code or message is blank, so that a person learns nothing from it. (D-29)
fn blank_failure_texts(value: &Value) -> impl Iterator<Item = Violation> {
    let error = value.get("error").filter(|_| value.get("ok") == Some(&Value::Bool(false)));
    ["code", "message"].into_iter().filter_map(move |member| {
        let text = error?.get(member)?.as_str()?;
        text.trim().is_empty().then(|| {
            let (path, code) = (format!("/error/{member}"), ErrorCode::SchemaValidationFailed);
            Violation::new(path, code, "blank", "expected a text that is not empty")
        })
    })
}

/// Returns whether a text describes the envelope, by its name or by its members. Only whole words count, so
/// that "metadata" and "look" do not match.
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

/// The place of a violation, and whether it is about too many insights.
fn place(violation: &Violation) -> (String, bool) {
    (violation.path.clone(), violation.code == ErrorCode::OverflowLimit)
}

fn judge(section: &Section, value: &Value, prefix: &str) -> impl Iterator<Item = Violation> {
    Violation::find(section, value, Side::Output).into_iter().map(move |each| each.with_prefix(prefix))
}

/// Validates an error that the model returned. A code in another spelling of the same number is accepted.
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

/// Returns the published code for the violations of an answer.
///
/// Too many insights are always E3004. A violation of a schema or of the envelope is E3001. If only further
/// rules are violated, the code is theirs: E3003 for a blank rationale, E3005 for a refused enum value, E3006
/// for a media kind that the module does not produce.
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
