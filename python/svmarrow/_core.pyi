# The extension module: algorithms on arrays. No defaults, no policy; see the modules that call it.
#
# Rows are C-contiguous (row stride allowed) float64, float32 or uint8 matrices, or ``(data, indices, indptr,
# shape)`` of a CSR matrix. A kernel is ``(name, gamma, coef0, degree)``.

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NotRequired, TextIO, TypeAlias, TypedDict, final

import numpy as np
from numpy.typing import NDArray

from svmarrow._support.progress import ProgressCallback
from svmarrow.expansion.kernel_expansion import TrainingKernel

__all__ = [
    "DEFAULT_DICTIONARY_BYTES",
    "DEFAULT_SAMPLE_SIZE",
    "MAX_ASYMMETRY",
    "MAX_CACHED_COLUMN_BYTES",
    "MAX_LISTED_FEATURES",
    "MAX_SPLIT_BYTES",
    "MAX_SUBSEQUENCE_LENGTH",
    "MIN_PAIR_PROBABILITY",
    "Cascade",
    "Expansion",
    "Features",
    "PerceptronTree",
    "SeriesBlock",
    "Single",
    "StringBlock",
    "available_memory",
    "box_budget_program",
    "centres",
    "code_distances",
    "decode_scores",
    "decode_winners",
    "estimate_selection_memory",
    "estimate_svm_memory",
    "expansion_moments",
    "fit_one_class_svm",
    "fit_quantile_svr",
    "fit_sigmoid",
    "fit_svc",
    "fit_svr",
    "gradient_vectors",
    "gram",
    "least_squares",
    "least_squares_bytes",
    "least_squares_cg",
    "least_squares_inverse",
    "least_squares_inverse_bytes",
    "least_squares_path",
    "least_squares_path_bytes",
    "leave_one_out_rows",
    "libsvm_answers",
    "libsvm_cross_validate",
    "libsvm_evaluate",
    "libsvm_folds",
    "libsvm_kernel_outputs",
    "libsvm_options",
    "libsvm_predict_options",
    "libsvm_program",
    "libsvm_train",
    "linear_least_squares_cg",
    "linear_weights",
    "low_rank_cg",
    "low_rank_solve",
    "low_rank_sums",
    "make_code",
    "margin_loss",
    "matching_pursuit",
    "path_coefficients",
    "path_decisions",
    "path_outputs",
    "perceptron_stream",
    "perceptron_tree",
    "perceptron_tree_of",
    "perceptron_tree_stream",
    "pursuit",
    "read_libsvm_model",
    "read_model",
    "read_svmlight",
    "search_svm",
    "select_points_by_kernel",
    "select_vectors",
    "shapley_values",
    "simd_level",
    "stored_bytes",
    "threshold_binary",
    "threshold_joint",
    "voted",
    "write_libsvm_model",
    "write_model",
    "write_svmlight",
]

DEFAULT_DICTIONARY_BYTES: int
DEFAULT_SAMPLE_SIZE: int
MAX_ASYMMETRY: float
MAX_CACHED_COLUMN_BYTES: int
MAX_LISTED_FEATURES: int
MAX_SPLIT_BYTES: int
MAX_SUBSEQUENCE_LENGTH: int
MIN_PAIR_PROBABILITY: float

_Csr: TypeAlias = tuple[NDArray[Any], NDArray[Any], NDArray[Any], tuple[int, int]]
_Rows: TypeAlias = NDArray[Any] | _Csr
_Kernel: TypeAlias = tuple[str, float, float, int]
_Path: TypeAlias = str | os.PathLike[str]
_Floats: TypeAlias = NDArray[np.float64]
_Indices: TypeAlias = NDArray[np.int64]
_Expansion: TypeAlias = tuple[_Rows, _Floats, _Floats, _Kernel]
_PathNumbers: TypeAlias = tuple[_Floats | None, _Floats, tuple[_Indices, _Indices] | None]

_Code: TypeAlias = NDArray[np.int8]
_FitKernel: TypeAlias = _Kernel | TrainingKernel

class _Fit(TypedDict):
    support: _Indices
    class_counts: _Indices
    coefficients: _Floats
    intercepts: _Floats
    certificates: list[dict[str, Any]]
    leave_one_out: list[dict[str, Any]]
    effort: dict[str, Any]
    interrupted: bool

class _MachineFit(TypedDict):
    support: _Indices
    coefficients: _Floats
    intercepts: _Floats
    rho: float
    certificates: list[dict[str, Any]]
    effort: dict[str, Any]
    interrupted: bool

