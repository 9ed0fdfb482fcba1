//! `cogn explain CODE`: what an error code means, whose fault it is and what to do. The texts are docs/errors.md.

use cognitive_contract::ErrorCode;
use cognitive_contract::code::is_module_code;

use crate::printer::{Exit, FAINT, HEAD, NOTE, Printer, table};

const PAGE: &str = include_str!("../../../../docs/errors.md");

/// Options of `explain`.
#[derive(Debug, clap::Args)]
pub struct ExplainArgs {
    /// A number such as E3001 or a name such as `PARSE_ERROR`; without it, all codes are listed
    code: Option<String>,
}

/// Prints the explanation.
pub fn explain(args: &ExplainArgs, printer: &Printer) -> Exit {
    let Some(asked) = &args.code else {
        list(printer);
        return Exit::Good;
    };
    let asked = asked.trim().to_ascii_uppercase();
    let section = match ErrorCode::find(&asked) {
        Some(code) => section(&format!("{} ", code.number())),
        None if is_module_code(&asked) => section("Module-specific"),
        None => None,
    };
    match section {
        Some(text) => {
            for line in text.lines() {
                printer.out(styled(line));
            }
            Exit::Good
        }
        None => {
            printer.error(&format!("unknown error code: `{asked}`"), Some("`cogn explain` lists all codes"));
            Exit::Bad
        }
    }
}

/// The section of the page whose heading starts like this.
fn section(heading: &str) -> Option<&'static str> {
    let start = PAGE.find(&format!("\n## {heading}"))? + 1;
    let rest = PAGE.get(start..)?;
    let end = rest.get(3..)?.find("\n## ").map_or(rest.len(), |at| at + 3);
    rest.get(..end).map(str::trim_end)
}

/// A line of Markdown for the terminal: headings and emphasis become styles, the words stay.
fn styled(line: &str) -> String {
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

fn list(printer: &Printer) {
    let rows: Vec<Vec<String>> = ErrorCode::all()
        .map(|code| vec![format!("{HEAD}{code}{HEAD:#}"), code.name().to_owned(), code.meaning().to_owned()])
        .collect();
    for line in table(&rows) {
        printer.out(line);
    }
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
            for part in ["**Whose fault:**", "**What to do:**", "**Recoverable:**"] {
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
    fn err_013_module_codes_are_explained_together() {
        assert!(section("Module-specific").unwrap().contains("error_codes"));
    }
}
