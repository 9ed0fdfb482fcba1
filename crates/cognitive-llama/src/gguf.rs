//! Reads the header of the GGUF container, version 3: named values, and the positions of named tensors. Every count,
//! length and offset is checked against the length of the file. So a damaged or hostile file causes a [`WeightsError`],
//! never a panic or an allocation larger than the file. Copies nothing and knows no model.

use std::collections::{HashMap, HashSet};
use std::io;

use super::blocks::Encoding;
use super::{ELSEWHERE, WeightsError};

/// The header of a file: its values, and the positions of its tensors.
#[derive(Debug)]
pub(super) struct Gguf<'a> {
    values: HashMap<&'a str, Value<'a>>,
    infos: Vec<Info<'a>>,
    /// The length of the header with its padding. The offsets of the tensors count from here.
    pub(super) end: usize,
    /// The number of bytes after the header.
    left: usize,
}

/// The reason why no header was read.
#[derive(Debug)]
pub(super) enum HeaderGap {
    /// The header continues in bytes of the file that have not been read.
    GoesOn,
    /// The bytes are not a valid header.
    Refused(WeightsError),
}

/// One named value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value<'a> {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bool(bool),
    Text(&'a str),
    List(List<'a>),
}

/// A list of values, checked but not decoded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct List<'a> {
    kind: u32,
    count: usize,
    bytes: &'a [u8],
}

/// The header entry of a tensor.
#[derive(Debug)]
struct Info<'a> {
    name: &'a str,
    columns: usize,
    rows: usize,
    kind: u32,
    offset: usize,
}

/// The position and type of a tensor. Its bytes are within the file and overlap no other tensor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent<'a> {
    pub(super) name: &'a str,
    pub(super) encoding: Encoding,
    pub(super) columns: usize,
    pub(super) rows: usize,
    /// Counted from the end of the header.
    pub(super) offset: usize,
    pub(super) length: usize,
}

/// A tensor of one or two dimensions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tensor<'a> {
    pub(super) encoding: Encoding,
    /// The length of a row.
    pub(super) columns: usize,
    pub(super) rows: usize,
    /// Exactly `rows` rows.
    pub(super) bytes: &'a [u8],
}

impl<'a> Gguf<'a> {
    /// Reads the header from the first bytes of a file of `length` bytes.
    pub(super) fn read(bytes: &'a [u8], length: usize) -> Result<Self, HeaderGap> {
        let mut reader = GgufReader { bytes, length: length.max(bytes.len()), at: 0, goes_on: false };
        let read = Self::parse(&mut reader);
        read.map_err(|error| if reader.goes_on { HeaderGap::GoesOn } else { HeaderGap::Refused(error) })
    }

    fn parse(reader: &mut GgufReader<'a>) -> Result<Self, WeightsError> {
        if reader.take(4)? != b"GGUF" {
            return Err(WeightsError::Damaged("not a GGUF file".to_owned()));
        }
        let version = reader.u32()?;
        if version != 3 {
            return Err(unsupported_error(&format!("unsupported GGUF version: {version}, expected 3")));
        }
        let tensor_count = reader.count()?;
        let value_count = reader.count()?;
        let mut values = HashMap::new();
        for _ in 0..value_count {
            let name = reader.text()?;
            let kind = reader.u32()?;
            let value = reader.value(kind)?;
            if values.insert(name, value).is_some() {
                return Err(damaged_error(&format!("duplicate value `{name}`")));
            }
        }
        let mut infos = Vec::new();
        for _ in 0..tensor_count {
            infos.push(reader.info()?);
        }
        let alignment = match values.get("general.alignment") {
            None => 32,
            Some(Value::Unsigned(n)) if n.is_power_of_two() && *n <= 65_536 => *n,
            Some(_) => return Err(damaged_error("the alignment is not a power of two")),
        };
        let start = u64::try_from(reader.at).unwrap_or(u64::MAX).next_multiple_of(alignment);
        let end = usize::try_from(start).unwrap_or(usize::MAX);
        Ok(Self { values, infos, end, left: reader.length.saturating_sub(end) })
    }

