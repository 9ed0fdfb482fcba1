//! The command line as a process: exact exit code, stdout and stderr.

use std::fs;
use std::path::Path;

use cognitive_testkit::{Home, ProcessOutput};
use serde_json::Value;

use crate::home;

fn bundled(path: &str) -> String {
    let full = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../modules").join(path);
    full.canonicalize().unwrap().display().to_string()
}

const V1: &str = "---\nname: old\nversion: 1.0.0\nresponsibility: Answer a question\nexcludes: [guessing]\nconstraints:\n  no_network: true\n---\n# Old\n\nAnswer the question.\n";
const V1_SCHEMA: &str = r#"{"input": {"type": "object"}, "output": {"type": "object", "properties": {"result": {"type": "string"}}}}"#;

#[test]
fn gen_006_versions_of_the_specification_are_declared() {
    let place = home();
    assert_eq!(place.cogn(&["-V"]).out, format!("cogn {}\n", env!("CARGO_PKG_VERSION")));
    assert!(place.cogn(&["--version"]).out.contains("spec_versions: [\"2.5\", \"2.2\", \"2.1\"]"));
}

// CLI-001: `cog` is the same program.
#[test]
fn the_short_name_is_the_same_program() {
    let place = home();
    let short = Home::new(env!("CARGO_BIN_EXE_cog"));
    assert_eq!(short.cogn(&["--version"]).out, place.cogn(&["--version"]).out);
    // Its arguments, and how it ends, are those of the other.
    let (other, own) = (short.cogn(&["explain", "E9"]), place.cogn(&["explain", "E9"]));
    assert_eq!((other.code, other.err), (own.code, own.err));
    assert_eq!(short.cogn(&["frobnicate"]).code, Some(2));
}

// CLI-004
#[test]
fn wrong_usage_is_exit_2_and_says_so_on_stderr() {
    let output = home().cogn(&["frobnicate"]);
    assert_eq!((output.exit(), output.out.as_str()), (2, ""));
    assert!(output.err.contains("unrecognized subcommand"), "{}", output.err);
}

// CLI-004, D-02: a saved reply runs through the whole pipeline.
#[test]
fn a_run_prints_the_envelope_and_nothing_else() {
    let place = home();
    let reply = bundled("text-classifier/tests/free-topic.reply.txt");
    let input = bundled("text-classifier/tests/free-topic.input.json");
    let output = place.cogn(&["run", "text-classifier", &input, "--provider", "replay", "--reply", &reply]);
    assert_eq!((output.exit(), output.err.as_str()), (0, ""));
    let envelope = output.envelope();
    assert_eq!(envelope["ok"], true);
    assert_eq!(envelope["meta"]["model"], "replay/saved-reply");
}

// MEDIA-017: the media of an answer are written to files, in every output format.
#[test]
fn media_017_media_out_writes_files_for_programs_and_for_people() {
    let place = home();
    let reply = bundled("image-generator/tests/blue-square.reply.txt");
    let input = bundled("image-generator/tests/blue-square.input.json");
    let run = ["run", "image-generator", &input, "--reply", &reply, "--output", "kept.json", "--media-out"];
    for (folder, more) in [("one", &[][..]), ("two", &["--view"])] {
        let output = place.cogn(&[&run[..], &[folder], more].concat()).expect_exit(0);
        let path = Path::new(folder).join("images-0.png").display().to_string();
        assert!(output.out.contains(&path) && !output.out.contains("iVBOR"), "{}", output.out);
        assert!(fs::read(place.path(&path)).unwrap().starts_with(b"\x89PNG"));
        let kept: Value =
            serde_json::from_str(&fs::read_to_string(place.path("kept.json")).unwrap()).unwrap();
        assert_eq!(kept["data"]["images"][0]["path"], path.as_str());
    }
}

