//! `cogn add SOURCE`: installs packages from any supported source; without a source, everything in `cognitive.lock`. If
//! a package cannot be installed, the old one is kept.

use std::collections::BTreeMap;

use cognitive_library::Library;
use cognitive_packages::signature::TrustedKey;
use cognitive_packages::{ModuleFolder, Overwrite, PackageError, PackageSource};

use crate::packages::install::{InstallReport, InstallWay, install, install_and_report, restore};
use crate::packages::obtain::Obtainer;
use crate::packages::{FolderArgs, KeyArgs, ReachArgs, TellArgs};
use crate::printer::{Exit, Printer};

/// Options of `add`.
#[derive(Debug, clap::Args)]
pub struct PackageAddArgs {
    /// A folder, an archive, `https://…`, `github:owner/repo/path@ref`, `git+https://…`, `oci://host/repository:tag`, or
    /// a name of the index; without any, everything in `cognitive.lock`
    source: Vec<String>,
    #[command(flatten)]
    folder: FolderArgs,
    #[command(flatten)]
    reach: ReachArgs,
    #[command(flatten)]
    keys: KeyArgs,
    /// Fail if the lock file would change
    #[arg(long)]
    locked: bool,
    /// Overwrite local changes, and accept another signer
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    tell: TellArgs,
}

/// Installs the requested packages.
pub fn add(args: &PackageAddArgs, library: &Library, printer: &Printer) -> Exit {
    install_and_report(args.tell.json, printer, |reports| add_all(args, library, reports, printer))
}

fn add_all(
    args: &PackageAddArgs,
    library: &Library,
    reports: &mut Vec<InstallReport>,
    printer: &Printer,
) -> Result<(), PackageError> {
    let (folder, root) = args.folder.folder()?;
    let overwrite = if args.force { Overwrite::Anything } else { Overwrite::Intact };
    let way = InstallWay { overwrite, locked: args.locked, dry_run: args.tell.dry_run };
    let keys = args.keys.keys()?;
    let sources: Vec<PackageSource> =
        args.source.iter().map(|text| PackageSource::parse(text)).collect::<Result<_, _>>()?;
    // The next version of an installed package must have the same signer, unless the user accepts another one.
    let signers = if args.force { BTreeMap::new() } else { signers(&folder)? };
    for source in &sources {
        printer.detail("source", source);
        let obtainer =
            Obtainer { reach: &args.reach, keys: keys.clone(), signers: signers.clone(), root: root.clone() };
        reports.push(install(obtainer.obtain(source, false)?, &folder, way, library)?);
    }
    if !sources.is_empty() {
        return Ok(());
    }
    let locked = folder.load_lock()?;
    if locked.modules.is_empty() {
        return Err(PackageError::new(format!(
            "nothing to install: no package in `{}`",
            folder.lock_path().display()
        ))
        .hint("Name a source, as in `cogn add github:owner/repo/module`"));
    }
    for (name, module) in &locked.modules {
        // The original signer must also have signed this copy.
        let signer = module.signed_by.as_deref().map(TrustedKey::parse).transpose()?;
        let keys = if keys.is_empty() { signer.into_iter().collect() } else { keys.clone() };
        let signers = BTreeMap::new();
        let obtainer = Obtainer { reach: &args.reach, keys, signers, root: root.clone() };
        reports.push(restore(name, module, &folder, &obtainer, (way, library))?);
    }
    Ok(())
}

/// Returns the signers of the installed packages by name.
fn signers(folder: &ModuleFolder) -> Result<BTreeMap<String, TrustedKey>, PackageError> {
    let signed =
        folder.load_lock()?.modules.into_iter().filter_map(|(name, module)| Some((name, module.signed_by?)));
    signed.map(|(name, key)| Ok((name, TrustedKey::parse(&key)?))).collect()
}
