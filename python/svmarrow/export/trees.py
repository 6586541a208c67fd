"""A tree of local expansions as an exported program walks it.

An inner node compares w'x with theta |x|, where |x| counts as 1 for a sample of zeros. A leaf has a run of
*members*: places of vectors with a coefficient for each output.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow.expansion.expansion_tree import ExpansionTree
from svmarrow.export.rounding import LoopOutputs

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion

__all__ = ["TreeOutputs", "TreeTables", "loop_outputs", "tree_tables"]

_LEAF, _LINEAR = 0, 1


@dataclass(frozen=True)
class TreeTables:
    """The arrays of a program.

    Attributes
    ----------
    directions : ndarray of shape (n_inner, n_columns)
        w of each inner node.
    thresholds : ndarray of shape (n_inner,)
        theta of each inner node.
    children : ndarray of int64 of shape (n_inner, 2)
        Left child, where w'x > theta |x|, and right child: an inner node i is i, a leaf l is -1 - l.
    depth : int
        Maximum number of inner nodes of a path.
    starts : ndarray of int64 of shape (n_leaves + 1,)
        First member of each leaf.
    members : ndarray of int64 of shape (n_members,)
        Places of vectors.
    coefficients : ndarray of shape (n_members, n_outputs)
        Coefficients of the members.
    intercepts : ndarray of shape (n_leaves, n_outputs)
        Intercepts of the leaves.
    nodes : ndarray of int64 of shape (n_leaves,)
        The leaves' nodes in the tree.
    """

    directions: NDArray[np.float64]
    thresholds: NDArray[np.float64]
    children: NDArray[np.int64]
    depth: int
    starts: NDArray[np.int64]
    members: NDArray[np.int64]
    coefficients: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    nodes: NDArray[np.int64]


def tree_tables(tree: ExpansionTree) -> TreeTables:
    """The arrays of a tree; its members are places in `tree.vectors`.

    Raises
    ------
    ValueError
        For a tree with other rules than hyperplanes.
    """
    state = tree.state
    kinds, counts = state["kinds"], np.diff(state["starts"]).astype(np.int64)
    if not np.isin(kinds, (_LEAF, _LINEAR)).all():
        raise ValueError(
            "the tree compares samples with stored ones, and an exported tree has hyperplanes alone: make it "
            "by compress(model, X, y, max_evaluations=...)"
        )
    inner, leaves = np.flatnonzero(kinds == _LINEAR), np.flatnonzero(kinds == _LEAF)
    numbers = np.empty(kinds.size, dtype=np.int64)
    numbers[inner], numbers[leaves] = np.arange(inner.size), -1 - np.arange(leaves.size)
    children = state["children"].astype(np.int64)
    # A child has a larger number than its parent.
    depths = np.zeros(kinds.size, dtype=np.int64)
    for node in inner:
        depths[children[node]] = depths[node] + 1
    in_leaves = np.repeat(kinds == _LEAF, counts)
    places = np.unique(state["members"][in_leaves], return_inverse=True)[1]
    return TreeTables(
        directions=state["directions"],
        thresholds=state["thresholds"][inner],
        children=numbers[children[inner]],
        depth=int(depths.max(initial=0)),
        starts=np.append(0, np.cumsum(counts[leaves])),
        members=places.reshape(-1).astype(np.int64),
        coefficients=state["weights"][in_leaves],
        intercepts=state["intercepts"][leaves],
        nodes=leaves,
    )


class TreeOutputs:
    """The outputs of a tree in single or double precision, those of each leaf as `LoopOutputs` adds them.

    Parameters
    ----------
    tree : ExpansionTree
        With hyperplanes alone.
    n_features : int
        Columns of the rows that the kernel takes.
    dtype : {"float32", "float64"}
        The precision.
    """

    def __init__(self, tree: ExpansionTree, n_features: int, dtype: str = "float32") -> None:
        self.tables, self.dtype = tree_tables(tree), np.dtype(dtype)
        self.leaves = [
            LoopOutputs(tree.leaf_expansion(int(node)), n_features, dtype) for node in self.tables.nodes
        ]

    def __call__(self, X: Any) -> NDArray[Any]:
        """The outputs (n, q) of rows (n, d)."""
        X = np.asarray(X, dtype=self.dtype)
        out = np.zeros((len(X), self.tables.intercepts.shape[1]), dtype=self.dtype)
        leaves = self.routes(X)[0]
        for leaf in np.unique(leaves):
            out[leaves == leaf] = self.leaves[leaf](X[leaves == leaf])
        return out

    def routes(self, X: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The leaves of rows, and the smallest distance from a hyperplane on the path, relative to |x|."""
        tables = self.tables
        directions, thresholds = tables.directions.astype(self.dtype), tables.thresholds.astype(self.dtype)
        at = np.full(len(X), 0 if len(thresholds) else -1, dtype=np.int64)
        margins = np.full(len(X), np.inf)
        with np.errstate(all="ignore"):
            lengths = np.sqrt(np.einsum("ij,ij->i", X, X))
            lengths[lengths == 0.0] = 1.0
            while (inside := np.flatnonzero(at >= 0)).size:
                node, length = at[inside], lengths[inside]
                excess = np.einsum("ij,ij->i", X[inside], directions[node]) - thresholds[node] * length
                margins[inside] = np.fmin(margins[inside], np.abs(excess) / length)
                at[inside] = tables.children[node, np.where(excess > 0.0, 0, 1)]
        return -1 - at, margins


def loop_outputs(expansion: KernelExpansion, n_features: int, dtype: str) -> Callable[[Any], NDArray[Any]]:
    """The outputs of an expansion or a tree in a precision, added one after the other."""
    if isinstance(expansion, ExpansionTree):
        return TreeOutputs(expansion, n_features, dtype)
    functions = [LoopOutputs(part, n_features, dtype) for part in expansion.parts]
    return lambda X: reduce(np.add, [function(X) for function in functions])
