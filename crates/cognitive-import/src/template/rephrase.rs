//! Rewrites a template in words for a model that gets the input as data. A value becomes its name in back quotes, and a
//! condition or loop becomes a remark in brackets. Inexpressible parts are recorded as lost, with their text. Refuses
//! templates that continue a conversation, because they have no single answer.

use std::collections::BTreeSet;

use cognitive_contract::Failure;

use super::expression::{self, TemplateExpression};
use super::turns::PromptTurn;
use super::{TemplateMark, TemplateTag};
use crate::loss::LossList;
use crate::source::refuse;

/// The maximum nesting of blocks. A lookup of a name goes through all of them.
const MAX_SCOPES: usize = 50;
/// The maximum number of variables in one template. Each becomes a member of the input, and each new one is compared
/// with all before.
const MAX_VARIABLES: usize = 500;

const IN_WORDS: &str =
    "described in words in `prompt.md`: the model decides by the input, where the engine left text out";
const AS_IT_IS: &str = "the model gets the value as it is in the input";

/// The use of a variable in a template.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct VariableUse {
    /// True if a loop iterates over it.
    pub(crate) as_list: bool,
    /// The members that the template names.
    pub(crate) members: BTreeSet<String>,
    /// True if it is an image, sound or document.
    pub(crate) as_media: bool,
    /// True if the template checks whether it exists.
    pub(crate) optional: bool,
}

/// A template in words.
#[derive(Debug, Default)]
pub(crate) struct RephrasedTemplate {
    /// The text of each role, in order.
    pub(crate) turns: Vec<PromptTurn>,
    /// The variables, in order of first use.
    pub(crate) used: Vec<(String, VariableUse)>,
}

enum TemplateScope {
    /// A condition.
    Branch,
    /// A loop with the name of its entry. With `relative`, plain names are members of the entry.
    Loop { item: String, list: Option<String>, relative: bool, maybe: bool },
    /// A value whose members are in scope.
    Inside(Vec<String>),
    /// Any other block.
    Enclosed,
}

/// Rewrites a template in words. `known` are the inputs that the file declares.
pub(crate) fn rephrase(
    marks: &[TemplateMark],
    file: &str,
    known: &BTreeSet<String>,
    losses: &mut LossList,
) -> Result<RephrasedTemplate, Failure> {
    let mut writer = TemplateWriter {
        file,
        known,
        losses,
        scopes: Vec::new(),
        opened: Vec::new(),
        done: RephrasedTemplate::default(),
        comments: 0,
    };
    for mark in marks {
        writer.mark(mark)?;
    }
    writer.finish()
}

struct TemplateWriter<'a> {
    file: &'a str,
    known: &'a BTreeSet<String>,
    losses: &'a mut LossList,
    scopes: Vec<TemplateScope>,
    /// The lines on which the open blocks start.
    opened: Vec<usize>,
    done: RephrasedTemplate,
    comments: usize,
}

