//! Installs packages and reports the result: one line per package for users, one object per package for machines.

use cognitive_library::Library;
use cognitive_packages::{
    InstallOutcome, InstalledState, LockedModule, ModuleFolder, Overwrite, PackageError, PackageSource,
};
use serde::Serialize;

use super::obtain::{ObtainedPackage, Obtainer};
use super::refuse;
use crate::printer::{Exit, FAINT, GOOD, HEAD, Printer};

/// The result for one package.
#[derive(Debug, Serialize)]
pub(crate) struct InstallReport {
    name: String,
    version: String,
    /// `added`, `updated`, `unchanged` or `would be …`.
    outcome: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous: Option<String>,
    source: String,
    resolved: String,
    sha256: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    signed_by: Option<String>,
    warnings: Vec<String>,
}

/// The options of an installation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InstallWay {
    /// The modules that may be overwritten.
    pub(crate) overwrite: Overwrite,
    /// Refuses any change to the lock file.
    pub(crate) locked: bool,
    /// Writes nothing.
    pub(crate) dry_run: bool,
}

/// Installs one package.
pub(crate) fn install(
    obtained: ObtainedPackage,
    folder: &ModuleFolder,
    way: InstallWay,
    library: &Library,
) -> Result<InstallReport, PackageError> {
    let ObtainedPackage { package, origin, mut warnings } = obtained;
    let known = folder.load_lock()?.modules.get(package.name()).cloned();
    if way.locked {
        check_locked(package.name(), known.as_ref(), &package.tree, &package.sha256)?;
    }
    let outcome = if way.dry_run {
        match &known {
            Some(known) if known.tree == package.tree => "unchanged".to_owned(),
            Some(_) => "would be updated".to_owned(),
            None => "would be added".to_owned(),
        }
    } else {
        match folder.install(&package, &origin, way.overwrite)? {
            InstallOutcome::Added => "added".to_owned(),
            InstallOutcome::Replaced(_) => "updated".to_owned(),
            InstallOutcome::Unchanged => "unchanged".to_owned(),
        }
    };
    warnings.extend(missing_parts(&package, library));
    Ok(InstallReport {
        name: package.name().to_owned(),
        version: package.version().to_owned(),
        outcome,
        previous: known.map(|known| known.version).filter(|version| version != package.version()),
        source: origin.source,
        resolved: origin.resolved,
        sha256: package.sha256,
        signed_by: origin.signed_by,
        warnings,
    })
}

/// Installs a module of the lock file from its exact recorded source.
pub(crate) fn restore(
    name: &str,
    locked: &LockedModule,
    folder: &ModuleFolder,
    obtainer: &Obtainer<'_>,
    (way, library): (InstallWay, &Library),
) -> Result<InstallReport, PackageError> {
    let source = PackageSource::parse(&locked.resolved)?;
    let report = |outcome: &str, warnings| InstallReport {
        name: name.to_owned(),
        version: locked.version.clone(),
        outcome: outcome.to_owned(),
        previous: None,
        source: locked.source.clone(),
        resolved: locked.resolved.clone(),
        sha256: locked.sha256.clone(),
        signed_by: locked.signed_by.clone(),
        warnings,
    };
    if folder.state(name, locked) == InstalledState::Intact {
        return Ok(report("unchanged", Vec::new()));
    }
    let mut brought = obtainer.obtain(&source, true)?;
    if brought.package.name() != name {
        let found = brought.package.name();
        return Err(PackageError::new(format!("the lock file has another package for `{name}`: `{found}`"))
            .hint("Take the lock file from version control again, or remove the entry and add the module"));
    }
    check_locked(brought.package.name(), Some(locked), &brought.package.tree, &brought.package.sha256)?;
    // The next update needs the original source.
    brought.origin.source.clone_from(&locked.source);
    brought.origin.resolved.clone_from(&locked.resolved);
    install(brought, folder, way, library)
}

fn check_locked(
    name: &str,
    known: Option<&LockedModule>,
    tree: &str,
    sha256: &str,
) -> Result<(), PackageError> {
    match known {
        // Another program may repack the same files, so the hash of the files decides if it is known.
        Some(known) if known.tree == tree || known.sha256 == sha256 => Ok(()),
        Some(known) => Err(PackageError::new(format!(
            "`{name}` differs from the lock file: expected `sha256:{}`, found: `sha256:{sha256}`",
            known.sha256
        ))
        .hint("Remove `--locked` if the change is intended")),
        None => Err(PackageError::new(format!("no such package in the lock file: `{name}`"))
            .hint("Remove `--locked` to add it")),
    }
}

/// Returns the required parts of a composition that are not installed.
fn missing_parts(package: &cognitive_packages::Package, library: &Library) -> Vec<String> {
    let composition = package.module.manifest.composition.as_ref();
    let requires = composition.and_then(|composition| composition.requires.as_deref()).unwrap_or_default();
    let missing = requires.iter().filter(|part| !part.optional && library.find(&part.name).is_err());
    missing
        .map(|part| format!("`{}` needs a module that is not installed: `{}`", package.name(), part.name))
        .collect()
}

/// Installs packages and prints the results. Packages that were installed before a failure stay and are reported.
pub(crate) fn install_and_report(
    json: bool,
    printer: &Printer,
    install_all: impl FnOnce(&mut Vec<InstallReport>) -> Result<(), PackageError>,
) -> Exit {
    let mut reports = Vec::new();
    let done = install_all(&mut reports);
    let shown = show(&reports, json && done.is_ok(), printer);
    match done {
        Ok(()) => shown,
        Err(error) => refuse(&error, printer),
    }
}

/// Prints the reports.
fn show(reports: &[InstallReport], json: bool, printer: &Printer) -> Exit {
    for report in reports {
        for warning in &report.warnings {
            printer.warning(warning);
        }
    }
    if json {
        printer.json(&serde_json::json!({ "modules": reports }));
        return Exit::Good;
    }
    for report in reports {
        let before = report.previous.as_ref().map(|version| format!(" (was {version})")).unwrap_or_default();
        printer.err(format!(
            "{GOOD}{}{GOOD:#} {HEAD}{}{HEAD:#} {}{before} {FAINT}from {}{FAINT:#}",
            report.outcome, report.name, report.version, report.source
        ));
    }
    Exit::Good
}
