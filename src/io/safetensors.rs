//! svmarrow's model file: a safetensors container with expansions, arrays and one text of the caller's.
//!
//! | tensor | shape | type |
//! |---|---|---|
//! | `intercepts` | (q) | F64 |
//! | `coefficients` | (m, q) | F64, or U8 with the two below |
//! | `coefficients.steps`, `coefficients.zeros` | (q) | F64, U8: coefficient = step (code - zero) |
//! | `vectors` | (m, d), dense | F64, F32 or U8 |
//! | `vectors.indptr`, `vectors.indices` | (m + 1), (stored), sparse | I64 |
//! | `vectors.values` | (stored), sparse | F64 or F32 |
//! | any other | any | any: arrays of the caller's |
//!
//! `__metadata__` holds `format` ("svmarrow"), `version`, `kernel` (JSON: name, and those of gamma, coef0, degree
//! that the kernel has), `vectors.shape` (JSON, sparse only) and `extra`, the caller's text. So it is for the
//! expansion whose name is empty; the names of all parts of another begin with its own and a dot. A file holds
//! numbers only: loading one from a stranger runs nothing. All of it is checked before it is believed. Equal models
//! are equal files. Coefficients that lie on a grid of 256 values in each column are written as bytes, exactly.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use ndarray::Array2;
use serde_json::{Value, json};

pub use super::container::Dtype;
use super::container::{self, Container, Tensor};
use super::grid::Grid;
use super::libsvm_model::training_rows;
use crate::data::{CsrView, DenseElement, Element, IndexSlice, OwnedRows, Rows, row as dense_row};
use crate::error::{Error, Result};
use crate::expansion::{ExpansionView, KernelExpansion};
use crate::io::atomic;
use crate::kernels::Kernel;

/// Version of the file.
const VERSION: &str = "1";

/// An array of the caller's.
#[derive(Debug, Clone, PartialEq)]
pub struct Array<'a> {
    /// Type of the elements.
    pub dtype: Dtype,
    /// Sizes.
    pub shape: Vec<usize>,
    /// The elements, row-major, little endian.
    pub bytes: Cow<'a, [u8]>,
}

/// What is to be written, by the names of its parts.
#[derive(Debug, Clone, Default)]
pub struct Contents<'a> {
    /// Expansions; that of a model that is one has an empty name.
    pub expansions: BTreeMap<String, ExpansionView<'a>>,
    /// The caller's arrays.
    pub arrays: BTreeMap<String, Array<'a>>,
    /// The caller's text.
    pub extra: &'a str,
}

impl<'a> Contents<'a> {
    /// One expansion and a text.
    pub fn of(expansion: &ExpansionView<'a>, extra: &'a str) -> Self {
        let expansions = BTreeMap::from([(String::new(), *expansion)]);
        Self { expansions, arrays: BTreeMap::new(), extra }
    }
}

/// What a model file holds, as [`Contents`].
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct ModelFile {
    pub expansions: BTreeMap<String, KernelExpansion>,
    pub arrays: BTreeMap<String, Array<'static>>,
    pub extra: String,
}

/// How the elements of a tensor get into the file.
type Elements<'a> = Box<dyn Fn(&mut dyn Write) -> io::Result<()> + Send + Sync + 'a>;

/// Tensors to be written.
#[derive(Default)]
struct Tensors<'a>(Vec<(String, Dtype, Vec<usize>, Elements<'a>)>);

impl<'a> Tensors<'a> {
    fn push(
        &mut self,
        name: String,
        dtype: Dtype,
        shape: &[usize],
        elements: impl Fn(&mut dyn Write) -> io::Result<()> + Send + Sync + 'a,
    ) {
        self.0.push((name, dtype, shape.to_vec(), Box::new(elements)));
    }

    fn floats(&mut self, name: String, shape: &[usize], values: Cow<'a, [f64]>) {
        self.push(name, Dtype::F64, shape, move |out| each(out, values.iter(), |v| v.to_le_bytes()));
    }

    fn bytes(&mut self, name: String, shape: &[usize], values: Vec<u8>) {
        self.push(name, Dtype::U8, shape, move |out| out.write_all(&values));
    }
}

fn each<T, const N: usize>(
    out: &mut dyn Write,
    mut values: impl Iterator<Item = T>,
    to_bytes: impl Fn(T) -> [u8; N],
) -> io::Result<()> {
    values.try_for_each(|value| out.write_all(&to_bytes(value)))
}

/// The name of a part of an expansion.
fn part(expansion: &str, part: &str) -> String {
    if expansion.is_empty() { part.to_owned() } else { format!("{expansion}.{part}") }
}

