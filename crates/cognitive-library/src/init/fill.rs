//! Template texts: each mark `<<name>>` is replaced by the part of that name. Has no conditions and no loops; Rust code
//! selects optional parts.

/// Replaces each mark by its part. Replaced text is searched for later marks too, so no part may contain one.
pub(super) fn fill(template: &str, parts: &[(&str, &str)]) -> String {
    parts.iter().fold(template.to_owned(), |text, (name, part)| text.replace(&format!("<<{name}>>"), part))
}

/// Joins blocks of lines with one empty line between them.
pub(super) fn join(blocks: &[String]) -> String {
    blocks.join("\n")
}
