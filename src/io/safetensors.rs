//! svmarrow's model file: a safetensors container with an expansion and one JSON value of the caller's.
//!
//! | tensor | shape | type |
//! |---|---|---|
//! | `intercepts` | (q) | F64 |
//! | `coefficients` | (m, q) | F64, or U8 with the two below |
//! | `coefficients.steps`, `coefficients.zeros` | (q) | F64, U8: coefficient = step (code - zero) |
//! | `vectors` | (m, d), dense | F64, F32 or U8 |
//! | `vectors.indptr`, `vectors.indices` | (m + 1), (stored), sparse | I64 |
//! | `vectors.values` | (stored), sparse | F64 or F32 |
//! | `state.*` | any | F64 or I64: arrays of the caller's, what an online learner needs to go on |
//!
//! `__metadata__` holds `format` ("svmarrow"), `version`, `kernel` (JSON: name, and those of gamma, coef0, degree
//! that the kernel has), `vectors.shape` (JSON, sparse only) and `extra` (JSON). A file holds numbers only: loading
//! one from a stranger runs nothing. All of it is checked before it is believed. Equal models are equal files.
//! Coefficients that lie on a grid of 256 values in each column are written as bytes, exactly; the version is then 2.
//! With arrays of the caller's it is 3, with and without such coefficients.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use ndarray::Array2;
use serde_json::{Value, json};

use super::container::{self, Container, Dtype, Tensor};
use super::grid::Grid;
use super::libsvm_model::training_rows;
use crate::data::{CsrView, DenseElement, Element, IndexSlice, OwnedRows, Rows, row as dense_row};
use crate::error::{Error, Result};
use crate::expansion::{ExpansionView, KernelExpansion};
use crate::io::atomic;
use crate::kernels::Kernel;

/// Versions of the file that this build reads and writes: without and with coefficients of one byte, with a state.
const VERSIONS: [&str; 3] = ["1", "2", "3"];

/// What the names of the caller's arrays begin with in a file.
const STATE: &str = "state.";

/// Numbers of an array.
#[derive(Debug, Clone, PartialEq)]
pub enum Numbers {
    /// Finite.
    F64(Vec<f64>),
    /// Any.
    I64(Vec<i64>),
}

/// An array of the caller's.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// Sizes.
    pub shape: Vec<usize>,
    /// Row-major; as many as the sizes say.
    pub numbers: Numbers,
}

impl Array {
    fn check(&self, name: &str) -> Result<(), String> {
        let (length, finite) = match &self.numbers {
            Numbers::F64(values) => (values.len(), values.iter().all(|v| v.is_finite())),
            Numbers::I64(values) => (values.len(), true),
        };
        if !finite {
            return Err(format!("array {name:?} has NaN or infinities"));
        }
        if self.shape.iter().product::<usize>() == length {
            return Ok(());
        }
        Err(format!("array {name:?} of shape {:?} has {length} numbers", self.shape))
    }
}

/// Arrays of the caller's by their names.
pub type Arrays = BTreeMap<String, Array>;

/// What a model file holds.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFile {
    /// The expansion.
    pub expansion: KernelExpansion,
    /// The caller's part.
    pub extra: Value,
    /// The caller's arrays.
    pub arrays: Arrays,
}

/// Writes a model file, all or nothing, in memory independent of its size.
///
/// # Errors
/// What [`ExpansionView::new`] refuses; [`Error::NotFinite`] for vectors with NaN or infinities; [`Error::Io`].
///
/// ```
/// use ndarray::arr2;
/// use svmarrow::expansion::KernelExpansion;
/// use svmarrow::io::safetensors::{read, write};
/// use svmarrow::kernels::Kernel;
///
/// let vectors = arr2(&[[0.0], [1.0]]).into();
/// let expansion = KernelExpansion::new(Kernel::Rbf { gamma: 0.1 }, vectors, arr2(&[[1.0], [-1.0]]), vec![0.5])?;
/// let path = std::env::temp_dir().join("svmarrow-doc-model.safetensors");
/// write(&path, &expansion.view(), &"anything JSON can hold".into())?;
/// assert_eq!(read(&path)?.expansion, expansion);
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), svmarrow::Error>(())
/// ```
pub fn write(path: &Path, expansion: &ExpansionView<'_>, extra: &Value) -> Result<()> {
    write_with(path, expansion, extra, &Arrays::new())
}

