//! `svmarrow::kernels`: kernel matrices, and the instruction set that computes them.

use numpy::ndarray::Array2;
use pyo3::prelude::*;
use svmarrow::kernels;

use crate::array::RowsArg;
use crate::dict::Object;
use crate::params::KernelArg;
use crate::run::{Cost, run};

/// K(X, Z), (n, m), in double precision; K(X, X), exactly symmetric, where `z` is None.
#[pyfunction]
pub(crate) fn gram(
    py: Python<'_>,
    x: RowsArg<'_>,
    z: Option<RowsArg<'_>>,
    kernel: KernelArg,
    n_jobs: usize,
) -> PyResult<Object<Array2<f64>>> {
    let x = x.view()?;
    let z = z.as_ref().map(RowsArg::view).transpose()?;
    let cost = Cost::of_rows(&x, z.map_or(x.rows(), |z| z.rows()));
    run(py, n_jobs, cost, None, |ctx| match z {
        Some(z) => kernels::gram(&kernel.0, x, z, ctx),
        None => kernels::gram_symmetric(&kernel.0, x, ctx),
    })
    .map(Object)
}

/// The instruction set in use: "avx512", "avx2" or "scalar".
#[pyfunction]
pub(crate) fn simd_level() -> &'static str {
    svmarrow::simd::level().name()
}
