//! Finds the marks of Handlebars, for dotprompt and Prompty, and of Mustache, for Prompty. All tags use double braces.

use cognitive_contract::Failure;

use super::{MarkList, TemplateMark, TemplateTag, find_outside_quotes};
use crate::source::{quote, refuse};

/// The template engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BraceEngine {
    /// Has helpers such as `#if` and `role`.
    Handlebars,
    /// Has only sections.
    Mustache,
}

/// Finds the marks. Line numbers start at `first_line`.
pub(crate) fn marks(
    text: &str,
    file: &str,
    first_line: usize,
    engine: BraceEngine,
) -> Result<Vec<TemplateMark>, Failure> {
    let mut list = MarkList::new(text, file, first_line);
    let mut at = 0;
    while let Some(offset) = text.get(at..).and_then(|rest| rest.find("{{")) {
        let start = at + offset;
        if let Some(before) = start.checked_sub(1).filter(|before| text.get(*before..start) == Some("\\")) {
            // `\{{` is a literal `{{`.
            list.text(at, before)?;
            list.text(start, start + 2)?;
            at = start + 2;
            continue;
        }
        list.text(at, start)?;
        at = tag(&mut list, start, engine)?;
    }
    list.text(at, text.len())?;
    Ok(list.marks)
}

fn tag(list: &mut MarkList<'_>, start: usize, engine: BraceEngine) -> Result<usize, Failure> {
    let rest = list.text.get(start..).unwrap_or_default();
    let (open, close) = if rest.starts_with("{{!--") || rest.starts_with("{{~!--") {
        (2, "--}}")
    } else if rest.starts_with("{{{") {
        (3, "}}}")
    } else {
        (2, "}}")
    };
    let is_note = rest.get(2..).is_some_and(|inner| inner.trim_start_matches('~').starts_with('!'));
    let found = if is_note {
        rest.find(close).map(|offset| start + offset)
    } else {
        find_outside_quotes(list.text, start + open, close)
    };
    let Some(close_at) = found else { return Err(list.endless(start)) };
    let inner = list.text.get(start + open..close_at).unwrap_or_default();
    let end = close_at + close.len();
    if inner.starts_with('~') {
        list.trim_last();
    }
    let trims_next = inner.ends_with('~');
    let inner = inner.trim_matches('~').trim();
    if inner.starts_with('=') {
        let message = format!("the template of {} changes its delimiters", quote(list.file));
        return Err(refuse(message, "Use double braces"));
    }
    let tag = match engine {
        BraceEngine::Handlebars => handlebars(inner),
        BraceEngine::Mustache => mustache(inner),
    };
    list.push(tag, start, end)?;
    list.trims_next = trims_next;
    Ok(end)
}

fn mustache(inner: &str) -> TemplateTag {
    let rest = |mark: char| inner.strip_prefix(mark).map(|rest| rest.trim().to_owned());
    if inner.starts_with('!') {
        TemplateTag::Comment
    } else if let Some(name) = rest('#') {
        TemplateTag::Section(name)
    } else if let Some(name) = rest('^') {
        TemplateTag::Unless(name)
    } else if inner.starts_with('/') {
        TemplateTag::End
    } else if let Some(name) = rest('>') {
        TemplateTag::Include(name)
    } else {
        let name = rest('&').unwrap_or_else(|| inner.to_owned());
        TemplateTag::Value(if name == "." { "this".to_owned() } else { name })
    }
}

