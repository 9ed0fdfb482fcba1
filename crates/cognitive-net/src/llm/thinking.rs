//! The settings for thinking of each service. The caller always gives one number of tokens. If a service accepts no
//! number, it becomes an effort level or only a switch. The content of thoughts is never read.

use cognitive_contract::ports::ModelCall;
use cognitive_contract::thinking::ThoughtOutcome;
use serde_json::{Value, json};

use crate::llm::terms::{OptionalFeature, Terms};

/// The thinking settings of a chat completions service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThinkingWords {
    /// No setting: its models decide themselves.
    Nothing,
    /// `reasoning_effort`: `none`, `low`, `medium`, `high`.
    Effort,
    /// `reasoning_effort`, limited to `none` and `high`.
    FullEffort,
    /// `thinking: {type}`.
    Switch,
    /// `thinking: {type}`, and `reasoning_effort`.
    SwitchAndEffort,
    /// `enable_thinking` and `thinking_budget`.
    Budget,
    /// `reasoning: {max_tokens}`.
    Reasoning,
    /// `enable_thinking` for the model's chat template, and a budget under this name.
    Template(&'static str),
}

impl ThinkingWords {
    /// Returns the request members for a thinking budget of `tokens`.
    pub(crate) fn members(self, tokens: u32) -> Vec<(&'static str, Value)> {
        let on = tokens > 0;
        let switch = ("thinking", json!({ "type": if on { "enabled" } else { "disabled" } }));
        match self {
            Self::Nothing => Vec::new(),
            Self::Effort => vec![("reasoning_effort", json!(effort(tokens)))],
            Self::FullEffort => vec![("reasoning_effort", json!(if on { "high" } else { "none" }))],
            Self::SwitchAndEffort if on => vec![switch, ("reasoning_effort", json!(effort(tokens)))],
            Self::Switch | Self::SwitchAndEffort => vec![switch],
            Self::Budget if on => vec![("enable_thinking", json!(true)), ("thinking_budget", json!(tokens))],
            Self::Budget => vec![("enable_thinking", json!(false))],
            Self::Reasoning if on => vec![("reasoning", json!({ "max_tokens": tokens }))],
            Self::Reasoning => vec![("reasoning", json!({ "enabled": false }))],
            Self::Template(budget) => {
                let template = ("chat_template_kwargs", json!({ "enable_thinking": on }));
                [template].into_iter().chain(on.then(|| (budget, json!(tokens)))).collect()
            }
        }
    }

    /// Returns the outcome of a thinking budget of `tokens`.
    pub(crate) fn outcome(self, tokens: u32) -> ThoughtOutcome {
        match self {
            Self::Nothing => ThoughtOutcome::Ignored,
            _ if tokens == 0 => ThoughtOutcome::Off,
            Self::Budget | Self::Reasoning | Self::Template(_) => ThoughtOutcome::Bounded,
            Self::Effort | Self::FullEffort | Self::Switch | Self::SwitchAndEffort => ThoughtOutcome::Effort,
        }
    }
}

/// Returns the outcome for a service with budgets, or only with a level if the budget was refused.
pub(crate) fn budget_or_word(tokens: u32, terms: &Terms) -> ThoughtOutcome {
    match tokens {
        0 => ThoughtOutcome::Off,
        _ if terms.keeps(OptionalFeature::ThinkingBudget) => ThoughtOutcome::Bounded,
        _ => ThoughtOutcome::Effort,
    }
}

/// Returns the effort level in the words of most services. The thresholds match the services' own budgets.
pub(crate) fn effort(tokens: u32) -> &'static str {
    match tokens {
        0 => "none",
        1..=1024 => "low",
        1025..=8192 => "medium",
        _ => "high",
    }
}

/// Returns the thinking budget under these terms, if thinking is set at all.
pub(crate) fn thinking_budget(call: &ModelCall, terms: &Terms) -> Option<u32> {
    if terms.reasoning_is_off(call) {
        return Some(0);
    }
    call.thinking.filter(|_| terms.keeps(OptionalFeature::Thinking))
}

/// Returns the token limit for the thinking and the answer together, as services count them. `max_output_tokens` is
/// the limit for the answer alone.
pub(crate) fn limit(call: &ModelCall, terms: &Terms) -> Option<u64> {
    let thought = thinking_budget(call, terms).map_or(0, u64::from);
    call.max_output_tokens.map(|limit| limit.saturating_add(thought))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [ThinkingWords; 8] = [
        ThinkingWords::Nothing,
        ThinkingWords::Effort,
        ThinkingWords::FullEffort,
        ThinkingWords::Switch,
        ThinkingWords::SwitchAndEffort,
        ThinkingWords::Budget,
        ThinkingWords::Reasoning,
        ThinkingWords::Template("thinking_budget_tokens"),
    ];

    #[test]
    fn no_thought_is_never_a_budget_and_every_bound_is_the_number_itself() {
        for words in ALL {
            let off = json!(words.members(0).into_iter().collect::<std::collections::BTreeMap<_, _>>());
            assert!(!off.to_string().contains("budget") && !off.to_string().contains("max_tokens"), "{off}");
            let on = json!(words.members(777).into_iter().collect::<std::collections::BTreeMap<_, _>>());
            assert_eq!(on.to_string().contains("777"), words.outcome(777) == ThoughtOutcome::Bounded, "{on}");
        }
        assert_eq!(ThinkingWords::Nothing.outcome(0), ThoughtOutcome::Ignored);
    }

    #[test]
    fn more_tokens_are_never_less_effort() {
        let steps = [0, 1, 1024, 1025, 8192, 8193, 32_768].map(effort);
        assert_eq!(steps, ["none", "low", "low", "medium", "medium", "high", "high"]);
    }
}
