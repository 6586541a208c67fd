//! `svmarrow::kernels::KernelFunction`: kernels of the crate, and kernels that are Python functions of blocks of rows.
//!
//! A Python function is called as `function(rows, columns)` with two int64 arrays of indices of training rows, and
//! gives a C-contiguous float64 matrix; `function.diagonal(rows)` gives the values of rows with themselves. The calling thread takes the interpreter lock for it. Calls never overlap, whatever
//! the number of threads of the fit and whether or not the interpreter has a lock: a function may keep state. An exception
//! is kept, further values are zeros, the monitor asks the fit to end, and the exception leaves the fit unchanged.

use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use svmarrow::Error;
use svmarrow::context::{Context, Interruption, Monitor, Progress};
use svmarrow::data::Rows;
use svmarrow::kernels::{Kernel, KernelBlocks, KernelFunction};

use crate::error::to_python;
use crate::params::KernelArg;
use crate::run::{Cost, run_and_keep};

/// The kernel of a fit, from the tuple of [`KernelArg`] or from a function.
pub(crate) enum FunctionArg {
    /// A kernel of the crate.
    BuiltIn(Kernel),
    /// A function of Python, called with blocks of rows.
    Function(PythonCall),
}

/// A Python function, and the exception that it raised.
pub(crate) struct PythonCall {
    pub(crate) function: Py<PyAny>,
    raised: Mutex<Option<PyErr>>,
    /// Held during a call. It is taken before the interpreter lock, by threads that do not hold the latter.
    turn: Mutex<()>,
}

impl PythonCall {
    pub(crate) fn new(function: Py<PyAny>) -> Self {
        Self { function, raised: Mutex::default(), turn: Mutex::default() }
    }

    pub(crate) fn raised(&self) -> MutexGuard<'_, Option<PyErr>> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls into Python unless an exception was raised before, and keeps an exception. Returns whether the call succeeded.
    pub(crate) fn attempt(&self, call: impl FnOnce(Python<'_>) -> PyResult<()>) -> bool {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if self.raised().is_some() {
            return false;
        }
        let outcome = Python::attach(call);
        let succeeded = outcome.is_ok();
        if let Err(error) = outcome {
            self.raised().get_or_insert(error);
        }
        succeeded
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for FunctionArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if object.is_callable() {
            let function = object.to_owned().unbind();
            return Ok(Self::Function(PythonCall::new(function)));
        }
        Ok(Self::BuiltIn(object.extract::<KernelArg>()?.0))
    }
}

impl FunctionArg {
    /// Returns the kernel in the form that the core takes.
    pub(crate) fn function(&self) -> KernelFunction<'_> {
        match self {
            Self::BuiltIn(kernel) => (*kernel).into(),
            Self::Function(function) => KernelFunction::Blocks(function),
        }
    }

    /// Returns the minimum cost of a fit to these rows: every kernel value once.
    pub(crate) fn cost(&self, rows: &Rows<'_>) -> Cost {
        let columns = if matches!(self, Self::BuiltIn(Kernel::Precomputed)) { 1 } else { rows.cols() };
        Cost::of_values(rows, rows.rows(), columns)
    }

    /// Runs a fit as [`run_and_keep`] does; what the function raised is the error.
    pub(crate) fn run<R: Send>(
        &self,
        py: Python<'_>,
        n_jobs: usize,
        cost: Cost,
        progress: Option<&Bound<'_, PyAny>>,
        work: impl FnOnce(KernelFunction<'_>, Context<'_>) -> svmarrow::Result<R> + Send,
    ) -> PyResult<(R, Option<PyErr>)> {
        let outcome = run_and_keep(py, n_jobs, cost, progress, |ctx| {
            let has_raised = || matches!(self, Self::Function(function) if function.raised().is_some());
            let monitor = UnlessRaised { monitor: ctx.monitor(), has_raised };
            work(self.function(), ctx.with_monitor(&monitor))
        });
        let Self::Function(function) = self else { return outcome };
        let raised = function.raised().take();
        match (raised, outcome) {
            (Some(raised), Ok((_, ended))) => Err(cause(py, raised, ended)),
            (Some(raised), Err(ended)) => Err(cause(py, raised, Some(ended))),
            (None, outcome) => outcome,
        }
    }
}

/// Returns the exception of work whose Python function raised one, and which was ended by another one, if any. A call of this
/// module inside the function is interrupted with the work, whose exception says why.
pub(crate) fn cause(py: Python<'_>, raised: PyErr, ended: Option<PyErr>) -> PyErr {
    match ended {
        Some(ended) if raised.is_instance_of::<PyKeyboardInterrupt>(py) => ended,
        _ => raised,
    }
}

impl PythonCall {
    fn kernel_values(
        &self,
        py: Python<'_>,
        rows: &[usize],
        columns: &[usize],
        out: &mut [f64],
    ) -> PyResult<()> {
        let array = |list: &[usize]| PyArray1::from_iter(py, list.iter().map(|&i| i as i64));
        let values = self.function.bind(py).call1((array(rows), array(columns)))?;
        let values: PyReadonlyArray2<'_, f64> = values.extract()?;
        let filled = values.as_slice().ok().filter(|_| values.shape() == [rows.len(), columns.len()]);
        match filled {
            Some(values) => out.copy_from_slice(values),
            None => Err(to_python(Error::param(
                "kernel values",
                format!("{:?}", values.shape()),
                format!("contiguous and ({}, {})", rows.len(), columns.len()),
            )))?,
        }
        Ok(())
    }
}

impl PythonCall {
    fn diagonal_values(&self, py: Python<'_>, rows: &[usize], out: &mut [f64]) -> PyResult<()> {
        let list = PyArray1::from_iter(py, rows.iter().map(|&i| i as i64));
        let values = self.function.bind(py).call_method1("diagonal", (list,))?;
        let values: PyReadonlyArray1<'_, f64> = values.extract()?;
        let Some(values) = values.as_slice().ok().filter(|values| values.len() == out.len()) else {
            let shape = format!("{:?}", values.shape());
            return Err(to_python(Error::param("kernel diagonal", shape, format!("({},)", out.len()))));
        };
        out.copy_from_slice(values);
        Ok(())
    }
}

impl KernelBlocks for PythonCall {
    fn diagonal(&self, rows: &[usize], out: &mut [f64]) {
        if !self.attempt(|py| self.diagonal_values(py, rows, out)) {
            out.fill(0.0);
        }
    }

    fn fill(&self, rows: &[usize], columns: &[usize], out: &mut [f64]) {
        if !self.attempt(|py| self.kernel_values(py, rows, columns, out)) {
            out.fill(0.0);
        }
    }
}

/// A monitor that also ends the work once a Python function has raised an exception.
pub(crate) struct UnlessRaised<'a, F> {
    pub(crate) monitor: &'a dyn Monitor,
    pub(crate) has_raised: F,
}

impl<F: Fn() -> bool + Sync> Monitor for UnlessRaised<'_, F> {
    fn tick(&self, progress: &Progress) -> ControlFlow<Interruption> {
        self.monitor.tick(progress)?;
        if (self.has_raised)() {
            ControlFlow::Break(Interruption::Interrupted)
        } else {
            ControlFlow::Continue(())
        }
    }
}
