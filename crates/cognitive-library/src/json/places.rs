//! The positions of the values in a JSON text. Refuses nothing, since the parser does; a fault ends the scan. Paths are
//! computed on request: copying a long name for each of many values would be too expensive.

use std::borrow::Cow;
use std::ops::Range;

use super::{JsonPathStep, pointer_of, tokens};

/// The most values that are indexed. Later ones are reported at a parent.
const MAX_VALUES: usize = 250_000;
/// The most repeated members that are listed: an author starts with the first.
const MAX_REPEATED: usize = 200;
/// The nesting limit of the scan, deeper than the parser accepts.
const MAX_DEPTH: usize = 200;

/// The positions of all values in a text, and the pointers of members whose name occurs twice.
#[derive(Debug, Default)]
pub struct JsonIndex {
    root: Option<JsonNode>,
    /// The nodes. The children of a value are contiguous: items in order, members sorted by name.
    nodes: Vec<JsonNode>,
    /// Members that occur more than once in their object; the last one counts.
    pub repeated: Vec<String>,
}

/// A value, stored as ranges only: of the text, and of its child nodes.
#[derive(Debug)]
struct JsonNode {
    span: Range<usize>,
    /// The name with its quotes; empty for items.
    name: Range<usize>,
    children: Range<usize>,
}

impl JsonIndex {
    /// Returns the byte range of the value at a JSON pointer, or of its nearest parent if it does not exist. The flag
    /// is true for the value itself. `text` must be the indexed text.
    #[must_use]
    pub fn nearest(&self, text: &str, pointer: &str) -> Option<(Range<usize>, bool)> {
        let mut node = self.root.as_ref()?;
        for token in tokens(pointer)? {
            match self.child(text, node, &token) {
                Some(child) => node = child,
                None => return Some((node.span.clone(), false)),
            }
        }
        Some((node.span.clone(), true))
    }

    /// Returns the byte range of the member name at a JSON pointer, with its quotes.
    #[must_use]
    pub fn name(&self, text: &str, pointer: &str) -> Option<Range<usize>> {
        let mut node = self.root.as_ref()?;
        for token in tokens(pointer)? {
            node = self.child(text, node, &token)?;
        }
        Some(node.name.clone()).filter(|name| !name.is_empty())
    }

    fn child(&self, text: &str, parent: &JsonNode, token: &str) -> Option<&JsonNode> {
        let children = self.nodes.get(parent.children.clone())?;
        if text.as_bytes().get(parent.span.start) == Some(&b'[') {
            return children.get(token.parse::<usize>().ok()?);
        }
        let behind = children.partition_point(|child| *name_at(text, &child.name) <= *token);
        children.get(behind.checked_sub(1)?).filter(|child| name_at(text, &child.name) == token)
    }
}

/// Decodes a member name; copies it only if it has escapes.
fn name_at<'a>(text: &'a str, range: &Range<usize>) -> Cow<'a, str> {
    let quoted = text.get(range.clone()).unwrap_or_default();
    let plain = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default();
    if plain.contains('\\') {
        serde_json::from_str(quoted).map_or(Cow::Borrowed(plain), Cow::Owned)
    } else {
        Cow::Borrowed(plain)
    }
}