fn handlebars(inner: &str) -> TemplateTag {
    if inner.starts_with('!') {
        return TemplateTag::Comment;
    }
    if let Some(name) = inner.strip_prefix('>') {
        return TemplateTag::Include(name.trim().to_owned());
    }
    if let Some(closed) = inner.strip_prefix('/') {
        return match closed.trim() {
            "role" => TemplateTag::RoleEnd,
            // It needs no end tag, but many authors write one.
            "section" => TemplateTag::Statement,
            _ => TemplateTag::End,
        };
    }
    if let Some(block) = inner.strip_prefix('#') {
        return opening_tag(block.trim());
    }
    if let Some(name) = inner.strip_prefix('^') {
        let name = name.trim();
        return if name.is_empty() { TemplateTag::Else } else { TemplateTag::Unless(name.to_owned()) };
    }
    let (word, rest) = inner.split_once(char::is_whitespace).unwrap_or((inner, ""));
    let rest = rest.trim();
    match word {
        "else" if rest.is_empty() => TemplateTag::Else,
        "else" => TemplateTag::ElseIf(rest.strip_prefix("if").unwrap_or(rest).trim().to_owned()),
        "role" => TemplateTag::Role(unquote(rest).to_owned()),
        "history" => TemplateTag::History,
        "media" => TemplateTag::Media(argument(rest, "url").unwrap_or_default().to_owned()),
        "section" => TemplateTag::Statement,
        "json" if !rest.is_empty() => {
            TemplateTag::Value(rest.split_whitespace().next().unwrap_or_default().to_owned())
        }
        _ => TemplateTag::Value(inner.trim_start_matches('&').trim().to_owned()),
    }
}

fn opening_tag(block: &str) -> TemplateTag {
    let (word, rest) = block.split_once(char::is_whitespace).unwrap_or((block, ""));
    let rest = rest.trim();
    match word {
        "if" => TemplateTag::If(rest.to_owned()),
        "unless" => TemplateTag::Unless(rest.to_owned()),
        "with" => TemplateTag::With(rest.to_owned()),
        "role" => TemplateTag::Role(unquote(rest).to_owned()),
        "each" => {
            let (list, named) = rest.split_once(" as ").unwrap_or((rest, ""));
            let item = named.trim().trim_matches('|').split_whitespace().next().map(str::to_owned);
            TemplateTag::Each { item, list: list.trim().to_owned() }
        }
        // An unknown helper, or a partial with content. Its enclosed text is kept.
        _ => TemplateTag::Section(block.to_owned()),
    }
}

fn unquote(text: &str) -> &str {
    text.trim().trim_matches(['"', '\''])
}

/// The value of `name=` among the arguments.
fn argument<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;
    use TemplateTag::{
        Comment, Each, Else, ElseIf, End, If, Include, Media, Role, RoleEnd, Section, Text, Unless, Value,
        With,
    };

    fn tags(text: &str, engine: BraceEngine) -> Vec<TemplateTag> {
        marks(text, "t", 1, engine).unwrap().into_iter().map(|mark| mark.tag).collect()
    }

    fn owned(text: &str) -> String {
        text.to_owned()
    }

    #[test]
    fn handlebars_has_helpers() {
        let found = tags(
            "{{#if a}}{{b}}{{else if c}}{{{d}}}{{else}}{{/if}}{{#each l as |x|}}{{x}}{{/each}}{{#with w}}{{/with}}\
             {{#unless u}}{{/unless}}{{!-- }} --}}{{! n }}{{>p}}{{role \"system\"}}{{#role \"user\"}}{{/role}}\
             {{media url=photo}}{{json data indent=2}}\\{{x}}",
            BraceEngine::Handlebars,
        );
        let expected = vec![
            If(owned("a")),
            Value(owned("b")),
            ElseIf(owned("c")),
            Value(owned("d")),
            Else,
            End,
            Each { item: Some(owned("x")), list: owned("l") },
            Value(owned("x")),
            End,
            With(owned("w")),
            End,
            Unless(owned("u")),
            End,
            Comment,
            Comment,
            Include(owned("p")),
            Role(owned("system")),
            Role(owned("user")),
            RoleEnd,
            Media(owned("photo")),
            Value(owned("data")),
            Text(owned("{{")),
            Text(owned("x}}")),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn mustache_has_sections() {
        assert_eq!(
            tags("{{#a}}{{&b}}{{/a}}{{^c}}x{{/c}}{{! n }}{{> p}}", BraceEngine::Mustache),
            [
                Section(owned("a")),
                Value(owned("b")),
                End,
                Unless(owned("c")),
                Text(owned("x")),
                End,
                Comment,
                Include(owned("p"))
            ]
        );
        let refused = marks("{{=<% %>=}}", "t", 1, BraceEngine::Mustache).unwrap_err();
        assert_eq!(refused.message(), "the template of `t` changes its delimiters");
        assert!(marks("{{x", "t", 1, BraceEngine::Mustache).is_err());
    }
}
