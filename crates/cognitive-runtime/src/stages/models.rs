//! Stage 1b: chooses the models that a run may call, from the first up the ladder. (E4001, E4006)
//! Calls none of them. A model that cannot serve the module is left out; if none is left, the run fails with the reason
//! of the first.

use cognitive_contract::media::Category;
use cognitive_contract::ports::Provider;
use cognitive_contract::{ErrorCode, Failure};
use serde_json::json;

use crate::run::Run;
use crate::stages::requirements;

/// Chooses the models of the run. Warns about preferences of the module that the first one does not have.
pub(crate) fn choose(run: &mut Run<'_, '_>) -> Result<(), Failure> {
    let mut suitable = suitable(run)?.into_iter();
    if let Some(first) = suitable.next() {
        (run.provider, run.above) = (first, suitable.collect());
    }
    run.warnings.extend(requirements::warnings(&run.module.manifest, run.provider));
    Ok(())
}

/// Returns the models that can serve the module.
fn suitable<'a>(run: &Run<'a, '_>) -> Result<Vec<&'a dyn Provider>, Failure> {
    let local_only = run.lineage.is_local_only(run.host, run.module);
    let (mut suitable, mut refused) = (Vec::<&'a dyn Provider>::new(), None);
    for provider in run.plan.models.all().map(AsRef::as_ref) {
        let checked = if local_only && !provider.is_local() {
            Err(leaves(provider))
        } else {
            requirements::check(&run.module.manifest, provider)
        };
        match checked {
            Err(failure) => {
                refused.get_or_insert(failure);
            }
            // Media that were converted for one provider cannot be sent to another that takes other forms.
            Ok(()) if suitable.first().is_none_or(|first| accepts_same_media(run, *first, provider)) => {
                suitable.push(provider);
            }
            Ok(()) => {}
        }
    }
    match refused.filter(|_| suitable.is_empty()) {
        Some(failure) => Err(failure),
        None => Ok(suitable),
    }
}

fn leaves(provider: &dyn Provider) -> Failure {
    let name = provider.name();
    let message = format!("the module allows only models on this machine, but this one is remote: `{name}`");
    Failure::new(ErrorCode::PermissionDenied, message).with_detail("provider", json!(name)).suggest(
        "Choose `--provider embedded` or a server on this machine; the cause is `local_only` in the \
         configuration",
    )
}

fn accepts_same_media(run: &Run<'_, '_>, one: &dyn Provider, other: &dyn Provider) -> bool {
    !run.module.manifest.modalities.declared
        || Category::ALL.into_iter().all(|category| {
            one.takes(category) == other.takes(category) && one.gives(category) == other.gives(category)
        })
}
