//! Size limits for contract files. They are checked before any other processing and know nothing of schemas.
//! Refuses files whose copies alone would exhaust the memory or the stack.

use serde_json::Value;

use super::walk::{self, PointerStep};
use super::{SchemaFiles, SchemaProblem};

/// JSON values over all files of a module. The largest real module seen has two thousand; each one costs the validator
/// about a kilobyte.
const MAX_VALUES: usize = 200_000;

/// Bytes of text over all files: member names and strings. Preparing and compiling make several copies.
const MAX_TEXT: usize = 16 << 20;

/// Bytes of one member name. Names are parts of pointers, and the validator stores a pointer for every keyword.
const MAX_NAME_LENGTH: usize = 1 << 10;

/// Bytes of all these pointers. Long names above many schemas would otherwise add up to gigabytes.
const MAX_POINTERS: usize = 16 << 20;

/// The deepest nesting of files and values. It is the limit of `serde_json`, and the stack budget is calculated for it.
pub(super) const MAX_DEPTH: usize = 128;

/// The first limit that the files exceed; at most one problem, since counting stops there.
pub(super) fn problems(files: &SchemaFiles) -> Vec<SchemaProblem> {
    let mut count = SchemaCount::default();
    for (file, root) in files {
        if let Err(excess) = count.add(root, 0, file.len()) {
            let pointer = walk::pointer(excess.steps.into_iter().rev());
            return vec![SchemaProblem::new(file, pointer, excess.message)];
        }
    }
    Vec::new()
}

#[derive(Default)]
struct SchemaCount {
    values: usize,
    text: usize,
    pointers: usize,
}

/// An exceeded limit. Steps to its location are collected on the way back, innermost first.
struct SchemaExcess<'a> {
    message: String,
    steps: Vec<PointerStep<'a>>,
}

impl<'a> SchemaExcess<'a> {
    fn new(message: String) -> Self {
        Self { message, steps: Vec::new() }
    }

    fn with_parent_step(mut self, step: PointerStep<'a>) -> Self {
        self.steps.push(step);
        self
    }
}

impl SchemaCount {
    fn add<'a>(&mut self, value: &'a Value, depth: usize, pointer: usize) -> Result<(), SchemaExcess<'a>> {
        self.values += 1;
        match value {
            Value::String(text) => self.text += text.len(),
            Value::Object(members) => self.pointers += pointer * (1 + members.len()),
            _ => {}
        }
        self.check(depth)?;
        match value {
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.add(item, depth + 1, pointer + 4)
                        .map_err(|each| each.with_parent_step(PointerStep::Index(index)))?;
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    self.name(name)?;
                    self.add(member, depth + 1, pointer + name.len() + 1)
                        .map_err(|each| each.with_parent_step(PointerStep::Name(name)))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn name<'a>(&mut self, name: &str) -> Result<(), SchemaExcess<'a>> {
        self.text += name.len();
        if name.len() > MAX_NAME_LENGTH {
            return Err(SchemaExcess::new(format!("a member name has more than {MAX_NAME_LENGTH} bytes")));
        }
        Ok(())
    }

    fn check<'a>(&self, depth: usize) -> Result<(), SchemaExcess<'a>> {
        let message = if self.values > MAX_VALUES {
            format!("the files contain more than {MAX_VALUES} values")
        } else if self.text > MAX_TEXT {
            format!("the files contain more than {} MiB of text", MAX_TEXT >> 20)
        } else if self.pointers > MAX_POINTERS {
            "the JSON pointers of all schemas are too long in total; use shorter names or fewer levels"
                .to_owned()
        } else if depth > MAX_DEPTH {
            format!("the file nests deeper than {MAX_DEPTH} levels")
        } else {
            return Ok(());
        };
        Err(SchemaExcess::new(message))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(schema: Value) -> String {
        let files = SchemaFiles::from([("schema.json".to_owned(), schema)]);
        let found = problems(&files);
        let lines: Vec<String> =
            found.into_iter().map(|each| format!("{} {}", each.pointer, each.message)).collect();
        lines.concat()
    }

    #[test]
    fn files_are_refused_by_their_size_alone() {
        assert_eq!(refused(json!({ "input": {}, "data": {} })), "");
        assert_eq!(
            refused(json!({ "a": vec![0; MAX_VALUES] })),
            "/a/199998 the files contain more than 200000 values"
        );
        assert_eq!(
            refused(json!({ "a": ["", "x".repeat(MAX_TEXT)] })),
            "/a/1 the files contain more than 16 MiB of text"
        );
    }

    #[test]
    fn long_names_are_refused_before_they_multiply() {
        let name = "x".repeat(MAX_NAME_LENGTH + 1);
        assert_eq!(refused(json!({ "a": { name: 0 } })), "/a a member name has more than 1024 bytes");
        let mut schema = json!({ "properties": (0..2_000).map(|n| (n.to_string(), json!({}))).collect::<serde_json::Map<_, _>>() });
        for _ in 0..30 {
            schema = json!({ "x".repeat(500): schema });
        }
        assert!(refused(schema).ends_with(
            "the JSON pointers of all schemas are too long in total; use shorter names or fewer levels"
        ));
    }

    #[test]
    fn deep_files_are_refused() {
        let nested = |depth| (0..depth).fold(json!(0), |inner, _| json!([inner]));
        assert_eq!(refused(nested(MAX_DEPTH)), "");
        assert!(refused(nested(MAX_DEPTH + 1)).ends_with("the file nests deeper than 128 levels"));
    }
}
