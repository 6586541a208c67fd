//! svmarrow's model file: a safetensors container with expansions, arrays and one text of the caller's.
//!
//! | tensor | shape | type |
//! |---|---|---|
//! | `intercepts` | (q) | F64 |
//! | `coefficients` | (m, q), or (k) with `coefficients.present` | F64, or U8 with the two below |
//! | `coefficients.steps`, `coefficients.zeros` | (q) | F64, U8: coefficient = step (code - zero) |
//! | `coefficients.present` | ((m q + 7) / 8) | U8: a bit for each of (m, q), the lowest first; the k that are 1 are stored, the others are 0 |
//! | `vectors` | (m, d), dense | F64, F32 or U8 |
//! | `vectors.step`, `vectors.lows` | (1), (d) or (1) | F64, I16: `vectors` is U8 and stands for step (low + code) |
//! | `vectors.indptr`, `vectors.indices` | (m + 1), (stored), sparse | I64 |
//! | `vectors.values` | (stored), sparse | F64 or F32 |
//! | any other | any | any: arrays of the caller's |
//!
//! `__metadata__` holds `format` ("svmarrow"), `version`, `kernel` (JSON: name, and those of gamma, coef0, degree
//! that the kernel has), `vectors.shape` (JSON, sparse only), `vectors.dtype` ("F32" or "F64", where there is a step) and
//! `extra`, the caller's text. So it is for the
//! expansion whose name is empty; the names of all parts of another begin with its own and a dot. A file holds
//! numbers only: loading one from a stranger runs nothing. All of it is checked before it is believed. Equal models
//! are equal files. Coefficients that lie on a grid of 256 values in each column are written as bytes, exactly, and
//! so are vectors on one of 256 values around a number of each column; zero coefficients are left out where that is less.

mod read;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use serde_json::{Value, json};

use super::atomic;
use super::container;
pub use super::container::Dtype;
use super::grid::{Grid, Number, Steps};
use super::libsvm_model::training_rows;
use super::lines::check_columns;
use super::monitored::check_finite;
use crate::context::Context;
use crate::data::{CsrView, Element, Rows, row as dense_row};
use crate::error::{Error, Result};
use crate::expansion::{ExpansionView, KernelExpansion};
use crate::kernels::Kernel;
use crate::memory::try_zeros;
use ndarray::ArrayView2;

pub use read::{from_bytes, read};

/// Version of the file.
const VERSION: &str = "1";

/// An array of the caller's.
#[derive(Debug, Clone, PartialEq)]
pub struct Array<'a> {
    /// Type of the elements.
    pub dtype: Dtype,
    /// Sizes of the dimensions, the slowest first; empty for a number.
    pub shape: Vec<usize>,
    /// The elements, row-major, little endian.
    pub bytes: Cow<'a, [u8]>,
}

/// The contents of a model file to be written, by the names of the parts.
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

/// The contents of a model file that was read; see [`Contents`].
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct ModelFile {
    pub expansions: BTreeMap<String, KernelExpansion>,
    pub arrays: BTreeMap<String, Array<'static>>,
    pub extra: String,
}

/// A function that writes the elements of a tensor.
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
        self.push(name, Dtype::F64, shape, move |out| write_values(out, values.iter(), |v| v.to_le_bytes()));
    }

    fn bytes(&mut self, name: String, shape: &[usize], values: Vec<u8>) {
        self.push(name, Dtype::U8, shape, move |out| out.write_all(&values));
    }
}

fn write_values<T, const N: usize>(
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
/// The errors of [`ExpansionView::new`]; [`Error::NotFinite`] for vectors with NaN or infinities; [`Error::Param`] for
/// arrays that are not as large as their shapes and for names that occur twice; [`Error::Io`]; [`Error::Memory`];
/// [`Error::Stopped`].
///
/// ```
/// use ndarray::arr2;
/// use svmarrow::context::Context;
/// use svmarrow::expansion::KernelExpansion;
/// use svmarrow::io::safetensors::{Contents, read, write};
/// use svmarrow::kernels::Kernel;
///
/// let vectors = arr2(&[[0.0], [1.0]]).into();
/// let expansion = KernelExpansion::new(Kernel::Rbf { gamma: 0.1 }, vectors, arr2(&[[1.0], [-1.0]]), vec![0.5])?;
/// let path = std::env::temp_dir().join("svmarrow-doc-model.safetensors");
/// write(&path, &Contents::of(&expansion.view(), "any text"), Context::default())?;
/// assert_eq!(read(&path, Context::default())?.expansions[""], expansion);
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), svmarrow::Error>(())
/// ```
pub fn write(path: &Path, contents: &Contents<'_>, ctx: Context<'_>) -> Result<()> {
    atomic::save(path, ctx, checked_writer(contents, ctx)?)
}

