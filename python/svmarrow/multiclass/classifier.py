"""A multiclass classifier of binary machines, a code and a decoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from svmarrow._support.bases import MetaEstimatorMixin
from svmarrow._support.decoding import CODES, DECODERS, check_decoder, loss_of, make_code
from svmarrow._support.estimator import Estimator, RoutesFit
from svmarrow._support.parameters import (
    CLASS_WEIGHT,
    ESTIMATOR,
    RANDOM_STATE,
    THREADS,
    Rule,
    atomic_fit,
    boolean,
    check,
    check_array_types,
    consistent,
    integer,
    refuse,
)
from svmarrow._support.progress import fitting
from svmarrow._support.rows import validated
from svmarrow._support.training import encode_classes, sample_weights
from svmarrow._support.training import estimate_memory as memory_method
from svmarrow.models.base import compiled as compiled_method
from svmarrow.models.expansion_models import ExpansionClassifier
from svmarrow.models.machine import ColumnMixer
from svmarrow.models.outputs import ClassifierOutputMixin, code_class_indices, code_decision_values
from svmarrow.multiclass.training import Machines, memory_of_machines, refuse_machines, train

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike, NDArray

    from svmarrow._support.decoding import Code
    from svmarrow._support.training import MemoryEstimate
    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.models.base import CompiledModel
    from svmarrow.models.machine import Certificate

__all__ = ["CodedClassifier"]


class CodedClassifier(
    RoutesFit, MetaEstimatorMixin, ClassifierOutputMixin, Estimator, schema="coded-classifier/1"
):
    """Multiclass classifier of binary machines: a code of targets, a decoder of outputs.

    Machines of svmarrow share what they can. Support vector machines of all columns are trained over one set
    of kernel rows; one system of least squares serves every code without zeros; all kernel machines predict
    over one pool of vectors, and are compressed together. Any other binary classifier is cloned for each
    column.

    Parameters
    ----------
    estimator : estimator
        The binary machine: `svmarrow.SVC`, any other classifier of svmarrow, or any binary classifier with
        ``decision_function``. Its parameters for several classes (``multi_class``,
        ``decision_function_shape``, ``break_ties``) has no effect here. With ``warm_start=True`` of
        `svmarrow.SVC` and `svmarrow.NuSVC` a further `fit` starts from the last solution, if code and samples
        are the same: a random code needs a seed for that.
    code : {"ovr", "ovo", "complete", "dense", "sparse", "bch"}, Code or array-like, default="ovr"
        The code, see `make_code`; a matrix has a row for each class in the order of `classes_`.
    decoder : str, default="loss"
        How a class is made of the machines' outputs f. Rows M_r of the code stand for the classes.

        * ``"loss"``: the class of least total loss sum_i L(M_ri f_i), where L is the loss that the machine
          minimizes [1]_, (4.43); a zero counts L(0). ``"hinge"``, ``"squared_hinge"``, ``"square"``,
          ``"logistic"``, ``"exponential"`` and ``"perceptron"`` name a loss instead;
        * ``"mean_loss"``, and ``"mean_hinge"`` to ``"mean_perceptron"``: the same loss for each machine that
          knows the class, zeros left out [3]_. Classes whose rows have fewer zeros lose their advantage: take
          it for sparse codes. Where all rows have equally many zeros it decides as the total does;
        * ``"hamming"``: the class whose row is nearest to the signs of the outputs, (4.42); zeros, of the
          code or of an output, count one half;
        * ``"votes"``: every machine votes for the classes of its side, an output of 0 for the negative one;
        * ``"dag"``: for ``code="ovo"``: the first and the last class of a list meet, the loser leaves,
          until one is left [2]_; an output of 0 is for the second of the pair.

        `decision_function` gives minus the loss or the distance, the votes, or the round of the DAG in which
        the class left; for two classes the output of the machine where there is one only, else the difference
        of the scores. Of equals the first class wins. For two classes and one column the sign of the output
        decides.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes of y, as in scikit-learn; "balanced" counts a row by its weight. Every
        machine gets them as weights of the rows, so that its estimator must take ``sample_weight``. A
        ``class_weight`` of the estimator itself is about the classes of y too where machines of svmarrow are
        trained together; else about the two sides of a column, -1 and 1.
    random_state : int, RandomState instance or None, default=None
        Seed of codes that are drawn; None draws another code at each `fit`.
    n_draws : int, default=10000
        Draws of which the best is kept, for codes that are drawn.
    shared : bool, default=True
        Whether machines share their work. Without it each column is trained by a clone of its own: the same
        machines up to the solver's tolerance, slower.
    n_jobs : int or None, default=None
        Number of threads. None means all cores that this process may use, within the limits of joblib and
        ``OMP_NUM_THREADS``; for training with `svmarrow.SVC` it leaves the estimator's own ``n_jobs``.
        Columns that are trained by clones go where ``joblib.parallel_config`` sends them, as to a cluster
        with backend "dask"; machines that share their work are trained in this process.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    code_ : Code
        The code, with its distances.
    decoder_ : str
        The decoder in use: that of the parameter, with the name of the machine's loss for ``"loss"``.
    expansion_ : KernelExpansion
        All machines over one pool of vectors, a column for each column of the code. Missing where the
        machines are not expansions of one built-in kernel.
    certificate_ : Certificate
        Of support vector machines: certificate of the solutions, an entry for each column; columns that are
        equal or opposite are trained once.
    support_ : ndarray of int64 of shape (n_vectors,)
        Of support vector machines: training samples that are vectors of the pool.
    loo_decision_ : ndarray of shape (n_samples, n_classes) or (n,)
        Of `svmarrow.RLSClassifier`: `decision_function` of each training sample had all
        machines been trained without it, exactly.
    loo_error_ : float
        Of `svmarrow.RLSClassifier`: the exact leave-one-out error.
    estimators_ : list
        If each column was fitted separately: the fitted estimators, one for each column that is not equal
        or opposite to an earlier one.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the features, if X had names that are all strings.

    References
    ----------
    .. [1] R. Rifkin, "Everything Old Is New Again", MIT 2002, chapter 4; E. Allwein, R. Schapire and Y.
       Singer, "Reducing multiclass to binary", JMLR 1, 2000.
    .. [2] J. Platt, N. Cristianini and J. Shawe-Taylor, "Large margin DAGs for multiclass classification",
       NIPS 12, 2000.
    .. [3] S. Escalera, O. Pujol and P. Radeva, "On the decoding process in ternary error-correcting output
       codes", IEEE Transactions on Pattern Analysis and Machine Intelligence 32, 2010.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from svmarrow import SVC, CodedClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = CodedClassifier(SVC(C=10, gamma=0.001), code="dense", random_state=0)
    >>> model = model.fit(X[:1000], y[:1000])
    >>> model.code_, model.score(X[1000:], y[1000:]) > 0.95
    (<Code: 10 classes, 34 columns, row distance 14>, True)
    """

    code_: Code
    decoder_: str
    _machines: Machines
    _stored_as: ClassVar[dict[str, str]] = {"_machines": "machines_"}
    _rules: ClassVar[Mapping[str, Rule]] = {
        "class_weight": CLASS_WEIGHT,
        "random_state": RANDOM_STATE,
        "n_draws": integer(least=1),
        "shared": boolean,
        "n_jobs": THREADS,
    }
    n_features_in_: int
    loo_decision_: NDArray[np.float64]
    loo_error_: float

    def __init__(
        self,
        estimator: Any,
        code: str | Code | ArrayLike = "ovr",
        decoder: str = "loss",
        *,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_draws: int = 10_000,
        shared: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.code = code
        self.decoder = decoder
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_draws = n_draws
        self.shared = shared
        self.n_jobs = n_jobs

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **metadata: Any) -> CodedClassifier:
        """Train the machines of all columns.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Samples, or the kernel matrix for a precomputed kernel.
        y : array-like of shape (n_samples,)
            Labels of at least two classes.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the samples in every machine, not negative; for estimators whose ``fit`` takes them.
        **metadata : Any
            With scikit-learn's metadata routing: whatever else the estimator requests. Each column is then
            trained by a clone of its own.

        Returns
        -------
        CodedClassifier
            Itself.

        Raises
        ------
        ValueError
            For parameters outside their rules, a code for another number of classes or with rows that
            coincide or a column without both signs, a single class, a class without a row of positive
            weight, weights for an estimator that takes or asks for none, and what the estimator refuses.
        TypeError
            If the estimator has no ``decision_function``.
        MemoryError
            If what the machines cannot do without is more than this process may take.
        """
        check(self.get_params(deep=False), {"estimator": ESTIMATOR, **self._rules})
        check_array_types(X=X, y=y)
        with fitting(self, X, y, sample_weight):
            validate_data(self, X, y, skip_check_array=True)
            y = column_or_1d(y, warn=True)
            if y.dtype.kind in "fc":
                assert_all_finite(y, input_name="y")
            check_consistent_length(X, y)
            classes, labels = encode_classes(y)
            decoder = self._decoder()
            code = self._make_code(classes.size)
            check_decoder(decoder, code)
            asked = self._for_estimator(sample_weight, metadata)
            refuse_machines(self.estimator, X, labels, code, bool(self.shared), self.n_jobs)
            trained = train(
                self.estimator,
                X,
                labels.astype(np.int64),
                code,
                classes=classes,
                sample_weight=sample_weights(asked.pop("sample_weight", None), y.shape[0]),
                metadata=asked,
                class_weight=self.class_weight,
                shared=bool(self.shared),
                n_jobs=self.n_jobs,
                last=self._machines if getattr(self, "code_", None) == code else None,
            )
            self.classes_ = classes
            self.code_ = code
            self.decoder_ = decoder
            self._take(trained, labels)
        return self

    def _starts_from_last_fit(self) -> bool:
        return bool(getattr(self.estimator, "warm_start", False))

    estimate_memory: ClassVar[Callable[..., MemoryEstimate]] = memory_method

    def _memory(self, rows: Any, y: Any) -> MemoryEstimate:
        if y is None:
            raise ValueError("y=None is not allowed: it must be labels, which decide the code")
        check(self.get_params(deep=False), self._rules)
        classes, labels = encode_classes(column_or_1d(y))
        code, sharing = self._make_code(classes.size), (bool(self.shared), self.n_jobs)
        return memory_of_machines(self.estimator, rows, labels, code, *sharing)

    def _take(self, trained: Machines, labels: NDArray[Any] | None) -> None:
        """The machines, and what they know of samples left out."""
        self._machines = trained
        for name in ("loo_decision_", "loo_error_"):
            self.__dict__.pop(name, None)
        if trained.left_out is not None:
            self.loo_decision_ = self._scores_of(trained.left_out)
            if labels is not None:
                self.loo_error_ = float((self._winners_of(trained.left_out) != labels).mean())

    @classmethod
    def from_ovr(
        cls, model: Any, code: str | Code | ArrayLike, decoder: str = "loss", **parameters: Any
    ) -> CodedClassifier:
        """The machines of another code from a fitted least-squares classifier, without training.

        Solutions of least squares are linear in the targets: those of one-vs-rest give those of every column
        that leaves out no class (Rifkin 2002, (4.67) to (4.80)).

        Parameters
        ----------
        model : RLSClassifier or another least-squares classifier of svmarrow
            Fitted.
        code : str, Code or array-like
            A code without zeros, see the class.
        decoder : str, default="loss"
            See the class.
        **parameters : Any
            Others of the class.

        Returns
        -------
        CodedClassifier
            What its `fit` on the same rows would give, without `loo_error_`, which needs the labels.

        Raises
        ------
        TypeError
            If the model is no least-squares classifier.
        ValueError
            If the code has zeros or is for another number of classes.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from svmarrow import CodedClassifier, RLSClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> plain = RLSClassifier().fit(X, y)
        >>> coded = CodedClassifier.from_ovr(plain, "complete")
        >>> bool((coded.predict(X) == plain.predict(X)).all())
        True
        """
        # The classifiers of svmarrow.dask hold a local estimator.
        local = model.to_local() if hasattr(model, "to_local") else model
        if not isinstance(local, ColumnMixer):
            raise TypeError(
                f"model of type {type(model).__name__}: it must be a least-squares classifier of svmarrow, "
                "whose solutions are linear in the targets"
            )
        mixed: Any = local
        check_is_fitted(mixed)
        coded = cls(mixed, code, decoder, **parameters)
        check(coded.get_params(deep=False), coded._rules)
        made = coded._make_code(mixed.classes_.size)
        if made.has_zeros:
            raise ValueError("the code has zeros: machines that leave out classes must be trained")
        coded.decoder_ = coded._decoder()
        check_decoder(coded.decoder_, made)
        coded.classes_, coded.code_ = mixed.classes_, made
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(mixed, name):
                setattr(coded, name, getattr(mixed, name))
        weighted = getattr(mixed, "_weighted", None)
        coded._take(Machines(**mixed._columns(made.matrix)._asdict(), weighted=weighted), None)
        return coded

    def _make_code(self, n_classes: int) -> Code:
        if isinstance(self.code, str) and self.code not in CODES:
            raise refuse("code", self.code, ", ".join(repr(name) for name in CODES) + " or a matrix")
        return make_code(
            self.code,
            int(n_classes),
            random_state=self.random_state,
            n_draws=self.n_draws,
            n_jobs=self.n_jobs,
        )

    def _decoder(self) -> str:
        """The decoder by its own name."""
        own, decoder = ("loss", "mean_loss"), cast("object", self.decoder)
        if not isinstance(decoder, str) or decoder not in (*own, *DECODERS):
            raise refuse("decoder", decoder, f"one of {', '.join(map(repr, (*own, *DECODERS)))}")
        if decoder not in own:
            return decoder
        if (loss := loss_of(self.estimator)) is None:
            rule = f"a loss such as 'hinge', or 'hamming': {type(self.estimator).__name__} has no known loss"
            raise refuse("decoder", decoder, rule)
        return loss if decoder == "loss" else f"mean_{loss}"

    @consistent
    def outputs(self, X: Any) -> NDArray[np.float64]:
        """Outputs of all machines before decoding.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples; (n_samples, n_train) kernel values for a precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
            Positive for the classes of +1 in a column of `code_`.

        Raises
        ------
        ValueError
            For a wrong number of features and values that are not finite.
        """
        check_is_fitted(self)
        expansion = self._machines.expansion
        if expansion is None:
            if isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.kind in "biuf":
                raise ValueError(
                    f"X has shape {X.shape}, expected rows. Reshape your data to (1, n_features)"
                )
            check_array_types(X=X)
            validate_data(self, X, skip_check_array=True, reset=False)
            return self._machines.outputs(X, self.n_jobs)
        precomputed = isinstance(expansion.kernel, str) and expansion.kernel == "precomputed"
        return expansion._evaluate(validated(self, X, reset=False, precomputed=precomputed), self.n_jobs)

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        return self.outputs(X)

    def _scores_of(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        return code_decision_values(outputs, self.code_.matrix, self.decoder_, self.n_jobs)

    def _winners_of(self, outputs: NDArray[np.float64]) -> NDArray[np.intp]:
        return code_class_indices(outputs, self.code_.matrix, self.decoder_, self.n_jobs)

    @property
    def expansion_(self) -> KernelExpansion:
        """All machines over one pool of vectors."""
        found: KernelExpansion = self._found(
            "expansion", "the machines are no expansions with built-in kernels"
        )
        return found

    @property
    def certificate_(self) -> Certificate:
        """Certificate of the solutions."""
        found: Certificate = self._found(
            "certificate", "only support vector machines that share have a certificate"
        )
        return found

    @property
    def support_(self) -> NDArray[np.int64]:
        """Training samples that are vectors of the pool."""
        found: NDArray[np.int64] = self._found("support", "only machines that share know their training rows")
        return found

    @property
    def estimators_(self) -> list[Any]:
        """The fitted estimators of the distinct columns, if each was fitted separately."""
        found: list[Any] = self._found("estimators", "the machines were trained together")
        return found

    def _found(self, name: str, otherwise: str) -> Any:
        machines = self.__dict__.get("_machines")
        if machines is None:
            raise AttributeError(f"this {type(self).__name__} is not fitted yet")
        value = getattr(machines, name)
        if value is None or (name == "estimators" and not value):
            raise AttributeError(f"this {type(self).__name__} has no {name}_: {otherwise}")
        return value

    compiled: ClassVar[Callable[..., CompiledModel]] = compiled_method

    @consistent
    def as_expansion(self) -> ExpansionClassifier:
        """The fitted model as one expansion; TypeError where machines are none with built-in kernels."""
        check_is_fitted(self)
        expansion = self._machines.expansion
        if expansion is None:
            raise TypeError(
                f"a CodedClassifier of {type(self.estimator).__name__} is not one kernel expansion: its "
                "machines are no expansions with built-in kernels"
            )
        return ExpansionClassifier(
            expansion,
            self.classes_,
            "code",
            feature_names=getattr(self, "feature_names_in_", None),
            n_features=getattr(self, "n_features_in_", None),
            code=self.code_,
            decoder=self.decoder_,
            weighted=self._machines.weighted,
            n_jobs=self.n_jobs,
        )

    def _after_load(self) -> None:
        self.code_.check_classes(self.classes_.size)
        check_decoder(self.decoder_, self.code_)
        machines, columns = self._machines, (self.code_.n_columns,)
        if machines.expansion is not None:
            super()._after_load()
            return
        which, signs = np.asarray(machines.which), np.asarray(machines.signs)
        known = set(range(len(machines.estimators)))
        if (which.shape, signs.shape) != (columns, columns) or not known.issuperset(which.tolist()):
            raise ValueError(f"the machines are not those of the {columns[0]} columns of the code")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_machines")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags.pairwise = inner.input_tags.pairwise
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.positive_only = inner.input_tags.positive_only
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags
