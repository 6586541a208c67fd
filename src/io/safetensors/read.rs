//! Reading: the container, then each expansion out of its parts, then what is left as arrays.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use ndarray::Array2;
use serde_json::Value;

use super::{Array, Dtype, ModelFile, VERSION, check_vectors, kernel_json, part};
use crate::control::{Monitor, Silent};
use crate::data::{CsrView, DenseElement, Element, IndexSlice, OwnedRows};
use crate::error::{Error, Result};
use crate::expansion::KernelExpansion;
use crate::io::container::{self, Container, Metadata, Tensor};
use crate::io::grid::Grid;
use crate::io::lines::MOST_COLUMNS;
use crate::io::trouble::Trouble;
use crate::io::watched;
use crate::kernels::Kernel;
use crate::memory::room;

/// Characters of the longest text that describes a kernel or a shape.
const LONGEST_TEXT: usize = 1000;

/// Reads a model file.
///
/// # Errors
/// [`Error::Io`] from the system; [`Error::Format`] for everything that is missing, unknown, cut off, of another
/// version, of the wrong type or shape, not finite, or in contradiction with the rest; [`Error::Memory`];
/// [`Error::Cancelled`] where the monitor says so.
pub fn read(path: &Path, monitor: &dyn Monitor) -> Result<ModelFile> {
    let failed = |source| Error::io(path, source);
    let (mut file, length) = watched::open(path, monitor)?;
    let mut bytes = Vec::new();
    (&mut file).take(9).read_to_end(&mut bytes).map_err(failed)?;
    let checked = container::header_length(&bytes, length);
    checked.map_err(|message| Trouble::from(message).at(path, 0))?;
    // What comes after the length that the system tells is not part of the file.
    let rest = length.saturating_sub(bytes.len() as u64);
    let mut whole = room("a model file", length as usize)?;
    whole.append(&mut bytes);
    file.take(rest).read_to_end(&mut whole).map_err(failed)?;
    decode(&whole, monitor).map_err(|trouble| trouble.at(path, 0))
}

/// Reads a model from the bytes of its file; `path` is what the errors call it.
pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<ModelFile> {
    decode(bytes, &Silent).map_err(|trouble| trouble.at(path, 0))
}

fn decode(bytes: &[u8], monitor: &dyn Monitor) -> Result<ModelFile, Trouble> {
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
            let expansion = expansion(&metadata, &mut tensors, name, monitor)
                .map_err(|trouble| if name.is_empty() { trouble } else { trouble.within(name) })?;
            expansions.insert(name.to_owned(), expansion);
        }
    }
    let mut arrays = BTreeMap::new();
    for (name, tensor) in tensors {
        let bytes = tensor.bytes(monitor)?.into();
        arrays.insert(name, Array { dtype: tensor.dtype, shape: tensor.shape, bytes });
    }
    Ok(ModelFile { expansions, arrays, extra })
}

/// Takes the parts of an expansion out of the tensors.
fn expansion(
    metadata: &Metadata<'_>,
    tensors: &mut BTreeMap<String, Tensor<'_>>,
    name: &str,
    monitor: &dyn Monitor,
) -> Result<KernelExpansion, Trouble> {
    let parsed = |key: &str| -> Result<Value, Trouble> {
        let text = metadata.text(&part(name, key))?;
        if text.len() > LONGEST_TEXT {
            return Err(
                format!("{key} is not JSON of a kernel or a shape: it has {} bytes", text.len()).into()
            );
        }
        serde_json::from_str(&text).map_err(|error| format!("{key} is not JSON: {error}").into())
    };
    let kernel = kernel_from_json(&parsed("kernel")?).map_err(|message| format!("kernel: {message}"))?;
    let intercepts = take(tensors, &part(name, "intercepts"), &[Dtype::F64], 1)?.f64s(monitor)?;
    if intercepts.is_empty() {
        return Err("there are no intercepts: a model has at least one output".into());
    }
    let steps = part(name, "coefficients.steps");
    let coded = tensors.contains_key(&steps);
    let codes = if coded { Dtype::U8 } else { Dtype::F64 };
    let coefficients = take(tensors, &part(name, "coefficients"), &[codes], 2)?;
    let grid = if coded {
        let steps = take(tensors, &steps, &[Dtype::F64], 1)?.f64s(monitor)?;
        let zeros = take(tensors, &part(name, "coefficients.zeros"), &[Dtype::U8], 1)?.bytes(monitor)?;
        if [steps.len(), zeros.len()] != [intercepts.len(); 2] {
            return Err(format!(
                "coefficients have {} steps and {} zeros, expected {} of each",
                steps.len(),
                zeros.len(),
                intercepts.len()
            )
            .into());
        }
        Some((steps, zeros))
    } else {
        None
    };
    let whole = part(name, "vectors");
    let vectors = if tensors.contains_key(&whole) {
        dense(&take(tensors, &whole, &[Dtype::U8, Dtype::F32, Dtype::F64], 2)?, monitor)?
    } else {
        let shape =
            parsed("vectors.shape").map_err(|trouble| trouble.within(format!("no tensor {whole:?}, and")))?;
        sparse(tensors, &whole, &shape, monitor)?
    };
    let view = vectors.view();
    let expected = (view.rows(), intercepts.len());
    if coefficients.shape != [expected.0, expected.1] {
        let shape = &coefficients.shape;
        return Err(format!("coefficients have shape {shape:?}, expected {expected:?}").into());
    }
    check_vectors(kernel, view, monitor)?;
    let numbers = match grid {
        Some((steps, zeros)) => Grid { codes: coefficients.bytes(monitor)?, steps, zeros }.values()?,
        None => coefficients.f64s(monitor)?,
    };
    let numbers = Array2::from_shape_vec(expected, numbers).map_err(|error| error.to_string())?;
    Ok(KernelExpansion::new(kernel, vectors, numbers, intercepts)?)
}

