//! Combines the turns of a template into one prompt. The system text gives the instructions, and the user text says
//! what to do with the input. Answered turns become examples. An answered turn that depends on the input would be a
//! conversation, so it is refused.

use cognitive_contract::Failure;

use crate::loss::LossList;
use crate::source::refuse;

/// The text of one role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PromptTurn {
    /// The role; empty if the template has none.
    pub(crate) role: String,
    /// The text.
    pub(crate) text: String,
    /// True if the text refers to values of the input.
    pub(crate) says_values: bool,
}

impl PromptTurn {
    pub(crate) fn new(role: &str) -> Self {
        Self { role: role.to_owned(), text: String::new(), says_values: false }
    }

    fn answers(&self) -> bool {
        matches!(self.role.as_str(), "assistant" | "model")
    }

    fn asks(&self) -> bool {
        self.role == "user"
    }
}

/// Combines all turns into one text.
pub(crate) fn as_one_prompt(
    turns: &[PromptTurn],
    file: &str,
    losses: &mut LossList,
) -> Result<String, Failure> {
    let mut turns: Vec<&PromptTurn> = turns.iter().filter(|turn| !turn.text.trim().is_empty()).collect();
    while turns.last().is_some_and(|last| last.answers()) {
        turns.pop();
        let why = "the model writes the whole answer of a module";
        losses.add_lost("the beginning of the answer", file, why);
    }
    let last_question = turns.iter().rposition(|turn| turn.asks());
    let has_instructions = turns.iter().any(|turn| !turn.asks() && !turn.answers());
    let mut parts = Vec::new();
    for (at, turn) in turns.iter().enumerate() {
        let text = turn.text.trim();
        let is_example = turn.answers() || (turn.asks() && last_question.is_some_and(|last| at < last));
        if is_example && turn.says_values {
            return Err(refuse(
                format!(
                    "{file} has earlier turns that depend on the input: it continues a conversation, but \
                     a module makes a single judgement"
                ),
                "Import a prompt that answers once",
            ));
        }
        let part = match (is_example, turn.answers()) {
            (true, true) => format!("The answer to it:\n\n{text}"),
            (true, false) => format!("## Example\n\nThe request:\n\n{text}"),
            (false, _) if turn.asks() && at > 0 => format!("## The request\n\n{text}"),
            (false, _) => text.to_owned(),
        };
        if is_example && turn.answers() {
            let why = "earlier turns are in `prompt.md` as text; as files in `examples/` they would be \
                 turns again";
            losses.add_changed("a turn that already has an answer", file, why);
        }
        parts.push(part);
    }
    if turns.iter().any(|turn| !turn.role.is_empty()) && has_instructions && last_question.is_some() {
        let why = "a module has one text of instructions, and the input as the user's turn";
        losses.add_changed("the roles `system` and `user`", file, why);
    }
    if parts.is_empty() {
        return Err(refuse(format!("{file} has no prompt"), "Import a file with text for a model"));
    }
    Ok(parts.join("\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(role: &str, text: &str, says_values: bool) -> PromptTurn {
        PromptTurn { role: role.to_owned(), text: text.to_owned(), says_values }
    }

    #[test]
    fn examples_and_the_request_are_told_apart() {
        let mut losses = LossList::default();
        let turns = [
            turn("system", "Be kind.", false),
            turn("user", "Hi", false),
            turn("assistant", "Hello", false),
            turn("user", "`text`", true),
            turn("assistant", "{", false),
        ];
        let text = as_one_prompt(&turns, "f", &mut losses).unwrap();
        assert_eq!(
            text,
            "Be kind.\n\n## Example\n\nThe request:\n\nHi\n\nThe answer to it:\n\nHello\n\n## The request\n\n`text`"
        );
        assert_eq!(losses.finish().len(), 3);
        assert_eq!(as_one_prompt(&[turn("user", " x ", true)], "f", &mut LossList::default()).unwrap(), "x");
    }

    #[test]
    fn earlier_turns_with_values_are_a_conversation() {
        let turns = [turn("user", "`a`", true), turn("assistant", "ok", false), turn("user", "`b`", true)];
        assert!(as_one_prompt(&turns, "f", &mut LossList::default()).is_err());
        assert!(as_one_prompt(&[], "f", &mut LossList::default()).is_err());
    }
}
