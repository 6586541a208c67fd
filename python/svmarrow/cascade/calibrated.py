"""`CalibratedCascade`: the small model answers where its margin is large enough to be trusted.

The required margin is estimated on held-out samples. Let k of n samples that nothing was fitted on be
answered by the small model with a label that is not the full model's. If the true rate of such samples were
above epsilon, so few would be seen with probability at most delta as long as the Clopper-Pearson bound, the
(1 - delta) quantile of Beta(k + 1, n - k), is at most epsilon. Switch-over points are tried from the safest
on and the first that fails ends the search: with that fixed sequence delta needs no correction (Bauer, 1991;
"learn then test", Angelopoulos et al., 2021). The points do not depend on the held-out samples: they are
quantiles of the margins on the model's own vectors, and beyond. Where several sizes are tried, each gets an
equal share of delta (Bonferroni).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import betaincinv
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import _num_samples

from svmarrow._support.estimator import of_rows
from svmarrow._support.parameters import THREADS, Rule, check, check_array_types, integer, real, refuse
from svmarrow._support.training import sample_weights
from svmarrow.cascade.exact import Cascade
from svmarrow.interop.convert import as_expansion
from svmarrow.models.expansion_models import ExpansionClassifier
from svmarrow.reduced_set.compression import compress
from svmarrow.reduced_set.paths import RULES, ConstantModelError, bytes_of_work, compression_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.reduced_set.construction import GradientSettings
    from svmarrow.reduced_set.paths import Method
    from svmarrow.reduced_set.selection import SelectionSettings

__all__ = ["CalibratedCascade"]

#: Switch-over points tried.
POINTS = 200


def _is_sizes(value: object) -> bool:
    rule = integer(least=1)
    if isinstance(value, (list, tuple, range, np.ndarray)):
        is_flat = not isinstance(value, np.ndarray) or value.ndim == 1
        return is_flat and len(value) > 0 and all(rule.holds(size) for size in value)
    return rule.holds(value)


CALIBRATION_RULES = {
    "epsilon": real(above=0.0, most=0.5),
    "delta": real(above=0.0, most=0.5),
}


class CalibratedCascade(Cascade, schema="calibrated-cascade/1"):
    """A compressed classifier that hands its doubtful samples to the full one.

    The small model answers samples on which its margin (distance of the winning output from the next that
    could win) is at least `threshold_`; the full model answers the others. The threshold is the smallest for
    which held-out samples show, with confidence 1 - `delta`, that at most a share `epsilon` of all samples
    gets a label that is not the full model's. True labels are not needed for that, and no assumption but
    that later samples come from where the held-out ones came from.

    Parameters
    ----------
    estimator : estimator
        What `fit` fits: a classifier of svmarrow, or of scikit-learn if `as_expansion` takes it. For models
        that are fitted already use `from_fitted`.
    n_vectors : int or sequence of int, default=100
        Sizes of the small model; with several, each is calibrated with its share of `delta` and the one with
        the fewest kernel values a sample on the held-out samples is taken.
    epsilon : float, default=0.01
        Largest share of samples with another label than the full model's.
    delta : float, default=0.05
        Probability that the bound fails by an unlucky choice of held-out samples.
    validation_fraction : float, default=0.2
        Fraction of the samples that `fit` holds out: neither the full nor the small model sees them.
    method : str, default="backfit"
        How the small model is made, see `svmarrow.compress`.
    settings : GradientSettings or SelectionSettings, default=None
        See `svmarrow.compress`.
    random_state : int, RandomState instance or None, default=None
        Seed of the choice of the held-out samples, of ``method="gradient"`` and of sampled pursuits.
    n_jobs : int or None, default=None
        Number of threads. None means all cores that this process may use, within the limits of joblib and
        ``OMP_NUM_THREADS``.
    verbose : bool or int, default=False
        Whether to show the progress on stderr.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model, after `fit`.
    model_ : ExpansionClassifier
        The full model.
    small_ : ExpansionClassifier
        The small one.
    threshold_ : float
        Least margin that the small model answers; infinite where none can be trusted.
    n_validation_ : int
        Number of held-out samples.
    disagreements_ : int
        How many of them get another label than the full model's.
    risk_bound_ : float
        Upper bound of the rate of disagreements, at most `epsilon`.
    share_small_ : float
        Share of the held-out samples that the small model answers.
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the features, if X had names that are all strings.

    See Also
    --------
    ExactCascade : No disagreement at all.

    Notes
    -----
    `fit` fits and compresses on all samples but the held-out ones, which set the switch-over point; the
    bound gives every sample the same weight. With too few held-out samples for `epsilon` and
    `delta` nothing is certain about the small model: then `threshold_` is infinite.

    There is no `predict_proba`. `epsilon` bounds the rate of other labels; probabilities may differ for every
    sample. The full model answers the samples that the small one cannot decide, and sigmoids that are
    calibrated on all samples are not calibrated on these. Call ``cascade.model_.calibrated(X, y)`` for
    probabilities of the full model, or ``cascade.small_.calibrated(X, y)`` for those of the small one.

    References
    ----------
    .. [1] C. Clopper and E. Pearson, "The use of confidence or fiducial limits illustrated in the case of the
       binomial", Biometrika 26, 1934.
    .. [2] P. Bauer, "Multiple testing in clinical trials", Statistics in Medicine 10, 1991: fixed sequences.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.utils import shuffle
    >>> from svmarrow import SVC, compress
    >>> from svmarrow.cascade import CalibratedCascade
    >>> X, y = shuffle(*load_digits(return_X_y=True), random_state=0)
    >>> svc = SVC(C=10, gamma=0.001, multi_class="ovr").fit(X[:800], y[:800])
    >>> small = compress(svc, n_vectors=60)
    >>> cascade = CalibratedCascade.from_fitted(svc, small, X[800:1400], epsilon=0.02)
    >>> bool((cascade.predict(X[1400:]) != svc.predict(X[1400:])).mean() < 0.02)
    True
    >>> cascade.report(X[1400:]).share_small > 0.5
    True
    """

    small_: ExpansionClassifier
    threshold_: float
    n_validation_: int
    disagreements_: int
    risk_bound_: float
    share_small_: float
    _rules: ClassVar[Mapping[str, Rule]] = {
        **CALIBRATION_RULES,
        "n_vectors": Rule("an integer at least 1 or a sequence of them", _is_sizes),
        "validation_fraction": real(above=0.0, most=0.9),
        "method": RULES["method"],
        "random_state": RULES["random_state"],
        "n_jobs": THREADS,
    }
    model_: ExpansionClassifier

    def __init__(
        self,
        estimator: Any,
        n_vectors: int | Sequence[int] = 100,
        *,
        epsilon: float = 0.01,
        delta: float = 0.05,
        validation_fraction: float = 0.2,
        method: Method = "backfit",
        settings: GradientSettings | SelectionSettings | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.n_vectors = n_vectors
        self.epsilon = epsilon
        self.delta = delta
        self.validation_fraction = validation_fraction
        self.method = method
        self.settings = settings
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit(self, X: ArrayLike, y: ArrayLike, metadata: dict[str, Any]) -> None:
        if y is None:
            raise ValueError("CalibratedCascade requires y to be passed, but the target y is None")
        check_array_types(X=X, y=y)
        X, y = indexable(X, y)
        labels, rows = np.asarray(y), np.arange(_num_samples(X))
        if "sample_weight" in metadata:
            metadata = {**metadata, "sample_weight": sample_weights(metadata["sample_weight"], rows.size)}
        train, held = self._split(rows, labels)
        chosen = _safe_indexing(X, train)
        self.model_ = self._fit_full(chosen, labels[train], of_rows(X, metadata, train))
        try:
            smalls = self._compress(chosen)
        except ConstantModelError:
            smalls = []
        if held.size:
            self._calibrate(smalls, self.model_.validated(_safe_indexing(X, held)))
        else:
            self._calibrate(smalls, self.model_.expansion_.vectors[:0])

    def _split(self, rows: NDArray[np.intp], labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Samples to train on and samples held out; every class stays in the training samples."""
        _, first, counts = np.unique(labels, return_index=True, return_counts=True)
        held = int(self.validation_fraction * rows.size)
        if rows.size - held < 2 * first.size or (counts < 2).any() or held < first.size:
            return rows, rows[:0]
        train, test = train_test_split(rows, test_size=held, stratify=labels, random_state=self.random_state)
        return train, test

    def _bytes_after(self, rows: Any, outputs: int) -> int:
        n = int(rows.shape[0])
        most = min(int(np.max(self.n_vectors)), n)
        work = bytes_of_work(outputs, rows, most, rows, self.method, settings=self.settings)
        # Outputs of both models at the rows held out and at the vectors, with what margins are made of.
        return max(work, 8 * n * (3 * outputs + 4))

    def _compress(self, X: Any) -> list[ExpansionClassifier]:
        sizes = sorted({int(size) for size in np.atleast_1d(self.n_vectors)})
        options: dict[str, Any] = {"method": self.method, "settings": self.settings, "n_jobs": self.n_jobs}
        options |= {"random_state": self.random_state, "verbose": self.verbose}
        if self.method == "gradient":
            sizes = sorted({min(size, _num_samples(X)) for size in sizes})
            constructed: list[Any] = [compress(self.model_, X, n_vectors=size, **options) for size in sizes]
            return constructed
        most = max(1, min(sizes[-1], self.model_.expansion_.n_vectors))
        path: Any = compression_path(self.model_, n_vectors=most, **options)
        return [path[size] for size in sorted({min(size, len(path)) for size in sizes})]

    @classmethod
    def from_fitted(
        cls,
        model: Any,
        small: Any,
        X: ArrayLike,
        *,
        epsilon: float = 0.01,
        delta: float = 0.05,
        n_jobs: int | None = None,
    ) -> CalibratedCascade:
        """Make a cascade of two fitted models.

        Parameters
        ----------
        model : object
            The full classifier: anything that `as_expansion` takes.
        small : object or sequence of objects
            The small one, ``path[size]`` for example, or several to choose from. Of the same classes; it may
            be any classifier that `as_expansion` takes.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples that neither model has seen. Labels are not needed.
        epsilon : float, default=0.01
            Largest share of samples with another label than the full model's.
        delta : float, default=0.05
            Probability that the bound fails.
        n_jobs : int, default=None
            Threads.

        Returns
        -------
        CalibratedCascade
            Ready to predict.

        Raises
        ------
        ValueError
            If X has too few samples for any bound, the classes differ, or a parameter is out of its range.
        TypeError
            If a model does not classify.
        """
        check({"epsilon": epsilon, "delta": delta}, CALIBRATION_RULES)
        smalls = [as_expansion(one) for one in (small if isinstance(small, (list, tuple)) else [small])]
        if not smalls:
            raise refuse("small", small, "a model, or a sequence with at least one")
        for one in smalls:
            if not isinstance(one, ExpansionClassifier):
                raise TypeError(f"small={one!r} is not allowed: it must be a classifier")
        sizes = [one.expansion_.n_vectors for one in smalls]
        cascade = cls(
            model, sizes[0] if len(sizes) == 1 else sizes, epsilon=epsilon, delta=delta, n_jobs=n_jobs
        )
        cascade.model_ = cascade._full(model)
        for one in smalls:
            if not np.array_equal(one.classes_, cascade.classes_):
                raise ValueError(
                    f"small has the classes {one.classes_[:4].tolist()}, model has "
                    f"{cascade.classes_[:4].tolist()}"
                )
        rows = cascade.model_.validated(X)
        needed = rows_needed(epsilon, delta / len(smalls))
        if rows.shape[0] < needed:
            raise ValueError(
                f"X has {rows.shape[0]} rows: epsilon={epsilon:g} with delta={delta:g} needs at least "
                f"{needed}"
            )
        cascade._calibrate(smalls, rows)
        return cascade

    def _calibrate(self, smalls: list[Any], rows: Any) -> None:
        n = rows.shape[0]
        self.n_validation_ = n
        self.small_, self.threshold_ = (smalls[0] if smalls else self.model_), math.inf
        self.disagreements_, self.risk_bound_, self.share_small_ = 0, 0.0, 0.0
        if not smalls or n < rows_needed(self.epsilon, self.delta / len(smalls)):
            return
        truth = self.model_.decode(self.model_.expansion_._evaluate(rows, self.n_jobs))
        full_size = self.model_.expansion_.n_vectors
        least = float(full_size)
        for small in smalls:
            classes, margins = self._margins(small, rows)
            _, own = self._margins(small, self.model_.expansion_.vectors)
            wrong = classes != truth
            threshold, bound = first_sequence(
                margins, wrong, points(own), self.epsilon, self.delta / len(smalls)
            )
            answered = margins >= threshold
            cost = small.expansion_.n_vectors + (1.0 - answered.mean()) * full_size
            if cost < least:
                least = cost
                self.small_, self.threshold_, self.risk_bound_ = small, threshold, bound
                self.disagreements_ = int((wrong & answered).sum())
                self.share_small_ = float(answered.mean())

    def _margins(self, small: ExpansionClassifier, rows: Any) -> tuple[NDArray[Any], NDArray[np.float64]]:
        outputs = small.expansion_._evaluate(rows, self.n_jobs)
        classes = small.decode(outputs)
        return classes, small.margins_of(outputs, classes)

    def _answers(self, rows: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        if self.threshold_ == math.inf:
            n = rows.shape[0]
            return np.full(n, -1), np.zeros(n, dtype=np.int64)
        classes, margins = self._margins(self.small_, rows)
        trusted = margins >= self.threshold_
        return np.where(trusted, classes, -1).astype(np.int64), np.where(trusted, 0, 1).astype(np.int64)

    def _sizes(self) -> list[int]:
        full = self.model_.expansion_.n_vectors
        if self.threshold_ == math.inf:
            return [full]
        size = self.small_.expansion_.n_vectors
        return [size, size + full]


def rows_needed(epsilon: float, delta: float) -> int:
    """Fewest samples that show anything: without a disagreement among n the bound is 1 - delta^(1/n)."""
    return math.ceil(min(math.log(delta) / math.log1p(-epsilon), 2.0**62))


def upper_bound(disagreements: int, n: int, delta: float) -> float:
    """Clopper-Pearson: the rate that is exceeded with probability at most delta."""
    return 1.0 if disagreements >= n else float(betaincinv(disagreements + 1, n - disagreements, 1.0 - delta))


def points(margins: NDArray[np.float64]) -> NDArray[np.float64]:
    """Switch-over points to try, decreasing to 0, from margins of samples that are not used for the test."""
    largest = float(margins.max(initial=0.0))
    beyond = largest * np.geomspace(8.0, 1.0, POINTS // 4)
    within = np.quantile(margins, np.linspace(1.0, 0.0, POINTS)) if margins.size else np.empty(0)
    fine = largest * np.geomspace(1.0, 1e-4, POINTS // 2)
    tried = np.concatenate([beyond, within, fine, [0.0]])
    return np.unique(np.maximum(tried, 0.0))[::-1]


def first_sequence(
    margins: NDArray[np.float64],
    wrong: NDArray[np.bool_],
    thresholds: NDArray[np.float64],
    epsilon: float,
    delta: float,
) -> tuple[float, float]:
    """The last of the thresholds before the first that fails, and its bound; infinity where the first fails.

    A threshold passes when the bound of the rate of samples that are answered wrongly is at most epsilon.
    """
    n = margins.size
    chosen, bound = math.inf, upper_bound(0, n, delta)
    for threshold in thresholds.tolist():
        risk = upper_bound(int((wrong & (margins >= threshold)).sum()), n, delta)
        if risk > epsilon:
            break
        chosen, bound = threshold, risk
    return chosen, bound
