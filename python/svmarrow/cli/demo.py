"""The tour: train, compress, pick, make, save, reload, and a look at speed and size, on digits.

Half of the digits train the machine, a fifth picks the size, and the rest, which neither has seen, gives the
errors in the table. Times are those of the whole test set in one call, the best of many.
"""

from __future__ import annotations

import pickle
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn import svm as peer_svm
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from svmarrow import SVC, compression_path, load
from svmarrow._support.plotting import finish, image_axes
from svmarrow.cli.report import describe_certificate, percent, say, seconds, size, size_table
from svmarrow.reduced_set import GradientSettings, subsample_baseline

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["run"]

SIZES = (10, 20, 50, 100, 200)
"""Sizes in the table in addition to the chosen one."""

MADE = GradientSettings(sizes=(5, 10, 20), steps=3000)
"""Sizes of new vectors, and few steps: the demo is done in seconds."""

TIMING_SECONDS = 0.1
"""Minimum number of seconds of the timing of each model."""

C = 10.0
GAMMA = 0.001
"""The width is the one of scikit-learn's own example on these data."""

NEW = "#8a4f9e"
"""Colour of the models with constructed vectors in the plot."""


class Split(NamedTuple):
    """Rows and labels of one part of the data."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]


def load_splits() -> tuple[Split, Split, Split]:
    """Training, validation and test rows."""
    X, y = load_digits(return_X_y=True)
    X, X_rest, y, y_rest = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
    X_valid, X_test, y_valid, y_test = train_test_split(
        X_rest, y_rest, test_size=0.6, random_state=0, stratify=y_rest
    )
    return Split(X, y), Split(X_valid, y_valid), Split(X_test, y_test)


def microseconds(model: Any, X: NDArray[np.float64]) -> float:
    """Time to predict one row of a batch: the best call of `TIMING_SECONDS`, at least of three."""
    times: list[float] = []
    while len(times) < 3 or sum(times) < TIMING_SECONDS:
        started = time.perf_counter()
        model.predict(X)
        times.append(time.perf_counter() - started)
    return 1e6 * min(times) / len(X)


def run(folder: Path, max_loss: float, n_jobs: int | None) -> None:
    """Do the tour and leave the models and the drawing in `folder`."""
    train, valid, test = load_splits()
    folder.mkdir(parents=True, exist_ok=True)
    say(
        f"scikit-learn's digits: {len(train.y)} rows to train, {len(valid.y)} to pick a size, "
        f"{len(test.y)} to test"
    )

    started = time.perf_counter()
    svc = SVC(C=C, gamma=GAMMA, multi_class="ovr", n_jobs=n_jobs).fit(train.X, train.y)
    say(
        f"train     SVC, one-vs-rest: {svc.expansion_.n_vectors} support vectors in "
        f"{seconds(time.perf_counter() - started)} ({describe_certificate(svc.certificate_)})"
    )
    started = time.perf_counter()
    path = compression_path(svc, train.X, train.y, n_vectors=svc.expansion_.n_vectors, n_jobs=n_jobs)
    say(f"compress  every size from 1 to {len(path)} in {seconds(time.perf_counter() - started)}")
    started = time.perf_counter()
    made = compression_path(
        svc,
        train.X,
        train.y,
        n_vectors=40,
        method="gradient",
        settings=MADE,
        random_state=0,
        n_jobs=n_jobs,
    )
    say(f"make      {len(made)} models of new vectors in {seconds(time.perf_counter() - started)}")
    small: Any = path.select(valid.X, valid.y, max_loss=max_loss)
    chosen = small.expansion_.n_vectors
    say(
        f"select    {chosen} vectors, as all larger sizes, lose at most {percent(max_loss)} of accuracy on "
        "the validation rows"
    )
    promise = small.loss_bound_
    if promise.upper is not None:
        say(
            f"promise   on other rows at most {percent(promise.upper)}, with confidence "
            f"{promise.confidence:g}: {promise.rows} rows cannot promise less"
        )

    model_file = folder / "digits.safetensors"
    small.save(model_file)
    again = load(model_file)
    if not np.array_equal(again.decision_function(test.X), small.decision_function(test.X)):
        raise RuntimeError(f"{model_file}: the reloaded model predicts otherwise, please report this")
    say(f"reload    {model_file}: same predictions on the test rows, to the last bit")
    say()

    peer = peer_svm.SVC(C=C, gamma=GAMMA).fit(train.X, train.y)
    rows = [
        _row("scikit-learn SVC, one-vs-one", int(peer.n_support_.sum()), peer, test, len(pickle.dumps(peer)))
    ]
    rows.append(
        _row(
            "svmarrow SVC, one-vs-rest",
            svc.expansion_.n_vectors,
            svc,
            test,
            _saved(svc, folder / "full.safetensors"),
        )
    )
    sizes = sorted({*(s for s in SIZES if s <= len(path)), chosen})
    for vectors in sizes:
        model = path[vectors]
        bytes_ = _saved(model, model_file if vectors == chosen else folder / f"digits-{vectors}.safetensors")
        rows.append(
            _row("compressed, chosen" if vectors == chosen else "compressed", vectors, model, test, bytes_)
        )
    for new in made:
        vectors = new.expansion_.n_vectors
        rows.append(
            _row("new vectors", vectors, new, test, _saved(new, folder / f"made-{vectors}.safetensors"))
        )
    columns = ["model", "vectors", "test error", "microseconds per row", "file size"]
    size_table("On the test rows", columns, rows, marked=2 + sizes.index(chosen))
    say("scikit-learn's file is its pickle; times are for all test rows in one call")
    say()

    curve = folder / "curve.png"
    least, largest = made.sizes[0], svc.expansion_.n_vectors
    baseline = subsample_baseline(
        svc, train.X, train.y, test.X, test.y, sizes=np.geomspace(4 * least, largest, 8), random_state=0
    )
    display = path.plot(test.X, test.y, image_axes(), chosen=chosen, baseline=baseline)
    errors = 1.0 - made.scores(test.X, test.y)
    display.ax_.plot(made.sizes, errors, "D-", color=NEW, markersize=4.5, label="new vectors")
    finish(display.ax_, framealpha=1.0, loc="lower left", fontsize=8)
    display.ax_.set_title("Handwritten digits: test error of every size")
    figure: Any = display.figure_
    figure.savefig(curve, dpi=160)
    say(f"wrote {curve} and the models next to it; try: svmarrow info {model_file}")


def _saved(model: Any, file: Path) -> int:
    model.save(file)
    return file.stat().st_size


def _row(name: str, vectors: int, model: Any, test: Split, bytes_: int) -> list[str]:
    error = 1.0 - float(model.score(test.X, test.y))
    return [name, f"{vectors:,}", percent(error), f"{microseconds(model, test.X):.1f}", size(bytes_)]
