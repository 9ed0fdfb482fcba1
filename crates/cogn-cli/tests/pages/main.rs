//! The documentation, run as a reader would: every console block of README.md and docs/ runs in order, in an empty
//! folder per page, and its output is compared. Also checks that the first own module takes as few steps as promised.
//!
//! CONTRIBUTING.md describes the attributes of `console` blocks. Commands that call a hosted model get recorded replies
//! of the bundled modules from a local stub.

// The pages use a shell that Windows does not have.
#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test, a panic is the report"
)]

mod blocks;
mod errors;
mod outcome;
mod session;

use std::fs;
use std::path::{Path, PathBuf};

use blocks::{Block, blocks};
use cognitive_testkit::Home;
use session::Session;

/// A home with nothing from this machine, whose programs have a key.
fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_cogn")).with("OPENAI_API_KEY", "sk-test")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns README.md, the page of the vectors and every page in docs/.
fn pages() -> Vec<PathBuf> {
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> =
        docs.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
    pages.sort();
    pages.extend([root().join("README.md"), root().join("conformance/README.md")]);
    pages
}

fn read(page: &Path) -> Vec<Block> {
    blocks(&fs::read_to_string(page).unwrap())
}

#[test]
fn every_console_block_prints_what_it_shows() {
    let only = std::env::var("COGN_TEST_PAGE").unwrap_or_default();
    let pages = pages().into_iter().filter(|page| page.ends_with(&only) || only.is_empty());
    let mut wrong = Vec::new();
    let mut run = 0;
    for page in pages {
        let name = page.strip_prefix(root()).unwrap().display().to_string();
        let mut session = Session::new(&root());
        for block in read(&page) {
            match session.follow(&block) {
                Ok(commands) => run += commands,
                Err(why) => wrong.push(format!("{name}:{}: {why}", block.line)),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(run > 50 || !only.is_empty(), "only {run} commands were run");
}

// Commands of this program must be in console blocks, because those are run.
#[test]
fn commands_stand_in_blocks_that_are_run() {
    for page in pages() {
        for block in read(&page).iter().filter(|block| block.language == "sh") {
            let ours = block.lines.iter().find(|line| line.starts_with("cogn ") || line.starts_with("$ "));
            assert!(
                ours.is_none(),
                "{}:{}: {ours:?} belongs into a console block",
                page.display(),
                block.line
            );
        }
    }
}

// From an empty folder to a first own module with a passing golden test: at most 6 commands and 20 typed lines.
#[test]
fn a_first_own_module_takes_six_commands_and_twenty_lines() {
    let page = root().join("docs/first-module.md");
    let consoles = read(&page).into_iter().filter(|block| block.language == "console" && block.is_run());
    let commands: Vec<_> = consoles.flat_map(|block| block.commands()).collect();
    let typed: usize = commands.iter().map(|command| command.typed.len()).sum();
    assert!(commands.len() <= 6 && typed <= 20, "{} commands, {typed} lines", commands.len());
    let last = commands.last().unwrap();
    assert!(last.shown.iter().any(|line| line.contains("passed, 0 failed")), "{last:?}");
}

/// The first picture of README shows what the program prints today, with indentation that every browser keeps.
#[test]
fn the_first_picture_shows_what_the_program_prints() {
    let picture = fs::read_to_string(root().join("docs/first-run.svg")).unwrap();
    assert!(!picture.contains("xml:space"), "browsers do not inherit it");
    let texts = picture.split("<text ").skip(1).map(|text| {
        let (_, text) = text.split_once('>').unwrap();
        text.split_once("</text>").unwrap().0.replace("&quot;", "\"")
    });
    let texts: Vec<String> = texts.collect();
    assert!(texts.iter().all(|text| !text.starts_with(' ')), "a leading space is not shown: {texts:?}");
    assert!(texts.iter().any(|text| text.starts_with("\u{a0}\u{a0}")), "{texts:?}");
    let Some(weights) = cognitive_testkit::weights() else { return };
    let home = Home::new(env!("CARGO_BIN_EXE_cogn"));
    let environment = [("COGN_MODEL", weights.to_str().unwrap()), ("COLUMNS", "120")];
    let text = "text=The delivery came two weeks late and the box was broken.";
    let said = |form| home.run(&["run", "text-classifier", "--set", text, form], &environment, "").all();
    let (card, json) = (said("--view"), said("--pretty"));
    // Lines with `…` are shortened, and `, ` joins members of the JSON.
    let shown = texts.iter().map(|text| text.replace('\u{a0}', " ")).filter(|text| !text.contains('…'));
    for line in shown.skip_while(|line| line.starts_with('$') || line.starts_with("    --set")) {
        let is_there = |part: &str| card.contains(part) || json.contains(part);
        assert!(line.trim().split(", ").all(|part| is_there(part.trim())), "{line}\n{card}\n{json}");
    }
}
