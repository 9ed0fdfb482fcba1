//! The values that a shell suggests for an argument: modules by name or path, providers, models, error codes. Reads
//! only folder names, so that an untrusted module cannot slow down a shell.

use std::ffi::OsStr;

use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _,
};
use cognitive_contract::ErrorCode;
use cognitive_net::Kind;
use cognitive_setup::settings::EMBEDDED;
use cognitive_setup::weights::{AddedWeights, KNOWN_WEIGHTS};
use cognitive_setup::wiring;

/// Suggests modules by name, and folders if the word begins like a path.
pub(crate) fn modules() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let text = typed.to_string_lossy();
        if text.starts_with('.') || text.contains('/') {
            return PathCompleter::dir().complete(typed);
        }
        let found = wiring::library().list().into_iter().filter(|found| found.name.starts_with(&*text));
        found
            .map(|found| CompletionCandidate::new(found.name).help(Some(found.origin.word().into())))
            .collect()
    })
}

/// Suggests providers by name.
pub(crate) fn providers() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let names = [EMBEDDED].into_iter().chain(Kind::all().map(Kind::name)).chain(["replay"]);
        names.map(CompletionCandidate::new).collect()
    })
}

/// Suggests embedded models by name.
pub(crate) fn models() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let known = KNOWN_WEIGHTS.iter().map(|known| known.short().to_owned());
        let added = AddedWeights::all(&wiring::environment).into_iter().map(|added| added.name);
        known.chain(added).map(CompletionCandidate::new).collect()
    })
}

/// Suggests error codes by number, with their names.
pub(crate) fn codes() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        ErrorCode::all()
            .map(|code| CompletionCandidate::new(code.number()).help(Some(code.name().into())))
            .collect()
    })
}
