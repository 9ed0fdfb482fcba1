//! Two outputs in one file, and an output in the place of an input: refused before anything is written, however the paths
//! are spelled. Other commands that write a file hold to the same rule.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::json;

use super::{cogn, done, lines};

/// A folder with rows, a reply for all of them, and links and folders to spell a path with.
fn stage() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    let reply = json!({ "ok": true, "meta": { "confidence": 0.9, "risk": "low", "explain": "e" },
                        "data": { "rationale": "r", "summary": "Short." } });
    fs::write(at("reply.txt"), reply.to_string()).unwrap();
    fs::write(at("r.jsonl"), "{\"text\":\"a\"}\n{\"text\":\"b\"}\n{\"text\":5}\n").unwrap();
    fs::hard_link(at("r.jsonl"), at("hard.jsonl")).unwrap();
    fs::create_dir_all(at("sub/deeper")).unwrap();
    #[cfg(unix)]
    for (target, link) in [("r.jsonl", "rows-link.jsonl"), ("sub", "folder"), ("o.jsonl", "out-link.jsonl")] {
        std::os::unix::fs::symlink(target, at(link)).unwrap();
    }
    home
}

/// All files below a folder with what they hold; links with where they lead.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(place) = waiting.pop() {
        for entry in fs::read_dir(place).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            if let Ok(target) = fs::read_link(&path) {
                found.insert(name, target.display().to_string().into_bytes());
            } else if path.is_dir() {
                found.insert(name, Vec::new());
                waiting.push(path);
            } else {
                found.insert(name, fs::read(path).unwrap());
            }
        }
    }
    found
}

/// Types words that have to be refused, with nothing written.
fn refused(home: &Path, words: &str) -> String {
    let before = contents(home);
    let words: Vec<&str> = words.split(' ').collect();
    let (code, out, err) = done(cogn(home, &words));
    assert_eq!((code, out.as_str()), (2, ""), "{words:?}: {err}");
    assert!(err.contains("hint") && err.contains("another output"), "{words:?}: {err}");
    assert!(contents(home) == before, "{words:?} wrote something");
    err
}

#[test]
fn a_batch_whose_outputs_are_one_file_is_refused_before_it_begins() {
    let stage = stage();
    let home = stage.path();
    fs::write(home.join("there.jsonl"), "old\n").unwrap();
    fs::hard_link(home.join("there.jsonl"), home.join("sub/hard-there.jsonl")).unwrap();
    let mut pairs = vec![
        ("o.jsonl", "o.jsonl"),
        ("o.jsonl", "./o.jsonl"),
        ("o.jsonl", "sub/../o.jsonl"),
        ("sub/o.jsonl", "sub/deeper/../o.jsonl"),
        ("there.jsonl", "sub/../there.jsonl"),
        ("there.jsonl", "sub/hard-there.jsonl"),
        ("o.jsonl", "o.jsonl.cogn-batch/answers.jsonl"),
    ];
    if cfg!(unix) {
        pairs.extend([("o.jsonl", "out-link.jsonl"), ("sub/o.jsonl", "folder/o.jsonl")]);
    }
    for (output, failed) in pairs {
        for more in ["", " --ordered", " --restart", " --dry-run"] {
            let said = refused(
                home,
                &format!("batch summarizer r.jsonl -o {output} --failed {failed} --reply reply.txt{more}"),
            );
            assert!(said.contains("`--failed`"), "{said}");
        }
    }
    let absolute = home.join("o.jsonl").display().to_string();
    refused(home, &format!("batch summarizer r.jsonl -o o.jsonl --failed {absolute} --reply reply.txt"));
}

#[test]
fn a_batch_does_not_write_over_what_it_reads() {
    let stage = stage();
    let home = stage.path();
    let mut spellings = vec!["r.jsonl", "./r.jsonl", "sub/../r.jsonl", "hard.jsonl"];
    if cfg!(unix) {
        spellings.push("rows-link.jsonl");
    }
    for rows in spellings {
        for outputs in
            ["-o r.jsonl", "-o o.jsonl --failed r.jsonl", "-o o.parquet --failed sub/../hard.jsonl"]
        {
            let said =
                refused(home, &format!("batch summarizer {rows} {outputs} --restart --reply reply.txt"));
            assert!(said.contains("the file of rows"), "{said}");
        }
    }
    fs::copy(home.join("reply.txt"), home.join("reply.jsonl")).unwrap();
    let said = refused(
        home,
        "batch summarizer r.jsonl -o o.jsonl --failed reply.jsonl --restart --reply reply.jsonl",
    );
    assert!(said.contains("`--reply`"), "{said}");
}

