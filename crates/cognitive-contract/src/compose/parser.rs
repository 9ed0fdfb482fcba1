//! Parses the text of a condition to a tree. Precedence: `!`, then comparison, then `&&`, then `||`. (COMP-040)
//! Rejects conditions that nest deeper than [`MAX_DEPTH`] or are too long, so that neither parsing nor evaluation can
//! overflow the stack.

use serde_json::{Number, Value};

use super::cursor::{Cursor, Slip, is_name, within_limit};
use super::expr::{Comparison, ExprKind, ExprNode};
use super::path::Path;

/// The maximum nesting of parentheses and `!`. Deeper ones would overflow the stack of the parser.
pub const MAX_DEPTH: usize = 64;

const VALUE: &str = "a value: a path such as `$.meta.risk`, a number, a text between quotes, `true`, `false`, `null` or `exists($.path)`";

/// Longest first: `<=` must not be parsed as `<`.
const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::Unequal),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

/// Parses a whole condition. `names` are members of the root that need no `$.`. If any are given, lists are also
/// supported: `risk in [medium, high]`.
pub(super) fn parse(text: &str, names: &[&str]) -> Result<ExprNode, Slip> {
    within_limit(text)?;
    let mut parser = Parser { cursor: Cursor::new(text, 0), depth: 0, names };
    let tree = parser.any()?;
    match parser.cursor.peek() {
        None => Ok(tree),
        Some(')') => Err(parser.cursor.expected_error("an opening `(` before this one")),
        Some(_) => {
            Err(parser.cursor.expected_error("`==`, `!=`, `<`, `<=`, `>`, `>=`, `&&`, `||` or the end"))
        }
    }
}

/// The parser state. After every method the cursor is at the next token, not at whitespace.
struct Parser<'a> {
    cursor: Cursor<'a>,
    depth: usize,
    /// See [`parse`].
    names: &'a [&'a str],
}

