//! The contract files in v2.2 form: renames `output` to `data` and completes the sections. Removes nothing, and
//! overwrites only a limit that the envelope would override anyway.

use cognitive_contract::manifest::Overflow;
use cognitive_schema::{Contract, SCHEMA_FILE, SchemaFiles, SectionRef};
use serde_json::{Map, Value, json};

use super::{refs, sections};
use crate::finding::{Finding, FindingLocation};

/// The new contract.
pub(super) struct MigratedSchema {
    /// Every contract file, changed or not.
    pub files: SchemaFiles,
    /// The changes, each with its file.
    pub steps: Vec<(String, String)>,
    /// True if `output` is now called `data`.
    pub renamed: bool,
}

/// Converts the contract to v2.2, or returns the finding that only the author can resolve.
pub(super) fn migrate(
    files: &SchemaFiles,
    contract: &Contract,
    overflow: &Overflow,
) -> Result<MigratedSchema, Finding> {
    let mut new = MigratedSchema { files: files.clone(), steps: Vec::new(), renamed: false };
    new.rename_output(&contract.data().place);
    match new.complete(contract, overflow) {
        Ok(()) => Ok(new),
        Err(finding) => Err(new.in_original_terms(finding)),
    }
}

/// The side of its neighbour where a new section is inserted.
#[derive(Clone, Copy)]
enum InsertSide {
    Before,
    After,
}

impl MigratedSchema {
    fn complete(&mut self, contract: &Contract, overflow: &Overflow) -> Result<(), Finding> {
        self.define_extensions(overflow)?;
        self.complete_data(&self.moved_pointer(&contract.data().place), overflow)?;
        match contract.meta() {
            Some(section) => self.complete_meta(&self.moved_pointer(&section.place))?,
            None => self.add_section("meta", sections::meta_section(), "input", InsertSide::Before),
        }
        if contract.error().is_none() {
            self.add_section("error", sections::error_section(), "data", InsertSide::After);
        }
        Ok(())
    }

    /// Translates a finding back to the author's file, where the section still has its old name.
    fn in_original_terms(&self, mut finding: Finding) -> Finding {
        if let FindingLocation::Value(pointer) = &mut finding.at
            && let Some(rest) =
                pointer.strip_prefix("/data").filter(|_| self.renamed && finding.file == SCHEMA_FILE)
        {
            *pointer = format!("/output{rest}");
        }
        finding
    }

    fn root(&mut self) -> Option<&mut Map<String, Value>> {
        self.files.get_mut(SCHEMA_FILE).and_then(Value::as_object_mut)
    }

    fn note(&mut self, file: &str, what: impl Into<String>) {
        self.steps.push((file.to_owned(), what.into()));
    }

    /// Renames the section `output` to `data`, in place, and updates every reference. An `output` next to an existing
    /// `data`, or one that is not the answer of the module, keeps its name.
    fn rename_output(&mut self, data: &SectionRef) {
        if data.file != SCHEMA_FILE || refs::moved_pointer(&data.pointer).is_none() {
            return;
        }
        let Some(root) = self.root().filter(|root| !root.contains_key("data")) else { return };
        let Some(position) = root.keys().position(|name| name == "output") else { return };
        let Some(section) = root.shift_remove("output") else { return };
        root.shift_insert(position, "data".to_owned(), section);
        self.renamed = true;
        self.note(SCHEMA_FILE, "renamed section `output` to `data`");
        for (file, document) in &mut self.files {
            let followed = refs::follow(document, file);
            if followed > 0 {
                let what = format!("references to `#/output` now point to `#/data`: {followed}");
                self.steps.push((file.clone(), what));
            }
        }
    }

    /// The pointer of a section after the renaming.
    fn moved_pointer(&self, place: &SectionRef) -> SectionRef {
        let moved = (self.renamed && place.file == SCHEMA_FILE).then(|| refs::moved_pointer(&place.pointer));
        match moved.flatten() {
            Some(pointer) => SectionRef { file: place.file.clone(), pointer },
            None => place.clone(),
        }
    }

