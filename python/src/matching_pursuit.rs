//! `svmarrow::matching_pursuit`: parts of a dictionary and targets in, the path out.
//!
//! A part is a tuple: `("kernel", kernel, points, rows, validation rows or None)`, `("columns", values, validation
//! values)`, or `("function", f, count, rows, validation rows)` with f(indices, validation) the values of some functions
//! on all rows, function after function. A loss is a name, or a function g(derivative, y, f) of whole vectors. The calling
//! thread takes the interpreter lock for f and g.

use numpy::ndarray::ArrayViewMut2;
use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use svmarrow::Error;
use svmarrow::context::{Budget, Context, Interruption};
use svmarrow::matching_pursuit::{
    BuiltIn, Coefficients, Columns, Derivative, Functions, KernelFunctions, Loss, MatchingParams, Measure,
    RowSet, Storage, Task, Validation, Variant,
};

use crate::array::{RowsArg, matrix_view, same_length, vector};
use crate::dict::fields;
use crate::error::to_python;
use crate::function::{PythonCall, UnlessRaised, cause};
use crate::params::KernelArg;
use crate::run::{Cost, duration, run};

/// A part of a dictionary in Python's memory.
pub(crate) enum PartArg<'py> {
    /// Kernel functions.
    Kernel { kernel: KernelArg, points: RowsArg<'py>, rows: RowsArg<'py>, validation: Option<RowsArg<'py>> },
    /// Given values.
    Columns { rows: PyReadonlyArray2<'py, f64>, validation: PyReadonlyArray2<'py, f64> },
    /// Values that Python computes.
    Function(PythonFunctions),
}

/// Functions of a dictionary that Python computes.
pub(crate) struct PythonFunctions {
    call: PythonCall,
    count: usize,
    rows: usize,
    validation: usize,
}

impl<'a, 'py> FromPyObject<'a, 'py> for PartArg<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let tuple = object.cast::<PyTuple>()?;
        let name: String = tuple.get_item(0)?.extract()?;
        Ok(match name.as_str() {
            "kernel" => {
                let (_, kernel, points, rows, validation): (
                    String,
                    KernelArg,
                    RowsArg<'py>,
                    RowsArg<'py>,
                    Option<RowsArg<'py>>,
                ) = tuple.extract()?;
                Self::Kernel { kernel, points, rows, validation }
            }
            "columns" => {
                let (_, rows, validation): (String, PyReadonlyArray2<'py, f64>, PyReadonlyArray2<'py, f64>) =
                    tuple.extract()?;
                Self::Columns { rows, validation }
            }
            _ => {
                let (_, function, count, rows, validation): (String, Py<PyAny>, usize, usize, usize) =
                    tuple.extract()?;
                Self::Function(PythonFunctions { call: PythonCall::new(function), count, rows, validation })
            }
        })
    }
}

impl PartArg<'_> {
    fn functions(&self) -> PyResult<Box<dyn Functions + '_>> {
        Ok(match self {
            Self::Kernel { kernel, points, rows, validation } => {
                let validation = validation.as_ref().map(RowsArg::view).transpose()?;
                let part = KernelFunctions::new(kernel.0, points.view()?, rows.view()?, validation);
                Box::new(part.map_err(to_python)?)
            }
            Self::Columns { rows, validation } => {
                let columns = Columns::new(matrix_view(rows)?, matrix_view(validation)?);
                Box::new(columns.map_err(to_python)?)
            }
            Self::Function(function) => Box::new(function),
        })
    }

    /// Takes the exception that its function raised.
    fn raised(&self) -> Option<PyErr> {
        match self {
            Self::Function(f) => f.call.raised().take(),
            _ => None,
        }
    }
}

impl PythonFunctions {
    fn values(
        &self,
        py: Python<'_>,
        which: &[usize],
        set: RowSet,
        mut out: ArrayViewMut2<'_, f64>,
    ) -> PyResult<()> {
        let list = PyArray1::from_iter(py, which.iter().map(|&i| i as i64));
        let values = self.call.function.bind(py).call1((list, set == RowSet::Validation))?;
        let values: PyReadonlyArray2<'_, f64> = values.extract()?;
        if values.shape() != out.shape() || !values.is_c_contiguous() {
            let (actual, expected) =
                (format!("{:?}", values.shape()), format!("contiguous and {:?}", out.shape()));
            return Err(to_python(Error::param("values of functions", actual, expected)));
        }
        out.assign(&matrix_view(&values)?);
        Ok(())
    }
}

