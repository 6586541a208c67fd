"""Averages of kernel machines trained on parts of the rows, merged into one expansion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import joblib
import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from svmarrow._support.atomic import atomic_fit, consistent
from svmarrow._support.callbacks import fitting, subtasks
from svmarrow._support.decoding import numbered_classes
from svmarrow._support.estimator import Estimator
from svmarrow._support.memory import bytes_of_rows, new_threads, refuse_beyond_memory
from svmarrow._support.parameters import (
    CLASS_WEIGHT,
    RANDOM_STATE,
    THREADS,
    VERBOSE,
    Rule,
    check,
    either,
    integer,
    none,
    one_of,
    real,
)
from svmarrow._support.routing import RoutesFit, check_takes_weights, is_routing, of_rows
from svmarrow._support.rows import (
    any_weighted,
    as_rows,
    class_weights,
    default_gamma,
    sample_weights,
    validated,
    weights_differ,
)
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.least_squares.classification import RLSClassifier
from svmarrow.least_squares.regression import RLSRegressor
from svmarrow.models.classifier import ExpansionClassifier
from svmarrow.models.decoded import LabelledOutputs, NumberOutputs, WithOutputs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

__all__ = ["BaggedKernelClassifier", "BaggedKernelRegressor"]

_RULES = {
    "estimator": either(
        none, Rule("an estimator with as_expansion", lambda value: hasattr(value, "as_expansion"))
    ),
    "n_estimators": integer(least=1),
    "parts": one_of("disjoint", "subsets"),
    "max_samples": either(integer(least=1), real(above=0.0, most=1.0)),
    "random_state": RANDOM_STATE,
    "n_jobs": THREADS,
    "verbose": VERBOSE,
}


class BaggedKernelMachine(RoutesFit, WithOutputs, Estimator):
    """Base of both."""

    _rules: ClassVar[Mapping[str, Rule]] = _RULES

    estimator: Any
    n_estimators: int
    parts: Literal["disjoint", "subsets"]
    max_samples: int | float
    random_state: Any
    n_jobs: int | None
    verbose: bool | int

    #: What is trained where no estimator is given.
    _usual: ClassVar[type[Any]]

    expansion_: KernelExpansion
    estimators_: list[Any]
    estimators_samples_: list[NDArray[np.intp]]
    _converted: Any
    n_features_in_: int

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **metadata: Any) -> Self:
        """Train the machines and merge them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Rows.
        y : array-like of shape (n,)
            Targets, or labels of at least two classes; every part needs all of them.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the rows, which the machines must take; None is 1 for each. Rows of weight 0 are not
            there; a row of weight 2 stays with one machine, where two rows may come to two.
        **metadata : Any
            With scikit-learn's metadata routing: whatever else the machines ask for.

        Returns
        -------
        self : object
            Itself, fitted.

        Raises
        ------
        ValueError
            For parameters outside their rules, and what the machines refuse.
        MemoryError
            If `estimate_memory` is more than this process may take.
        """
        check(self.get_params(deep=False), self._rules)
        with fitting(self, X, y, sample_weight):
            X, y = validated(self, X, y, reset=True, with_y=True)
            asked = self._for_estimator(sample_weight, metadata)
            own = sample_weights(asked.pop("sample_weight", None), X.shape[0])
            y, labels, weights = self._targets(y, own)
            model = clone(self._routed_to())
            remedy = "take smaller parts, lower n_jobs, or give an estimator that takes less"
            refuse_beyond_memory(f"{type(self).__name__}.fit", self.estimate_memory(X, y), remedy)
            self._train(model, X, y, labels, weights, asked)
        return self

    def _routed_to(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        # Nobody can ask on behalf of a machine that is made here.
        return self._usual().set_fit_request(sample_weight=True) if is_routing() else self._usual()

    def estimate_memory(self, X: Any, y: Any = None) -> int:
        """What `fit` would take, without fitting.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Training rows; they are not counted.
        y : array-like of shape (n,), default=None
            Labels or targets, as for `estimate_memory` of the machines.

        Returns
        -------
        int
            Bytes, roughly. `fit` raises a MemoryError where they are more than this process may take.
        """
        model = self._usual() if self.estimator is None else self.estimator
        rows, n = as_rows(X), int(np.shape(X)[0])
        size = -(-n // int(self.n_estimators)) if self.parts == "disjoint" else self._size(n)
        part = np.linspace(0, n - 1, size).astype(np.intp)
        own = 0
        if hasattr(model, "estimate_memory"):
            given = model.estimate_memory(rows[part], None if y is None else np.asarray(y)[part])
            own = int(getattr(given, "total", given))
        # The rows of every machine are kept by it, and once more by the average.
        copies = 2 * int(self.n_estimators) * size * bytes_of_rows(rows) // max(n, 1)
        at_once = min(joblib.effective_n_jobs(self.n_jobs), int(self.n_estimators))
        return int(copies + at_once * own)

    def _size(self, n: int) -> int:
        """Rows of a machine that draws its own."""
        whole = isinstance(self.max_samples, int | np.integer)
        return int(self.max_samples) if whole else max(1, round(float(self.max_samples) * n))

    def _targets(
        self, y: Any, weights: NDArray[np.float64] | None
    ) -> tuple[Any, Any, NDArray[np.float64] | None]:
        """Targets of the machines, labels for classifiers, and weights of the rows."""
        raise NotImplementedError

    def _parts(self, n: int, labels: NDArray[Any] | None) -> list[NDArray[np.intp]]:
        """The rows of each machine; disjoint parts have each class in its share."""
        random = check_random_state(self.random_state)
        count = int(self.n_estimators)
        if self.parts == "subsets":
            size = self._size(n)
            if size > n:
                raise ValueError(f"max_samples={self.max_samples!r} is not allowed: there are {n} rows")
            return [np.sort(random.permutation(n)[:size]) for _ in range(count)]
        if count > n:
            raise ValueError(f"n_estimators={count} is not allowed: there are n_samples = {n} rows")
        order = random.permutation(n)
        if labels is not None:
            order = order[np.argsort(labels[order], kind="stable")]
        return [np.sort(order[part::count]) for part in range(count)]

    def _train(
        self,
        model: Any,
        X: Any,
        y: Any,
        labels: NDArray[Any] | None,
        weights: NDArray[np.float64] | None,
        metadata: dict[str, Any],
    ) -> None:
        numbers = np.arange(X.shape[0])
        if weights is not None:
            check_takes_weights(model)
            numbers = np.flatnonzero(weights)
            if numbers.size == 0:
                raise ValueError("sample_weight is zero everywhere: at least one row must count")
            metadata = of_rows(X, {**metadata, "sample_weight": weights}, numbers)
            X, y, weights = X[numbers], y[numbers], weights[numbers]
            labels = None if labels is None else labels[numbers]
        params = model.get_params()
        if isinstance(params.get("gamma"), str) and isinstance(params.get("kernel"), str):
            # One width for all, or their kernels could not be added up.
            model.set_params(
                gamma=default_gamma(params["gamma"], X, kernel=params["kernel"], weights=weights)
            )
        parts = self._parts(int(X.shape[0]), labels)
        if labels is not None:
            for place, part in enumerate(parts):
                missing = np.setdiff1d(labels, labels[part])
                if missing.size:
                    raise ValueError(
                        f"part {place} of the rows has no row of class {missing[0]}: every part needs all "
                        "classes, take fewer or larger parts"
                    )
        jobs = Parallel(n_jobs=self.n_jobs, prefer="threads", verbose=int(self.verbose))
        with subtasks("machine", len(parts)) as machines, new_threads():
            # Rows are an argument: joblib's backends send large ones once.
            def fitted(number: int, X: Any) -> Any:
                machine, part = clone(model), parts[number]
                with machines.part(number, machine):
                    return machine.fit(X[part], y[part], **of_rows(X, metadata, part))

            models = jobs(delayed(fitted)(number, X) for number in range(len(parts)))
        self.estimators_samples_, self.estimators_ = [numbers[part] for part in parts], models
        self._merged(models, weighted=weights_differ(weights))

    def _merged(self, models: Sequence[Any], *, weighted: bool) -> None:
        """Takes the average of the machines, whose rows had weights that differ or not."""
        converted = [each.as_expansion() for each in models]
        known = [
            each.weighted if isinstance(each, ExpansionClassifier) else getattr(model, "_weighted", None)
            for model, each in zip(models, converted, strict=True)
        ]
        self._weighted = any_weighted([weighted, *known])
        self._converted = converted[0]
        self.expansion_ = average(
            [each.expansion if isinstance(each, ExpansionClassifier) else each for each in converted]
        )

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        return self.expansion_._evaluate(validated(self, X, reset=False), None)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "expansion_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class BaggedKernelClassifier(LabelledOutputs, BaggedKernelMachine):
    """Average of kernel classifiers on parts of the rows (Rifkin 2002, sections 3.7.3 and 5.3).

    A machine on a part of the rows costs a small share of one on all; the average of their outputs is one
    kernel expansion.

    Parameters
    ----------
    estimator : estimator or None, default=None
        What is trained on each part: any classifier of svmarrow with ``as_expansion``. None is
        `svmarrow.RLSClassifier`. A width ``gamma="scale"`` is that of all rows.
    n_estimators : int, default=10
        Machines.
    parts : {"disjoint", "subsets"}, default="disjoint"
        "disjoint": the rows are dealt out, each to one machine (5.24). "subsets": each machine draws its own
        ``max_samples`` rows.
    max_samples : int or float, default=0.1
        For "subsets": rows of each machine, or their share.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply those of the rows before they are dealt out; "balanced" is
        n / (n_classes * count of the class) of all rows, rows counted by their weights.
    random_state : int, RandomState instance or None, default=None
        Seed of the parts.
    n_jobs : int or None, default=None
        Machines trained side by side by joblib; their own ``n_jobs`` is their threads.
    verbose : bool or int, default=False
        joblib's verbosity.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    expansion_ : KernelExpansion
        The average: the vectors of all machines, their coefficients over ``n_estimators``.
    estimators_ : list of estimators
        The machines.
    estimators_samples_ : list of ndarray
        Their rows.
    n_features_in_ : int
        Columns of the training data.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Their names, where X had names that are all strings.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from svmarrow import RLSClassifier
    >>> from svmarrow.least_squares import BaggedKernelClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> bagged = BaggedKernelClassifier(RLSClassifier(0.1), 4, random_state=0).fit(X[:1000], y[:1000])
    >>> bool(bagged.score(X[1000:], y[1000:]) > 0.9)
    True
    """

    _rules: ClassVar[Mapping[str, Rule]] = {**_RULES, "class_weight": CLASS_WEIGHT}
    _usual = RLSClassifier

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        parts: Literal["disjoint", "subsets"] = "disjoint",
        max_samples: float = 0.1,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.parts = parts
        self.max_samples = max_samples
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _targets(
        self, y: Any, weights: NDArray[np.float64] | None
    ) -> tuple[Any, Any, NDArray[np.float64] | None]:
        self.classes_, labels = numbered_classes(y)
        return y, y, class_weights(self.class_weight, weights, self.classes_, labels)[1]

    @consistent
    def as_expansion(self) -> ExpansionClassifier:
        """The merged model as a classifier made of a kernel expansion."""
        check_is_fitted(self)
        merged: ExpansionClassifier = self._converted.with_expansion(self.expansion_)
        return merged.with_weighted(self._weighted)

    def _scores_of(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.as_expansion().scores_of(outputs)

    def _winners_of(self, outputs: NDArray[np.float64]) -> NDArray[np.intp]:
        return self.as_expansion().decode(outputs)


class BaggedKernelRegressor(NumberOutputs, BaggedKernelMachine):
    """Average of kernel regressors on parts of the rows (Rifkin 2002, sections 3.7.3 and 5.3).

    Parameters
    ----------
    estimator : estimator or None, default=None
        What is trained on each part: any regressor of svmarrow with ``as_expansion``. None is
        `svmarrow.RLSRegressor`. A width ``gamma="scale"`` is that of all rows.
    n_estimators : int, default=10
        Machines.
    parts : {"disjoint", "subsets"}, default="disjoint"
        "disjoint": the rows are dealt out, each to one machine (5.24). "subsets": each machine draws its own
        ``max_samples`` rows.
    max_samples : int or float, default=0.1
        For "subsets": rows of each machine, or their share.
    random_state : int, RandomState instance or None, default=None
        Seed of the parts.
    n_jobs : int or None, default=None
        Machines trained side by side by joblib; their own ``n_jobs`` is their threads.
    verbose : bool or int, default=False
        joblib's verbosity.

    Attributes
    ----------
    expansion_ : KernelExpansion
        The average: the vectors of all machines, their coefficients over ``n_estimators``.
    estimators_ : list of estimators
        The machines.
    estimators_samples_ : list of ndarray
        Their rows.
    n_features_in_ : int
        Columns of the training data.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Their names, where X had names that are all strings.

    Examples
    --------
    >>> import numpy as np
    >>> from svmarrow import RLSRegressor
    >>> from svmarrow.least_squares import BaggedKernelRegressor
    >>> X = np.linspace(0, 6, 500)[:, None]
    >>> bagged = BaggedKernelRegressor(RLSRegressor(0.01), 5, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(bagged.score(X, np.sin(X[:, 0])) > 0.999)
    True
    """

    _usual = RLSRegressor

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        parts: Literal["disjoint", "subsets"] = "disjoint",
        max_samples: float = 0.1,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.parts = parts
        self.max_samples = max_samples
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _targets(
        self, y: Any, weights: NDArray[np.float64] | None
    ) -> tuple[Any, Any, NDArray[np.float64] | None]:
        return np.asarray(y, dtype=np.float64), None, weights

    @consistent
    def as_expansion(self) -> KernelExpansion:
        """The merged model as a kernel expansion."""
        check_is_fitted(self)
        return self.expansion_


def average(expansions: list[KernelExpansion]) -> KernelExpansion:
    """The mean of the outputs of expansions with one kernel and as many outputs, as one expansion."""
    first = expansions[0]
    for each in expansions[1:]:
        if each._kernel_identity != first._kernel_identity or each.n_outputs != first.n_outputs:
            raise ValueError("an average needs machines of one kernel and as many outputs")
    count = len(expansions)
    rows: Any = [each.vectors for each in expansions]
    vectors = sp.csr_array(sp.vstack(rows)) if sp.issparse(first.vectors) else np.concatenate(rows)
    return KernelExpansion(
        vectors,
        np.concatenate([each.coefficients for each in expansions]) / count,
        np.sum([each.intercepts for each in expansions], axis=0) / count,
        first.kernel,
        first.gamma,
        first.coef0,
        first.degree,
    )