/// Writes a model file, all or nothing, in memory independent of its size.
///
/// # Errors
/// What [`ExpansionView::new`] refuses; [`Error::NotFinite`] for vectors with NaN or infinities; [`Error::Param`] for
/// arrays that are not as large as their shapes and for names that occur twice; [`Error::Io`].
///
/// ```
/// use ndarray::arr2;
/// use svmarrow::expansion::KernelExpansion;
/// use svmarrow::io::safetensors::{Contents, read, write};
/// use svmarrow::kernels::Kernel;
///
/// let vectors = arr2(&[[0.0], [1.0]]).into();
/// let expansion = KernelExpansion::new(Kernel::Rbf { gamma: 0.1 }, vectors, arr2(&[[1.0], [-1.0]]), vec![0.5])?;
/// let path = std::env::temp_dir().join("svmarrow-doc-model.safetensors");
/// write(&path, &Contents::of(&expansion.view(), "any text"))?;
/// assert_eq!(read(&path)?.expansions[""], expansion);
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), svmarrow::Error>(())
/// ```
pub fn write(path: &Path, contents: &Contents<'_>) -> Result<()> {
    let mut metadata = BTreeMap::from([
        ("format".to_owned(), "svmarrow".to_owned()),
        ("version".to_owned(), VERSION.to_owned()),
        ("extra".to_owned(), contents.extra.to_owned()),
    ]);
    let mut tensors = Tensors::default();
    for (name, &expansion) in &contents.expansions {
        add_expansion(&mut metadata, &mut tensors, name, expansion)?;
    }
    for (name, Array { dtype, shape, bytes }) in &contents.arrays {
        if shape.iter().product::<usize>() * dtype.bytes() != bytes.len() {
            let found = format!("{name:?} of {} bytes", bytes.len());
            return Err(Error::param("arrays", found, format!("{} of shape {shape:?}", dtype.name())));
        }
        tensors.push(name.clone(), *dtype, shape, |out| out.write_all(bytes));
    }
    let mut tensors = tensors.0;
    let mut names: Vec<&str> = tensors.iter().map(|(name, ..)| name.as_str()).collect();
    names.sort_unstable();
    if let Some([twice, ..]) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Error::param("arrays", format!("{twice:?} twice"), "parts of different names"));
    }
    tensors.sort_by_key(|(_, dtype, ..)| Reverse(dtype.bytes()));
    let listed = tensors.iter().map(|(name, dtype, shape, _)| (name.as_str(), *dtype, shape.as_slice()));
    let header = container::header(&metadata, listed);
    atomic::save(path, |out| {
        out.write_all(&header)?;
        tensors.iter().try_for_each(|(.., elements)| elements(out))
    })
}

/// The tensors of an expansion that is sound.
fn add_expansion<'t, 'a: 't>(
    metadata: &mut BTreeMap<String, String>,
    tensors: &mut Tensors<'t>,
    name: &str,
    expansion: ExpansionView<'a>,
) -> Result<()> {
    let ExpansionView { kernel, vectors, coefficients, intercepts } = expansion;
    ExpansionView::new(kernel, vectors, coefficients, intercepts)?;
    check_vectors(kernel, vectors)?;
    let (m, d, q) = (vectors.rows(), vectors.cols(), intercepts.len());
    metadata.insert(part(name, "kernel"), kernel_json(kernel).to_string());
    tensors.floats(part(name, "intercepts"), &[q], intercepts.into());
    let coefficients = expansion.flat();
    if let Some(grid) = Grid::of(coefficients, q) {
        tensors.floats(part(name, "coefficients.steps"), &[q], grid.steps.into());
        tensors.bytes(part(name, "coefficients.zeros"), &[q], grid.zeros);
        tensors.bytes(part(name, "coefficients"), &[m, q], grid.codes);
    } else {
        tensors.floats(part(name, "coefficients"), &[m, q], coefficients.into());
    }
    let whole = part(name, "vectors");
    if vectors.is_sparse() {
        metadata.insert(format!("{whole}.shape"), json!([m, d]).to_string());
    }
    match vectors {
        Rows::DenseU8(view) => tensors.push(whole, Dtype::U8, &[m, d], move |out| {
            (0..m).try_for_each(|i| out.write_all(dense_row(&view, i)))
        }),
        Rows::DenseF32(view) => {
            tensors.push(whole, Dtype::F32, &[m, d], move |out| each(out, view.iter(), |v| v.to_le_bytes()));
        }
        Rows::DenseF64(view) => {
            tensors.push(whole, Dtype::F64, &[m, d], move |out| each(out, view.iter(), |v| v.to_le_bytes()));
        }
        Rows::CsrF32(csr) => add_sparse(tensors, &whole, csr, Dtype::F32, f32::to_le_bytes),
        Rows::CsrF64(csr) => add_sparse(tensors, &whole, csr, Dtype::F64, f64::to_le_bytes),
    }
    Ok(())
}

fn add_sparse<'t, 'a: 't, T: Element, const N: usize>(
    tensors: &mut Tensors<'t>,
    name: &str,
    csr: CsrView<'a, T>,
    dtype: Dtype,
    to_bytes: fn(T) -> [u8; N],
) {
    let rows = csr.rows();
    let stored = (0..rows).map(|row| csr.row_len(row)).sum();
    tensors.push(format!("{name}.indptr"), Dtype::I64, &[rows + 1], move |out| {
        let ends = (0..rows).scan(0, |end, row| {
            *end += csr.row_len(row) as i64;
            Some(*end)
        });
        each(out, std::iter::once(0).chain(ends), i64::to_le_bytes)
    });
    tensors.push(format!("{name}.indices"), Dtype::I64, &[stored], move |out| {
        each_stored(csr, |column, _| out.write_all(&(column as i64).to_le_bytes()))
    });
    tensors.push(format!("{name}.values"), dtype, &[stored], move |out| {
        each_stored(csr, |_, value| out.write_all(&to_bytes(value)))
    });
}

