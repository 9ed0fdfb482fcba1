//! Migrates a module folder in memory by overlaying the files of the plan. The tests of `cognitive-library`
//! show that the real migration never leaves half a folder.

use cognitive_contract::json;
use cognitive_library::migrate::plan;
use cognitive_library::{Mode, validate, yaml};
use serde_json::{Map, Value};

use super::files::{self, Files};
use super::{Arguments, Outcome, VectorStop, broken_vector};

/// Migrates a folder to the current format and returns its content.
pub(super) fn migrate(given: Arguments<'_>) -> Outcome {
    let before = files::files(given.object("files")?)?;
    let migrated = migrate_folder(&before)?;
    let after = if given.flag("dry_run")? { before.clone() } else { migrated };
    let mut result = Map::new();
    if wants_repeat(given)? {
        let second = migrate_folder(&after)?;
        result.insert("second_run_unchanged".to_owned(), Value::Bool(second == after));
    }
    result.insert("files".to_owned(), files_outcome(&after)?);
    result.insert("unchanged".to_owned(), Value::Bool(after == before));
    let strict = validate(&files::folder(after), Mode::Strict);
    result.insert("then_validate_strict".to_owned(), Value::Bool(strict.valid()));
    Ok(Value::Object(result))
}

/// Returns whether `repeat` requests a second run: `true`, or a number of runs above one. Further runs start
/// from the same files, so they would show nothing new.
fn wants_repeat(given: Arguments<'_>) -> Result<bool, VectorStop> {
    match given.get("repeat").map(|repeat| (repeat, repeat.as_u64())) {
        None => Ok(false),
        Some((_, Some(runs))) if runs > 0 => Ok(runs > 1),
        Some((Value::Bool(again), _)) => Ok(*again),
        Some(_) => Err(broken_vector("`repeat` is neither a boolean nor a number of runs")),
    }
}

/// The folder after the plan. A refusal makes the case invalid: otherwise it would look like "nothing
/// changed".
fn migrate_folder(before: &Files) -> Result<Files, VectorStop> {
    let plan = plan(&files::folder(before.clone()))
        .map_err(|error| broken_vector(format!("the migration was refused: {error}")))?;
    let mut after = before.clone();
    after.extend(plan.files.into_iter().map(|(path, text)| (path, text.into_bytes())));
    Ok(after)
}

/// The files as expectations see them: YAML and JSON as values, the rest as text.
fn files_outcome(files: &Files) -> Outcome {
    let value = |path: &str, bytes: &[u8]| {
        let text = std::str::from_utf8(bytes).map_err(|error| broken_vector(format!("`{path}`: {error}")))?;
        match path.rsplit_once('.') {
            Some((_, "yaml")) => {
                yaml::parse(text).map_err(|error| broken_vector(format!("`{path}`: {}", error.message)))
            }
            Some((_, "json")) => {
                json::parse(text).map_err(|error| broken_vector(format!("`{path}`: {}", error.message)))
            }
            _ => Ok(Value::from(text)),
        }
    };
    let shown = files.iter().map(|(path, bytes)| Ok((path.clone(), value(path, bytes)?)));
    shown.collect::<Result<Map<_, _>, VectorStop>>().map(Value::Object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn old() -> Value {
        let module = "---\nname: my-module\nversion: 1.0.0\nresponsibility: One sentence\n---\n\nDo it.\n";
        let schema = json!({ "input": { "type": "object" }, "output": { "type": "object" } });
        json!({ "files": { "MODULE.md": module, "schema.json": schema } })
    }

    fn outcome(given: &Value) -> Outcome {
        migrate(Arguments::new(given).unwrap())
    }

    #[test]
    fn files_show_what_was_written() {
        let mut given = old();
        given["repeat"] = json!(true);
        let result = outcome(&given).unwrap();
        assert_eq!(result["files"]["module.yaml"]["name"], "my-module");
        assert_eq!(result["files"]["MODULE.md"], given["files"]["MODULE.md"]);
        assert_eq!((&result["unchanged"], &result["second_run_unchanged"]), (&json!(false), &json!(true)));
    }

    #[test]
    fn repeat_is_a_switch_or_a_number_of_runs() {
        for (repeat, second) in
            [(json!(2), Some(json!(true))), (json!(3), Some(json!(true))), (json!(1), None)]
        {
            let mut given = old();
            given["repeat"] = repeat;
            assert_eq!(outcome(&given).unwrap().get("second_run_unchanged"), second.as_ref());
        }
        for odd in [json!(0), json!("2"), json!(1.5), json!(null)] {
            let mut given = old();
            given["repeat"] = odd;
            assert!(matches!(outcome(&given), Err(VectorStop::Broken(_))));
        }
    }

    #[test]
    fn a_dry_run_shows_the_old_files_and_a_refusal_shows_none() {
        let mut given = old();
        given["dry_run"] = json!(true);
        let result = outcome(&given).unwrap();
        assert_eq!((&result["unchanged"], result["files"].get("module.yaml")), (&json!(true), None));
        given["files"] = json!({ "module.md": "---\nname: a\n---\n" });
        assert!(matches!(outcome(&given), Err(VectorStop::Broken(_))));
    }
}
