//! marrow's model file: a safetensors container with an expansion and one JSON value of the caller's.
//!
//! | tensor | shape | type |
//! |---|---|---|
//! | `intercepts` | (q) | F64 |
//! | `coefficients` | (m, q) | F64, or U8 with the two below |
//! | `coefficients.steps`, `coefficients.zeros` | (q) | F64, U8: coefficient = step (code - zero) |
//! | `vectors` | (m, d), dense | F64, F32 or U8 |
//! | `vectors.indptr`, `vectors.indices` | (m + 1), (stored), sparse | I64 |
//! | `vectors.values` | (stored), sparse | F64 or F32 |
//!
//! `__metadata__` holds `format` ("marrow"), `version`, `kernel` (JSON: name, and those of gamma, coef0, degree
//! that the kernel has), `vectors.shape` (JSON, sparse only) and `extra` (JSON). A file holds numbers only: loading
//! one from a stranger runs nothing. All of it is checked before it is believed. Equal models are equal files.
//! Coefficients that lie on a grid of 256 values in each column are written as bytes, exactly; the version is then 2.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use serde_json::{Value, json};

use super::container::{self, Container, Dtype, Tensor};
use super::grid::Grid;
use super::libsvm_model::training_rows;
use crate::data::{CsrView, Element, IndexSlice, OwnedRows, Rows};
use crate::error::{Error, Result};
use crate::expansion::{ExpansionView, KernelExpansion};
use crate::io::atomic;
use crate::kernels::Kernel;

/// Versions of the file that this build reads and writes: without and with coefficients of one byte.
const VERSIONS: [&str; 2] = ["1", "2"];

/// What a model file holds.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFile {
    /// The expansion.
    pub expansion: KernelExpansion,
    /// The caller's part.
    pub extra: Value,
}

/// Writes a model file, all or nothing, in memory independent of its size.
///
/// # Errors
/// What [`ExpansionView::new`] refuses; [`Error::NotFinite`] for vectors with NaN or infinities; [`Error::Io`].
///
/// ```
/// use marrow::data::OwnedRows;
/// use marrow::expansion::KernelExpansion;
/// use marrow::io::safetensors::{read, write};
/// use marrow::kernels::Kernel;
///
/// let vectors = OwnedRows::DenseF64 { data: vec![0.0, 1.0], rows: 2, cols: 1 };
/// let expansion = KernelExpansion::new(Kernel::Rbf { gamma: 0.1 }, vectors, vec![1.0, -1.0], vec![0.5])?;
/// let path = std::env::temp_dir().join("marrow-doc-model.safetensors");
/// write(&path, &expansion.view(), &"anything JSON can hold".into())?;
/// assert_eq!(read(&path)?.expansion, expansion);
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), marrow::Error>(())
/// ```
pub fn write(path: &Path, expansion: &ExpansionView<'_>, extra: &Value) -> Result<()> {
    let ExpansionView { kernel, vectors, coefficients, intercepts } = *expansion;
    ExpansionView::new(kernel, vectors, coefficients, intercepts)?;
    check_vectors(kernel, vectors)?;
    let (m, d, q) = (vectors.rows(), vectors.cols(), intercepts.len());

    let grid = Grid::of(coefficients, q);
    let mut metadata = BTreeMap::from([
        ("format", "marrow".to_owned()),
        ("version", VERSIONS[usize::from(grid.is_some())].to_owned()),
        ("kernel", kernel_json(kernel).to_string()),
        ("extra", extra.to_string()),
    ]);
    let mut tensors = vec![("intercepts", Dtype::F64, vec![q])];
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
        let numbers = grid.as_ref().map_or(coefficients, |grid| &grid.steps);
        intercepts.iter().chain(numbers).try_for_each(|v| out.write_all(&v.to_le_bytes()))?;
        if let Some(grid) = &grid {
            out.write_all(&grid.zeros)?;
            out.write_all(&grid.codes)?;
        }
        match vectors {
            Rows::DenseU8(view) => (0..m).try_for_each(|i| out.write_all(view.row(i))),
            Rows::DenseF32(view) => {
                (0..m).flat_map(|i| view.row(i)).try_for_each(|v| out.write_all(&v.to_le_bytes()))
            }
            Rows::DenseF64(view) => {
                (0..m).flat_map(|i| view.row(i)).try_for_each(|v| out.write_all(&v.to_le_bytes()))
            }
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
    if text("format").ok().map(String::as_str) != Some("marrow") {
        return Err("not a marrow model: __metadata__ does not say format=marrow".into());
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
    let codes = if version == VERSIONS[1] { Dtype::U8 } else { Dtype::F64 };
    let coefficients = take(&mut tensors, "coefficients", &[codes], 2)?;
    let grid = if version == VERSIONS[1] {
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
        dense(&take(&mut tensors, "vectors", &[Dtype::U8, Dtype::F32, Dtype::F64], 2)?)
    } else {
        let shape =
            parsed("vectors.shape").map_err(|message| format!("no tensor \"vectors\", and {message}"))?;
        sparse(&mut tensors, &shape)?
    };
    if let Some(name) = tensors.keys().next() {
        return Err(format!("tensor {name:?} is not part of a model of version {version}"));
    }
    let view = vectors.view();
    let expected = [view.rows(), intercepts.len()];
    if coefficients.shape != expected {
        return Err(format!("coefficients have shape {:?}, expected {expected:?}", coefficients.shape));
    }
    check_vectors(kernel, view).map_err(|error| error.to_string())?;
    let numbers = match grid {
        Some((steps, zeros)) => Grid { codes: coefficients.u8s(), steps, zeros }.values(),
        None => coefficients.f64s(),
    };
    let expansion = KernelExpansion::new(kernel, vectors, numbers, intercepts);
    Ok(ModelFile { expansion: expansion.map_err(|error| error.to_string())?, extra })
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

fn dense(tensor: &Tensor<'_>) -> OwnedRows {
    let (rows, cols) = (tensor.shape[0], tensor.shape[1]);
    match tensor.dtype {
        Dtype::U8 => OwnedRows::DenseU8 { data: tensor.u8s(), rows, cols },
        Dtype::F32 => OwnedRows::DenseF32 { data: tensor.f32s(), rows, cols },
        Dtype::F64 | Dtype::I64 => OwnedRows::DenseF64 { data: tensor.f64s(), rows, cols },
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
