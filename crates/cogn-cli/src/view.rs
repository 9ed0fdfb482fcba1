//! Formats an envelope as a card for users: result, confidence, risk and explanation. Lists of objects become tables; a
//! failure shows the raw model output. Untrusted text is stripped of terminal control characters.

use cognitive_contract::envelope::ErrorBody;
use cognitive_contract::text::cut;
use cognitive_contract::{Envelope, Meta, Outcome, Risk};
use cognitive_setup::embedded_model;
use serde_json::{Map, Value};

use crate::figures::bar;
use crate::printer::{BAD, DOUBT, FAINT, GOOD, HEAD, NOTE, plain};
use crate::text_table::{TextTable, wrap};

/// The maximum width of a card, also used in a pipe: longer lines are hard to read.
const MAX_CARD_WIDTH: usize = 110;
/// The number of cells in a confidence bar.
const CONFIDENCE_CELLS: usize = 10;
/// The minimum column width of a table; below it, objects are listed one below the other.
const MIN_TABLE_COLUMN: usize = 9;
/// The maximum length of a text in a table cell. A longer text would fill the terminal with one row.
const MAX_CELL_LENGTH: usize = 200;
/// The maximum number of lines of a raw reply. A longer reply would push the reason of the failure out of the
/// terminal.
const MAX_RAW_LINES: usize = 40;
/// The maximum depth of nested objects; deeper ones are printed as JSON. Each level is indented, so deeper ones would
/// have no room left.
const MAX_NESTING: usize = 3;

/// Formats the card, line by line.
pub(crate) fn card(module: &str, envelope: &Envelope, width: Option<usize>) -> Vec<String> {
    card_lines(module, envelope, width, true)
}

/// Formats the card without the rationale, for a user who has already seen it in the stream.
pub(crate) fn after_rationale(module: &str, envelope: &Envelope, width: Option<usize>) -> Vec<String> {
    card_lines(module, envelope, width, false)
}

fn card_lines(module: &str, envelope: &Envelope, width: Option<usize>, rationale: bool) -> Vec<String> {
    let mut card = Card { width: width.unwrap_or(MAX_CARD_WIDTH).min(MAX_CARD_WIDTH), lines: Vec::new() };
    card.head(module, envelope);
    match envelope.outcome() {
        Outcome::Success { data } => {
            card.data(data);
            if let Some(rationale) = data.get("rationale").filter(|_| rationale) {
                card.title(&format!("{FAINT}rationale{FAINT:#}"));
                card.text(rationale, 2);
            }
            card.insights(data);
        }
        Outcome::Failure { error, partial_data } => card.failure(error, partial_data.as_ref()),
    }
    card.warnings(envelope.meta());
    card.lines
}

/// A card under construction.
struct Card {
    width: usize,
    lines: Vec<String>,
}

impl Card {
    fn prose(&mut self, text: &str) {
        self.lines.extend(wrap(text, self.width));
    }

    /// Adds a heading after an empty line.
    fn title(&mut self, title: &str) {
        self.lines.push(String::new());
        self.lines.push(title.to_owned());
    }

    fn table(&mut self, table: &TextTable) {
        self.lines.extend(table.lines(Some(self.width)));
    }

    /// Adds module, outcome, confidence and risk, then the module's explanation.
    fn head(&mut self, module: &str, envelope: &Envelope) {
        let meta = envelope.meta();
        let (style, word) = if envelope.ok() { (GOOD, "ok") } else { (BAD, "failed") };
        let risk = match meta.risk.level() {
            Risk::None | Risk::Low => GOOD,
            Risk::Medium => DOUBT,
            Risk::High => BAD,
        };
        // Not as a percentage: that would look like a probability of being right, which it is not. (META-002)
        let confidence = meta.confidence.get();
        let bar = bar(confidence, CONFIDENCE_CELLS);
        self.prose(&format!("{HEAD}{}{HEAD:#}  {style}{word}{style:#}", plain(module)));
        let level = meta.risk.level().word();
        self.prose(&format!("confidence {confidence:.2} {bar}  risk {risk}{level}{risk:#}"));
        let repeated = envelope.error().is_some_and(|error| meta.explain().contains(error.message()));
        if !repeated && !meta.explain().is_empty() {
            self.prose(&plain(meta.explain()));
        }
        if embedded_model::has_embedded_answer(envelope) {
            self.prose(&format!("{FAINT}{}{FAINT:#}", embedded_model::HONESTY));
        }
    }

    /// Adds the answer, without rationale and extensions.
    fn data(&mut self, data: &Map<String, Value>) {
        let last = ["rationale", "extensions"];
        let mut members = data.iter().filter(|(name, _)| !last.contains(&name.as_str())).peekable();
        if members.peek().is_some() {
            self.lines.push(String::new());
        }
        self.members(members, 0);
    }

