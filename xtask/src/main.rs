//! Maintenance: generated pages and the rules of this repository. `cargo xtask generate` writes the pages. `cargo xtask
//! prose` measures the language, `cargo xtask mutants` the tests, and `cargo xtask eval-public` the embedded models on
//! public sets. `cargo test` fails while a page is stale or a rule is broken.

#[cfg(test)]
mod book;
mod cli_page;
mod client_options;
mod config_page;
#[cfg(test)]
mod decisions;
mod module_keys;
mod mutants;
#[cfg(test)]
mod names;
mod page;
#[cfg(test)]
mod platforms;
mod prose;
mod public_api;
mod public_sets;
mod tests_index;
#[cfg(test)]
mod tidy;
#[cfg(test)]
mod traceability;
mod walk;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs, io};

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let gaps = match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["generate"] => generate(),
        ["prose"] => prose(false),
        ["prose", "--list"] => prose(true),
        ["mutants", words @ ..] => mutants::run(&root(), words),
        ["eval-public", rest @ ..] => public_sets::run(rest),
        _ => {
            say(
                "usage: cargo xtask generate\n       cargo xtask prose [--list]\n       cargo xtask mutants [--list] [--sample N] [--seed N] [--jobs N]\n       cargo xtask eval-public DIR [--half first|second] [--model NAME]",
            );
            return ExitCode::from(2);
        }
    };
    match gaps {
        Ok(gaps) if gaps.is_empty() => ExitCode::SUCCESS,
        Ok(gaps) => {
            say(&gaps.join("\n"));
            ExitCode::FAILURE
        }
        Err(message) => {
            say(&message);
            ExitCode::FAILURE
        }
    }
}

/// Prints the figures of the prose, and the places if `list` is set. Returns the figures beyond their limits.
fn prose(list: bool) -> Result<Vec<String>, String> {
    let (text, problems) = prose::report(&root(), list)?;
    // A reader such as `head` may leave early.
    let _ = io::stdout().write_all(text.as_bytes());
    Ok(problems)
}

/// Renders a page, from the root of the repository.
type RenderPage = fn(&Path) -> Result<String, String>;

/// The generated pages, except that of the requirements.
const PAGES: [(&str, RenderPage); 8] = [
    (cli_page::PATH, cli_page::render),
    (client_options::PYTHON, client_options::python),
    (client_options::TYPESCRIPT, client_options::typescript),
    (client_options::TYPESCRIPT_WIRE, client_options::wire_types),
    (config_page::PATH, config_page::render),
    (module_keys::PATH, module_keys::render),
    (public_api::PATH, public_api::render),
    (walk::PATH, walk::render),
];

/// Writes the pages and returns the gaps in the list of requirements.
fn generate() -> Result<Vec<String>, String> {
    for (path, render) in PAGES {
        write(path, &render(&root())?)?;
    }
    write(page::PATH, &page::render(&root())?)?;
    page::gaps(&root())
}

fn write(path: &str, text: &str) -> Result<(), String> {
    fs::write(root().join(path), text).map_err(|error| format!("cannot write {path}: {error}"))
}

#[expect(clippy::print_stderr, reason = "a developer's tool without a separate printer")]
fn say(message: &str) {
    eprintln!("{message}");
}
