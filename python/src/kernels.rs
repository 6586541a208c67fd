//! `svmarrow::kernels`: kernel matrices, and the instruction set that computes them.

use numpy::PyArray2;
use pyo3::prelude::*;
use svmarrow::kernels;

use crate::array::RowsArg;
use crate::params::KernelArg;
use crate::run::{Cost, run};

/// K(X, Z), (n, m), in double precision; K(X, X), exactly symmetric, where `z` is None.
#[pyfunction]
#[pyo3(signature = (x, z, kernel, n_jobs))]
pub(crate) fn gram<'py>(
    py: Python<'py>,
    x: RowsArg<'py>,
    z: Option<RowsArg<'py>>,
    kernel: KernelArg,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let x = x.view()?;
    let z = z.as_ref().map(RowsArg::view).transpose()?;
    let (n, m) = (x.rows(), z.map_or(x.rows(), |z| z.rows()));
    let values = run(py, n_jobs, Cost::of(n, m, x.cols()), None, |ctx| match z {
        Some(z) => kernels::gram(&kernel.0, x, z, ctx),
        None => kernels::gram_symmetric(&kernel.0, x, ctx),
    })?;
    Ok(PyArray2::from_owned_array(py, values))
}

/// The instruction set in use: "avx512", "avx2" or "scalar".
#[pyfunction]
pub(crate) fn simd_level() -> &'static str {
    svmarrow::simd::level().name()
}