impl Functions for &PythonFunctions {
    fn count(&self) -> usize {
        self.count
    }

    fn rows(&self, set: RowSet) -> usize {
        if set == RowSet::Training { self.rows } else { self.validation }
    }

    fn fill(
        &self,
        which: &[usize],
        set: RowSet,
        out: ArrayViewMut2<'_, f64>,
        _: Context<'_>,
    ) -> svmarrow::Result<()> {
        if out.is_empty() {
            return Ok(());
        }
        let filled = self.call.attempt(|py| self.values(py, which, set, out));
        if filled { Ok(()) } else { Err(Error::Stopped(Interruption::Interrupted)) }
    }
}

/// A loss, from its name and the parameter of the Huber loss, or from a function.
pub(crate) enum LossArg {
    /// One of the crate.
    BuiltIn(BuiltIn),
    /// A Python function.
    Function(PythonCall),
}

impl<'a, 'py> FromPyObject<'a, 'py> for LossArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if object.is_callable() {
            return Ok(Self::Function(PythonCall::new(object.to_owned().unbind())));
        }
        let (name, delta): (String, f64) = object.extract()?;
        Ok(Self::BuiltIn(match name.as_str() {
            "squared_error" => BuiltIn::Squared,
            "squared_tanh" => BuiltIn::SquaredTanh,
            "logistic" => BuiltIn::Logistic,
            "exponential" => BuiltIn::Exponential,
            "one_minus_tanh" => BuiltIn::OneMinusTanh,
            "squared_hinge" => BuiltIn::SquaredHinge,
            "soft_margin" => BuiltIn::SoftMargin,
            "huber" if delta > 0.0 && delta.is_finite() => BuiltIn::Huber { delta },
            "huber" => return Err(to_python(Error::param("delta", delta, "positive and finite"))),
            _ => return Err(to_python(Error::param("loss", format!("{name:?}"), "a name of a loss"))),
        }))
    }
}

impl LossArg {
    fn loss(&self) -> &dyn Loss {
        match self {
            Self::BuiltIn(loss) => loss,
            Self::Function(loss) => loss,
        }
    }
}

impl PythonCall {
    fn loss(&self, py: Python<'_>, what: Derivative, y: &[f64], f: &[f64], out: &mut [f64]) -> PyResult<()> {
        let arrays = (what as usize, PyArray1::from_slice(py, y), PyArray1::from_slice(py, f));
        let values = self.function.bind(py).call1(arrays)?;
        let values: PyReadonlyArray1<'_, f64> = values.extract()?;
        same_length("values of a loss (one for each row)", out.len(), values.len())?;
        out.copy_from_slice(vector(&values)?);
        Ok(())
    }
}

impl Loss for PythonCall {
    fn fill(&self, what: Derivative, y: &[f64], f: &[f64], out: &mut [f64]) {
        if !self.attempt(|py| self.loss(py, what, y, f, out)) {
            out.fill(0.0);
        }
    }
}

/// The settings of a pursuit as Python passes them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct MatchingArg {
    variant: String,
    n_functions: usize,
    max_iter: Option<usize>,
    backfit_every: usize,
    tol: f64,
    patience: Option<usize>,
    stop_on_error: bool,
    single_precision: bool,
    cache_bytes: usize,
    sample: Option<usize>,
    seed: u64,
    max_time: Option<f64>,
}

