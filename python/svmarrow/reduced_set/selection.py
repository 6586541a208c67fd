"""Settings of the selections of vectors."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
import scipy.linalg

from svmarrow import _core
from svmarrow._support.parameters import (
    Rule,
    boolean,
    check,
    either,
    integer,
    none,
    one_of,
    real,
    refuse,
)
from svmarrow._support.rows import one_blas_thread
from svmarrow._support.schemas import savable
from svmarrow._support.training import refuse_beyond_memory
from svmarrow.expansion.points import bytes_of_features, factor_points, has_only_values
from svmarrow.reduced_set.score import rows_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion

__all__ = ["PURSUITS", "SelectionSettings", "bytes_of_selection", "selection_of"]

#: The methods that add one vector in each step. The first two are those of `compression_path`.
PURSUITS = ("backfit", "prefit", "basic")
#: Maximum number of samples on which the functions of a sum are compared, in all or for each function.
_MIN_ROWS_OF_SUM, _ROWS_PER_FUNCTION = 5_000, 4
#: Names of methods in the extension module, where they differ.
CORE_METHODS = {"backfit": "pursuit"}
#: Values of the settings of `svmarrow.papers.reduced_set` for all other selections, which do not read them.
PAPER_DEFAULTS = {"inverse_weights": False, "cost": None, "refit": True, "max_change": None, "penalty": None}


@savable("selection-settings/1")
@dataclass(frozen=True)
class SelectionSettings:
    """Settings of every method that selects vectors, all except ``"gradient"``.

    A method refuses a setting that it does not read, unless it has its default.

    Parameters
    ----------
    joint : bool, default=True
        All outputs choose their vectors together (TR-132, equations 12 and 13); False lets each output choose
        for itself (algorithm 3.2), and the model has the union. The coefficients of every size are then the
        best on the union for all outputs. Not for ``"rank"``.
    rank_tolerance : float, default=1e-12
        For ``"rank"``: squared distance from the span of the chosen vectors, relative to the largest
        k(z, z), up to which a vector counts as inside.
    criterion : {"norm", "predictions"}, default="norm"
        What the pursuits make small: ``"norm"`` the distance to the model in feature space, ``"predictions"``
        the mean squared difference of the outputs on the samples of `X`, or without `X` on the model's own
        vectors (TR-132, before equation 11). The latter takes kernels that are not positive semidefinite too,
        and costs a kernel value for every sample and candidate at each step.
    sample : int, default=None
        For the pursuits: number of random candidates that each step compares, instead of all (TR-132,
        "probabilistic search"). 59 have one of the best 5 % among them with probability 0.95, because 0.95 **
        59 < 0.05.
    chunk : int, default=None
        Number of vectors to choose from at a time, at least twice the number to keep; the last choice is
        among what the chunks have kept (TR-132, section 3.6). None takes all vectors together where
        `max_memory` allows it, else chunks of 4096, or twice the number to keep if that is more.
    max_memory : float, default=2000
        Megabytes that a selection may take beside the model. ``"rank"`` holds a kernel matrix, 8 bytes for
        every pair of vectors; a pursuit 8 bytes for every candidate and vector kept.
    """

    _rules: ClassVar[Mapping[str, Rule]] = {
        "joint": boolean,
        "rank_tolerance": real(least=0.0),
        "criterion": one_of("norm", "predictions"),
        "sample": either(none, integer(least=1)),
        "chunk": either(none, integer(least=4)),
        "max_memory": real(above=0.0),
    }
    #: The methods that read a setting; the others refuse a value that is not the default.
    _readers: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **dict.fromkeys(("joint", "criterion", "sample"), ("backfit", "prefit")),
        "rank_tolerance": ("rank",),
    }

    joint: bool = True
    rank_tolerance: float = 1e-12
    criterion: Literal["norm", "predictions"] = "norm"
    sample: int | None = None
    chunk: int | None = None
    max_memory: float = 2000.0

    def __post_init__(self) -> None:
        check(asdict(self), self._rules)

    def _for_method(self, _method: str, /) -> SelectionSettings:
        """Return the settings with the values that depend on the method."""
        return self


def selection_of(settings: object, method: str) -> SelectionSettings:
    """The settings for a method; None stands for the defaults."""
    if settings is None:
        return SelectionSettings()
    if not isinstance(settings, SelectionSettings):
        raise refuse("settings", settings, "None or a SelectionSettings")
    for field in fields(settings):
        value, readers = getattr(settings, field.name), settings._readers.get(field.name)
        if readers is not None and method not in readers and value != field.default:
            names = ", ".join(repr(name) for name in readers)
            raise ValueError(
                f"{field.name}={value!r} is of no use for method={method!r}: it is read by {names}"
            )
    return settings


def as_arguments(settings: SelectionSettings, method: str) -> dict[str, Any]:
    """The method and its settings as the extension module takes them."""
    values = asdict(settings._for_method(method))
    given = PAPER_DEFAULTS | {name: value for name, value in values.items() if name != "criterion"}
    return given | {"gamma": given.pop("max_change"), "method": CORE_METHODS.get(method, method)}


def bytes_of_selection(q: int, pool: Any, compared: Any, given: Mapping[str, Any]) -> int:
    """Bytes of a selection from a pool for q outputs; `compared` are samples to compare predictions on."""
    count = int(pool.shape[0])
    needed = _core.estimate_selection_memory(count, q, dict(given))
    if compared is not None:
        room = int(given["max_memory"] * 1e6 / 2)
        values = 8 * int(compared.shape[0]) * count
        needed += (values if values <= room else 0) + 8 * int(compared.shape[0]) * (q + 24)
    # Packed in double precision, and once as they are.
    return int(needed + 2 * 8 * np.prod(pool.shape, dtype=float))


def refuse_selection(method: str, needed: int) -> None:
    """Raise a MemoryError if a selection takes more memory than is available."""
    remedy = (
        "keep fewer vectors (n_vectors), compare few candidates in each step (sample=59 of the settings), "
        "or take the vectors in chunks (chunk=1000 of the settings)"
    )
    refuse_beyond_memory(f"compression by method={method!r}", needed, remedy)


class Features(NamedTuple):
    """Rows of numbers that stand for the vectors of a model where one kernel of rows does not."""

    #: Features of the model's vectors (m, r), whose inner products are compared.
    lines: NDArray[np.float64]
    #: From samples to their features; None where inner products compare predictions on samples already.
    of: Callable[[Any], NDArray[np.float64]] | None


def has_fixed_vectors(expansion: KernelExpansion) -> bool:
    """Returns whether vectors can be selected only: no numbers that move, or a kernel of its own for each."""
    return len(expansion.parts) > 1 or has_only_values(expansion.kernel)


def features_of(model: Any, X: Any) -> Features | None:
    """Features of the model's vectors if it has not one kernel that the extension module knows; else None.

    Parameters
    ----------
    model : ExpansionModel or KernelExpansion
        The model.
    X : array-like or None
        For a precomputed kernel all its training samples (n_train, n_train); for a sum of several kernels
        samples to compare predictions on, None for the vectors of the model.

    Raises
    ------
    ValueError
        If X does not have the kernel values between the vectors, or the kernel is not symmetric.
    numpy.linalg.LinAlgError
        If the kernel is not positive semidefinite.
    """
    expansion: KernelExpansion = model.expansion_
    if len(expansion.parts) > 1:
        return _features_of_sum(model, X)
    if not has_only_values(expansion.kernel) or not expansion.n_vectors:
        return None
    rows = None
    if not callable(expansion.kernel):
        if X is not None:
            rows = rows_for(model, X)
        if rows is None or rows.shape[0] != rows.shape[1]:
            shape = None if rows is None else rows.shape
            raise ValueError(
                f"X has shape {shape}: kernel='precomputed' needs the kernel matrix of all training samples, "
                "(n_train, n_train), since the model does not hold the kernel values between its vectors"
            )
    needed = bytes_of_features(expansion.n_vectors, 0)
    refuse_beyond_memory("compress", needed, "compress a model of fewer vectors")
    factored = factor_points(expansion.kernel, expansion.vectors, rows)
    return Features(factored.lines, factored.features.of)


def _features_of_sum(model: Any, X: Any) -> Features:
    """Features by whose inner products the functions of a sum are compared as they predict samples.

    Functions of different kernels have no inner product in one feature space. Those of their values on n
    samples, (g_i, g_j) = sum_k g_i(x_k) g_j(x_k) / n (Weston and Bakir 2004, before equation 11), are the
    inner products of the columns of R in the factorization Q R of the values.
    """
    expansion: KernelExpansion = model.expansion_
    m = expansion.n_vectors
    rows = expansion.vectors if X is None else rows_for(model, X)
    limit = max(_MIN_ROWS_OF_SUM, _ROWS_PER_FUNCTION * m)
    if rows.shape[0] > limit:
        rows = rows[np.linspace(0, rows.shape[0] - 1, limit).round().astype(np.intp)]
    refuse_beyond_memory("compress", 16 * rows.shape[0] * m, "give fewer samples X")
    values = expansion._kernel_values(rows, np.arange(m)) / np.sqrt(rows.shape[0])
    with one_blas_thread():
        triangle = scipy.linalg.qr(values, mode="r", overwrite_a=True, check_finite=False)[0][:m]
    return Features(np.ascontiguousarray(triangle.T), None)
