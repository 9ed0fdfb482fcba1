//! Imports an Agent Skill. A skill that `cogn export skill` wrote is restored byte for byte. For any other skill, the
//! page becomes the prompt, and its reference files are appended. A skill with scripts is a procedure for an agent and
//! not a judgement, so it is refused unless the scripts may be left out.

mod proposal;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use cognitive_contract::Failure;
use cognitive_library::folder::TEXT_LIMIT;
use cognitive_library::{Folder, ModuleLoadError, files_of, load};
use serde_json::{Value, json};

use crate::assemble::assemble;
use crate::draft::{DraftOutput, ImportDraft};
use crate::form::ImportForm;
use crate::front_matter::{FrontMatter, split, text_of};
use crate::name::check_not_reserved;
use crate::prompt_text::OwnPlaceholders;
use crate::source::{file_type, quote, refuse};
use crate::{ImportOptions, ImportedModule};

const PAGE: &str = "SKILL.md";
/// The maximum length of the references that are appended to the prompt. The model reads them in every run, so their
/// cost repeats.
const MAX_REFERENCES: usize = 64 << 10;
/// Extensions of executable files.
const SCRIPTS: [&str; 20] = [
    "bash", "bat", "cjs", "cmd", "exe", "fish", "go", "jar", "js", "lua", "mjs", "php", "pl", "ps1", "py",
    "rb", "rs", "sh", "ts", "zsh",
];

/// Imports the folder of a skill. The path names the folder or its `SKILL.md`.
pub(crate) fn import(path: &Path, options: &ImportOptions) -> Result<ImportedModule, Failure> {
    let folder = folder_of(path)?;
    let files = files_of(&Folder::Disk(folder.clone()))?;
    let page = page(&files)?;
    let parts = split(&page, PAGE)?;
    let is_ours =
        parts.keys.get("metadata").is_some_and(|metadata| metadata.get("cognitive-digest").is_some());
    if is_ours {
        return restore(&parts, &files, options);
    }
    assemble(draft(&folder, &parts, &files, options)?, options)
}

fn folder_of(path: &Path) -> Result<PathBuf, Failure> {
    if file_type(path, "Name the folder itself")?.is_dir() {
        return Ok(path.to_path_buf());
    }
    let parent = path.parent().filter(|_| path.file_name().is_some_and(|name| name == PAGE));
    let folder = parent.map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
    let folder = folder.ok_or_else(|| {
        refuse(format!("not a folder with a `{PAGE}`: `{}`", path.display()), "Name the folder of a skill")
    })?;
    Ok(folder.to_path_buf())
}

fn page(files: &BTreeMap<String, Vec<u8>>) -> Result<String, Failure> {
    let bytes = files
        .get(PAGE)
        .ok_or_else(|| refuse(format!("no `{PAGE}` in the folder"), "Name the folder of a skill"))?;
    if bytes.len() as u64 > TEXT_LIMIT {
        return Err(refuse(format!("`{PAGE}` is larger than 1 MiB"), "Import a smaller skill"));
    }
    text(bytes).ok_or_else(|| refuse(format!("`{PAGE}` is not UTF-8 text"), "Import a text file"))
}

fn text(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))?;
    Some(text.strip_prefix('\u{feff}').unwrap_or(text).to_owned())
}

