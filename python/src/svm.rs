//! `marrow::svm`: support vector classification.

use std::time::Duration;

use marrow::Error;
use marrow::control::Budget;
use marrow::svm::{Certificate, Coding, Effort, SvcParams, fit_classifier};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::array::{RowsArg, index_array, indices, matrix_array, vector};
use crate::error::to_python;
use crate::params::KernelArg;
use crate::run::{Cost, run};

/// Trains a classifier; `upper` is the C of each row.
///
/// Returns a dict: `support` (m,), `class_counts` (k,), `coefficients` (m, q), `intercepts` (q,), `certificates`, a
/// dict for each machine, and `effort`, a dict for all together.
#[pyfunction]
#[pyo3(signature = (x, labels, n_classes, upper, kernel, coding, tol, cache_bytes, shrinking, max_iter, max_time, progress, n_jobs))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn fit_svc<'py>(
    py: Python<'py>,
    x: RowsArg<'py>,
    labels: PyReadonlyArray1<'py, i64>,
    n_classes: usize,
    upper: PyReadonlyArray1<'py, f64>,
    kernel: KernelArg,
    coding: &str,
    tol: f64,
    cache_bytes: usize,
    shrinking: bool,
    max_iter: Option<u64>,
    max_time: Option<f64>,
    progress: Option<Bound<'py, PyAny>>,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let rows = x.view()?;
    let labels = indices("labels", &labels)?;
    let upper = vector(&upper)?;
    let coding = match coding {
        "ovo" => Coding::OneVsOne,
        "ovr" => Coding::OneVsRest,
        _ => return Err(to_python(Error::param("coding", coding, "\"ovo\" or \"ovr\""))),
    };
    let max_time = duration(max_time)?;
    let params = SvcParams {
        tolerance: tol,
        cache_bytes,
        shrinking,
        max_iterations: max_iter,
        ..SvcParams::default()
    };
    let model = run(py, n_jobs, Cost::Unknown, progress.as_ref(), |monitor, par| {
        let budget = Budget::new(monitor, None, max_time);
        fit_classifier(kernel.0, rows, &labels, n_classes, upper, coding, &params, &budget, par)
    })?;
    let (m, q) = (model.support.len(), model.intercepts.len());
    let result = PyDict::new(py);
    result.set_item("support", index_array(py, model.support))?;
    result.set_item("class_counts", index_array(py, model.class_counts))?;
    result.set_item("coefficients", matrix_array(py, model.coefficients, m, q)?)?;
    result.set_item("intercepts", PyArray1::from_vec(py, model.intercepts))?;
    let certificates = model.certificates.iter().map(|c| certificate(py, c)).collect::<PyResult<Vec<_>>>()?;
    result.set_item("certificates", PyList::new(py, certificates)?)?;
    result.set_item("effort", effort(py, &model.effort)?)?;
    Ok(result)
}

fn certificate<'py>(py: Python<'py>, certificate: &Certificate) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("dual", certificate.dual)?;
    dict.set_item("primal", certificate.primal)?;
    dict.set_item("gap", certificate.gap)?;
    dict.set_item("violation", certificate.violation)?;
    dict.set_item("iterations", certificate.iterations)?;
    dict.set_item("rounds", certificate.rounds)?;
    dict.set_item("support", certificate.support)?;
    dict.set_item("bounded", certificate.bounded)?;
    dict.set_item("stop", certificate.stop.name())?;
    Ok(dict)
}

fn effort<'py>(py: Python<'py>, effort: &Effort) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("kernel_values", effort.kernel_values)?;
    dict.set_item("cache_hits", effort.cache_hits)?;
    dict.set_item("cache_misses", effort.cache_misses)?;
    dict.set_item("seconds", effort.seconds)?;
    Ok(dict)
}

/// A time budget in seconds.
pub(crate) fn duration(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let convert = |seconds: f64| {
        Duration::try_from_secs_f64(seconds)
            .map_err(|_| to_python(Error::param("max_time", seconds, "a number of seconds, not negative")))
    };
    seconds.map(convert).transpose()
}
