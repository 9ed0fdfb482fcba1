//! YAML with a budget: the safe subset that manifests need, and the position of each value. Refuses alias bombs, deep
//! nesting, duplicate keys, several documents and non-finite numbers. Each message is one short line, even for a long
//! text.

mod remedy;

use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::{Location, Options, Spanned};

use crate::finding::printable;
use crate::json::tokens;

/// The longest reason. The parser quotes whole scalars.
const MESSAGE_LIMIT: usize = 200;

/// A fault in a YAML text, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YamlError {
    /// The reason, on one line.
    pub message: String,
    /// Byte offset, if known.
    pub offset: Option<usize>,
    /// The remedy, if known.
    pub hint: Option<String>,
}

fn options() -> Options {
    serde_saphyr::options! {
        // `no` and `off` are strings, as in YAML 1.2.
        strict_booleans: true,
        with_snippet: false,
        non_finite_float_policy: serde_saphyr::options::NonFiniteFloatPolicy::Reject,
        budget: serde_saphyr::budget! {
            max_depth: 50,
            max_nodes: 20_000,
            max_events: 60_000,
            max_aliases: 50,
            max_anchors: 50,
            max_recorded_anchor_events: 2_000,
            max_documents: 1,
            max_merge_keys: 20,
        },
    }
}

/// Parses a manifest or front matter.
pub fn parse(text: &str) -> Result<Value, YamlError> {
    serde_saphyr::from_str_with_options(text, options()).map_err(|error| {
        let message = words(&error.without_snippet().to_string());
        explain_error(message, error.location().and_then(|at| offset(&at, text)), text)
    })
}

/// Replaces the parser's reason by one for authors, if the mistake is a common one.
fn explain_error(message: String, offset: Option<usize>, text: &str) -> YamlError {
    let Some(at) = offset else { return YamlError { message, offset, hint: None } };
    let found = remedy::unclosed_bracket(text, at).or_else(|| remedy::remedy(&message, text, at));
    match found {
        Some(remedy) => YamlError {
            message: remedy.message.unwrap_or(message),
            offset: remedy.at.or(offset),
            hint: Some(remedy.hint),
        },
        None => YamlError { message, offset, hint: None },
    }
}

/// The parser's reason, without its position, which is shown separately, and without advice about parser options.
fn words(reason: &str) -> String {
    let first = reason.lines().next().unwrap_or_default();
    let first = first.split(" at line ").next().unwrap_or(first);
    let first = first.split(", set ").next().unwrap_or(first);
    // The start of a reason names its kind; the rest can quote the author's text.
    let first = printable(first, MESSAGE_LIMIT);
    let limit = first.contains("budget") || first.contains("limit");
    if limit { format!("the YAML is too large, too deep or expands too far: {first}") } else { first }
}

/// Writes a value as YAML, for files that people read.
pub fn write(value: &impl serde::Serialize) -> Result<String, String> {
    serde_saphyr::to_string(value).map_err(|error| error.to_string())
}

fn offset(location: &Location, text: &str) -> Option<usize> {
    let bytes = location.span().byte_offset().and_then(|at| usize::try_from(at).ok());
    bytes.filter(|at| *at <= text.len() && text.is_char_boundary(*at)).or_else(|| {
        let line = usize::try_from(location.line()).ok()?.checked_sub(1)?;
        let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
        (start <= text.len()).then_some(start)
    })
}

/// The positions of the values in a text. Stores the structure and each name once; paths are walked, not stored.
#[derive(Debug, Default)]
pub struct YamlIndex(Option<YamlPosition>);

#[derive(Debug)]
struct YamlPosition {
    span: Option<Range<usize>>,
    inside: YamlContent,
}

#[derive(Debug)]
enum YamlContent {
    Nothing,
    List(Vec<YamlPosition>),
    Map(Vec<YamlMember>),
}

#[derive(Debug)]
struct YamlMember {
    name: String,
    key: Option<Range<usize>>,
    value: YamlPosition,
}