/// Restores the exported module, if its digest is unchanged.
fn restore(
    parts: &FrontMatter<'_>,
    files: &BTreeMap<String, Vec<u8>>,
    options: &ImportOptions,
) -> Result<ImportedModule, Failure> {
    let name = text_of(&parts.keys, "name").unwrap_or_default();
    cognitive_library::init::check_new_name(name)
        .map_err(|error| refuse(error.to_string(), &error.hint()))?;
    check_not_reserved(name)?;
    if options.name.as_deref().is_some_and(|asked| asked != name) {
        let message = format!("it contains the module {}, which keeps its name and its digest", quote(name));
        return Err(refuse(message, "Leave out `--name`"));
    }
    let prefix = format!("assets/{name}/");
    let inside: BTreeMap<String, Vec<u8>> = files
        .iter()
        .filter_map(|(path, bytes)| Some((path.strip_prefix(&prefix)?.to_owned(), bytes.clone())))
        .collect();
    if inside.is_empty() {
        let message = format!("its front matter names a missing module: `{}`", prefix.trim_end_matches('/'));
        return Err(refuse(message, "Export the module again with `cogn export skill`"));
    }
    let module = load(&Folder::memory(name, inside.clone())).map_err(ModuleLoadError::into_failure)?;
    let written = parts.keys.get("metadata").and_then(|metadata| metadata.get("cognitive-digest"));
    let found = format!("sha256:{}", module.digest.module);
    if written.and_then(Value::as_str) != Some(found.as_str()) {
        return Err(refuse(
            format!("the module in it was changed after the export: its digest is `{found}`"),
            "Import the module's own folder instead, or remove the key `cognitive-digest` from `SKILL.md`",
        ));
    }
    Ok(ImportedModule {
        name: name.to_owned(),
        form: ImportForm::Skill,
        files: inside,
        losses: Vec::new(),
        restored: true,
    })
}

fn draft(
    folder: &Path,
    parts: &FrontMatter<'_>,
    files: &BTreeMap<String, Vec<u8>>,
    options: &ImportOptions,
) -> Result<ImportDraft, Failure> {
    let own_name = Folder::Disk(folder.to_path_buf()).name();
    let name = text_of(&parts.keys, "name").unwrap_or(&own_name);
    let mut draft = ImportDraft::new(ImportForm::Skill, PAGE, name);
    if parts.body.trim().is_empty() {
        return Err(refuse(
            format!("`{PAGE}` has no text below its front matter"),
            "Import a skill with instructions",
        ));
    }
    keys(&mut draft, parts);
    without_scripts(&mut draft, parts.body, files, options)?;
    parts.body.trim().clone_into(&mut draft.prompt);
    append_references(&mut draft, files);
    if parts.body.contains("$ARGUMENTS") {
        draft.own = OwnPlaceholders::Arguments;
    } else {
        draft.prompt.push_str(
            "\n\n`query` says what is asked for; `files` are the texts to work on, if there are any.",
        );
    }
    draft.input.add(
        "query",
        json!({ "type": "string", "minLength": 1, "description": "What is asked for" }),
        true,
    );
    let file = json!({
        "type": "object", "required": ["name", "content"], "additionalProperties": false,
        "properties": { "name": { "type": "string" }, "content": { "type": "string" } }
    });
    draft.input.add(
        "files",
        json!({ "type": "array", "description": "Files to work on, as text", "items": file }),
        false,
    );
    draft.losses.add_invented("the input `query` and `files`", PAGE, "a skill does not declare its input");
    match proposal::shown_answer(parts.body) {
        Some((schema, line)) => {
            let why =
                "derived from an example in the text; none of it is required, so narrow it in `schema.json`";
            draft.losses.add_invented("the form of `result`", &format!("{PAGE}:{}", parts.line + line), why);
            draft.output = DraftOutput::Result(schema);
        }
        None => {
            let why = "a skill does not declare its output, so it is text; add members in `schema.json`";
            draft.losses.add_invented("the form of `result`", PAGE, why);
            draft.output = DraftOutput::Result(json!({ "type": "string", "minLength": 1 }));
        }
    }
    Ok(draft)
}

fn keys(draft: &mut ImportDraft, parts: &FrontMatter<'_>) {
    draft.responsibility = text_of(&parts.keys, "description").map(str::to_owned);
    draft.version = text_of(&parts.keys, "version").map(str::to_owned);
    for (key, value) in &parts.keys {
        match key.as_str() {
            "name" | "description" | "version" => {}
            "metadata" => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    if name == "version" {
                        draft.version = value
                            .as_str()
                            .map_or_else(|| Some(value.to_string()), |text| Some(text.to_owned()));
                    } else {
                        draft.losses.add_lost(
                            format!("`metadata.{name}`"),
                            PAGE,
                            "manifests have no such key",
                        );
                    }
                }
            }
            "allowed-tools" => {
                let what = format!("`allowed-tools` {}", quote(value.as_str().unwrap_or("as a list")));
                draft.losses.add_lost(
                    what,
                    PAGE,
                    "a module judges and calls nothing; steps that need a tool do not happen",
                );
            }
            "license" => {
                draft.losses.add_lost(
                    "`license`",
                    PAGE,
                    "manifests have no such key; the licence still binds you, and its file is copied",
                );
            }
            _ => draft.losses.add_lost(format!("`{key}`"), PAGE, "manifests have no such key"),
        }
    }
}

