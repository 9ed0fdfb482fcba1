//! The public items of the crate `cogn`, as `crates/cogn/public-api.txt`: types, their members, and what is implemented
//! for them. Reads the source as text, which rustfmt keeps uniform. Of foreign crates it lists only names, and it sees no
//! variants that a macro writes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::tests_index;

/// The path of the listing.
pub(crate) const PATH: &str = "crates/cogn/public-api.txt";
/// The root of the crate.
const ROOT: &str = "crates/cogn/src/lib.rs";
const HEAD: &str = "# The public items of the crate `cogn`. `cargo xtask generate` writes this list, and a test compares it.\n\
                    # A line that goes or changes breaks programs; a line that is added is a promise.\n\n";

/// Renders the listing.
pub(crate) fn render(root: &Path) -> Result<String, String> {
    let text = fs::read_to_string(root.join(ROOT)).map_err(|error| format!("{ROOT}: {error}"))?;
    let mut listed = BTreeMap::new();
    for (path, name) in exports(&text) {
        let krate = path.split("::").next().unwrap_or_default().replace('_', "-");
        let source = root.join("crates").join(&krate).join("src");
        let lines = if source.is_dir() {
            item(&sources(root, &source)?, &path, &name)?
        } else {
            vec![format!("use {path}::{name}")]
        };
        listed.insert(name, lines);
    }
    for line in
        text.lines().filter_map(|line| line.strip_prefix("pub ")).filter(|line| !line.starts_with("use "))
    {
        listed.insert(line.to_owned(), vec![line.trim_end_matches(['{', ';', ' ']).to_owned()]);
    }
    let blocks: Vec<String> = listed.into_values().map(|lines| lines.join("\n    ") + "\n").collect();
    Ok(format!("{HEAD}{}", blocks.join("\n")))
}

/// The path and the name of each export: `pub use a::b::{C, D};` has two.
fn exports(text: &str) -> Vec<(String, String)> {
    let statements = text.split("\npub use ").skip(1).filter_map(|rest| rest.split_once(';'));
    let mut exports = Vec::new();
    for (statement, _) in statements {
        let (path, names) = match statement.split_once("::{") {
            Some((path, names)) => (path, names.trim_end().trim_end_matches('}')),
            None => statement.rsplit_once("::").unwrap_or((statement, "*")),
        };
        let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
        exports.extend(names.map(|name| (path.to_owned(), name.to_owned())));
    }
    exports
}

/// A source file without its tests.
struct Source {
    path: PathBuf,
    lines: Vec<String>,
}

fn sources(root: &Path, folder: &Path) -> Result<Vec<Source>, String> {
    let is_code = |file: &PathBuf| file.starts_with(folder) && !file.ends_with("tests.rs");
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        Ok(Source { lines: code.lines().map(str::to_owned).collect(), path })
    };
    tests_index::rust_files(root).into_iter().filter(is_code).map(read).collect()
}

/// The lines of one item: its definition, its traits and its members.
fn item(sources: &[Source], path: &str, name: &str) -> Result<Vec<String>, String> {
    let found = sources.iter().flat_map(|source| {
        let lines = source.lines.iter().enumerate();
        lines.filter(|(_, line)| defines(line.trim_start(), name)).map(move |(at, _)| (source, at))
    });
    let mut found: Vec<(&Source, usize)> = found.collect();
    if found.len() > 1 {
        let module = path.rsplit("::").next().unwrap_or_default();
        found.retain(|(source, _)| source.path.file_stem().is_some_and(|stem| stem == module));
    }
    let [(source, at)] = found.as_slice() else {
        return Err(format!("{ROOT}: `{path}::{name}` has {} definitions", found.len()));
    };
    let mut item = Item { name, traits: Vec::new(), members: Vec::new() };
    let head = item.define(&source.lines, *at);
    for source in sources {
        for at in 0..source.lines.len() {
            item.implement(&source.lines, at);
        }
    }
    let Item { mut traits, mut members, .. } = item;
    traits.sort();
    traits.dedup();
    members.sort();
    let traits = (!traits.is_empty()).then(|| format!("implements {}", traits.join(", ")));
    Ok([head].into_iter().chain(traits).chain(members).collect())
}

/// Returns whether a line begins the definition of a public item.
fn defines(line: &str, name: &str) -> bool {
    let Some(rest) = line.strip_prefix("pub ") else { return false };
    let Some((word, rest)) = rest.split_once(' ') else { return false };
    let is_item = ["struct", "enum", "trait", "type", "const", "fn"].contains(&word);
    let after = rest.strip_prefix(name).and_then(|after| after.chars().next());
    is_item && rest.starts_with(name) && after.is_none_or(|next| !next.is_alphanumeric() && next != '_')
}

/// The attributes above a line, without comments.
fn attributes(lines: &[String], at: usize) -> Vec<&str> {
    let above = lines.iter().take(at).rev().map(|line| line.trim());
    above
        .take_while(|line| line.starts_with("#[") || line.starts_with("///"))
        .filter(|line| line.starts_with('#'))
        .collect()
}

/// The text from a line to the end of its signature.
fn signature(lines: &[String], at: usize) -> String {
    let mut text = String::new();
    for line in lines.iter().skip(at).map(|line| line.trim()) {
        if !text.is_empty() && !text.ends_with(['(', '<']) && !line.starts_with([')', '>']) {
            text.push(' ');
        }
        text.push_str(line);
        if line.ends_with(['{', ';']) || line.ends_with("{}") {
            break;
        }
    }
    let text = text.trim_end_matches("{}").trim_end_matches(['{', ';', ' ']);
    // One-line bodies, as in `fn a(&self) {}`, and values of constants are no part of it.
    let text = text.split(" { ").next().unwrap_or(text);
    let is_const = text.contains("const ") && !text.contains("fn ");
    let text = if is_const { text.split(" = ").next().unwrap_or(text) } else { text };
    text.trim_start_matches("pub ").replace(",)", ")").replace("(mut self", "(self")
}

