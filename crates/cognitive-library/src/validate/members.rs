//! Schema keywords without effect: an undescribed required member, a copy from a missing input member, a `format` that
//! is not enforced, a risk rule without its list. Branches of `oneOf` and the like describe an object together with
//! their parent, so missing members are not reported there.

use std::collections::HashSet;

use cognitive_contract::manifest::RiskRule;
use cognitive_schema::{ContractPlace, JsonTypes, MemberDescription, SectionRef, file_of_ref};
use serde_json::{Map, Value};

use super::CheckedModule;
use super::nearest_name::did_you_mean;
use super::schema::{data_names, section_ref};
use crate::finding::{Finding, FindingLocation, Findings, quote};
use crate::json::{JsonPathStep, pointer_of};

/// The limit for visited schemas in one section. References that double at each step would keep the walk busy for
/// years.
const MAX_SCHEMAS: usize = 20_000;
/// The member that holds free text if the input does not name it.
const FREE_TEXT: &str = "query";

pub(super) fn check(subject: &CheckedModule<'_>, found: &mut Findings) {
    let input = section_ref(subject, &["input"]);
    let data = section_ref(subject, &data_names(subject));
    let place = |section: &SectionRef| ContractPlace::from_section(subject.schemas, section);
    let input_place = input.as_ref().and_then(place);
    for (section, is_answer) in [(&input, false), (&data, true)] {
        let Some(section) = section else { continue };
        let mut visit = MemberVisit {
            subject,
            input: input_place.as_ref(),
            is_answer,
            seen: HashSet::new(),
            left: MAX_SCHEMAS,
        };
        visit.target(&section.file, &section.pointer, found);
    }
    if let Some(data) = data.as_ref().and_then(place) {
        risk_rule(subject, &data, found);
    }
}

/// A walk through one section, which follows references.
struct MemberVisit<'a, 's> {
    subject: &'a CheckedModule<'s>,
    input: Option<&'a ContractPlace<'a>>,
    is_answer: bool,
    seen: HashSet<String>,
    left: usize,
}

/// The position of a walk.
struct SchemaSpot<'a> {
    file: String,
    /// The pointer where the path begins.
    base: String,
    path: Vec<JsonPathStep<'a>>,
}

impl SchemaSpot<'_> {
    fn at(&self, below: &str) -> FindingLocation {
        FindingLocation::Value(format!("{}{}{below}", self.base, pointer_of(&self.path)))
    }
}

impl<'a> MemberVisit<'a, '_> {
    /// Visits the schema at a location, once.
    fn target(&mut self, file: &str, pointer: &str, found: &mut Findings) {
        let Some(schema) = self.subject.schemas.get(file).and_then(|root| root.pointer(pointer)) else {
            return;
        };
        if self.seen.insert(format!("{file}#{pointer}")) {
            let mut spot = SchemaSpot { file: file.to_owned(), base: pointer.to_owned(), path: Vec::new() };
            self.schema(schema, &mut spot, false, found);
        }
    }

    fn schema(
        &mut self,
        schema: &'a Value,
        spot: &mut SchemaSpot<'a>,
        in_branch: bool,
        found: &mut Findings,
    ) {
        let Value::Object(members) = schema else { return };
        let Some(left) = self.left.checked_sub(1) else { return };
        self.left = left;
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            let Ok(other) = file_of_ref(reference, &spot.file) else { return };
            let pointer = reference.split_once('#').map_or("", |(_, pointer)| pointer).to_owned();
            // In a branch, a definition only completes its parent object, so it is not checked alone.
            if !in_branch {
                self.target(&other.unwrap_or_else(|| spot.file.clone()), &pointer, found);
            }
            return;
        }
        if !in_branch {
            self.check_required(members, spot, found);
        }
        self.origins(members, spot, found);
        let is_media = members.get("properties").is_some_and(|own| own.get("media_type").is_some());
        for (name, member) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
            spot.path.extend([JsonPathStep::Member("properties".into()), JsonPathStep::Member(name.into())]);
            if self.is_answer && !is_media {
                format(member, spot, found);
            }
            self.schema(member, spot, false, found);
            spot.path.truncate(spot.path.len() - 2);
        }
        self.visit_children(members, spot, found);
    }

    /// Visits items and branches.
    fn visit_children(
        &mut self,
        members: &'a Map<String, Value>,
        spot: &mut SchemaSpot<'a>,
        found: &mut Findings,
    ) {
        for (word, in_branch) in
            [("items", false), ("additionalProperties", false), ("then", true), ("else", true)]
        {
            if let Some(schema) = members.get(word) {
                spot.path.push(JsonPathStep::Member(word.into()));
                if self.is_answer && word == "items" {
                    format(schema, spot, found);
                }
                self.schema(schema, spot, in_branch, found);
                spot.path.pop();
            }
        }
        for word in ["allOf", "anyOf", "oneOf"] {
            for (at, branch) in members.get(word).and_then(Value::as_array).into_iter().flatten().enumerate()
            {
                spot.path.extend([JsonPathStep::Member(word.into()), JsonPathStep::Item(at)]);
                self.schema(branch, spot, true, found);
                spot.path.truncate(spot.path.len() - 2);
            }
        }
    }

    /// Reports required members without a description.
    fn check_required(&self, members: &Map<String, Value>, spot: &SchemaSpot<'_>, found: &mut Findings) {
        const DESCRIBED_ELSEWHERE: [&str; 6] =
            ["allOf", "anyOf", "oneOf", "if", "patternProperties", "dependencies"];
        let Some(described) = members.get("properties").and_then(Value::as_object) else { return };
        let others = members.get("additionalProperties");
        let is_open = others.is_some_and(|others| *others != Value::Bool(false));
        if described.is_empty()
            || is_open
            || DESCRIBED_ELSEWHERE.iter().any(|word| members.contains_key(*word))
        {
            return;
        }
        for (at, name) in members.get("required").and_then(Value::as_array).into_iter().flatten().enumerate()
        {
            let Some(name) = name.as_str().filter(|name| !described.contains_key(*name)) else { continue };
            // Another rule requires the rationale, with its own message.
            if self.is_answer && spot.path.is_empty() && name == "rationale" {
                continue;
            }
            let place = spot.at(&format!("/required/{at}"));
            let finding = if others == Some(&Value::Bool(false)) {
                let message =
                    format!("{} is both required and forbidden: no value can be valid", quote(name));
                Finding::error(&spot.file, place, "schema/required", message)
            } else {
                let message = format!("{} is required, but `properties` does not describe it", quote(name));
                Finding::warning(&spot.file, place, "schema/required", message)
            };
            let hint = did_you_mean(name, described.keys().map(String::as_str));
            found.push(
                finding.hint(hint.unwrap_or_else(|| format!("Describe {} in `properties`", quote(name)))),
            );
        }
    }

    /// Checks the sources of values: `x-copy-from` and the like name members of the input.
    fn origins(&self, members: &Map<String, Value>, spot: &SchemaSpot<'_>, found: &mut Findings) {
        let Some(input) = self.input.filter(|_| self.is_answer) else { return };
        let about = members.get("x-decide").and_then(|decide| decide.get("about"));
        let origins = [
            ("/x-copy-from", members.get("x-copy-from")),
            ("/x-name-from", members.get("x-name-from")),
            ("/x-decide/about", about),
        ];
        for (word, origin) in origins {
            let Some(name) = origin.and_then(Value::as_str).filter(|name| *name != FREE_TEXT) else {
                continue;
            };
            if matches!(input.member(name), MemberDescription::Described(_) | MemberDescription::Open) {
                continue;
            }
            let keyword = word.trim_start_matches('/').replace('/', ".");
            let message =
                format!("`{keyword}` names a member that the input does not describe: {}", quote(name));
            let finding = Finding::warning(&spot.file, spot.at(word), "schema/origin", message);
            found.push(Finding { hint: did_you_mean(name, input.names()), ..finding });
        }
    }
}

