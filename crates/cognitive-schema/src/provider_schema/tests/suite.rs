//! The JSON Schema Test Suite through every target: a valid value can be answered, or a loss says why it cannot.

use cognitive_testkit::json_schema_suite;

use super::*;

/// The results of the cases of the suite for one target.
#[derive(Debug, Default)]
struct SuiteCount {
    /// Valid values that a lowered schema accepts.
    accepted: usize,
    /// Valid values that it refuses, and a loss says that it is narrower.
    named: usize,
    /// Invalid values that it refuses.
    refused: usize,
    /// Invalid values that it accepts, and a loss says that it is wider.
    left_to_validation: usize,
}

// D-05, D-25
#[test]
fn d_05_the_suite_loses_nothing_in_silence() {
    let Some(groups) = json_schema_suite() else { return };
    let (mut counts, mut silent) = (std::collections::BTreeMap::new(), Vec::new());
    for group in &groups {
        let files = SchemaFiles::from([(SCHEMA_FILE.to_owned(), group.module_schema())]);
        let module = match compile(rules(&json!({})), &files) {
            Ok(module) => module,
            Err(problems) => {
                silent.push(format!("{}: {problems:?}", group.name));
                continue;
            }
        };
        for target in SchemaTarget::ALL {
            let lowered = lower(&module, target);
            check(&lowered);
            let count: &mut SuiteCount = counts.entry(target).or_default();
            let has = |effects: &[Effect]| lowered.losses.iter().any(|loss| effects.contains(&loss.effect));
            let mut schema = data_of(&lowered);
            if let Value::Object(members) = &mut schema {
                members.insert("$defs".to_owned(), lowered.schema.get("$defs").cloned().unwrap_or(json!({})));
            }
            let judge = validator(&schema);
            for case in &group.cases {
                let data = case.data();
                let answer = if target.writes_null_for_absent() {
                    with_nulls(&schema, &lowered.schema, &data)
                } else {
                    data
                };
                let (slot, is_right) = match (case.is_valid, judge.is_valid(&answer)) {
                    (true, true) => (&mut count.accepted, true),
                    (true, false) => (&mut count.named, has(&[Effect::Tightened, Effect::Refused])),
                    (false, false) => (&mut count.refused, true),
                    (false, true) => (&mut count.left_to_validation, has(&[Effect::Validity])),
                };
                *slot += 1;
                if !is_right {
                    let expected = if case.is_valid { "refused" } else { "accepted" };
                    silent.push(format!("{target:?} {}: {}: {expected}", group.name, case.name));
                }
            }
        }
    }
    println!("{counts:#?}");
    assert!(silent.is_empty(), "{counts:#?} {} in silence:\n{}", silent.len(), silent.join("\n"));
}