// CLI-004: regardless of the failure contract, the envelope is printed, and the exit code is 1.
#[test]
fn every_failing_run_prints_a_failure_envelope() {
    let place = home();
    let reply = bundled("text-classifier/tests/free-topic.reply.txt");
    let saved = ["--provider", "replay", "--reply", reply.as_str()];
    place.write("thrower/module.yaml", "name: thrower\ntier: decision\nfailure: {contract: throw}\n");
    place
        .write("thrower/prompt.md", "p")
        .write("thrower/schema.json", r#"{"input": {"required": ["q"]}, "data": {}}"#);
    place.write("broken/module.yaml", "tier: fast\n");
    for (args, code) in [
        (["run", "no-such-module", "--input", "{"], "E4006"),
        (["run", "text-classifier", "--input", "{"], "E1000"),
        (["run", "text-classifier", "--input", "[]"], "E1001"),
        (["run", "text-classifier", "--input", "{}"], "E1001"),
        (["run", "./thrower", "--input", "{}"], "E1001"),
        (["run", "./broken", "--input", "{}"], "E4000"),
    ] {
        let output = place.cogn(&[&args[..], &saved[..]].concat()).expect_exit(1);
        let envelope = output.envelope();
        assert_eq!(envelope["error"]["code"], code, "{args:?}: {envelope}");
        assert!(envelope["error"]["suggestion"].is_string(), "{envelope}");
    }
    // No provider is configured, and the embedded model has no weights and may not download them.
    let none = place.cogn(&["run", "text-classifier", "--set", "text=x"]).expect_exit(1);
    assert_eq!(none.json["error"]["code"], "E4001");
}

#[test]
fn list_shows_what_can_be_run_and_what_is_broken() {
    let place = home();
    place.write(
        "cognitive/modules/mine/module.yaml",
        "name: mine\nversion: 1.2.3\ntier: exec\nresponsibility: Mine\n",
    );
    place.write("cognitive/modules/odd/module.yaml", "tier: [\n");
    let output = place.cogn(&["list"]).expect_exit(0);
    let line = |name: &str| output.out.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert_eq!(
        line("mine").split_whitespace().collect::<Vec<_>>(),
        ["mine", "1.2.3", "exec", "project", "Mine"]
    );
    assert!(line("odd").ends_with("broken"));
    assert!(line("code-reviewer").contains("bundled"));
    assert!(!output.out.contains('\u{1b}'), "a pipe gets no colour");
    let json = place.json(&["list", "--json"]);
    assert_eq!(json.as_array().unwrap().len(), 16);
}

#[test]
fn info_shows_what_goes_in_and_out() {
    let place = home();
    let output = place.cogn(&["info", "text-classifier"]).expect_exit(0);
    for words in ["text-classifier 1.2.0", "tier", "Input", "Data", "rationale", "Does not do"] {
        assert!(output.out.contains(words), "{words} in {}", output.out);
    }
    assert_eq!(place.json(&["info", "text-classifier", "--json"])["manifest"]["tier"], "decision");
    let missing = place.cogn(&["info", "text-clasifier"]).expect_exit(1);
    assert_eq!(
        missing.err,
        "error: module not found: `text-clasifier`\nhint: Did you mean `text-classifier`? `cogn list` shows all modules\n"
    );
}

#[test]
fn val_001_005_findings_point_into_the_file_all_at_once() {
    let place = home();
    place.write(
        "m/module.yaml",
        "name: m\nversion: 1.0.0\nresponsibility: R\ntier: fast\nexcludes: [x]\noverflow:\n  max_items: 21\n",
    );
    place
        .write("m/prompt.md", "envelope")
        .write("m/schema.json", r#"{"input": {}, "data": {"type": "strng"}}"#);
    let output = place.cogn(&["validate", "./m"]).expect_exit(1);
    let expected = "\
m (v2.2, standard validation)
error: `tier`: expected one of `exec`, `decision`, `exploration`
 --> ./m/module.yaml:4:7
  |
4 | tier: fast
  |       ^^^^

error: `overflow.max_items`: expected at most 20
 --> ./m/module.yaml:7:14
  |
7 |   max_items: 21
  |              ^^
";
    assert!(output.out.starts_with(expected), "{}", output.out);
    let json = place.json(&["validate", "./m", "--json"]);
    assert_eq!(json[0]["valid"], false);
    let first = &json[0]["findings"][0];
    assert_eq!((first["line"].as_u64(), first["column"].as_u64()), (Some(4), Some(7)));
}

#[test]
fn every_bundled_module_validates_strictly_from_the_command_line() {
    let place = home();
    let output = place.cogn(&["validate", "--all", "--v22"]).expect_exit(0);
    assert_eq!(output.out.matches("\nvalid").count(), 14);
}

#[test]
fn env_011_check_judges_envelopes_chunks_and_logs() {
    let place = home();
    let good = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "e"}, "data": {"rationale": "r"}}"#;
    let output = place.run(&["check"], &[], good);
    assert_eq!((output.exit(), output.out.as_str()), (0, "valid envelope: stdin\n"));
    let output = place.run(&["check", "-"], &[], &good.replace("0.9", "1.5")).expect_exit(1);
    output.assert_stdout(&["`/meta/confidence`: expected a number from 0 to 1 (E3001)"]);
    assert!(output.out.contains("--> stdin:1:37"), "{}", output.out);
    let log = "{\"ok\":true,\"streaming\":true,\"session_id\":\"s\",\"meta\":{\"confidence\":null,\"risk\":\"low\",\"explain\":\"\"}}\n{\"chunk\":{\"seq\":1,\"type\":\"delta\",\"field\":\"data.rationale\",\"delta\":\"r\"}}\n";
    let output = place.run(&["check", "--json"], &[], log).expect_exit(1);
    assert_eq!(output.json["kind"], "stream log");
    let text = place.run(&["check"], &[], "not json").expect_exit(1);
    assert!(text.out.contains("not JSON: expected ident"), "{}", text.out);
}