impl MatchingArg {
    fn params(&self) -> PyResult<MatchingParams> {
        let variant = match self.variant.as_str() {
            "backfit" => Variant::BackFitting,
            "prefit" => Variant::PreFitting,
            "basic" => Variant::Basic,
            other => {
                let rule = "basic, backfit or prefit";
                return Err(to_python(Error::param("variant", format!("{other:?}"), rule)));
            }
        };
        let mut params = MatchingParams::new(self.n_functions);
        params.variant = variant;
        params.max_iterations = self.max_iter;
        params.every = self.backfit_every;
        params.tolerance = self.tol;
        params.patience = self.patience;
        params.measure = if self.stop_on_error { Measure::Error } else { Measure::Loss };
        params.storage = Storage { single: self.single_precision, budget: self.cache_bytes };
        params.sample = self.sample;
        params.seed = self.seed;
        Ok(params)
    }
}

/// A learning task in the form that Python passes; `validation` is targets, whether they are classes, and weights.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct TaskArg<'py> {
    parts: Vec<PartArg<'py>>,
    targets: PyReadonlyArray2<'py, f64>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    constant: bool,
    validation: Option<(PyReadonlyArray2<'py, f64>, bool, Option<PyReadonlyArray1<'py, f64>>)>,
    loss: LossArg,
}

impl TaskArg<'_> {
    /// Takes the exception that a function or the loss raised.
    fn raised(&self) -> Option<PyErr> {
        let by_loss = match &self.loss {
            LossArg::Function(loss) => loss.raised().take(),
            LossArg::BuiltIn(_) => None,
        };
        by_loss.or_else(|| self.parts.iter().find_map(PartArg::raised))
    }
}

/// A pursuit over a dictionary.
///
/// Returns a dict: `order`, `sizes`, `training_loss`, `validation_loss`, `validation_error`, `stop`, and either `factor`
/// and `projections` or the `coefficients` of all steps, one after the other.
#[pyfunction]
pub(crate) fn matching_pursuit<'py>(
    py: Python<'py>,
    task: TaskArg<'py>,
    settings: MatchingArg,
    progress: Option<Bound<'py, PyAny>>,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let params = settings.params()?;
    let max_time = duration(settings.max_time)?;
    let boxes: Vec<Box<dyn Functions + '_>> =
        task.parts.iter().map(PartArg::functions).collect::<PyResult<_>>()?;
    let functions: Vec<&dyn Functions> = boxes.iter().map(AsRef::as_ref).collect();
    let validation = match &task.validation {
        Some((targets, classes, weights)) => Some(Validation {
            targets: matrix_view(targets)?,
            classes: *classes,
            weights: weights.as_ref().map(vector).transpose()?,
        }),
        None => None,
    };
    let problem = Task {
        functions: &functions,
        targets: matrix_view(&task.targets)?,
        weights: task.weights.as_ref().map(vector).transpose()?,
        constant: task.constant,
        loss: task.loss.loss(),
        squared: matches!(task.loss, LossArg::BuiltIn(BuiltIn::Squared)),
        validation,
    };
    let functions_count = functions.iter().map(|part| part.count()).fold(0, usize::saturating_add);
    let length = problem.targets.nrows().saturating_add(functions_count);
    let outcome = run(py, n_jobs, Cost::unknown(length), progress.as_ref(), |ctx| {
        let has_raised = || matches!(&task.loss, LossArg::Function(loss) if loss.raised().is_some());
        let monitor = UnlessRaised { monitor: ctx.monitor(), has_raised };
        let budget = Budget::new(&monitor, None, max_time);
        svmarrow::matching_pursuit::matching_pursuit(&problem, &params, ctx.with_monitor(&budget))
    });
    let fit = match (task.raised(), outcome) {
        (Some(raised), outcome) => return Err(cause(py, raised, outcome.err())),
        (None, outcome) => outcome?,
    };
    let result = fields!(py, fit, order, stop);
    result.update(
        fields!(py, fit.curve, sizes, training_loss, validation_loss, validation_error).as_mapping(),
    )?;
    match fit.coefficients {
        Coefficients::Factor { factor, projections } => {
            result.set_item("factor", PyArray2::from_owned_array(py, factor))?;
            result.set_item("projections", PyArray2::from_owned_array(py, projections))?;
        }
        Coefficients::Steps(values) => {
            result.set_item("coefficients", PyArray2::from_owned_array(py, values))?;
        }
    }
    Ok(result)
}