impl TemplateWriter<'_> {
    fn mark(&mut self, mark: &TemplateMark) -> Result<(), Failure> {
        match &mark.tag {
            TemplateTag::Text(text) => self.say(text),
            TemplateTag::Value(expression) => self.value(mark, expression)?,
            TemplateTag::If(condition) => self.branch(mark, condition, false)?,
            TemplateTag::Unless(condition) => self.branch(mark, condition, true)?,
            TemplateTag::ElseIf(condition) => {
                let condition = self.condition(condition, false);
                self.say(&format!("[otherwise, if {condition}:]"));
            }
            TemplateTag::Else => self.say("[otherwise:]"),
            TemplateTag::Each { item, list } => self.loop_start(mark, item.as_deref(), list)?,
            TemplateTag::With(expression) => self.with(mark, expression)?,
            TemplateTag::Section(name) => self.section(mark, name)?,
            TemplateTag::End => self.end(mark)?,
            TemplateTag::Role(role) => self.role(mark, role)?,
            TemplateTag::RoleEnd => self.done.turns.push(PromptTurn::new("")),
            TemplateTag::Media(expression) => self.media(mark, expression),
            TemplateTag::History => return Err(conversation(&self.place(mark))),
            TemplateTag::OutputFormat => self.say("$SCHEMA"),
            TemplateTag::Include(_) => {
                let why = "other templates are not read: their content is missing in `prompt.md`";
                self.losses.add_lost(mark_label(mark), &self.place(mark), why);
            }
            TemplateTag::Comment => self.comments += 1,
            TemplateTag::Statement => {
                let why = "nothing is evaluated: describe its effect in `prompt.md`";
                self.losses.add_lost(mark_label(mark), &self.place(mark), why);
            }
        }
        Ok(())
    }

    fn place(&self, mark: &TemplateMark) -> String {
        format!("{}:{}", self.file, mark.line)
    }

    fn turn(&mut self) -> Option<&mut PromptTurn> {
        if self.done.turns.is_empty() {
            self.done.turns.push(PromptTurn::new(""));
        }
        self.done.turns.last_mut()
    }

    fn say(&mut self, text: &str) {
        if let Some(turn) = self.turn() {
            turn.text.push_str(text);
        }
    }

    fn say_value(&mut self, text: &str) {
        if let Some(turn) = self.turn() {
            turn.text.push_str(text);
            turn.says_values = true;
        }
    }

    fn value(&mut self, mark: &TemplateMark, expression: &str) -> Result<(), Failure> {
        match expression::read(expression) {
            TemplateExpression::Literal(text) => self.say(&text),
            TemplateExpression::Way { steps, filters } => {
                if steps.len() > 1
                    && steps.last().is_some_and(|last| last == "role")
                    && self.is_item(steps.first())
                {
                    return Err(conversation(&self.place(mark)));
                }
                let name = self.value_label(&steps);
                self.say_value(&name);
                if !filters.is_empty() {
                    self.losses.add_changed(mark_label(mark), &self.place(mark), AS_IT_IS);
                }
            }
            TemplateExpression::Calculation => {
                self.note_names(expression);
                self.say_value(&format!("(the value of `{}`)", expression.replace('`', "'")));
                let why = "nothing is calculated: `prompt.md` asks the model to do it";
                self.losses.add_changed(mark_label(mark), &self.place(mark), why);
            }
        }
        Ok(())
    }

    fn open(&mut self, mark: &TemplateMark, scope: TemplateScope) -> Result<(), Failure> {
        if self.scopes.len() == MAX_SCOPES {
            let message = format!("{} is nested more than {MAX_SCOPES} blocks deep", self.place(mark));
            return Err(refuse(message, "Simplify the template"));
        }
        self.scopes.push(scope);
        self.opened.push(mark.line);
        Ok(())
    }

    fn branch(&mut self, mark: &TemplateMark, condition: &str, negated: bool) -> Result<(), Failure> {
        let condition = self.condition(condition, negated);
        self.say(&format!("[if {condition}:]"));
        self.losses.add_changed(mark_label(mark), &self.place(mark), IN_WORDS);
        self.open(mark, TemplateScope::Branch)
    }

    fn condition(&mut self, condition: &str, negated: bool) -> String {
        match expression::read(condition) {
            TemplateExpression::Way { steps, filters } if filters.is_empty() => {
                let name = self.value_label(&steps);
                if let [only] = steps.as_slice() {
                    self.note(only, |used| used.optional = true);
                }
                format!("{name} is {}", if negated { "missing, empty or false" } else { "given" })
            }
            _ => {
                self.note_names(condition);
                let condition = condition.replace('`', "'");
                format!("`{condition}` {}", if negated { "does not hold" } else { "holds" })
            }
        }
    }

    fn loop_start(&mut self, mark: &TemplateMark, item: Option<&str>, list: &str) -> Result<(), Failure> {
        let mut variable = None;
        let name = match expression::read(list) {
            TemplateExpression::Way { steps, filters } => {
                let name = self.value_label(&steps);
                variable = self.variable(&steps).filter(|_| steps.len() == 1);
                if !filters.is_empty() {
                    self.losses.add_changed(mark_label(mark), &self.place(mark), AS_IT_IS);
                }
                if let [only] = steps.as_slice() {
                    self.note(only, |used| used.as_list = true);
                }
                name
            }
            _ => {
                self.note_names(list);
                format!("`{}`", list.replace('`', "'"))
            }
        };
        self.losses.add_changed(mark_label(mark), &self.place(mark), IN_WORDS);
        let relative = item.is_none();
        let item = item.map_or_else(|| "entry".to_owned(), |item| item.replace('`', "'"));
        self.say(&format!("[for each `{item}` of {name}:]"));
        self.open(mark, TemplateScope::Loop { item, list: variable, relative, maybe: false })
    }

    fn with(&mut self, mark: &TemplateMark, expression: &str) -> Result<(), Failure> {
        let scope = match expression::read(expression) {
            TemplateExpression::Way { steps, filters } if filters.is_empty() => {
                self.value_label(&steps);
                TemplateScope::Inside(steps)
            }
            _ => {
                self.losses.add_lost(mark_label(mark), &self.place(mark), "nothing is evaluated");
                TemplateScope::Enclosed
            }
        };
        self.open(mark, scope)
    }

    fn section(&mut self, mark: &TemplateMark, name: &str) -> Result<(), Failure> {
        let TemplateExpression::Way { steps, .. } = expression::read(name) else {
            let why = "a helper of another program: its content stays, its effect is lost";
            self.losses.add_lost(mark_label(mark), &self.place(mark), why);
            return self.open(mark, TemplateScope::Enclosed);
        };
        let named = self.value_label(&steps);
        if let [only] = steps.as_slice() {
            self.note(only, |used| used.optional = true);
        }
        self.losses.add_changed(mark_label(mark), &self.place(mark), IN_WORDS);
        self.say(&format!("[if {named} is given, and once for each `entry` if it is a list:]"));
        let list = self.variable(&steps).filter(|_| steps.len() == 1);
        self.open(mark, TemplateScope::Loop { item: "entry".to_owned(), list, relative: true, maybe: true })
    }

    fn end(&mut self, mark: &TemplateMark) -> Result<(), Failure> {
        self.opened.pop();
        match self.scopes.pop() {
            Some(TemplateScope::Branch) => self.say("[end of if]"),
            Some(TemplateScope::Loop { .. }) => self.say("[end of for each]"),
            Some(TemplateScope::Inside(_) | TemplateScope::Enclosed) => {}
            None => {
                let message = format!("{} closes a block that is not open", self.place(mark));
                return Err(refuse(message, "Correct the template"));
            }
        }
        Ok(())
    }

    fn role(&mut self, mark: &TemplateMark, role: &str) -> Result<(), Failure> {
        if self.scopes.iter().any(|scope| matches!(scope, TemplateScope::Loop { .. })) {
            return Err(conversation(&self.place(mark)));
        }
        if !["system", "user", "assistant", "model", "developer"].contains(&role) {
            let message = format!("{} has an unsupported role: `{role}`", self.place(mark));
            return Err(refuse(message, "Import a template with a system and a user turn"));
        }
        self.done.turns.push(PromptTurn::new(role));
        Ok(())
    }

    fn media(&mut self, mark: &TemplateMark, expression: &str) {
        match expression::read(expression) {
            TemplateExpression::Way { steps, .. } => {
                let name = self.value_label(&steps);
                if let Some(first) = self.variable(&steps) {
                    self.note(&first, |used| used.as_media = true);
                } else if let (Some(list), [_]) = (self.list_of(steps.first()), steps.as_slice()) {
                    self.note(&list, |used| (used.as_media, used.as_list) = (true, true));
                }
                self.say_value(&format!("{name} (attached)"));
            }
            _ => {
                let why = "an item with a fixed address is not a part of the input";
                self.losses.add_lost(mark_label(mark), &self.place(mark), why);
            }
        }
    }

    fn is_item(&self, name: Option<&String>) -> bool {
        let Some(name) = name else { return false };
        self.scopes.iter().any(|scope| match scope {
            TemplateScope::Loop { item, relative, .. } => {
                (*relative && name == "this") || item.split(',').any(|each| each.trim() == name)
            }
            _ => false,
        })
    }

    /// The list whose entries have this name.
    fn list_of(&self, name: Option<&String>) -> Option<String> {
        let name = name?;
        self.scopes.iter().rev().find_map(|scope| match scope {
            TemplateScope::Loop { item, list, relative, .. }
                if item == name || (*relative && name == "this") =>
            {
                list.clone()
            }
            _ => None,
        })
    }

    /// The input variable at the start of a path, if any.
    fn variable(&self, steps: &[String]) -> Option<String> {
        let mut scopes = self.scopes.iter().rev();
        let mut steps = steps.iter().map(String::as_str).peekable();
        while steps.next_if_eq(&"..").is_some() {
            let _ =
                scopes.find(|scope| matches!(scope, TemplateScope::Loop { .. } | TemplateScope::Inside(_)));
        }
        let first = match steps.next()? {
            "@root" => return steps.next().map(str::to_owned),
            special if special.starts_with('@') || special == "loop" => return None,
            first => first,
        };
        for scope in scopes {
            match scope {
                TemplateScope::Loop { item, .. } if item.split(',').any(|each| each.trim() == first) => {
                    return None;
                }
                TemplateScope::Loop { relative: true, maybe, .. }
                    if !(*maybe && self.known.contains(first)) =>
                {
                    return None;
                }
                TemplateScope::Inside(way) => return way.first().cloned(),
                _ => {}
            }
        }
        (first != "this").then(|| first.to_owned())
    }

    /// The name of a value, for a reader who has the input. Records the use of its variable.
    fn value_label(&mut self, steps: &[String]) -> String {
        let variable = self.variable(steps);
        let ups = steps.iter().take_while(|step| *step == "..").count();
        let own: Vec<&str> =
            steps.iter().skip(ups).map(String::as_str).filter(|step| *step != "@root").collect();
        if let Some(name) = &variable {
            let member = own.iter().skip_while(|step| *step != name).nth(1).copied();
            let member =
                member.filter(|step| !step.bytes().all(|byte| byte.is_ascii_digit()) && *step != "length");
            self.note(name, |used| used.members.extend(member.map(str::to_owned)));
        }
        let inside = self.scopes.iter().rev().find_map(|scope| match scope {
            TemplateScope::Inside(way) if ups == 0 => Some(way.join(".")),
            _ => None,
        });
        let path = own.join(".");
        match (own.first().copied(), variable.is_some(), inside) {
            (Some(special), _, _) if special.starts_with('@') || special == "loop" => {
                "(its position)".to_owned()
            }
            (Some("this"), false, _) if self.scopes.is_empty() => "the input".to_owned(),
            (Some("this"), false, _) => format!("`{}`", path.replacen("this", "entry", 1)),
            (Some("this"), true, Some(inside)) => format!("`{}`", path.replacen("this", &inside, 1)),
            (_, true, Some(inside)) if own.first() != variable.as_deref().as_ref() => {
                format!("`{inside}.{path}`")
            }
            (_, false, _) if !self.is_item(steps.first()) => format!("`entry.{path}`"),
            _ => format!("`{path}`"),
        }
    }

    fn note(&mut self, name: &str, how: impl FnOnce(&mut VariableUse)) {
        if self.is_item(Some(&name.to_owned())) {
            return;
        }
        let known = self.done.used.iter().position(|(each, _)| each == name);
        if known.is_none() && self.done.used.len() == MAX_VARIABLES {
            return;
        }
        let at = known.unwrap_or_else(|| {
            self.done.used.push((name.to_owned(), VariableUse::default()));
            self.done.used.len() - 1
        });
        if let Some((_, used)) = self.done.used.get_mut(at) {
            how(used);
        }
    }

    /// Records the declared variables in a calculation.
    fn note_names(&mut self, expression: &str) {
        for name in expression::names_in(expression) {
            if self.known.contains(&name) {
                self.note(&name, |_| {});
            }
        }
    }

    fn finish(mut self) -> Result<RephrasedTemplate, Failure> {
        if self.done.used.len() == MAX_VARIABLES {
            let message = format!("{} has {MAX_VARIABLES} variables or more", self.file);
            return Err(refuse(message, "Simplify the template"));
        }
        if let Some(line) = self.opened.last() {
            let message = format!("{}:{line} opens an unterminated block", self.file);
            return Err(refuse(message, "Close the block"));
        }
        if self.comments > 0 {
            let what = format!("{} comment{}", self.comments, if self.comments == 1 { "" } else { "s" });
            self.losses.add_lost(what, self.file, "notes for authors, which no model reads");
        }
        Ok(std::mem::take(&mut self.done))
    }
}