/// Reports a `format` without another constraint: answers in any form are accepted.
fn format(schema: &Value, spot: &SchemaSpot<'_>, found: &mut Findings) {
    let Some(format) = schema.get("format").and_then(Value::as_str) else { return };
    if ["pattern", "enum", "const", "$ref"].iter().any(|word| schema.get(word).is_some()) {
        return;
    }
    let message =
        format!("`format: {}` is not checked: other forms are accepted", quote(format).trim_matches('`'));
    let pattern = match format {
        "date" => Some(r"^\\d{4}-\\d{2}-\\d{2}$"),
        "time" => Some(r"^\\d{2}:\\d{2}(:\\d{2})?"),
        "date-time" => Some(r"^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}"),
        "email" => Some(r"^[^@\\s]+@[^@\\s]+$"),
        "uri" | "url" => Some("^https?://"),
        "uuid" => Some("^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"),
        _ => None,
    };
    let hint = match pattern {
        Some(pattern) => format!("Add `\"pattern\": \"{pattern}\"` beside it"),
        None => "Add a `pattern` beside it to reject other forms".to_owned(),
    };
    found.push(Finding::warning(&spot.file, spot.at("/format"), "schema/format", message).hint(hint));
}

/// Reports a risk rule about a list that the answer does not have.
fn risk_rule(subject: &CheckedModule<'_>, data: &ContractPlace<'_>, found: &mut Findings) {
    let Some(manifest) =
        subject.effective.as_ref().filter(|_| subject.written.pointer("/meta/risk_rule").is_some())
    else {
        return;
    };
    let list = match manifest.meta.risk_rule {
        RiskRule::MaxChangesRisk => "changes",
        RiskRule::MaxIssuesRisk => "issues",
        RiskRule::Explicit | RiskRule::CustomFunction => return,
    };
    let rule = format!("max_{list}_risk");
    let (message, hint) = match data.member(list) {
        MemberDescription::Open => return,
        MemberDescription::Described(entries) if !entries.types().and(JsonTypes::ARRAY).is_empty() => {
            match entries.items() {
                MemberDescription::Described(entry)
                    if matches!(
                        entry.member("risk"),
                        MemberDescription::Undescribed | MemberDescription::Never
                    ) =>
                {
                    (
                        format!(
                            "`{rule}` uses the `risk` of each entry, which the schema does not describe: each \
                     counts as medium"
                        ),
                        format!(
                            "Describe `risk` (none, low, medium or high) in the entries of `{list}`, or write `risk_rule: explicit`"
                        ),
                    )
                }
                _ => return,
            }
        }
        MemberDescription::Described(_) | MemberDescription::Undescribed | MemberDescription::Never => (
            format!("`{rule}` uses the list `data.{list}`, which the schema does not describe"),
            format!("Describe `{list}` in the data section, or write `risk_rule: explicit`"),
        ),
    };
    let at = FindingLocation::Value("/meta/risk_rule".to_owned());
    found.push(Finding::warning(subject.manifest_file, at, "manifest/risk-rule", message).hint(hint));
}
