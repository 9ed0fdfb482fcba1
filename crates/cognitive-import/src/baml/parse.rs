//! Parses BAML declarations: classes, enums, functions, tests and aliases as data; clients, generators and templates
//! only by name.

use std::collections::BTreeMap;

use cognitive_contract::Failure;
use serde_json::{Number, Value};

use super::cursor::BamlCursor;

/// The maximum nesting of types. Deeper ones would overflow the stack of the parser.
const MAX_DEPTH: usize = 40;

/// A type as written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum BamlType {
    /// A class, an enum, an alias or a built-in type.
    Named(String),
    /// One literal value.
    Literal(Value),
    /// `T[]`
    List(Box<BamlType>),
    /// `T?`
    Optional(Box<BamlType>),
    /// `A | B`
    Union(Vec<BamlType>),
    /// `map<K, V>`
    Map(Box<BamlType>, Box<BamlType>),
    /// A type with checks, which are expressions.
    Checked(Box<BamlType>, String),
}

/// `@name("argument")`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BamlAttribute {
    pub(super) name: String,
    /// The first string among the arguments.
    pub(super) text: Option<String>,
    /// The complete attribute, as written.
    pub(super) written: String,
}

/// A field of a class, or a value of an enum, which has no type.
#[derive(Debug, Clone)]
pub(super) struct BamlField {
    pub(super) name: String,
    pub(super) kind: Option<BamlType>,
    pub(super) attributes: Vec<BamlAttribute>,
}

/// A class or an enum.
#[derive(Debug, Clone)]
pub(super) struct BamlBlock {
    pub(super) is_enum: bool,
    pub(super) fields: Vec<BamlField>,
    pub(super) attributes: Vec<BamlAttribute>,
    pub(super) file: String,
}

/// A function.
#[derive(Debug, Clone)]
pub(super) struct BamlFunction {
    pub(super) name: String,
    pub(super) arguments: Vec<(String, BamlType)>,
    pub(super) answer: BamlType,
    pub(super) client: Option<String>,
    pub(super) prompt: String,
    pub(super) prompt_line: usize,
    pub(super) file: String,
    /// The text of the comment above the function.
    pub(super) note: Option<String>,
}

/// A test.
#[derive(Debug, Clone)]
pub(super) struct BamlTest {
    pub(super) name: String,
    pub(super) functions: Vec<String>,
    pub(super) arguments: Option<Value>,
    pub(super) has_checks: bool,
    pub(super) file: String,
}

/// All declarations.
#[derive(Debug, Default)]
pub(super) struct BamlFile {
    pub(super) blocks: BTreeMap<String, BamlBlock>,
    pub(super) aliases: BTreeMap<String, BamlType>,
    pub(super) functions: Vec<BamlFunction>,
    pub(super) tests: Vec<BamlTest>,
    /// The kind, name and location of declarations that are left out.
    pub(super) others: Vec<(String, String, String)>,
    pub(super) comments: usize,
}

/// Parses a file, and adds its declarations.
pub(super) fn parse(text: &str, file: &str, into: &mut BamlFile) -> Result<(), Failure> {
    let mut cursor = BamlCursor::new(text, file);
    loop {
        let word = cursor.word();
        let note = cursor.note.clone();
        let Some(word) = word else {
            if cursor.is_done() {
                into.comments += cursor.comments;
                return Ok(());
            }
            return Err(cursor.error("expected a declaration such as `class` or `function`"));
        };
        match word {
            "class" | "enum" => block(&mut cursor, word == "enum", file, into)?,
            "function" => {
                let function = function(&mut cursor, file, note)?;
                into.functions.push(function);
            }
            "test" => into.tests.push(test(&mut cursor, file)?),
            "type" => {
                let name = cursor.needs_word("a name")?.to_owned();
                cursor.needs("=")?;
                let kind = kind(&mut cursor, 0)?;
                attributes(&mut cursor)?;
                into.aliases.insert(name, kind);
            }
            "client" | "generator" | "retry_policy" | "template_string" | "string_template" => {
                skip_block(&mut cursor, word, into)?;
            }
            _ => return Err(cursor.error(&format!("unsupported declaration: `{word}`"))),
        }
    }
}

