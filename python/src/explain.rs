//! `svmarrow::explain`: Shapley values.

use pyo3::prelude::*;
use svmarrow::Error;
use svmarrow::explain::{Game, Shapley, ShapleyParams};

use crate::array::RowsArg;
use crate::dict::{Object, records};
use crate::error::to_python;
use crate::expansion::ExpansionArg;
use crate::run::{Cost, run};

/// Shapley values of every output for the rows of `x`, whose columns belong to the players `player_of`, numbered from 0.
///
/// Returns a dict: `values` (n, players, q), `base` (q,), `additivity_error` (n, q) and `nodes`.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub(crate) fn shapley_values(
    py: Python<'_>,
    expansion: ExpansionArg<'_>,
    x: RowsArg<'_>,
    background: RowsArg<'_>,
    game: &str,
    player_of: Vec<usize>,
    players: usize,
    progress: Option<Bound<'_, PyAny>>,
    n_jobs: usize,
) -> PyResult<Object<Shapley>> {
    let (view, rows, background) = (expansion.view()?, x.view()?, background.view()?);
    let game = match game {
        "interventional" => Game::Interventional,
        "kernel" => Game::ProductKernel,
        other => return Err(to_python(Error::param("game", other, "one of interventional, kernel"))),
    };
    let mut params = ShapleyParams::new(game, &player_of);
    params.players = players;
    let length = rows.vector_lengths() + background.vector_lengths() + view.len();
    run(py, n_jobs, Cost::unknown(length), progress.as_ref(), |ctx| {
        svmarrow::explain::shapley_values(&view, rows, background, &params, ctx)
    })
    .map(Object)
}

records! {
    Shapley: values, base, additivity_error, nodes;
}