fn each_stored<T: Element>(
    csr: CsrView<'_, T>,
    mut write: impl FnMut(usize, T) -> io::Result<()>,
) -> io::Result<()> {
    let mut written = Ok(());
    for row in 0..csr.rows() {
        csr.for_each_in_row(row, |column, value| {
            if written.is_ok() {
                written = write(column, value);
            }
        });
    }
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
    if version != VERSION {
        return Err(format!("version {version:?}: this build reads {VERSION:?}"));
    }
    let extra = text("extra")?.clone();
    let mut expansions = BTreeMap::new();
    for key in metadata.keys() {
        let name = if key == "kernel" { Some("") } else { key.strip_suffix(".kernel") };
        if let Some(name) = name {
            let expansion = expansion(&metadata, &mut tensors, name)
                .map_err(|message| if name.is_empty() { message } else { format!("{name}: {message}") })?;
            expansions.insert(name.to_owned(), expansion);
        }
    }
    let arrays = tensors.into_iter().map(|(name, tensor)| {
        let bytes = tensor.bytes().into();
        (name, Array { dtype: tensor.dtype, shape: tensor.shape, bytes })
    });
    Ok(ModelFile { expansions, arrays: arrays.collect(), extra })
}

/// Takes the parts of an expansion out of the tensors.
fn expansion(
    metadata: &BTreeMap<String, String>,
    tensors: &mut BTreeMap<String, Tensor<'_>>,
    name: &str,
) -> Result<KernelExpansion, String> {
    let parsed = |key: &str| -> Result<Value, String> {
        let text = metadata.get(&part(name, key)).ok_or_else(|| format!("__metadata__ has no {key:?}"))?;
        serde_json::from_str(text).map_err(|error| format!("{key} is not JSON: {error}"))
    };
    let kernel = kernel_from_json(&parsed("kernel")?).map_err(|message| format!("kernel: {message}"))?;
    let intercepts = take(tensors, &part(name, "intercepts"), &[Dtype::F64], 1)?.f64s();
    let steps = part(name, "coefficients.steps");
    let coded = tensors.contains_key(&steps);
    let codes = if coded { Dtype::U8 } else { Dtype::F64 };
    let coefficients = take(tensors, &part(name, "coefficients"), &[codes], 2)?;
    let grid = if coded {
        let steps = take(tensors, &steps, &[Dtype::F64], 1)?.f64s();
        let zeros = take(tensors, &part(name, "coefficients.zeros"), &[Dtype::U8], 1)?.bytes();
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
    let whole = part(name, "vectors");
    let vectors = if tensors.contains_key(&whole) {
        dense(&take(tensors, &whole, &[Dtype::U8, Dtype::F32, Dtype::F64], 2)?)?
    } else {
        let shape =
            parsed("vectors.shape").map_err(|message| format!("no tensor {whole:?}, and {message}"))?;
        sparse(tensors, &whole, &shape)?
    };
    let view = vectors.view();
    let expected = (view.rows(), intercepts.len());
    if coefficients.shape != [expected.0, expected.1] {
        return Err(format!("coefficients have shape {:?}, expected {expected:?}", coefficients.shape));
    }
    check_vectors(kernel, view).map_err(|error| error.to_string())?;
    let numbers = match grid {
        Some((steps, zeros)) => Grid { codes: coefficients.bytes(), steps, zeros }.values(),
        None => coefficients.f64s(),
    };
    let numbers = Array2::from_shape_vec(expected, numbers).map_err(|error| error.to_string())?;
    KernelExpansion::new(kernel, vectors, numbers, intercepts).map_err(|error| error.to_string())
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
        Dtype::U8 => array(tensor, tensor.bytes()),
        Dtype::F32 => array(tensor, tensor.f32s()),
        _ => array(tensor, tensor.f64s()),
    }
}

fn sparse(
    tensors: &mut BTreeMap<String, Tensor<'_>>,
    name: &str,
    shape: &Value,
) -> Result<OwnedRows, String> {
    let size = |i: usize| shape[i].as_u64().and_then(|n| usize::try_from(n).ok());
    let (Some(rows), Some(cols), None) = (size(0), size(1), shape.get(2)) else {
        return Err(format!("vectors.shape is {shape}, expected two sizes"));
    };
    let indptr = take(tensors, &format!("{name}.indptr"), &[Dtype::I64], 1)?.i64s();
    let indices = take(tensors, &format!("{name}.indices"), &[Dtype::I64], 1)?.i64s();
    let values = take(tensors, &format!("{name}.values"), &[Dtype::F32, Dtype::F64], 1)?;
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