#[test]
fn check_with_a_module_judges_the_data_too() {
    let place = home();
    let envelope = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "e"}, "data": {"rationale": "r"}}"#;
    place.write("e.json", envelope);
    assert_eq!(place.cogn(&["check", "e.json"]).exit(), 0);
    let output = place.cogn(&["check", "e.json", "--module", "summarizer"]).expect_exit(1);
    assert!(output.out.contains("required member `summary` is missing"), "{}", output.out);
    let log = "{\"ok\":true,\"streaming\":true,\"session_id\":\"s\",\"meta\":{\"confidence\":null,\"risk\":\"low\",\"explain\":\"\"}}\n{\"final\":true,\"meta\":{\"confidence\":1,\"risk\":\"low\",\"explain\":\"\"},\"data\":{\"rationale\":\"r\"}}\n";
    assert_eq!(place.run(&["check"], &[], log).exit(), 0);
    let output = place.run(&["check", "--module", "summarizer"], &[], log).expect_exit(1);
    assert!(output.out.contains("`/1/data/summary`"), "{}", output.out);
}

#[test]
fn init_makes_a_module_that_is_valid_and_runs() {
    let place = home();
    for (name, flags) in [
        ("plain", &[][..]),
        ("strict", &["--tier", "exec", "--streaming"]),
        ("seeing", &["--tier", "exploration", "--media", "image", "--context", "--compose"]),
    ] {
        let output = place.cogn(&[&["init", name], flags].concat());
        assert_eq!((output.exit(), output.out.as_str()), (0, ""), "{}", output.err);
        let valid = place.cogn(&["validate", name, "--v22"]);
        assert!(valid.out.ends_with("\nvalid\n"), "{}", valid.out);
        let example = format!("cognitive/modules/{name}/tests/example");
        let (input, reply) = (format!("{example}.input.json"), format!("{example}.reply.txt"));

        place.cogn(&["run", name, &input, "--provider", "replay", "--reply", &reply]).expect_exit(0);
    }
    let again = place.cogn(&["init", "plain"]).expect_exit(1);
    assert!(again.err.contains("the path already exists"), "{}", again.err);
    let odd = place.cogn(&["init", "My Module"]);
    assert!(odd.err.ends_with("hint: Use `my-module`\n"), "{}", odd.err);
    assert!(!place.path("cognitive/modules/My Module").exists());
}

