//! `cogn sign ARCHIVE`: writes a signature file for a package, in the format of `minisign`; `cogn sign --generate FILE`
//! creates the keys. The password comes from the environment: other users can read a command line.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use cognitive_packages::signature::{TrustedKey, generate, needs_password, sign};
use cognitive_packages::{Package, PackageError};
use cognitive_setup::env_vars::SIGN_PASSWORD;
use cognitive_setup::{out_file, wiring};
use serde_json::{Value, json};

use crate::packages::obtain::read_archive;
use crate::packages::refuse;
use crate::platform;
use crate::printer::{Exit, FAINT, GOOD, Printer};

/// Options of `sign`.
#[derive(Debug, clap::Args)]
pub struct SignArgs {
    /// The archive that `cogn pack` wrote
    #[arg(required_unless_present = "generate")]
    archive: Option<PathBuf>,
    /// The file with the secret key
    #[arg(long, value_name = "FILE", required_unless_present = "generate")]
    secret_key: Option<PathBuf>,
    /// Generate a key pair: the secret key FILE and the public key FILE.pub
    #[arg(long, value_name = "FILE", conflicts_with_all = ["archive", "secret_key"])]
    generate: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Signs an archive, or creates keys.
pub fn sign_command(args: &SignArgs, printer: &Printer) -> Exit {
    let done = match (&args.generate, &args.archive, &args.secret_key) {
        (Some(file), ..) => make_keys(file),
        (None, Some(archive), Some(key)) => sign_file(archive, key),
        _ => Err(PackageError::new("an archive and a secret key are required")),
    };
    let (report, lines) = match done {
        Ok(done) => done,
        Err(error) => return refuse(&error, printer),
    };
    if args.json {
        printer.json(&report);
    } else {
        for line in lines {
            printer.err(line);
        }
    }
    Exit::Good
}

/// The output: for machines and for users.
type SignReport = (Value, Vec<String>);

fn make_keys(file: &Path) -> Result<SignReport, PackageError> {
    let public = PathBuf::from(format!("{}.pub", file.display()));
    if let Some(there) = [file, &public].into_iter().find(|path| path.symlink_metadata().is_ok()) {
        return Err(PackageError::new(format!("the file exists: `{}`", there.display()))
            .hint("Choose another name; an overwritten key cannot be restored"));
    }
    let password = wiring::environment(SIGN_PASSWORD).filter(|password| !password.is_empty());
    let is_open = password.is_none();
    let keys = generate(password)?;
    platform::create_private_file(file)
        .and_then(|mut secret| secret.write_all(keys.secret.as_bytes()))
        .map_err(PackageError::io("write", file))?;
    out_file::write(&public, keys.public.as_bytes()).map_err(PackageError::io("write", &public))?;
    let text = TrustedKey::parse(&keys.public)?.text();
    let mut lines = vec![
        format!("{GOOD}created{GOOD:#} {} and {}", file.display(), public.display()),
        format!("{FAINT}users of your packages pass{FAINT:#} --key {text}"),
    ];
    if is_open {
        lines.push(format!("{FAINT}the secret key has no password; {SIGN_PASSWORD} sets one{FAINT:#}"));
    }
    Ok((json!({ "secret_key": file, "public_key": public, "key": text }), lines))
}

fn sign_file(archive: &Path, key: &Path) -> Result<SignReport, PackageError> {
    let bytes = read_archive(archive)?;
    // Refuses to sign a package that could not be installed.
    let package = Package::from_archive(bytes, None)?;
    let signature = signature_of(&package, key)?;
    let file = PathBuf::from(format!("{}.minisig", archive.display()));
    out_file::write(&file, signature.as_bytes()).map_err(PackageError::io("write", &file))?;
    let lines =
        vec![format!("{GOOD}signed{GOOD:#} {} {FAINT}in {}{FAINT:#}", archive.display(), file.display())];
    Ok((json!({ "archive": archive, "signature": file, "sha256": package.sha256 }), lines))
}

/// Signs a package with the key in a file.
pub(super) fn signature_of(package: &Package, key: &Path) -> Result<String, PackageError> {
    let secret = std::fs::read_to_string(key).map_err(PackageError::io("read", key))?;
    let password = wiring::environment(SIGN_PASSWORD).filter(|password| !password.is_empty());
    let password = if needs_password(&secret)? {
        Some(password.ok_or_else(|| {
            PackageError::new("the secret key requires its password").hint(format!("Set `{SIGN_PASSWORD}`"))
        })?)
    } else {
        None
    };
    sign(&secret, password, &package.archive, &package.file_name())
}
