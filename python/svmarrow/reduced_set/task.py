"""What a compression is asked for, and the path of sizes that answers it: one door to all methods."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from svmarrow import _core
from svmarrow._support.decoding import label_indices
from svmarrow._support.kinds import check_kinds
from svmarrow._support.memory import refuse_beyond_memory
from svmarrow._support.parameters import (
    MAX_TIME,
    RANDOM_STATE,
    Rule,
    check,
    either,
    integer,
    none,
    one_of,
    real,
    refuse,
    seed_of,
)
from svmarrow._support.rows import core_rows, threads
from svmarrow.interop.convert import as_expansion, without_manners
from svmarrow.models.classifier import ExpansionClassifier
from svmarrow.models.detector import ExpansionDetector
from svmarrow.reduced_set.construction import GradientSettings, answers_of, construct, stages
from svmarrow.reduced_set.gradient_path import GradientPath
from svmarrow.reduced_set.memory import bytes_of_moving, bytes_of_selection, refuse_selection
from svmarrow.reduced_set.path import CompressionPath
from svmarrow.reduced_set.score import (
    CLASSES,
    NUMBERS,
    decides,
    loss_weights,
    numbers_for,
    rows_for,
    without_kind,
)
from svmarrow.reduced_set.selection import PURSUITS, SelectionSettings, as_arguments, selection_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from svmarrow._support.progress import ProgressCallback
    from svmarrow.expansion.kernel_expansion import KernelExpansion

__all__ = ["METHODS", "RULES", "ConstantModelError", "Method", "Task", "path_of", "pursuit_of"]

METHODS = ("pursuit", "prefit", "basic", "rank", "l0", "l1", "lars", "gradient")
Method: TypeAlias = Literal["pursuit", "prefit", "basic", "rank", "l0", "l1", "lars", "gradient"]
RULES = {
    "n_vectors": either(none, integer(least=1)),
    "method": one_of(*METHODS),
    "candidates": one_of("vectors", "rows"),
    "tol": Rule("a number at least 0 and below 1", lambda v: real(least=0.0).holds(v) and float(v) < 1.0),
    "random_state": RANDOM_STATE,
    "max_time": MAX_TIME,
}
DEFAULT_PATH = 1000
"""Largest size of a path where `n_vectors` is not given."""


class ConstantModelError(ValueError):
    """The model is the same everywhere: no vector has a part in it."""


class Task(NamedTuple):
    """What a compression is asked for, see `svmarrow.compress`."""

    model: Any
    n_vectors: int | None
    X: Any = None
    y: Any = None
    method: str = "pursuit"
    candidates: str = "vectors"
    tol: float = 1e-5
    settings: Any = None
    random_state: int | np.random.RandomState | None = None
    max_time: float | None = None
    n_jobs: int | None = None
    scoring: str | None = None
    sample_weight: Any = None

    def counts_alike(self, whole: Any) -> bool:
        """Whether each row may count as one where labels are learnt.

        Not if the model was trained with weights or a weighted loss is asked for. Where it is not known how
        it was trained, accuracy must be asked for.
        """
        if self.sample_weight is not None or self.scoring == "balanced_accuracy":
            return False
        weighted = getattr(whole, "weighted", False)
        return weighted is False or (weighted is None and self.scoring is not None)


def path_of(task: Task, progress: ProgressCallback | None, *, every_size: bool) -> Any:
    """The path of a task; where not every size is wanted, ``"gradient"`` makes the largest alone."""
    check({name: getattr(task, name) for name in RULES}, RULES)
    whole = as_expansion(task.model)
    if task.method == "gradient":
        return _made(task, whole, progress, every_size=every_size)
    return _chosen(task, whole, progress)


def pursuit_of(task: Task, progress: ProgressCallback | None, *, every_size: bool = True) -> Any:
    """The path of a pursuit, for any kernel.

    One that is not positive semidefinite on the vectors has no distances to choose by: outputs are compared.
    """
    try:
        return path_of(task, progress, every_size=every_size)
    except np.linalg.LinAlgError:
        settings = replace(task.settings or SelectionSettings(), criterion="predictions")
        return path_of(task._replace(settings=settings), progress, every_size=every_size)


def _made(task: Task, whole: Any, progress: ProgressCallback | None, *, every_size: bool) -> GradientPath:
    if task.n_vectors is None:
        raise ValueError("method='gradient' makes vectors: give n_vectors, the largest number of them")
    if task.candidates != "vectors":
        raise ValueError(
            f"candidates={task.candidates!r} has no meaning for method='gradient', which makes vectors"
        )
    source = without_manners(whole)
    expansion = without_kind(source)
    if expansion.n_vectors == 0:
        raise ConstantModelError(f"{source!r} is constant: there is nothing to compress")
    chosen = GradientSettings() if task.settings is None else task.settings
    if not isinstance(chosen, GradientSettings):
        raise refuse("settings", chosen, "None or a GradientSettings")
    _refuse_unknown_values(expansion)
    check_scoring(whole, task.scoring, task.y)
    for name in ("y", "sample_weight"):
        if task.X is None and getattr(task, name) is not None:
            raise ValueError(f"{name} is given without X")
    rows: Any = None
    labels = answers = None
    learns = task.y is None or task.counts_alike(whole)
    if not learns and chosen.needs_labels:
        if task.sample_weight is not None or task.scoring is not None or whole.weighted:
            raise _refuse_labels(chosen, task)
        learns = True
    if task.X is not None:
        rows = rows_for(whole, task.X)
        loss_weights(np.empty(rows.shape[0]), None, task.sample_weight)  # refuses what is wrong
        if isinstance(source, ExpansionClassifier):
            known = None if task.y is None else _labels(source, task.y, rows)
            labels = known if learns else None
        elif task.y is not None and isinstance(whole, ExpansionDetector):
            raise ValueError(
                "y is of no use for method='gradient' of a detector: vectors learn from its outputs"
            )
        elif task.y is not None and learns:
            answers = answers_of(source, chosen, task.y, rows)
    available = int((expansion.vectors if rows is None else rows).shape[0])
    size = min(task.n_vectors, available)

    needed = bytes_of_moving(expansion.n_outputs, expansion.vectors if rows is None else rows, size, chosen)
    refuse_beyond_memory(
        "compress(method='gradient')", needed, "make fewer vectors (n_vectors) from fewer rows"
    )

    def select(method: str, count: int, max_time: float | None) -> Any:
        start = Task(source, min(count, expansion.n_vectors), method=method)
        start = start._replace(max_time=max_time, n_jobs=task.n_jobs)
        return _chosen(start, source, progress).vectors

    models = construct(
        source,
        stages(chosen, size, path=every_size),
        select=select,
        rows=rows,
        labels=labels,
        answers=answers,
        settings=chosen,
        random_state=task.random_state,
        max_time=task.max_time,
        n_jobs=task.n_jobs,
        progress=progress,
    )
    if source is not whole:
        models = {size: whole.with_expansion(made) for size, made in models.items()}
    return GradientPath(whole, models, task.n_jobs)


def _chosen(task: Task, whole: Any, progress: ProgressCallback | None) -> CompressionPath:
    source = without_manners(whole)
    expansion = without_kind(source)
    _refuse_unknown_values(expansion)
    method, candidates = task.method, task.candidates
    chosen = selection_of(task.settings, method)
    by_predictions = chosen.criterion == "predictions"
    rows, tuning = _tuning(whole, task, own=candidates == "vectors" and not by_predictions)
    pool = expansion.vectors if candidates == "vectors" else rows
    if not np.any(expansion.coefficients):
        raise ConstantModelError(f"{source!r} is constant: there is nothing to compress")
    given = as_arguments(chosen) | {
        "method": method,
        "max_vectors": min(task.n_vectors or DEFAULT_PATH, int(pool.shape[0])),
        "tolerance": float(task.tol),
        "seed": 0 if chosen.sample is None else seed_of(task.random_state),
        "max_time": task.max_time,
    }
    jobs, compared = threads(task.n_jobs), None
    if by_predictions:
        compared = expansion.vectors if rows is None else rows
    refuse_selection(method, bytes_of_selection(expansion.n_outputs, pool, compared, given))
    if method not in PURSUITS and candidates != "vectors":
        raise ValueError(f"candidates={candidates!r} is for the pursuits only: method={method!r}")
    try:
        if method in PURSUITS:
            rivals = None if candidates == "vectors" else core_rows(pool)
            compared = None if compared is None else core_rows(compared)
            path = _core.pursuit(expansion.core_parts, rivals, compared, given, progress, jobs)
        else:
            path = _core.select_vectors(expansion.core_parts, given, progress, jobs)
    except np.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(
            f"method={method!r}: {error}. method='auto' and method='gradient' take such a kernel, and "
            "'pursuit', 'prefit' and 'basic' with settings=SelectionSettings(criterion='predictions')"
        ) from None
    if len(path["order"]) == 0:
        raise _nothing_chosen(source, chosen, path["stop"], task.max_time)
    if path["stop"] == "max_time":
        warnings.warn(
            f"compression ended early (max_time) with {len(path['order'])} vectors",
            ConvergenceWarning,
            stacklevel=4,
        )
    return CompressionPath(whole, pool[path["order"]], path, tuning, task.n_jobs)


def _nothing_chosen(
    source: object, settings: SelectionSettings, stop: str, max_time: float | None
) -> ValueError:
    if stop == "max_time" and max_time is not None:
        return ValueError(f"max_time={max_time:g} was over before the first vector was chosen")
    for name in ("gamma", "penalty"):
        value = getattr(settings, name)
        if value is not None:
            return refuse(name, value, "small enough for a vector to be left")
    return ConstantModelError(f"{source!r} is constant: there is nothing to compress")


def _refuse_unknown_values(expansion: KernelExpansion) -> None:
    if callable(expansion.kernel):
        raise ValueError(f"kernel={expansion.kernel!r} cannot be compressed: it must be a built-in kernel")
    if expansion.kernel == "precomputed":
        raise ValueError(
            "kernel='precomputed' cannot be compressed: the model does not hold the kernel values "
            "between its vectors"
        )


def check_scoring(whole: Any, scoring: str | None, y: Any) -> None:
    """Refuses a measure that does not fit the model, or has no labels to look at."""
    check({"scoring": scoring}, {"scoring": either(none, CLASSES if decides(whole) else NUMBERS)})
    if scoring is not None and y is None:
        raise ValueError(f"scoring={scoring!r} needs labels or numbers y")


def _refuse_labels(settings: GradientSettings, task: Task) -> ValueError:
    hinge = settings.loss in ("hinge", "squared_hinge")
    name, value = ("loss", settings.loss) if hinge else ("label_weight", settings.label_weight)
    why = "the model was trained with weights"
    if task.sample_weight is not None:
        why = "sample_weight is given"
    elif task.scoring is not None:
        why = f"scoring={task.scoring!r} is asked for"
    remedy = "'agreement' or 'matching'" if hinge else "None or 0"
    return refuse(name, value, f"{remedy}, since labels count alike there, and {why}")


def _tuning(whole: Any, task: Task, *, own: bool) -> tuple[Any, tuple[Any, NDArray[Any], Any] | None]:
    """Validated rows, and with what the thresholds of each size are set: rows, labels or numbers, weights.

    Thresholds of a model that was trained with weights stay. Those of one of which that is not known are set
    for its own answers, which have the weights in them, as where there are no labels; but not where the rows
    have another use.
    """
    check_scoring(whole, task.scoring, task.y)
    if task.X is None:
        for name in ("y", "sample_weight"):
            if getattr(task, name) is not None:
                raise ValueError(f"{name} is given without X")
        if task.candidates == "rows":
            raise ValueError("candidates='rows' needs X, the rows to choose from")
        return None, None
    rows = rows_for(whole, task.X)
    known = None if task.y is None else _targets(whole, task.y, rows)
    weighted = getattr(whole, "weighted", False)
    if weighted:
        loss_weights(np.empty(rows.shape[0]), None, task.sample_weight)  # refuses what is wrong
        return rows, None
    if known is not None and (
        weighted is False or task.scoring is not None or task.sample_weight is not None
    ):
        return rows, _counted(rows, known, loss_weights(known, task.scoring, task.sample_weight))
    if not own:
        return rows, None
    outputs: NDArray[Any] = without_kind(whole)._evaluate(rows, task.n_jobs)
    if isinstance(whole, ExpansionClassifier):
        outputs = whole.decode(outputs).astype(np.int64)
    elif isinstance(whole, ExpansionDetector):
        outputs = whole.inside(outputs)
    return rows, _counted(rows, outputs, loss_weights(outputs, None, task.sample_weight))


def _counted(
    rows: Any, targets: NDArray[Any], weights: NDArray[np.float64] | None
) -> tuple[Any, NDArray[Any], NDArray[np.float64] | None]:
    """The rows of positive weight."""
    if weights is None or weights.all():
        return rows, targets, weights
    kept = np.flatnonzero(weights)
    return rows[kept], targets[kept], weights[kept]


def _targets(whole: Any, y: ArrayLike, rows: Any) -> NDArray[Any]:
    """Labels as numbers of classes, 1 and -1 for a detector, or numbers."""
    if isinstance(whole, ExpansionClassifier):
        return _labels(whole, y, rows)
    check_kinds(y=y)
    if isinstance(whole, ExpansionDetector):
        inside = np.asarray(y)
        if inside.shape != (rows.shape[0],) or not np.isin(inside, (-1, 1)).all():
            raise ValueError(f"y of a detector is 1 or -1 for each of {rows.shape[0]} rows")
        return inside.astype(np.int64)
    return numbers_for(whole, y, rows)


def _labels(source: ExpansionClassifier, y: ArrayLike, rows: Any) -> NDArray[np.int64]:
    check_kinds(y=y)
    labels = np.asarray(y)
    if labels.shape != (rows.shape[0],):
        raise ValueError(f"X and y disagree: X has {rows.shape[0]} rows, y has shape {labels.shape}")
    indices = label_indices(labels, source.classes_)
    if (indices < 0).any():
        unknown = np.unique(labels[indices < 0])[:3].tolist()
        raise ValueError(f"y holds labels that the model does not know, such as {unknown}")
    return indices
