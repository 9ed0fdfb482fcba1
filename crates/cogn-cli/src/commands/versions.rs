//! `cogn versions SOURCE` and `cogn search WORDS`: queries an index or a registry. Installs nothing.

use cognitive_packages::{PackageError, PackageSource};
use cognitive_setup::{async_runtime, env_vars};
use serde_json::{Value, json};
use std::collections::BTreeMap;

use crate::packages::obtain::Obtainer;
use crate::packages::package_index::PackageIndex;
use crate::packages::{ReachArgs, refuse};
use crate::printer::{Exit, HEAD, Printer};
use crate::text_table::TextTable;

/// Options of `versions`.
#[derive(Debug, clap::Args)]
pub struct VersionsArgs {
    /// A name of the index, or `oci://host/repository`
    source: String,
    #[command(flatten)]
    reach: ReachArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Options of `search`.
#[derive(Debug, clap::Args)]
pub struct SearchArgs {
    /// Words in names, descriptions and keywords; none for everything
    words: Vec<String>,
    #[command(flatten)]
    reach: ReachArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Lists the versions of a package, newest first.
pub fn versions(args: &VersionsArgs, printer: &Printer) -> Exit {
    let found = match list_versions(args) {
        Ok(found) => found,
        Err(error) => return refuse(&error, printer),
    };
    if args.json {
        printer.json(&json!({ "source": args.source, "versions": found }));
        return Exit::Good;
    }
    for version in &found {
        let version = match version.get("deprecated").and_then(Value::as_str) {
            Some(warning) => format!("{}  {warning}", version_text(version)),
            None => version_text(version).to_owned(),
        };
        printer.print_line(version);
    }
    Exit::Good
}

fn version_text(version: &Value) -> &str {
    version.get("version").and_then(Value::as_str).unwrap_or_default()
}

fn list_versions(args: &VersionsArgs) -> Result<Vec<Value>, PackageError> {
    let runtime = async_runtime::on_this_thread_and_others()?;
    let mut found: Vec<Value> = match PackageSource::parse(&args.source)? {
        PackageSource::Oci(reference) => {
            let obtainer =
                Obtainer { reach: &args.reach, keys: Vec::new(), signers: BTreeMap::new(), root: ".".into() };
            let client = obtainer.oci_client(&reference)?;
            let tags = runtime.block_on(client.tags(&reference.repository))?;
            tags.into_iter().map(|tag| json!({ "version": tag })).collect()
        }
        PackageSource::Registry { name, .. } => {
            let list = runtime.block_on(index(&args.reach)?.versions(&name))?;
            if list.entries.is_empty() && list.old.is_empty() {
                return Err(PackageError::new(format!("no such package in the index: `{name}`"))
                    .hint("`cogn search` lists the packages"));
            }
            let entries = list.entries.iter().map(|entry| match entry.deprecation() {
                Some(warning) => json!({ "version": entry.identity.version, "deprecated": warning }),
                None => json!({ "version": entry.identity.version }),
            });
            entries.chain(list.old.iter().map(|old| json!({ "version": old.version }))).collect()
        }
        other => {
            return Err(PackageError::new(format!("the source has no list of versions: `{other}`"))
                .hint("Use a name of an index, or `oci://host/repository`"));
        }
    };
    found.sort_by_cached_key(|version| {
        let parsed = semver::Version::parse(version_text(version)).ok();
        (std::cmp::Reverse(parsed), version_text(version).to_owned())
    });
    Ok(found)
}

/// Lists the packages that match all words.
pub fn search(args: &SearchArgs, printer: &Printer) -> Exit {
    let found = index(&args.reach).and_then(|index| {
        let runtime = async_runtime::on_this_thread_and_others()?;
        runtime.block_on(index.search(&args.words))
    });
    let list = match found {
        Ok(list) => list,
        Err(error) => return refuse(&error, printer),
    };
    for refused in &list.refused {
        printer.warning(&format!("unusable entry in the index: {refused}"));
    }
    let entries = list
        .entries
        .iter()
        .map(|entry| (&entry.identity.name, &entry.identity.version, &entry.metadata.description));
    let rows: Vec<_> =
        entries.chain(list.old.iter().map(|old| (&old.name, &old.version, &old.description))).collect();
    if args.json {
        let values = rows.iter().map(|(name, version, description)| json!({ "name": name, "version": version, "description": description }));
        printer.json(&json!({ "modules": values.collect::<Vec<_>>() }));
        return Exit::Good;
    }
    let cells = rows.iter().map(|(name, version, description)| {
        vec![format!("{HEAD}{name}{HEAD:#}"), (*version).clone(), (*description).clone()]
    });
    for line in TextTable::without_headings(3).with(cells).lines(printer.width()) {
        printer.print_line(line);
    }
    if rows.is_empty() {
        printer.notice("no such package in the index");
    }
    Exit::Good
}

fn index(reach: &ReachArgs) -> Result<PackageIndex, PackageError> {
    let address = reach.index_address().ok_or_else(|| {
        PackageError::new("no index is configured").hint(format!(
            "Name one with `--registry URL` or `{}`; `cogn registry build` creates one",
            env_vars::REGISTRY
        ))
    })?;
    PackageIndex::at(&address)
}
