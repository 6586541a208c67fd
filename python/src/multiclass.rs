//! `svmarrow::multiclass`: codes, decoders, bounds.

use numpy::ndarray::ArrayView2;
use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use svmarrow::Error;
use svmarrow::memory::TryCollect;
use svmarrow::multiclass::{
    self, CodeMatrix, Decoder, Drawn, Draws, LeaveOneOutRows, MarginLoss, leave_one_out_margins,
};

use crate::array::{index_array, indices, matrix_view, same_length, vector};
use crate::error::to_python;
use crate::run::{Cost, run};

/// A code from Python's matrix (N, F).
pub(crate) fn code_matrix(code: &PyReadonlyArray2<'_, i8>) -> PyResult<CodeMatrix> {
    CodeMatrix::new(matrix_view(code)?).map_err(to_python)
}

/// The code of a name, (N, F). `seed` and `draws` serve those that are drawn, `least_use` sparse ones.
#[pyfunction]
#[pyo3(signature = (name, n_classes, seed, draws, least_use, n_jobs))]
pub(crate) fn make_code<'py>(
    py: Python<'py>,
    name: &str,
    n_classes: usize,
    seed: u64,
    draws: usize,
    least_use: f64,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyArray2<i8>>> {
    let draws = Draws { count: draws, seed };
    let is_drawn = matches!(name, "dense" | "sparse" | "bch");
    let cost = if is_drawn { Cost::Unknown } else { Cost::About(0) };
    let code = run(py, n_jobs, cost, None, |ctx| match name {
        "ovr" => CodeMatrix::one_vs_rest(n_classes),
        "ovo" => CodeMatrix::one_vs_one(n_classes),
        "complete" => CodeMatrix::complete(n_classes),
        "dense" => multiclass::draw(Drawn::Dense, n_classes, draws, ctx),
        "sparse" => multiclass::draw(Drawn::Sparse { least_use }, n_classes, draws, ctx),
        "bch" => multiclass::bch(n_classes, draws, ctx),
        _ => Err(Error::param("code", name, "one of ovr, ovo, complete, dense, sparse, bch")),
    })?;
    Ok(PyArray2::from_owned_array(py, code.into_entries()))
}

/// The smallest distance of two rows, and that of two columns or their opposites (NaN for one column). Refuses what is
/// no code.
#[pyfunction]
#[pyo3(signature = (code, n_jobs))]
pub(crate) fn code_distances(
    py: Python<'_>,
    code: PyReadonlyArray2<'_, i8>,
    n_jobs: usize,
) -> PyResult<(f64, f64)> {
    let code = code_matrix(&code)?;
    let cost = Cost::of(code.columns(), code.columns(), code.classes());
    run(py, n_jobs, cost, None, |ctx| {
        let half = |twice: usize| 0.5 * twice as f64;
        let of_columns = code.twice_column_distance(ctx)?.map_or(f64::NAN, half);
        Ok((half(code.twice_row_distance(ctx)?), of_columns))
    })
}

/// Scores (n, N) of outputs (n, F): the largest wins.
#[pyfunction]
#[pyo3(signature = (outputs, code, decoder, n_jobs))]
pub(crate) fn decode_scores<'py>(
    py: Python<'py>,
    outputs: PyReadonlyArray2<'py, f64>,
    code: PyReadonlyArray2<'py, i8>,
    decoder: &str,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let given = Decoding::new(&outputs, &code, decoder)?;
    let scores = run(py, n_jobs, given.cost(), None, |ctx| {
        multiclass::scores(given.outputs, &given.code, given.decoder, ctx)
    })?;
    Ok(PyArray2::from_owned_array(py, scores))
}

/// The winning class (n,) of outputs (n, F).
#[pyfunction]
#[pyo3(signature = (outputs, code, decoder, n_jobs))]
pub(crate) fn decode_winners<'py>(
    py: Python<'py>,
    outputs: PyReadonlyArray2<'py, f64>,
    code: PyReadonlyArray2<'py, i8>,
    decoder: &str,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let given = Decoding::new(&outputs, &code, decoder)?;
    let winners = run(py, n_jobs, given.cost(), None, |ctx| {
        multiclass::winners(given.outputs, &given.code, given.decoder, ctx)
    })?;
    index_array(py, winners)
}

/// Outputs (n, F), and how they are decoded.
struct Decoding<'a> {
    outputs: ArrayView2<'a, f64>,
    code: CodeMatrix,
    decoder: Decoder,
}

impl<'a> Decoding<'a> {
    fn new(
        outputs: &'a PyReadonlyArray2<'_, f64>,
        code: &PyReadonlyArray2<'_, i8>,
        decoder: &str,
    ) -> PyResult<Self> {
        let (outputs, code) = (matrix_view(outputs)?, code_matrix(code)?);
        same_length("outputs of a row, one a column of the code", code.columns(), outputs.ncols())?;
        Ok(Self { outputs, code, decoder: Decoder::from_name(decoder).map_err(to_python)? })
    }

    fn cost(&self) -> Cost {
        Cost::of(self.outputs.nrows(), self.code.columns(), self.code.classes())
    }
}

/// L(z) of a margin loss, element by element.
#[pyfunction]
#[pyo3(signature = (margins, loss))]
pub(crate) fn margin_loss<'py>(
    py: Python<'py>,
    margins: PyReadonlyArray1<'py, f64>,
    loss: &str,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (margins, loss) = (vector(&margins)?, MarginLoss::from_name(loss).map_err(to_python)?);
    let cost = Cost::of(margins.len(), 1, 8);
    let values = run(py, 1, cost, None, |_| margins.iter().map(|&z| loss.at(z)).try_collect_vec())?;
    Ok(PyArray1::from_vec(py, values))
}

/// A number and a judgement for each row.
type Margins<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<bool>>);

/// The quantities of training rows (n) and machines (F): `outputs` and `coefficients` (n, F), `diagonal` and
/// `labels` (n,), `slack` (F,).
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct LeaveOneOutArg<'py> {
    outputs: PyReadonlyArray2<'py, f64>,
    coefficients: PyReadonlyArray2<'py, f64>,
    diagonal: PyReadonlyArray1<'py, f64>,
    labels: PyReadonlyArray1<'py, i64>,
    slack: PyReadonlyArray1<'py, f64>,
}

/// For each training row the smallest total loss by which another class could lose when the row is left out, and whether
/// the row could be an error then.
#[pyfunction]
#[pyo3(signature = (rows, code, decoder, n_jobs))]
pub(crate) fn leave_one_out_rows<'py>(
    py: Python<'py>,
    rows: LeaveOneOutArg<'py>,
    code: PyReadonlyArray2<'py, i8>,
    decoder: &str,
    n_jobs: usize,
) -> PyResult<Margins<'py>> {
    let decoding = Decoding::new(&rows.outputs, &code, decoder)?;
    let labels = indices("labels", &rows.labels)?;
    let given = LeaveOneOutRows {
        outputs: decoding.outputs,
        coefficients: matrix_view(&rows.coefficients)?,
        diagonal: vector(&rows.diagonal)?,
        labels: &labels,
        slack: vector(&rows.slack)?,
    };
    let (margins, suspects) = run(py, n_jobs, decoding.cost(), None, |ctx| {
        leave_one_out_margins(&given, &decoding.code, decoding.decoder, ctx)
    })?;
    Ok((PyArray1::from_vec(py, margins), PyArray1::from_vec(py, suspects)))
}
