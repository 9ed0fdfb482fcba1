//! A reader over bytes. Each step returns `None` if the bytes are missing; it never reads past the end.

/// Reads bytes forward.
#[derive(Debug, Clone)]
pub(crate) struct ByteReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> ByteReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The current position.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn remaining_length(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(crate) fn remainder(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(count)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn be16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn be32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn le16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn le24(&mut self) -> Option<u32> {
        self.array().map(|[a, b, c]: [u8; 3]| u32::from_le_bytes([a, b, c, 0]))
    }

    pub(crate) fn le32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }
}

/// Converts a length from a file to a number of bytes in memory.
pub(crate) fn size(length: u32) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_read_past_the_end() {
        let mut reader = ByteReader::new(&[1, 2, 3, 4, 5]);
        assert_eq!((reader.be16(), reader.le24(), reader.byte()), (Some(0x0102), Some(0x05_0403), None));
        assert_eq!((reader.at(), reader.remaining_length(), reader.remainder()), (5, 0, &[][..]));
        assert_eq!(reader.take(usize::MAX), None);
    }
}
