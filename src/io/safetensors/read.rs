//! Reading of a model file: the container, then each expansion from its tensors; the remaining tensors are arrays of the caller.
//!
//! A file may come from a stranger. Shapes, types, indices and numbers are checked before they are used, no length that the file
//! states is allocated unless the file has as many bytes, and every fault is an error that names the part.
//!
//! Cost: a pass over the bytes; memory the file and the arrays.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use ndarray::Array2;
use serde_json::Value;

use super::{Array, Dtype, ModelFile, VERSION, check_vectors, kernel_json, part, too_many};
use crate::context::Context;
use crate::data::{CsrView, DenseElement, Element, IndexSlice, OwnedRows, Rows};
use crate::error::{Error, Result};
use crate::expansion::KernelExpansion;
use crate::io::container::{self, Container, Metadata, Tensor};
use crate::io::content_error::ContentError;
use crate::io::grid::Grid;
use crate::io::lines::MAX_COLUMNS;
use crate::io::monitored;
use crate::kernels::Kernel;
use crate::memory::{self, TryCollect, try_with_capacity};

/// Characters of the longest text that describes a kernel or a shape.
const LONGEST_TEXT: usize = 1000;

/// Reads a model file.
///
/// # Errors
/// [`Error::Io`] from the system; [`Error::Format`] for everything that is missing, unknown, cut off, of another
/// version, of the wrong type or shape, not finite, or in contradiction with the rest; [`Error::Memory`];
/// [`Error::Stopped`] where the monitor says so.
pub fn read(path: &Path, ctx: Context<'_>) -> Result<ModelFile> {
    let failed = |source| Error::io(path, source);
    let (mut file, length) = monitored::open(path, ctx)?;
    let mut bytes = Vec::new();
    (&mut file).take(9).read_to_end(&mut bytes).map_err(failed)?;
    let checked = container::header_length(&bytes, length);
    checked.map_err(|message| ContentError::from(message).at(path, 0))?;
    // Bytes after the length that the system reports are not part of the file.
    let remaining_bytes = length.saturating_sub(bytes.len() as u64);
    let mut file_bytes = try_with_capacity("a model file", length as usize)?;
    file_bytes.append(&mut bytes);
    file.take(remaining_bytes).read_to_end(&mut file_bytes).map_err(failed)?;
    decode(&file_bytes, ctx).map_err(|content_error| content_error.at(path, 0))
}

/// Reads a model from the bytes of its file; `path` is what the errors call it.
pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<ModelFile> {
    decode(bytes, Context::default()).map_err(|content_error| content_error.at(path, 0))
}

fn decode(bytes: &[u8], ctx: Context<'_>) -> Result<ModelFile, ContentError> {
    let Container { metadata, mut tensors } = Container::parse(bytes)?;
    if metadata.text("format").ok().as_deref() != Some("svmarrow") {
        return Err("not a svmarrow model: __metadata__ does not say format=svmarrow".into());
    }
    let version = metadata.text("version")?;
    if version != VERSION {
        return Err(format!("version {version:?}: this build reads {VERSION:?}").into());
    }
    let extra = metadata.text("extra")?;
    let mut expansions = BTreeMap::new();
    for key in metadata.0.keys() {
        let name = if key == "kernel" { Some("") } else { key.strip_suffix(".kernel") };
        if let Some(name) = name {
            let expansion = expansion(&metadata, &mut tensors, name, ctx).map_err(|content_error| {
                if name.is_empty() { content_error } else { content_error.within(name) }
            })?;
            expansions.insert(name.to_owned(), expansion);
        }
    }
    let mut arrays = BTreeMap::new();
    for (name, tensor) in tensors {
        let bytes = tensor.bytes(ctx)?.into();
        arrays.insert(name, Array { dtype: tensor.dtype, shape: tensor.shape, bytes });
    }
    Ok(ModelFile { expansions, arrays, extra })
}

