//! Template texts: `<<name>>` stands for a part that is put in its place.
//! Knows no conditions and no loops; what is optional is chosen in Rust.

/// Puts each part in its place. A part is never searched for further marks, as long as no part contains one.
pub(super) fn fill(template: &str, parts: &[(&str, &str)]) -> String {
    parts.iter().fold(template.to_owned(), |text, (name, part)| text.replace(&format!("<<{name}>>"), part))
}

/// Joins blocks of lines with one empty line between them.
pub(super) fn join(blocks: &[String]) -> String {
    blocks.join("\n")
}
