//! Any text: `cogn check` gives a verdict, and what it calls a valid envelope can be read and written again.
#![no_main]

use cogn::commands::check::{Kind, judge};
use cognitive_contract::Envelope;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok((Kind::Envelope, violations)) = judge(text, None)
        && violations.is_empty()
    {
        let value = serde_json::from_str(text).expect("judged as JSON");
        let envelope = Envelope::from_value(value).expect("judged valid");
        let again = serde_json::to_value(&envelope).expect("an envelope is JSON");
        assert!(Envelope::from_value(again).is_ok());
    }
});