/// Takes the parts of an expansion out of the tensors.
fn expansion(
    metadata: &Metadata<'_>,
    tensors: &mut BTreeMap<String, Tensor<'_>>,
    name: &str,
    ctx: Context<'_>,
) -> Result<KernelExpansion, ContentError> {
    let parsed = |key: &str| -> Result<Value, ContentError> {
        let text = metadata.text(&part(name, key))?;
        if text.len() > LONGEST_TEXT {
            return Err(
                format!("{key} is not JSON of a kernel or a shape: it has {} bytes", text.len()).into()
            );
        }
        serde_json::from_str(&text).map_err(|error| format!("{key} is not JSON: {error}").into())
    };
    let kernel = kernel_from_json(&parsed("kernel")?).map_err(|message| format!("kernel: {message}"))?;
    let intercepts = take(tensors, &part(name, "intercepts"), &[Dtype::F64], 1)?.f64s(ctx)?;
    if intercepts.is_empty() {
        return Err("there are no intercepts: a model has at least one output".into());
    }
    let coded = tensors.contains_key(&part(name, "coefficients.steps"));
    let codes = if coded { Dtype::U8 } else { Dtype::F64 };
    let present = take_if(tensors, &part(name, "coefficients.present"), Dtype::U8)?;
    let dimensions = if present.is_some() { 1 } else { 2 };
    let coefficients = take(tensors, &part(name, "coefficients"), &[codes], dimensions)?;
    let grid = if coded { Some(grid(tensors, name, intercepts.len(), ctx)?) } else { None };
    let tensor_name = part(name, "vectors");
    let of_vectors = |(key, tensor): (&String, &Tensor<'_>)| {
        let bytes = tensor.dtype.bytes() * tensor.shape.iter().product::<usize>();
        key.starts_with(&tensor_name).then_some(bytes)
    };
    let vector_bytes: usize = tensors.iter().filter_map(of_vectors).sum();
    let vectors = if let Some(step) = take_if(tensors, &format!("{tensor_name}.step"), Dtype::F64)? {
        let kind = metadata.text(&format!("{tensor_name}.dtype"))?;
        byte_rows(tensors, &tensor_name, &step, &kind, ctx)?
    } else if tensors.contains_key(&tensor_name) {
        dense(&take(tensors, &tensor_name, &[Dtype::U8, Dtype::F32, Dtype::F64], 2)?, ctx)?
    } else {
        let shape = parsed("vectors.shape")
            .map_err(|content_error| content_error.within(format!("no tensor {tensor_name:?}, and")))?;
        sparse(tensors, &tensor_name, &shape, ctx)?
    };
    let view = vectors.view();
    let expected = (view.rows(), intercepts.len());
    let places = match &present {
        Some(bits) => {
            let bits = bits.bytes(ctx)?;
            check_places(&bits, expected, &coefficients, view, vector_bytes)?;
            Some(bits)
        }
        None if coefficients.shape != [expected.0, expected.1] => {
            let shape = &coefficients.shape;
            return Err(format!("coefficients have shape {shape:?}, expected {expected:?}").into());
        }
        None => None,
    };
    check_vectors(kernel, view, ctx)?;
    let all = expected.0 * expected.1;
    let numbers = match (grid, places) {
        (Some((steps, zeros)), None) => grid_values(coefficients.bytes(ctx)?, steps, &zeros)?,
        (None, None) => coefficients.f64s(ctx)?,
        (Some((steps, zeros)), Some(places)) => {
            let mut codes: Vec<u8> = memory::try_zeros("the codes of the coefficients", all)?;
            codes.iter_mut().enumerate().for_each(|(i, code)| *code = zeros[i % zeros.len()]);
            marked(&places).zip(coefficients.bytes(ctx)?).for_each(|(place, code)| codes[place] = code);
            grid_values(codes, steps, &zeros)?
        }
        (None, Some(places)) => {
            let mut numbers: Vec<f64> = memory::try_zeros("the coefficients", all)?;
            marked(&places).zip(coefficients.f64s(ctx)?).for_each(|(place, value)| numbers[place] = value);
            numbers
        }
    };
    let numbers = Array2::from_shape_vec(expected, numbers).map_err(|error| error.to_string())?;
    Ok(KernelExpansion::new(kernel, vectors, numbers, intercepts)?)
}

