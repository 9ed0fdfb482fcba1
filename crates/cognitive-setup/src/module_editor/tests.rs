//! Tests of viewing, trying and changing modules, and of refusals.

use std::collections::BTreeMap;
use std::fs;

use super::*;

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { dir: tempfile::tempdir().unwrap() };
        place.write("cognitive/modules", "m", "policies: {network: deny}\n");
        place.write("extra", "n", "");
        place
    }

    fn write(&self, parent: &str, name: &str, more: &str) {
        let folder = self.dir.path().join(parent).join(name);
        fs::create_dir_all(&folder).unwrap();
        let manifest = format!("name: {name}\nversion: 1.2.3\nresponsibility: x\ntier: decision\n{more}");
        fs::write(folder.join("module.yaml"), manifest).unwrap();
        fs::write(folder.join("prompt.md"), "p").unwrap();
        fs::write(folder.join("schema.json"), r#"{"input": {"type": "object"}, "data": {"type": "object", "properties": {"rationale": {"type": "string"}}}}"#).unwrap();
    }

    fn module_editor(&self) -> FolderEditor {
        let library = Library::new(self.dir.path(), None, &[self.dir.path().join("extra")]);
        FolderEditor::new(library).with_editable(&[self.dir.path().join("cognitive/modules")]).unwrap()
    }
}

fn files(changes: &[(&str, &str)]) -> ChangedFiles {
    changes.iter().map(|(path, text)| ((*path).to_owned(), Some((*text).to_owned()))).collect()
}

#[test]
fn a_draft_says_in_its_version_that_it_is_one() {
    let place = Place::new();
    let module_editor = place.module_editor();
    let draft = module_editor.draft("m", &files(&[("prompt.md", "other")])).unwrap();
    assert_eq!(draft.prompt, "other");
    let digits = draft.manifest.version.strip_prefix("1.2.3+draft.").unwrap();
    assert!(digits.len() == DRAFT_DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit()), "{digits}");
    let again = module_editor.draft("m", &files(&[("prompt.md", "third")])).unwrap();
    assert_ne!(again.manifest.version, draft.manifest.version);
    assert_eq!(module_editor.files("m").unwrap().files[1].text.as_deref(), Some("p"), "nothing is written");
    assert!(
        module_editor.draft("summarizer", &files(&[("prompt.md", "other")])).is_ok(),
        "also of a bundled one"
    );
}

#[test]
fn a_draft_may_do_no_more_than_its_module() {
    let place = Place::new();
    let module_editor = place.module_editor();
    let manifest = |more: &str| format!("name: m\nversion: 1.2.3\nresponsibility: x\ntier: decision\n{more}");
    for (more, member) in [
        ("policies: {network: allow}\n", "policies.network"),
        ("tools: {allowed: [x]}\npolicies: {network: deny}\n", "tools"),
    ] {
        let refused = module_editor.draft("m", &files(&[("module.yaml", &manifest(more))])).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::PermissionDenied);
        assert!(refused.message().contains(member), "{}", refused.message());
    }
    let other = files(&[("module.yaml", "name: n\nversion: 1.2.3\nresponsibility: x\ntier: decision\n")]);
    assert!(module_editor.draft("m", &other).unwrap_err().message().contains("`name`"));
}

#[test]
fn a_draft_that_is_no_module_is_the_fault_of_its_author() {
    let module_editor = Place::new().module_editor();
    for broken in [
        files(&[("module.yaml", "name: [")]),
        files(&[("schema.json", "{")]),
        files(&[("module.yaml", "tier: nonsense")]),
        BTreeMap::from([("module.yaml".to_owned(), None)]),
    ] {
        let refused = module_editor.draft("summarizer", &broken).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::InvalidInput, "{broken:?}: {}", refused.message());
    }
    for path in ["../x", "/etc/passwd", ".env"] {
        assert_eq!(
            module_editor.draft("summarizer", &files(&[(path, "")])).unwrap_err().code(),
            ErrorCode::InvalidInput
        );
    }
}

#[test]
fn only_folders_that_the_operator_names_are_changed() {
    let place = Place::new();
    let module_editor = place.module_editor();
    let hash = module_editor.files("m").unwrap().hash;
    let saved = module_editor.save("m", &hash, &files(&[("prompt.md", "new")]), &|| Ok(())).unwrap();
    assert_eq!(module_editor.files("m").unwrap().hash, saved.hash);
    for other in ["n", "summarizer"] {
        let shown = module_editor.files(other).unwrap();
        assert!(!shown.editable);
        let refused =
            module_editor.save(other, &shown.hash, &files(&[("prompt.md", "new")]), &|| Ok(())).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::PermissionDenied);
    }
    assert_eq!(fs::read_to_string(place.dir.path().join("extra/n/prompt.md")).unwrap(), "p");
    assert!(FolderEditor::new(Library::default()).with_editable(&["/no/such/folder".into()]).is_err());
}