#[test]
fn mig_001_005_to_008_migrate_writes_backs_up_and_goes_on() {
    let place = home();
    place.write("cognitive/modules/old/MODULE.md", V1).write("cognitive/modules/old/schema.json", V1_SCHEMA);
    place.write("cognitive/modules/ancient/module.md", "---\nname: ancient\n---\n");
    let dry = place.cogn(&["migrate", "old", "--dry-run"]).expect_exit(0);
    assert!(dry.out.starts_with("old: would migrate v1 → v2.2\n"), "{}", dry.out);
    assert_eq!(fs::read_dir(place.path("cognitive/modules/old")).unwrap().count(), 2);
    let all = place.cogn(&["migrate", "--all"]).expect_exit(1);
    assert!(all.err.contains("requires manual review"), "{}", all.err);
    assert!(all.out.contains("old: migrated v1 → v2.2"), "{}", all.out);
    place.cogn(&["validate", "old", "--v22"]).expect_exit(0);
    let again = place.json(&["migrate", "old", "--json"]);
    assert_eq!(again[0]["changed"], false);
    let names: Vec<String> = fs::read_dir(place.path("cognitive/modules"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names.iter().filter(|name| name.starts_with("old_backup_")).count(), 1, "{names:?}");
    // S-38: a backup is neither listed nor migrated.
    assert!(!place.cogn(&["list"]).out.contains("_backup_"));
    assert_eq!(place.cogn(&["migrate", "--all"]).out.matches("backup").count(), 0);
}

#[test]
fn explain_knows_numbers_names_and_module_codes() {
    let place = home();
    let output = place.cogn(&["explain", "e3001"]).expect_exit(0);
    assert!(output.out.starts_with("E3001 SCHEMA_VALIDATION_FAILED\n"), "{}", output.out);
    assert_eq!(place.cogn(&["explain", "OUTPUT_SCHEMA_VIOLATION"]).out, output.out);
    assert!(place.cogn(&["explain", "E5001"]).out.contains("error_codes"));
    assert_eq!(place.cogn(&["explain", "E0000"]).exit(), 1);
    assert_eq!(place.cogn(&["explain"]).out.lines().count(), 48);
}

// Confidence is never described as a probability of being right.
#[test]
fn schemas_are_printed_and_say_what_confidence_is() {
    let place = home();
    let envelope = place.json(&["schema", "envelope"]);
    let confidence = &envelope["definitions"]["meta"]["properties"]["confidence"]["description"];
    assert!(confidence.as_str().unwrap().contains("Not a probability"));
    let manifest = place.json(&["schema", "module"]);
    assert_eq!(manifest["properties"]["tests"]["type"], "array");
    for what in ["config", "expected", "eval"] {
        assert_eq!(place.json(&["schema", what])["type"], "object");
    }
    let written = place.cogn(&["schema", "--write=schemas"]);
    assert_eq!((written.exit(), written.out.lines().count()), (0, 5), "{}", written.err);
}

#[test]
fn completions_are_written_for_every_shell() {
    let place = home();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = place.cogn(&["completions", shell]);
        assert!(output.exit() == 0 && output.out.contains("COGN_COMPLETE"), "{shell}");
        for name in ["cogn", "cog"] {
            let own = output.out.split(|letter: char| !letter.is_alphanumeric()).any(|word| word == name);
            assert!(own, "{shell} completes {name}");
        }
    }
}

// A shell gets its completions from the program: current commands, options, modules of this folder, providers and
// codes.
#[test]
fn a_shell_is_offered_what_can_be_typed() {
    let place = home();
    place.write("cognitive/modules/mine/module.yaml", "name: mine\n");
    fs::create_dir_all(place.path("deep/er")).unwrap();
    let offered = |words: &[&str]| -> Vec<String> {
        let mut command = place.command(&[&["--", "cogn"], words].concat(), &[("COGN_COMPLETE", "fish")]);
        let text = ProcessOutput::run(command.current_dir(place.path("deep/er"))).out;
        text.lines().filter_map(|line| line.split('\t').next().map(str::to_owned)).collect()
    };
    assert_eq!(offered(&["run", "mi"]), ["mine"]);
    assert!(offered(&["test", "su"]).contains(&"summarizer".to_owned()));
    assert_eq!(offered(&["run", "summarizer", "--provider", "anth"]), ["anthropic"]);
    assert_eq!(offered(&["explain", "E300"]).len(), 6);
    assert_eq!(offered(&["audit", "st"]), ["stats"]);
    assert_eq!(offered(&["read-"]), Vec::<String>::new(), "what nobody types is not offered");
}

#[test]
fn manual_pages_are_printed_and_written() {
    let place = home();
    let page = place.cogn(&["man", "audit", "list"]);
    assert!(page.exit() == 0 && page.out.contains(".TH cogn-audit-list 1"), "{}", page.out);
    assert_eq!(place.cogn(&["man", "frobnicate"]).exit(), 2);
    assert_eq!(place.cogn(&["man", "--output", "pages"]).exit(), 0);
    for name in ["cogn.1", "cogn-run.1", "cogn-audit-show.1"] {
        assert!(place.path("pages").join(name).is_file(), "{name}");
    }
}

