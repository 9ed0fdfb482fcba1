//! The first page of help: commands in groups, in the order in which people need them. Every command that is not hidden is in
//! one group; a test counts them.

use std::fmt::Write as _;

use clap::Command;

use super::STYLES;
use crate::printer::Printer;
use crate::text_table::{TextTable, wrap};

/// The widest that help gets, as for the pages of single commands. Longer lines are hard to read.
const MAX_HELP_WIDTH: usize = 100;

/// The groups, and what is in them.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Run", &["run", "batch", "prompt", "lower", "compose", "media"]),
    (
        "Modules",
        &[
            "list", "info", "init", "validate", "test", "eval", "train", "verify", "types", "export",
            "import", "migrate",
        ],
    ),
    ("Packages", &["add", "remove", "update", "versions", "search", "pack", "sign", "publish", "registry"]),
    ("Server and records", &["serve", "studio", "mcp", "deploy", "audit", "review", "context", "store"]),
    ("This machine", &["doctor", "model", "trust", "capabilities", "completions", "man"]),
    ("Reference", &["explain", "prices", "schema", "check", "conformance"]),
];

/// Returns the command with a help page that lists its subcommands in groups.
pub(super) fn in_groups(command: Command) -> Command {
    let page = page(&command);
    command.help_template(page)
}

fn page(command: &Command) -> String {
    let (head, name) = (STYLES.get_header(), STYLES.get_literal());
    let width = Printer.width().unwrap_or(MAX_HELP_WIDTH).min(MAX_HELP_WIDTH);
    let longest = GROUPS.iter().flat_map(|(_, names)| *names).map(|name| name.len()).max().unwrap_or(0);
    let mut page = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (group, names) in GROUPS {
        let rows = names.iter().filter_map(|wanted| {
            let found = command.get_subcommands().find(|known| known.get_name() == *wanted)?;
            let about = found.get_about().map(ToString::to_string).unwrap_or_default();
            // The names of all groups are aligned.
            Some(vec![format!("{name}{wanted}{name:#}{}", " ".repeat(longest - wanted.len())), about])
        });
        let table = TextTable::without_headings(2).indent(2).with(rows);
        let _ = write!(page, "\n{head}{group}:{head:#}\n{}\n", table.lines(Some(width)).join("\n"));
    }
    let _ = write!(page, "\n{head}Options:{head:#}\n{{options}}\n\n");
    let last = wrap("`cogn help COMMAND` explains a command, `cogn explain CODE` an error.", width);
    page.push_str(&last.join("\n"));
    page
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::super::Cli;
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let command = Cli::command();
        let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
        let mut visible: Vec<&str> = visible.map(Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        visible.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(visible, grouped);
    }
}
