//! Checks the arguments of `@call` in a prompt against the called module: a missing required member, a member that is
//! never accepted, a type that never fits, a path that leads nowhere. (COMP-060, COMP-066) Every module accepts text,
//! so a call with text, or with a value that may be text, is never reported.

use cognitive_contract::compose::calls::{Argument, Call};
use cognitive_contract::compose::plan::AnswerSource;
use cognitive_contract::compose::{Composition, Path, PathStep};
use cognitive_schema::{ContractPlace, JsonTypes, MemberDescription};

use super::flow::unknown_name_message;
use super::follow::{PathEnd, UndescribedPath, follow};
use super::needs::{FREE_TEXT, Supply, find_supply};
use super::view::ContractView;
use crate::finding::{Finding, FindingLocation, Findings, Severity, quote};
use crate::validate::composition::PROMPT_FILE;
use crate::validate::nearest_name::{did_you_mean, list_text};

const RULE: &str = "prompt/call-input";
/// The argument name for values that are neither text nor object.
const PLAIN_VALUE: &str = "value";

/// The calls of a prompt and the contracts of the called modules; `None` for a module that cannot be read.
pub(super) struct CalledModules<'a> {
    pub(super) made_of: &'a Composition,
    pub(super) own: &'a ContractView,
    pub(super) views: Vec<Option<&'a ContractView>>,
}

impl<'a> CalledModules<'a> {
    pub(super) fn check(&self, found: &mut Findings) {
        // A prompt that is never sent makes no calls.
        if self.made_of.plan.answer != AnswerSource::Prompt {
            return;
        }
        for (place, call) in self.made_of.directives.calls.iter().enumerate() {
            let Some(input) = self.view(place).and_then(ContractView::input) else { continue };
            let mut check = CallCheck { call, input, found };
            match &call.argument {
                Argument::Arguments | Argument::Text(_) => {}
                Argument::Input => {
                    if let Some(own) = self.own.input() {
                        check.object(&own, "the input");
                    }
                }
                Argument::Path(path) => match self.end_of(path, place) {
                    Ok(Some(end)) => check.value(&end, &path_label(path)),
                    Ok(None) => {}
                    Err(astray) => check.report_unknown_path(path, &astray),
                },
            }
        }
    }

    fn view(&self, place: usize) -> Option<&'a ContractView> {
        self.views.get(place).copied().flatten()
    }

    /// Returns the end of a path: in the answer of the previous call, otherwise in the input. `None` if a contract
    /// leaves it open.
    fn end_of(&self, path: &Path, place: usize) -> Result<Option<PathEnd<'a>>, UndescribedPath<'a>> {
        let in_input = self.own.input().map_or(Ok(None), |input| follow(path.steps(), &input));
        let Some(before) = place.checked_sub(1) else { return in_input };
        let Some(envelope) = self.view(before).and_then(ContractView::envelope) else { return Ok(None) };
        match (follow(path.steps(), &envelope), in_input) {
            (Err(astray), Err(_)) => Err(astray),
            (Ok(Some(end)), Err(_)) | (Err(_), Ok(Some(end))) => Ok(Some(end)),
            // Both contracts can have it, or leave it open.
            _ => Ok(None),
        }
    }
}

/// The check of one call.
struct CallCheck<'a, 'f> {
    call: &'a Call,
    /// The input contract of the called module.
    input: ContractPlace<'a>,
    found: &'f mut Findings,
}

impl CallCheck<'_, '_> {
    fn tell(&mut self, severity: Severity, message: String, hint: Option<String>) {
        let at = FindingLocation::Span(self.call.span.clone());
        let finding = Finding::error(PROMPT_FILE, at, RULE, message);
        // The caller continues without an optional call.
        let severity = if self.call.options.optional { Severity::Warning } else { severity };
        self.found.push(Finding { severity, hint, ..finding });
    }

    /// Checks an object, which is passed unchanged.
    fn object(&mut self, given: &ContractPlace<'_>, from: &str) {
        let (called, names) = (quote(&self.call.module), given.names());
        if names.contains(FREE_TEXT) {
            return;
        }
        for name in self.input.required_members() {
            let severity = match find_supply(Some(given.clone()), name) {
                Supply::Given => continue,
                Supply::NotDescribed => Severity::Warning,
                Supply::Never => Severity::Error,
            };
            let message = format!("{called} requires {}, but {from} does not describe it", quote(name));
            self.tell(severity, message, did_you_mean(name, names.iter().copied()));
        }
        let always = given.required_members();
        for name in names {
            match (self.input.member(name), given.member(name)) {
                (MemberDescription::Never, _) => {
                    let severity = if always.contains(&name) { Severity::Error } else { Severity::Warning };
                    let known = self.input.names();
                    let message = format!("{called} has no {}, only {}", quote(name), list_text(&known));
                    let hint = did_you_mean(name, known.iter().copied());
                    self.tell(severity, message, hint);
                }
                (MemberDescription::Described(wanted), MemberDescription::Described(there))
                    if wanted.types().and(there.types()).is_empty() =>
                {
                    let (wanted, is) = (wanted.types().words(), there.types().words());
                    let message =
                        format!("{} of {called} is {wanted}, but that of {from} is {is}", quote(name));
                    self.tell(Severity::Error, message, None);
                }
                _ => {}
            }
        }
    }

    /// Checks the value of a path: an object is passed unchanged, text as text, anything else as `{"value": …}`.
    fn value(&mut self, end: &PathEnd<'_>, from: &str) {
        let types = end.types;
        if !types.and(JsonTypes::STRING).is_empty() {
            return;
        }
        match &end.place {
            Some(place) if types == JsonTypes::OBJECT => self.object(place, from),
            _ if types.and(JsonTypes::OBJECT).is_empty() => self.plain(from, types),
            _ => {}
        }
    }

    fn plain(&mut self, from: &str, types: JsonTypes) {
        let called = quote(&self.call.module);
        let is = types.words();
        let others = self.input.required_members().into_iter().find(|name| *name != PLAIN_VALUE);
        let (severity, message) = match (self.input.member(PLAIN_VALUE), others) {
            (MemberDescription::Never, _) => {
                let known = list_text(&self.input.names());
                let message =
                    format!("{from} is {is} and becomes `value` of {called}, which has only {known}");
                (Severity::Error, message)
            }
            (_, Some(other)) => {
                let message = format!(
                    "{from} is {is} and becomes `value` of {called}, which requires {}",
                    quote(other)
                );
                (Severity::Error, message)
            }
            _ => return,
        };
        let hint = "Pass an object or a text, or let the prompt insert the value with `{{module.path}}`";
        self.tell(severity, message, Some(hint.to_owned()));
    }

    fn report_unknown_path(&mut self, path: &Path, astray: &UndescribedPath<'_>) {
        let steps = path.steps();
        let before = steps.get(..astray.step).unwrap_or_default();
        let wrong = steps.get(astray.step).and_then(PathStep::name).unwrap_or("[…]");
        let before = before.iter().fold("$".to_owned(), |text, step| match step.name() {
            Some(name) => format!("{text}.{name}"),
            None => format!("{text}[…]"),
        });
        let (severity, message) = unknown_name_message(wrong, &before, astray);
        let hint = did_you_mean(wrong, astray.known.iter().copied());
        self.tell(severity, message, hint);
    }
}

fn path_label(path: &Path) -> String {
    quote(&path.to_string())
}
