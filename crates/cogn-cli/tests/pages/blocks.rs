//! The fenced blocks of a page, and their commands. Refuses unknown attributes.

/// A fenced block.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    /// The line of its fence.
    pub(crate) line: usize,
    pub(crate) language: String,
    attributes: Vec<(String, String)>,
    pub(crate) lines: Vec<String>,
    /// The paragraph directly above it.
    pub(crate) above: String,
}

/// A command and its expected output.
#[derive(Debug)]
pub(crate) struct Typed {
    /// The lines that a user types.
    pub(crate) typed: Vec<String>,
    /// The expected output; empty if only success counts.
    pub(crate) shown: Vec<String>,
}

const ATTRIBUTES: [&str; 4] = ["file", "exit", "needs", "not-run"];

impl Block {
    /// Returns an attribute of the block.
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn is_run(&self) -> bool {
        self.attribute("not-run").is_none()
    }

    /// Returns the commands of a console block: a line with `$ `, continuation lines with `> `, and their output.
    pub(crate) fn commands(&self) -> Vec<Typed> {
        let mut commands: Vec<Typed> = Vec::new();
        for line in &self.lines {
            let more =
                line.strip_prefix("> ").or_else(|| line.strip_prefix('>').filter(|rest| rest.is_empty()));
            match (line.strip_prefix("$ "), more, commands.last_mut()) {
                (Some(command), ..) => {
                    commands.push(Typed { typed: vec![command.to_owned()], shown: Vec::new() });
                }
                (_, Some(more), Some(command)) if command.shown.is_empty() => {
                    command.typed.push(more.to_owned());
                }
                (.., Some(command)) => command.shown.push(line.trim_end().to_owned()),
                _ => panic!("line {}: output without a command: {line}", self.line),
            }
        }
        commands
    }
}

/// Returns the fenced blocks of a page, in order.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut open = false;
    let mut above = String::new();
    for (index, line) in page.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(_) if open => open = false,
            Some(info) => {
                open = true;
                let (language, attributes) = info_string(info, index + 1);
                let above = std::mem::take(&mut above);
                found.push(Block { line: index + 1, language, attributes, lines: Vec::new(), above });
            }
            None if open => found.last_mut().unwrap().lines.push(line.to_owned()),
            None if line.starts_with('#') => above.clear(),
            None => {
                above.push_str(line);
                above.push('\n');
            }
        }
    }
    found
}

/// Parses an info string such as `console exit=1 not-run="why"`.
fn info_string(info: &str, line: usize) -> (String, Vec<(String, String)>) {
    let (language, mut rest) = info.split_once(' ').unwrap_or((info, ""));
    let mut attributes = Vec::new();
    while let Some((name, after)) = rest.trim_start().split_once('=') {
        assert!(ATTRIBUTES.contains(&name), "line {line}: nobody reads `{name}`");
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap(),
            None => after.split_once(' ').unwrap_or((after, "")),
        };
        attributes.push((name.to_owned(), value.to_owned()));
        rest = after;
    }
    assert!(rest.trim().is_empty(), "line {line}: cannot be read: {rest}");
    (language.to_owned(), attributes)
}
