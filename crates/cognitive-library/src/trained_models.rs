//! Trained heads for a module: `trained/NAME.json`, one file per model, written by `cogn train`. They decide answers,
//! so they are part of the module and of its digest: an unreadable file prevents loading. A head whose question has
//! changed since causes only a warning, because runs ignore it.

use cognitive_contract::Module;
use cognitive_contract::trained_model::{FOUND, TrainedHead, TrainedModel};
use serde_json::Value;

use crate::finding::{Finding, FindingLocation, Sources, quote};
use crate::folder::{Budget, Folder, ReadError};
use crate::json;

/// The folder of the files.
pub const FOLDER: &str = "trained";
/// The highest number of files. A module is trained for a few models only.
const MAX_COUNT: usize = 16;
/// The size limit of each file, and of all files together. The files are read with the module, even if no trained
/// model runs.
const LIMIT: u64 = 4 << 20;

/// Reads the trained heads, sorted by file name. Adds the texts to `sources` and the faults to `findings`.
pub(crate) fn read(folder: &Folder, sources: &mut Sources, findings: &mut Vec<Finding>) -> Vec<TrainedModel> {
    let names = folder.names_in(FOLDER);
    let names: Vec<&String> =
        names.iter().filter(|name| name.strip_suffix(".json").is_some() && !name.contains('/')).collect();
    if names.len() > MAX_COUNT {
        let message = format!("too many trained models: {}, the limit is {MAX_COUNT}", names.len());
        findings.push(Finding::error(FOLDER, FindingLocation::File, "trained/many", message));
        return Vec::new();
    }
    let mut budget = Budget::new(LIMIT, LIMIT);
    let mut read = Vec::new();
    for name in names {
        let file = format!("{FOLDER}/{name}");
        match load_model(folder, &file, &mut budget, sources) {
            Ok(model) => read.push(model),
            Err(finding) => findings.push(finding),
        }
    }
    read
}

fn load_model(
    folder: &Folder,
    file: &str,
    budget: &mut Budget,
    sources: &mut Sources,
) -> Result<TrainedModel, Finding> {
    let unreadable = |reason: &str| {
        let message = format!("{} {reason}", quote(file));
        Finding::error(file, FindingLocation::File, "trained/unreadable", message)
    };
    let text = folder.read_within(file, budget).map_err(|error| match error {
        ReadError::Missing => unreadable("is missing"),
        ReadError::Refused(reason) => unreadable(&reason),
    })?;
    let value = json::parse_file(&text);
    sources.insert(file, text);
    let value = value.map_err(|error| {
        Finding::error(file, FindingLocation::Offset(error.offset), "trained/syntax", error.message)
    })?;
    TrainedModel::from_value(&value).map_err(|why| {
        let message = format!("{} was not written by `cogn train`: {why}", quote(file));
        Finding::error(file, FindingLocation::File, "trained/form", message)
            .hint("Train it again with `cogn train`, or remove the file")
    })
}

/// Reports heads that no run will use: the decision was removed or changed, or an earlier file has the same weights.
pub(crate) fn outdated_heads(module: &Module) -> Vec<Finding> {
    let data = module.contract.data().schema();
    let mut found = Vec::new();
    for (index, trained) in module.trained.iter().enumerate() {
        let weights = &trained.weights_sha256;
        if let Some(first) = module.trained.iter().take(index).find(|first| first.weights_sha256 == *weights)
        {
            let message = format!("`{}` and `{}` train the same weights", first.model, trained.model);
            let finding = Finding::warning(FOLDER, FindingLocation::File, "trained/twice", message);
            found.push(finding.hint("Remove one of the files; only the first one is used"));
        }
        for (path, head) in &trained.heads {
            let node = path.split('.').try_fold(data, |node, name| node.get("properties")?.get(name));
            if !node.is_some_and(|node| is_current(node, head)) {
                let message =
                    format!("the training of `{}` does not match the question at `{path}`", trained.model);
                let finding = Finding::warning(FOLDER, FindingLocation::File, "trained/outdated", message);
                found.push(finding.hint("Train it again with `cogn train`; runs ignore it until then"));
            }
        }
    }
    found
}