/// Takes the step and the zero of each output, for coefficients of one byte.
fn grid(
    tensors: &mut BTreeMap<String, Tensor<'_>>,
    name: &str,
    outputs: usize,
    ctx: Context<'_>,
) -> Result<(Vec<f64>, Vec<u8>), ContentError> {
    let steps = take(tensors, &part(name, "coefficients.steps"), &[Dtype::F64], 1)?.f64s(ctx)?;
    let zeros = take(tensors, &part(name, "coefficients.zeros"), &[Dtype::U8], 1)?.bytes(ctx)?;
    if [steps.len(), zeros.len()] != [outputs; 2] {
        return Err(format!(
            "coefficients have {} steps and {} zeros, expected {outputs} of each",
            steps.len(),
            zeros.len()
        )
        .into());
    }
    Ok((steps, zeros))
}

fn take<'a>(
    tensors: &mut BTreeMap<String, Tensor<'a>>,
    name: &str,
    dtypes: &[Dtype],
    dimensions: usize,
) -> Result<Tensor<'a>, ContentError> {
    let tensor = tensors.remove(name).ok_or_else(|| format!("no tensor {name:?}"))?;
    if !dtypes.contains(&tensor.dtype) {
        let names: Vec<_> = dtypes.iter().map(|d| d.name()).collect();
        let (actual, names) = (tensor.dtype.name(), names.join(" or "));
        return Err(format!("tensor {name:?} is {actual}, expected {names}").into());
    }
    if tensor.shape.len() != dimensions {
        let shape = &tensor.shape;
        return Err(format!("tensor {name:?} has shape {shape:?}, expected {dimensions} sizes").into());
    }
    Ok(tensor)
}

/// A vector that may be missing.
fn take_if<'a>(
    tensors: &mut BTreeMap<String, Tensor<'a>>,
    name: &str,
    dtype: Dtype,
) -> Result<Option<Tensor<'a>>, ContentError> {
    tensors.contains_key(name).then(|| take(tensors, name, &[dtype], 1)).transpose()
}

/// The places of the bits that are 1.
fn marked(bits: &[u8]) -> impl Iterator<Item = usize> {
    (0..8 * bits.len()).filter(|i| bits[i / 8] >> (i % 8) & 1 == 1)
}

/// Refuses bits that are not those of the coefficients that are stored, out of (m, q).
fn check_places(
    bits: &[u8],
    (m, q): (usize, usize),
    coefficients: &Tensor<'_>,
    vectors: Rows<'_>,
    vector_bytes: usize,
) -> Result<(), ContentError> {
    let all = m.checked_mul(q).ok_or("there are more coefficients than any memory holds")?;
    if bits.len() != all.div_ceil(8) {
        let actual = bits.len();
        return Err(format!("coefficients.present has {actual} bytes for {all} coefficients").into());
    }
    let stored = coefficients.shape[0];
    if too_many(all, vectors, bits.len() + stored * coefficients.dtype.bytes() + vector_bytes) {
        return Err(format!(
            "{all} coefficients, nearly all of them 0, are too many for the size of the file"
        )
        .into());
    }
    let ones = marked(bits).take_while(|i| *i < all).count();
    if ones != stored || marked(bits).any(|i| i >= all) {
        return Err(format!("coefficients.present marks {ones} of {all}, and {stored} are stored").into());
    }
    Ok(())
}

/// Coefficients from their codes and the codes of 0.
fn grid_values(codes: Vec<u8>, steps: Vec<f64>, zeros: &[u8]) -> Result<Vec<f64>> {
    let lows = zeros.iter().map(|&zero| -i16::from(zero)).try_collect_vec()?;
    Grid { codes, steps, lows }.values(zeros.len())
}

/// Vectors of bytes on a grid.
fn byte_rows(
    tensors: &mut BTreeMap<String, Tensor<'_>>,
    name: &str,
    step: &Tensor<'_>,
    kind: &str,
    ctx: Context<'_>,
) -> Result<OwnedRows, ContentError> {
    let tensor = take(tensors, name, &[Dtype::U8], 2)?;
    let lows = take(tensors, &format!("{name}.lows"), &[Dtype::I16], 1)?.i16s(ctx)?;
    let (m, d, steps) = (tensor.shape[0], tensor.shape[1], step.f64s(ctx)?);
    let [step] = steps[..] else {
        return Err(format!("vectors.step has {} numbers, expected one", steps.len()).into());
    };
    if !step.is_finite() || step <= 0.0 {
        return Err(format!("vectors.step is {step}, expected a positive number").into());
    }
    if lows.len() != 1 && lows.len() != d || d == 0 {
        return Err(format!("vectors.lows has {} numbers for {d} columns", lows.len()).into());
    }
    let grid = Grid { codes: tensor.bytes(ctx)?, lows, steps };
    match kind {
        "F32" => matrix((m, d), grid.values::<f32>(d)?),
        "F64" => matrix((m, d), grid.values::<f64>(d)?),
        _ => Err(format!("vectors.dtype is {kind:?}, expected F32 or F64").into()),
    }
}

