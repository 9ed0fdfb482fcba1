//! `cogn update NAME`: installs the newest package from the recorded source. A tag or a version range is kept; a digest
//! or a commit never changes.

use std::collections::BTreeMap;

use cognitive_library::Library;
use cognitive_packages::signature::TrustedKey;
use cognitive_packages::{LockFile, Overwrite, PackageError, PackageSource};

use crate::args::candidates;
use crate::packages::install::{InstallReport, InstallWay, install, install_and_report};
use crate::packages::obtain::Obtainer;
use crate::packages::{FolderArgs, KeyArgs, ReachArgs, TellArgs};
use crate::printer::{Exit, Printer};

/// Options of `update`.
#[derive(Debug, clap::Args)]
pub struct UpdateArgs {
    /// Names of installed packages
    #[arg(required_unless_present = "all", add = candidates::modules())]
    name: Vec<String>,
    /// Update all installed packages
    #[arg(long, conflicts_with = "name")]
    all: bool,
    #[command(flatten)]
    folder: FolderArgs,
    #[command(flatten)]
    reach: ReachArgs,
    #[command(flatten)]
    keys: KeyArgs,
    /// Overwrite local changes, and accept another signer
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    tell: TellArgs,
}

/// Updates the named packages.
pub fn update(args: &UpdateArgs, library: &Library, printer: &Printer) -> Exit {
    install_and_report(args.tell.json, printer, |reports| update_all(args, library, reports))
}

fn update_all(
    args: &UpdateArgs,
    library: &Library,
    reports: &mut Vec<InstallReport>,
) -> Result<(), PackageError> {
    let (folder, root) = args.folder.folder()?;
    let locked = folder.load_lock()?;
    let names = if args.all { locked.modules.keys().cloned().collect() } else { args.name.clone() };
    let overwrite = if args.force { Overwrite::Anything } else { Overwrite::Intact };
    let way = InstallWay { overwrite, locked: false, dry_run: args.tell.dry_run };
    let given = args.keys.keys()?;
    for name in &names {
        let known = locked_module(&locked, name)?;
        let source = PackageSource::parse(&known.source)?;
        let signer = known.signed_by.as_deref().map(TrustedKey::parse).transpose()?;
        let keys = if given.is_empty() { signer.into_iter().collect() } else { given.clone() };
        let signers = BTreeMap::new();
        let obtainer = Obtainer { reach: &args.reach, keys, signers, root: root.clone() };
        let mut brought = obtainer.obtain(&source, true)?;
        brought.origin.source.clone_from(&known.source);
        if brought.package.name() != name {
            let found = brought.package.name();
            return Err(PackageError::new(format!(
                "the source of `{name}` now has another package: `{found}`"
            ))
            .hint("To use it, add it by its source and remove the old one"));
        }
        reports.push(install(brought, &folder, way, library)?);
    }
    Ok(())
}

fn locked_module<'a>(
    locked: &'a LockFile,
    name: &str,
) -> Result<&'a cognitive_packages::LockedModule, PackageError> {
    locked.modules.get(name).ok_or_else(|| {
        PackageError::new(format!("no such installed package: `{name}`"))
            .hint("`cogn add SOURCE` installs one; your own modules need no update")
    })
}