fn take<'a>(
    tensors: &mut BTreeMap<String, Tensor<'a>>,
    name: &str,
    dtypes: &[Dtype],
    dimensions: usize,
) -> Result<Tensor<'a>, Trouble> {
    let tensor = tensors.remove(name).ok_or_else(|| format!("no tensor {name:?}"))?;
    if !dtypes.contains(&tensor.dtype) {
        let names: Vec<_> = dtypes.iter().map(|d| d.name()).collect();
        let (found, names) = (tensor.dtype.name(), names.join(" or "));
        return Err(format!("tensor {name:?} is {found}, expected {names}").into());
    }
    if tensor.shape.len() != dimensions {
        let shape = &tensor.shape;
        return Err(format!("tensor {name:?} has shape {shape:?}, expected {dimensions} sizes").into());
    }
    Ok(tensor)
}

fn dense(tensor: &Tensor<'_>, monitor: &dyn Monitor) -> Result<OwnedRows, Trouble> {
    fn array<T: DenseElement>(tensor: &Tensor<'_>, values: Vec<T>) -> Result<OwnedRows, Trouble> {
        let shape = (tensor.shape[0], tensor.shape[1]);
        Ok(Array2::from_shape_vec(shape, values).map_err(|error| error.to_string())?.into())
    }
    match tensor.dtype {
        Dtype::U8 => array(tensor, tensor.bytes(monitor)?),
        Dtype::F32 => array(tensor, tensor.f32s(monitor)?),
        _ => array(tensor, tensor.f64s(monitor)?),
    }
}

fn sparse(
    tensors: &mut BTreeMap<String, Tensor<'_>>,
    name: &str,
    shape: &Value,
    monitor: &dyn Monitor,
) -> Result<OwnedRows, Trouble> {
    let size = |i: usize| shape[i].as_u64().and_then(|n| usize::try_from(n).ok());
    let (Some(rows), Some(cols), None) = (size(0), size(1), shape.get(2)) else {
        return Err(format!("vectors.shape is {shape}, expected two sizes").into());
    };
    if cols > MOST_COLUMNS {
        return Err(format!("vectors.shape is {shape}: more than {MOST_COLUMNS} columns").into());
    }
    let indptr = take(tensors, &format!("{name}.indptr"), &[Dtype::I64], 1)?.i64s(monitor)?;
    let indices = take(tensors, &format!("{name}.indices"), &[Dtype::I64], 1)?.i64s(monitor)?;
    let values = take(tensors, &format!("{name}.values"), &[Dtype::F32, Dtype::F64], 1)?;
    if rows.checked_add(1) != Some(indptr.len()) {
        let found = indptr.len();
        return Err(format!("vectors.indptr has {found} entries, vectors.shape says {rows} rows").into());
    }
    let owned = if values.dtype == Dtype::F32 {
        let values = values.f32s(monitor)?;
        check_structure(&indptr, &indices, &values, cols)?;
        OwnedRows::CsrF32 { indptr, indices, values, cols }
    } else {
        let values = values.f64s(monitor)?;
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
) -> Result<(), Trouble> {
    let checked = CsrView::new(IndexSlice::I64(indptr), IndexSlice::I64(indices), values, cols);
    checked.map(drop).map_err(|error| Trouble::from(error).within("vectors"))
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
    let found = |key: &str| if key == "degree" { degree.is_some() } else { real(key).is_some() };
    for key in ["gamma", "coef0", "degree"] {
        if needed.get(key).is_some() && !found(key) {
            return Err(format!("{name} needs {key}, found {}", value[key]));
        }
    }
    Ok(kernel)
}
