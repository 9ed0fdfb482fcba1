//! Converts runtime values to Python objects in one pass: a serde serializer that creates dictionaries,
//! lists, strings and numbers, without JSON in between.

use std::fmt;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyList, PyString};
use serde::ser::{self, Impossible, Serialize};

/// An error during conversion.
#[derive(Debug)]
pub struct ConversionError(PyErr);

impl fmt::Display for ConversionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for ConversionError {}

impl ser::Error for ConversionError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(pyo3::exceptions::PyRuntimeError::new_err(message.to_string()))
    }
}

impl From<PyErr> for ConversionError {
    fn from(error: PyErr) -> Self {
        Self(error)
    }
}

type ConversionResult<'py> = Result<Bound<'py, PyAny>, ConversionError>;

/// Converts a value to a Python object.
pub fn object<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    value.serialize(Maker { py, target: None }).map_err(|ConversionError(error)| error)
}

/// Adds the members of an object to an existing dictionary.
pub fn fill(target: &Bound<'_, PyDict>, value: &impl Serialize) -> PyResult<()> {
    let maker = Maker { py: target.py(), target: Some(target.clone()) };
    value.serialize(maker).map(drop).map_err(|ConversionError(error)| error)
}

/// Serializes one object.
struct Maker<'py> {
    py: Python<'py>,
    /// The dictionary for the members of an object; a new one if `None`.
    target: Option<Bound<'py, PyDict>>,
}

impl<'py> Maker<'py> {
    fn plain(py: Python<'py>) -> Self {
        Self { py, target: None }
    }

    fn dict(self) -> DictMaker<'py> {
        let dict = self.target.unwrap_or_else(|| PyDict::new(self.py));
        DictMaker { dict, key: None, wrapper: None }
    }

    fn list(self, wrapper: Option<&'static str>, length: Option<usize>) -> ListMaker<'py> {
        ListMaker { py: self.py, items: Vec::with_capacity(length.unwrap_or_default()), wrapper }
    }
}

fn wrap<'py>(py: Python<'py>, name: &str, value: Bound<'py, PyAny>) -> ConversionResult<'py> {
    let dict = PyDict::new(py);
    dict.set_item(PyString::intern(py, name), value)?;
    Ok(dict.into_any())
}

impl<'py> ser::Serializer for Maker<'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = ConversionError;
    type SerializeSeq = ListMaker<'py>;
    type SerializeTuple = ListMaker<'py>;
    type SerializeTupleStruct = ListMaker<'py>;
    type SerializeTupleVariant = ListMaker<'py>;
    type SerializeMap = DictMaker<'py>;
    type SerializeStruct = DictMaker<'py>;
    type SerializeStructVariant = DictMaker<'py>;

    fn serialize_bool(self, value: bool) -> ConversionResult<'py> {
        Ok(PyBool::new(self.py, value).to_owned().into_any())
    }

    fn serialize_i8(self, value: i8) -> ConversionResult<'py> {
        self.serialize_i64(value.into())
    }

    fn serialize_i16(self, value: i16) -> ConversionResult<'py> {
        self.serialize_i64(value.into())
    }

    fn serialize_i32(self, value: i32) -> ConversionResult<'py> {
        self.serialize_i64(value.into())
    }

    fn serialize_i64(self, value: i64) -> ConversionResult<'py> {
        value.into_pyobject(self.py).map(Bound::into_any).map_err(|never| match never {})
    }

    fn serialize_u8(self, value: u8) -> ConversionResult<'py> {
        self.serialize_u64(value.into())
    }

    fn serialize_u16(self, value: u16) -> ConversionResult<'py> {
        self.serialize_u64(value.into())
    }

    fn serialize_u32(self, value: u32) -> ConversionResult<'py> {
        self.serialize_u64(value.into())
    }

    fn serialize_u64(self, value: u64) -> ConversionResult<'py> {
        value.into_pyobject(self.py).map(Bound::into_any).map_err(|never| match never {})
    }

    fn serialize_f32(self, value: f32) -> ConversionResult<'py> {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> ConversionResult<'py> {
        Ok(PyFloat::new(self.py, value).into_any())
    }

    fn serialize_char(self, value: char) -> ConversionResult<'py> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> ConversionResult<'py> {
        Ok(PyString::new(self.py, value).into_any())
    }

    fn serialize_bytes(self, value: &[u8]) -> ConversionResult<'py> {
        Ok(pyo3::types::PyBytes::new(self.py, value).into_any())
    }

    fn serialize_none(self) -> ConversionResult<'py> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> ConversionResult<'py> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> ConversionResult<'py> {
        Ok(self.py.None().into_bound(self.py))
    }

    fn serialize_unit_struct(self, _: &'static str) -> ConversionResult<'py> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> ConversionResult<'py> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> ConversionResult<'py> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> ConversionResult<'py> {
        wrap(self.py, variant, value.serialize(Self::plain(self.py))?)
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<ListMaker<'py>, ConversionError> {
        Ok(self.list(None, length))
    }

    fn serialize_tuple(self, length: usize) -> Result<ListMaker<'py>, ConversionError> {
        Ok(self.list(None, Some(length)))
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        length: usize,
    ) -> Result<ListMaker<'py>, ConversionError> {
        Ok(self.list(None, Some(length)))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<ListMaker<'py>, ConversionError> {
        Ok(self.list(Some(variant), Some(length)))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<DictMaker<'py>, ConversionError> {
        Ok(self.dict())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<DictMaker<'py>, ConversionError> {
        Ok(self.dict())
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<DictMaker<'py>, ConversionError> {
        Ok(DictMaker { wrapper: Some(variant), ..self.dict() })
    }
}

