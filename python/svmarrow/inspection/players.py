"""Which player of a game each column of the kernel belongs to.

Players are the columns that a user passes, or groups of them. Behind the preparation of a pipeline a column
may have become several (one-hot columns of a category) or stayed one (scaled); a map that mixes columns has
no players.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from svmarrow._support.parameters import refuse
from svmarrow.models.categories import Encode, Impute
from svmarrow.models.piecewise import PiecewiseLinear
from svmarrow.models.preparation import Affine, Chain, Clip, Parts, Step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Players", "players_of"]


class Players(NamedTuple):
    """The players of a game.

    Attributes
    ----------
    names : list of str
        One for each player.
    columns : list of ndarray of int64
        The input columns of each player.
    of_kernel_column : ndarray of int64 of shape (d,)
        The player of each column that the kernel sees.
    """

    names: list[str]
    columns: list[NDArray[np.int64]]
    of_kernel_column: NDArray[np.int64]


def _origins(step: Step) -> NDArray[np.int64]:
    """The input column of each output column of a step."""
    if isinstance(step, Chain):
        origins = np.arange(step.n_in)
        for part in step.steps:
            origins = origins[_origins(part)]
        return origins
    if isinstance(step, Parts):
        blocks = [
            taken if part is None else taken[_origins(part)]
            for taken, part in zip(step.columns, step.steps, strict=True)
        ]
        return np.concatenate(blocks).astype(np.int64)
    if isinstance(step, Impute):
        flags = np.empty(0, dtype=np.int64) if step.flags is None else step.flags
        return np.concatenate([np.arange(step.n_in), flags])
    if isinstance(step, Encode):
        return np.repeat(np.arange(step.n_in), [table.numbers.shape[1] for table in step.tables])
    if isinstance(step, (Clip, PiecewiseLinear)) or (isinstance(step, Affine) and step.matrix is None):
        return np.arange(step.n_in)
    if isinstance(step, Affine) and step.matrix is not None and (np.count_nonzero(step.matrix, 0) <= 1).all():
        sources: NDArray[np.int64] = np.abs(step.matrix).argmax(axis=0)
        return sources
    raise ValueError(
        f"model: its pipeline mixes columns ({step!r}, such as PCA or a Normalizer), so that the kernel "
        "sees no column by itself; explain the part of the pipeline behind that step, on its output columns"
    )


def players_of(
    step: Step | None,
    n_columns: int,
    names: Sequence[Any] | None,
    groups: Mapping[str, Sequence[Any]] | None,
) -> Players:
    """The players of a model with `n_columns` input columns, behind the preparation `step`.

    Raises
    ------
    ValueError
        If a step mixes columns, or a group names a column that is not there or is in another group already.
    """
    columns = [f"x{i}" for i in range(n_columns)] if names is None else [str(name) for name in names]
    player = np.full(n_columns, -1)
    labels: list[str] = []
    if groups is not None and not isinstance(groups, Mapping):
        raise refuse("groups", groups, "None or a dict of the name of each group to its columns")
    for label, members in ({} if groups is None else groups).items():
        if isinstance(members, str) or not isinstance(members, Iterable):
            raise refuse("groups", {label: members}, "a list of columns for each group")
        places = [_place(member, columns, n_columns) for member in members]
        if not places:
            raise refuse("groups", {label: members}, "at least one column in each group")
        for place in places:
            if player[place] >= 0:
                raise refuse(
                    "groups", {label: members}, f"disjoint: column {columns[place]!r} is in two groups"
                )
            player[place] = len(labels)
        labels.append(str(label))
    for place in np.flatnonzero(player < 0).tolist():
        player[place] = len(labels)
        labels.append(columns[place])
    origins = np.arange(n_columns) if step is None else _origins(step)
    return Players(labels, [np.flatnonzero(player == k) for k in range(len(labels))], player[origins])


def _place(member: Any, columns: list[str], n_columns: int) -> int:
    if isinstance(member, str):
        if columns.count(member) == 1:
            return columns.index(member)
    elif isinstance(member, (int, np.integer)) and not isinstance(member, bool) and 0 <= member < n_columns:
        return int(member)
    raise refuse("groups", member, f"the name of one column or its number, from 0 to {n_columns - 1}")
