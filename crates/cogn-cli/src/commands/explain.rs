//! `cogn explain CODE`: the meaning of an error code, its cause and its fix. The texts come from docs/errors.md; those
//! of the members of `meta` from the schema of envelopes.

use cognitive_contract::ErrorCode;
use cognitive_contract::code::is_module_code;
use cognitive_library::find::nearest;
use serde_json::{Value, json};

use crate::args::candidates;
use crate::printer::{Exit, FAINT, HEAD, NOTE, Printer};
use crate::text_table::{TextTable, wrap};

const PAGE: &str = include_str!("../../../../docs/errors.md");
/// Longer lines of prose are hard to read.
const MAX_PROSE_WIDTH: usize = 100;

/// Options of `explain`.
#[derive(Debug, clap::Args)]
pub struct ExplainArgs {
    /// A number such as E3001, a name such as `PARSE_ERROR`, or a member of `meta` such as `latency_ms`; without it,
    /// all codes are listed
    #[arg(add = candidates::codes())]
    code: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints the explanation.
pub fn explain(args: &ExplainArgs, printer: &Printer) -> Exit {
    let Some(asked) = &args.code else {
        list(args, printer);
        return Exit::Good;
    };
    let name = asked.trim().to_ascii_uppercase();
    let code = ErrorCode::find(&name);
    let section = match code {
        Some(code) => section(&format!("{} ", code.number())),
        None if is_module_code(&name) => section("Module-specific"),
        None => None,
    };
    if let Some(text) = section.is_none().then(|| meta_member(asked)).flatten() {
        if args.json {
            printer.json(&json!({ "member": asked.trim(), "text": text }));
        } else {
            printer.prose(&text);
        }
        return Exit::Good;
    }
    let Some(text) = section else {
        printer.error(&format!("unknown error code: `{}`", asked.trim()), Some(&suggest_codes(&name)));
        return Exit::Bad;
    };
    if args.json {
        let about = code.map_or_else(|| json!({ "code": name }), facts);
        printer.json(&with_text(about, text));
    } else {
        for line in layout_section(text, printer.width()) {
            printer.print_line(line);
        }
    }
    Exit::Good
}

/// Returns the description of a member of `meta`, from the schema of envelopes.
fn meta_member(asked: &str) -> Option<String> {
    let name = asked.trim().trim_start_matches("meta.");
    let schema = cognitive_contract::envelope_schema::json_schema();
    let member = schema.pointer("/definitions/meta/properties")?.get(name)?;
    Some(format!("`meta.{name}`: {}", member.get("description")?.as_str()?))
}

/// Suggests known codes for an unknown one.
fn suggest_codes(asked: &str) -> String {
    let known: Vec<String> =
        ErrorCode::all().flat_map(|code| [code.number().to_owned(), code.name().to_owned()]).collect();
    let containing = || {
        let word = Some(asked).filter(|word| word.len() > 2)?;
        known.iter().map(String::as_str).find(|name| name.contains(word))
    };
    match nearest(asked, known.iter().map(String::as_str)).or_else(containing) {
        Some(known) => format!("Did you mean `{known}`? `cogn explain` lists all codes"),
        None => "Codes are numbers such as `E3001` or names such as `PARSE_ERROR`; `cogn explain` lists all of them".to_owned(),
    }
}

fn facts(code: ErrorCode) -> Value {
    json!({
        "code": code.number(), "name": code.name(), "meaning": code.meaning(),
        "recoverable": code.recoverable(), "aliases": code.aliases(),
    })
}

fn with_text(mut about: Value, text: &str) -> Value {
    if let Value::Object(members) = &mut about {
        members.insert("text".to_owned(), json!(text));
    }
    about
}

/// Formats a Markdown section for a terminal: paragraphs are wrapped, code stays as it is.
fn layout_section(text: &str, width: Option<usize>) -> Vec<String> {
    let Some(width) = width.map(|width| width.min(MAX_PROSE_WIDTH)) else {
        return text.lines().map(style_line).collect();
    };
    let mut lines = Vec::new();
    let mut paragraph = String::new();
    let mut in_code = false;
    let close = |paragraph: &mut String, lines: &mut Vec<String>| {
        if !paragraph.is_empty() {
            // Continuation lines of a list item align with its text.
            let hang = if paragraph.starts_with("- ") { 2 } else { 0 };
            let broken = wrap(&style_line(paragraph), width.saturating_sub(hang).max(1));
            let indent = |(place, line): (usize, String)| {
                if place == 0 { line } else { format!("{}{line}", " ".repeat(hang)) }
            };
            lines.extend(broken.into_iter().enumerate().map(indent));
            paragraph.clear();
        }
    };
    for line in text.lines() {
        let is_fence = line.starts_with("```");
        let begins = line.starts_with("**") || line.starts_with("- ") || line.starts_with('#');
        if in_code || is_fence || begins || line.trim().is_empty() {
            close(&mut paragraph, &mut lines);
        }
        in_code ^= is_fence;
        if in_code || is_fence || line.trim().is_empty() {
            lines.push(style_line(line));
        } else {
            if !paragraph.is_empty() {
                paragraph.push(' ');
            }
            paragraph.push_str(line.trim_end());
        }
    }
    close(&mut paragraph, &mut lines);
    lines
}

/// Returns the section of the page whose heading starts with this text.
fn section(heading: &str) -> Option<&'static str> {
    let start = PAGE.find(&format!("\n## {heading}"))? + 1;
    let rest = PAGE.get(start..)?;
    let end = rest.get(3..)?.find("\n## ").map_or(rest.len(), |at| at + 3);
    rest.get(..end).map(str::trim_end)
}