#[test]
fn outputs_of_their_own_get_their_rows() {
    let stage = stage();
    let home = stage.path();
    let words = [
        "batch",
        "summarizer",
        "r.jsonl",
        "-o",
        "o.jsonl",
        "--failed",
        "sub/o.jsonl",
        "--reply",
        "reply.txt",
    ];
    let (code, _, err) = done(cogn(home, &words));
    assert_eq!(code, 0, "{err}");
    assert_eq!((lines(&home.join("o.jsonl")).len(), lines(&home.join("sub/o.jsonl")).len()), (2, 1));
}

#[test]
fn other_commands_hold_to_the_same_rule() {
    let stage = stage();
    let home = stage.path();
    fs::write(home.join("in.json"), "{\"text\": \"a\"}").unwrap();
    fs::write(home.join("cases.jsonl"), "{\"input\": {\"text\": \"a\"}, \"expect\": {\"ok\": true}}\n")
        .unwrap();
    let run = "run summarizer in.json --provider replay --reply reply.txt";
    refused(home, &format!("{run} -o sub/../in.json"));
    refused(home, &format!("{run} -o ./reply.txt"));
    refused(home, &format!("{run} -o media --media-out ./media"));
    refused(home, "eval summarizer --cases cases.jsonl -o ./cases.jsonl --provider replay");
    refused(home, "train text-classifier --cases cases.jsonl -o sub/../cases.jsonl --model smollm2");
    let module = home.join("short");
    fs::create_dir_all(module.join("tests")).unwrap();
    let bundled = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../modules/summarizer");
    for name in ["prompt.md", "schema.json", "module.yaml"] {
        fs::copy(bundled.join(name), module.join(name)).unwrap();
    }
    fs::write(module.join("tests/a.input.json"), "{\"text\": \"a\"}").unwrap();
    fs::write(module.join("tests/a.expected.json"), "{\"ok\": true}").unwrap();
    for file in ["tests/a.reply.txt", "tests/a.expected.json", "prompt.md"] {
        let said =
            refused(home, &format!("test ./short --record --junit sub/../short/{file} --provider openai"));
        assert!(said.contains("`--junit`"), "{said}");
    }
    fs::create_dir(home.join("media")).unwrap();
    let words = format!("{run} -o media/answer.json --media-out media");
    let (code, _, err) = done(cogn(home, &words.split(' ').collect::<Vec<_>>()));
    assert_eq!(code, 0, "an envelope may lie beside its media: {err}");
}

/// A mapping to a column that no row has would fail every row, and be paid for where the member is optional.
#[test]
fn a_mapping_to_a_missing_column_is_refused_before_the_first_row() {
    let stage = stage();
    let home = stage.path();
    fs::write(home.join("r.csv"), "id,body\n1,a\n2,b\n").unwrap();
    fs::write(home.join("r.jsonl"), "{\"id\":1,\"body\":\"a\"}\nno object\n{\"body\":\"b\",\"more\":2}\n")
        .unwrap();
    let before = contents(home);
    let rest = "-o o.jsonl --reply reply.txt";
    for rows in ["r.csv", "r.jsonl"] {
        for rest in [rest, "--dry-run --provider openai --model gpt-4.1-mini"] {
            let words = format!("batch summarizer {rows} {rest} --map text=bdy");
            let words: Vec<&str> = words.split(' ').collect();
            let (code, out, err) = done(cogn(home, &words));
            assert_eq!((code, out.as_str()), (1, ""), "{words:?}: {err}");
            assert!(err.contains("`--map text=bdy`") && err.contains("`body`"), "{words:?}: {err}");
        }
        let words = format!("batch summarizer {rows} {rest} --map text=body --id key");
        let (code, _, err) = done(cogn(home, &words.split(' ').collect::<Vec<_>>()));
        assert_eq!(code, 1, "{err}");
        assert!(err.contains("`--id key`"), "{err}");
    }
    assert!(contents(home) == before, "something was written");
    // A column that only a later row has is a column.
    let words = format!("batch summarizer r.jsonl {rest} --map text=body --id more");
    let (code, _, err) = done(cogn(home, &words.split(' ').collect::<Vec<_>>()));
    assert_eq!(code, 0, "{err}");
    assert_eq!(lines(&home.join("o.jsonl")).len(), 3);
}