class _QuantileFit(TypedDict):
    support: _Indices
    coefficients: _Floats
    intercepts: _Floats
    certificates: list[dict[str, Any]]
    effort: dict[str, Any]
    interrupted: bool

class _Pursuit(TypedDict):
    order: _Indices
    factor: _Floats | None
    projections: _Floats
    steps: tuple[_Indices, _Indices] | None
    residual_norms: _Floats
    penalties: _Floats | None
    exact: bool
    orthogonal: bool
    stop: str

class _Matching(TypedDict):
    order: _Indices
    sizes: _Indices
    training_loss: _Floats
    validation_loss: _Floats
    validation_error: _Floats
    stop: str
    factor: NotRequired[_Floats]
    projections: NotRequired[_Floats]
    coefficients: NotRequired[_Floats]

class _Construction(TypedDict):
    vectors: NDArray[np.float32]
    coefficients: _Floats
    intercepts: _Floats
    scales: _Floats
    losses: _Floats
    stop: str

@final
class Expansion:
    def __new__(
        cls, vectors: _Rows, coefficients: _Floats, intercepts: _Floats, kernel: _Kernel
    ) -> Expansion: ...
    def decision(self, x: _Rows, n_jobs: int) -> _Floats: ...
    def needs_double(self) -> bool: ...
    def __len__(self) -> int: ...
    @property
    def outputs(self) -> int: ...

@final
class Single:
    def __new__(
        cls,
        function: Expansion | PerceptronTree | list[Expansion],
        columns: int,
        before: tuple[_Floats, _Floats, _Floats | None, _Floats | None] | None,
        answer: str,
        scores: str,
        code: NDArray[np.int8] | None,
        labels: list[Any],
    ) -> Single: ...
    def predict(self, row: Any) -> Any: ...
    def decision_function(self, row: Any) -> Any: ...

def linear_weights(vectors: _Rows, coefficients: _Floats, n_jobs: int) -> _Floats: ...
def gram(x: _Rows, z: _Rows | None, kernel: _Kernel, n_jobs: int) -> _Floats: ...

@final
class SeriesBlock:
    def __new__(
        cls, values: _Floats, lengths: _Indices, sigma: float, band: float | None, n_jobs: int
    ) -> SeriesBlock: ...
    def __len__(self) -> int: ...
    @property
    def features(self) -> int: ...
    def select(self, places: _Indices) -> SeriesBlock: ...
    def arrays(self) -> tuple[_Floats, _Indices]: ...
    def diagonal(self) -> _Floats: ...
    def gram(self, other: SeriesBlock | None, n_jobs: int) -> _Floats: ...

@final
class StringBlock:
    def __new__(
        cls, symbols: _Indices, lengths: _Indices, length: int, decay: float, n_jobs: int
    ) -> StringBlock: ...
    def __len__(self) -> int: ...
    @property
    def features(self) -> int: ...
    def select(self, places: _Indices) -> StringBlock: ...
    def arrays(self) -> tuple[_Indices, _Indices]: ...
    def diagonal(self) -> _Floats: ...
    def gram(self, other: StringBlock | None, n_jobs: int) -> _Floats: ...

class _Shapley(TypedDict):
    values: NDArray[np.float64]
    base: _Floats
    additivity_error: _Floats
    nodes: int

def shapley_values(
    expansion: _Expansion,
    x: _Rows,
    background: _Rows,
    game: str,
    player_of: Sequence[int],
    players: int,
    progress: ProgressCallback | None,
    n_jobs: int,
) -> _Shapley: ...

class _Tuning(TypedDict, total=False):
    block: int
    max_block: int
    nested_block: int
    cheap_kernel: int
    min_subsampled: int
    newton_steps: bool
    active_set: bool
    fast_sums: bool

class _Solver(TypedDict):
    tol: float
    cache_bytes: int
    shrinking: bool
    max_iter: int | None
    max_time: float | None
    progress: ProgressCallback | None
    n_jobs: int
    start: tuple[_Indices, _Floats, _Floats | None] | None
    tuning: NotRequired[_Tuning | None]
    keep_interrupted: bool

class _Classification(TypedDict):
    labels: _Indices
    n_classes: int
    upper: _Floats
    coding: Literal["ovo", "ovr"] | _Code
    loss: Literal["hinge", "squared_hinge", "nu"]
    nu: float | None
    fit_intercept: bool

class _Regression(TypedDict):
    targets: _Floats
    upper: _Floats
    epsilon: float
    nu: float | None
    quantile: float | None

