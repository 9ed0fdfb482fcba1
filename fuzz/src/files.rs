//! Files of strangers: archives, lock and index files of packages, prompts of other tools, rows of a batch, and trained
//! heads of a module. Whatever they contain, they are read or refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, LazyLock};

use cognitive_batch::{RowFile, RowFormat, RowMapping, estimate};
use cognitive_import::{ImportForm, ImportOptions, import as import_file};
use cognitive_library::{Folder, load};
use cognitive_packages::archive::{self, ArchiveForm};
use cognitive_packages::{LockFile, Package, index as packages};
use cognitive_runtime::{Host, Replay, RunOptions};
use serde_json::json;

use super::reply::{One, module};

/// A folder of this process and thread.
fn place(name: &str) -> PathBuf {
    static PROCESS: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = std::env::temp_dir().join(format!("cogn-fuzz-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        folder
    });
    let thread = format!("{:?}", std::thread::current().id()).replace(['(', ')'], "-");
    let folder = PROCESS.join(thread);
    fs::create_dir_all(&folder).expect("a folder");
    folder.join(name)
}

/// Any archive. The first byte chooses a package or a repository.
pub fn archive(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else { return };
    let form = match choice % 3 {
        0 => ArchiveForm::Package,
        1 => ArchiveForm::Repository(String::new()),
        _ => ArchiveForm::Repository("sub/folder".to_owned()),
    };
    if let Ok(unpacked) = archive::read(bytes, &form) {
        for path in unpacked.files.keys() {
            let parts = Path::new(path).components();
            assert!(parts.clone().all(|part| matches!(part, Component::Normal(_))), "{path}");
        }
        // What is packed again is read again.
        if let Ok(package) = Package::from_files(unpacked.files) {
            Package::from_archive(package.archive, Some(&package.sha256)).expect("an archive of our own");
        }
    }
}

/// Any lock file.
pub fn lock(data: &[u8]) {
    let path = place("cognitive.lock");
    fs::write(&path, data).expect("room");
    let _ = LockFile::read(&path);
}

/// Any index of packages.
pub fn index(data: &[u8]) {
    if let Ok(list) = packages::read(data) {
        assert!(
            list.entries.iter().all(|entry| entry.check().is_ok()),
            "an entry that is unusable is refused"
        );
    }
}

/// Any prompt of another tool. The first byte chooses the tool.
pub fn import(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else { return };
    let form = ImportForm::ALL[usize::from(*choice) % ImportForm::ALL.len()];
    let path = match form {
        ImportForm::Skill => place("skill"),
        ImportForm::Prompty => place("a.prompty"),
        ImportForm::Dotprompt => place("a.prompt"),
        ImportForm::Baml => place("a.baml"),
        ImportForm::TensorZero => place("tensorzero.toml"),
    };
    if form == ImportForm::Skill {
        fs::create_dir_all(&path).expect("a folder");
        fs::write(path.join("SKILL.md"), bytes).expect("room");
    } else {
        fs::write(&path, bytes).expect("room");
    }
    if let Ok(imported) = import_file(&path, form, &ImportOptions::default()) {
        // It may need work, and it never breaks the loader.
        let _ = load(&Folder::memory(&imported.name, imported.files));
    }
}

/// Any file of rows. The first byte chooses the format.
pub fn rows(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else { return };
    let (format, name) = match choice % 3 {
        0 => (RowFormat::JsonLines, "rows.jsonl"),
        1 => (RowFormat::Csv, "rows.csv"),
        _ => (RowFormat::Parquet, "rows.parquet"),
    };
    let rows = RowFile { path: place(name), format };
    fs::write(&rows.path, bytes).expect("room");
    let module = module(&json!({ "tier": "decision" }));
    let host = Host::new(Arc::new(One(Arc::clone(&module))), Arc::new(Replay::text(String::new())));
    let _ = rows.count();
    let _ = estimate(&rows, &RowMapping::default(), &host, &module, &RunOptions::default());
}

/// Any file of trained heads, in a module.
pub fn trained(data: &[u8]) {
    let schema = json!({
        "input": { "type": "object", "properties": { "text": { "type": "string" } } },
        "data": { "type": "object", "required": ["rationale", "label"],
                  "properties": { "rationale": { "type": "string" }, "label": { "enum": ["a", "b"] } } },
    });
    let files = BTreeMap::from([
        (
            "module.yaml".to_owned(),
            b"name: sample\nversion: 1.0.0\ntier: decision\nresponsibility: r\n".to_vec(),
        ),
        ("schema.json".to_owned(), schema.to_string().into_bytes()),
        ("prompt.md".to_owned(), b"Answer.".to_vec()),
        ("trained/any.json".to_owned(), data.to_vec()),
    ]);
    let _ = load(&Folder::memory("sample", files));
}
