//! One row at a time: an expansion with the affine map before it and the decoder behind it.
//!
//! Numbers come from a list, a tuple, a vector of NumPy or any other sequence and a label goes back, with no array made
//! on the way: a prediction of some dozen vectors takes a few microseconds, where arrays and their checks take a hundred.

use numpy::ndarray::ArrayView2;
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyList, PyTuple};
use svmarrow::memory::try_with_capacity;
use svmarrow::multiclass::{self, CodeMatrix, Decoder};

use crate::array::{collected, matrix_view, owned_vector};
use crate::error::to_python;
use crate::expansion::Expansion;
use crate::multiclass::code_matrix;
use crate::perceptron_tree::PerceptronTree;
use crate::run::{Cost, run};

/// `((x - centre) / scale) @ matrix + offset`.
struct Map {
    centre: Vec<f64>,
    scale: Vec<f64>,
    /// Columns after and the matrix, row-major.
    matrix: Option<(usize, Vec<f64>)>,
    offset: Option<Vec<f64>>,
}

impl Map {
    fn apply(&self, row: &mut Vec<f64>) {
        for ((x, centre), scale) in row.iter_mut().zip(&self.centre).zip(&self.scale) {
            *x = (*x - centre) / scale;
        }
        if let Some((columns, matrix)) = &self.matrix {
            let mut mapped = vec![0.0; *columns];
            // A matrix without columns has no lines.
            for (x, line) in row.iter().zip(matrix.chunks_exact((*columns).max(1))) {
                mapped.iter_mut().zip(line).for_each(|(sum, weight)| *sum += x * weight);
            }
            *row = mapped;
        }
        if let Some(offset) = &self.offset {
            row.iter_mut().zip(offset).for_each(|(x, offset)| *x += offset);
        }
    }
}

/// A map as Python has it.
#[derive(FromPyObject)]
struct MapArg<'py>(
    PyReadonlyArray1<'py, f64>,
    PyReadonlyArray1<'py, f64>,
    Option<PyReadonlyArray2<'py, f64>>,
    Option<PyReadonlyArray1<'py, f64>>,
);

impl MapArg<'_> {
    fn map(&self) -> PyResult<Map> {
        let matrix = match &self.2 {
            Some(matrix) => {
                let view = matrix_view(matrix)?;
                Some((view.ncols(), collected(view.iter().copied())?))
            }
            None => None,
        };
        let offset = self.3.as_ref().map(owned_vector).transpose()?;
        Ok(Map { centre: owned_vector(&self.0)?, scale: owned_vector(&self.1)?, matrix, offset })
    }
}

/// The conversion of outputs to predictions.
enum OutputSpec {
    /// All outputs, unchanged.
    Outputs,
    /// The only one, times a sign.
    First(f64),
    /// The second class from 0 on, of two.
    Sign,
    /// The class of the largest.
    Largest,
    /// 1 above 0, else -1.
    Inside,
    /// The winner of a decoder.
    Decoded(Decoder),
    /// The second score of a decoder less the first.
    Difference(Decoder),
}

impl OutputSpec {
    fn new(name: &str, code: Option<&CodeMatrix>) -> PyResult<Self> {
        Ok(match (name.split_once(' '), code) {
            (None, _) if name == "outputs" => Self::Outputs,
            (None, _) if name == "flat" => Self::First(1.0),
            (None, Some(code)) if name == "column" => Self::First(f64::from(code.row(1)[0])),
            (None, _) if name == "sign" => Self::Sign,
            (None, _) if name == "largest" => Self::Largest,
            (None, _) if name == "inside" => Self::Inside,
            (Some(("difference", decoder)), Some(_)) => {
                Self::Difference(Decoder::from_name(decoder).map_err(to_python)?)
            }
            (None, Some(_)) => Self::Decoded(Decoder::from_name(name).map_err(to_python)?),
            _ => return Err(PyValueError::new_err(format!("{name} is no way to read outputs"))),
        })
    }
}

/// The function of a model; it shares its packed vectors with all other predictions.
#[derive(FromPyObject)]
pub(crate) enum Function {
    Expansion(Py<Expansion>),
    Tree(Py<PerceptronTree>),
    /// A sum of expansions with equally many outputs.
    Sum(Vec<Py<Expansion>>),
}

impl Function {
    /// The outputs of one row.
    fn outputs(&self, py: Python<'_>, row: &[f64]) -> PyResult<Vec<f64>> {
        let rows = || {
            let view = ArrayView2::from_shape((1, row.len()), row).expect("one row");
            view.try_into().map_err(to_python)
        };
        match self {
            Self::Expansion(expansion) => expansion.get().evaluate(py, rows()?, 1),
            Self::Tree(tree) => tree.get().evaluate(py, rows()?, 1),
            Self::Sum(parts) => {
                let (first, others) = parts
                    .split_first()
                    .ok_or_else(|| PyValueError::new_err("a sum of no expansions has no outputs"))?;
                let mut total = first.get().evaluate(py, rows()?, 1)?;
                for part in others {
                    let outputs = part.get().evaluate(py, rows()?, 1)?;
                    if outputs.dim() != total.dim() {
                        return Err(PyValueError::new_err(
                            "the parts of a sum have different numbers of outputs",
                        ));
                    }
                    total += &outputs;
                }
                Ok(total)
            }
        }
        .map(|outputs| outputs.into_raw_vec_and_offset().0)
    }
}