fn mark_label(mark: &TemplateMark) -> String {
    format!("`{}`", mark.written.replace('`', "'"))
}

fn conversation(place: &str) -> Failure {
    refuse(
        format!("{place} continues a conversation, but a module makes a single judgement"),
        "Import a prompt that answers once; a module reads earlier turns as context",
    )
}

#[cfg(test)]
mod tests {
    use super::super::braces::{self, BraceEngine};
    use super::super::jinja;
    use super::*;

    fn said(marks: &[TemplateMark]) -> (String, Vec<String>, usize) {
        let mut losses = LossList::default();
        let known = BTreeSet::from(["text".to_owned()]);
        let done = rephrase(marks, "f", &known, &mut losses).unwrap();
        let text = done.turns.iter().map(|turn| turn.text.as_str()).collect();
        (text, done.used.into_iter().map(|(name, _)| name).collect(), losses.finish().len())
    }

    fn jinja_said(text: &str) -> (String, Vec<String>, usize) {
        said(&jinja::marks(text, "f", 1).unwrap())
    }

    fn braces_said(text: &str) -> (String, Vec<String>, usize) {
        said(&braces::marks(text, "f", 1, BraceEngine::Handlebars).unwrap())
    }

    #[test]
    fn values_are_named_and_blocks_are_said() {
        assert_eq!(jinja_said("Read {{ text }}."), ("Read `text`.".to_owned(), vec!["text".to_owned()], 0));
        let (text, used, losses) =
            jinja_said("{% for q in items %}- {{ q.a }}{% endfor %}{% if not x %}n{% else %}m{% endif %}");
        assert_eq!(
            text,
            "[for each `q` of `items`:]- `q.a`[end of for each][if `not x` holds:]n[otherwise:]m[end of if]"
        );
        assert_eq!((used, losses), (vec!["items".to_owned()], 2));
        let (text, used, _) = braces_said(
            "{{#each orders}}{{id}} {{this}} {{@index}} {{../text}}{{/each}}{{#with user}}{{name}}{{/with}}",
        );
        assert_eq!(
            text,
            "[for each `entry` of `orders`:]`entry.id` `entry` (its position) `text`[end of for each]`user.name`"
        );
        assert_eq!(used, ["orders", "text", "user"]);
    }

