//! Resolves the author options of a run: another model, a draft or another version of the module, and recording of
//! replies. A draft or version may not have more permissions than the installed module, nor use modules that are not
//! offered.

use std::sync::Arc;

use cognitive_contract::text::is_plain_name;
use cognitive_contract::{ErrorCode, Failure, Module};
use cognitive_ports::module_editor::ModuleEditor;
use cognitive_runtime::compose::overview;
use cognitive_runtime::{Host, SeenReplies};
use serde_json::json;

use crate::app::AppState;
use crate::auth::Client;
use crate::catalog::author_work;
use crate::request::Options;
use crate::roles::KeyRole;

/// The host and the module of a run.
pub(crate) struct ChosenRun {
    pub(crate) host: Arc<Host>,
    pub(crate) module: Arc<Module>,
    /// The recorder of model replies, if requested.
    pub(crate) seen: Option<SeenReplies>,
}

impl AppState {
    /// Resolves the options of a request; most requests have none. A broken module can still be run as a draft that
    /// repairs it, or as another version.
    pub(crate) async fn choose(
        self: &Arc<Self>,
        client: &Client,
        name: &str,
        module: Result<Arc<Module>, Failure>,
        asked: &mut Options,
    ) -> Result<ChosenRun, Failure> {
        let (model, draft, version) = (asked.model.take(), asked.draft.take(), asked.version.take());
        let (is_recorded, replaces_files) =
            (std::mem::take(&mut asked.record), draft.is_some() || version.is_some());
        if model.is_none() && draft.is_none() && version.is_none() && !is_recorded {
            return Ok(ChosenRun { host: Arc::clone(&self.host), module: module?, seen: None });
        }
        client.roles.need(KeyRole::Author)?;
        let module = match module {
            Err(failure) if draft.is_none() && version.is_none() => return Err(failure),
            Err(failure) if !is_plain_name(name) || !self.offers(name) => return Err(failure),
            found => found.ok(),
        };
        let name = name.to_owned();
        author_work(self, client, move |shared| {
            let chosen = match (draft, version, &module) {
                (Some(_), Some(_), _) => return Err(draft_of_version()),
                (Some(files), None, _) => shared.module_editor()?.draft(&name, &files)?,
                (None, Some(version), _) => shared.module_editor()?.version(&name, &version)?,
                (None, None, Some(module)) => Arc::clone(module),
                (None, None, None) => return Err(crate::catalog::no_module(&name)),
            };
            leads_nowhere_new(shared, module.as_deref(), &chosen)?;
            let host = match model {
                None => Arc::clone(&shared.host),
                Some(model) => {
                    let provider = shared.models.provider(&model)?;
                    Arc::new(shared.host.for_runs_of(&chosen.manifest.name, provider.into()))
                }
            };
            // A model alone may be the choice of a program; other files, and an answer for a test, are an author's trial.
            let host = if is_recorded || replaces_files { Arc::new(host.for_experiments()) } else { host };
            if !is_recorded {
                return Ok(ChosenRun { host, module: chosen, seen: None });
            }
            let (host, seen) = host.with_recording();
            Ok(ChosenRun { host: Arc::new(host), module: chosen, seen: Some(seen) })
        })
        .await?
    }

    /// Returns the access to module files. (E4007)
    pub(crate) fn module_editor(&self) -> Result<&dyn ModuleEditor, Failure> {
        self.config.module_editor.as_deref().ok_or_else(|| {
            Failure::new(ErrorCode::PermissionDenied, "this server does not show the files of modules")
                .suggest("Contact the server operator")
        })
    }
}

/// A draft changes the installed files, and a version has other files.
fn draft_of_version() -> Failure {
    Failure::new(ErrorCode::InvalidInput, "`draft` and `version` exclude each other")
        .suggest("Send the files of the version as the draft")
}

/// Fails if a draft or version uses a module that the installed one does not use and that is not offered. (E4007)
fn leads_nowhere_new(shared: &AppState, installed: Option<&Module>, chosen: &Module) -> Result<(), Failure> {
    if chosen.is_standalone() || installed.is_some_and(|installed| std::ptr::eq(installed, chosen)) {
        return Ok(());
    }
    let modules = shared.host.modules.as_ref();
    let known = installed.and_then(|installed| overview(modules, installed).ok());
    let known = known.map(|overview| overview.modules).unwrap_or_default();
    let needed = overview(modules, chosen)?.modules;
    let is_new = |name: &str| known.iter().all(|member| member.name != name) && !shared.offers(name);
    match needed.iter().skip(1).find(|member| is_new(&member.name)) {
        None => Ok(()),
        Some(member) => {
            let message =
                format!("the draft needs a module that this server does not offer: `{}`", member.name);
            Err(Failure::new(ErrorCode::PermissionDenied, message)
                .with_detail("module", json!(member.name))
                .suggest("`GET /api/modules` lists the modules"))
        }
    }
}
