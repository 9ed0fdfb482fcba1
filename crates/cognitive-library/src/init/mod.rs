//! `cogn init`: a new module folder that is valid at once and that an author likes to start from.
//! Never touches a folder that exists, and never leaves half of a new one behind.
//!
//! The minimal form is three short files and a test. In the full form each tier has a small working task of its own, and
//! features add to it. Prose lives in `templates/`, where it can
//! be read and edited as the Markdown and YAML that it becomes; contracts and examples are built as JSON.

mod definitions;
mod error;
mod example;
mod fill;
mod folder;
mod manifest;
mod minimal;
mod name;
mod part;
mod pretty;
mod prompt;
mod schema;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cognitive_contract::manifest::{InputModality, Tier};
use cognitive_schema::SCHEMA_FILE;

use part::BundledPart;

pub use error::InitError;
pub use folder::create as write_new_folder;
pub use minimal::EXAMPLE_TEXT;
pub use name::{check as check_new_name, suggestion as suggested_name};
pub use pretty::pretty as pretty_json;

/// Something that a new module can do besides its plain task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Feature {
    /// Answers piece by piece.
    Streaming,
    /// Takes this kind of media. `Text` adds nothing: text is always understood.
    Media(InputModality),
    /// Takes a conversation and a session state, and hands the state on.
    Context,
    /// Lets another module work first and uses its result.
    Compose,
}

/// What a new module shall be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Its name, which is also the name of its folder.
    pub name: String,
    /// How much freedom of expression it has.
    pub tier: Tier,
    /// What it can do besides.
    pub features: BTreeSet<Feature>,
    /// Whether every section is written out, with comments.
    pub full: bool,
    /// Where an editor finds the schema of `module.yaml`, seen from the module's folder.
    pub editor_schema: Option<String>,
}

impl Template {
    /// A plain module of a tier, in its shortest form.
    #[must_use]
    pub fn new(name: impl Into<String>, tier: Tier) -> Self {
        Self { name: name.into(), tier, features: BTreeSet::new(), full: false, editor_schema: None }
    }

    /// The same with every section written out.
    #[must_use]
    pub fn written_out(mut self) -> Self {
        self.full = true;
        self
    }

    /// Whether it gets the shortest form: media, context and parts need sections that it does not have.
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

    /// The kinds of media, in the order of the manifest.
    fn media(&self) -> Vec<InputModality> {
        let kinds = self.features.iter().filter_map(|feature| match feature {
            Feature::Media(kind) if *kind != InputModality::Text => Some(*kind),
            _ => None,
        });
        kinds.collect()
    }
}

/// The files of a new module: path inside its folder → content. Writes nothing.
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
        (SCHEMA_FILE, pretty::pretty(&schema::contract(template))),
        ("tests/example.input.json", pretty::pretty(&example::input(template))),
        ("tests/example.expected.json", pretty::pretty(&example::expected(template))),
        ("tests/example.reply.txt", pretty::pretty(&example::reply(template))),
    ];
    let part = template.has(Feature::Compose).then(|| BundledPart::of(template));
    let part = part.map(|part| (part.reply_file(), pretty::pretty(&part.reply())));
    files.into_iter().map(|(path, text)| (path.to_owned(), text)).chain(part).collect()
}

/// Creates the folder `parent/NAME`, as a whole or not at all, and returns its path.
/// Missing parents are created and stay, whatever happens afterwards.
pub fn create(parent: &Path, template: &Template) -> Result<PathBuf, InitError> {
    folder::create(parent, &template.name, &files(template)?)
}

#[cfg(test)]
mod tests;
