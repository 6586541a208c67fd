"""The samples that a compression learns from, and those that it holds out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from svmarrow._support.parameters import seed_of
from svmarrow._support.rows import sample_weights

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["Samples", "split_samples"]

HOLDOUT_FRACTION, MAX_HOLDOUT_SAMPLES = 0.5, 20_000
"""Fraction of the samples that are held out where no others are given, and the maximum of them."""


class Samples(NamedTuple):
    """Samples with what is known of them."""

    X: Any
    y: Any = None
    weights: Any = None

    def part(self, chosen: Any) -> Samples:
        """Some of the samples."""
        return Samples(
            _safe_indexing(self.X, chosen),
            None if self.y is None else _safe_indexing(np.asarray(self.y), chosen),
            None if self.weights is None else self.weights[chosen],
        )


def split_samples(
    samples: Samples,
    validation: tuple[Any, ...] | None,
    *,
    hold_out: bool,
    labels: Callable[[], Any] | None,
    random_state: int | np.random.RandomState | None,
) -> tuple[Samples, Samples | None]:
    """Samples to learn from, and samples to measure the loss on where there are any.

    The latter are `validation`, else half of the samples if `hold_out`: half of each class if a function
    returns `labels` of all samples, which is called only then. A ValueError if X and y disagree.
    """
    X, y, weights = samples
    if X is None and y is not None:
        raise ValueError("y is given without X: give X too, or validation=(X, y)")
    if weights is not None:
        if X is None:
            raise ValueError("sample_weight is given without X: give X, or no weights")
        if validation is not None and len(validation) == 2:
            raise ValueError(
                "sample_weight is given without weights of the samples held out: give "
                "validation=(X, y, sample_weight)"
            )
        samples = Samples(X, y, sample_weights(weights, _num_samples(X)))
    if validation is not None:
        return samples, Samples(*validation)
    if X is None or not hold_out:
        return samples, None
    n = _num_samples(X)
    if n < 2:
        raise ValueError(f"X has {n} samples: at least 2 are needed, to learn from and to hold out")
    if y is not None and _num_samples(y) != n:
        raise ValueError(f"X and y disagree: X has {n} samples, y has {_num_samples(y)}")
    n_held = min(int(HOLDOUT_FRACTION * n), MAX_HOLDOUT_SAMPLES)
    is_held = _drawn(n, n_held, None if labels is None else labels(), random_state)
    return samples.part(np.flatnonzero(~is_held)), samples.part(np.flatnonzero(is_held))


def _drawn(
    n: int, n_held: int, y: Any, random_state: int | np.random.RandomState | None
) -> NDArray[np.bool_]:
    """The mask of `n_held` of n samples, drawn from each class of y by its share."""
    order = np.random.default_rng(0 if random_state is None else seed_of(random_state)).permutation(n)
    if y is not None and np.ndim(y) == 1:
        order = order[np.argsort(_class_numbers(y)[order], kind="stable")]
    steps = np.arange(n + 1) * n_held // n
    is_held = np.zeros(n, dtype=bool)
    is_held[order[np.diff(steps) > 0]] = True
    return is_held


def _class_numbers(y: Any) -> NDArray[np.intp]:
    """A number for each label, of any types."""
    numbers: dict[Any, int] = {}
    labels = np.asarray(y).tolist()
    return np.array([numbers.setdefault(label, len(numbers)) for label in labels], dtype=np.intp)