fn without_scripts(
    draft: &mut ImportDraft,
    body: &str,
    files: &BTreeMap<String, Vec<u8>>,
    options: &ImportOptions,
) -> Result<(), Failure> {
    let scripts: Vec<&String> = files.keys().filter(|path| is_script(path)).collect();
    let commands = body.lines().filter(|line| line.trim_start().starts_with("!`")).count();
    if scripts.is_empty() && commands == 0 {
        return Ok(());
    }
    if !options.without_scripts {
        let shown: Vec<String> = scripts.iter().take(3).map(|path| quote(path)).collect();
        let what = match scripts.len() {
            0 => "its text runs commands when it is read".to_owned(),
            count => {
                format!("it runs {count} script{}: {}", if count == 1 { "" } else { "s" }, shown.join(", "))
            }
        };
        return Err(refuse(
            format!("the skill is a procedure for an agent instead of a single judgement; {what}"),
            "Import its text alone with `--without-scripts`, or keep it as a skill that calls modules",
        ));
    }
    for path in scripts {
        draft.losses.add_lost(
            format!("the script `{path}`"),
            path,
            "scripts are never run: the model has to do without their effect",
        );
    }
    if commands > 0 {
        draft.losses.add_lost(
            "commands in the text",
            PAGE,
            "commands are never run: the model reads the command instead of its output",
        );
    }
    Ok(())
}

fn is_script(path: &str) -> bool {
    let ending = path.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    path.starts_with("scripts/") || ending.is_some_and(|ending| SCRIPTS.contains(&ending.as_str()))
}

/// Appends referenced texts to the prompt, copies licence files, and records all other files as lost.
fn append_references(draft: &mut ImportDraft, files: &BTreeMap<String, Vec<u8>>) {
    let mut room = MAX_REFERENCES;
    for (path, bytes) in files.iter().filter(|(path, _)| *path != PAGE && !is_script(path)) {
        let is_top = !path.contains('/');
        let upper = path.to_ascii_uppercase();
        if is_top
            && (upper.starts_with("LICENSE") || upper.starts_with("LICENCE") || upper.starts_with("NOTICE"))
        {
            draft.extra.insert(path.clone(), bytes.clone());
            continue;
        }
        let is_text =
            [".md", ".txt", ".markdown"].iter().any(|ending| path.to_ascii_lowercase().ends_with(ending));
        let content = text(bytes).filter(|_| is_text && !path.starts_with("assets/"));
        match content {
            Some(content) if content.len() <= room => {
                room -= content.len();
                let _ = write!(draft.prompt, "\n\n## Reference: `{path}`\n\n{}", content.trim());
                let why = "an agent reads it on demand; the model reads it in every run";
                draft.losses.add_changed(format!("`{path}`, appended to the prompt"), path, why);
            }
            Some(_) => {
                let why = "the prompt has a limit of 64 KiB of references; summarise this one there";
                draft.losses.add_lost(format!("`{path}`"), path, why);
            }
            None => {
                draft.losses.add_lost(
                    format!("`{path}`"),
                    path,
                    "no model reads it, because it is not a text of the skill",
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_told_by_their_place_and_ending() {
        for script in ["scripts/run", "core/a.py", "x.SH", "a/b.mjs"] {
            assert!(is_script(script), "{script}");
        }
        for text in ["references/a.md", "SKILL.md", "assets/logo.png", "data.json"] {
            assert!(!is_script(text), "{text}");
        }
    }
}
