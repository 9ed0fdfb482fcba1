//! Tests of the documents: generated pages are fresh, every page is in the table of contents, all links resolve, and
//! the static site builds where `mdbook` is installed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cognitive_testkit::{Lack, skip};

use crate::{PAGES, root};

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn generated_pages_are_fresh() {
    for (path, render) in PAGES {
        let page = render(&root()).unwrap();
        let stored = fs::read_to_string(root().join(path)).unwrap_or_default();
        let stale = stored.lines().zip(page.lines()).find(|(old, new)| old != new);
        assert!(stored == page, "{path} is stale; run `cargo xtask generate`. First difference: {stale:#?}");
    }
}

/// The pages of the book, README included.
fn pages() -> Vec<PathBuf> {
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = docs.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let others = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "conformance/README.md"];
    pages.chain(others.map(|path| root().join(path))).collect()
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let summary = read(&root().join("docs/SUMMARY.md"));
    let listed: BTreeSet<&str> = links(&summary).into_iter().collect();
    let names =
        pages().into_iter().filter_map(|page| Some(page.strip_prefix(root().join("docs")).ok()?.to_owned()));
    for name in names.filter(|name| name != Path::new("SUMMARY.md")) {
        assert!(listed.contains(name.to_str().unwrap()), "docs/SUMMARY.md does not list {}", name.display());
    }
}

/// The targets of links, outside code.
fn links(page: &str) -> Vec<&str> {
    let outside = page.split("```").step_by(2);
    outside.flat_map(|text| text.split("](").skip(1)).filter_map(|rest| rest.split(')').next()).collect()
}

/// The anchors of a page, as GitHub and mdBook derive them from headings.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = page.split("```").step_by(2).flat_map(str::lines).filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let text = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = text.chars().filter(|each| each.is_alphanumeric() || " -_".contains(*each));
        kept.map(|each| if each == ' ' { '-' } else { each }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn no_link_leads_nowhere() {
    let mut wrong = Vec::new();
    for page in pages() {
        let text = read(&page);
        for link in links(&text).into_iter().filter(|link| !link.contains("://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            // The site has only the pages of docs/.
            let leaves = page.starts_with(root().join("docs")) && file.contains("..");
            let found =
                target.exists() && !leaves && (anchor.is_empty() || anchors(&read(&target)).contains(anchor));
            if !found {
                wrong.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_site_builds() {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")));
    let cached = cache.map(|cache| cache.join("cogn-tools/mdbook/bin/mdbook"));
    let program = cached.filter(|path| path.exists()).unwrap_or_else(|| PathBuf::from("mdbook"));
    if !Command::new(&program).arg("--version").output().is_ok_and(|output| output.status.success()) {
        return skip(Lack::MdBook);
    }
    let site = std::env::temp_dir().join(format!("cogn-site-{}", std::process::id()));
    let output = Command::new(program).arg("build").arg(root()).arg("-d").arg(&site).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let built =
        ["index.html", "modules.html", "cli.html", "configuration.html"].map(|page| site.join(page).exists());
    let searchable = fs::read_dir(&site).is_ok_and(|entries| {
        entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("searchindex"))
    });
    let _ = fs::remove_dir_all(&site);
    assert!(output.status.success() && built == [true; 4] && searchable, "{built:?} {searchable}\n{said}");
    assert!(!said.contains("WARN") && !said.contains("ERROR"), "{said}");
}