    #[test]
    fn calculations_filters_and_statements_are_losses() {
        let (text, used, losses) =
            jinja_said("{{ text | upper }} {{ f(text) }}{% set a = 1 %}{% include 'b' %}{# c #}");
        assert_eq!(text, "`text` (the value of `f(text)`)");
        assert_eq!((used, losses), (vec!["text".to_owned()], 5));
    }

    #[test]
    fn a_conversation_is_refused() {
        for text in [
            "{{history}}",
            "{{#each m}}{{role \"user\"}}{{this}}{{/each}}",
            "{{#each m}}{{this.role}}{{/each}}",
        ] {
            let marks = braces::marks(text, "f", 1, BraceEngine::Handlebars).unwrap();
            let refused = rephrase(&marks, "f", &BTreeSet::new(), &mut LossList::default()).unwrap_err();
            assert!(refused.message().contains("continues a conversation"), "{text}");
        }
        for text in
            ["{% for m in h %}{{ m.role }}{% endfor %}", "{% if a %}", "{% endif %}", "{{ _.role('tool') }}"]
        {
            let marks = jinja::marks(text, "f", 1).unwrap();
            assert!(rephrase(&marks, "f", &BTreeSet::new(), &mut LossList::default()).is_err(), "{text}");
        }
        let deep = "{% if a %}".repeat(60);
        assert!(
            rephrase(&jinja::marks(&deep, "f", 1).unwrap(), "f", &BTreeSet::new(), &mut LossList::default())
                .is_err()
        );
    }
}
