//! The project's own vectors, and the official ones if the specification is next to the checkout. Both lists below are
//! strict: a failed case breaks the build, and so does an implemented operation that is still listed as missing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cognitive_testing::conformance::{Vector, VectorReport, VectorStatus, load, run, run_case};
use cognitive_testkit::{Lack, ProcessOutput, command, skip};
use serde_json::{Value, json};

/// The operations that are not implemented, with the number of their cases.
const NOT_BUILT: &[(&str, usize)] = &[];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn own() -> Vec<Vector> {
    load(&root().join("conformance")).unwrap_or_else(|error| panic!("{error}"))
}

fn failures(report: &VectorReport) -> Vec<String> {
    report.failures().map(|case| format!("{}: {}", case.id, case.status.problems().join("; "))).collect()
}

#[test]
fn conformance_every_case_of_level_1_and_2_passes() {
    let cases = own();
    let report = run(&cases, Some(2));
    assert_eq!(failures(&report), Vec::<String>::new());
    assert!(report.holds(), "{:?}", report.tally());
    assert_eq!(report.tally().passed, cases.iter().filter(|case| case.level <= 2).count());
}

/// Counts the cases per level in the files themselves, to notice cases that the loader or runner loses.
fn counted(directory: &Path) -> BTreeMap<u64, usize> {
    let mut levels = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.extension().is_some_and(|extension| extension == "json") {
            let file: Value = serde_json::from_str(&fs::read_to_string(&entry).unwrap()).unwrap();
            for case in file.get("cases").and_then(Value::as_array).into_iter().flatten() {
                *levels.entry(case["level"].as_u64().unwrap()).or_default() += 1;
            }
        }
    }
    levels
}

/// Returns the output of `cogn`, and whether it succeeded.
fn cogn(arguments: &[&str]) -> (bool, String) {
    let output = ProcessOutput::run(command(env!("CARGO_BIN_EXE_cogn")).args(arguments).current_dir(root()));
    (output.code == Some(0), output.out)
}

// GEN-009, TEST-006, MEDIA-020: the level is computed from all vectors of that level. Failed, unimplemented and skipped
// vectors count against it alike. README and `cogn capabilities` claim exactly that level.
#[test]
fn gen_009_the_claimed_level_is_the_highest_whose_vectors_all_pass() {
    let counted = counted(&root().join("conformance"));
    let total: usize = counted.values().sum();
    let passes = |level: &u64| {
        let (good, report) = cogn(&["conformance", "conformance", "--json", "--level", &level.to_string()]);
        let report: Value = serde_json::from_str(&report).unwrap();
        let asked: usize = counted.range(..=*level).map(|(_, count)| count).sum();
        let passed = report["cases"].as_array().unwrap().iter().filter(|case| case["status"] == "passed");
        good && passed.count() == asked && counted.contains_key(level)
    };
    let level = (1..=4).take_while(passes).last().unwrap_or(0);
    assert!(counted.keys().all(|level| (1..=4).contains(level)), "{counted:?}");
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let claims: Vec<u64> = readme
        .match_indices("conformance level ")
        .filter_map(|(at, words)| readme.get(at + words.len()..)?.chars().next()?.to_digit(10).map(u64::from))
        .collect();
    assert_eq!(claims, [level], "what README.md claims");
    assert!(
        readme.contains(&format!("\n{total} passed, 0 failed, 0 not built\n")),
        "README.md: {total} cases"
    );
    let declared: Value = serde_json::from_str(&cogn(&["capabilities"]).1).unwrap();
    assert_eq!(declared["conformance_level"], json!(level));
    let of_level_4 = declared["capabilities"]["streaming"] == json!(true)
        && declared["capabilities"]["multimodal"]["input"].as_array().is_some_and(|kinds| !kinds.is_empty());
    assert!(of_level_4 || level < 4, "level 4 asks for streams and media: {declared}");
}

// Without a vector for a decision, another runtime cannot be tested against it.
#[test]
fn every_later_decision_has_a_vector() {
    let cases = own();
    let shown = |id: &String| cases.iter().any(|case| case.requirements.contains(id));
    let missing: Vec<String> =
        (7..=17).map(|number| format!("D-{number:02}")).filter(|id| !shown(id)).collect();
    assert_eq!(missing, Vec::<String>::new());
}

// GEN-009: the project does not select the vectors. All those of the specification are here, unchanged.
#[test]
fn gen_009_every_vector_of_the_specification_is_here() {
    let directory = root().join("../shared/spec/vectors");
    if !directory.is_dir() {
        return skip(Lack::Shared);
    }
    let own = own();
    for theirs in load(&directory).unwrap() {
        let ours = own.iter().find(|case| case.id == theirs.id);
        let demand = |case: &Vector| json!([case.level, case.op, case.given, case.expect]);
        assert_eq!(ours.map(demand), Some(demand(&theirs)), "{}", theirs.id);
    }
}

#[test]
fn conformance_what_is_not_built_is_known_and_nothing_fails() {
    let report = run(&own(), None);
    let mut missing: BTreeMap<&str, usize> = BTreeMap::new();
    for case in report.not_built() {
        *missing.entry(&case.op).or_default() += 1;
    }
    assert_eq!(missing, NOT_BUILT.iter().copied().collect::<BTreeMap<_, _>>());
    assert_eq!(failures(&report), Vec::<String>::new());
}

