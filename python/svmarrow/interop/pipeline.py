"""The transformers of scikit-learn's pipelines as steps of `svmarrow.models.preparation`.

Transformers are recognized by class name along the method resolution order, as estimators are. A subclass
that transforms in its own way is refused.
"""

from __future__ import annotations

from collections import UserList
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from svmarrow._support.estimator import check_overrides, find_kind
from svmarrow._support.parameters import is_missing
from svmarrow.models.categories import Encode, Impute, Table
from svmarrow.models.preparation import Affine, Clip, Normalize, Parts, Step, chain

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["preparation"]

#: What to do with a step that has no place in a model.
_REMEDY = "apply it before the pipeline, keep the pipeline with skops, or export it with skl2onnx"


def preparation(transformers: Any, n_in: int) -> Step | None:
    """The steps of fitted transformers, one after the other, as one step.

    Parameters
    ----------
    transformers : sequence of (str, object)
        Names and fitted transformers; None and "passthrough" do nothing.
    n_in : int
        Columns of the first.

    Returns
    -------
    Step or None
        None where nothing is done.

    Raises
    ------
    TypeError
        For a transformer that is no list of numbers, by its name.
    ValueError
        For one whose settings are not taken.
    sklearn.exceptions.NotFittedError
        If one is not fitted.
    """
    steps: list[Step | None] = []
    for name, transformer in transformers:
        step = _step(name, transformer, n_in)
        steps.append(step)
        n_in = n_in if step is None else step.n_out
    return chain(steps)


def _step(name: str, transformer: Any, n_in: int) -> Step | None:
    if transformer is None or (isinstance(transformer, str) and transformer == "passthrough"):
        return None
    try:
        check_is_fitted(transformer)
    except NotFittedError:
        raise NotFittedError(f"step {name!r}, {transformer!r}, is not fitted yet: call fit first") from None
    remedy = f"it is step {name!r}; {_REMEDY}"
    if hasattr(transformer, "_preparation_step"):
        # A transformer of svmarrow.
        definer = next(kind for kind in type(transformer).__mro__ if "_preparation_step" in vars(kind))
        check_overrides(transformer, definer, remedy)
        step: Step = transformer._preparation_step()
        return step
    kind = find_kind(transformer, STEPS, remedy)
    if kind is not None:
        return STEPS[kind](name, transformer, n_in)
    raise TypeError(
        f"step {name!r} is a {type(transformer).__name__}, which has no place in a model of numbers alone: "
        f"svmarrow takes LearnedScaler, {', '.join(STEPS)}; {_REMEDY}"
    )


def _vector(value: Any, n: int, otherwise: float) -> NDArray[np.float64]:
    return np.full(n, otherwise) if value is None else np.asarray(value, dtype=np.float64)


def _standard(_: str, scaler: Any, n: int) -> Step:
    centre = scaler.mean_ if scaler.with_mean else None
    return Affine(_vector(centre, n, 0.0), _vector(scaler.scale_ if scaler.with_std else None, n, 1.0))


def _min_max(_: str, scaler: Any, n: int) -> Step | None:
    scale = 1.0 / _vector(scaler.scale_, n, 1.0)
    step = Affine(-scale * _vector(scaler.min_, n, 0.0), scale)
    return chain([step, Clip(n, *map(float, scaler.feature_range)) if scaler.clip else None])


def _max_abs(_: str, scaler: Any, n: int) -> Step | None:
    step = Affine(np.zeros(n), _vector(scaler.scale_, n, 1.0))
    return chain([step, Clip(n, -1.0, 1.0) if getattr(scaler, "clip", False) else None])


def _robust(_: str, scaler: Any, n: int) -> Step:
    return Affine(_vector(scaler.center_, n, 0.0), _vector(scaler.scale_, n, 1.0))


def _pca(_: str, pca: Any, n: int) -> Step:
    matrix = np.asarray(pca.components_.T, dtype=np.float64)
    if pca.whiten:
        deviation = np.sqrt(pca.explained_variance_)
        # A direction without variance, in the precision of the fit, is not blown up, as in scikit-learn.
        matrix = matrix / np.maximum(deviation, np.finfo(deviation.dtype).eps)
    return Affine(_vector(pca.mean_, n, 0.0), np.ones(n), np.ascontiguousarray(matrix))


