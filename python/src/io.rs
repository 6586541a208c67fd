//! `svmarrow::io`: files.

use std::collections::BTreeMap;
use std::path::PathBuf;

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use svmarrow::Error;
use svmarrow::expansion::ExpansionView;
use svmarrow::io::libsvm_model::{self, ProbabilityParams, SvmType};
use svmarrow::io::safetensors::{self, Array, Contents, Dtype};
use svmarrow::io::svmlight::{self, IndexBase, ReadOptions};

use crate::array::{RowsArg, index_array, indices, rows_object, vector};
use crate::dict::fields;
use crate::error::to_python;
use crate::expansion::ExpansionArg;
use crate::run::{Cost, run};

/// Reads svmlight text: `(data, indices, indptr, shape, targets)`.
#[pyfunction]
pub(crate) fn read_svmlight<'py>(
    py: Python<'py>,
    path: PathBuf,
    n_features: Option<usize>,
    zero_based: Option<bool>,
    single_precision: bool,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let mut options = ReadOptions::default();
    options.base = index_base(zero_based);
    options.n_features = n_features;
    options.single_precision = single_precision;
    let data = run(py, 1, Cost::unknown(0), progress.as_ref(), |ctx| svmlight::read(&path, &options, ctx))?;
    let rows = rows_object(py, data.rows)?.cast_into::<PyTuple>()?;
    let targets = PyTuple::new(py, [PyArray1::from_vec(py, data.targets)])?;
    rows.as_sequence().concat(targets.as_sequence())?.cast_into::<PyTuple>().map_err(PyErr::from)
}

fn index_base(zero_based: Option<bool>) -> IndexBase {
    match zero_based {
        None => IndexBase::Auto,
        Some(true) => IndexBase::Zero,
        Some(false) => IndexBase::One,
    }
}

/// Writes one-based svmlight text, all or nothing.
#[pyfunction]
pub(crate) fn write_svmlight(
    py: Python<'_>,
    path: PathBuf,
    x: RowsArg<'_>,
    targets: PyReadonlyArray1<'_, f64>,
) -> PyResult<()> {
    let (rows, targets) = (x.view()?, vector(&targets)?);
    run(py, 1, Cost::unknown(rows.rows()), None, |ctx| svmlight::write(&path, rows, targets, ctx))
}

/// Reads a LIBSVM model: a dict of `svm_type`, `vectors`, `coefficients`, `intercepts`, `kernel`, `labels`,
/// `class_counts`, `zero_based`, `prob_a` and `prob_b`.
#[pyfunction]
pub(crate) fn read_libsvm_model(
    py: Python<'_>,
    path: PathBuf,
    n_features: Option<usize>,
    zero_based: Option<bool>,
) -> PyResult<Bound<'_, PyDict>> {
    let model = run(py, 1, Cost::unknown(0), None, |ctx| {
        libsvm_model::read(&path, n_features, index_base(zero_based), ctx)
    })?;
    let result = fields!(py, model.expansion, vectors, coefficients, intercepts, kernel);
    result.set_item("svm_type", model.svm_type.name())?;
    result.set_item("labels", PyArray1::from_vec(py, model.labels.into_iter().map(i64::from).collect()))?;
    result.set_item("class_counts", index_array(py, model.class_counts)?)?;
    result.set_item("zero_based", model.zero_based)?;
    result.set_item("prob_a", PyArray1::from_vec(py, model.probability.prob_a))?;
    result.set_item("prob_b", PyArray1::from_vec(py, model.probability.prob_b))?;
    Ok(result)
}

/// Writes a LIBSVM model, all or nothing; `probability` holds the numbers of its lines probA and probB, empty for none.
#[pyfunction]
pub(crate) fn write_libsvm_model(
    py: Python<'_>,
    path: PathBuf,
    svm_type: &str,
    expansion: ExpansionArg<'_>,
    labels: PyReadonlyArray1<'_, i64>,
    class_counts: PyReadonlyArray1<'_, i64>,
    probability: (Vec<f64>, Vec<f64>),
) -> PyResult<()> {
    let svm_type = SvmType::ALL.into_iter().find(|t| t.name() == svm_type).ok_or_else(|| {
        let names = SvmType::ALL.map(SvmType::name).join(", ");
        to_python(Error::param("svm_type", format!("{svm_type:?}"), format!("one of {names}")))
    })?;
    let label = |&label: &i64| {
        i32::try_from(label)
            .map_err(|_| to_python(Error::param("labels", label, "integers of 32 bits, as LIBSVM has them")))
    };
    let labels = vector(&labels)?.iter().map(label).collect::<PyResult<Vec<_>>>()?;
    let class_counts = indices("class_counts", &class_counts)?;
    let view = expansion.view()?;
    let probability = ProbabilityParams::new(probability.0, probability.1);
    run(py, 1, Cost::unknown(view.len()), None, |ctx| {
        libsvm_model::write(&path, svm_type, &view, &labels, &class_counts, &probability, ctx)
    })
}

/// Reads a model file: `(expansions, arrays, extra)`; an array is `(dtype, shape, bytes)`.
#[pyfunction]
pub(crate) fn read_model(
    py: Python<'_>,
    path: PathBuf,
) -> PyResult<(Bound<'_, PyDict>, Bound<'_, PyDict>, String)> {
    let model = run(py, 1, Cost::unknown(0), None, |ctx| safetensors::read(&path, ctx))?;
    let (expansions, arrays) = (PyDict::new(py), PyDict::new(py));
    for (name, expansion) in model.expansions {
        expansions.set_item(name, fields!(py, expansion, vectors, coefficients, intercepts, kernel))?;
    }
    for (name, Array { dtype, shape, bytes }) in model.arrays {
        arrays.set_item(name, (dtype.name(), shape, PyArray1::from_vec(py, bytes.into_owned())))?;
    }
    Ok((expansions, arrays, model.extra))
}

/// Type of the elements, sizes, bytes.
type ArrayArg<'py> = (String, Vec<usize>, PyReadonlyArray1<'py, u8>);

/// Bytes of the numbers of an expansion in a model file.
#[pyfunction]
pub(crate) fn stored_bytes(py: Python<'_>, expansion: ExpansionArg<'_>) -> PyResult<usize> {
    let view = expansion.view()?;
    run(py, 1, Cost::unknown(view.len()), None, |ctx| safetensors::stored_bytes(&view, ctx))
}

/// Writes a model file, all or nothing.
#[pyfunction]
pub(crate) fn write_model(
    py: Python<'_>,
    path: PathBuf,
    expansions: BTreeMap<String, ExpansionArg<'_>>,
    arrays: BTreeMap<String, ArrayArg<'_>>,
    extra: &str,
) -> PyResult<()> {
    let mut contents = Contents { extra, ..Contents::default() };
    for (name, expansion) in &expansions {
        contents.expansions.insert(name.clone(), expansion.view()?);
    }
    for (name, (dtype, shape, bytes)) in &arrays {
        let dtype = Dtype::from_name(dtype)
            .ok_or_else(|| to_python(Error::param("dtype", dtype, "a type of safetensors")))?;
        let array = Array { dtype, shape: shape.clone(), bytes: vector(bytes)?.into() };
        contents.arrays.insert(name.clone(), array);
    }
    let length = contents.expansions.values().map(ExpansionView::len).fold(0, usize::saturating_add);
    run(py, 1, Cost::unknown(length), None, |ctx| safetensors::write(&path, &contents, ctx))
}
