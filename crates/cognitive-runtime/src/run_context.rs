//! The context that a run gets from earlier runs of the same owner, and the context that it stores for later ones.
//! The rules are in `cognitive_contract::context`; this file adds store, owner and time.
//! A failing store causes a warning, never a failed run.

use std::time::SystemTime;

use cognitive_contract::address::shown_reason;
use cognitive_contract::context::{
    ContextEntry, ContextFilter, ContextScope, EMITTED, Origin, Owner, Sanitiser, Variables, check_emission,
    choose,
};
use cognitive_contract::ports::ContextStore;
use cognitive_contract::{Envelope, Module, Warning};
use serde_json::{Map, Value};

use crate::clock::Clock;
use crate::host::RunOptions;
use crate::receipt::input_sha256;
use crate::stages::input::ParsedInput;

/// The code of warnings about context, as in the contract crate.
pub(crate) const NOTICE: &str = "CONTEXT";

/// The type of context that caches what a module found out about one input.
pub(crate) const CACHE: &str = "analysis_cache";

/// The context of one run: its owner, its store and its clock.
#[derive(Clone)]
pub struct RunContext<'a> {
    pub(crate) store: Option<&'a dyn ContextStore>,
    pub(crate) owner: Owner,
    clock: &'a Clock,
    session: Option<&'a str>,
    pub(crate) sanitiser: Sanitiser,
}

impl<'a> RunContext<'a> {
    /// The context of a run with these options.
    #[must_use]
    pub fn new(store: Option<&'a dyn ContextStore>, clock: &'a Clock, options: &'a RunOptions) -> Self {
        let given = |id: &'a Option<String>| id.as_deref().filter(|id| !id.is_empty());
        Self {
            store,
            owner: Owner::new(given(&options.tenant), given(&options.user)),
            clock,
            session: given(&options.session),
            sanitiser: Sanitiser::default(),
        }
    }

    /// Sets the operator's rules on secrets, for a preview of the model's prompt.
    #[must_use]
    pub fn with_sanitiser(mut self, sanitiser: Sanitiser) -> Self {
        self.sanitiser = sanitiser;
        self
    }

    /// The current time.
    pub(crate) fn now(&self) -> SystemTime {
        self.clock.now()
    }

    /// Returns stored context of the types that a module accepts and that are missing from the input, by type.
    #[must_use]
    pub fn recall(&self, module: &Module, input: &ParsedInput) -> (Map<String, Value>, Vec<Warning>) {
        let (mut recalled, mut warnings) = (Map::new(), Vec::new());
        let Some(store) = self.store.filter(|_| !module.manifest.context.accepts.is_empty()) else {
            return (recalled, warnings);
        };
        let now = self.now();
        let input_hash = input_sha256(input.value());
        let from = ContextScope { session: self.session, input_hash: Some(&input_hash) };
        let hash = || input_hash.clone();
        let reader = self.variables(module, &hash);
        for accept in &module.manifest.context.accepts {
            if input.context().is_some_and(|given| given.contains_key(&accept.kind)) {
                continue;
            }
            let filter = ContextFilter { kind: Some(&accept.kind), from: Some(from) };
            match store.list(&self.owner, filter, now) {
                Ok(entries) => {
                    let chosen = choose(accept, &entries, &reader, now);
                    recalled.extend(chosen.map(|entry| (accept.kind.clone(), entry.value.clone())));
                }
                Err(reason) => {
                    let message = format!("stored context cannot be read: {reason}");
                    warnings.push(Warning::new(NOTICE, message));
                    break;
                }
            }
        }
        (recalled, warnings)
    }

    /// Checks the context that an answer hands on, removes everything else from the envelope, and stores it. A
    /// failure hands on nothing. A cached answer does not prolong the lifetime of its `analysis_cache` entries.
    #[must_use]
    pub fn forward_context(
        &self,
        module: &Module,
        input_hash: &dyn Fn() -> String,
        envelope: &mut Envelope,
        is_new: bool,
    ) -> Vec<Warning> {
        let given = envelope.take_extra_member(EMITTED);
        if !envelope.ok() {
            let message = "emitted context was dropped: the run failed";
            return given.map(|_| Warning::new(NOTICE, message)).into_iter().collect();
        }
        let origin = Origin { variables: self.variables(module, input_hash), now: self.now() };
        let emission = check_emission(module, given.as_ref(), &origin);
        if !emission.visible.is_empty() {
            envelope.set_extra_member(EMITTED, Value::Object(emission.visible));
        }
        let mut warnings = emission.warnings;
        let entries = emission.entries.into_iter().filter(|entry| is_new || entry.kind != CACHE);
        warnings.extend(self.keep_all(&entries.collect::<Vec<_>>()));
        warnings
    }

    fn keep_all(&self, entries: &[ContextEntry]) -> Option<Warning> {
        let warning = |why: &str| Warning::new(NOTICE, format!("emitted context is not stored: {why}"));
        if entries.is_empty() {
            return None;
        }
        let Some(store) = self.store else { return Some(warning("this host has no store")) };
        let kept = entries.iter().try_for_each(|entry| store.put(&self.owner, entry, entry.created));
        // Local callers find the place of the store with `cogn doctor`.
        kept.err().map(|reason| warning(shown_reason(&reason, true)))
    }

    /// The values that context keys are built from.
    pub(crate) fn variables<'v>(
        &'v self,
        module: &'v Module,
        input_hash: &'v dyn Fn() -> String,
    ) -> Variables<'v> {
        Variables {
            module: &module.manifest.name,
            input_hash,
            user_id: self.owner.user_id(),
            session_id: self.session,
        }
    }
}