// TEST-004, ENV-011
#[test]
fn conformance_official_vectors_pass() {
    let directory = root().join("../shared/spec/official-vectors");
    if !directory.is_dir() {
        return skip(Lack::Shared);
    }
    let report = run(&load(&directory).unwrap(), None);
    assert_eq!(failures(&report), Vec::<String>::new());
    assert_eq!((report.tally().passed, report.tally().total()), (28, 28));
}

#[test]
fn conformance_every_single_change_to_an_expectation_is_noticed() {
    let mut noticed = 0_usize;
    for case in own().into_iter().filter(|case| case.level <= 2) {
        for expect in changes(&case.expect) {
            let changed = Vector { expect: expect.clone(), ..case.clone() };
            let status = run_case(&changed).status;
            assert!(matches!(status, VectorStatus::Failed(_)), "{} still passes with {expect}", case.id);
            noticed += 1;
        }
    }
    assert!(noticed >= 300, "only {noticed} changes were tried");
}

#[test]
fn conformance_what_is_unknown_never_passes() {
    let cases = own();
    let case = cases.iter().find(|case| case.op == "normalize_code").unwrap();
    let with =
        |op: &str, expect: Value| run_case(&Vector { op: op.to_owned(), expect, ..case.clone() }).status;
    assert_eq!(with("normalize_code", case.expect.clone()), VectorStatus::Passed);
    for (op, expect) in [
        ("normalise_code", case.expect.clone()),
        ("normalize_code", json!({ "code": { "$matches": "E" } })),
        ("normalize_code", json!({ "no such member": { "$matches": "E" } })),
        ("normalize_code", json!({})),
    ] {
        assert!(matches!(with(op, expect.clone()), VectorStatus::Failed(_)), "{op} {expect}");
    }
}

/// Returns every way to change exactly one part of an expectation so that it requires another value.
fn changes(expect: &Value) -> Vec<Value> {
    match expect {
        Value::Object(members) if members.contains_key("$gen") => {
            let mut longer = expect.clone();
            longer["count"] = json!(members["count"].as_u64().unwrap() + 1);
            vec![longer]
        }
        Value::Object(members) => match members.iter().next() {
            Some((name, argument)) if members.len() == 1 && name == "$exact" => {
                literal_changes(argument).into_iter().map(|changed| json!({ "$exact": changed })).collect()
            }
            Some((name, argument)) if members.len() == 1 && name.starts_with('$') => {
                vec![changed_matcher(name, argument)]
            }
            _ => each_part(expect, changes),
        },
        _ => each_part(expect, changes),
    }
}

/// Returns the changes inside `$exact`, where nothing is a matcher.
fn literal_changes(value: &Value) -> Vec<Value> {
    if value.get("$gen").is_some() { changes(value) } else { each_part(value, literal_changes) }
}

fn each_part(value: &Value, inner: fn(&Value) -> Vec<Value>) -> Vec<Value> {
    match value {
        Value::Null => vec![json!("not null")],
        Value::Bool(flag) => vec![json!(!flag)],
        Value::Number(number) => vec![json!(number.as_f64().unwrap() + 1.0)],
        Value::String(text) => vec![json!(format!("{text}~"))],
        Value::Array(items) => {
            let mut longer = items.clone();
            longer.push(json!("one more"));
            let mut all = vec![Value::Array(longer)];
            for (index, item) in items.iter().enumerate() {
                for changed in inner(item) {
                    let mut items = items.clone();
                    items[index] = changed;
                    all.push(Value::Array(items));
                }
            }
            all
        }
        Value::Object(members) => {
            let mut more = members.clone();
            more.insert("no such member".to_owned(), json!(1));
            let mut all = vec![Value::Object(more)];
            for (name, member) in members {
                for changed in inner(member) {
                    let mut members = members.clone();
                    members.insert(name.clone(), changed);
                    all.push(Value::Object(members));
                }
            }
            all
        }
    }
}

/// Returns a matcher of the same kind that no result of these cases satisfies.
fn changed_matcher(name: &str, argument: &Value) -> Value {
    let with = |more: &str| {
        let mut list = argument.as_array().unwrap().clone();
        list.push(json!(more));
        Value::Array(list)
    };
    let argument = match name {
        "$absent" | "$absent_or_null" => return json!({ "$exact": "there" }),
        "$code" => json!(["E9999"]),
        "$in" => json!(["no such value"]),
        "$maxlen" => json!(0),
        "$len" => json!(argument.as_u64().unwrap() + 1),
        "$range" => json!([1000, 2000]),
        "$type" => json!(if argument == "array" { "string" } else { "array" }),
        "$regex" => json!("^no such text$"),
        "$set" | "$superset_of" => with("no such item"),
        "$subset_of" => json!([]),
        "$some" => json!({ "no such member": 1 }),
        "$json_contains" => with("no such text"),
        "$json_lacks" => json!([""]),
        other => panic!("no change is known for `{other}`"),
    };
    json!({ name: argument })
}
