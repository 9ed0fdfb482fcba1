//! Members of an input that take any object, in a module that declares media. They accept a media item, but `--media`,
//! forms and tools see nothing that says so.

use cognitive_contract::manifest::InputModality;
use cognitive_contract::text::pointer;
use cognitive_schema::{ContractPlace, JsonTypes, MemberDescription};

use super::CheckedModule;
use super::schema::section_ref;
use crate::finding::{Finding, FindingLocation, Findings, quote};

pub(super) fn check(subject: &CheckedModule<'_>, found: &mut Findings) {
    let declared = subject.effective.iter().flat_map(|manifest| &manifest.modalities.input);
    if declared.into_iter().all(|each| *each == InputModality::Text) {
        return;
    }
    let Some(section) = section_ref(subject, &["input"]) else { return };
    let Some(place) = ContractPlace::from_section(subject.schemas, &section) else { return };
    for name in place.names() {
        let MemberDescription::Described(member) = place.member(name) else { continue };
        let MemberDescription::Described(item) = member.items() else { continue };
        if member.types().and(JsonTypes::ARRAY).is_empty() || !takes_any_object(&item) {
            continue;
        }
        let message =
            format!("{} takes objects of any form, so it is not found as a place for media", quote(name));
        let at = FindingLocation::Value(format!("{}{}", section.pointer, pointer("/properties", name)));
        let finding = Finding::warning(&section.file, at, "schema/media", message);
        found.push(finding.hint(
            "If it takes media, describe its items as `$defs/MediaInput` of `cogn init NAME --media image` does",
        ));
    }
}

/// Returns whether the items of a list are objects without a single described member.
fn takes_any_object(item: &ContractPlace<'_>) -> bool {
    item.types() == JsonTypes::OBJECT
        && item.names().is_empty()
        && matches!(item.member("url"), MemberDescription::Open | MemberDescription::Undescribed)
}