fn skip_block(cursor: &mut BamlCursor<'_>, word: &str, into: &mut BamlFile) -> Result<(), Failure> {
    if cursor.takes("<") {
        cursor.balanced_text('<', '>')?;
    }
    let place = cursor.place();
    let name = cursor.needs_word("a name")?.to_owned();
    if word.ends_with("_string") || word.ends_with("_template") {
        if cursor.takes("(") {
            cursor.balanced_text('(', ')')?;
        }
        cursor.takes("=");
        if cursor.text()?.is_none() {
            return Err(cursor.error("expected a text"));
        }
        into.others.push(("template_string".to_owned(), name, place));
    } else {
        cursor.needs("{")?;
        cursor.balanced_text('{', '}')?;
        into.others.push((word.to_owned(), name, place));
    }
    Ok(())
}

fn block(cursor: &mut BamlCursor<'_>, is_enum: bool, file: &str, into: &mut BamlFile) -> Result<(), Failure> {
    let name = cursor.needs_word("a name")?.to_owned();
    cursor.needs("{")?;
    let mut block = BamlBlock { is_enum, fields: Vec::new(), attributes: Vec::new(), file: file.to_owned() };
    while !cursor.takes("}") {
        if cursor.takes("@@") {
            block.attributes.push(attribute(cursor)?);
            continue;
        }
        let name = cursor.needs_word("a field, or `}`")?.to_owned();
        let mut own_kind = if is_enum { None } else { Some(kind(cursor, 0)?) };
        let mut all = attributes(cursor)?;
        // Attributes may occur between the alternatives of a type.
        while own_kind.is_some() && cursor.takes("|") {
            let more = kind(cursor, 0)?;
            own_kind = own_kind.map(|first| BamlType::Union(vec![first, more]));
            all.extend(attributes(cursor)?);
        }
        cursor.takes(",");
        block.fields.push(BamlField { name, kind: own_kind, attributes: all });
    }
    if into.blocks.insert(name.clone(), block).is_some() {
        return Err(cursor.error(&format!("duplicate declaration: `{name}`")));
    }
    Ok(())
}

fn attribute(cursor: &mut BamlCursor<'_>) -> Result<BamlAttribute, Failure> {
    let name = cursor.needs_word("the name of an attribute")?.to_owned();
    let arguments = if cursor.takes("(") { cursor.balanced_text('(', ')')? } else { "" };
    let text = BamlCursor::new(arguments, "").text().ok().flatten().map(|(text, _)| text);
    let written =
        format!("@{name}{}", if arguments.is_empty() { String::new() } else { format!("({arguments})") });
    Ok(BamlAttribute { name, text, written })
}

fn attributes(cursor: &mut BamlCursor<'_>) -> Result<Vec<BamlAttribute>, Failure> {
    let mut found = Vec::new();
    while cursor.starts_with("@") && !cursor.starts_with("@@") {
        cursor.needs("@")?;
        found.push(attribute(cursor)?);
    }
    Ok(found)
}

/// A type with all its alternatives.
fn kind(cursor: &mut BamlCursor<'_>, depth: usize) -> Result<BamlType, Failure> {
    if depth > MAX_DEPTH {
        return Err(cursor.error("types are nested too deeply"));
    }
    let mut all = vec![single(cursor, depth)?];
    while cursor.takes("|") {
        all.push(single(cursor, depth)?);
    }
    let is_one = all.len() == 1;
    Ok(match all.pop() {
        Some(only) if is_one => only,
        last => BamlType::Union(all.into_iter().chain(last).collect()),
    })
}