def _svd(_: str, svd: Any, n: int) -> Step:
    matrix = np.ascontiguousarray(svd.components_.T, dtype=np.float64)
    return Affine(np.zeros(n), np.ones(n), matrix)


def _normalizer(_: str, normalizer: Any, n: int) -> Step:
    return Normalize(n, normalizer.norm)


def _imputer(name: str, imputer: Any, n: int) -> Step:  # noqa: ARG001 - the same arguments for all
    statistics = np.asarray(imputer.statistics_, dtype=object)
    missing = imputer.missing_values
    gap = is_missing(missing)
    empty = np.array([value is None or value != value for value in statistics])
    if empty.any():
        raise ValueError(
            f"step {name!r}: column {int(np.argmax(empty))} held nothing but gaps: leave it out, or use "
            "SimpleImputer(strategy='constant')"
        )
    values = tuple(value if isinstance(value, str) else _float(name, value) for value in statistics)
    flags = None
    if imputer.add_indicator:
        if imputer.indicator_.features != "missing-only":
            raise ValueError(f"step {name!r}: its indicator must have features='missing-only'")
        flags = np.asarray(imputer.indicator_.features_, dtype=np.int64)
    marker = None if gap else missing if isinstance(missing, str) else _float(name, missing)
    return Impute(values, marker, flags)


def _float(name: str, value: Any) -> float:
    """A number in double precision; a ValueError for one that has no place there."""
    number = float(value)
    if number != value:
        raise ValueError(
            f"step {name!r}: {value!r} is not a number of double precision, in which models see samples: "
            "use strings, or smaller numbers"
        )
    return number


def _without_gap(name: str, categories: Any) -> tuple[NDArray[Any], bool]:
    """Categories without the gap at their end, and whether there was one."""
    items = list(np.asarray(categories, dtype=object))
    has = [is_missing(value) for value in items]
    present = [value for value, gap in zip(items, has, strict=True) if not gap]
    if sum(has) > 1 or (any(has) and not has[-1]):
        raise ValueError("a column has two kinds of gaps (None and NaN) as categories: use one")
    if all(isinstance(value, str) for value in present):
        return np.array([str(value) for value in present], dtype=object), any(has)
    if any(isinstance(value, str) for value in present):
        raise ValueError("a column has strings and numbers as categories: use one kind")
    return np.array([_float(name, value) for value in present], dtype=np.float64), any(has)


def _one_hot(name: str, encoder: Any, n: int) -> Step:  # noqa: ARG001
    tables = []
    for number, given in enumerate(encoder.categories_):
        categories, _ = _without_gap(name, given)
        size = len(given)
        infrequent = getattr(encoder, "_infrequent_indices", [None] * (number + 1))[number]
        target = np.arange(size)
        columns = size
        is_shared = infrequent is not None and len(infrequent) > 0
        if is_shared:
            # Rare categories share one column, behind those of the others.
            frequent = np.setdiff1d(target, infrequent)
            target = np.full(size, frequent.size)
            target[frequent] = np.arange(frequent.size)
            columns = frequent.size + 1
        numbers = np.eye(columns)[target]
        unknown = np.zeros(columns)
        if encoder.handle_unknown in ("infrequent_if_exist", "warn") and is_shared:
            unknown[-1] = 1.0
        dropped = None if encoder.drop_idx_ is None else encoder.drop_idx_[number]
        if dropped is not None:
            numbers, unknown = (np.delete(part, target[dropped], axis=-1) for part in (numbers, unknown))
        tables.append(Table(categories, numbers, None if encoder.handle_unknown == "error" else unknown))
    return Encode(tuple(tables), bool(encoder.sparse_output))


def _ordinal(name: str, encoder: Any, n: int) -> Step:  # noqa: ARG001
    if any(part is not None for part in getattr(encoder, "_infrequent_indices", ())):
        raise ValueError(
            f"step {name!r}: an OrdinalEncoder with max_categories or min_frequency is not taken"
        )
    tables = []
    for given in encoder.categories_:
        categories, gap = _without_gap(name, given)
        numbers = np.arange(len(given), dtype=np.float64)[:, None]
        # None is a category like others: it is NaN that has a number of its own.
        if gap and given[-1] is not None:
            numbers[-1] = encoder.encoded_missing_value
        unknown = None
        if encoder.handle_unknown == "use_encoded_value":
            unknown = np.array([float(encoder.unknown_value)])
        tables.append(Table(categories, numbers, unknown))
    return Encode(tuple(tables))


