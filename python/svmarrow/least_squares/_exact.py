"""Base class of the exact estimators: solvers, the path of penalties, the width, leave-one-out values.

Choice of the width (``gamma="loo"``). Problem: the width with the least leave-one-out error, which follows
from the factor of one system (Rifkin 2002, section 3.3). Method: from "scale" in steps by a factor of 2,
wider or narrower, as long as the error falls; a width that is not better than "scale" by one standard error
of the paired losses is not taken, since the least of several errors flatters. Shares of wrong labels are
compared, and squared errors where they are equal. Cost: some four fits with leave-one-out values.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from scipy.linalg import eigh
from sklearn.exceptions import ConvergenceWarning

from svmarrow import _core
from svmarrow._support.parameters import (
    THREADS,
    UNIT_DIAGONAL_KERNELS,
    Rule,
    boolean,
    either,
    function,
    integer,
    kernel_rules,
    none,
    one_of,
    real,
    refuse,
    warn_caller,
)
from svmarrow._support.progress import progress
from svmarrow._support.rows import core_rows, one_blas_thread, threads
from svmarrow._support.training import bytes_of_rows, default_gamma, gamma_power
from svmarrow.expansion.kernel_expansion import KernelExpansion, TrainingKernel
from svmarrow.least_squares._base import PENALTIES, average, is_clear_gain, kernel_of
from svmarrow.least_squares.targets import (
    REMEDY,
    LeaveOneOutModels,
    TargetFit,
    bytes_of_system,
    centre_of,
    check_leaves_samples,
    leave_one_out_models,
    problem,
    refuse_system,
    solve,
    solved,
    translated,
)
from svmarrow.models.machine import KernelMachine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike, NDArray

    from svmarrow._core import _Stopping
    from svmarrow.expansion.kernel_expansion import KernelFunction

__all__ = ["EXACT_RULES", "ITERATION_RULES", "ExactLeastSquares", "warn_unconverged"]

#: Most points of the preconditioner, and rows for each of them.
POINTS, ROWS_PER_POINT = 1000, 20

#: An eigendecomposition on one thread takes as long as 5, 7 and 9 factors with their inverses on two, for
#: 500, 1,000 and 1,500 rows, and cannot be interrupted: .65 s for the most rows that get one.
ROWS_PER_ALPHA, DECOMPOSED = 100, 1500

#: Factor between two widths that are tried, in units of a squared distance, and the maximum number of steps.
WIDTH_FACTOR, MAX_WIDTH_STEPS = 2.0, 8
#: Standard errors of the paired losses by which another width must be better than "scale".
WIDTH_STANDARD_ERRORS = 1.0

ITERATION_RULES = {
    "tol": real(above=0.0),
    "max_iter": either(integer(least=1), integer(least=-1, most=-1, text="-1 for no limit")),
    "max_time": either(none, real(least=0.0)),
}


EXACT_RULES = {
    **kernel_rules(),
    "kernel": either(kernel_rules()["kernel"], function),
    "gamma": either(one_of("scale", "auto", "loo"), real(least=0.0)),
    "alpha": real(least=0.0),
    "alphas": PENALTIES,
    "fit_intercept": boolean,
    "leave_one_out": either(boolean, one_of("auto")),
    "solver": one_of("cholesky", "cg"),
    **ITERATION_RULES,
    "n_jobs": THREADS,
    "verbose": either(boolean, integer(least=0)),
}


class WidthTrial(NamedTuple):
    """A fit with one width."""

    machine: ExactLeastSquares
    #: Outputs of the models without each sample (n, q), and the losses of these (n,).
    left: NDArray[np.float64]
    losses: NDArray[np.float64]
    error: float


class ExactLeastSquares(KernelMachine):
    """Base class of `RLSClassifier` and `RLSRegressor`."""

    _rules: ClassVar[Mapping[str, Rule]] = EXACT_RULES
    #: Whether leave-one-out errors are shares of wrong labels; else they are mean squares.
    _by_rate: ClassVar[bool]
    kernel: str | KernelFunction
    gamma: str | float
    degree: int
    coef0: float
    verbose: bool | int

    _kernel: ClassVar[Callable[..., tuple[Any, float, float, int]]] = kernel_of
    #: The vectors of the model are all training samples.
    _has_all_samples: ClassVar[bool] = True

    alpha: float
    alphas: ArrayLike | None
    fit_intercept: bool
    leave_one_out: bool | Literal["auto"]
    solver: str
    tol: float
    max_iter: int
    max_time: float | None

    alpha_: float
    gamma_: float
    gammas_: NDArray[np.float64]
    gamma_errors_: NDArray[np.float64]
    gcv_: NDArray[np.float64]
    loo_errors_: NDArray[np.float64]
    gcv_path_: NDArray[np.float64]
    residual_: float
    n_iter_: int
    solver_: str
    #: alpha / w of each row, infinite for those of weight 0.
    _ridge: NDArray[np.float64]
    #: The models without one row, with the expansion that they belong to.
    _left_out: tuple[KernelExpansion, LeaveOneOutModels] | None = None
    expansion_: KernelExpansion
    _transient = ("_left_out",)
    _stored_as: ClassVar[dict[str, str]] = {"_ridge": "ridge_"}

    def _fit(
        self,
        X: Any,
        targets: NDArray[np.float64],
        weights: NDArray[np.float64] | None,
        groups: NDArray[np.intp] | None = None,
    ) -> NDArray[np.float64] | None:
        self.n_iter_, self.solver_ = 1, self.solver
        refuse_time(self.max_time, self.solver)
        if groups is not None and not self._wants_leave_one_out():
            raise ValueError(
                f"groups are for leave-one-out values, and leave_one_out={self.leave_one_out!r} has none: "
                "set leave_one_out=True, or leave groups out"
            )
        if self._chooses_width():
            return self._with_chosen_width(X, targets, weights, groups)
        if self.solver == "cg":
            fit = self._by_conjugate_gradients(X, targets, weights)
        elif self.alphas is not None:
            fit = self._along_path(X, targets, weights, groups)
        else:
            self.alpha_ = float(self.alpha)
            fit = solve(
                X,
                targets,
                self.alpha_,
                self._kernel(X, weights),
                fit_intercept=bool(self.fit_intercept),
                leave_one_out=self._wants_leave_one_out(),
                n_jobs=self.n_jobs,
                verbose=self.verbose,
                weights=weights,
                groups=groups,
            )
        # A model does not follow what the caller writes to the training samples later.
        self.expansion_ = fit.expansion.replaced(vectors=fit.expansion.vectors.copy())
        with np.errstate(over="ignore"):  # where a row has hardly any weight
            self._ridge = self.alpha_ / (np.ones(len(targets)) if weights is None else weights)
        if fit.gcv is not None:
            self.gcv_ = fit.gcv
        if groups is None:
            self._bound(fit, targets, weights)
        return fit.loo

    def _bytes(self, X: Any, outputs: int) -> int:
        n = int(X.shape[0])
        if self._chooses_width():
            # The models of "scale", of the best width so far and of the next one.
            plain = copy.copy(self)
            plain.gamma, plain.leave_one_out = 1.0, True
            return plain._bytes(X, outputs) + 3 * (bytes_of_rows(X) + 8 * n * (3 * outputs + 2))
        if self.solver == "cg":
            points = min(POINTS, n // ROWS_PER_POINT)
            return 8 * (n * (points + 12 * outputs + 8) + 3 * points**2) + 3 * bytes_of_rows(X)
        if self.alphas is None:
            left_out = self._wants_leave_one_out()
            return bytes_of_system(X, outputs, leave_one_out=left_out, precomputed=self._is_precomputed())
        alphas = np.unique(np.asarray(self.alphas)).size
        system = bytes_of_system(X, outputs, leave_one_out=True, precomputed=self._is_precomputed())
        if n <= min(DECOMPOSED, ROWS_PER_ALPHA * alphas):
            # The decomposition of the matrix, with LAPACK's room.
            return system + 8 * n * n * 5
        matrix = int(_core.least_squares_bytes(n, X.dtype != np.float64, True))
        return system - matrix + int(_core.least_squares_path_bytes(n, np.size(self.alphas)))

    def _remedy(self) -> str:
        return "train on fewer rows" if self.solver == "cg" else REMEDY

    def _wants_leave_one_out(self) -> bool:
        """Returns whether leave-one-out values are needed; "auto" needs them for choices."""
        if self.leave_one_out == "auto":
            return self.alphas is not None or self._chooses_width()
        return bool(self.leave_one_out)

    def _chooses_width(self) -> bool:
        return isinstance(self.gamma, str) and self.gamma == "loo"

    if TYPE_CHECKING:

        def _losses(self, left: NDArray[np.float64], targets: NDArray[np.float64]) -> NDArray[np.float64]: ...

    def _with_chosen_width(
        self,
        X: Any,
        targets: NDArray[np.float64],
        weights: NDArray[np.float64] | None,
        groups: NDArray[np.intp] | None,
    ) -> NDArray[np.float64]:
        """Fits with the width of the least leave-one-out error; returns the outputs without each sample."""
        if self.solver == "cg" or not self._wants_leave_one_out():
            raise refuse("gamma", "loo", "a number, 'scale' or 'auto' without leave-one-out values")
        if self.kernel not in UNIT_DIAGONAL_KERNELS:
            raise refuse("gamma", "loo", f"a number, 'scale' or 'auto' for kernel={self.kernel!r}")
        factor = WIDTH_FACTOR ** gamma_power(self.kernel)
        start = default_gamma("scale", X, kernel=self.kernel, weights=weights)
        errors: dict[float, float] = {}

        def trial(width: float) -> WidthTrial:
            machine = copy.copy(self)
            machine.gamma, machine.leave_one_out = width, True
            left = machine._fit(X, targets, weights, groups)
            assert left is not None
            losses = self._losses(left, targets)
            errors[width] = float(average(losses, weights))
            return WidthTrial(machine, left, losses, errors[width])

        first = best = trial(start)
        for step in (factor, 1.0 / factor):
            for _ in range(MAX_WIDTH_STEPS):
                width = float(best.machine.gamma) * step
                if not 0.0 < width < np.inf:
                    break
                other = trial(width)
                if other.error >= best.error:
                    break
                best = other
            if best is not first:
                break
        if not is_clear_gain(first.losses - best.losses, weights, WIDTH_STANDARD_ERRORS, groups):
            best = first
        for name, value in vars(best.machine).items():
            if name not in ("gamma", "leave_one_out"):
                setattr(self, name, value)
        self.gamma_ = float(best.machine.gamma)
        self.gammas_ = np.sort(list(errors))
        self.gamma_errors_ = np.array([errors[width] for width in self.gammas_])
        return best.left

    def _bound(
        self, fit: TargetFit, targets: NDArray[np.float64], weights: NDArray[np.float64] | None
    ) -> None:
        """Stores bounds of the leave-one-out errors without their values."""

    def _spread(self, X: Any, kept: NDArray[np.intp]) -> None:
        # The other rows have coefficients zero, and were left out all along.
        of = self.expansion_
        coefficients = np.zeros((int(X.shape[0]), of.n_outputs))
        coefficients[kept] = of.coefficients
        vectors = np.arange(X.shape[0], dtype=np.float64)[:, np.newaxis] if self._is_precomputed() else X
        self.expansion_ = KernelExpansion(
            vectors, coefficients, of.intercepts, of.kernel, of.gamma, of.coef0, of.degree
        )
        ridge = np.full(int(X.shape[0]), np.inf)
        ridge[kept] = self._ridge
        self._ridge = ridge

    def _leave_one_out_models(self) -> LeaveOneOutModels:
        """Returns the leave-one-out models, computed at the first use after a fit."""
        self._check_fitted()
        known = self._left_out
        if known is None or known[0] is not self.expansion_:
            known = self.expansion_, leave_one_out_models(self, self._ridge)
            self._left_out = known
        return known[1]

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name not in self._transient}

    def _after_load(self) -> None:
        super()._after_load()
        if self._ridge.shape != (self.expansion_.n_vectors,) or not (self._ridge >= 0.0).all():
            raise ValueError(f"the penalties do not describe {self.expansion_.n_vectors} rows")

    def _along_path(
        self,
        X: Any,
        targets: NDArray[np.float64],
        weights: NDArray[np.float64] | None,
        groups: NDArray[np.intp] | None,
    ) -> TargetFit:
        if not self._wants_leave_one_out():
            raise refuse("leave_one_out", self.leave_one_out, "True or 'auto' where alphas are given")
        check_leaves_samples(X, fit_intercept=bool(self.fit_intercept))
        refuse_system(X, leave_one_out=True, matrices=2)
        alphas = np.asarray(self.alphas, dtype=np.float64)
        kernel = self._kernel(X, weights)
        function: Any = TrainingKernel(kernel[0], X) if callable(kernel[0]) else kernel
        rows, spectrum, centre = X, None, None
        most = min(DECOMPOSED, ROWS_PER_ALPHA * np.unique(alphas).size)
        if not callable(kernel[0]) and len(targets) <= most and groups is None:
            self.solver_ = "eigh"
            if kernel[0] == "linear" and self.fit_intercept:
                centre = centre_of(X)
                rows = translated(X, centre)
            spectrum = _decomposed(rows, kernel, weights, threads(self.n_jobs))
        fit_intercept = bool(self.fit_intercept)
        with progress(self.verbose) as reporter:
            solution = _core.least_squares_path(
                problem(
                    core_rows(rows), targets, function, weights, fit_intercept=fit_intercept, groups=groups
                ),
                alphas.tolist(),
                spectrum,
                self._by_rate,
                reporter.callback,
                threads(self.n_jobs),
            )
        path = solution["path"]
        self.alpha_ = float(alphas[solution["best"]])
        self.loo_errors_ = path[:, 1 if self._by_rate else 0].copy()
        self.gcv_path_ = path[:, 2].copy()
        fit = solved(X, kernel, solution)
        if centre is None:
            return fit
        # The intercept was that of rows less their center.
        b = fit.expansion.intercepts
        at_centre = fit.expansion._evaluate(centre[np.newaxis], self.n_jobs)[0]
        return replace(fit, expansion=fit.expansion.replaced(intercepts=b - (at_centre - b)))

    def _by_conjugate_gradients(
        self, X: Any, targets: NDArray[np.float64], weights: NDArray[np.float64] | None
    ) -> TargetFit:
        if self.alphas is not None:
            raise refuse("alphas", self.alphas, "None for solver='cg'")
        if self._wants_leave_one_out():
            raise refuse("leave_one_out", self.leave_one_out, "False or 'auto' for solver='cg'")
        self.alpha_ = float(self.alpha)
        kernel = self._kernel(X, weights)
        if callable(kernel[0]):
            raise refuse("kernel", self.kernel, "a built-in kernel for solver='cg'")
        with progress(self.verbose) as reporter:
            solution = _core.least_squares_cg(
                problem(core_rows(X), targets, kernel, weights, fit_intercept=bool(self.fit_intercept)),
                self.alpha_,
                stopping(self),
                (min(POINTS, int(X.shape[0]) // ROWS_PER_POINT), 0),
                reporter.callback,
                threads(self.n_jobs),
            )
        self.residual_, self.n_iter_ = solution["residual"], solution["products"]
        warn_unconverged(self, solution["stop"], solution["residual"], float(self.tol))
        expansion = KernelExpansion(X, solution["coefficients"], solution["intercepts"], *kernel)
        return TargetFit(expansion, None, None, None, solution["diagonal"])


def _decomposed(
    X: Any, kernel: tuple[Any, float, float, int], weights: NDArray[np.float64] | None, n_jobs: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns the spectrum of K scaled by the square roots of the weights."""
    if kernel[0] == "precomputed":
        K = np.ascontiguousarray(X, dtype=np.float64)
    else:
        K = _core.gram(core_rows(X), None, kernel, n_jobs)
    if weights is not None:
        roots = np.sqrt(weights)
        K = K * roots[:, np.newaxis] * roots
    with one_blas_thread():
        values, vectors = eigh(K, driver="evd", check_finite=False)
    return values, np.ascontiguousarray(vectors)


def refuse_time(max_time: float | None, solver: str) -> None:
    """Rejects an iteration limit for direct solvers, which have no intermediate model."""
    if max_time is not None and solver != "cg":
        raise refuse("max_time", max_time, f"None for solver={solver!r}, or solver='cg'")


def stopping(estimator: Any) -> _Stopping:
    """Returns the stopping criteria of the conjugate gradients."""
    return {
        "tol": float(estimator.tol),
        "max_iter": None if estimator.max_iter == -1 else int(estimator.max_iter),
        "max_time": None if estimator.max_time is None else float(estimator.max_time),
    }


def warn_unconverged(estimator: Any, stop: str, residual: float, tol: float) -> None:
    """Warns of an iteration that ended early."""
    if stop != "converged":
        warn_caller(
            f"{type(estimator).__name__} ended before the tolerance was reached ({stop}): the residual "
            f"is {residual:.3g} for tol={tol:g}. The model is usable; raise max_iter, max_time, "
            "tol or alpha, or pass rows in double precision",
            ConvergenceWarning,
        )