/// Styles a line of Markdown for the terminal: headings and emphasis become styles, the words stay.
fn style_line(line: &str) -> String {
    if let Some(heading) = line.strip_prefix("## ") {
        return format!("{HEAD}{heading}{HEAD:#}");
    }
    if line.starts_with("```") {
        return format!("{FAINT}{line}{FAINT:#}");
    }
    let parts = line.split("**").enumerate();
    parts
        .map(|(index, part)| if index % 2 == 1 { format!("{NOTE}{part}{NOTE:#}") } else { part.to_owned() })
        .collect()
}

fn list(args: &ExplainArgs, printer: &Printer) {
    if args.json {
        printer.json(&ErrorCode::all().map(facts).collect::<Vec<_>>());
        return;
    }
    let rows = ErrorCode::all()
        .map(|code| vec![format!("{HEAD}{code}{HEAD:#}"), code.name().to_owned(), code.meaning().to_owned()]);
    printer.table(&TextTable::without_headings(3).optional_columns(&[1]).with(rows));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn err_005_every_code_has_its_section() {
        for code in ErrorCode::all() {
            let text =
                section(&format!("{} ", code.number())).unwrap_or_else(|| panic!("{code} is not explained"));
            assert!(text.starts_with(&format!("## {} {}", code.number(), code.name())), "{code}");
            for part in ["**Responsible:**", "**Hint:**", "**Recoverable:**"] {
                assert!(text.contains(part), "{code} lacks {part}");
            }
            let recoverable = if code.recoverable() { "**Recoverable:** yes" } else { "**Recoverable:** no" };
            assert!(text.contains(recoverable), "{code} should say {recoverable}");
            for alias in code.aliases() {
                assert!(text.contains(alias), "{code} does not mention {alias}");
            }
        }
    }

    #[test]
    fn every_section_is_a_known_code() {
        for heading in PAGE.lines().filter_map(|line| line.strip_prefix("## E")) {
            let number = format!("E{}", heading.split(' ').next().unwrap());
            assert!(ErrorCode::find(&number).is_some(), "{number}");
        }
    }

    #[test]
    fn what_is_no_code_is_answered_with_what_may_have_been_meant() {
        assert!(suggest_codes("E3O01").starts_with("Did you mean `E3001`?"), "{}", suggest_codes("E3O01"));
        assert!(suggest_codes("PARSE").contains("`PARSE_ERROR`"), "{}", suggest_codes("PARSE"));
        assert!(suggest_codes("BOGUS").starts_with("Codes are numbers"), "{}", suggest_codes("BOGUS"));
    }

    #[test]
    fn paragraphs_fit_the_width_and_code_stays_as_it_is() {
        let text = "## E1 X\n\nOne two three\nfour.\n\n```\nkept   as it stands\n```";
        let lines: Vec<String> = layout_section(text, Some(12))
            .iter()
            .map(|line| anstream::adapter::strip_str(line).to_string())
            .collect();
        assert_eq!(lines, ["E1 X", "", "One two", "three four.", "", "```", "kept   as it stands", "```"]);
    }

    #[test]
    fn err_013_module_codes_are_explained_together() {
        assert!(section("Module-specific").unwrap().contains("error_codes"));
    }
}
