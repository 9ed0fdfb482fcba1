//! The choice of weights: known ones, added ones, or any file. A name must be known or added: an answer of weights that
//! were not requested would be worse than none.

use std::path::{Path, PathBuf};

use super::{AddedWeights, KnownWeights, SMOLLM2, WeightsFolder};
use crate::settings::Environment;

/// The weights that were chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WeightsChoice {
    /// No weights were named: those in this program, else the default ones.
    Usual,
    /// Known weights, by name.
    Known(&'static KnownWeights),
    /// Weights that the user added, by name.
    Added(AddedWeights),
    /// A file.
    File(PathBuf),
}

impl WeightsChoice {
    /// Resolves a name: known or added weights, or a file that ends in `.gguf`.
    #[must_use]
    pub fn from_name(name: &str, environment: Environment<'_>) -> Option<Self> {
        if let Some(file) = weights_file(name) {
            return Some(Self::File(file));
        }
        let known = || KnownWeights::from_name(name).map(Self::Known);
        known().or_else(|| AddedWeights::find(name, environment).map(Self::Added))
    }

    /// Returns the known weights, if it refers to any.
    #[must_use]
    pub fn known_weights(&self) -> Option<&'static KnownWeights> {
        match self {
            Self::Usual => Some(&SMOLLM2),
            Self::Known(known) => Some(known),
            Self::Added(_) | Self::File(_) => None,
        }
    }

    /// Returns the name in `meta.model`, after `embedded/`.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Usual => SMOLLM2.name.to_owned(),
            Self::Known(known) => known.name.to_owned(),
            Self::Added(added) => added.name.clone(),
            Self::File(file) => file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        }
    }

    /// Returns the path of the weights, whether the file exists or not; `None` if the user's cache is unknown.
    #[must_use]
    pub fn file(&self, environment: Environment<'_>) -> Option<PathBuf> {
        match self {
            Self::File(file) => Some(file.clone()),
            Self::Added(added) => Some(WeightsFolder::from_name(&added.name, environment)?.file()),
            Self::Usual | Self::Known(_) => {
                Some(WeightsFolder::for_weights(self.known_weights()?, environment)?.file())
            }
        }
    }
}

/// Returns the file that a model name refers to, if it ends in `.gguf`.
pub(crate) fn weights_file(name: &str) -> Option<PathBuf> {
    let path = Path::new(name);
    let is_file = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gguf"));
    is_file.then(|| path.to_owned())
}
