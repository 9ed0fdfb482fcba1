//! Rules that the embedded model cannot enforce. It refuses a module with such a rule, and an author should learn this
//! before the first run. Never an error, because other providers accept these rules.

use cognitive_contract::Module;
use cognitive_schema::Section;
use cognitive_schema::{Loss, SchemaTarget};

use crate::finding::{Finding, FindingLocation, Findings};

pub(super) fn check(module: &Module, found: &mut Findings) {
    for gap in module.provider_schema(SchemaTarget::Grammar).gaps() {
        let Some((section, below)) = section_of(module, gap) else { continue };
        let place = format!("{}{}", section.place.pointer, known_prefix(section, below));
        let how = gap.what.split_once(": ").map(|(_, how)| format!(" ({how})")).unwrap_or_default();
        let message =
            format!("the embedded model cannot enforce `{}`{how} and refuses the module", gap.keyword);
        let hint = "For the embedded model, express the rule with other keywords; other providers check \
             it after the answer";
        let finding =
            Finding::warning(&section.place.file, FindingLocation::Value(place), "schema/embedded", message);
        found.push(finding.hint(hint));
    }
}

/// Returns the section of an unsupported rule, and the path from there.
fn section_of<'a>(module: &'a Module, loss: &'a Loss) -> Option<(&'a Section, &'a str)> {
    let contract = &module.contract;
    let sections = [
        ("/properties/data", Some(contract.data())),
        ("/properties/meta", contract.meta()),
        ("/properties/error", contract.error()),
    ];
    sections.into_iter().find_map(|(prefix, section)| Some((section?, loss.path.strip_prefix(prefix)?)))
}

/// The longest prefix of a path that exists in the author's schema. References and conditions were expanded since.
fn known_prefix<'a>(section: &Section, mut below: &'a str) -> &'a str {
    while section.schema().pointer(below).is_none() {
        below = below.rsplit_once('/').map_or("", |(above, _)| above);
    }
    below
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::folder::Folder;
    use crate::validate::{Mode, validate};

    /// D-05: validation reports a rule that the embedded model refuses, with its location.
    #[test]
    fn d_05_a_rule_that_the_embedded_model_cannot_keep_is_a_warning_at_its_place() {
        let tags = r#"{ "type": "array", "items": { "type": "string" }, "uniqueItems": true }"#;
        let data = format!(
            r#"{{ "type": "object", "required": ["rationale"], "properties": {{
                "rationale": {{ "type": "string", "minLength": 1 }}, "tags": {tags} }} }}"#
        );
        let schema = format!(r#"{{ "input": {{}}, "data": {data} }}"#);
        let manifest = "name: tags\nversion: 1.0.0\nresponsibility: Finds tags\ntier: exec\n";
        let files = [("module.yaml", manifest), ("prompt.md", "Find tags."), ("schema.json", &schema)];
        let files = files.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
        let report = validate(&Folder::memory("tags", BTreeMap::from(files)), Mode::Standard);
        let found: Vec<_> =
            report.findings.iter().filter(|finding| finding.rule == "schema/embedded").collect();
        assert_eq!(found.len(), 1, "{:?}", report.findings);
        assert_eq!(
            found[0].message,
            "the embedded model cannot enforce `uniqueItems` and refuses the module"
        );
        assert_eq!(report.sources.locate(found[0]).unwrap().line, 2);
        assert!(report.valid());
    }
}