/// Returns whether a head still matches its decision: the same question and the same candidates.
fn is_current(node: &Value, head: &TrainedHead) -> bool {
    let classes = head.reads.as_ref().map(|reads| reads.classes.as_slice());
    let is_same_list = match (node.get("enum").and_then(Value::as_array), classes) {
        (Some(values), Some(classes)) => {
            let mut values: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
            values.sort_unstable();
            values == classes
        }
        (None, Some(classes)) => classes == FOUND,
        (listed, None) => listed.is_none(),
    };
    is_same_list && node.get("x-decide") == Some(&head.decide)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::finding::Severity;
    use crate::{Mode, load, validate};

    const SCHEMA: &str = r#"{
        "input": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}},
        "data": {"type": "object", "required": ["rationale", "word"],
                 "properties": {"rationale": {"type": "string"},
                                "word": {"enum": ["a", "b"], "x-decide": {"about": "text", "ask": "Which?"}}}}
    }"#;
    const TRAINED: &str = r#"{"model": "m", "weights_sha256": "00", "heads": {"word": {"decide": {"about": "text", "ask": "Which?"}, "cases": 9, "right": 8,
        "reads": {"layer": 2, "classes": ["a", "b"], "rows": [{"offset": 0.5, "scale": 0.1, "steps": "AQACAA=="}]},
        "curve": {"slope": 1.0, "offset": 0.0}}}}"#;

    fn folder(files: &[(&str, &str)]) -> Folder {
        let module = [
            ("module.yaml", "name: m\nversion: 1.0.0\ntier: decision\nresponsibility: r\n"),
            ("prompt.md", "p"),
            ("schema.json", SCHEMA),
        ];
        let files =
            module.iter().chain(files).map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
        Folder::memory("m", files.collect::<BTreeMap<_, _>>())
    }

    fn rules(files: &[(&str, &str)], severity: Severity) -> Vec<String> {
        let findings = validate(&folder(files), Mode::Standard).findings;
        let found = findings
            .iter()
            .filter(|finding| finding.severity == severity && finding.rule.starts_with("trained/"));
        found.map(|finding| finding.rule.to_string()).collect()
    }

    #[test]
    fn what_was_learned_is_a_part_of_the_module() {
        let module = load(&folder(&[("trained/m.json", TRAINED), ("trained/notes.md", "x")])).unwrap();
        let [trained] = &*module.trained else { panic!("{:?}", module.trained) };
        let row = &trained.heads["word"].reads.as_ref().unwrap().rows[0];
        assert_eq!(row.numbers, [0.1, 0.2]);
        assert_ne!(module.digest.module, load(&folder(&[])).unwrap().digest.module);
        assert_eq!(rules(&[("trained/m.json", TRAINED)], Severity::Warning), Vec::<String>::new());
    }

    #[test]
    fn a_file_that_cannot_be_computed_with_keeps_the_module_from_being_loaded() {
        let other = TRAINED.replace("AQACAA==", "AQA");
        for (text, rule) in [("{", "trained/syntax"), ("{}", "trained/form"), (&other, "trained/form")] {
            assert_eq!(rules(&[("trained/m.json", text)], Severity::Error), [rule]);
            assert!(load(&folder(&[("trained/m.json", text)])).is_err());
        }
    }

    #[test]
    fn a_head_for_another_question_is_only_warned_of() {
        let other = TRAINED.replace("Which?", "What?");
        assert_eq!(rules(&[("trained/m.json", &other)], Severity::Warning), ["trained/outdated"]);
        let gone = TRAINED.replace("\"word\"", "\"wort\"");
        assert_eq!(rules(&[("trained/m.json", &gone)], Severity::Warning), ["trained/outdated"]);
        let values = TRAINED.replace(r#"["a", "b"]"#, r#"["a", "c"]"#);
        assert_eq!(rules(&[("trained/m.json", &values)], Severity::Warning), ["trained/outdated"]);
        let twice = [("trained/m.json", TRAINED), ("trained/n.json", TRAINED)];
        assert_eq!(rules(&twice, Severity::Warning), ["trained/twice"]);
        assert!(load(&folder(&[("trained/m.json", &other)])).is_ok());
    }
}