impl YamlIndex {
    /// Returns the byte range of the key of the member at a JSON pointer.
    #[must_use]
    pub fn key(&self, pointer: &str) -> Option<Range<usize>> {
        let mut place = self.0.as_ref()?;
        let mut key = None;
        for token in tokens(pointer)? {
            (place, key) = match &place.inside {
                YamlContent::Nothing => return None,
                YamlContent::List(items) => (items.get(token.parse::<usize>().ok()?)?, None),
                YamlContent::Map(members) => {
                    let member = members.iter().find(|member| member.name == token)?;
                    (&member.value, member.key.clone())
                }
            };
        }
        key
    }

    /// Returns the byte range of the value at a JSON pointer.
    #[must_use]
    pub fn get(&self, pointer: &str) -> Option<&Range<usize>> {
        self.nearest(pointer).filter(|(_, exact)| *exact).map(|(span, _)| span)
    }

    /// Returns the byte range of the value at a JSON pointer, or of its nearest parent. The flag is true for the value
    /// itself.
    #[must_use]
    pub fn nearest(&self, pointer: &str) -> Option<(&Range<usize>, bool)> {
        let mut place = self.0.as_ref()?;
        let mut known = place.span.as_ref().map(|span| (span, true));
        for token in tokens(pointer)? {
            let inside = match &place.inside {
                YamlContent::Nothing => None,
                YamlContent::List(items) => token.parse::<usize>().ok().and_then(|at| items.get(at)),
                YamlContent::Map(members) => {
                    members.iter().find(|member| member.name == token).map(|member| &member.value)
                }
            };
            let parent = known.map(|(span, _)| (span, false));
            let Some(inside) = inside else { return parent };
            place = inside;
            known = place.span.as_ref().map(|span| (span, true)).or(parent);
        }
        known
    }
}

/// Indexes the values of a text. The index is empty if the text does not parse.
#[must_use]
pub fn spans(text: &str) -> YamlIndex {
    let root = serde_saphyr::from_str_with_options::<Spanned<YamlNode>>(text, options()).ok();
    YamlIndex(root.map(|root| position(root, text)))
}

fn range(location: &Location, text: &str) -> Option<Range<usize>> {
    let start = offset(location, text)?;
    let length = location.span().byte_len().and_then(|length| usize::try_from(length).ok());
    let end = start.saturating_add(length.unwrap_or(0)).min(text.len());
    Some(start..end.max(start))
}

fn position(node: Spanned<YamlNode>, text: &str) -> YamlPosition {
    let span = range(&node.referenced, text);
    let inside = match node.value {
        YamlNode::Scalar => YamlContent::Nothing,
        YamlNode::List(items) => {
            YamlContent::List(items.into_iter().map(|item| position(item, text)).collect())
        }
        YamlNode::Map(members) => {
            let member = |(name, value): (Spanned<String>, Spanned<YamlNode>)| YamlMember {
                key: range(&name.referenced, text).filter(|key| !key.is_empty()),
                name: name.value,
                value: position(value, text),
            };
            YamlContent::Map(members.into_iter().map(member).collect())
        }
    };
    YamlPosition { span, inside }
}

/// The structure of a document without its scalars; only positions matter.
enum YamlNode {
    Scalar,
    List(Vec<Spanned<YamlNode>>),
    Map(Vec<(Spanned<String>, Spanned<YamlNode>)>),
}

impl<'de> Deserialize<'de> for YamlNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

