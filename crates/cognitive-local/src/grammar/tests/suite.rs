//! The JSON Schema Test Suite through grammars: no document breaks its contract, and a valid value can be written or a
//! loss says why it cannot.

use cognitive_schema::{Effect, in_order};
use cognitive_testkit::json_schema_suite;

use super::*;

#[derive(Debug, Default)]
struct SuiteCount {
    /// Schemas that are refused, with the keyword.
    refused: usize,
    documents: usize,
    /// Valid values that a grammar can write.
    written: usize,
    /// Valid values that it cannot write, and a loss says that it is narrower.
    named: usize,
    faults: Vec<String>,
}

// D-05, D-25
#[test]
fn d_05_grammars_of_the_suite_write_what_is_valid_or_name_the_loss() {
    let Some(groups) = json_schema_suite() else { return };
    let weights: Arc<dyn LanguageModel> = Arc::new(Toy::default());
    let guide = Guide::new(Arc::clone(&weights), false).unwrap();
    let mut count = SuiteCount::default();
    for (seed, group) in (1..).zip(&groups) {
        let Some(module) = module_of(group.module_schema()) else {
            count.faults.push(format!("{}: does not load", group.name));
            continue;
        };
        let lowered = module.provider_schema(SchemaTarget::Grammar);
        let grammar = guide.grammar(&lowered.schema);
        let (Ok(grammar), None) = (grammar, lowered.gaps().next()) else {
            count.refused += 1;
            continue;
        };
        for (budget, dice) in [(1, 1), (60, 2)] {
            let text = match document(&weights, &grammar, budget, seed * 10 + dice) {
                Ok((text, _)) => text,
                Err(halt) => {
                    count.faults.push(format!("{}: {halt:?}", group.name));
                    continue;
                }
            };
            count.documents += 1;
            if let Some(complaint) = complaints(&module, &text) {
                count.faults.push(format!("{}: {complaint}", group.name));
            }
        }
        let is_narrower = lowered
            .losses
            .iter()
            .any(|loss| loss.effect == Effect::Tightened && loss.path.starts_with("/properties/data"));
        for case in group.cases.iter().filter(|case| case.is_valid) {
            let envelope = json!({
                "ok": true, "data": case.data(), "meta": { "confidence": 0.5, "risk": "none", "explain": "e" },
            });
            let envelope = in_order(&module.contract, &module.envelope_rules(), &envelope);
            let mut walk = grammar.walk();
            match walk.write(envelope.to_string().as_bytes()) {
                Ok(_) => count.written += 1,
                Err(_) if is_narrower => count.named += 1,
                Err(error) => count.faults.push(format!("{}: {}: {error:?}", group.name, case.name)),
            }
        }
    }
    let SuiteCount { refused, documents, written, named, faults } = count;
    println!("{refused} schemas refused, {documents} documents, {written} values written, {named} not");
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}
