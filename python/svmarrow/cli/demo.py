"""The demonstration: train, compress, select, construct, save and load a model of digits.

Half of the digits are training samples, a fifth are validation samples for the selection of the size, and the
others are test samples. Times are those of the whole test set in one call, the best of several.
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
from svmarrow._support.displays import CHOICE, finish, image_axes
from svmarrow.cli.terminal import describe_certificate, percent, say, seconds, size, size_table
from svmarrow.reduced_set import GradientSettings, subsample_baseline

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["run"]

SIZES = (10, 20, 50, 100, 200)
"""Sizes in the table in addition to the chosen one."""

MADE = GradientSettings(sizes=(5, 10, 20), steps=3000)
"""Sizes and number of steps of the construction; the demonstration takes seconds."""

TIMING_SECONDS = 0.1
"""Minimum number of seconds of the timing of each model."""

C = 10.0
GAMMA = 0.001
"""The value of scikit-learn's example with these data."""

NEW = "#8a4f9e"
"""Color of the models with constructed vectors in the plot."""


class Split(NamedTuple):
    """Samples and labels of one part of the data."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]


def load_splits() -> tuple[Split, Split, Split]:
    """Returns training, validation and test samples."""
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
    """Runs the demonstration and writes models and plot to `folder`."""
    train, valid, test = load_splits()
    folder.mkdir(parents=True, exist_ok=True)
    say(
        f"The data are scikit-learn's digits: {len(train.y)} training, {len(valid.y)} validation and "
        f"{len(test.y)} test samples."
    )

    started = time.perf_counter()
    svc = SVC(C=C, gamma=GAMMA, multi_class="ovr", n_jobs=n_jobs).fit(train.X, train.y)
    say(
        f"Training: a one-vs-rest SVC has {svc.expansion_.n_vectors} support vectors after "
        f"{seconds(time.perf_counter() - started)}. {describe_certificate(svc.certificate_)}"
    )
    started = time.perf_counter()
    path = compression_path(svc, train.X, train.y, n_vectors=svc.expansion_.n_vectors, n_jobs=n_jobs)
    say(f"Compression: models with 1 to {len(path)} vectors took {seconds(time.perf_counter() - started)}.")
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
    say(f"Construction: {len(made)} models with new vectors took {seconds(time.perf_counter() - started)}.")
    small: Any = path.select(valid.X, valid.y, max_loss=max_loss)
    chosen = small.expansion_.n_vectors
    say(
        f"Selection: models with {chosen} and more vectors lose at most {100 * max_loss:g} points of "
        "accuracy on the validation samples."
    )
    say(f"Bound: {small.loss_bound_}")

    enough = float(svc.score(valid.X, valid.y)) - max_loss
    scores = zip(made.sizes, made.scores(valid.X, valid.y), strict=True)
    good = [vectors for vectors, score in scores if score >= enough and vectors < chosen]
    best: Any = made[good[0]] if good else small
    n_best = best.expansion_.n_vectors

    model_file = folder / "digits.safetensors"
    small.save(model_file)
    again = load(model_file)
    if not np.array_equal(again.decision_function(test.X), small.decision_function(test.X)):
        raise RuntimeError(f"{model_file}: the reloaded model has other predictions; please report this")
    say(f"Saving: {model_file} has been loaded again and has the same predictions, to the last bit.")
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
            _row("compressed, selected" if vectors == chosen else "compressed", vectors, model, test, bytes_)
        )
    for new in made:
        vectors = new.expansion_.n_vectors
        rows.append(
            _row(
                "constructed vectors", vectors, new, test, _saved(new, folder / f"made-{vectors}.safetensors")
            )
        )
    advised = 2 + sizes.index(chosen) if best is small else 2 + len(sizes) + list(made.sizes).index(n_best)
    columns = ["model", "vectors", "test error", "microseconds per sample", "file size"]
    size_table("Results on the test samples", columns, rows, marked=advised)
    say(
        f"Use {rows[advised][0]}, {n_best} vectors (printed in bold): a small model that loses at most "
        f"{100 * max_loss:g} points on the validation samples. Smaller ones are faster and lose more."
    )
    say("scikit-learn's file is a pickle. Times are for all test samples in one call.")
    say()

    curve = folder / "curve.png"
    least, largest = made.sizes[0], svc.expansion_.n_vectors
    baseline = subsample_baseline(
        svc, train.X, train.y, test.X, test.y, sizes=np.geomspace(4 * least, largest, 8), random_state=0
    )
    shown = chosen if best is small else None
    display = path.plot(test.X, test.y, image_axes(), chosen=shown, baseline=baseline)
    errors = 1.0 - made.scores(test.X, test.y)
    display.ax_.plot(made.sizes, errors, "D-", color=NEW, markersize=4.5, label="constructed vectors")
    if best is not small:
        error = errors[list(made.sizes).index(n_best)]
        label = f"chosen, {n_best} vectors: {percent(error)}"
        display.ax_.plot(n_best, error, "o", color=CHOICE, markersize=7, zorder=3, label=label)
    finish(display.ax_, framealpha=1.0, loc="lower left", fontsize=8)
    display.ax_.set_title("Handwritten digits: test error of every size")
    figure: Any = display.figure_
    figure.savefig(curve, dpi=160)
    say(f"Wrote {curve} and the models next to it. To describe a model: svmarrow info {model_file}")


def _saved(model: Any, file: Path) -> int:
    model.save(file)
    return file.stat().st_size


def _row(name: str, vectors: int, model: Any, test: Split, bytes_: int) -> list[str]:
    error = 1.0 - float(model.score(test.X, test.y))
    return [name, f"{vectors:,}", percent(error), f"{microseconds(model, test.X):.1f}", size(bytes_)]