class _Grid(TypedDict):
    kernels: list[_FitKernel]
    costs: _Floats
    points: NDArray[np.bool_]
    folds: list[tuple[_Indices, _Floats, _Indices]]

class _SearchSolver(TypedDict):
    tol: float
    cache_bytes: int
    max_iter: int | None
    max_time: float | None
    progress: ProgressCallback | None
    n_jobs: int

def search_svm(
    x: _Rows,
    task: _Classification | _Regression,
    grid: _Grid,
    solver: _SearchSolver,
    judge: Callable[[int, int, int, _Floats, float, int, int, str], None],
) -> str | None: ...
def fit_svc(x: _Rows, kernel: _FitKernel, task: _Classification, solver: _Solver) -> _Fit: ...
def fit_svr(x: _Rows, kernel: _FitKernel, task: _Regression, solver: _Solver) -> _MachineFit: ...
def fit_quantile_svr(
    x: _Rows,
    kernel: _FitKernel,
    targets: _Floats,
    upper: _Floats,
    quantiles: list[float],
    solver: _Solver,
) -> _QuantileFit: ...
def fit_one_class_svm(
    x: _Rows, kernel: _FitKernel, weights: _Floats, nu: float, solver: _Solver
) -> _MachineFit: ...
def make_code(
    name: str,
    n_classes: int,
    seed: int,
    draws: int,
    min_use: float,
    n_jobs: int,
) -> _Code: ...
def code_distances(code: _Code, n_jobs: int) -> tuple[float, float]: ...
def decode_scores(outputs: _Floats, code: _Code, decoder: str, n_jobs: int) -> _Floats: ...
def decode_winners(outputs: _Floats, code: _Code, decoder: str, n_jobs: int) -> _Indices: ...
def margin_loss(margins: _Floats, loss: str) -> _Floats: ...
def fit_sigmoid(
    outputs: _Floats,
    is_first: NDArray[np.bool_],
    weights: _Floats,
    offset_penalty: float,
) -> tuple[float, float]: ...

class _LeaveOneOutRows(TypedDict):
    outputs: _Floats
    coefficients: _Floats
    diagonal: _Floats
    labels: _Indices
    slack: _Floats

def leave_one_out_rows(
    rows: _LeaveOneOutRows, code: _Code, decoder: str, n_jobs: int
) -> tuple[_Floats, NDArray[np.bool_]]: ...
def estimate_selection_memory(candidates: int, outputs: int, settings: dict[str, Any]) -> int: ...
def estimate_svm_memory(
    x: _Rows, n: int, kernel: _Kernel | Callable[..., Any], machines: list[int], cache_bytes: int, n_jobs: int
) -> dict[str, int]: ...
def pursuit(
    expansion: _Expansion,
    candidates: _Rows | None,
    rows: _Rows | None,
    settings: dict[str, Any],
    progress: ProgressCallback | None,
    n_jobs: int,
) -> _Pursuit: ...
def select_vectors(
    expansion: _Expansion, settings: dict[str, Any], progress: ProgressCallback | None, n_jobs: int
) -> _Pursuit: ...
def centres(
    x: _Rows, groups: _Indices | None, count: int, seed: int, max_time: float | None, n_jobs: int
) -> NDArray[np.float32]: ...
def gradient_vectors(
    expansion: _Expansion,
    x: _Rows,
    answers: _Indices | _Floats | None,
    settings: dict[str, Any],
    progress: ProgressCallback | None,
    n_jobs: int,
) -> list[_Construction]: ...
def path_coefficients(path: _PathNumbers, size: int) -> _Floats: ...
def path_decisions(
    path: _PathNumbers, selected: tuple[_Rows, _Floats, _Kernel], x: _Rows, sizes: _Indices, n_jobs: int
) -> _Floats: ...
def matching_pursuit(
    task: dict[str, Any], settings: dict[str, Any], progress: ProgressCallback | None, n_jobs: int
) -> _Matching: ...
def path_outputs(path: _PathNumbers, features: _Floats, sizes: _Indices, n_jobs: int) -> _Floats: ...
def perceptron_stream(
    x: _Rows,
    labels: _Indices,
    settings: dict[str, Any],
    state: dict[str, Any],
    progress: ProgressCallback | None,
) -> tuple[dict[str, Any], _Indices]: ...
def voted(
    expansion: _Expansion, born: _Indices, seen: int, n_classes: int, x: _Rows, n_jobs: int
) -> _Floats: ...