/// A model for single rows.
#[pyclass(frozen, module = "svmarrow._core")]
pub(crate) struct Single {
    function: Function,
    columns: usize,
    map: Option<Map>,
    answer: OutputSpec,
    scores: OutputSpec,
    code: Option<CodeMatrix>,
    labels: Vec<Py<PyAny>>,
}

#[pymethods]
impl Single {
    #[new]
    fn new(
        function: Function,
        columns: usize,
        before: Option<MapArg<'_>>,
        answer: &str,
        scores: &str,
        code: Option<PyReadonlyArray2<'_, i8>>,
        labels: Vec<Py<PyAny>>,
    ) -> PyResult<Self> {
        let code = code.as_ref().map(code_matrix).transpose()?;
        let (answer, scores) =
            (OutputSpec::new(answer, code.as_ref())?, OutputSpec::new(scores, code.as_ref())?);
        let map = before.as_ref().map(MapArg::map).transpose()?;
        Ok(Self { function, columns, map, answer, scores, code, labels })
    }

    /// The label of a row, or its prediction.
    fn predict<'py>(&self, row: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.read(&self.answer, row, true)
    }

    /// The scores of a row.
    fn decision_function<'py>(&self, row: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.read(&self.scores, row, false)
    }
}

impl Single {
    fn read<'py>(
        &self,
        reading: &OutputSpec,
        row: &Bound<'py, PyAny>,
        is_label: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = row.py();
        let outputs = self.outputs(row)?;
        let class = |class: usize| Ok(self.labels[class].bind(py).clone());
        let decoded_scores = |decoder: Decoder| {
            let code = self.code.as_ref().expect("a specification with a decoder has a code");
            let view = ArrayView2::from_shape((1, outputs.len()), &outputs).expect("one row");
            let cost = Cost::of(1, code.columns(), code.classes());
            let scores = run(py, 1, cost, None, |ctx| multiclass::scores(view, code, decoder, ctx))?;
            PyResult::Ok(scores.into_raw_vec_and_offset().0)
        };
        match *reading {
            OutputSpec::Outputs => Ok(PyTuple::new(py, &outputs)?.into_any()),
            OutputSpec::First(sign) => Ok(PyFloat::new(py, sign * outputs[0]).into_any()),
            OutputSpec::Sign => class(usize::from(outputs[0] >= 0.0)),
            OutputSpec::Largest => class(largest(&outputs)),
            OutputSpec::Inside => {
                Ok((if outputs[0] >= 0.0 { 1_i64 } else { -1 }).into_pyobject(py)?.into_any())
            }
            OutputSpec::Decoded(decoder) => {
                let scores = decoded_scores(decoder)?;
                if is_label { class(largest(&scores)) } else { Ok(PyTuple::new(py, &scores)?.into_any()) }
            }
            OutputSpec::Difference(decoder) => {
                let scores = decoded_scores(decoder)?;
                let difference = scores[1] - scores[0];
                if difference.is_finite() {
                    return Ok(PyFloat::new(py, difference).into_any());
                }
                Err(PyValueError::new_err(
                    "the scores of the row are not allowed: their difference must stay within double precision: scale \
                     the rows",
                ))
            }
        }
    }

    fn outputs(&self, row: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
        let mut values = numbers(row, self.columns)?;
        if values.len() != self.columns {
            let actual = values.len();
            return Err(PyValueError::new_err(format!(
                "a row of {actual} numbers: the model has {} columns",
                self.columns
            )));
        }
        if let Some(column) = values.iter().position(|value| !value.is_finite()) {
            let value = values[column];
            return Err(PyValueError::new_err(format!(
                "column {column} of the row is {value}: it must be finite"
            )));
        }
        if let Some(map) = &self.map {
            map.apply(&mut values);
        }
        self.function.outputs(row.py(), &values)
    }
}

/// The first place of the largest.
fn largest(values: &[f64]) -> usize {
    let better = |best: usize, i: usize| if values[i] > values[best] { i } else { best };
    (1..values.len()).fold(0, better)
}

/// The numbers of a row.
fn numbers(row: &Bound<'_, PyAny>, columns: usize) -> PyResult<Vec<f64>> {
    let mut values = try_with_capacity("a row", columns).map_err(to_python)?;
    if let Ok(list) = row.cast::<PyList>() {
        for item in list.iter() {
            values.push(item.extract()?);
        }
    } else if let Ok(tuple) = row.cast::<PyTuple>() {
        for item in tuple.iter_borrowed() {
            values.push(item.extract()?);
        }
    } else if let Ok(array) = row.extract::<PyReadonlyArray1<'_, f64>>() {
        values.extend(array.as_array());
    } else if let Ok(array) = row.extract::<PyReadonlyArray1<'_, f32>>() {
        values.extend(array.as_array().iter().map(|&value| f64::from(value)));
    } else if let Ok(array) = row.extract::<PyReadonlyArray1<'_, u8>>() {
        values.extend(array.as_array().iter().map(|&value| f64::from(value)));
    } else {
        let refused = || PyTypeError::new_err("a row is a list, a tuple or another sequence of numbers");
        for item in row.try_iter().map_err(|_| refused())? {
            values.push(item?.extract().map_err(|_| refused())?);
        }
    }
    Ok(values)
}
