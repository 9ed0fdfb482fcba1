//! Tags of thinking as they arrive: `<think>`, `</think>` and their longer forms, in any case, split anywhere.
//! Looks at tags only.

use crate::stages::parse::{TAGS, Tag};

/// The beginning of what may be a tag.
#[derive(Debug, Default)]
pub(super) struct Tags(String);

impl Tags {
    /// Reads the tag that starts here: what was taken, and what it is once that is known. The error is the text of
    /// something that is no tag; the byte behind it is not taken.
    pub(super) fn one(&mut self, rest: &str) -> (usize, Option<Result<Tag, String>>) {
        for (index, letter) in rest.char_indices() {
            let length = self.0.len();
            self.0.push(letter.to_ascii_lowercase());
            if let Some((_, tag)) = TAGS.iter().find(|(name, _)| *name == self.0) {
                return (index + letter.len_utf8(), Some(Ok(*tag)));
            }
            if !TAGS.iter().any(|(name, _)| name.starts_with(&self.0)) {
                self.0.truncate(length);
                return (index, Some(Err(std::mem::take(&mut self.0))));
            }
        }
        (rest.len(), None)
    }

    /// Reads on to the next tag: what was taken, and the tag if there is one.
    pub(super) fn next(&mut self, rest: &str) -> (usize, Option<Tag>) {
        let mut here = 0;
        while let Some(text) = rest.get(here..).filter(|text| !text.is_empty()) {
            if self.0.is_empty() {
                match text.find('<') {
                    Some(at) => here += at,
                    None => return (rest.len(), None),
                }
            }
            let (taken, found) = self.one(rest.get(here..).unwrap_or_default());
            here += taken;
            if let Some(Ok(tag)) = found {
                self.0.clear();
                return (here, Some(tag));
            }
        }
        (here, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_found_however_they_are_split() {
        let text = "a <thin<Think>b<x></THINKING>";
        for size in 1..=text.len() {
            let mut tags = Tags::default();
            let mut found = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                let mut rest = std::str::from_utf8(piece).unwrap();
                while !rest.is_empty() {
                    let (taken, tag) = tags.next(rest);
                    found.extend(tag);
                    rest = &rest[taken..];
                }
            }
            assert_eq!(found, [Tag::Open, Tag::Close], "{size}");
        }
    }
}
