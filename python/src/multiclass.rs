//! `svmarrow::multiclass`: codes, decoders, bounds.

use numpy::ndarray::{Array2, ArrayView2};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use svmarrow::Error;
use svmarrow::multiclass::{
    self, CodeMatrix, Decoder, Drawn, Draws, LeaveOneOutRows, MarginLoss, leave_one_out_margins,
};

use crate::array::{indices, matrix_view, same_length, vector};
use crate::dict::Object;
use crate::error::to_python;
use crate::run::{Cost, run};

/// A code from Python's matrix (N, F).
pub(crate) fn code_matrix(code: &PyReadonlyArray2<'_, i8>) -> PyResult<CodeMatrix> {
    CodeMatrix::new(matrix_view(code)?).map_err(to_python)
}

/// The code of a name, (N, F). `seed` and `draws` serve those that are drawn, `min_use` sparse ones.
#[pyfunction]
pub(crate) fn make_code(
    py: Python<'_>,
    name: &str,
    n_classes: usize,
    seed: u64,
    draws: usize,
    min_use: f64,
    n_jobs: usize,
) -> PyResult<Object<Array2<i8>>> {
    let draws = Draws { count: draws, seed };
    let is_drawn = matches!(name, "dense" | "sparse" | "bch");
    let cost = if is_drawn { Cost::unknown(n_classes) } else { Cost::of(n_classes, n_classes, n_classes) };
    let code = run(py, n_jobs, cost, None, |ctx| match name {
        "ovr" => CodeMatrix::one_vs_rest(n_classes),
        "ovo" => CodeMatrix::one_vs_one(n_classes),
        "complete" => CodeMatrix::complete(n_classes),
        "dense" => multiclass::draw(Drawn::Dense, n_classes, draws, ctx),
        "sparse" => multiclass::draw(Drawn::Sparse { min_use }, n_classes, draws, ctx),
        "bch" => multiclass::bch(n_classes, draws, ctx),
        _ => Err(Error::param("code", name, "one of ovr, ovo, complete, dense, sparse, bch")),
    })?;
    Ok(Object(code.into_entries()))
}

/// The smallest distance of two rows, and that of two columns or their opposites (NaN for one column). Refuses what is
/// no code.
#[pyfunction]
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
pub(crate) fn decode_scores(
    py: Python<'_>,
    outputs: PyReadonlyArray2<'_, f64>,
    code: PyReadonlyArray2<'_, i8>,
    decoder: &str,
    n_jobs: usize,
) -> PyResult<Object<Array2<f64>>> {
    let decoding = Decoding::new(&outputs, &code, decoder)?;
    run(py, n_jobs, decoding.cost(), None, |ctx| {
        multiclass::scores(decoding.outputs, &decoding.code, decoding.decoder, ctx)
    })
    .map(Object)
}

/// The winning class (n,) of outputs (n, F).
#[pyfunction]
pub(crate) fn decode_winners(
    py: Python<'_>,
    outputs: PyReadonlyArray2<'_, f64>,
    code: PyReadonlyArray2<'_, i8>,
    decoder: &str,
    n_jobs: usize,
) -> PyResult<Object<Vec<usize>>> {
    let decoding = Decoding::new(&outputs, &code, decoder)?;
    run(py, n_jobs, decoding.cost(), None, |ctx| {
        multiclass::winners(decoding.outputs, &decoding.code, decoding.decoder, ctx)
    })
    .map(Object)
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
pub(crate) fn margin_loss(
    py: Python<'_>,
    margins: PyReadonlyArray1<'_, f64>,
    loss: &str,
) -> PyResult<Object<Vec<f64>>> {
    let (margins, loss) = (vector(&margins)?, MarginLoss::from_name(loss).map_err(to_python)?);
    let cost = Cost::of(margins.len(), 1, 8);
    run(py, 1, cost, None, |_| Ok(margins.iter().map(|&z| loss.at(z)).collect())).map(Object)
}

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
pub(crate) fn leave_one_out_rows(
    py: Python<'_>,
    rows: LeaveOneOutArg<'_>,
    code: PyReadonlyArray2<'_, i8>,
    decoder: &str,
    n_jobs: usize,
) -> PyResult<Object<(Vec<f64>, Vec<bool>)>> {
    let decoding = Decoding::new(&rows.outputs, &code, decoder)?;
    let labels = indices("labels", &rows.labels)?;
    let rows = LeaveOneOutRows {
        outputs: decoding.outputs,
        coefficients: matrix_view(&rows.coefficients)?,
        diagonal: vector(&rows.diagonal)?,
        labels: &labels,
        slack: vector(&rows.slack)?,
    };
    run(py, n_jobs, decoding.cost(), None, |ctx| {
        leave_one_out_margins(&rows, &decoding.code, decoding.decoder, ctx)
    })
    .map(Object)
}
