//! The safetensors container (format of the Hugging Face library of that name, version of 2023).
//!
//! ```text
//! 8 bytes, little endian: n | n bytes of JSON: {"__metadata__": {..}, name: {dtype, shape, data_offsets}, ..} | data
//! ```
//!
//! Held true after [`Container::parse`]: the tensors tile the data part without gap or overlap, and each has as
//! many bytes as its shape and type say. Nothing is allocated from a number in the file before it has been
//! compared with the file's length. The header is written with sorted keys: equal models are equal files.
//! The data are decoded byte by byte, never cast, so no alignment can be wrong.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, from_str, json};

use super::content_error::ContentError;
use crate::context::Context;
use crate::error::Error;
use crate::memory::try_with_capacity;

/// Bytes in the largest header; the limit of the format's own library.
const MAX_HEADER_BYTES: u64 = 100_000_000;
/// Sizes of an array: as many as NumPy has.
const MAX_DIMENSIONS: usize = 64;
/// Largest size of an array without elements, which takes no room in the file.
const MAX_EMPTY_DIMENSION: usize = u32::MAX as usize;
/// Elements between two checks of the monitor.
const ELEMENTS_PER_CHECK: usize = 1 << 20;

/// Element types of arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // The names are the types.
pub enum Dtype {
    Bool,
    U8,
    I8,
    I16,
    U16,
    F16,
    I32,
    U32,
    F32,
    I64,
    U64,
    F64,
}

impl Dtype {
    const ALL: [(Self, &'static str, usize); 12] = [
        (Self::Bool, "BOOL", 1),
        (Self::U8, "U8", 1),
        (Self::I8, "I8", 1),
        (Self::I16, "I16", 2),
        (Self::U16, "U16", 2),
        (Self::F16, "F16", 2),
        (Self::I32, "I32", 4),
        (Self::U32, "U32", 4),
        (Self::F32, "F32", 4),
        (Self::I64, "I64", 8),
        (Self::U64, "U64", 8),
        (Self::F64, "F64", 8),
    ];

    /// The type of a name of the format.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, dtype_name, _)| *dtype_name == name).map(|(dtype, ..)| dtype)
    }

    /// Returns the name in the header of a file, such as `"F64"`.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Returns the number of bytes of an element: 1 to 8.
    pub fn bytes(self) -> usize {
        Self::ALL[self as usize].2
    }
}

/// A tensor inside the bytes of its file.
#[derive(Debug)]
pub(super) struct Tensor<'a> {
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
    data: &'a [u8],
}

impl Tensor<'_> {
    /// The elements as they lie in the file: for bytes, the numbers.
    pub(super) fn bytes(&self, ctx: Context<'_>) -> Result<Vec<u8>, Error> {
        self.decode(u8::from_le_bytes, ctx)
    }

    pub(super) fn i64s(&self, ctx: Context<'_>) -> Result<Vec<i64>, Error> {
        self.decode(i64::from_le_bytes, ctx)
    }

    pub(super) fn i16s(&self, ctx: Context<'_>) -> Result<Vec<i16>, Error> {
        self.decode(i16::from_le_bytes, ctx)
    }

    pub(super) fn f32s(&self, ctx: Context<'_>) -> Result<Vec<f32>, Error> {
        self.decode(f32::from_le_bytes, ctx)
    }

    pub(super) fn f64s(&self, ctx: Context<'_>) -> Result<Vec<f64>, Error> {
        self.decode(f64::from_le_bytes, ctx)
    }

    fn decode<T, const N: usize>(&self, from: fn([u8; N]) -> T, ctx: Context<'_>) -> Result<Vec<T>, Error> {
        let elements = self.data.as_chunks().0;
        let mut decoded = try_with_capacity("the arrays of a model file", elements.len())?;
        for block in elements.chunks(ELEMENTS_PER_CHECK) {
            ctx.check("read", decoded.len(), elements.len())?;
            decoded.extend(block.iter().map(|bytes| from(*bytes)));
        }
        Ok(decoded)
    }
}

/// The texts of `__metadata__`, as they lie in the header.
#[derive(Debug, Default)]
pub(super) struct Metadata<'a>(pub(super) BTreeMap<String, &'a RawValue>);

impl Metadata<'_> {
    /// The text of a key.
    pub(super) fn text(&self, key: &str) -> Result<String, ContentError> {
        let raw = self.0.get(key).ok_or_else(|| format!("__metadata__ has no {key:?}"))?;
        from_str(raw.get()).map_err(|_| format!("__metadata__ {key:?} is not a string").into())
    }
}

/// The parts of a file.
#[derive(Debug)]
pub(super) struct Container<'a> {
    pub(super) metadata: Metadata<'a>,
    pub(super) tensors: BTreeMap<String, Tensor<'a>>,
}

