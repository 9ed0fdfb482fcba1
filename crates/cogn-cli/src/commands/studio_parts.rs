//! The parts of `cogn serve` for Studio: models that authors may name, module files, their git history, and test cases.
//! Only the operator decides which folders may be changed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use cognitive_contract::Failure;
use cognitive_http::{NamedModel, ServerConfig};
use cognitive_library::Library;
use cognitive_packages::git_history;
use cognitive_setup::config::Config;
use cognitive_setup::module_editor::{FolderEditor, FolderPast, PastState};
use cognitive_setup::named_models::{LazyModel, named_models};
use cognitive_setup::serve_config::ServeConfig;
use cognitive_setup::settings::{SettingOverrides, Settings};
use cognitive_testing::{FolderCases, GoldenExpectations};

use crate::printer::Printer;

/// Adds these parts to a server.
pub(super) fn add(
    config: &mut ServerConfig,
    serve: &ServeConfig,
    (settings, typed, file): (&Settings, &SettingOverrides, &Config),
    library: &Library,
    printer: &Printer,
) -> Result<(), Failure> {
    config.studio = serve.studio != Some(false);
    let names = serve.models.as_deref().unwrap_or_default();
    let (models, left_out) = named_models(names, settings, typed, file)?;
    for line in &left_out {
        printer.warning(line);
    }
    let lazy = models.into_iter().map(|model| {
        let LazyModel { name, is_local, make } = model;
        NamedModel { name, is_local, make }
    });
    config.models = lazy.collect();
    let module_editor = FolderEditor::new(library.clone())
        .with_editable(serve.edit.as_deref().unwrap_or_default())?
        .reading(Arc::new(GoldenExpectations))
        .with_history(Arc::new(GitPast));
    let module_editor = Arc::new(module_editor);
    config.cases = Some(Arc::new(FolderCases::new(Arc::clone(&module_editor))));
    config.module_editor = Some(module_editor);
    Ok(())
}

/// The git history of a module folder, if it is in a repository.
struct GitPast;

impl FolderPast for GitPast {
    fn states(&self, folder: &Path, most: usize) -> Vec<PastState> {
        let commits = git_history::commits(folder, most).into_iter();
        commits.map(|commit| PastState { id: commit.id, at: commit.at, about: commit.subject }).collect()
    }

    fn files(&self, folder: &Path, id: &str) -> Option<BTreeMap<String, Vec<u8>>> {
        git_history::files_at(folder, id)
    }
}