/// The bytes of a model file.
///
/// # Errors
/// The errors of [`write()`], but for the system's.
pub fn to_bytes(contents: &Contents<'_>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    checked_writer(contents, Context::default())?(&mut bytes)
        .map_err(|source| Error::io("memory".as_ref(), source))?;
    Ok(bytes)
}

/// Bytes of the numbers of an expansion in a model file, its header left out.
///
/// # Errors
/// The errors of [`write()`], but for the system's.
pub fn stored_bytes(expansion: &ExpansionView<'_>, ctx: Context<'_>) -> Result<usize> {
    let (mut metadata, mut tensors) = (BTreeMap::new(), Tensors::default());
    add_expansion(&mut metadata, &mut tensors, "", *expansion, ctx)?;
    Ok(bytes_of(&tensors, ""))
}

/// Checks the contents, and returns the function that writes them.
fn checked_writer<'t>(
    contents: &'t Contents<'_>,
    ctx: Context<'_>,
) -> Result<impl FnOnce(&mut dyn Write) -> io::Result<()> + 't> {
    let mut metadata = BTreeMap::from([
        ("format".to_owned(), "svmarrow".to_owned()),
        ("version".to_owned(), VERSION.to_owned()),
        ("extra".to_owned(), contents.extra.to_owned()),
    ]);
    let mut tensors = Tensors::default();
    for (name, &expansion) in &contents.expansions {
        add_expansion(&mut metadata, &mut tensors, name, expansion, ctx)?;
    }
    for (name, Array { dtype, shape, bytes }) in &contents.arrays {
        if shape.iter().product::<usize>() * dtype.bytes() != bytes.len() {
            let description = format!("{name:?} of {} bytes", bytes.len());
            return Err(Error::param("arrays", description, format!("{} of shape {shape:?}", dtype.name())));
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
    Ok(move |out: &mut dyn Write| {
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
    ctx: Context<'_>,
) -> Result<()> {
    let ExpansionView { kernel, vectors, coefficients, intercepts } = expansion;
    ExpansionView::new(kernel, vectors, coefficients, intercepts)?;
    check_columns(vectors)?;
    check_vectors(kernel, vectors, ctx)?;
    let (m, d, q) = (vectors.rows(), vectors.cols(), intercepts.len());
    metadata.insert(part(name, "kernel"), kernel_json(kernel).to_string());
    tensors.floats(part(name, "intercepts"), &[q], intercepts.into());
    let tensor_name = part(name, "vectors");
    if vectors.is_sparse() {
        metadata.insert(format!("{tensor_name}.shape"), json!([m, d]).to_string());
    }
    match vectors {
        Rows::DenseU8(view) => tensors.push(tensor_name, Dtype::U8, &[m, d], move |out| {
            (0..m).try_for_each(|i| out.write_all(dense_row(&view, i)))
        }),
        Rows::DenseF32(view) => match byte_rows(metadata, tensors, &tensor_name, view, Dtype::F32, ctx)? {
            Some(codes) => tensors.bytes(tensor_name, &[m, d], codes),
            None => {
                tensors.push(tensor_name, Dtype::F32, &[m, d], move |out| {
                    write_values(out, view.iter(), |v| v.to_le_bytes())
                });
            }
        },
        Rows::DenseF64(view) => match byte_rows(metadata, tensors, &tensor_name, view, Dtype::F64, ctx)? {
            Some(codes) => tensors.bytes(tensor_name, &[m, d], codes),
            None => {
                tensors.push(tensor_name, Dtype::F64, &[m, d], move |out| {
                    write_values(out, view.iter(), |v| v.to_le_bytes())
                });
            }
        },
        Rows::CsrF32(csr) => add_sparse(tensors, &tensor_name, csr, Dtype::F32, f32::to_le_bytes),
        Rows::CsrF64(csr) => add_sparse(tensors, &tensor_name, csr, Dtype::F64, f64::to_le_bytes),
    }
    add_coefficients(tensors, name, expansion.flat(), vectors, q, ctx)
}

/// Adds the grid of vectors, and returns their codes.
fn byte_rows<T: Number>(
    metadata: &mut BTreeMap<String, String>,
    tensors: &mut Tensors<'_>,
    name: &str,
    rows: ArrayView2<'_, T>,
    dtype: Dtype,
    ctx: Context<'_>,
) -> Result<Option<Vec<u8>>> {
    let Some(Grid { codes, steps, mut lows }) = Grid::of(rows, Steps::Shared, ctx)? else {
        return Ok(None);
    };
    if lows.iter().all(|low| *low == lows[0]) {
        lows.truncate(1);
    }
    metadata.insert(format!("{name}.dtype"), dtype.name().to_owned());
    tensors.floats(format!("{name}.step"), &[1], steps.into());
    tensors.push(format!("{name}.lows"), Dtype::I16, &[lows.len()], move |out| {
        write_values(out, lows.iter(), |low| low.to_le_bytes())
    });
    Ok(Some(codes))
}

/// Coefficients (m, q): as bytes where they lie on a grid, and without the zeros where that is less.
fn add_coefficients<'t>(
    tensors: &mut Tensors<'t>,
    name: &str,
    coefficients: &'t [f64],
    vectors: Rows<'_>,
    q: usize,
    ctx: Context<'_>,
) -> Result<()> {
    let (all, tensor_name) = (coefficients.len(), part(name, "coefficients"));
    let matrix = ArrayView2::from_shape((all / q, q), coefficients).expect("an expansion has q outputs");
    let grid = Grid::of(matrix, Steps::PerColumn, ctx)?;
    let each_takes = if grid.is_some() { 1 } else { size_of::<f64>() };
    let is_present = |value: &f64| value.to_bits() != 0;
    let present = coefficients.iter().filter(|value| is_present(value)).count();
    let stored = all.div_ceil(8) + present * each_takes;
    let shape = if stored < all * each_takes
        && !too_many(all, vectors, stored + bytes_of(tensors, &part(name, "vectors")))
    {
        let mut bits = try_zeros("the places of the coefficients", all.div_ceil(8))?;
        for (i, _) in coefficients.iter().enumerate().filter(|(_, value)| is_present(value)) {
            bits[i / 8] |= 1 << (i % 8);
        }
        tensors.bytes(part(name, "coefficients.present"), &[bits.len()], bits);
        vec![present]
    } else {
        vec![all / q, q]
    };
    let is_packed = shape.len() == 1;
    if let Some(Grid { mut codes, steps, lows }) = grid {
        let zeros = lows.into_iter().map(|low| -low as u8).collect();
        tensors.floats(part(name, "coefficients.steps"), &[q], steps.into());
        tensors.bytes(part(name, "coefficients.zeros"), &[q], zeros);
        if is_packed {
            let mut values = coefficients.iter();
            codes.retain(|_| values.next().is_some_and(is_present));
        }
        tensors.bytes(tensor_name, &shape, codes);
    } else if is_packed {
        let nonzeros = move || coefficients.iter().filter(move |value| is_present(value));
        tensors.push(tensor_name, Dtype::F64, &shape, move |out| {
            write_values(out, nonzeros(), |v| v.to_le_bytes())
        });
    } else {
        tensors.floats(tensor_name, &shape, coefficients.into());
    }
    Ok(())
}

/// Returns true if `coefficients` numbers and their vectors take too much memory for the `bytes` that a file has for them: no
/// reader takes more than 16 times the size of its file, which includes the file and the codes.
fn too_many(coefficients: usize, vectors: Rows<'_>, bytes: usize) -> bool {
    let number_bytes = match vectors {
        Rows::DenseU8(_) => 1,
        Rows::DenseF32(_) => 4,
        Rows::DenseF64(_) => 8,
        // As in the file.
        Rows::CsrF32(_) | Rows::CsrF64(_) => 0,
    };
    let of_vectors = vectors.rows().saturating_mul(vectors.cols()).saturating_mul(number_bytes);
    coefficients.saturating_mul(8).saturating_add(of_vectors) > bytes.saturating_mul(12)
}

/// Bytes of tensors whose names begin alike.
fn bytes_of(tensors: &Tensors<'_>, name: &str) -> usize {
    let alike = |tensor: &&(String, Dtype, Vec<usize>, Elements<'_>)| tensor.0.starts_with(name);
    tensors
        .0
        .iter()
        .filter(alike)
        .map(|(_, dtype, shape, _)| dtype.bytes() * shape.iter().product::<usize>())
        .sum()
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
        write_values(out, std::iter::once(0).chain(ends), i64::to_le_bytes)
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

/// Checks that the vectors of a model are finite and in the kernel's domain.
fn check_vectors(kernel: Kernel, vectors: Rows<'_>, ctx: Context<'_>) -> Result<()> {
    check_finite(vectors, "vectors", ctx)?;
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
        Kernel::Rbf { gamma }
        | Kernel::Laplacian { gamma }
        | Kernel::ChiSquared { gamma }
        | Kernel::Matern { gamma, .. } => {
            json!({ "name": name, "gamma": gamma })
        }
    }
}
