//! `svmarrow::sequences`: blocks of series and of strings, and their kernel values.

use numpy::ndarray::{ArrayView2, Axis, Slice};
use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use svmarrow::Error;
use svmarrow::sequences::{Block, GlobalAlignment, SequenceKernel, Subsequence};

use crate::array::{collected, index_array, indices, matrix_array, matrix_view, vector};
use crate::dict::Object;
use crate::error::to_python;
use crate::run::{Cost, run};

/// Series packed for a kernel, with their values with themselves.
#[pyclass(frozen, module = "svmarrow._core")]
pub(crate) struct SeriesBlock(Block<GlobalAlignment>);

/// Strings packed for a kernel, with their values with themselves.
#[pyclass(frozen, module = "svmarrow._core")]
pub(crate) struct StringBlock(Block<Subsequence>);

/// Returns the consecutive ranges of these lengths, which must cover `total` items.
fn ranges(lengths: &[usize], total: usize) -> PyResult<Vec<(usize, usize)>> {
    let mut end = 0_usize;
    let ranges = lengths.iter().map(|length| {
        let start = end;
        end = end.saturating_add(*length);
        (start, end)
    });
    let ranges = collected(ranges)?;
    Error::check_len("steps of all objects", end, total).map_err(to_python)?;
    Ok(ranges)
}

/// Returns the cost of the kernel values of all pairs.
fn cost<K: SequenceKernel>(rows: &Block<K>, columns: &Block<K>, n_jobs: usize) -> Cost {
    let length = rows.len() + columns.len() + n_jobs.saturating_mul(rows.space(columns));
    Cost::of_work(rows.work(columns), length)
}

/// Implements the methods of a block, its own ones and those that all blocks have.
macro_rules! block_methods {
    (impl $block:ident { $($methods:tt)* }) => {
        #[pymethods]
        impl $block {
            $($methods)*

            fn __len__(&self) -> usize {
                self.0.len()
            }

            /// Number of features of a step; 1 for symbols.
            #[getter]
            fn features(&self) -> usize {
                self.0.features()
            }

            /// The block of the objects at these places.
            fn select(&self, places: PyReadonlyArray1<'_, i64>) -> PyResult<Self> {
                self.0.select(&indices("indices", &places)?).map(Self).map_err(to_python)
            }

            /// The normalized values of the objects with themselves, (n,).
            fn diagonal<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
                PyArray1::from_vec(py, self.0.diagonal())
            }

            /// K, (n, m); without another block K of all pairs, exactly symmetric.
            fn gram(
                &self,
                py: Python<'_>,
                other: Option<PyRef<'_, Self>>,
                n_jobs: usize,
            ) -> PyResult<Object<numpy::ndarray::Array2<f64>>> {
                let rows = &self.0;
                let values = match other.as_ref().map(|other| &other.0) {
                    Some(columns) => {
                        run(py, n_jobs, cost(rows, columns, n_jobs), None, |ctx| rows.gram(columns, ctx))
                    }
                    None => run(py, n_jobs, cost(rows, rows, n_jobs), None, |ctx| rows.gram_symmetric(ctx)),
                };
                values.map(Object)
            }
        }
    };
}

block_methods! {
impl SeriesBlock {
    /// Packs series, given one after the other, (steps of all series, features), with the number of steps of each.
    #[new]
    fn new(
        py: Python<'_>,
        values: PyReadonlyArray2<'_, f64>,
        lengths: PyReadonlyArray1<'_, i64>,
        sigma: f64,
        band: Option<f64>,
        n_jobs: usize,
    ) -> PyResult<Self> {
        let values = matrix_view(&values)?;
        let lengths = indices("lengths", &lengths)?;
        let series = |&(start, end): &(usize, usize)| -> ArrayView2<'_, f64> {
            values.slice_axis(Axis(0), Slice::from(start..end))
        };
        let ranges = ranges(&lengths, values.nrows())?;
        let series = collected(ranges.iter().map(series))?;
        let kernel = GlobalAlignment::builder().sigma(sigma).band(band).build().map_err(to_python)?;
        let cost = Cost::of_work(kernel.preparation_work(&series), n_jobs.saturating_mul(values.nrows()));
        run(py, n_jobs, cost, None, |ctx| kernel.prepare(&series, ctx)).map(Self)
    }

    /// The series one after the other, and the number of steps of each.
    #[allow(clippy::type_complexity)] // a pair of arrays
    fn arrays<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<i64>>)> {
        let (values, lengths) = self.0.to_series().map_err(to_python)?;
        let features = self.0.features();
        let rows = values.len() / features;
        Ok((matrix_array(py, values, rows, features)?, index_array(py, lengths)?))
    }
}
}

block_methods! {
impl StringBlock {
    /// Packs strings, given one after the other, with the number of symbols of each.
    #[new]
    fn new(
        py: Python<'_>,
        symbols: PyReadonlyArray1<'_, i64>,
        lengths: PyReadonlyArray1<'_, i64>,
        length: usize,
        decay: f64,
        n_jobs: usize,
    ) -> PyResult<Self> {
        let symbols = vector(&symbols)?;
        let lengths = indices("lengths", &lengths)?;
        let ranges = ranges(&lengths, symbols.len())?;
        let strings = collected(ranges.iter().map(|&(start, end)| &symbols[start..end]))?;
        let kernel = Subsequence::builder().length(length).decay(decay).build().map_err(to_python)?;
        let cost = Cost::of_work(kernel.preparation_work(&strings), n_jobs.saturating_mul(symbols.len()));
        run(py, n_jobs, cost, None, |ctx| kernel.prepare(&strings, ctx)).map(Self)
    }

    /// The strings one after the other, and the number of symbols of each.
    #[allow(clippy::type_complexity)] // a pair of arrays
    fn arrays<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>)> {
        let (symbols, lengths) = self.0.to_strings().map_err(to_python)?;
        Ok((PyArray1::from_vec(py, symbols), index_array(py, lengths)?))
    }
}
}