// A project is found from its subfolders; a file named by `--config` replaces its configuration.
#[test]
fn a_project_is_found_upwards_with_its_modules_and_its_file() {
    let place = home();
    place.write("cognitive/modules/mine/module.yaml", "name: mine\nresponsibility: Mine\n");
    place.write("cognitive.yaml", "exec_min_confidence: 2\n");
    place.write("deep/er/other.yaml", "reask: 1\n");
    let in_it =
        |args: &[&str]| ProcessOutput::run(place.command(args, &[]).current_dir(place.path("deep/er")));
    let listed = in_it(&["list"]).out;
    assert!(listed.lines().nth(1).unwrap().starts_with("mine "), "one's own come first: {listed}");
    let run = ["run", "summarizer", "--set", "text=x"];
    assert!(in_it(&run).out.contains("exec_min_confidence"), "the file of the project counts");
    let named = in_it(&[&run[..], &["--config", "other.yaml"]].concat()).out;
    assert!(!named.contains("exec_min_confidence"), "{named}");
    let missing = in_it(&["capabilities", "--config", "nothing.yaml"]);
    assert!(missing.exit() == 1 && missing.err.contains("no such file: `nothing.yaml`"), "{}", missing.err);
}

// Without a name, `test` and `validate` process the user's own modules.
#[test]
fn without_a_name_ones_own_modules_are_meant() {
    let place = home();
    for command in ["test", "validate"] {
        let nothing = place.cogn(&[command]);
        assert_eq!((nothing.exit(), nothing.out.as_str()), (1, ""), "{command}");
        nothing.err_has(&["no modules of your own", "--bundled"]);
    }
    assert_eq!(place.cogn(&["init", "mine"]).exit(), 0);
    let tested = place.cogn(&["test"]);
    assert!(tested.exit() == 0 && tested.out.starts_with("mine\n"), "{}{}", tested.out, tested.err);
    assert!(place.cogn(&["test", "--bundled"]).out.contains("\nsummarizer\n"));
    let validated = place.cogn(&["validate"]).out;
    assert!(validated.starts_with("mine ") && !validated.contains("summarizer"), "{validated}");
}