/// Writes a model file with arrays beside the expansion.
///
/// # Errors
/// As [`write()`]; [`Error::Param`] for arrays that are not finite or not as large as their shapes.
pub fn write_with(path: &Path, expansion: &ExpansionView<'_>, extra: &Value, arrays: &Arrays) -> Result<()> {
    for (name, array) in arrays {
        array.check(name).map_err(|message| Error::param("arrays", message, "finite and of their shapes"))?;
    }
    let ExpansionView { kernel, vectors, coefficients, intercepts } = *expansion;
    ExpansionView::new(kernel, vectors, coefficients, intercepts)?;
    check_vectors(kernel, vectors)?;
    let (m, d, q) = (vectors.rows(), vectors.cols(), intercepts.len());

    let coefficients = expansion.flat();
    let grid = Grid::of(coefficients, q);
    let mut metadata = BTreeMap::from([
        ("format", "svmarrow".to_owned()),
        ("version", VERSIONS[if arrays.is_empty() { usize::from(grid.is_some()) } else { 2 }].to_owned()),
        ("kernel", kernel_json(kernel).to_string()),
        ("extra", extra.to_string()),
    ]);
    let names: Vec<String> = arrays.keys().map(|name| format!("{STATE}{name}")).collect();
    let mut tensors: Vec<(&str, Dtype, Vec<usize>)> = names
        .iter()
        .zip(arrays.values())
        .map(|(name, array)| {
            let dtype = if matches!(array.numbers, Numbers::F64(_)) { Dtype::F64 } else { Dtype::I64 };
            (name.as_str(), dtype, array.shape.clone())
        })
        .collect();
    tensors.push(("intercepts", Dtype::F64, vec![q]));
    if grid.is_some() {
        tensors.push(("coefficients.steps", Dtype::F64, vec![q]));
        tensors.push(("coefficients.zeros", Dtype::U8, vec![q]));
        tensors.push(("coefficients", Dtype::U8, vec![m, q]));
    } else {
        tensors.push(("coefficients", Dtype::F64, vec![m, q]));
    }
    match vectors {
        Rows::DenseU8(_) => tensors.push(("vectors", Dtype::U8, vec![m, d])),
        Rows::DenseF32(_) => tensors.push(("vectors", Dtype::F32, vec![m, d])),
        Rows::DenseF64(_) => tensors.push(("vectors", Dtype::F64, vec![m, d])),
        Rows::CsrF32(csr) => sparse_tensors(&mut tensors, csr, Dtype::F32),
        Rows::CsrF64(csr) => sparse_tensors(&mut tensors, csr, Dtype::F64),
    }
    if vectors.is_sparse() {
        metadata.insert("vectors.shape", json!([m, d]).to_string());
    }
    let header = container::header(&metadata, &tensors);
    atomic::save(path, |out| {
        out.write_all(&header)?;
        for array in arrays.values() {
            match &array.numbers {
                Numbers::F64(values) => values.iter().try_for_each(|v| out.write_all(&v.to_le_bytes()))?,
                Numbers::I64(values) => values.iter().try_for_each(|v| out.write_all(&v.to_le_bytes()))?,
            }
        }
        let numbers = grid.as_ref().map_or(coefficients, |grid| &grid.steps);
        intercepts.iter().chain(numbers).try_for_each(|v| out.write_all(&v.to_le_bytes()))?;
        if let Some(grid) = &grid {
            out.write_all(&grid.zeros)?;
            out.write_all(&grid.codes)?;
        }
        match vectors {
            Rows::DenseU8(view) => (0..m).try_for_each(|i| out.write_all(dense_row(&view, i))),
            Rows::DenseF32(view) => view.iter().try_for_each(|v| out.write_all(&v.to_le_bytes())),
            Rows::DenseF64(view) => view.iter().try_for_each(|v| out.write_all(&v.to_le_bytes())),
            Rows::CsrF32(csr) => write_sparse(out, csr, f32::to_le_bytes),
            Rows::CsrF64(csr) => write_sparse(out, csr, f64::to_le_bytes),
        }
    })
}

fn sparse_tensors<T: Element>(
    tensors: &mut Vec<(&str, Dtype, Vec<usize>)>,
    csr: CsrView<'_, T>,
    values: Dtype,
) {
    let stored = (0..csr.rows()).map(|row| csr.row_len(row)).sum();
    tensors.push(("vectors.indptr", Dtype::I64, vec![csr.rows() + 1]));
    tensors.push(("vectors.indices", Dtype::I64, vec![stored]));
    tensors.push(("vectors.values", values, vec![stored]));
}