#[cfg(unix)]
#[test]
fn a_link_to_elsewhere_is_not_below_the_folder_that_it_stands_in() {
    let place = Place::new();
    std::os::unix::fs::symlink(
        place.dir.path().join("extra/n"),
        place.dir.path().join("cognitive/modules/l"),
    )
    .unwrap();
    let shown = place.module_editor().files("l").unwrap();
    assert!(!shown.editable);
}

#[test]
fn a_check_says_what_is_wrong_and_where() {
    let module_editor = Place::new().module_editor();
    let found = module_editor.check("summarizer", &files(&[("schema.json", "{\n  \"data\": 7\n}")])).unwrap();
    assert!(found.iter().any(|finding| finding.file == "schema.json" && finding.line.is_some()), "{found:?}");
}

/// A history with one state of every folder.
struct OnePast(&'static str);

impl FolderPast for OnePast {
    fn states(&self, _: &Path, _: usize) -> Vec<PastState> {
        let state = |id: &str| PastState {
            id: id.to_owned(),
            at: "2026-01-02".to_owned(),
            about: "As it was".to_owned(),
        };
        vec![state("0123456789ab"), state("broken")]
    }

    fn files(&self, folder: &Path, id: &str) -> Option<BTreeMap<String, Vec<u8>>> {
        let mut files = files_of(&Folder::Disk(folder.to_owned())).ok().filter(|_| id == "0123456789ab")?;
        files.insert("prompt.md".to_owned(), self.0.as_bytes().to_vec());
        Some(files)
    }
}

#[test]
fn versions_are_those_that_can_be_found_and_each_is_there_once() {
    let place = Place::new();
    let alone = place.module_editor();
    assert_eq!(alone.versions("m").unwrap().len(), 1);
    // It shadows another one. A module with the same files is not listed separately.
    place.write(".cognitive/modules", "m", "policies: {network: deny}\n");
    assert_eq!(alone.versions("m").unwrap().len(), 1);
    place.write("extra", "m", "policies: {network: deny, side_effects: deny}\n");
    place.write(".cognitive/modules", "m", "policies: {network: allow}\n");
    let module_editor = place.module_editor().with_history(Arc::new(OnePast("as it was")));
    let all = module_editor.versions("m").unwrap();
    let told: Vec<(&str, bool)> = all.iter().map(|each| (each.origin.as_str(), each.is_current)).collect();
    assert_eq!(told, [("project", true), ("project", false), ("extra", false), ("git", false)]);
    let run = |place: usize| module_editor.version("m", &all[place].id);
    assert_eq!(run(0).unwrap().manifest.version, "1.2.3");
    assert!(
        run(1).unwrap_err().message().contains("policies.network"),
        "it may do more than what is installed"
    );
    assert!(run(2).is_ok());
    let past = run(3).unwrap();
    assert_eq!(
        (past.prompt.as_str(), past.manifest.version.as_str()),
        ("as it was", "1.2.3+git.0123456789ab")
    );
    for none in ["", "..", "broken", "1.2.3"] {
        assert_eq!(module_editor.version("m", none).unwrap_err().code(), ErrorCode::InvalidInput, "{none}");
    }
    assert_eq!(module_editor.versions("summarizer").unwrap()[0].origin, "bundled");
    // A committed state that equals the current files is not listed separately.
    let same = place.module_editor().with_history(Arc::new(OnePast("p")));
    assert!(same.versions("m").unwrap().iter().all(|each| each.origin != "git"));
}

#[test]
fn a_broken_module_is_mended_within_what_can_be_read_of_it() {
    let place = Place::new();
    let module_editor = place.module_editor();
    let folder = place.dir.path().join("extra/n");
    fs::write(folder.join("schema.json"), "{").unwrap();
    let schema = r#"{"input": {"type": "object"}, "data": {"type": "object", "properties": {"rationale": {"type": "string"}}}}"#;
    assert!(module_editor.draft("n", &files(&[("schema.json", schema)])).is_ok());
    let wider = "name: n\nversion: 1.2.3\nresponsibility: x\ntier: decision\ntools: {allowed: [x]}\n";
    assert!(module_editor.draft("n", &files(&[("schema.json", schema), ("module.yaml", wider)])).is_err());
    // If nothing is readable, only a caller who may change the module may fix it.
    let narrow = "name: n\nversion: 1.2.3\nresponsibility: x\ntier: decision\n";
    fs::write(folder.join("module.yaml"), "name: [").unwrap();
    let mended = files(&[("schema.json", schema), ("module.yaml", narrow)]);
    assert!(module_editor.draft("n", &mended).is_err(), "nobody may change this one");
    fs::write(place.dir.path().join("cognitive/modules/m/module.yaml"), "name: [").unwrap();
    assert!(
        module_editor.draft("m", &files(&[("module.yaml", &narrow.replace("name: n", "name: m"))])).is_ok()
    );
}
