//! Applies the defaults: tier and strictness tables, one spelling for policies.
//! An explicit value always wins, member by member.

use super::file::{
    CompatFile, ContextFile, EnumsFile, FailureFile, IoFile, ModalitiesFile, OverflowFile, PoliciesFile,
    PolicyFile, ResponseFile,
};
use super::{
    Allow, AllowedTools, ChunkType, Compat, Constraints, Context, ContextMode, EnumStrategy, Enums,
    FailureContract, FailureRules, GoldenTest, InputModality, Invocation, Manifest, ManifestFile, MetaRules,
    Modalities, Mode, OutputModality, Overflow, Policies, Requirements, Response, RiskRule, SchemaAlias,
    SchemaStrictness, Tier, ToolPolicy,
};
use crate::format::Format;

/// The default strictness of a tier.
fn strictness_of(tier: Tier) -> SchemaStrictness {
    match tier {
        Tier::Exec => SchemaStrictness::High,
        Tier::Decision => SchemaStrictness::Medium,
        Tier::Exploration => SchemaStrictness::Low,
    }
}

fn mode_of(tier: Option<Tier>) -> Mode {
    match tier {
        Some(Tier::Decision) => Mode::Both,
        Some(Tier::Exploration) => Mode::Streaming,
        Some(Tier::Exec) | None => Mode::Sync,
    }
}

/// The defaults of a strictness: overflow enabled, maximum number of insights, enum strategy.
fn strictness_defaults(strictness: SchemaStrictness) -> (bool, u64, EnumStrategy) {
    match strictness {
        SchemaStrictness::High => (false, 0, EnumStrategy::Strict),
        SchemaStrictness::Medium => (true, 5, EnumStrategy::Extensible),
        SchemaStrictness::Low => (true, 20, EnumStrategy::Extensible),
    }
}

/// Resolves every field.
pub(super) fn resolve(file: ManifestFile, format: Format) -> Manifest {
    let tier = file.tier.unwrap_or(Tier::Decision);
    // The other defaults follow the author's explicit strictness, not the tier.
    let schema_strictness = file.schema_strictness.unwrap_or_else(|| strictness_of(tier));
    let (overflow_enabled, max_items, strategy) = strictness_defaults(schema_strictness);
    let constraints = file.constraints.unwrap_or_default();
    let mut policies = policies(file.policies.unwrap_or_default());
    if constraints.no_network {
        policies.network = Allow::Deny;
    }
    if constraints.no_side_effects {
        policies.side_effects = Allow::Deny;
    }
    let tools = file.tools.unwrap_or_default();
    let requirements = file.runtime_requirements.unwrap_or_default();
    let invocation = file.invocation.unwrap_or_default();
    Manifest {
        name: file.name.unwrap_or_default(),
        version: file.version.unwrap_or_default(),
        responsibility: file.responsibility.unwrap_or_default(),
        tier,
        schema_strictness,
        excludes: file.excludes.unwrap_or_default(),
        policies,
        tools: AllowedTools {
            policy: tools.policy.unwrap_or(ToolPolicy::DenyByDefault),
            allowed: tools.allowed.unwrap_or_default(),
            denied: tools.denied.unwrap_or_default(),
        },
        overflow: overflow(&file.overflow.unwrap_or_default(), overflow_enabled, max_items),
        enums: enums(file.enums.unwrap_or_default(), strategy),
        failure: failure(&file.failure.unwrap_or_default()),
        runtime_requirements: Requirements {
            structured_output: requirements.structured_output.unwrap_or(true),
            max_input_tokens: requirements.max_input_tokens,
            preferred_capabilities: requirements.preferred_capabilities.unwrap_or_default(),
            required_capabilities: requirements.required_capabilities.unwrap_or_default(),
        },
        io: io(file.io.unwrap_or_default()),
        compat: compat(&file.compat.unwrap_or_default(), format),
        meta: MetaRules {
            risk_rule: file.meta.and_then(|meta| meta.risk_rule).unwrap_or(RiskRule::MaxChangesRisk),
        },
        tests: file.tests.unwrap_or_default().iter().filter_map(|entry| golden_test(entry)).collect(),
        response: response(&file.response.unwrap_or_default(), file.tier),
        modalities: modalities(file.modalities),
        context: context(file.context),
        composition: file.composition,
        max_calls: file.max_calls,
        thinking: file.thinking,
        invocation: Invocation {
            user_invocable: invocation.user_invocable.unwrap_or(true),
            agent_invocable: invocation.agent_invocable.unwrap_or(true),
        },
        error_codes: file.error_codes.unwrap_or_default(),
        constraints: Constraints {
            no_inventing_data: constraints.no_inventing_data,
            require_confidence: constraints.require_confidence,
            require_rationale: constraints.require_rationale,
        },
    }
}

