//! Suspicious parts of a composed module that can still run: malformed calls in the prompt that stay text, paths that
//! lead nowhere, rules that are never evaluated. (COMP-042, COMP-060) Looks at one module alone; `parts` checks that
//! the other modules exist and accept their input.

use cognitive_contract::Format;
use cognitive_contract::compose::CompositionPlan;
use cognitive_contract::compose::calls::directives;

use super::CheckedModule;
use crate::finding::{Finding, FindingLocation, Findings};

pub(super) const PROMPT_FILE: &str = "prompt.md";

pub(super) fn check(subject: &CheckedModule<'_>, found: &mut Findings) {
    // Older formats store their prompt in another file, and have no calls.
    if matches!(subject.format, Format::V0 | Format::V1) {
        return;
    }
    let in_prompt = directives(subject.prompt);
    for slip in &in_prompt.slips {
        let message = format!("this call has a syntax error and stays text: {}", slip.message);
        let finding =
            Finding::warning(PROMPT_FILE, FindingLocation::Offset(slip.span.start), "prompt/call", message);
        found.push(
            finding.hint("Write `@call:module($INPUT)[timeout=30s]`; arguments and options are optional"),
        );
    }
    let declared = subject.effective.as_ref().and_then(|manifest| manifest.composition.as_ref());
    let Some(Ok(compiled)) = declared.map(|file| CompositionPlan::compile(file, &in_prompt.calls)) else {
        return;
    };
    for note in compiled.notes {
        let at = FindingLocation::Value(note.path);
        found.push(Finding::warning(subject.manifest_file, at, "manifest/composition", note.message));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::folder::Folder;
    use crate::validate::{Mode, validate};

    #[test]
    fn comp_042_060_what_is_odd_about_a_composition_is_said_at_its_place() {
        let manifest = "name: m\nversion: 1.0.0\nresponsibility: Join.\nexcludes: [x]\ntier: decision\ncomposition:\n  \
                        requires: [{name: a}]\n  routing:\n    - {condition: '$.b.meta.risk == 1', next: a}\n";
        let files = [
            ("module.yaml", manifest),
            ("schema.json", r#"{"input": {"type": "object"}, "data": {"type": "object"}}"#),
            ("prompt.md", "First @call:a($INPUT)[later] and\nthen @call:a($INPUT).\n"),
        ];
        let files = files.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
        let report = validate(&Folder::memory("m", BTreeMap::from(files)), Mode::Standard);
        let odd: Vec<String> = report
            .findings
            .iter()
            .filter(|finding| ["prompt/call", "manifest/composition"].contains(&finding.rule))
            .map(|finding| {
                let place = report.sources.locate(finding).map(|place| place.line);
                format!("{} {place:?} {}", finding.file, finding.message)
            })
            .collect();
        assert!(report.valid(), "{:?}", report.findings);
        assert_eq!(odd.len(), 3, "{odd:#?}");
        assert!(
            odd.iter().any(|each| each.starts_with("prompt.md Some(1) this call has a syntax error")),
            "{odd:#?}"
        );
        assert!(
            odd.iter().any(|each| each.starts_with("module.yaml Some(9) this path begins with no module"))
        );
        assert!(odd.iter().any(|each| each.contains("rules are evaluated only if")), "{odd:#?}");
    }
}