    fn add_section(&mut self, name: &str, section: Value, neighbour: &str, side: InsertSide) {
        let Some(root) = self.root() else { return };
        let found = root.keys().position(|each| each == neighbour);
        let position = match (found, side) {
            (Some(position), InsertSide::Before) => position,
            (Some(position), InsertSide::After) => position + 1,
            // Without the neighbour: after the leading `$` keys, or before `$defs`.
            (None, InsertSide::Before) => root.keys().take_while(|each| each.starts_with('$')).count(),
            (None, InsertSide::After) => root.keys().take_while(|each| *each != "$defs").count(),
        };
        root.shift_insert(position, name.to_owned(), section);
        self.note(SCHEMA_FILE, format!("added section `{name}`"));
    }

    fn define_extensions(&mut self, overflow: &Overflow) -> Result<(), Finding> {
        if !overflow.enabled {
            return Ok(());
        }
        let Some(root) = self.root() else { return Ok(()) };
        let Value::Object(definitions) = root.entry("$defs").or_insert_with(|| json!({})) else {
            let at = FindingLocation::Value("/$defs".to_owned());
            return Err(Finding::error(SCHEMA_FILE, at, "migrate/defs", "`$defs` must be an object"));
        };
        if !definitions.contains_key("extensions") {
            definitions.insert("extensions".to_owned(), sections::extensions_section(overflow));
            self.note(SCHEMA_FILE, "added `$defs.extensions` for insights");
        }
        Ok(())
    }

    /// Returns the reference of the data section to the definition of insights. If `$defs.extensions` has another
    /// meaning, returns a complete section for the data section instead.
    fn extensions_reference(&self, file: &str, overflow: &Overflow) -> Value {
        let defined = self.files.get(SCHEMA_FILE).and_then(|root| root.pointer("/$defs/extensions"));
        if defined.and_then(|section| section.pointer("/properties/insights")).is_none() {
            return sections::extensions_section(overflow);
        }
        let up = "../".repeat(file.matches('/').count());
        let document = if file == SCHEMA_FILE { String::new() } else { format!("{up}{SCHEMA_FILE}") };
        json!({ "$ref": format!("{document}#/$defs/extensions") })
    }

    /// Returns a section to complete; `None` if it refers to a complete one. Any other reference within the file is
    /// replaced by a copy of its target: other sections may share the target, and a closed schema cannot be completed
    /// from outside.
    fn resolve_section(
        &mut self,
        place: &SectionRef,
        complete: impl Fn(&Value) -> bool,
    ) -> Option<&mut Value> {
        let document = self.files.get_mut(&place.file)?;
        let section = document.pointer(&place.pointer)?;
        if refs::target(document, section).is_some_and(complete) {
            return None;
        }
        let copy = refs::end(document, section).cloned();
        let section = document.pointer_mut(&place.pointer)?;
        if let Some(copy) = copy {
            *section = copy;
        }
        Some(section)
    }

    fn complete_data(&mut self, place: &SectionRef, overflow: &Overflow) -> Result<(), Finding> {
        let extensions = overflow.enabled.then(|| self.extensions_reference(&place.file, overflow));
        let Some(section) = self.resolve_section(place, sections::declares_rationale) else { return Ok(()) };
        let steps = sections::complete_data(section, extensions, place)?;
        self.steps.extend(steps.into_iter().map(|what| (place.file.clone(), what)));
        Ok(())
    }

    fn complete_meta(&mut self, place: &SectionRef) -> Result<(), Finding> {
        let Some(section) = self.resolve_section(place, sections::is_complete_meta) else { return Ok(()) };
        let steps = sections::complete_meta(section, place)?;
        self.steps.extend(steps.into_iter().map(|what| (place.file.clone(), what)));
        Ok(())
    }
}