@final
class PerceptronTree:
    def __new__(cls, kernel: _Kernel, tree: dict[str, Any], averaged: bool) -> PerceptronTree: ...
    def decision(self, x: _Rows, n_jobs: int) -> _Floats: ...
    def routes(self, x: _Rows, n_jobs: int) -> _Indices: ...

def perceptron_tree(rows: _Rows, outputs: int, seed: int) -> dict[str, Any]: ...
def perceptron_tree_stream(
    x: _Rows,
    labels: _Indices,
    settings: dict[str, Any],
    tree: dict[str, Any],
    n_jobs: int,
    progress: ProgressCallback | None,
) -> tuple[dict[str, Any], _Indices]: ...
def perceptron_tree_of(
    expansion: _Expansion,
    x: _Rows,
    labels: _Indices,
    settings: dict[str, Any],
    n_jobs: int,
    progress: ProgressCallback | None,
) -> dict[str, Any]: ...
def box_budget_program(q: _Floats, w: _Floats, max_vectors: float, tolerance: float) -> _Floats: ...
def expansion_moments(
    expansion: _Expansion, selected: _Rows, n_jobs: int
) -> tuple[_Floats, _Floats, _Floats]: ...

@final
class Cascade:
    def __new__(
        cls,
        expansion: _Expansion,
        path: dict[str, Any],
        stages: list[tuple[int, int]],
        coding: str,
        break_ties: bool,
        n_jobs: int,
    ) -> Cascade: ...
    def answer(self, x: _Rows, n_jobs: int) -> tuple[_Indices, _Indices]: ...
    def outputs_with_bounds(self, x: _Rows, stage: int, n_jobs: int) -> tuple[_Floats, _Floats]: ...
    def survey(self, x: _Rows, n_jobs: int) -> _Indices: ...

def threshold_binary(
    scores: _Floats, positive: NDArray[np.bool_], weights: _Floats | None = None
) -> float: ...
def threshold_joint(scores: _Floats, labels: _Indices, weights: _Floats | None = None) -> _Floats: ...
def read_svmlight(
    path: _Path,
    n_features: int | None,
    zero_based: bool | None,
    single_precision: bool,
    progress: ProgressCallback | None,
) -> tuple[NDArray[Any], _Indices, _Indices, tuple[int, int], _Floats]: ...
def write_svmlight(path: _Path, x: _Rows, targets: _Floats) -> None: ...
def read_libsvm_model(path: _Path, n_features: int | None, zero_based: bool | None) -> dict[str, Any]: ...
def write_libsvm_model(
    path: _Path,
    svm_type: str,
    expansion: _Expansion,
    labels: _Indices,
    class_counts: _Indices,
    probability: tuple[Sequence[float], Sequence[float]],
) -> None: ...
def libsvm_program(
    name: str,
    arguments: Sequence[str],
    output: TextIO | None,
    messages: TextIO | None,
    n_jobs: int,
) -> int: ...
def libsvm_options(words: Sequence[str]) -> dict[str, Any]: ...
def libsvm_predict_options(words: Sequence[str]) -> tuple[bool, bool]: ...
def libsvm_train(x: _Rows, targets: _Floats, words: Sequence[str], n_jobs: int) -> dict[str, Any]: ...
def libsvm_cross_validate(
    x: _Rows, targets: _Floats, words: Sequence[str], n_jobs: int
) -> tuple[_Floats, list[str], list[str]]: ...
def libsvm_folds(
    x: _Rows, targets: _Floats, words: Sequence[str]
) -> tuple[list[int], _Indices, list[_Indices], _Rows | None]: ...
def libsvm_kernel_outputs(expansion: _Expansion, x: _Rows, n_jobs: int) -> _Floats: ...
def libsvm_answers(
    outputs: _Floats,
    head: tuple[int, Sequence[int], Sequence[float], Sequence[float]],
    probability: bool,
    n_jobs: int,
) -> tuple[_Floats, _Floats | None, str | None]: ...
def libsvm_evaluate(
    targets: _Floats, predictions: _Floats, svm_type: int
) -> tuple[float, float, float, str, str]: ...
def read_model(
    path: _Path,
) -> tuple[dict[str, dict[str, Any]], dict[str, tuple[str, list[int], NDArray[np.uint8]]], str]: ...
def stored_bytes(expansion: tuple[_Rows, _Floats, _Floats, _Kernel]) -> int: ...
def write_model(
    path: _Path,
    expansions: Mapping[str, _Expansion],
    arrays: Mapping[str, tuple[str, list[int], NDArray[np.uint8]]],
    extra: str,
) -> None: ...
def simd_level() -> Literal["avx512", "avx2", "scalar"]: ...
def available_memory() -> int: ...

