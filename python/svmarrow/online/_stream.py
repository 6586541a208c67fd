"""What all online learners share: labels, layout and counts of a stream, and how a state is kept.

The state is a dict of NumPy arrays and numbers, the attribute ``_state``: everything that a later row depends
on. Each call passes it to the extension module and keeps what comes back, so an interrupted call changes
nothing and a pickle between two calls loses nothing. The first piece decides the layout (dense or CSR) and
the precision of a stream; later pieces are converted to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_non_negative

from svmarrow._support.atomic import Kept, atomic_fit, atomic_update, consistent
from svmarrow._support.callbacks import fitting, subtasks
from svmarrow._support.memory import EstimatesMemory, MemoryEstimate
from svmarrow._support.parameters import ROW_KERNELS, THREADS, VERBOSE, check, integer, kernel_rules, seed_of
from svmarrow._support.rows import default_gamma, rows_of, validated
from svmarrow._support.stored import check_alike
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.models.fitted import KernelEstimator
from svmarrow.models.output_mixins import ClassifierOutputMixin

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from svmarrow._support.rows import CoreRows

__all__ = ["STREAM_RULES", "StreamClassifier"]

STREAM_RULES = {
    **kernel_rules(*ROW_KERNELS),
    "n_epochs": integer(least=1),
    "n_jobs": THREADS,
    "verbose": VERBOSE,
}


class StreamClassifier(EstimatesMemory, ClassifierOutputMixin, KernelEstimator):
    """A classifier that learns from a stream; the base of all online learners."""

    mistakes_: int
    n_seen_: int
    mistake_rows_: NDArray[np.int64]
    gamma_: float
    n_epochs_: int
    kernel: str
    gamma: str | float
    coef0: float
    degree: int
    n_epochs: int
    verbose: bool | int
    _state: dict[str, Any]
    _weighted: bool | None = False
    _margin_loss: ClassVar[str] = "perceptron"

    @atomic_fit
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Forget everything and learn from the rows, in their order, ``n_epochs`` times over.

        There is no ``sample_weight``: a perceptron learns from mistakes in their order and minimises no sum
        over rows in which one could count double.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Rows.
        y : array-like of shape (n,)
            Labels of at least two classes.

        Returns
        -------
        self : object
            Itself.

        Raises
        ------
        ValueError
            For parameters outside their rules, NaN or infinities, a single class.
        MemoryError
            If the vectors may take more than this process may, see `estimate_memory`.
        KeyboardInterrupt
            On Ctrl-C; passes that ended before are kept, and before the end of the first the estimator is as
            it was.
        """
        self._check_parameters()
        with fitting(self, X, y), subtasks("epoch", int(self.n_epochs)) as epochs:
            X, y = validated(self, X, y, reset=True, with_y=True)
            check_classification_targets(y)
            self._begin(X, np.unique(y))
            labels = np.searchsorted(self.classes_, y).astype(np.int64)
            completed: dict[str, Any] | None = None
            try:
                while self.n_epochs_ < self.n_epochs and not epochs.stopped:
                    with epochs.part(self.n_epochs_, model=dict):
                        self._pass(X, labels)
                    completed = dict(vars(self))
            except KeyboardInterrupt:
                if completed is None:
                    raise
                self.__dict__ = completed
                raise Kept(self) from None
        return self

    @atomic_update
    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Learn from the next piece of the stream: one row or a million, in their order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Rows. The first piece decides the layout and the precision in which the stream is kept.
        y : array-like of shape (n,)
            Labels.
        classes : array-like of shape (n_classes,) or None, default=None
            All labels that the stream may have; needed in the first call, the same or None in later ones.

        Returns
        -------
        self : object
            Itself.

        Raises
        ------
        ValueError
            For parameters outside their rules, NaN or infinities, labels that are not among the classes,
            another number of columns.
        MemoryError
            If the vectors may take more than this process may, see `estimate_memory`.
        KeyboardInterrupt
            On Ctrl-C; the estimator is then as it was before the call.
        """
        self._check_parameters()
        first = not hasattr(self, "_state")
        X, y = validated(self, X, y, reset=first, with_y=True)
        check_classification_targets(y)
        if first:
            if classes is None:
                raise ValueError(
                    "classes=None is not allowed: the first call of partial_fit must name them all"
                )
            self._begin(X, np.unique(np.asarray(classes)))
        elif classes is not None and not np.array_equal(np.unique(np.asarray(classes)), self.classes_):
            raise ValueError(
                f"classes={classes!r} is not allowed: it must be {self.classes_.tolist()} or None"
            )
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise ValueError(
                f"y has the label {unknown.tolist()[0]!r}, which is not among the classes "
                f"{self.classes_.tolist()} that the first call of partial_fit named"
            )
        self._piece(X, np.searchsorted(self.classes_, y).astype(np.int64))
        return self

    def _check_parameters(self) -> None:
        """Raises ValueError for a parameter that breaks its rule, alone or together with others."""
        check(self.get_params(deep=False), self._rules)

    def _begin(self, X: Any, classes: NDArray[Any]) -> None:
        if classes.size < 2:
            raise ValueError(
                f"y has {classes.size} class: it must have at least 2 classes, or classes must name them"
            )
        self.classes_ = classes
        self.gamma_ = default_gamma(self.gamma, X, kernel=self.kernel)
        self.mistakes_ = 0
        self.n_seen_ = 0
        self.n_epochs_ = 0
        self._state = self._empty(X, seed_of(getattr(self, "random_state", 0)))

    def _pass(self, X: Any, labels: NDArray[np.int64]) -> None:
        self._piece(X, labels)
        self.n_epochs_ += 1

    def _piece(self, X: Any, labels: NDArray[np.int64]) -> None:
        self._check_domain(X)
        rows, done = self._as_stream(X), 0
        wrong: list[NDArray[np.int64]] = []
        while done < labels.size or not wrong:
            rest = slice(done, done + self._rows_that_fit(rows[done:]))
            self._learn(rows[rest], labels[rest])
            wrong.append(self.mistake_rows_)
            done = rest.stop
        self.mistake_rows_ = np.concatenate(wrong)

    def _memory(self, rows: Any, y: Any) -> MemoryEstimate:
        self._check_parameters()
        classes = 2 if y is None else np.unique(np.asarray(y)).size
        return MemoryEstimate.of(self._bytes(rows, 1 if classes == 2 else int(classes)))

    def _bytes(self, X: Any, outputs: int) -> int:
        """What `fit` takes beside the rows, at most."""
        raise NotImplementedError

    def _rows_that_fit(self, X: Any) -> int:
        """How many of the rows that are left may be learnt at once."""
        raise NotImplementedError

    def _empty(self, X: Any, seed: int) -> dict[str, Any]:
        """The state before the first row."""
        raise NotImplementedError

    def _learn(self, X: Any, labels: NDArray[np.int64]) -> None:
        """Learn from rows in the stream's layout, all or nothing."""
        raise NotImplementedError

    def _take(self, state: dict[str, Any]) -> None:
        """Take over a state."""
        raise NotImplementedError

    def _check_state(self, state: dict[str, Any]) -> None:
        """Refuse a state from a file that does not fit; what the extension module checks may be left out."""
        raise NotImplementedError

    def _after_load(self) -> None:
        classes, state = self.classes_, self._state
        if classes.ndim != 1 or classes.size < 2 or np.unique(classes).size != classes.size:
            raise ValueError("classes_ are not at least two distinct labels")
        if min(self.n_seen_, self.mistakes_, self.n_epochs_) < 0:
            raise ValueError("n_seen_, mistakes_ and n_epochs_ are not three counts")
        rows = rows_of(state["rows"])
        # Refuses rows that are not in order, and parameters that the kernel does not allow.
        self._check_columns_of(
            KernelExpansion(rows, np.zeros((rows.shape[0], 1)), np.zeros(1), *self._kernel_spec)
        )
        if self.kernel == "chi2":
            check_non_negative(rows, "a model file")
        self._check_parameters()
        check_alike(state, self._empty(rows, 0))
        self._check_state(state)
        self._take(state)

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        return self._outputs_of(validated(self, X, reset=False))

    def _outputs_of(self, rows: Any) -> NDArray[np.float64]:
        """Outputs (n, q) of the current model."""
        raise NotImplementedError

    @property
    def _kernel_spec(self) -> tuple[str, float, float, int]:
        return (self.kernel, self.gamma_, float(self.coef0), int(self.degree))

    @property
    def _n_outputs(self) -> int:
        return 1 if self.classes_.size == 2 else int(self.classes_.size)

    @staticmethod
    def _no_rows(X: Any) -> CoreRows:
        """No rows, in the layout that the stream of X is kept in: bytes become single precision."""
        kind = np.float64 if X.dtype == np.float64 else np.float32
        if sp.issparse(X):
            index = np.zeros(0, dtype=np.int64)
            return (np.zeros(0, dtype=kind), index, np.zeros(1, dtype=np.int64), (0, int(X.shape[1])))
        return np.zeros((0, X.shape[1]), dtype=kind)

    def _as_stream(self, X: Any) -> Any:
        """Rows in the layout and the precision of the stream."""
        kept = self._state["rows"]
        kind = kept[0].dtype if isinstance(kept, tuple) else kept.dtype
        if isinstance(kept, tuple):
            rows = X if sp.issparse(X) else sp.csr_array(X)
        else:
            rows = X.toarray() if sp.issparse(X) else X
        return rows if rows.dtype in (kind, np.uint8) else rows.astype(kind)

    @property
    @consistent
    def cumulative_error_(self) -> float:
        """Mistakes made along the stream, as a share of the rows seen.

        Each row is answered before it is learnt from, so this is an error on rows that were new: the
        *prequential* error (predictive and sequential), without rows held back for a test.
        """
        check_is_fitted(self)
        return self.mistakes_ / max(1, self.n_seen_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_state")