fn write_sparse<T: Element, const N: usize>(
    out: &mut dyn Write,
    csr: CsrView<'_, T>,
    to_bytes: fn(T) -> [u8; N],
) -> io::Result<()> {
    let mut end = 0_i64;
    out.write_all(&end.to_le_bytes())?;
    for row in 0..csr.rows() {
        end += csr.row_len(row) as i64;
        out.write_all(&end.to_le_bytes())?;
    }
    let mut written = Ok(());
    let mut put = |bytes: &[u8]| {
        if written.is_ok() {
            written = out.write_all(bytes);
        }
    };
    (0..csr.rows()).for_each(|row| csr.for_each_in_row(row, |column, _| put(&(column as i64).to_le_bytes())));
    (0..csr.rows()).for_each(|row| csr.for_each_in_row(row, |_, value| put(&to_bytes(value))));
    written
}

/// Reads a model file.
///
/// # Errors
/// [`Error::Io`] from the system; [`Error::Format`] for everything that is missing, unknown, cut off, of another
/// version, of the wrong type or shape, not finite, or in contradiction with the rest.
pub fn read(path: &Path) -> Result<ModelFile> {
    let failed = |source| Error::Io { path: path.into(), source };
    let broken = |message| Error::Format { path: path.into(), line: 0, message };
    let mut file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    let mut bytes = Vec::new();
    (&mut file).take(9).read_to_end(&mut bytes).map_err(failed)?;
    container::header_length(&bytes, length).map_err(broken)?;
    file.read_to_end(&mut bytes).map_err(failed)?;
    decode(&bytes).map_err(broken)
}

/// Reads a model from the bytes of its file; `path` is what the errors call it.
pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<ModelFile> {
    decode(bytes).map_err(|message| Error::Format { path: path.into(), line: 0, message })
}

fn decode(bytes: &[u8]) -> Result<ModelFile, String> {
    let Container { metadata, mut tensors } = Container::parse(bytes)?;
    let text = |key: &str| metadata.get(key).ok_or_else(|| format!("__metadata__ has no {key:?}"));
    if text("format").ok().map(String::as_str) != Some("svmarrow") {
        return Err("not a svmarrow model: __metadata__ does not say format=svmarrow".into());
    }
    let version = text("version")?;
    if !VERSIONS.contains(&version.as_str()) {
        return Err(format!("version {version:?}: this build reads {}", VERSIONS.join(", ")));
    }
    let parsed = |key: &str| -> Result<Value, String> {
        serde_json::from_str(text(key)?).map_err(|error| format!("{key} is not JSON: {error}"))
    };
    let kernel = kernel_from_json(&parsed("kernel")?).map_err(|message| format!("kernel: {message}"))?;
    let extra = parsed("extra")?;

    let intercepts = take(&mut tensors, "intercepts", &[Dtype::F64], 1)?.f64s();
    let arrays = if version == VERSIONS[2] { take_state(&mut tensors)? } else { Arrays::new() };
    let coded =
        version == VERSIONS[1] || (version == VERSIONS[2] && tensors.contains_key("coefficients.steps"));
    let codes = if coded { Dtype::U8 } else { Dtype::F64 };
    let coefficients = take(&mut tensors, "coefficients", &[codes], 2)?;
    let grid = if coded {
        let steps = take(&mut tensors, "coefficients.steps", &[Dtype::F64], 1)?.f64s();
        let zeros = take(&mut tensors, "coefficients.zeros", &[Dtype::U8], 1)?.u8s();
        if [steps.len(), zeros.len()] != [intercepts.len(); 2] {
            return Err(format!(
                "coefficients have {} steps and {} zeros, expected {} of each",
                steps.len(),
                zeros.len(),
                intercepts.len()
            ));
        }
        Some((steps, zeros))
    } else {
        None
    };
    let vectors = if tensors.contains_key("vectors") {
        dense(&take(&mut tensors, "vectors", &[Dtype::U8, Dtype::F32, Dtype::F64], 2)?)?
    } else {
        let shape =
            parsed("vectors.shape").map_err(|message| format!("no tensor \"vectors\", and {message}"))?;
        sparse(&mut tensors, &shape)?
    };
    if let Some(name) = tensors.keys().next() {
        return Err(format!("tensor {name:?} is not part of a model of version {version}"));
    }
    let view = vectors.view();
    let expected = (view.rows(), intercepts.len());
    if coefficients.shape != [expected.0, expected.1] {
        return Err(format!("coefficients have shape {:?}, expected {expected:?}", coefficients.shape));
    }
    check_vectors(kernel, view).map_err(|error| error.to_string())?;
    let numbers = match grid {
        Some((steps, zeros)) => Grid { codes: coefficients.u8s(), steps, zeros }.values(),
        None => coefficients.f64s(),
    };
    let numbers = Array2::from_shape_vec(expected, numbers).map_err(|error| error.to_string())?;
    let expansion = KernelExpansion::new(kernel, vectors, numbers, intercepts);
    Ok(ModelFile { expansion: expansion.map_err(|error| error.to_string())?, extra, arrays })
}

