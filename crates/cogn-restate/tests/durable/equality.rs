//! Compares the same run in one process and through the server: the envelopes are equal except for measured
//! values.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use cogn::{Value, json};

use crate::local_worker::{Here, PARTS};
use crate::model::without_measures;

/// The golden tests of a bundled module: each input, with the replies by module.
fn golden(folder: &Path, module: &str) -> Vec<(Value, Vec<(String, String)>)> {
    let tests = folder.join("tests");
    let files: BTreeSet<String> = fs::read_dir(&tests)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let names = files.iter().filter_map(|file| file.strip_suffix(".input.json"));
    names
        .map(|name| {
            let input =
                serde_json::from_str(&fs::read_to_string(tests.join(format!("{name}.input.json"))).unwrap());
            let replies = files.iter().filter_map(|file| {
                let rest = file.strip_prefix(name)?.strip_prefix('.')?.strip_suffix("reply.txt")?;
                let of = rest.strip_suffix('.').unwrap_or(module).to_owned();
                Some((of, fs::read_to_string(tests.join(file)).unwrap()))
            });
            (input.unwrap(), replies.collect())
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn envelopes_equal_those_of_one_process() {
    let Some(here) = Here::open(json!({})).await else { return };
    let (bundled, runtime) =
        (Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../modules")), here.runtime());
    let (mut compared, mut compositions) = (0, 0);
    for entry in fs::read_dir(bundled).unwrap() {
        let entry = entry.unwrap();
        let module = entry.file_name().into_string().unwrap();
        // Tools create their own folders there. Media need a source, which this runtime does not have.
        let is_module = entry.path().join("module.yaml").exists();
        let has_media = ["audio-transcriber", "image-analyzer", "image-generator"].contains(&module.as_str());
        if !is_module || has_media {
            continue;
        }
        let composed = !runtime.modules().module(&module).unwrap().is_standalone();
        for (place, (input, replies)) in golden(&bundled.join(&module), &module).into_iter().enumerate() {
            for (of, reply) in &replies {
                here.model.says(of, reply);
            }
            let run = runtime.module(&module).unwrap().input(input.clone());
            let whole = run.options(|options| options.remote = true).run().await;
            let before = here.model.asked().len();
            let path = if composed { format!("{module}/{place}/run") } else { format!("{module}/run") };
            let durable = here.call(&path, input).await;
            assert!(here.model.asked().len() > before, "{module}: the model was asked");
            assert_eq!(
                without_measures(&durable),
                without_measures(&serde_json::to_value(&whole).unwrap()),
                "{module}, test {place}"
            );
            assert!(durable["meta"]["trace_id"].as_str().unwrap().starts_with("inv_"), "{durable}");
            compared += 1;
            compositions += usize::from(composed);
        }
    }
    assert!(compared >= 20 && compositions >= 8, "{compared} runs, {compositions} of compositions");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_is_an_envelope_as_well() {
    let Some(here) = Here::open(json!({})).await else { return };
    let url = format!("{}/first/run", here.restate.ingress);
    for (body, code) in [
        (json!({ "text": 1 }), "E1001"),
        (json!({ "text": "t", "_options": { "sed": 1 } }), "E1001"),
        (json!({ "text": "t", "_options": { "review": "wait" } }), "E1001"),
        (json!("no object"), "E1001"),
    ] {
        let envelope = crate::http::post(&url, &body).await;
        assert_eq!(
            (&envelope["ok"], &envelope["error"]["code"]),
            (&json!(false), &json!(code)),
            "{body}: {envelope}"
        );
    }
    let nobody = here.call("cogn/run", json!({ "module": "nobody", "input": {} })).await;
    assert_eq!(nobody["error"]["code"], "E4006");
    for part in PARTS {
        here.model.answers(part, "low", "t");
    }
    here.model.says("third", "no JSON at all");
    let failed = here.call("chain/one/run", json!({ "text": "t" })).await;
    let run = here.runtime().module("chain").unwrap().input(json!({ "text": "t" }));
    let whole = serde_json::to_value(run.options(|options| options.remote = true).run().await).unwrap();
    assert_eq!(failed["ok"], false);
    assert_eq!(without_measures(&failed), without_measures(&whole));
}