/// The lines of a block up to its end, with their indentation below the block.
fn block(lines: &[String], at: usize) -> impl Iterator<Item = (usize, usize, &str)> {
    let depth = |line: &str| line.len() - line.trim_start().len();
    let own = lines.get(at).map_or(0, |line| depth(line));
    let opens = lines.get(at).is_some_and(|line| line.ends_with('{'));
    let body = lines.iter().enumerate().skip(at + 1);
    let body = body.take_while(move |(_, line)| opens && (line.is_empty() || depth(line) > own));
    body.filter(|(_, line)| !line.trim().is_empty())
        .map(move |(at, line)| (at, depth(line) - own, line.trim()))
}

/// An item whose source is being read.
struct Item<'a> {
    name: &'a str,
    traits: Vec<String>,
    members: Vec<String>,
}

impl Item<'_> {
    /// Reads the definition. Returns its first line.
    fn define(&mut self, lines: &[String], at: usize) -> String {
        let head = signature(lines, at);
        let marks = attributes(lines, at);
        for derived in marks.iter().filter_map(|mark| mark.strip_prefix("#[derive(")?.strip_suffix(")]")) {
            self.traits.extend(derived.split(", ").map(str::to_owned));
        }
        let mut variant = String::new();
        for (at, depth, line) in block(lines, at) {
            let member = line.trim_end_matches(['{', ',', ' ']);
            let named = match (head.split(' ').next().unwrap_or_default(), depth) {
                ("struct", 4) => member.strip_prefix("pub ").map(str::to_owned),
                ("enum", 4) if line.starts_with(char::is_uppercase) => {
                    member.split(" = ").next().unwrap_or_default().clone_into(&mut variant);
                    Some(variant.clone())
                }
                ("enum", 8) if line.starts_with(char::is_lowercase) => Some(format!("{variant}.{member}")),
                ("trait", 4) if is_item_of_trait(line) => {
                    let is_provided = lines.iter().skip(at).find(|line| line.ends_with([';', '{', '}']));
                    let is_provided = is_provided.is_some_and(|line| !line.ends_with(';'));
                    Some(signature(lines, at) + if is_provided { " (provided)" } else { "" })
                }
                _ => None,
            };
            self.members.extend(named);
        }
        if marks.contains(&"#[non_exhaustive]") { format!("{head} (non-exhaustive)") } else { head }
    }

    /// Reads an implementation that begins in this line, if it is one for the item.
    fn implement(&mut self, lines: &[String], at: usize) {
        let is_impl =
            |line: &String| line.trim_start().starts_with("impl ") || line.trim_start().starts_with("impl<");
        if !lines.get(at).is_some_and(is_impl) {
            return;
        }
        let head = signature(lines, at);
        let (of_trait, subject) = match head.rsplit_once(" for ") {
            Some((of_trait, subject)) => (Some(after_generics(of_trait)), subject),
            None => (None, after_generics(&head)),
        };
        if subject.split(['<', ' ']).next() != Some(self.name) {
            return;
        }
        if let Some(of_trait) = of_trait {
            return self.traits.push(of_trait.to_owned());
        }
        for (at, depth, line) in block(lines, at) {
            let marks = attributes(lines, at);
            if depth == 4 && line.starts_with("pub ") && !marks.contains(&"#[doc(hidden)]") {
                self.members.push(signature(lines, at));
            }
        }
    }
}

fn is_item_of_trait(line: &str) -> bool {
    ["fn ", "async fn ", "const ", "type "].iter().any(|word| line.starts_with(word))
}

/// Strips `impl` and its generics.
fn after_generics(head: &str) -> &str {
    let rest = head.trim_start_matches("impl");
    let generics = rest.starts_with('<').then(|| rest.split_once("> ")).flatten();
    generics.map_or(rest, |(_, rest)| rest).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_read_with_what_programs_can_use_of_them() {
        let text = "/// A run.\n#[derive(Clone, Debug)]\n#[non_exhaustive]\npub struct Run<'a> {\n    /// Its name.\n    \
                    pub name: &'a str,\n    hidden: u8,\n}\n\nimpl Run<'_> {\n    /// Starts.\n    pub fn start(\n        \
                    mut self,\n        at: u8,\n    ) -> Self {\n        self\n    }\n\n    #[doc(hidden)]\n    pub fn tune(&self) \
                    {}\n\n    fn own(&self) {}\n}\n\nimpl<T> From<T> for Run<'_> {\n}\n\npub struct Runs;\n";
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let source = Source { path: PathBuf::from("run.rs"), lines };
        let found = item(&[source], "cognitive_x::run", "Run").unwrap();
        let expected = [
            "struct Run<'a> (non-exhaustive)",
            "implements Clone, Debug, From<T>",
            "fn start(self, at: u8) -> Self",
            "name: &'a str",
        ];
        assert_eq!(found, expected);
        assert_eq!(
            exports("\npub use a::b::{\n    C, D,\n};\npub use e::F;\n"),
            [("a::b", "C"), ("a::b", "D"), ("e", "F")].map(|(path, name)| (path.to_owned(), name.to_owned()))
        );
        // A program finds plumbing nowhere in the listing.
        let listing = render(&crate::root()).unwrap();
        for hidden in ["SettingOverrides", "HostParts", "&mut Host", "Stores"] {
            assert!(!listing.contains(hidden), "{hidden} is public");
        }
        assert!(listing.lines().count() > 300, "has the check gone blind?");
    }
}