impl Parser<'_> {
    fn any(&mut self) -> Result<ExprNode, Slip> {
        self.chain("||", Self::all, ExprKind::Any)
    }

    fn all(&mut self) -> Result<ExprNode, Slip> {
        self.chain("&&", Self::comparison, ExprKind::All)
    }

    /// Parses one part, or several with `operator` between them.
    fn chain(
        &mut self,
        operator: &str,
        part: fn(&mut Self) -> Result<ExprNode, Slip>,
        join: fn(Vec<ExprNode>) -> ExprKind,
    ) -> Result<ExprNode, Slip> {
        let first = part(self)?;
        let start = first.span.start;
        let mut parts = vec![first];
        while self.skip_token(operator) {
            parts.push(part(self)?);
        }
        let end = parts.last().map_or(start, |last| last.span.end);
        match <[ExprNode; 1]>::try_from(parts) {
            Ok([only]) => Ok(only),
            Err(parts) => Ok(ExprNode { kind: join(parts), span: start..end }),
        }
    }

    fn comparison(&mut self) -> Result<ExprNode, Slip> {
        let left = self.unary()?;
        if self.skip_in() {
            return self.one_of(left);
        }
        let Some(comparison) = self.operator()? else { return Ok(left) };
        let right = self.unary()?;
        let after = self.cursor.at();
        if self.operator()?.is_some() {
            let message = "expected `&&` or `||`: comparisons cannot be chained";
            return Err(Slip::new(after..self.cursor.at(), message));
        }
        let span = left.span.start..right.span.end;
        Ok(ExprNode { kind: ExprKind::Compare(Box::new(left), comparison, Box::new(right)), span })
    }

    /// Skips the word `in`, if lists are supported.
    fn skip_in(&mut self) -> bool {
        let behind = self.cursor.remainder().strip_prefix("in").filter(|_| !self.names.is_empty());
        behind.is_some_and(|rest| !rest.starts_with(is_name)) && self.skip_token("in")
    }

    /// Parses the rest of `value in [a, b]` to a chain of equalities.
    fn one_of(&mut self, value: ExprNode) -> Result<ExprNode, Slip> {
        if !self.skip_token("[") {
            return Err(self.cursor.expected_error("a list such as `[medium, high]` after `in`"));
        }
        let mut choices = Vec::new();
        loop {
            let start = self.cursor.at();
            let literal = self.parse_element()?;
            let item = ExprNode { kind: ExprKind::Literal(literal), span: start..self.cursor.at() };
            let span = value.span.start..item.span.end;
            let equal = ExprKind::Compare(Box::new(value.clone()), Comparison::Equal, Box::new(item));
            choices.push(ExprNode { kind: equal, span });
            self.cursor.skip_space();
            if !self.skip_token(",") {
                break;
            }
        }
        let end = self.cursor.at();
        if !self.skip_token("]") {
            return Err(self.cursor.expected_error("`,` or a closing `]`"));
        }
        Ok(ExprNode { kind: ExprKind::Any(choices), span: value.span.start..end + 1 })
    }

    /// Parses a list element. A bare word is a string.
    fn parse_element(&mut self) -> Result<Value, Slip> {
        match self.cursor.peek() {
            Some('\'' | '"') => self.cursor.parse_quoted().map(Value::String),
            Some('-' | '0'..='9') => self.number().map(Value::Number),
            Some(letter) if is_name(letter) => match self.cursor.take_while(is_name) {
                "true" => Ok(Value::Bool(true)),
                "false" => Ok(Value::Bool(false)),
                "null" => Ok(Value::Null),
                word => Ok(Value::String(word.to_owned())),
            },
            _ => Err(self
                .cursor
                .expected_error("a value of the list: a word, a number or a text between quotes")),
        }
    }

    fn operator(&mut self) -> Result<Option<Comparison>, Slip> {
        let found = COMPARISONS.iter().find(|(token, _)| self.skip_token(token));
        if found.is_none() && self.cursor.peek() == Some('=') {
            return Err(self.cursor.expected_error("`==`"));
        }
        Ok(found.map(|(_, comparison)| *comparison))
    }

    fn unary(&mut self) -> Result<ExprNode, Slip> {
        self.cursor.skip_space();
        let start = self.cursor.at();
        if !self.skip_token("!") {
            return self.primary();
        }
        let inner = self.deeper(Self::unary)?;
        let span = start..inner.span.end;
        Ok(ExprNode { kind: ExprKind::Not(Box::new(inner)), span })
    }

    fn primary(&mut self) -> Result<ExprNode, Slip> {
        let start = self.cursor.at();
        let kind = match self.cursor.peek() {
            Some('(') => return self.group(start),
            Some('$') => ExprKind::Path(Path::read(&mut self.cursor)?),
            Some('\'' | '"') => ExprKind::Literal(Value::String(self.cursor.parse_quoted()?)),
            Some('-' | '0'..='9') => ExprKind::Literal(Value::Number(self.number()?)),
            Some(letter) if letter.is_alphabetic() || letter == '_' => self.word()?,
            _ => return Err(self.cursor.expected_error(VALUE)),
        };
        let node = ExprNode { kind, span: start..self.cursor.at() };
        self.cursor.skip_space();
        Ok(node)
    }

    fn group(&mut self, start: usize) -> Result<ExprNode, Slip> {
        self.cursor.bump();
        let inner = self.deeper(Self::any)?;
        let end = self.cursor.at();
        if !self.skip_token(")") {
            return Err(self.cursor.expected_error("a closing `)`"));
        }
        Ok(ExprNode { kind: inner.kind, span: start..end + 1 })
    }

    fn number(&mut self) -> Result<Number, Slip> {
        let start = self.cursor.at();
        // A sign belongs to the number at its start and in its exponent.
        let mut last = 'e';
        let digits = self.cursor.remainder().find(|letter: char| {
            let sign = matches!(letter, '+' | '-') && matches!(last, 'e' | 'E');
            let part = sign || letter.is_alphanumeric() || matches!(letter, '.' | '_');
            last = letter;
            !part
        });
        let length = digits.unwrap_or(self.cursor.remainder().len());
        let text = self.cursor.remainder().get(..length).unwrap_or_default();
        let number = serde_json::from_str(text);
        self.cursor = self.cursor.clone().advance_by(length);
        number.map_err(|_| Slip::new(start..self.cursor.at(), "expected a number such as `1`, `-2` or `0.5`"))
    }

    fn word(&mut self) -> Result<ExprKind, Slip> {
        let start = self.cursor.at();
        let word = self.cursor.take_while(|letter| letter.is_alphanumeric() || letter == '_');
        match word {
            "true" => Ok(ExprKind::Literal(Value::Bool(true))),
            "false" => Ok(ExprKind::Literal(Value::Bool(false))),
            "null" => Ok(ExprKind::Literal(Value::Null)),
            "exists" => self.exists(),
            name if self.names.contains(&name) => Ok(ExprKind::Path(Path::member(name))),
            _ if !self.names.is_empty() => {
                let message = format!(
                    "expected a value: one of `{}`, a number or a text between quotes",
                    self.names.join("`, `")
                );
                Err(Slip::new(start..self.cursor.at(), message))
            }
            _ => Err(Slip::new(start..self.cursor.at(), format!("expected {VALUE}"))),
        }
    }

    fn exists(&mut self) -> Result<ExprKind, Slip> {
        self.cursor.skip_space();
        if !self.skip_token("(") {
            return Err(self.cursor.expected_error("`(` and a path after `exists`"));
        }
        let path = Path::read(&mut self.cursor)?;
        self.cursor.skip_space();
        // Not `self.eat`: the span of this node ends with the parenthesis, not after the following whitespace.
        if !self.cursor.skip_token(")") {
            return Err(self.cursor.expected_error("a closing `)` after the path"));
        }
        Ok(ExprKind::Exists(path))
    }

    fn deeper(&mut self, part: fn(&mut Self) -> Result<ExprNode, Slip>) -> Result<ExprNode, Slip> {
        if self.depth == MAX_DEPTH {
            return Err(self.cursor.expected_error(&format!("at most {MAX_DEPTH} levels of `(` and `!`")));
        }
        self.depth += 1;
        let node = part(self);
        self.depth -= 1;
        node
    }

    /// Skips a token and the whitespace after it.
    fn skip_token(&mut self, token: &str) -> bool {
        let found = self.cursor.skip_token(token);
        if found {
            self.cursor.skip_space();
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ExprNode, Slip> {
        super::parse(text, &[])
    }

    fn slip(text: &str) -> (usize, String) {
        let slip = parse(text).expect_err(text);
        assert!(text.is_char_boundary(slip.span.start) && text.is_char_boundary(slip.span.end), "{text}");
        (slip.span.start, slip.message)
    }

    #[test]
    fn comp_042_a_wrong_condition_is_refused_with_its_place() {
        for (text, start) in [
            ("", 0),
            ("   ", 3),
            ("$.a >", 5),
            ("&& $.a", 0),
            ("$.a = 1", 4),
            ("$.a === 1", 6),
            ("$.a & $.b", 4),
            ("$.a | $.b", 4),
            ("$.a && ", 7),
            ("($.a", 4),
            ("$.a)", 3),
            ("()", 1),
            ("!", 1),
            ("1 < 2 < 3", 6),
            ("1 + 1", 2),
            ("$.a * 2 > 1", 4),
            ("exists()", 7),
            ("exists", 6),
            ("exists 1", 7),
            ("exists('a')", 7),
            ("exists($.a, $.b)", 10),
            ("__import__('os')", 0),
            ("$.a.matches('x')", 11),
            ("contains($.a, 'x')", 0),
            ("True", 0),
            ("undefined", 0),
            ("'open", 0),
            ("01", 0),
            (".5", 0),
            ("1.", 0),
            ("1e999", 0),
            ("0x10", 0),
            ("-$.a", 0),
            ("--1", 0),
            ("$.a == 'x' 'y'", 11),
            ("$.é ≥ 1", 5),
            ("[1] == [1]", 0),
            ("// x", 0),
        ] {
            assert_eq!(slip(text).0, start, "{text}");
        }
        assert_eq!(slip("$.a = 1").1, "expected `==`");
        assert!(slip("1 < 2 < 3").1.contains("cannot be chained"));
    }

    #[test]
    fn depth_is_bounded_and_length_is_not_depth() {
        let nested = |depth: usize| format!("{}true{}", "(".repeat(depth), ")".repeat(depth));
        assert!(parse(&nested(MAX_DEPTH)).is_ok());
        assert!(parse(&nested(MAX_DEPTH + 1)).is_err());
        assert!(parse(&format!("{}true", "!".repeat(MAX_DEPTH))).is_ok());
        assert!(slip(&format!("{}true", "!".repeat(MAX_DEPTH + 1))).1.contains("64 levels"));
        assert!(parse(&"(".repeat(1_000)).is_err());
        assert!(parse(&format!("true{}", "||true".repeat(166))).is_ok());
        assert!(slip(&format!("true{}", " && true".repeat(200))).1.contains("1000 characters"));
    }

    #[test]
    fn names_and_lists_are_there_only_where_names_are_given() {
        for text in ["risk == 'high'", "$.risk in ['high']", "'a' in ['a']"] {
            assert!(parse(text).is_err(), "{text}");
        }
        let named = |text: &str| super::parse(text, &["risk", "confidence"]);
        for text in [
            "risk in [high]",
            "risk in[ 'high' ,medium,1,true ]&&confidence<0.5",
            "!(risk in [low])",
            "exists($.x)",
        ] {
            assert!(named(text).is_ok(), "{text}: {:?}", named(text));
        }
        for (text, start) in [
            ("risk in", 7),
            ("risk in []", 9),
            ("risk in [a", 10),
            ("risk in [a b]", 11),
            ("rist == 1", 0),
            ("risk inside", 5),
        ] {
            assert_eq!(named(text).expect_err(text).span.start, start, "{text}");
        }
    }

    #[test]
    fn spans_cover_what_they_name() {
        let text = " ( $.a == 1 ) && !exists( $.b ) ";
        let ExprNode { kind: ExprKind::All(parts), span } = parse(text).unwrap() else { panic!("no `&&`") };
        assert_eq!(&text[span], "( $.a == 1 ) && !exists( $.b )");
        let shown: Vec<&str> = parts.iter().map(|part| &text[part.span.clone()]).collect();
        assert_eq!(shown, ["( $.a == 1 )", "!exists( $.b )"]);
    }
}
