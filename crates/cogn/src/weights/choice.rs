//! Which weights answer: known ones, some of one's own, or any file. A name stands for weights only if they are known or were
//! added; an answer of other weights than those that were asked for would be worse than none.

use std::path::{Path, PathBuf};

use super::{AddedWeights, KnownWeights, SMOLLM2, WeightsFolder};
use crate::settings::Environment;

/// The weights that were chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WeightsChoice {
    /// Nobody named any: those in this program, else the usual ones.
    Usual,
    /// Known ones, by their name.
    Known(&'static KnownWeights),
    /// Some of the user's own, by the name that they were given.
    Added(AddedWeights),
    /// A file.
    File(PathBuf),
}

impl WeightsChoice {
    /// What a name stands for: known or added weights, or a file that ends in `.gguf`.
    #[must_use]
    pub fn named(name: &str, environment: Environment<'_>) -> Option<Self> {
        if let Some(file) = weights_file(name) {
            return Some(Self::File(file));
        }
        let known = || KnownWeights::named(name).map(Self::Known);
        known().or_else(|| AddedWeights::find(name, environment).map(Self::Added))
    }

    /// The known weights that it stands for.
    #[must_use]
    pub fn known(&self) -> Option<&'static KnownWeights> {
        match self {
            Self::Usual => Some(&SMOLLM2),
            Self::Known(known) => Some(known),
            Self::Added(_) | Self::File(_) => None,
        }
    }

    /// The name in `meta.model`, after `embedded/`.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Usual => SMOLLM2.name.to_owned(),
            Self::Known(known) => known.name.to_owned(),
            Self::Added(added) => added.name.clone(),
            Self::File(file) => file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        }
    }

    /// Where they lie, or would; `None` if nobody knows where the user's cache is.
    #[must_use]
    pub fn file(&self, environment: Environment<'_>) -> Option<PathBuf> {
        match self {
            Self::File(file) => Some(file.clone()),
            Self::Added(added) => Some(WeightsFolder::of_name(&added.name, environment)?.file()),
            Self::Usual | Self::Known(_) => Some(WeightsFolder::of(self.known()?, environment)?.file()),
        }
    }
}

/// The file that the name of a model stands for, if it stands for one.
pub(crate) fn weights_file(name: &str) -> Option<PathBuf> {
    let path = Path::new(name);
    let is_file = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gguf"));
    is_file.then(|| path.to_owned())
}