class _LeaveOneOut(TypedDict):
    values: _Floats
    inverse_diagonal: _Floats
    gcv: _Floats

class _LeastSquares(TypedDict):
    coefficients: _Floats
    intercepts: _Floats
    diagonal: _Floats
    leave_one_out: _LeaveOneOut | None

class _Problem(TypedDict):
    x: _Rows
    targets: _Floats
    kernel: _FitKernel
    weights: _Floats | None
    groups: list[int] | None
    fit_intercept: bool

class _Stopping(TypedDict):
    tol: float
    max_iter: int | None
    max_time: float | None

def least_squares(
    problem: _Problem, alpha: float, leave_one_out: bool, progress: ProgressCallback | None, n_jobs: int
) -> _LeastSquares: ...

class _Inverse(TypedDict):
    inverse: _Floats
    intercepts: _Floats

def least_squares_inverse(
    problem: _Problem, alpha: float, progress: ProgressCallback | None, n_jobs: int
) -> _Inverse: ...

class _Sums(TypedDict):
    gram: _Floats
    products: _Floats
    columns: _Floats
    targets: _Floats
    rows: int
    weight: float

class _LowRank(TypedDict):
    coefficients: _Floats
    intercepts: _Floats
    jitter: float
    hat: _Floats | None

class _System(TypedDict):
    points: tuple[_Rows, _Kernel]
    sums: _Sums
    alpha: float
    fit_intercept: bool

def low_rank_sums(
    x: _Rows,
    targets: tuple[_Floats, _Floats | None],
    points: tuple[_Rows, _Kernel],
    sums: _Sums | None,
    progress: ProgressCallback | None,
    n_jobs: int,
) -> _Sums: ...
def low_rank_solve(
    system: _System, x: _Rows | None, progress: ProgressCallback | None, n_jobs: int
) -> _LowRank: ...

class _IteratedSystem(TypedDict):
    points: tuple[_Rows, _Kernel]
    alpha: float
    fit_intercept: bool

class _IteratedLowRank(TypedDict):
    coefficients: _Floats
    intercepts: _Floats
    jitter: float
    products: int
    residual: float
    stop: str

def low_rank_cg(
    system: _IteratedSystem,
    x: _Rows,
    targets: tuple[_Floats, _Floats | None],
    stopping: _Stopping,
    progress: ProgressCallback | None,
    n_jobs: int,
) -> _IteratedLowRank: ...

@final
class Features:
    def __new__(
        cls, points: tuple[_Rows, _Kernel], progress: ProgressCallback | None, n_jobs: int
    ) -> Features: ...
    def of(self, x: _Rows, progress: ProgressCallback | None, n_jobs: int) -> _Floats: ...
    def coefficients(self, weights: _Floats, n_jobs: int) -> _Floats: ...

def select_points_by_kernel(
    x: _Rows,
    kernel: _Kernel,
    count: int,
    candidates: tuple[int, int] | None,
    progress: ProgressCallback | None,
    n_jobs: int,
) -> tuple[_Indices, _Floats]: ...

class _Iterative(TypedDict):
    coefficients: _Floats
    intercepts: _Floats
    diagonal: _Floats
    products: int
    residual: float
    stop: str

def least_squares_cg(
    problem: _Problem,
    alpha: float,
    stopping: _Stopping,
    points: tuple[int, int],
    progress: ProgressCallback | None,
    n_jobs: int,
) -> _Iterative: ...
def least_squares_bytes(n: int, single: bool, leave_one_out: bool) -> int: ...
def least_squares_inverse_bytes(n: int) -> int: ...
def least_squares_path_bytes(n: int, alphas: int) -> int: ...

class _LeastSquaresPath(_LeastSquares):
    best: int
    path: _Floats

def least_squares_path(
    problem: _Problem,
    alphas: list[float],
    spectrum: tuple[_Floats, _Floats] | None,
    by_rate: bool,
    progress: ProgressCallback | None,
    n_jobs: int,
) -> _LeastSquaresPath: ...

class _LinearWeights(TypedDict):
    weights: _Floats
    intercepts: _Floats
    products: int
    residual: float
    stop: str

def linear_least_squares_cg(
    problem: _Problem,
    alpha: float,
    stopping: _Stopping,
    progress: ProgressCallback | None,
    n_jobs: int,
) -> _LinearWeights: ...