#[test]
fn single_members_follow_the_schema_and_stand_over_a_file() {
    let place = home();
    place
        .write("long.txt", "A text in a file.\n")
        .write("in.json", r#"{"text": "Old.", "max_sentences": 2}"#);
    let input = |args: &[&str]| -> Value {
        let shown = place.json(&[&["prompt", "summarizer", "--json"], args].concat());
        let text = shown["input"].as_str().unwrap();
        let object = text.get(text.find('{').unwrap()..=text.rfind('}').unwrap()).unwrap();
        serde_json::from_str(object).unwrap()
    };
    assert_eq!(input(&["--set", "text=42"])["text"], "42");
    assert_eq!(input(&["--set", "text=@long.txt"])["text"], "A text in a file.\n");
    let both = input(&["in.json", "--set", "text=New."]);
    assert_eq!((&both["text"], &both["max_sentences"]), (&"New.".into(), &2.into()));
    let wrong = place.cogn(&["run", "summarizer", "--input", "{\n  \"text\": nope}"]);
    assert!(wrong.out.contains("line 2, column 12"), "{}", wrong.out);
}

#[test]
fn what_is_no_code_is_answered_with_an_error_and_a_suggestion() {
    let place = home();
    let wrong = place.cogn(&["explain", "parse_eror"]);
    assert_eq!((wrong.exit(), wrong.out.as_str()), (1, ""));
    wrong.err_has(&["`parse_eror`", "Did you mean `PARSE_ERROR`?"]);
    assert_eq!(place.json(&["explain", "E3001", "--json"])["name"], "SCHEMA_VALIDATION_FAILED");
    assert_eq!(place.json(&["explain", "--json"]).as_array().unwrap().len(), 48);
    assert_eq!(place.json(&["model", "rm", "--json"])["removed"], false);
    assert!(place.json(&["model", "path", "--json"])["path"].is_null());
}

// `doctor` must work with a broken configuration file.
#[test]
fn doctor_survives_a_broken_file_and_says_what_to_do() {
    let place = home();
    place.write("cognitive.yaml", "reask: 1\nmodle: x\n");
    let told = place.cogn(&["doctor"]).expect_exit(1);
    assert!(told.out.contains("line 2: unknown setting `modle`; did you mean `model`?"), "{}", told.out);
    assert!(told.out.contains("next") && told.out.contains("cannot be used"), "{}", told.out);
    assert!(!told.out.contains("not configured\n") && told.out.contains("`--all`"), "{}", told.out);
    let health = place.json(&["doctor", "--json"]);
    assert_eq!(health["problems"].as_array().unwrap().len(), 1);
    assert!(place.cogn(&["doctor", "--all"]).out.contains("openrouter"));
}

#[test]
fn colour_and_chatter_are_decided_by_flags() {
    let place = home();
    assert!(place.cogn(&["list", "--color", "always"]).out.contains('\u{1b}'));
    assert!(place.cogn(&["--color=always", "frobnicate"]).err.contains('\u{1b}'));
    assert!(!place.cogn(&["list", "--color", "never"]).out.contains('\u{1b}'));
    place.write("cognitive.yaml", "audit: {enabled: false}\n");
    let run = ["run", "summarizer", "--set", "text=x"];
    assert!(place.cogn(&run).err.contains("warning"));
    assert_eq!(place.cogn(&[&run[..], &["-q"]].concat()).err, "");
    let wordy = place.cogn(&[&run[..], &["-v"]].concat()).err;
    assert!(wordy.contains("provider embedded") && wordy.contains("cognitive.yaml"), "{wordy}");
}

// GEN-010: a router that reads only `ok`, `meta` and `error` works for modules with unrelated data.
#[test]
fn gen_010_routing_needs_no_data() {
    let place = home();
    let route = |module: &str, case: &str| {
        let input = bundled(&format!("{module}/tests/{case}.input.json"));
        let reply = bundled(&format!("{module}/tests/{case}.reply.txt"));
        let mut envelope = place.json(&["run", module, &input, "--provider", "replay", "--reply", &reply]);
        envelope.as_object_mut().unwrap().shift_remove("data");
        match (envelope["ok"].as_bool(), envelope["meta"]["risk"].as_str()) {
            (Some(true), Some("none" | "low")) => "accept",
            (Some(true), _) => "review",
            _ => "retry",
        }
    };
    assert_eq!(route("code-reviewer", "sql-injection"), "review");
    assert_eq!(route("summarizer", "two-sentences"), "accept");
    assert_eq!(route("summarizer", "nothing-to-shorten"), "retry");
}

// A user sees the first hundred losses and the number of the rest; a program gets all of them.
#[test]
fn a_person_is_shown_a_hundred_losses() {
    let place = home();
    let mut members: Vec<String> =
        (0..150).map(|number| format!(r#""m{number}": {{"type": "string", "minLength": 3}}"#)).collect();
    members.push(r#""rationale": {"type": "string"}"#.to_owned());
    let members = members.join(", ");
    let data = format!(r#"{{"type": "object", "required": ["rationale"], "properties": {{{members}}}}}"#);
    place
        .write("m/module.yaml", "name: m\nversion: 1.0.0\nresponsibility: r\ntier: decision\n")
        .write("m/schema.json", format!(r#"{{"input": {{"type": "object"}}, "data": {data}}}"#))
        .write("m/prompt.md", "Answer.");
    let shown = place.cogn(&["lower", "./m", "--target", "openai"]);
    let lines = shown.err.lines().filter(|line| line.starts_with("  ")).count();
    assert_eq!((shown.exit(), lines), (0, 101), "{}", shown.err);
    assert!(shown.err.contains("more; `--json` lists all of them"), "{}", shown.err);
    let listed = place.cogn(&["lower", "./m", "--target", "openai", "--json"]);
    assert!(listed.out.matches("minLength").count() >= 150);
}

/// The first findings about three short files concern the module, not an old format.
#[test]
fn a_fresh_module_gets_advice_on_one_line_and_no_old_format() {
    let place = home();
    place
        .write("m/module.yaml", "name: m\nversion: 1.0.0\nresponsibility: r\n")
        .write("m/schema.json", r#"{"input": {"type": "object"}, "data": {"type": "object", "required": ["rationale"], "properties": {"rationale": {"type": "string"}}}}"#)
        .write("m/prompt.md", "Answer.");
    let said = place.cogn(&["validate", "./m"]).expect_exit(0).out;
    assert!(!said.contains("legacy") && !said.contains("deprecated"), "{said}");
    assert_eq!(said.matches("warning: ").count(), 2, "{said}");
    place.write("m/module.yaml", "name: m\nversion: 1.0.0\nresponsibility: r\nteir: exec\n");
    let said = place.cogn(&["validate", "./m"]).expect_exit(0).out;
    let first = said.split("warning: ").nth(1).unwrap();
    assert!(first.contains("`teir`") && first.contains("Did you mean `tier`?"), "{said}");
}

/// The printed steps of `init` work as printed, in every tier.
#[test]
fn each_step_after_init_works_as_printed() {
    let place = home();
    for tier in ["exec", "decision", "exploration"] {
        let made = place.json(&["init", tier, "--tier", tier, "--json"]);
        for step in made["next"].as_array().unwrap() {
            let step = step.as_str().unwrap();
            if step.contains("--set") {
                assert_ne!(tier, "exec", "without training, no embedded model is sure enough for the gate");
                continue;
            }
            let words: Vec<&str> = step.split_whitespace().skip(1).collect();
            let done = place.cogn(&words);
            assert_eq!(done.exit(), 0, "{step}: {}", done.all());
        }
    }
}

#[test]
fn members_of_meta_are_explained_like_codes() {
    let place = home();
    for name in ["latency_ms", "meta.processing_time_ms"] {
        let said = place.cogn(&["explain", name]).expect_exit(0).out;
        assert!(said.contains("`meta.") && said.contains("run"), "{said}");
    }
    assert!(place.json(&["explain", "risk", "--json"])["text"].as_str().unwrap().contains("input"));
    place.cogn(&["explain", "latency"]).expect_exit(1).err_has(&["unknown error code"]);
}

#[test]
fn media_without_a_place_are_refused_with_the_members_that_there_are() {
    let place = home();
    let schema = serde_json::json!({
        "input": { "type": "object", "properties": { "note": { "type": "string" },
            "shots": { "type": "array", "items": { "type": "object" } } } },
        "data": { "type": "object", "required": ["rationale"], "properties": { "rationale": { "type": "string" } } },
    });
    let manifest =
        "name: m\nversion: 1.0.0\nresponsibility: r\ntier: decision\nmodalities: {input: [text, image]}\n";
    place.module("./m", manifest, "Look.", &schema);
    let refused = place.cogn(&["run", "./m", "--media", "https://example.com/a.png"]).expect_exit(1);
    let message = refused.envelope()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("`note`") && message.contains("`shots`"), "{message}");
    // `validate` says the same before a run.
    place.cogn(&["validate", "./m"]).expect_exit(0).assert_stdout(&["`shots`", "MediaInput"]);
}

/// The suggestion of a failure that is not recoverable is another one than to run it again.
#[test]
fn what_cannot_be_recovered_is_not_suggested_to_be_run_again() {
    let place = home();
    place.simple_module("plain", &serde_json::json!({}));
    for reply in ["no answer", r#"{"ok": true, "data": {}}"#, "[1]"] {
        place.write("reply.txt", reply);
        let words = ["run", "plain", "--input", "{}", "--provider", "replay", "--reply", "reply.txt"];
        let error = place.cogn(&words).expect_exit(1).envelope()["error"].clone();
        let suggestion = error["suggestion"].as_str().unwrap_or_default();
        let again = suggestion.to_lowercase().contains("run it again");
        assert!(error["recoverable"] == true || !again, "{error}");
    }
}

/// A client starts the program in another folder.
#[test]
fn a_client_that_was_installed_serves_the_project_it_was_installed_from() {
    let place = home();
    place.write("cognitive.yaml", "{}\n");
    let words = ["mcp", "install", "cursor", "--yes", "--json"];
    let key = ("OPENAI_API_KEY", "sk-very-secret");
    assert_eq!(place.run(&words, &[key], "").exit(), 0);
    let text = place.read(".cursor/mcp.json");
    assert!(!text.contains("very-secret"), "{text}");
    let entry: Value = serde_json::from_str(&text).unwrap();
    let entry = &entry["mcpServers"]["cogn"];
    assert_eq!(entry["env"], serde_json::json!({ "OPENAI_API_KEY": "${env:OPENAI_API_KEY}" }), "{entry}");
    let folder = place.folder().canonicalize().unwrap().display().to_string();
    assert_eq!(entry["args"], serde_json::json!(["mcp", "--folder", folder]));
    // The folder counts, and a missing one is said.
    place.simple_module("elsewhere/cognitive/modules/mine", &serde_json::json!({}));
    let cost = ["mcp", "--folder", "elsewhere", "--tools", "mine", "--cost"];
    place.cogn(&cost).expect_exit(0).assert_stdout(&["mine"]);
    place.cogn(&["mcp", "--folder", "nowhere", "--cost"]).expect_exit(1).err_has(&["nowhere"]);
}