fn single(cursor: &mut BamlCursor<'_>, depth: usize) -> Result<BamlType, Failure> {
    let mut kind = base(cursor, depth)?;
    loop {
        if cursor.takes("[]") {
            kind = BamlType::List(Box::new(kind));
        } else if cursor.takes("?") {
            kind = BamlType::Optional(Box::new(kind));
        } else {
            return Ok(kind);
        }
    }
}

fn base(cursor: &mut BamlCursor<'_>, depth: usize) -> Result<BamlType, Failure> {
    if let Some((text, _)) = cursor.text()? {
        return Ok(BamlType::Literal(Value::from(text)));
    }
    if cursor.takes("(") {
        let mut inner = kind(cursor, depth + 1)?;
        for check in attributes(cursor)? {
            inner = BamlType::Checked(Box::new(inner), check.written);
        }
        if cursor.starts_with(",") {
            return Err(cursor.error("unsupported type: a tuple"));
        }
        cursor.needs(")")?;
        return Ok(inner);
    }
    if let Some(word) = cursor.word() {
        if word == "map" && cursor.takes("<") {
            let key = kind(cursor, depth + 1)?;
            cursor.needs(",")?;
            let value = kind(cursor, depth + 1)?;
            cursor.needs(">")?;
            return Ok(BamlType::Map(Box::new(key), Box::new(value)));
        }
        return Ok(match word {
            "true" => BamlType::Literal(Value::Bool(true)),
            "false" => BamlType::Literal(Value::Bool(false)),
            _ => BamlType::Named(word.to_owned()),
        });
    }
    number(cursor).map(BamlType::Literal).ok_or_else(|| cursor.error("expected a type"))
}

fn number(cursor: &mut BamlCursor<'_>) -> Option<Value> {
    let mut digits = String::new();
    while let Some(next) = "-.0123456789".chars().find(|letter| {
        let mut buffer = [0; 4];
        cursor.takes_at_once(letter.encode_utf8(&mut buffer))
    }) {
        digits.push(next);
    }
    digits
        .parse::<i64>()
        .map(Value::from)
        .ok()
        .or_else(|| digits.parse::<f64>().ok().and_then(Number::from_f64).map(Value::Number))
}

fn function(cursor: &mut BamlCursor<'_>, file: &str, note: String) -> Result<BamlFunction, Failure> {
    let name = cursor.needs_word("the name of a function")?.to_owned();
    cursor.needs("(")?;
    let mut arguments = Vec::new();
    while !cursor.takes(")") {
        let name = cursor.needs_word("the name of an argument")?.to_owned();
        cursor.needs(":")?;
        arguments.push((name, checked_type(cursor)?));
        cursor.takes(",");
    }
    cursor.needs("->")?;
    let answer = checked_type(cursor)?;
    cursor.needs("{")?;
    let mut function = BamlFunction {
        name,
        arguments,
        answer,
        client: None,
        prompt: String::new(),
        prompt_line: 0,
        file: file.to_owned(),
        note: Some(note).filter(|note| !note.is_empty()),
    };
    while !cursor.takes("}") {
        match cursor.needs_word("`client` or `prompt`")? {
            "client" => function.client = Some(cursor.client()?),
            "prompt" => match cursor.text()? {
                Some((text, line)) => (function.prompt, function.prompt_line) = (text, line),
                None => return Err(cursor.error("expected the text of the prompt")),
            },
            word => {
                return Err(
                    cursor.error(&format!("a function has only `client` and `prompt`, found: `{word}`"))
                );
            }
        }
    }
    if function.prompt_line == 0 {
        return Err(cursor.error(&format!("the function `{}` has no prompt", function.name)));
    }
    Ok(function)
}

fn checked_type(cursor: &mut BamlCursor<'_>) -> Result<BamlType, Failure> {
    let mut kind = kind(cursor, 0)?;
    for check in attributes(cursor)? {
        kind = BamlType::Checked(Box::new(kind), check.written);
    }
    Ok(kind)
}