/// The caller's arrays.
fn take_state(tensors: &mut BTreeMap<String, Tensor<'_>>) -> Result<Arrays, String> {
    let names: Vec<String> = tensors.keys().filter(|name| name.starts_with(STATE)).cloned().collect();
    let mut arrays = Arrays::new();
    for name in names {
        let Some(tensor) = tensors.remove(&name) else { continue };
        let numbers = match tensor.dtype {
            Dtype::F64 => Numbers::F64(tensor.f64s()),
            Dtype::I64 => Numbers::I64(tensor.i64s()),
            other => return Err(format!("tensor {name:?} is {}, expected F64 or I64", other.name())),
        };
        let array = Array { shape: tensor.shape, numbers };
        array.check(&name)?;
        arrays.insert(name[STATE.len()..].to_owned(), array);
    }
    Ok(arrays)
}

fn take<'a>(
    tensors: &mut BTreeMap<String, Tensor<'a>>,
    name: &str,
    dtypes: &[Dtype],
    dimensions: usize,
) -> Result<Tensor<'a>, String> {
    let tensor = tensors.remove(name).ok_or_else(|| format!("no tensor {name:?}"))?;
    if !dtypes.contains(&tensor.dtype) {
        let names: Vec<_> = dtypes.iter().map(|d| d.name()).collect();
        return Err(format!("tensor {name:?} is {}, expected {}", tensor.dtype.name(), names.join(" or ")));
    }
    if tensor.shape.len() != dimensions {
        return Err(format!("tensor {name:?} has shape {:?}, expected {dimensions} sizes", tensor.shape));
    }
    Ok(tensor)
}

fn dense(tensor: &Tensor<'_>) -> Result<OwnedRows, String> {
    fn array<T: DenseElement>(tensor: &Tensor<'_>, values: Vec<T>) -> Result<OwnedRows, String> {
        let shape = (tensor.shape[0], tensor.shape[1]);
        Ok(Array2::from_shape_vec(shape, values).map_err(|error| error.to_string())?.into())
    }
    match tensor.dtype {
        Dtype::U8 => array(tensor, tensor.u8s()),
        Dtype::F32 => array(tensor, tensor.f32s()),
        Dtype::F64 | Dtype::I64 => array(tensor, tensor.f64s()),
    }
}

fn sparse(tensors: &mut BTreeMap<String, Tensor<'_>>, shape: &Value) -> Result<OwnedRows, String> {
    let size = |i: usize| shape[i].as_u64().and_then(|n| usize::try_from(n).ok());
    let (Some(rows), Some(cols), None) = (size(0), size(1), shape.get(2)) else {
        return Err(format!("vectors.shape is {shape}, expected two sizes"));
    };
    let indptr = take(tensors, "vectors.indptr", &[Dtype::I64], 1)?.i64s();
    let indices = take(tensors, "vectors.indices", &[Dtype::I64], 1)?.i64s();
    let values = take(tensors, "vectors.values", &[Dtype::F32, Dtype::F64], 1)?;
    if rows.checked_add(1) != Some(indptr.len()) {
        return Err(format!("vectors.indptr has {} entries, vectors.shape says {rows} rows", indptr.len()));
    }
    let owned = if values.dtype == Dtype::F32 {
        let values = values.f32s();
        check_structure(&indptr, &indices, &values, cols)?;
        OwnedRows::CsrF32 { indptr, indices, values, cols }
    } else {
        let values = values.f64s();
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
) -> Result<(), String> {
    let checked = CsrView::new(IndexSlice::I64(indptr), IndexSlice::I64(indices), values, cols);
    checked.map(drop).map_err(|error| format!("vectors: {error}"))
}

/// What holds for the vectors of any model in a file: finite and in the kernel's domain.
fn check_vectors(kernel: Kernel, vectors: Rows<'_>) -> Result<()> {
    vectors.check_finite("vectors")?;
    if kernel == Kernel::Precomputed {
        training_rows(vectors)?;
    }
    kernel.check_rows("vectors", vectors)
}

fn kernel_json(kernel: Kernel) -> Value {
    let name = kernel.name();
    match kernel {
        Kernel::Linear | Kernel::Precomputed => json!({ "name": name }),
        Kernel::Polynomial { degree, gamma, coef0 } => {
            json!({ "name": name, "gamma": gamma, "coef0": coef0, "degree": degree })
        }
        Kernel::Sigmoid { gamma, coef0 } => json!({ "name": name, "gamma": gamma, "coef0": coef0 }),
        Kernel::Rbf { gamma } | Kernel::Laplacian { gamma } | Kernel::ChiSquared { gamma } => {
            json!({ "name": name, "gamma": gamma })
        }
    }
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