fn matrix<T: DenseElement>(shape: (usize, usize), values: Vec<T>) -> Result<OwnedRows, ContentError> {
    Ok(Array2::from_shape_vec(shape, values).map_err(|error| error.to_string())?.into())
}

fn dense(tensor: &Tensor<'_>, ctx: Context<'_>) -> Result<OwnedRows, ContentError> {
    let shape = (tensor.shape[0], tensor.shape[1]);
    match tensor.dtype {
        Dtype::U8 => matrix(shape, tensor.bytes(ctx)?),
        Dtype::F32 => matrix(shape, tensor.f32s(ctx)?),
        _ => matrix(shape, tensor.f64s(ctx)?),
    }
}

fn sparse(
    tensors: &mut BTreeMap<String, Tensor<'_>>,
    name: &str,
    shape: &Value,
    ctx: Context<'_>,
) -> Result<OwnedRows, ContentError> {
    let size = |i: usize| shape[i].as_u64().and_then(|n| usize::try_from(n).ok());
    let (Some(rows), Some(cols), None) = (size(0), size(1), shape.get(2)) else {
        return Err(format!("vectors.shape is {shape}, expected two sizes").into());
    };
    if cols > MAX_COLUMNS {
        return Err(format!("vectors.shape is {shape}: more than {MAX_COLUMNS} columns").into());
    }
    let indptr = take(tensors, &format!("{name}.indptr"), &[Dtype::I64], 1)?.i64s(ctx)?;
    let indices = take(tensors, &format!("{name}.indices"), &[Dtype::I64], 1)?.i64s(ctx)?;
    let values = take(tensors, &format!("{name}.values"), &[Dtype::F32, Dtype::F64], 1)?;
    if rows.checked_add(1) != Some(indptr.len()) {
        let actual = indptr.len();
        return Err(format!("vectors.indptr has {actual} entries, vectors.shape says {rows} rows").into());
    }
    let owned = if values.dtype == Dtype::F32 {
        let values = values.f32s(ctx)?;
        check_structure(&indptr, &indices, &values, cols)?;
        OwnedRows::CsrF32 { indptr, indices, values, cols }
    } else {
        let values = values.f64s(ctx)?;
        check_structure(&indptr, &indices, &values, cols)?;
        OwnedRows::CsrF64 { indptr, indices, values, cols }
    };
    Ok(owned)
}

fn check_structure<T: Element>(
    indptr: &[i64],
    indices: &[i64],
    values: &[T],
    cols: usize,
) -> Result<(), ContentError> {
    let checked = CsrView::new(IndexSlice::I64(indptr), IndexSlice::I64(indices), values, cols);
    checked.map(drop).map_err(|error| ContentError::from(error).within("vectors"))
}

fn kernel_from_json(value: &Value) -> Result<Kernel, String> {
    let name = value["name"].as_str().ok_or("no name")?;
    let real = |key: &str| value[key].as_f64();
    let degree = value["degree"].as_u64().and_then(|d| u32::try_from(d).ok());
    // A parameter that the kernel does not have may be absent; whether one is needed, the kernel's own form says.
    let kernel = Kernel::from_name(
        name,
        real("gamma").unwrap_or(0.0),
        real("coef0").unwrap_or(0.0),
        degree.unwrap_or(0),
    )
    .map_err(|error| error.to_string())?;
    let needed = kernel_json(kernel);
    let has_value = |key: &str| if key == "degree" { degree.is_some() } else { real(key).is_some() };
    for key in ["gamma", "coef0", "degree"] {
        if needed.get(key).is_some() && !has_value(key) {
            return Err(format!("{name} needs {key}, found {}", value[key]));
        }
    }
    Ok(kernel)
}
