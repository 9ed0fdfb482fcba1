//! Converts tokens to text. A token may end within a character; only whole characters are returned.

/// Bytes of an incomplete character.
#[derive(Debug, Default)]
pub(crate) struct Characters {
    held: Vec<u8>,
}

impl Characters {
    /// Adds bytes and returns the characters that are now complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        self.held.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.held) {
            Ok(_) => self.held.len(),
            // Bytes that can never become a character are replaced, so that they do not block the rest.
            Err(error) if error.error_len().is_some() => self.held.len(),
            Err(error) => error.valid_up_to(),
        };
        let rest = self.held.split_off(whole);
        let whole = std::mem::replace(&mut self.held, rest);
        String::from_utf8_lossy(&whole).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_leave_whole() {
        let mut characters = Characters::default();
        assert_eq!(characters.push("a你".as_bytes().split_at(2).0), "a");
        assert_eq!(characters.push(&"a你".as_bytes()[2..]), "你");
        assert_eq!(characters.push(b"b"), "b");
    }
}
