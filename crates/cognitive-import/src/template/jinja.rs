//! Finds the marks of Jinja, as used by Prompty, BAML and `TensorZero`: `{{ value }}`, `{% statement %}`,
//! `{# comment #}`.

use cognitive_contract::Failure;

use super::{MarkList, TemplateMark, TemplateTag, find_outside_quotes};

/// Finds the marks. Line numbers start at `first_line`.
pub(crate) fn marks(text: &str, file: &str, first_line: usize) -> Result<Vec<TemplateMark>, Failure> {
    let mut list = MarkList::new(text, file, first_line);
    let mut at = 0;
    while let Some(start) = next_tag(text, at) {
        list.text(at, start)?;
        let rest = text.get(start..).unwrap_or_default();
        at = if rest.starts_with("{#") { comment(&mut list, start)? } else { tag(&mut list, start)? };
    }
    list.text(at, text.len())?;
    Ok(list.marks)
}

fn next_tag(text: &str, from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    let opens = |at: &usize| rest.get(at + 1..).is_some_and(|behind| behind.starts_with(['{', '%', '#']));
    rest.match_indices('{').map(|(at, _)| at).find(opens).map(|offset| from + offset)
}

fn comment(list: &mut MarkList<'_>, start: usize) -> Result<usize, Failure> {
    let Some(end) = list.text.get(start..).and_then(|rest| rest.find("#}")) else {
        return Err(list.endless(start));
    };
    let end = start + end + 2;
    list.push(TemplateTag::Comment, start, end)?;
    Ok(end)
}

fn tag(list: &mut MarkList<'_>, start: usize) -> Result<usize, Failure> {
    let is_value = list.text.get(start..).is_some_and(|rest| rest.starts_with("{{"));
    let close = if is_value { "}}" } else { "%}" };
    let Some(close_at) = find_outside_quotes(list.text, start + 2, close) else {
        return Err(list.endless(start));
    };
    let inner = list.text.get(start + 2..close_at).unwrap_or_default();
    let mut end = close_at + 2;
    if inner.starts_with('-') {
        list.trim_last();
    }
    let trims_next = inner.ends_with('-');
    let inner = inner.trim_start_matches(['-', '+']).trim_end_matches(['-', '+']).trim();
    if is_value {
        list.push(value(inner), start, end)?;
    } else if inner == "raw" {
        // Everything up to `endraw` is plain text.
        let rest = list.text.get(end..).unwrap_or_default();
        let Some(stop) =
            ["{% endraw", "{%- endraw", "{%endraw"].iter().filter_map(|word| rest.find(word)).min()
        else {
            return Err(list.endless(start));
        };
        list.text(end, end + stop)?;
        end = rest
            .get(stop..)
            .and_then(|rest| rest.find("%}"))
            .map_or(list.text.len(), |at| end + stop + at + 2);
    } else {
        list.push(statement(inner), start, end)?;
    }
    list.trims_next = trims_next;
    Ok(end)
}

/// A value, or a BAML call in the place of one.
fn value(inner: &str) -> TemplateTag {
    let role = ["_.role(", "_.chat("].iter().find_map(|call| inner.strip_prefix(call));
    if let Some(arguments) = role {
        let role = arguments.split(['"', '\'']).nth(1).unwrap_or_default();
        return TemplateTag::Role(role.to_owned());
    }
    if inner == "ctx.output_format" || inner.starts_with("ctx.output_format(") {
        return TemplateTag::OutputFormat;
    }
    TemplateTag::Value(inner.to_owned())
}

fn statement(inner: &str) -> TemplateTag {
    let (word, rest) = inner.split_once(char::is_whitespace).unwrap_or((inner, ""));
    let rest = rest.trim();
    match word {
        "if" => TemplateTag::If(rest.to_owned()),
        "elif" => TemplateTag::ElseIf(rest.to_owned()),
        "else" => TemplateTag::Else,
        "endif" | "endfor" => TemplateTag::End,
        "for" => match rest.split_once(" in ") {
            Some((item, list)) => {
                TemplateTag::Each { item: Some(item.trim().to_owned()), list: list.trim().to_owned() }
            }
            None => TemplateTag::Statement,
        },
        "include" | "import" | "from" | "extends" => TemplateTag::Include(rest.to_owned()),
        _ => TemplateTag::Statement,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(text: &str) -> Vec<TemplateTag> {
        marks(text, "t", 1).unwrap().into_iter().map(|mark| mark.tag).collect()
    }

    #[test]
    fn every_kind_of_mark_is_found() {
        use TemplateTag::{
            Comment, Each, Else, End, If, Include, OutputFormat, Role, Statement, Text, Value,
        };
        let text = |text: &str| Text(text.to_owned());
        assert_eq!(
            tags("a {{ x.y }}{# n #}{% if x %}b{% else %}c{% endif %}{%- for i in l -%} {{i}} {% endfor %}"),
            [
                text("a "),
                Value("x.y".to_owned()),
                Comment,
                If("x".to_owned()),
                text("b"),
                Else,
                text("c"),
                End,
                Each { item: Some("i".to_owned()), list: "l".to_owned() },
                Value("i".to_owned()),
                text(" "),
                End,
            ]
        );
        assert_eq!(
            tags(
                "{{ _.role('user') }}{{ ctx.output_format(prefix=\"}}\") }}{% set a = 1 %}{% include 'x' %}"
            ),
            [Role("user".to_owned()), OutputFormat, Statement, Include("'x'".to_owned())]
        );
        assert_eq!(tags("{% raw %}{{ x }}{% endraw %}!"), [text("{{ x }}"), text("!")]);
    }

    #[test]
    fn a_tag_without_an_end_is_refused_with_its_line() {
        for open in ["{{ x", "{% if x", "{# x", "{% raw %} {{ x }}"] {
            let refused = marks(&format!("one\ntwo {open}"), "f.baml", 10).unwrap_err();
            assert_eq!(refused.message(), "f.baml:11 begins an unterminated tag");
        }
    }
}
