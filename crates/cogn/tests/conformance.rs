//! The project's own vectors, and the official ones where the specification lies beside the checkout.
//! Both lists below are strict: a case that fails breaks the build, and so does an operation that was built and is
//! still listed as missing.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test, a panic is the report"
)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use cogn::conformance::{Case, Report, Status, load, run, run_case};
use serde_json::{Value, json};

/// Operations that cannot be asked yet, with the number of their cases.
const NOT_BUILT: &[(&str, usize)] = &[];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn own() -> Vec<Case> {
    load(&root().join("conformance")).unwrap_or_else(|error| panic!("{error}"))
}

fn failures(report: &Report) -> Vec<String> {
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

#[test]
fn conformance_official_vectors_pass() {
    let directory = root().join("../shared/spec/official-vectors");
    if !directory.is_dir() {
        println!("skipped: the official vectors are not beside the checkout");
        return;
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
            let changed = Case { expect: expect.clone(), ..case.clone() };
            let status = run_case(&changed).status;
            assert!(matches!(status, Status::Failed(_)), "{} still passes with {expect}", case.id);
            noticed += 1;
        }
    }
    assert!(noticed >= 300, "only {noticed} changes were tried");
}

#[test]
fn conformance_what_is_unknown_never_passes() {
    let cases = own();
    let case = cases.iter().find(|case| case.op == "normalize_code").unwrap();
    let with = |op: &str, expect: Value| run_case(&Case { op: op.to_owned(), expect, ..case.clone() }).status;
    assert_eq!(with("normalize_code", case.expect.clone()), Status::Passed);
    for (op, expect) in [
        ("normalise_code", case.expect.clone()),
        ("normalize_code", json!({ "code": { "$matches": "E" } })),
        ("normalize_code", json!({ "no such member": { "$matches": "E" } })),
        ("normalize_code", json!({})),
    ] {
        assert!(matches!(with(op, expect.clone()), Status::Failed(_)), "{op} {expect}");
    }
}

/// Every way to change exactly one thing in an expectation so that it asks for something else.
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

/// The same inside `$exact`, where nothing is a matcher.
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

/// A matcher of the same kind that no result of these cases satisfies.
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