/// Collects the items of a list.
struct ListMaker<'py> {
    py: Python<'py>,
    items: Vec<Bound<'py, PyAny>>,
    wrapper: Option<&'static str>,
}

impl<'py> ListMaker<'py> {
    fn add<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ConversionError> {
        self.items.push(value.serialize(Maker::plain(self.py))?);
        Ok(())
    }

    fn finish(self) -> ConversionResult<'py> {
        let list = PyList::new(self.py, self.items)?.into_any();
        match self.wrapper {
            Some(name) => wrap(self.py, name, list),
            None => Ok(list),
        }
    }
}

/// The four list traits differ only in their names.
macro_rules! lists {
    ($($kind:ident $add:ident),*) => {$(
        impl<'py> ser::$kind for ListMaker<'py> {
            type Ok = Bound<'py, PyAny>;
            type Error = ConversionError;

            fn $add<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ConversionError> {
                self.add(value)
            }

            fn end(self) -> ConversionResult<'py> {
                self.finish()
            }
        }
    )*};
}

lists!(
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
);

/// Collects the members of a dictionary.
struct DictMaker<'py> {
    dict: Bound<'py, PyDict>,
    key: Option<Bound<'py, PyString>>,
    wrapper: Option<&'static str>,
}

impl<'py> DictMaker<'py> {
    fn member<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), ConversionError> {
        let py = self.dict.py();
        let value = value.serialize(Maker::plain(py))?;
        // Names are interned: they repeat in every envelope, and readers look them up by literals.
        Ok(self.dict.set_item(PyString::intern(py, name), value)?)
    }

    fn finish(self) -> ConversionResult<'py> {
        match self.wrapper {
            Some(name) => wrap(self.dict.py(), name, self.dict.clone().into_any()),
            None => Ok(self.dict.into_any()),
        }
    }
}

impl<'py> ser::SerializeMap for DictMaker<'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = ConversionError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), ConversionError> {
        self.key = Some(key.serialize(KeyMaker(self.dict.py()))?);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ConversionError> {
        let value = value.serialize(Maker::plain(self.dict.py()))?;
        match self.key.take() {
            Some(key) => Ok(self.dict.set_item(key, value)?),
            None => Err(ser::Error::custom("a value without a key")),
        }
    }

    fn end(self) -> ConversionResult<'py> {
        self.finish()
    }
}

/// The two traits for dictionaries with known members differ only in their names.
macro_rules! dicts {
    ($($kind:ident),*) => {$(
        impl<'py> ser::$kind for DictMaker<'py> {
            type Ok = Bound<'py, PyAny>;
            type Error = ConversionError;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), ConversionError> {
                self.member(name, value)
            }

            fn end(self) -> ConversionResult<'py> {
                self.finish()
            }
        }
    )*};
}

dicts!(SerializeStruct, SerializeStructVariant);

/// Serializes a key. All keys that the runtime writes are strings.
struct KeyMaker<'py>(Python<'py>);

impl KeyMaker<'_> {
    fn refuse<T>() -> Result<T, ConversionError> {
        Err(ser::Error::custom("a key that is not a string"))
    }
}

/// Refuses every type but strings.
macro_rules! no_keys {
    ($($method:ident($kind:ty)),*) => {$(
        fn $method(self, _: $kind) -> Result<Self::Ok, ConversionError> {
            Self::refuse()
        }
    )*};
}

impl<'py> ser::Serializer for KeyMaker<'py> {
    type Ok = Bound<'py, PyString>;
    type Error = ConversionError;
    type SerializeSeq = Impossible<Self::Ok, ConversionError>;
    type SerializeTuple = Impossible<Self::Ok, ConversionError>;
    type SerializeTupleStruct = Impossible<Self::Ok, ConversionError>;
    type SerializeTupleVariant = Impossible<Self::Ok, ConversionError>;
    type SerializeMap = Impossible<Self::Ok, ConversionError>;
    type SerializeStruct = Impossible<Self::Ok, ConversionError>;
    type SerializeStructVariant = Impossible<Self::Ok, ConversionError>;

    fn serialize_str(self, value: &str) -> Result<Self::Ok, ConversionError> {
        Ok(PyString::intern(self.0, value))
    }

    fn serialize_char(self, value: char) -> Result<Self::Ok, ConversionError> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Self::Ok, ConversionError> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Self::Ok, ConversionError> {
        value.serialize(self)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Self::Ok, ConversionError> {
        value.serialize(self)
    }

    no_keys!(
        serialize_bool(bool),
        serialize_i8(i8),
        serialize_i16(i16),
        serialize_i32(i32),
        serialize_i64(i64),
        serialize_u8(u8),
        serialize_u16(u16),
        serialize_u32(u32),
        serialize_u64(u64),
        serialize_f32(f32),
        serialize_f64(f64),
        serialize_bytes(&[u8]),
        serialize_unit_struct(&'static str)
    );

    fn serialize_none(self) -> Result<Self::Ok, ConversionError> {
        Self::refuse()
    }

    fn serialize_unit(self) -> Result<Self::Ok, ConversionError> {
        Self::refuse()
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<Self::Ok, ConversionError> {
        Self::refuse()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, ConversionError> {
        Self::refuse()
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, ConversionError> {
        Self::refuse()
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, ConversionError> {
        Self::refuse()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, ConversionError> {
        Self::refuse()
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, ConversionError> {
        Self::refuse()
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeStruct, ConversionError> {
        Self::refuse()
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, ConversionError> {
        Self::refuse()
    }
}