    /// Adds the model's insights.
    fn insights(&mut self, data: &Map<String, Value>) {
        let insights = data.get("extensions").and_then(|extensions| extensions.get("insights"));
        for insight in insights.and_then(Value::as_array).into_iter().flatten() {
            let text = insight.get("text").and_then(Value::as_str).unwrap_or_default();
            self.lines.push(String::new());
            self.prose(&format!("{DOUBT}insight{DOUBT:#} {}", plain(text)));
        }
    }

    /// Adds the error, its hint, and the partial answer.
    fn failure(&mut self, error: &ErrorBody, partial: Option<&Map<String, Value>>) {
        self.lines.push(String::new());
        self.prose(&format!("{BAD}{}{BAD:#} {}", plain(error.code()), plain(error.message())));
        if let Some(hint) = error.members().get("suggestion").and_then(Value::as_str) {
            self.prose(&format!("{NOTE}hint{NOTE:#}: {}", plain(hint)));
        }
        let Some(partial) = partial.filter(|partial| !partial.is_empty()) else { return };
        let members: Map<String, Value> = partial
            .iter()
            .filter(|(name, _)| *name != "raw")
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        if !members.is_empty() {
            self.title(&format!("{DOUBT}partial data{DOUBT:#} {FAINT}(not validated){FAINT:#}"));
            self.members(members.iter(), 2);
        }
        if let Some(raw) = partial.get("raw").and_then(Value::as_str) {
            self.title(&format!("{DOUBT}raw reply{DOUBT:#}"));
            self.raw(raw);
        }
    }

    fn raw(&mut self, raw: &str) {
        let raw = plain(raw);
        let lines: Vec<String> =
            raw.lines().flat_map(|line| wrap(line, self.width.saturating_sub(2).max(1))).collect();
        let shown = lines.iter().take(MAX_RAW_LINES).map(|line| format!("{FAINT}│{FAINT:#} {line}"));
        self.lines.extend(shown);
        if let Some(more) = lines.len().checked_sub(MAX_RAW_LINES).filter(|more| *more > 0) {
            self.lines.push(format!("{FAINT}… {more} more lines; `--json` prints all of them{FAINT:#}"));
        }
    }

    fn warnings(&mut self, meta: &Meta) {
        let warnings: Vec<&Value> =
            meta.extra.get("warnings").and_then(Value::as_array).into_iter().flatten().collect();
        if !warnings.is_empty() {
            self.lines.push(String::new());
        }
        for warning in warnings {
            let message = warning.get("message").and_then(Value::as_str).unwrap_or_default();
            self.prose(&format!("{FAINT}note: {}{FAINT:#}", plain(message)));
        }
    }

    /// Adds the members of an object: short ones next to their names, others below a heading.
    fn members<'a>(&mut self, members: impl Iterator<Item = (&'a String, &'a Value)>, indent: usize) {
        let (short, long): (Vec<_>, Vec<_>) = members.partition(|(_, value)| is_short(value));
        if !short.is_empty() {
            let rows = short.iter().map(|(name, value)| vec![name_label(name), cell(value)]);
            self.table(&TextTable::without_headings(2).indent(indent).with(rows));
        }
        for (place, (name, value)) in long.into_iter().enumerate() {
            if place > 0 || !short.is_empty() {
                self.lines.push(String::new());
            }
            let count = value.as_array().map(|items| format!(" {FAINT}({}){FAINT:#}", items.len()));
            self.lines.push(format!(
                "{}{}{}",
                " ".repeat(indent),
                name_label(name),
                count.unwrap_or_default()
            ));
            self.value(value, indent + 2);
        }
    }

    fn value(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Object(members) if indent / 2 < MAX_NESTING => self.members(members.iter(), indent),
            Value::Array(items) if items.iter().all(Value::is_object) && indent / 2 < MAX_NESTING => {
                self.objects(&items.iter().filter_map(Value::as_object).collect::<Vec<_>>(), indent);
            }
            Value::Array(items) if !items.iter().any(|item| item.is_array() || item.is_object()) => {
                self.table(&TextTable::bullets(items.iter().map(cell)).indent(indent));
            }
            other => self.text(other, indent),
        }
    }

    /// Adds a list of objects as a table, or one below the other if the table would be too narrow.
    fn objects(&mut self, items: &[&Map<String, Value>], indent: usize) {
        let mut names: Vec<&String> = Vec::new();
        for name in items.iter().flat_map(|item| item.keys()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let room = self.width.saturating_sub(indent) / names.len().max(1);
        if room < MIN_TABLE_COLUMN {
            for (place, item) in items.iter().enumerate() {
                self.lines.push(format!("{}{FAINT}{}.{FAINT:#}", " ".repeat(indent), place + 1));
                self.members(item.iter(), indent + 2);
            }
            return;
        }
        let numbers: Vec<usize> = (0..names.len())
            .filter(|column| {
                let Some(name) = names.get(*column) else { return false };
                items.iter().filter_map(|item| item.get(*name)).all(Value::is_number)
            })
            .collect();
        let length = |name: &String| {
            items.iter().filter_map(|item| item.get(name)).map(|value| cell(value).len()).sum::<usize>()
        };
        let prose = (0..names.len()).max_by_key(|column| names.get(*column).map_or(0, |name| length(name)));
        let row = |item: &&Map<String, Value>| {
            names.iter().map(|name| item.get(*name).map(cell).unwrap_or_default()).collect()
        };
        let mut table =
            TextTable::without_headings(names.len()).right(&numbers).prose(prose.unwrap_or(0)).indent(indent);
        table.push(names.iter().map(|name| format!("{FAINT}{}{FAINT:#}", plain(name))).collect());
        self.table(&table.with(items.iter().map(row)));
    }

    /// Adds a text, or any other value as JSON.
    fn text(&mut self, value: &Value, indent: usize) {
        let text = match value {
            Value::String(text) => plain(text.trim_end()),
            other => plain(&serde_json::to_string_pretty(other).unwrap_or_default()),
        };
        let room = self.width.saturating_sub(indent).max(1);
        self.lines.extend(
            wrap(&text, room)
                .into_iter()
                .map(|line| format!("{}{line}", " ".repeat(indent)).trim_end().to_owned()),
        );
    }
}