    /// Returns a value by its name.
    pub(super) fn value(&self, name: &str) -> Option<Value<'a>> {
        self.values.get(name).copied()
    }

    /// Returns a text by its name, if it exists.
    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        match self.value(name) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Returns a whole number by its name, if it exists and is not negative.
    pub(super) fn whole_number(&self, name: &str) -> Option<usize> {
        match self.value(name)? {
            Value::Unsigned(n) => usize::try_from(n).ok(),
            Value::Signed(n) => usize::try_from(n).ok(),
            _ => None,
        }
    }

    /// Returns a list by its name.
    pub(super) fn list(&self, name: &str) -> Option<List<'a>> {
        match self.value(name) {
            Some(Value::List(list)) => Some(list),
            _ => None,
        }
    }

    /// Returns the tensors in file order. Refuses encodings that this engine does not compute, and tensors that overlap
    /// or exceed the file.
    pub(super) fn extents(&self) -> Result<Vec<Extent<'a>>, WeightsError> {
        let mut names = HashSet::new();
        let mut extents = Vec::new();
        for info in &self.infos {
            extents.push(self.extent(info)?);
            if !names.insert(info.name) {
                return Err(damaged_error(&format!("duplicate tensor `{}`", info.name)));
            }
        }
        extents.sort_unstable_by_key(|extent| (extent.offset, extent.length, extent.name));
        for (one, next) in extents.iter().zip(extents.iter().skip(1)) {
            if one.offset + one.length > next.offset {
                return Err(damaged_error(&format!(
                    "the tensors `{}` and `{}` overlap",
                    one.name, next.name
                )));
            }
        }
        Ok(extents)
    }

    fn extent(&self, info: &Info<'a>) -> Result<Extent<'a>, WeightsError> {
        let encoding = Encoding::from_number(info.kind, info.name)?;
        let (numbers, size) = encoding.block();
        if info.columns == 0 || info.rows == 0 || !info.columns.is_multiple_of(numbers) {
            return Err(damaged_error(&format!("the tensor `{}` has an impossible shape", info.name)));
        }
        let span = (info.columns / numbers).checked_mul(size).and_then(|row| row.checked_mul(info.rows));
        let length =
            span.filter(|span| info.offset.checked_add(*span).is_some_and(|end| end <= self.left))
                .ok_or_else(|| damaged_error(&format!("the tensor `{}` is outside the file", info.name)))?;
        let Info { name, columns, rows, offset, .. } = *info;
        Ok(Extent { name, encoding, columns, rows, offset, length })
    }
}

impl<'a> List<'a> {
    /// The number of values.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Returns the texts, if it is a list of texts.
    pub(super) fn texts(&self) -> Option<impl Iterator<Item = &'a str>> {
        let mut reader = GgufReader::from_bytes(self.bytes);
        (self.kind == TEXT).then(|| (0..self.count).map_while(move |_| reader.text().ok()))
    }

    /// Returns the whole numbers, if it is a list of 32-bit integers.
    pub(super) fn whole_numbers(&self) -> Option<impl Iterator<Item = i64>> {
        let mut reader = GgufReader::from_bytes(self.bytes);
        let kind = self.kind;
        matches!(kind, 4 | 5).then(|| {
            (0..self.count).map_while(move |_| match reader.value(kind) {
                Ok(Value::Signed(n)) => Some(n),
                Ok(Value::Unsigned(n)) => i64::try_from(n).ok(),
                _ => None,
            })
        })
    }

    /// Returns the numbers, if it is a list of 32-bit floats.
    pub(super) fn numbers(&self) -> Option<impl Iterator<Item = f32> + use<'a>> {
        let numbers = self.bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
        (self.kind == FLOAT).then_some(numbers)
    }
}

/// The kind of a 32-bit float.
const FLOAT: u32 = 6;
/// The kind of a text value.
const TEXT: u32 = 8;
/// The kind of a list.
const LIST: u32 = 9;

/// Reads values from the front of the bytes.
struct GgufReader<'a> {
    bytes: &'a [u8],
    /// The number of bytes in the file.
    length: usize,
    at: usize,
    /// Set if a read needed bytes of the file that are not loaded yet.
    goes_on: bool,
}