fn test(cursor: &mut BamlCursor<'_>, file: &str) -> Result<BamlTest, Failure> {
    let name = cursor.needs_word("the name of a test")?.to_owned();
    cursor.needs("{")?;
    let mut test =
        BamlTest { name, functions: Vec::new(), arguments: None, has_checks: false, file: file.to_owned() };
    while !cursor.takes("}") {
        if cursor.takes("@@") {
            attribute(cursor)?;
            test.has_checks = true;
            continue;
        }
        match cursor.needs_word("`functions` or `args`")? {
            "functions" => {
                let names = cursor.value(0)?;
                test.functions = names
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect();
            }
            "args" => {
                cursor.needs("{")?;
                test.arguments = Some(Value::Object(cursor.object(0)?));
            }
            _ => {
                cursor.needs("{")?;
                cursor.balanced_text('{', '}')?;
            }
        }
    }
    Ok(test)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<BamlFile, String> {
        let mut file = BamlFile::default();
        parse(text, "f.baml", &mut file).map_err(|failure| failure.message().to_owned())?;
        Ok(file)
    }

    #[test]
    fn declarations_are_read() {
        let file = parsed(
            "// note\nclass A {\n a string? @alias(\"x\") @description(#\"d\"#)\n b (int | \"x\" | 3)[] // c\n c map<string, A>\n @@dynamic\n}\n\
             enum E {\n X @skip\n Y\n}\ntype T = A | E\nclient<llm> C { provider openai\n options { model \"}\" } }\n\
             template_string P(a: int) #\" {{ a }} \"#\n/// Sorts.\nfunction F(a: A, e: E?) -> A[] @check(x, {{ this|length > 1 }}) {\n client C\n prompt #\"hi\"#\n}\n\
             test t1 { functions [F]\n args { a { a \"q\" } }\n @@assert({{ this }}) }\n",
        )
        .unwrap();
        assert_eq!(file.blocks["A"].fields.len(), 3);
        assert_eq!(file.blocks["A"].fields[0].attributes[1].text.as_deref(), Some("d"));
        let BamlType::List(inner) = file.blocks["A"].fields[1].kind.as_ref().unwrap() else {
            panic!("a list")
        };
        assert!(matches!(&**inner, BamlType::Union(all) if all.len() == 3));
        assert_eq!(file.blocks["A"].attributes[0].name, "dynamic");
        let function = &file.functions[0];
        assert_eq!((function.prompt.as_str(), function.note.as_deref()), ("hi", Some("Sorts.")));
        assert!(matches!(function.answer, BamlType::Checked(..)));
        assert!(file.tests[0].has_checks && file.tests[0].functions == ["F"]);
        assert_eq!(file.others.len(), 2);
        assert_eq!(file.comments, 3);
        let file = parsed("class A {\n a int @check(x, {{ this > 1 }}) | string\n b bool\n}").unwrap();
        assert!(
            matches!(&file.blocks["A"].fields[0].kind, Some(BamlType::Union(_)))
                && file.blocks["A"].fields.len() == 2
        );
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        for (text, reason) in [
            ("class A {\n a\n}", "f.baml:3: expected a type"),
            ("klass A {}", "f.baml:1: unsupported declaration: `klass`"),
            ("class A {}\nclass A {}", "f.baml:2: duplicate declaration: `A`"),
            ("function F() -> int { client C }", "f.baml:1: the function `F` has no prompt"),
            (
                "function F() -> int { default_impl x }",
                "f.baml:1: a function has only `client` and `prompt`, found: `default_impl`",
            ),
            ("class A { t (int, string) }", "f.baml:1: unsupported type: a tuple"),
            ("%", "f.baml:1: expected a declaration such as `class` or `function`"),
        ] {
            assert_eq!(parsed(text).unwrap_err(), reason);
        }
        assert!(
            parsed(&format!("type A = {}", "(".repeat(90_000))).unwrap_err().ends_with("nested too deeply")
        );
    }
}