fn name_label(name: &str) -> String {
    format!("{NOTE}{}{NOTE:#}", plain(name))
}

/// Returns whether a value fits next to its name.
fn is_short(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.contains('\n'),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty() || custom_value(members).is_some(),
        _ => true,
    }
}

/// Returns the value and its reason if the object is a custom value of an extensible enum.
fn custom_value(members: &Map<String, Value>) -> Option<(&str, &str)> {
    let reason = members.get("reason")?.as_str()?;
    let mut others = members.iter().filter(|(name, _)| *name != "reason");
    let (_, value) = others.next()?;
    others.next().is_none().then_some((value.as_str()?, reason))
}

/// Formats a value for one cell.
fn cell(value: &Value) -> String {
    if let Some((own, reason)) = value.as_object().and_then(custom_value) {
        let reason = plain(cut(reason.trim_end_matches('.'), MAX_CELL_LENGTH));
        return format!("{} {FAINT}({reason}){FAINT:#}", plain(cut(own, MAX_CELL_LENGTH)));
    }
    match value {
        Value::String(text) => plain(cut(text, 4_000)),
        Value::Array(items) if items.is_empty() => format!("{FAINT}none{FAINT:#}"),
        Value::Null => format!("{FAINT}null{FAINT:#}"),
        other => plain(cut(&other.to_string(), MAX_CELL_LENGTH)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(envelope: Value, width: usize) -> String {
        let lines = card("m", &Envelope::from_value(envelope).unwrap(), Some(width));
        anstream::adapter::strip_str(&lines.join("\n")).to_string()
    }

    #[test]
    fn meta_002_confidence_is_no_percentage() {
        let text = shown(
            json!({ "ok": true, "meta": { "confidence": 0.82, "risk": "low", "explain": "e" }, "data": { "rationale": "r" } }),
            80,
        );
        assert!(text.contains("confidence 0.82 ████████░░") && !text.contains('%'), "{text}");
    }

    #[test]
    fn the_card_says_who_does_not_reason() {
        let card_of = |model: &str| {
            let meta = json!({ "confidence": 0.9, "risk": "low", "explain": "e", "model": model });
            shown(json!({ "ok": true, "meta": meta, "data": { "rationale": "r" } }), 200)
        };
        assert!(card_of("embedded/smollm2-135m-instruct-q4_1").contains("it does not reason"));
        assert!(!card_of("openai/gpt").contains("it does not reason"));
        assert!(!card_of("embeddedish/x").contains("it does not reason"));
    }

    #[test]
    fn a_list_of_objects_is_a_table_and_strangers_cannot_act() {
        let data = json!({
            "rationale": "Because.", "label": "a\u{1b}[31mb",
            "kind": { "custom": "new", "reason": "No list has it." }, "code": "one\ntwo\n",
            "issues": [{ "line": 7, "text": "Too long for one line of this card" }, { "line": 12, "text": "Short" }],
        });
        let meta = json!({ "confidence": 0.5, "risk": "high", "explain": "Two issues" });
        assert_eq!(
            shown(json!({ "ok": true, "meta": meta, "data": data }), 40),
            "m  ok
confidence 0.50 █████░░░░░  risk high
Two issues

label  a\u{fffd}[31mb
kind   new (No list has it)

code
  one
  two

issues (2)
  line  text
     7  Too long for one line of this
        card
    12  Short

rationale
  Because."
        );
    }

    #[test]
    fn a_failure_shows_what_there_was_and_says_its_message_once() {
        let envelope = json!({
            "ok": false, "meta": { "confidence": 0, "risk": "high", "explain": "It broke" },
            "error": { "code": "E3001", "message": "It broke", "suggestion": "Mend it" },
            "partial_data": { "label": "half", "raw": "Sure!\nno JSON" },
        });
        assert_eq!(
            shown(envelope, 60),
            "m  failed
confidence 0.00 ░░░░░░░░░░  risk high

E3001 It broke
hint: Mend it

partial data (not validated)
  label  half

raw reply
│ Sure!
│ no JSON"
        );
    }
}
