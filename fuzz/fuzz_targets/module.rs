//! Any three files: validation gives a verdict, and what it calls valid loads.
#![no_main]

use std::collections::BTreeMap;

use cognitive_library::{Folder, Mode, load, validate};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|files: (Vec<u8>, Vec<u8>, bool)| {
    let (manifest, schema, strict) = files;
    let files = BTreeMap::from([
        ("module.yaml".to_owned(), manifest),
        ("schema.json".to_owned(), schema),
        ("prompt.md".to_owned(), b"Answer in the envelope.".to_vec()),
    ]);
    let folder = Folder::memory("m", files);
    let report = validate(&folder, if strict { Mode::Strict } else { Mode::Standard });
    for finding in &report.findings {
        let _place = report.sources.locate(finding);
    }
    if report.valid() {
        assert!(load(&folder).is_ok());
    }
});
