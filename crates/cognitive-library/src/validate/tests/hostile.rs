//! Tests modules that are built to be expensive: the report stays short, and little is read.

use super::*;
use crate::finding::MAX_FINDINGS;

/// The report about the valid module with a changed manifest and further files.
fn report_with(change: impl FnOnce(&mut Value), extra: &[(String, String)]) -> ValidationReport {
    let (mut manifest, schema, prompt) = good();
    change(&mut manifest);
    let mut files = module(&manifest, &schema.to_string(), prompt);
    files.extend(extra.iter().map(|(path, text)| (path.clone(), text.clone().into_bytes())));
    validate(&Folder::memory("m", files), Mode::Standard)
}

fn rules_of(report: &ValidationReport) -> Vec<&str> {
    report.findings.iter().map(|each| each.rule).collect()
}

#[test]
fn of_thousands_of_findings_the_first_are_shown_and_the_rest_is_counted() {
    let report = report_with(
        |manifest| {
            for number in 0..5_000 {
                manifest[format!("zz{number}")] = json!(1);
            }
            manifest["tier"] = json!("fast");
        },
        &[],
    );
    assert_eq!(report.findings.len(), MAX_FINDINGS + 1);
    assert!(!report.valid());
    let last = report.findings.last().unwrap();
    assert_eq!((last.rule, last.message.as_str()), ("report/more", "and 4801 more findings"));
    assert!(report.sources.locate(&report.findings[199]).is_some());
}

#[test]
fn what_a_module_says_is_cut_before_it_is_shown() {
    let long = "\u{1b}[2J".repeat(2_000);
    let report = report_with(
        |manifest| {
            manifest["name"] = json!(long);
            manifest["io"] = json!({ "input": format!("../{long}") });
            manifest["error_codes"] = json!({ "\u{1b}[2J".repeat(100): "x" });
            manifest["context"] = json!({ "accepts": [{ "type": "a", "schema": format!("{long}.json") }] });
            manifest["tests"] = json!([format!("{long} -> {long}")]);
        },
        &[],
    );
    assert!(report.findings.len() >= 4, "{:?}", rules_of(&report));
    for finding in &report.findings {
        assert!(finding.message.len() < 4_000 && finding.summary().len() < 5_000, "{}", finding.rule);
        assert!(!finding.message.contains('\u{1b}') && !finding.summary().contains('\u{1b}'));
    }
}

#[test]
fn a_file_that_is_named_often_is_read_once() {
    // If each entry read its file again, the total would exceed the limit of its kind.
    let large = format!("{{\"q\": \"{}\"}}", " ".repeat(2 << 20));
    let files = ["a.json", "b.json"].map(|file| (file.to_owned(), large.clone()));
    let report = report_with(
        |manifest| {
            let entries = vec![json!({ "type": "a", "schema": "a.json" }); 20];
            manifest["context"] = json!({ "accepts": entries, "emits": entries });
            manifest["tests"] = json!(vec!["a.json -> b.json"; 20]);
        },
        &files,
    );
    assert_eq!(rules_of(&report), [""; 0]);
    // Texts without findings are not stored.
    assert_eq!(
        report.sources.iter().map(|(file, _)| file).collect::<Vec<_>>(),
        ["a.json", "module.yaml", "prompt.md", "schema.json"]
    );
}

#[test]
fn test_files_and_entries_have_an_end() {
    let large = format!("{{\"q\": \"{}\"}}", " ".repeat(6 << 20));
    let files: Vec<_> = (0..4).map(|number| (format!("tests/{number}.input.json"), large.clone())).collect();
    let report = report_with(|_| {}, &files);
    assert_eq!(rules_of(&report), ["tests/size"]);
    assert_eq!(report.findings[0].file, "tests/2.input.json");

    let report = report_with(|manifest| manifest["tests"] = json!(vec!["no arrow"; 1_500]), &[]);
    assert!(rules_of(&report).contains(&"report/more"));
    let many: Vec<_> =
        (0..1_200).map(|number| (format!("tests/{number}.input.json"), "{\"q\":1}".into())).collect();
    let report = report_with(|_| {}, &many);
    assert_eq!(rules_of(&report), ["tests/many"]);
}

#[test]
fn long_names_over_many_values_are_refused() {
    let (manifest, _, prompt) = good();
    let name = "n".repeat(100_000);
    let schema = json!({ "input": {}, "data": {}, name: vec![0; 1_000] });
    assert_eq!(check(&manifest, &schema, prompt, &[], Mode::Standard), ["Error schema/syntax"]);
}

#[test]
fn what_is_ignored_beside_ref_is_shown_with_its_whole_path() {
    let (manifest, mut schema, prompt) = good();
    schema["data"]["allOf"] = json!([{}, { "a/b": { "$ref": "#/$defs/extensions", "maxItems": 3 } }]);
    let files = module(&manifest, &schema.to_string(), prompt);
    let report = validate(&Folder::memory("m", files), Mode::Standard);
    let place = FindingLocation::Value("/data/allOf/1/a~1b/maxItems".into());
    assert!(report.findings.iter().any(|each| each.at == place), "{:?}", report.findings);
}