// One method per kind of scalar; the value is ignored.
macro_rules! scalars {
    ($($method:ident($kind:ty)),*) => {
        $(fn $method<E>(self, _: $kind) -> Result<YamlNode, E> { Ok(YamlNode::Scalar) })*
    };
}

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = YamlNode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    scalars!(
        visit_bool(bool),
        visit_i64(i64),
        visit_u64(u64),
        visit_f64(f64),
        visit_i128(i128),
        visit_u128(u128)
    );
    scalars!(visit_str(&str), visit_string(String), visit_bytes(&[u8]));

    fn visit_unit<E>(self) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar)
    }

    fn visit_none<E>(self) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<YamlNode, D::Error> {
        YamlNode::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<YamlNode, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(YamlNode::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<YamlNode, A::Error> {
        let mut members = Vec::new();
        while let Some(name) = map.next_key::<Spanned<String>>()? {
            members.push((name, map.next_value()?));
        }
        Ok(YamlNode::Map(members))
    }

    fn visit_enum<A: serde::de::EnumAccess<'de>>(self, access: A) -> Result<YamlNode, A::Error> {
        access.variant::<IgnoredAny>().map(|_| YamlNode::Scalar)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn man_001_booleans_are_yaml_1_2_and_versions_stay_text() {
        let value = parse("a: no\nb: true\nc: 1.0.0\nd: [x, 2]\n").unwrap();
        assert_eq!(value, json!({ "a": "no", "b": true, "c": "1.0.0", "d": ["x", 2] }));
    }

    // A tag of another language builds no object: the value is plain, or the file is refused.
    #[test]
    fn man_001_tags_build_no_objects() {
        for tag in [
            "!!python/object/apply:os.system",
            "!!python/name:os.system",
            "!<tag:example.com,2026:x>",
            "!own",
        ] {
            let value = parse(&format!("name: {tag} [id]\n")).map(|value| value["name"].clone());
            assert!(value.is_err() || value == Ok(json!(["id"])), "{tag}: {value:?}");
            let top = parse(&format!("{tag}\nname: id\n"));
            assert!(top.is_err() || top == Ok(json!({ "name": "id" })), "{tag}: {top:?}");
        }
    }

    #[test]
    fn sec_020_bombs_and_oddities_are_refused() {
        let mut laughs = vec!["a0: &a0 [x, x, x, x, x, x, x, x, x, x]".to_owned()];
        for level in 1..12 {
            let list = vec![format!("*a{}", level - 1); 10].join(", ");
            laughs.push(format!("a{level}: &a{level} [{list}]"));
        }
        let deep_blocks: Vec<String> = (0..200).map(|depth| format!("{}a:", " ".repeat(depth))).collect();
        for (what, text) in [
            ("billion laughs", laughs.join("\n")),
            ("deep flow", "[".repeat(100_000)),
            ("deep maps", "{a: ".repeat(100_000)),
            ("deep blocks", deep_blocks.join("\n")),
            ("duplicate key", "a: 1\na: 2\n".to_owned()),
            ("two documents", "a: 1\n---\nb: 2\n".to_owned()),
            ("not a number", "a: .nan\n".to_owned()),
            ("unclosed", "a: [1, 2\n".to_owned()),
        ] {
            let error = parse(&text).expect_err(what);
            assert!(!error.message.is_empty() && !error.message.contains('\n'), "{what}: {error:?}");
        }
    }

    #[test]
    fn reasons_are_about_the_text_and_not_about_the_parser() {
        let error = parse("a: 1\na: 2\n").unwrap_err();
        assert_eq!((error.message.as_str(), error.offset), ("duplicate mapping key: a", Some(5)));
    }

    #[test]
    fn places_are_byte_ranges_of_values() {
        let text = "name: é-module\nlist:\n  - a\n  - {k: long word}\n";
        let spans = spans(text);
        let shown = |at: &str| text.get(spans.get(at).unwrap().clone()).unwrap();
        assert_eq!(shown("/name"), "é-module");
        assert_eq!(shown("/list/0"), "a");
        assert_eq!(shown("/list/1/k"), "long word");
    }

    #[test]
    fn a_missing_value_is_at_its_nearest_parent_and_long_names_are_no_matter() {
        let name = "n".repeat(10_000);
        let text = format!("list: [a, b]\n? {name}\n: {{k: {{v: 1}}}}\n");
        let spans = spans(&text);
        let shown = |at: &str| spans.nearest(at).map(|(span, exact)| (&text[span.clone()], exact));
        assert_eq!(shown(&format!("/{name}/k/v")), Some(("1", true)));
        assert_eq!(shown("/list/1/x/y"), Some(("b", false)));
        assert_eq!(shown("list"), None);
        assert!(spans.get("/list/2").is_none());
        assert!(spans.nearest("/list/2").is_some());
        assert!(super::spans("a: [").nearest("").is_none());
    }

    #[test]
    fn reasons_do_not_repeat_what_they_are_about() {
        for text in
            [format!("a: {}\n", "9".repeat(90_000)), format!("? {0}\n: 1\n? {0}\n: 2\n", "k".repeat(90_000))]
        {
            let message = parse(&text).map_or_else(|error| error.message, |value| value.to_string());
            assert!(message.chars().count() < 300, "{}", message.len());
        }
        assert!(!parse("\"\\e[2J\": 1\n\"\\e[2J\": 2\n").unwrap_err().message.contains('\u{1b}'));
    }
}
