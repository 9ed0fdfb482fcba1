//! What a run is made with besides its input: a model that the caller names, and a draft in the place of the module. Both are for
//! authors. A draft may do no more than the module that is installed, and lead to no module that is not offered.

use std::sync::Arc;

use cognitive_contract::workshop::ModuleWorkshop;
use cognitive_contract::{ErrorCode, Failure, Module};
use cognitive_runtime::Host;
use cognitive_runtime::compose::overview;
use serde_json::json;

use crate::app::Shared;
use crate::auth::Client;
use crate::catalog::beside;
use crate::request::Options;
use crate::roles::KeyRole;

/// The surroundings of a run, and what runs.
pub(crate) struct ChosenRun {
    pub(crate) host: Arc<Host>,
    pub(crate) module: Arc<Module>,
}

impl Shared {
    /// Finds what a caller asks for. Most ask for nothing special.
    pub(crate) async fn choose(
        self: &Arc<Self>,
        client: &Client,
        name: &str,
        module: Arc<Module>,
        asked: &mut Options,
    ) -> Result<ChosenRun, Failure> {
        let (model, draft) = (asked.model.take(), asked.draft.take());
        if model.is_none() && draft.is_none() {
            return Ok(ChosenRun { host: Arc::clone(&self.host), module });
        }
        client.roles.need(KeyRole::Author)?;
        let name = name.to_owned();
        beside(self, &self.workbenches, move |shared| {
            let module = match draft {
                None => module,
                Some(files) => {
                    let draft = shared.workshop()?.draft(&name, &files)?;
                    leads_nowhere_new(shared, &module, &draft)?;
                    draft
                }
            };
            let host = match model {
                None => Arc::clone(&shared.host),
                Some(model) => shared.models.host(&shared.host, &model)?,
            };
            Ok(ChosenRun { host, module })
        })
        .await?
    }

    /// Who knows the files of modules. (E4007)
    pub(crate) fn workshop(&self) -> Result<&dyn ModuleWorkshop, Failure> {
        self.config.workshop.as_deref().ok_or_else(|| {
            Failure::new(ErrorCode::PermissionDenied, "this server does not show the files of modules")
                .suggest("Ask whoever runs this server")
        })
    }
}

/// A draft may be made of the modules that its own is made of, and of those that are offered. (E4007)
fn leads_nowhere_new(shared: &Shared, installed: &Module, draft: &Module) -> Result<(), Failure> {
    if draft.stands_alone() {
        return Ok(());
    }
    let modules = shared.host.modules.as_ref();
    let known = overview(modules, installed).map(|overview| overview.modules).unwrap_or_default();
    let needed = overview(modules, draft)?.modules;
    let is_new = |name: &str| known.iter().all(|member| member.name != name) && !shared.offers(name);
    match needed.iter().skip(1).find(|member| is_new(&member.name)) {
        None => Ok(()),
        Some(member) => {
            let message =
                format!("the draft is made of a module that is not offered here: `{}`", member.name);
            Err(Failure::new(ErrorCode::PermissionDenied, message)
                .with_detail("module", json!(member.name))
                .suggest("`GET /api/modules` lists what is offered"))
        }
    }
}