/// Length of the JSON header, checked against the length of the file, from the first bytes.
///
/// Called with nine bytes before the rest is read, so that a large file of another kind is refused at once.
pub(super) fn header_length(start: &[u8], file_length: u64) -> Result<usize, String> {
    let Some((length, json)) = start.split_first_chunk::<8>() else {
        return Err(format!("not a safetensors file: it has {file_length} bytes, too few for a header"));
    };
    let length = u64::from_le_bytes(*length);
    if length > MAX_HEADER_BYTES {
        return Err(format!("not a safetensors file: its header would have {length} bytes"));
    }
    if json.first().is_some_and(|&byte| byte != b'{') {
        return Err("not a safetensors file: the header does not start with {".into());
    }
    if length > file_length.saturating_sub(8) {
        return Err(format!("cut off: the header has {length} bytes, the file {file_length}"));
    }
    Ok(length as usize)
}

impl<'a> Container<'a> {
    /// Takes a whole file apart.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        let length = header_length(bytes, bytes.len() as u64)?;
        let (header, data) = bytes[8..].split_at(length);
        let header: BTreeMap<String, &RawValue> =
            serde_json::from_slice(header).map_err(|error| format!("the header is not JSON: {error}"))?;
        let mut metadata = Metadata::default();
        let mut tensors = BTreeMap::new();
        let mut spans = Vec::new();
        for (name, value) in &header {
            if name == "__metadata__" {
                metadata = Metadata(from_str(value.get()).map_err(|_| "__metadata__ is not an object")?);
            } else {
                let (tensor, span) =
                    tensor(value, data).map_err(|message| format!("tensor {name:?}: {message}"))?;
                tensors.insert(name.clone(), tensor);
                spans.push((span, name));
            }
        }
        spans.sort_unstable();
        let mut end = 0;
        for ((start, stop), name) in spans {
            if start != end {
                return Err(format!("tensor {name:?} starts at byte {start} of the data, expected {end}"));
            }
            end = stop;
        }
        if end != data.len() {
            return Err(format!("the tensors end at byte {end} of the data, the file at {}", data.len()));
        }
        Ok(Self { metadata, tensors })
    }
}

fn tensor<'a>(value: &RawValue, data: &'a [u8]) -> Result<(Tensor<'a>, (usize, usize)), String> {
    let Ok(parts) = from_str::<BTreeMap<String, &RawValue>>(value.get()) else {
        return Err("it is not described by an object".into());
    };
    let text = |key: &str| parts.get(key).map_or("null", |raw| raw.get());
    let name: String = from_str(text("dtype")).map_err(|_| "no dtype")?;
    let dtype = Dtype::from_name(&name).ok_or_else(|| {
        let names = Dtype::ALL.map(|(_, name, _)| name).join(", ");
        format!("dtype {name:?} is not one of {names}")
    })?;
    let shape: Vec<usize> = from_str(text("shape")).map_err(|_| "the shape is not a list of sizes")?;
    let elements = shape.iter().try_fold(1_usize, |product, &n| product.checked_mul(n));
    let bytes = elements.and_then(|n| n.checked_mul(dtype.bytes()));
    let bytes = bytes.ok_or_else(|| format!("the sizes {shape:?} overflow"))?;
    let [start, stop]: [usize; 2] =
        from_str(text("data_offsets")).map_err(|_| "data_offsets are not two offsets")?;
    let Some(part) = data.get(start..stop) else {
        return Err(format!(
            "cut off: it lies at bytes {start} to {stop} of the data, which end at {}",
            data.len()
        ));
    };
    if part.len() != bytes {
        return Err(format!("{} of shape {shape:?} needs {bytes} bytes, found {}", dtype.name(), part.len()));
    }
    if shape.len() > MAX_DIMENSIONS
        || shape.iter().any(|&size| size > MAX_EMPTY_DIMENSION && elements == Some(0))
    {
        return Err(format!("it has {} sizes, or one of an empty array is too large", shape.len()));
    }
    if dtype == Dtype::Bool && part.iter().any(|&byte| byte > 1) {
        return Err("a truth value is neither 0 nor 1".into());
    }
    Ok((Tensor { dtype, shape, data: part }, (start, stop)))
}

/// The bytes in front of the data, for tensors that will be written in the given order.
///
/// Tensors with larger elements must come first, so that each lies at a multiple of its element's size.
pub(super) fn header<'a>(
    metadata: &BTreeMap<String, String>,
    tensors: impl Iterator<Item = (&'a str, Dtype, &'a [usize])>,
) -> Vec<u8> {
    let mut entries: BTreeMap<&str, Value> = BTreeMap::new();
    entries.insert("__metadata__", json!(metadata));
    let mut start = 0;
    for (name, dtype, shape) in tensors {
        let stop = start + shape.iter().product::<usize>() * dtype.bytes();
        let entry = BTreeMap::from([
            ("dtype", json!(dtype.name())),
            ("shape", json!(shape)),
            ("data_offsets", json!([start, stop])),
        ]);
        entries.insert(name, json!(entry));
        start = stop;
    }
    let mut json = json!(entries).to_string().into_bytes();
    while !json.len().is_multiple_of(8) {
        json.push(b' ');
    }
    let mut out = (json.len() as u64).to_le_bytes().to_vec();
    out.append(&mut json);
    out
}
