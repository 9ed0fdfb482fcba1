//! `cogn init`: creates a new module folder that is valid at once. Never changes an existing folder, and never leaves
//! an incomplete one behind.
//!
//! The minimal form is three short files and a test. In the full form each tier has a small working task, and features
//! extend it. The files are stored in `templates/`, a folder per tier and feature, where they can be read and edited.

mod contract;
mod error;
mod folder;
mod manifest;
mod minimal;
mod name;
mod part;
mod prompt;
mod texts;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cognitive_contract::manifest::{InputModality, Tier};
use cognitive_schema::SCHEMA_FILE;

use part::BundledPart;

pub use error::InitError;
pub use folder::create as write_new_folder;
pub use minimal::EXAMPLE_TEXT;
pub use name::{check as check_new_name, suggestion as suggested_name};

/// An optional capability of a new module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Feature {
    /// Streams its answer.
    Streaming,
    /// Accepts this kind of media. `Text` adds nothing: text is always accepted.
    Media(InputModality),
    /// Accepts a conversation and a session state, and returns the state.
    Context,
    /// Calls another module first and uses its result.
    Compose,
}

/// The options of a new module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Its name, which is also the name of its folder.
    pub name: String,
    /// The tier: how much freedom the module has.
    pub tier: Tier,
    /// The optional capabilities.
    pub features: BTreeSet<Feature>,
    /// True if every section is written out, with comments.
    pub full: bool,
    /// The path of the schema of `module.yaml` for editors, relative to the module's folder.
    pub editor_schema: Option<String>,
}

impl Template {
    /// Creates a plain template of a tier, in its shortest form.
    #[must_use]
    pub fn new(name: impl Into<String>, tier: Tier) -> Self {
        Self { name: name.into(), tier, features: BTreeSet::new(), full: false, editor_schema: None }
    }

    /// Selects the full form, with every section written out.
    #[must_use]
    pub fn in_full(mut self) -> Self {
        self.full = true;
        self
    }

    /// Returns whether the module gets the shortest form. Media, context and parts need sections that this form lacks.
    #[must_use]
    pub fn is_minimal(&self) -> bool {
        !self.full && self.features.iter().all(|feature| *feature == Feature::Streaming)
    }

    /// Adds a feature.
    #[must_use]
    pub fn with(mut self, feature: Feature) -> Self {
        self.features.insert(feature);
        self
    }

    fn has(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }

    /// The kinds of media other than text, in the order of the manifest.
    fn media(&self) -> Vec<InputModality> {
        let kinds = self.features.iter().filter_map(|feature| match feature {
            Feature::Media(kind) if *kind != InputModality::Text => Some(*kind),
            _ => None,
        });
        kinds.collect()
    }
}

/// Returns the files of a new module: path inside its folder → content. Writes nothing.
pub fn files(template: &Template) -> Result<BTreeMap<String, String>, InitError> {
    name::check(&template.name)?;
    let mut files = if template.is_minimal() { minimal::files(template) } else { full(template) };
    if let (Some(place), Some(manifest)) = (&template.editor_schema, files.get_mut("module.yaml")) {
        manifest.insert_str(0, &format!("# yaml-language-server: $schema={place}\n"));
    }
    Ok(files)
}

fn full(template: &Template) -> BTreeMap<String, String> {
    let files = [
        ("module.yaml", manifest::text(template)),
        ("prompt.md", prompt::text(template)),
        (SCHEMA_FILE, contract::schema(template)),
        ("tests/example.input.json", contract::input(template)),
        ("tests/example.expected.json", texts::full_texts(template.tier).expected.to_owned()),
        ("tests/example.reply.txt", contract::reply(template)),
    ];
    let part = template.has(Feature::Compose).then(|| BundledPart::for_template(template));
    let part = part.map(|part| (part.reply_file(), part.reply.to_owned()));
    files.into_iter().map(|(path, text)| (path.to_owned(), text)).chain(part).collect()
}

/// Creates the folder `parent/NAME`, completely or not at all, and returns its path. Missing parents are created and
/// stay, even on failure.
pub fn create(parent: &Path, template: &Template) -> Result<PathBuf, InitError> {
    folder::create(parent, &template.name, &files(template)?)
}

#[cfg(test)]
mod tests;