fn policies(file: PoliciesFile) -> Policies {
    let word = |policy: Option<PolicyFile>| match policy {
        Some(PolicyFile::Word(word)) => word,
        Some(PolicyFile::Flag(true)) => Allow::Allow,
        Some(PolicyFile::Flag(false)) | None => Allow::Deny,
    };
    // If two spellings disagree, deny wins; `network_allowed: true` grants nothing.
    let network = if file.network_allowed == Some(false) { Allow::Deny } else { word(file.network) };
    Policies {
        network,
        filesystem_write: word(file.filesystem_write),
        side_effects: word(file.side_effects),
        code_execution: word(file.code_execution),
        tools: file.tools_allowed != Some(false),
        other: file.other.into_iter().map(|(name, policy)| (name, word(Some(policy)))).collect(),
    }
}

fn overflow(file: &OverflowFile, enabled: bool, max_items: u64) -> Overflow {
    // Two names for one switch: if they disagree, the mapping is required.
    let mapping = match (file.require_suggested_mapping, file.recoverable) {
        (Some(mapping), Some(recoverable)) => mapping || recoverable,
        (Some(only), None) | (None, Some(only)) => only,
        (None, None) => true,
    };
    Overflow {
        enabled: file.enabled.unwrap_or(enabled),
        max_items: file.max_items.unwrap_or(max_items),
        recoverable: file.recoverable.unwrap_or(true),
        require_suggested_mapping: mapping,
    }
}

fn enums(file: EnumsFile, strategy: EnumStrategy) -> Enums {
    Enums {
        strategy: file.strategy.unwrap_or(strategy),
        unknown_tag: file.unknown_tag.unwrap_or_else(|| "custom".to_owned()),
    }
}

fn failure(file: &FailureFile) -> FailureRules {
    FailureRules {
        contract: file.contract.unwrap_or(FailureContract::ErrorUnion),
        partial_allowed: file.partial_allowed.unwrap_or(true),
        must_return_error_schema: file.must_return_error_schema.unwrap_or(true),
    }
}

fn io(file: IoFile) -> std::collections::BTreeMap<&'static str, String> {
    let entries = [("input", file.input), ("data", file.data), ("meta", file.meta), ("error", file.error)];
    entries.into_iter().filter_map(|(name, place)| place.map(|place| (name, place))).collect()
}

fn compat(file: &CompatFile, format: Format) -> Compat {
    let legacy = format.is_legacy();
    let accepts = legacy || file.accepts_v21_payload.unwrap_or(false);
    Compat {
        accepts_v21_payload: accepts,
        accepts_v22_payload: file.accepts_v22_payload.unwrap_or(true),
        runtime_auto_wrap: legacy || file.runtime_auto_wrap.unwrap_or(accepts),
        schema_output_alias: file.schema_output_alias.unwrap_or(SchemaAlias::Data),
        refuses_v21_payload: !legacy && file.accepts_v21_payload == Some(false),
    }
}

/// Splits `a.input.json -> a.expected.json`. `validate` reports an entry without an arrow.
pub(super) fn golden_test(entry: &str) -> Option<GoldenTest> {
    let (input, expected) = entry.split_once("->")?;
    Some(GoldenTest { input: input.trim().to_owned(), expected: expected.trim().to_owned() })
}

fn response(file: &ResponseFile, tier: Option<Tier>) -> Response {
    Response {
        mode: file.mode.unwrap_or_else(|| mode_of(tier)),
        chunk_type: file.chunk_type.unwrap_or(ChunkType::Delta),
        buffer_size: file.buffer_size.unwrap_or(0),
    }
}

fn modalities(file: Option<ModalitiesFile>) -> Modalities {
    let declared = file.is_some();
    let file = file.unwrap_or_default();
    let mut input = file.input.unwrap_or_default();
    let mut output = file.output.unwrap_or_default();
    if !input.contains(&InputModality::Text) {
        input.insert(0, InputModality::Text);
    }
    if !output.contains(&OutputModality::Text) {
        output.insert(0, OutputModality::Text);
    }
    Modalities { declared, input, output }
}

fn context(file: Option<ContextFile>) -> Context {
    let (mode, accepts, emits) = match file {
        None => (None, None, None),
        Some(ContextFile::Short(mode)) => (Some(mode), None, None),
        Some(ContextFile::Block(block)) => (block.mode, block.accepts, block.emits),
    };
    Context {
        mode: mode.unwrap_or(ContextMode::Main),
        accepts: accepts.unwrap_or_default(),
        emits: emits.unwrap_or_default(),
    }
}