def _column_transformer(name: str, transformer: Any, n: int) -> Step:
    names = list(getattr(transformer, "feature_names_in_", ()))
    columns, steps = [], []
    compact = bool(transformer.sparse_output_)
    for inner, one, given in transformer.transformers_:
        if isinstance(one, str) and one == "drop":
            continue
        chosen_columns = _columns(given, names, n)
        if chosen_columns.size == 0:
            continue
        weight = (transformer.transformer_weights or {}).get(inner)
        step = _step(f"{name}__{inner}", one, chosen_columns.size)
        columns.append(chosen_columns)
        steps.append(_weighted(step, chosen_columns.size, weight))
    return Parts(n, tuple(columns), tuple(steps if compact else map(_dense, steps)))


def _union(name: str, union: Any, n: int) -> Step:
    every = np.arange(n)
    steps = []
    for inner, one in union.transformer_list:
        if isinstance(one, str) and one == "drop":
            continue
        weight = (union.transformer_weights or {}).get(inner)
        steps.append(_weighted(_step(f"{name}__{inner}", one, n), n, weight))
    return Parts(n, tuple(every for _ in steps), tuple(steps))


def _weighted(step: Step | None, n_in: int, weight: float | None) -> Step | None:
    if weight is None:
        return step
    n = n_in if step is None else step.n_out
    return chain([step, Affine(np.zeros(n), np.full(n, 1.0 / weight))])


def _dense(step: Step | None) -> Step | None:
    """The step with dense rows: a ColumnTransformer makes mostly filled ones dense."""
    if isinstance(step, Encode):
        return Encode(step.tables)
    steps = getattr(step, "steps", None)
    if steps is not None and not isinstance(step, Parts):
        return chain(map(_dense, steps))
    return step


def _columns(given: Any, names: list[Any], n: int) -> NDArray[np.int64]:
    """Numbers of columns as a ColumnTransformer is given them: names, numbers, a slice, a mask."""
    if isinstance(given, slice):
        ends = [names.index(end) if isinstance(end, str) else end for end in (given.start, given.stop)]
        # A slice of names has its last.
        stop = ends[1] + 1 if isinstance(given.stop, str) else ends[1]
        return np.arange(n)[slice(ends[0], stop, given.step)]
    # scikit-learn before 1.7 has a list of remaining columns that warns if it is read.
    given = given.data if isinstance(given, UserList) else given
    items = np.atleast_1d(np.asarray(given, dtype=object))
    if items.size and all(isinstance(item, (bool, np.bool_)) for item in items):
        return np.flatnonzero(items.astype(bool)).astype(np.int64)
    found = [names.index(item) if isinstance(item, str) else int(item) % n for item in items]
    return np.array(found, dtype=np.int64)


def _pipeline(name: str, pipeline: Any, n: int) -> Step | None:
    return preparation([(f"{name}__{inner}", one) for inner, one in pipeline.steps], n)


def _selector(_: str, selector: Any, n: int) -> Step:
    return Parts(n, (np.flatnonzero(selector.get_support()).astype(np.int64),), (None,))


def _function(name: str, transformer: Any, n: int) -> None:  # noqa: ARG001
    if transformer.func is not None:
        raise TypeError(
            f"step {name!r} calls a Python function, {transformer.func!r}, and models hold no code: {_REMEDY}"
        )


#: scikit-learn's transformers by their names: none of their modules is imported for it.
STEPS: dict[str, Callable[[str, Any, int], Step | None]] = {
    "StandardScaler": _standard,
    "MinMaxScaler": _min_max,
    "MaxAbsScaler": _max_abs,
    "RobustScaler": _robust,
    "PCA": _pca,
    "TruncatedSVD": _svd,
    "Normalizer": _normalizer,
    "SimpleImputer": _imputer,
    "OneHotEncoder": _one_hot,
    "OrdinalEncoder": _ordinal,
    "ColumnTransformer": _column_transformer,
    "FeatureUnion": _union,
    "Pipeline": _pipeline,
    "SelectorMixin": _selector,
    "FunctionTransformer": _function,
}