impl<'a> GgufReader<'a> {
    fn from_bytes(bytes: &'a [u8]) -> Self {
        Self { bytes, length: bytes.len(), at: 0, goes_on: false }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], WeightsError> {
        let end = self.at.checked_add(length);
        self.goes_on |= end.is_some_and(|end| end > self.bytes.len() && end <= self.length);
        let taken =
            end.and_then(|end| self.bytes.get(self.at..end)).ok_or_else(|| damaged_error("it ends early"))?;
        self.at += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WeightsError> {
        self.take(N)?.try_into().map_err(|_| damaged_error("it ends early"))
    }

    fn u32(&mut self) -> Result<u32, WeightsError> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, WeightsError> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads a count of items of at least one byte each, so at most the number of bytes left.
    fn count(&mut self) -> Result<usize, WeightsError> {
        let count = usize::try_from(self.u64()?).unwrap_or(usize::MAX);
        if count > self.length - self.at {
            return Err(damaged_error("a count is larger than the file"));
        }
        Ok(count)
    }

    fn text(&mut self) -> Result<&'a str, WeightsError> {
        let length = self.count()?;
        str::from_utf8(self.take(length)?).map_err(|_| damaged_error("a text is not UTF-8"))
    }

    fn value(&mut self, kind: u32) -> Result<Value<'a>, WeightsError> {
        Ok(match kind {
            0 => Value::Unsigned(u8::from_le_bytes(self.array()?).into()),
            1 => Value::Signed(i8::from_le_bytes(self.array()?).into()),
            2 => Value::Unsigned(u16::from_le_bytes(self.array()?).into()),
            3 => Value::Signed(i16::from_le_bytes(self.array()?).into()),
            4 => Value::Unsigned(self.u32()?.into()),
            5 => Value::Signed(i32::from_le_bytes(self.array()?).into()),
            FLOAT => Value::Float(f32::from_le_bytes(self.array()?).into()),
            7 => Value::Bool(u8::from_le_bytes(self.array()?) != 0),
            TEXT => Value::Text(self.text()?),
            LIST => Value::List(self.list()?),
            10 => Value::Unsigned(self.u64()?),
            11 => Value::Signed(i64::from_le_bytes(self.array()?)),
            12 => Value::Float(f64::from_le_bytes(self.array()?)),
            other => return Err(damaged_error(&format!("a value has an unknown kind: {other}"))),
        })
    }

    fn list(&mut self) -> Result<List<'a>, WeightsError> {
        let kind = self.u32()?;
        let count = self.count()?;
        let start = self.at;
        match kind {
            // No model needs nested lists, and refusing them keeps a file from causing deep recursion.
            LIST => return Err(damaged_error("a list contains lists")),
            TEXT => {
                for _ in 0..count {
                    self.text()?;
                }
            }
            _ => {
                let size = match kind {
                    0 | 1 | 7 => 1,
                    2 | 3 => 2,
                    4..=6 => 4,
                    10..=12 => 8,
                    other => return Err(damaged_error(&format!("a list has an unknown kind: {other}"))),
                };
                self.take(count.checked_mul(size).ok_or_else(|| damaged_error("a list is too long"))?)?;
            }
        }
        Ok(List { kind, count, bytes: self.bytes.get(start..self.at).unwrap_or_default() })
    }

    fn info(&mut self) -> Result<Info<'a>, WeightsError> {
        let name = self.text()?;
        let dimensions = self.u32()?;
        if !(1..=2).contains(&dimensions) {
            return Err(unsupported_error(&format!("tensor `{name}` has {dimensions} dimensions")));
        }
        let mut length = || {
            let length = usize::try_from(self.u64()?).unwrap_or(usize::MAX);
            Ok(length)
        };
        let columns = length()?;
        let rows = if dimensions == 2 { length()? } else { 1 };
        let kind = self.u32()?;
        let offset = usize::try_from(self.u64()?).unwrap_or(usize::MAX);
        Ok(Info { name, columns, rows, kind, offset })
    }
}

pub(super) fn unreadable(error: io::Error) -> WeightsError {
    WeightsError::Unreadable(format!("the GGUF file cannot be read: {error}"))
}

pub(super) fn damaged_error(what: &str) -> WeightsError {
    WeightsError::Damaged(format!("the GGUF file is damaged: {what}"))
}

pub(super) fn unsupported_error(what: &str) -> WeightsError {
    WeightsError::Unsupported(format!("{what}; {ELSEWHERE}"))
}
