//! `cogn publish MODULE oci://host/repository[:tag]`: uploads a package to any OCI registry. The default tag is the
//! version. A published version is overwritten only with `--force`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cognitive_library::Library;
use cognitive_net::registry::OciClient;
use cognitive_packages::oci::{MANIFEST_TYPE, is_tag, upload_of};
use cognitive_packages::{OciReference, Package, PackageError, PackageSource, check_publishable};
use cognitive_setup::async_runtime;
use serde_json::json;

use super::pack::package_of;
use super::sign::signature_of;
use crate::args::candidates;
use crate::packages::obtain::Obtainer;
use crate::packages::{ReachArgs, TellArgs, refuse};
use crate::printer::{Exit, FAINT, GOOD, HEAD, Printer};

/// Options of `publish`.
#[derive(Debug, clap::Args)]
pub struct PublishArgs {
    /// Name of an installed module, or path of a folder
    #[arg(add = candidates::modules())]
    module: String,
    /// Destination: `oci://host/repository[:tag]`; the default tag is the version of the module
    target: String,
    /// Sign the package with the secret key in this file
    #[arg(long, value_name = "FILE")]
    secret_key: Option<PathBuf>,
    /// Connect to the registry without TLS; the default only for a registry on this machine
    #[arg(long)]
    plain_http: bool,
    /// Move the tag to this package even if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    tell: TellArgs,
}

/// Uploads the package, and prints its immutable reference.
pub fn publish(args: &PublishArgs, library: &Library, printer: &Printer) -> Exit {
    match send(args, library) {
        Ok((package, tag, pinned)) => {
            if args.tell.json {
                printer.json(&json!({
                    "name": package.name(), "version": package.version(), "tag": tag, "reference": pinned, "sha256": package.sha256,
                }));
            } else {
                let word = if args.tell.dry_run { "would be published" } else { "published" };
                printer.err(format!(
                    "{GOOD}{word}{GOOD:#} {HEAD}{}{HEAD:#} {} {FAINT}as {tag}{FAINT:#}",
                    package.name(),
                    package.version()
                ));
                printer.print_line(&pinned);
            }
            Exit::Good
        }
        Err(error) => refuse(&error, printer),
    }
}

fn send(args: &PublishArgs, library: &Library) -> Result<(Package, String, String), PackageError> {
    let package = package_of(&args.module, library)?;
    check_publishable(package.name(), None)?;
    let reference = target(&args.target, &package)?;
    let signature = args.secret_key.as_deref().map(|key| signature_of(&package, key)).transpose()?;
    let upload = upload_of(&package, signature.as_deref());
    let digest = format!("sha256:{}", cognitive_packages::sha256(&upload.manifest));
    let reach = ReachArgs { plain_http: args.plain_http, registry: None };
    let obtainer =
        Obtainer { reach: &reach, keys: Vec::new(), signers: BTreeMap::new(), root: PathBuf::new() };
    if !args.tell.dry_run {
        let client = obtainer.oci_client(&reference)?;
        let runtime = async_runtime::on_this_thread_and_others()?;
        runtime.block_on(async {
            if !args.force {
                check_free(&client, &reference, &digest).await?;
            }
            client.put_blob(&reference.repository, &upload.config).await?;
            client.put_blob(&reference.repository, &package.archive).await?;
            // The manifest is last, so that everything it names exists when it becomes visible.
            client
                .put_manifest(&reference.repository, reference.target(), MANIFEST_TYPE, &upload.manifest)
                .await?;
            Ok::<(), PackageError>(())
        })?;
    }
    let pinned = PackageSource::Oci(reference.with_digest(&digest)).to_string();
    Ok((package, PackageSource::Oci(reference).to_string(), pinned))
}

fn target(text: &str, package: &Package) -> Result<OciReference, PackageError> {
    let source = PackageSource::parse(text)?;
    let PackageSource::Oci(mut reference) = source else {
        return Err(PackageError::new(format!(
            "cannot publish to: `{source}`"
        ))
        .hint("Use `oci://host/repository`; for an index of plain files, use `cogn pack` and `cogn registry build`"));
    };
    if reference.digest.is_some() {
        return Err(PackageError::new("cannot publish to a digest, because it depends on the package"));
    }
    if reference.tag.is_none() {
        let version = package.version();
        if !is_tag(version) {
            return Err(PackageError::new(format!("the version cannot be a tag: `{version}`"))
                .hint("Name a tag: `oci://host/repository:tag`"));
        }
        reference.tag = Some(version.to_owned());
    }
    Ok(reference)
}

/// Refuses to change a published version: lock files of other users have its hash.
async fn check_free(client: &OciClient, reference: &OciReference, digest: &str) -> Result<(), PackageError> {
    match client.manifest(&reference.repository, reference.target()).await {
        Ok(there) if there.digest != digest => {
            Err(PackageError::new(format!("the tag belongs to another package: `{reference}`"))
                .hint("Raise the version in `module.yaml`; `--force` moves the tag"))
        }
        // A new repository is reported as an error here; any real error also occurs during the upload.
        _ => Ok(()),
    }
}