/// Indexes a valid JSON text. In an invalid text it indexes the values before the fault, and in a text with more than
/// 250,000 values the first ones.
#[must_use]
pub fn index(text: &str) -> JsonIndex {
    let mut scanner = Scanner { text, at: 0, seen: 0, path: Vec::new(), index: JsonIndex::default() };
    scanner.index.root = scanner.value(0..0);
    scanner.index
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    seen: usize,
    path: Vec<JsonPathStep<'a>>,
    index: JsonIndex,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip(&mut self, unwanted: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&unwanted) {
            self.at += 1;
        }
    }

    /// Moves to the end of the text, so that all open values end.
    fn stop<T>(&mut self) -> Option<T> {
        self.at = self.text.len();
        None
    }

    fn value(&mut self, name: Range<usize>) -> Option<JsonNode> {
        self.skip(is_space);
        self.seen += 1;
        let start = self.at;
        let children = match self.peek()? {
            _ if self.seen > MAX_VALUES || self.path.len() > MAX_DEPTH => return self.stop(),
            b'{' => self.members(),
            b'[' => self.items(),
            b'"' => {
                self.string();
                0..0
            }
            _ => {
                self.skip(|byte| !is_space(byte) && !matches!(byte, b',' | b'}' | b']'));
                0..0
            }
        };
        Some(JsonNode { span: start..self.at, name, children })
    }

    fn members(&mut self) -> Range<usize> {
        let text = self.text;
        let mut members = Vec::new();
        self.at += 1;
        while let Some(member) = self.member() {
            members.push(member);
        }
        // Sorted by name for lookup. Equal names keep their order, so the last one counts.
        members.sort_by_cached_key(|member| name_at(text, &member.name));
        self.report_repeated(&members);
        self.keep(members)
    }

    /// Reads the next member; `None` at the end of the object.
    fn member(&mut self) -> Option<JsonNode> {
        self.skip(|byte| is_space(byte) || byte == b',');
        match self.peek()? {
            b'"' => {}
            b'}' => {
                self.at += 1;
                return None;
            }
            _ => return self.stop(),
        }
        let name = self.string();
        self.skip(is_space);
        if self.peek() != Some(b':') {
            return self.stop();
        }
        self.at += 1;
        self.path.push(JsonPathStep::Member(name_at(self.text, &name)));
        let member = self.value(name);
        self.path.pop();
        member
    }

    fn items(&mut self) -> Range<usize> {
        let mut items = Vec::new();
        self.at += 1;
        loop {
            self.skip(|byte| is_space(byte) || byte == b',');
            if matches!(self.peek(), None | Some(b']')) {
                break;
            }
            self.path.push(JsonPathStep::Item(items.len()));
            let before = self.at;
            let item = self.value(0..0);
            self.path.pop();
            // A stray bracket is an empty value, and would repeat forever.
            match item.filter(|_| self.at > before) {
                Some(item) => items.push(item),
                None => {
                    self.stop::<()>();
                }
            }
        }
        self.at = self.text.len().min(self.at + 1);
        self.keep(items)
    }

    fn keep(&mut self, children: Vec<JsonNode>) -> Range<usize> {
        let first = self.index.nodes.len();
        self.index.nodes.extend(children);
        first..self.index.nodes.len()
    }

    fn report_repeated(&mut self, sorted: &[JsonNode]) {
        let mut repeated: Vec<&JsonNode> = sorted
            .iter()
            .zip(sorted.iter().skip(1))
            .filter(|(one, next)| name_at(self.text, &one.name) == name_at(self.text, &next.name))
            .map(|(_, next)| next)
            .collect();
        repeated.sort_by_key(|member| member.span.start);
        for member in repeated.into_iter().take(MAX_REPEATED.saturating_sub(self.index.repeated.len())) {
            self.path.push(JsonPathStep::Member(name_at(self.text, &member.name)));
            let place = pointer_of(&self.path);
            self.path.pop();
            self.index.repeated.push(place);
        }
    }

    /// Skips a string and returns its range, with its quotes.
    fn string(&mut self) -> Range<usize> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'\\') => self.at += 2,
                Some(b'"') | None => break,
                Some(_) => self.at += 1,
            }
        }
        self.at = self.text.len().min(self.at + 1);
        start..self.at
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use cognitive_contract::json::parse;

    #[test]
    fn depth_ends_the_scan() {
        assert!(index(&"[".repeat(10_000)).nodes.len() <= MAX_DEPTH + 1);
        assert!(index(&"{\"a\":".repeat(10_000)).nodes.len() <= MAX_DEPTH + 1);
    }

    #[test]
    fn places_are_byte_ranges_and_repeats_are_seen() {
        let text = r#"{"a": [1, {"b\n/": "é"}], "z": 0, "a": [2, {"b\n/": "è"}], "n": -1.5e3 }"#;
        let index = index(text);
        let shown = |at: &str| index.nearest(text, at).map(|(span, exact)| (&text[span], exact));
        assert_eq!(shown("/a/1/b\n~1"), Some(("\"è\"", true)));
        assert_eq!(shown("/a/0"), Some(("2", true)));
        assert_eq!(shown("/n"), Some(("-1.5e3", true)));
        assert_eq!(shown("/a/0/x/y"), Some(("2", false)));
        assert_eq!(shown(""), Some((text, true)));
        assert_eq!(shown("a"), None);
        assert_eq!(index.repeated, ["/a"]);
    }

    #[test]
    fn the_index_knows_every_place_of_the_parsed_value() {
        fn check<'a>(text: &str, index: &JsonIndex, value: &'a Value, path: &mut Vec<JsonPathStep<'a>>) {
            let (span, exact) = index.nearest(text, &pointer_of(path)).unwrap();
            assert!(exact);
            assert_eq!(&parse(&text[span]).unwrap(), value);
            let members = value.as_object().into_iter().flatten();
            let members = members.map(|(name, child)| (JsonPathStep::Member(name.as_str().into()), child));
            let items = value.as_array().into_iter().flatten().enumerate();
            for (step, child) in members.chain(items.map(|(at, child)| (JsonPathStep::Item(at), child))) {
                path.push(step);
                check(text, index, child, path);
                path.pop();
            }
        }
        let text = r#"{"x":{"y":[[],{}]},"z":"\"}","w":null,"":[{"~/\u0061": 1}, "\\"]}"#;
        check(text, &index(text), &parse(text).unwrap(), &mut Vec::new());
    }

    #[test]
    fn faults_end_the_scan_and_keep_what_came_before() {
        for text in ["", "[", "[}", "{]", "[1 }", "{\"a", "{\"a\\", "{\"a\":", "{\"a\" 1}", "[\"\\"] {
            let index = index(text);
            assert!(index.nearest(text, "/a/0").is_none_or(|(span, _)| text.get(span).is_some()), "{text}");
        }
        let text = r#"{"a": [1, 2], "b": {"c": 3 ! "#;
        let (span, exact) = index(text).nearest(text, "/b/c").unwrap();
        assert_eq!((&text[span], exact), ("3", true));
    }

    #[test]
    fn a_long_name_is_written_down_once_at_most() {
        let name = "n".repeat(100_000);
        let text =
            format!(r#"{{"a": {{"{name}": {{"k": [{}0], "r": 0, "r": 1}}}}, "a": 1}}"#, "0,".repeat(999));
        let found = index(&text);
        // The path of `r` exceeds the length limit, so its nearest parent is reported.
        assert_eq!(found.repeated, ["/a", "/a"]);
        assert_eq!(found.nodes.len(), 2 + 1 + 3 + 1000);
    }

    #[test]
    fn what_is_indexed_and_listed_has_an_end() {
        let many = format!("[{}0]", "0,".repeat(MAX_VALUES));
        assert!(index(&many).nodes.len() < MAX_VALUES);
        let repeated = format!("{{{}\"a\":0}}", "\"a\":0,".repeat(1_000));
        assert_eq!(index(&repeated).repeated.len(), MAX_REPEATED);
    }
}
