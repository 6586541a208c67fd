"""Fetches the data sets of the papers' scripts: ``python benches/papers/data.py [NAME ...]``.

Each set comes from OpenML (by scikit-learn's ``fetch_openml``) where it is there in its original form, else
from the LIBSVM data page, else from the UCI repository. It is converted to the layout that the scripts load,
its hash is compared with that of the set which the pages were measured on (``data_hashes.json``), and it is
written to ``SVMARROW_DATA``, or to ``../shared/data`` beside the repository. The last lines report every set
that could not be obtained. A set whose hash differs is not written, unless ``--keep-different`` is given.

``--hashes`` computes the hashes of the sets in the folder and writes ``data_hashes.json``.
"""

from __future__ import annotations

import argparse
import bz2
import hashlib
import io
import json
import sys
import tempfile
import urllib.request
import zipfile
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import scipy.sparse as sp
from cited_preprocessing import smoothed, without_header
from common import folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Arrays = dict[str, np.ndarray]

HASHES = Path(__file__).with_name("data_hashes.json")
LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
UCI = "https://archive.ics.uci.edu/static/public/"
TIMEOUT_SECONDS = 120
SAME, REORDERED, DIFFERENT = "the same", "the same samples in another order", "different"
UNKNOWN = "without a hash to compare with: no page was measured on it"
YEAST = ("CYT", "NUC", "MIT", "ME3", "ME2", "ME1", "EXC", "VAC", "POX", "ERL")
#: Sets that no source has in the form that was measured, and where to look for them.
NOT_FETCHED = dict.fromkeys(
    ("ratsch_banana", "ratsch_german", "ratsch_image", "ratsch_waveform"),
    "the splits of Raetsch are not on OpenML, LIBSVM or UCI; look for the IDA benchmark repository and save "
    "X, y, train_idx and test_idx of the first ten realisations",
)


class Fetcher(Protocol):
    """What a source of raw data has to do; tests replace it."""

    def openml(self, name: str, version: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the features as floats and the target of a set of OpenML."""

    def file(self, address: str) -> bytes:
        """Return the content of an address."""

    def newsgroups(self, subset: str) -> tuple[list[str], np.ndarray]:
        """Return the documents of 20newsgroups and their classes."""


class Internet:
    """Fetches raw data by scikit-learn and urllib."""

    def openml(self, name: str, version: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the features as floats and the target of a set of OpenML."""
        from sklearn.datasets import fetch_openml

        found = fetch_openml(name=name, version=version, as_frame=False, parser="auto")
        return np.asarray(found.data, dtype=np.float64), np.asarray(found.target)

    def file(self, address: str) -> bytes:
        """Return the content of an address."""
        with urllib.request.urlopen(address, timeout=TIMEOUT_SECONDS) as answer:
            content: bytes = answer.read()
        return content

    def newsgroups(self, subset: str) -> tuple[list[str], np.ndarray]:
        """Return the documents of 20newsgroups by date, with headers, footers and quotes."""
        from sklearn.datasets import fetch_20newsgroups

        found = fetch_20newsgroups(subset=subset, shuffle=False)
        return found.data, found.target


def sparse(prefix: str, X: Any) -> Arrays:
    """Return the arrays of a sparse matrix as the scripts load them."""
    X = sp.csr_array(X)
    X.sort_indices()
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}
    return {prefix + key: value for key, value in parts.items()}


def svmlight(fetcher: Fetcher, address: str, n_features: int) -> tuple[Any, np.ndarray]:
    """Return the samples and labels of a file of the LIBSVM data page."""
    from sklearn.datasets import load_svmlight_file

    content = fetcher.file(LIBSVM + address)
    if address.endswith(".bz2"):
        content = bz2.decompress(content)
    X, y = load_svmlight_file(io.BytesIO(content), n_features=n_features)
    return X, y.astype(np.int64)


def from_libsvm(
    address: str, n_features: int, test: str | None = None, *, dense: bool = True, shift: int = 0
) -> Callable[[Fetcher], Arrays]:
    """Return a recipe for a set of the LIBSVM data page; ``shift`` is added to the labels."""

    def make(fetcher: Fetcher) -> Arrays:
        found: Arrays = {}
        for prefix, suffix, where in (("", "", address), ("test_", "_test", test)):
            if where is None:
                continue
            X, y = svmlight(fetcher, where, n_features)
            found |= {f"X{suffix}": X.toarray()} if dense else sparse(prefix, X)
            found[f"y{suffix}"] = y + shift
        return found

    return make


def from_openml(
    name: str, version: int = 1, *, train: int | None = None, label: Callable[[Any], float] = float
) -> Callable[[Fetcher], Arrays]:
    """Return a recipe for a set of OpenML; the samples after the first ``train`` are for testing."""

    def make(fetcher: Fetcher) -> Arrays:
        X, target = fetcher.openml(name, version)
        y = np.array([label(value) for value in target])
        complete = ~np.isnan(X).any(axis=1)
        X, y = X[complete], y[complete]
        if train is None:
            return {"X": X, "y": y}
        return {"X": X[:train], "y": y[:train], "X_test": X[train:], "y_test": y[train:]}

    return make


def split_and_standardised(name: str, *, label: Callable[[Any], float]) -> Callable[[Fetcher], Arrays]:
    """Return a recipe with 30 % of the samples for testing (seed 0), standardised on the others."""

    def make(fetcher: Fetcher) -> Arrays:
        from sklearn.model_selection import train_test_split
        from sklearn.preprocessing import StandardScaler

        found = from_openml(name, label=label)(fetcher)
        X, X_test, y, y_test = train_test_split(found["X"], found["y"], test_size=0.3, random_state=0)
        scaler = StandardScaler().fit(X)
        return {"X": scaler.transform(X), "y": y, "X_test": scaler.transform(X_test), "y_test": y_test}

    return make


def member(fetcher: Fetcher, archive: str, name: str) -> list[list[str]]:
    """Return the fields of the lines of a file in an archive of the UCI repository."""
    with zipfile.ZipFile(io.BytesIO(fetcher.file(UCI + archive))) as opened:
        text = opened.read(name).decode("utf-8")
    return [line.replace(",", " ").split() for line in text.splitlines() if line.strip()]


def satimage(fetcher: Fetcher) -> Arrays:
    """Return satimage with its own split."""
    found: Arrays = {}
    for suffix, name in (("", "sat.trn"), ("_test", "sat.tst")):
        table = np.array(member(fetcher, "146/statlog+landsat+satellite.zip", name), dtype=np.int64)
        found[f"X{suffix}"], found[f"y{suffix}"] = table[:, :-1], table[:, -1]
    return found


def yeast(fetcher: Fetcher) -> Arrays:
    """Return yeast with its classes numbered by size."""
    lines = member(fetcher, "110/yeast.zip", "yeast.data")
    X = np.array([line[1:-1] for line in lines], dtype=np.float64)
    return {"X": X, "y": np.array([YEAST.index(line[-1]) + 1 for line in lines])}


def abalone(fetcher: Fetcher) -> Arrays:
    """Return abalone with sex as M 1, F 2, I 3."""
    lines = member(fetcher, "1/abalone.zip", "abalone.data")
    X = np.array([["MFI".index(line[0]) + 1, *map(float, line[1:-1])] for line in lines], dtype=np.float64)
    return {"X": X, "y": np.array([float(line[-1]) for line in lines])}


def usps_smoothed(fetcher: Fetcher) -> Arrays:
    """Return USPS after a Gaussian filter, made of the set in the folder, else of the fetched one."""
    path = folder() / "usps.npz"
    arrays = read(path) if path.is_file() else RECIPES["usps"].make(fetcher)
    return arrays | {key: smoothed(arrays[key]) for key in ("X", "X_test")}


def news(fetcher: Fetcher, change: Callable[[str], str] | None = None) -> Arrays:
    """Return 20newsgroups by date as counts of words that two training documents have.

    ``change`` is applied to each document before.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    words = CountVectorizer(min_df=2, dtype=np.int64)
    found: Arrays = {}
    for prefix, suffix, subset in (("", "", "train"), ("test_", "_test", "test")):
        documents, y = fetcher.newsgroups(subset)
        documents = documents if change is None else list(map(change, documents))
        X = words.fit_transform(documents) if subset == "train" else words.transform(documents)
        found |= sparse(prefix, X) | {f"y{suffix}": y}
    return found


def sign(positive: str) -> Callable[[Any], float]:
    """Return a function that is 1 for one class and -1 for the others."""
    return lambda value: 1.0 if str(value) == positive else -1.0


@dataclass(frozen=True)
class Recipe:
    """How a set is made, and to how many decimals its values are compared."""

    source: str
    make: Callable[[Fetcher], Arrays]
    decimals: int = 6
    #: Whether it is made of another set of the folder.
    derived: bool = False


RECIPES: dict[str, Recipe] = {
    "usps": Recipe("LIBSVM", from_libsvm("multiclass/usps.bz2", 256, "multiclass/usps.t.bz2", shift=-1), 3),
    "letter": Recipe("OpenML", from_openml("letter", train=16_000, label=lambda v: ord(str(v)) - 65)),
    "mnist": Recipe("OpenML", from_openml("mnist_784", train=60_000)),
    "satimage": Recipe("UCI", satimage),
    "a9a": Recipe("LIBSVM", from_libsvm("binary/a9a", 123, "binary/a9a.t", dense=False)),
    "w8a": Recipe("LIBSVM", from_libsvm("binary/w8a", 300, dense=False)),
    "ijcnn1": Recipe("LIBSVM", from_libsvm("binary/ijcnn1.bz2", 22, "binary/ijcnn1.t.bz2")),
    "cod_rna": Recipe("LIBSVM", from_libsvm("binary/cod-rna", 8)),
    "mushrooms": Recipe("LIBSVM", from_libsvm("binary/mushrooms", 112)),
    "breast_cancer_wisconsin": Recipe("OpenML", from_openml("breast-w", label=sign("malignant"))),
    "sonar": Recipe("OpenML", from_openml("sonar", label=sign("Mine"))),
    "pima_diabetes": Recipe("OpenML", from_openml("diabetes", label=sign("tested_positive"))),
    "ionosphere": Recipe("OpenML", from_openml("ionosphere", label=sign("g"))),
    "yeast": Recipe("UCI", yeast),
    "abalone": Recipe("UCI", abalone),
    "kin8nm": Recipe("OpenML", from_openml("kin8nm")),
    "usps_smoothed": Recipe("usps", usps_smoothed, derived=True),
    "news20_bydate": Recipe("scikit-learn", news),
    "news20_no_headers": Recipe("scikit-learn", partial(news, change=without_header)),
    "magic": Recipe("OpenML", split_and_standardised("MagicTelescope", label=sign("g")), 5),
    "page_blocks": Recipe("OpenML", split_and_standardised("page-blocks", label=float), 5),
}


def rounded(array: np.ndarray, decimals: int) -> np.ndarray:
    """Return an array rounded to single precision and to some decimals, the same for every way of parsing."""
    return np.round(np.asarray(array, dtype="<f4").astype("<f8"), decimals) + 0.0


def samples(arrays: Arrays, suffix: str, decimals: int) -> list[bytes]:
    """Return the digest of each sample of the training or of the test part, its label included."""
    prefix = "test_" if suffix else ""
    y = rounded(arrays[f"y{suffix}"], decimals)
    if f"{prefix}data" in arrays:
        parts = (arrays[f"{prefix}{key}"] for key in ("data", "indices", "indptr"))
        X: Any = sp.csr_array(tuple(parts), shape=tuple(int(n) for n in arrays[f"{prefix}shape"]))
        X.sum_duplicates()
        X.eliminate_zeros()
        data, ends = rounded(X.data, decimals), X.indptr
        rows = [X.indices[a:b].astype("<i8").tobytes() + data[a:b].tobytes() for a, b in pairwise(ends)]
        width = X.shape[1]
    else:
        dense = rounded(arrays[f"X{suffix}"], decimals)
        rows, width = [row.tobytes() for row in dense], dense.shape[1]
    head = np.array([width], dtype="<i8").tobytes()
    return [hashlib.sha256(head + row + label.tobytes()).digest() for row, label in zip(rows, y, strict=True)]


def fingerprint(arrays: Arrays, decimals: int) -> dict[str, Any]:
    """Return the numbers of samples, and hashes with the order of the samples and without."""
    parts = [samples(arrays, suffix, decimals) for suffix in ("", "_test") if f"y{suffix}" in arrays]
    whole, sorted_ = hashlib.sha256(), hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8, "little") + b"".join(part))
        sorted_.update(len(part).to_bytes(8, "little") + b"".join(sorted(part)))
    return {
        "samples": [len(part) for part in parts],
        "in order": whole.hexdigest(),
        "in any order": sorted_.hexdigest(),
    }


def compared(found: dict[str, Any], expected: dict[str, Any] | None) -> str:
    """Return how a set differs from the one that was measured, if one was."""
    if expected is None:
        return UNKNOWN
    if found["in order"] == expected["in order"]:
        return SAME
    return REORDERED if found["in any order"] == expected["in any order"] else DIFFERENT


def read(path: Path) -> Arrays:
    """Return the arrays of a file."""
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def obtain(name: str, fetcher: Fetcher, to: Path, *, keep_different: bool = False) -> tuple[bool, str]:
    """Fetch, convert, check and write a set; whether it is there, and a sentence about it."""
    expected = json.loads(HASHES.read_text(encoding="utf-8"))
    path = to / f"{name}.npz"
    if name in NOT_FETCHED:
        return path.is_file(), "is already here" if path.is_file() else NOT_FETCHED[name]
    recipe = RECIPES[name]
    if path.is_file():
        state = compared(fingerprint(read(path), recipe.decimals), expected[name])
        return True, "is already here, " + (f"{state} as measured" if state == SAME else state)
    try:
        arrays = recipe.make(fetcher)
    except Exception as failed:  # noqa: BLE001 - whatever a source raises, the other sets go on
        return False, f"could not be obtained from {recipe.source}: {type(failed).__name__}: {failed}"
    found = fingerprint(arrays, recipe.decimals)
    state = compared(found, expected[name])
    if state == DIFFERENT and not keep_different:
        return False, (
            f"from {recipe.source} differs from the set that was measured ({found['samples']} samples "
            f"instead of {expected[name]['samples']} or other values) and was not written; "
            "--keep-different writes it"
        )
    to.mkdir(parents=True, exist_ok=True)
    # A file that is cut off must not look like a set.
    with tempfile.NamedTemporaryFile(dir=to, suffix=".part", delete=False) as part:
        np.savez_compressed(part, **arrays)
    Path(part.name).replace(path)
    return True, f"fetched from {recipe.source}: {state}"


def write_hashes(at: Path) -> None:
    """Write the hashes of the sets of a folder and of those that are made of them; null for a missing one."""
    found: dict[str, dict[str, Any] | None] = {}
    for name, recipe in RECIPES.items():
        path = at / f"{name}.npz"
        if recipe.derived:
            found[name] = fingerprint(recipe.make(Internet()), recipe.decimals)
        else:
            found[name] = fingerprint(read(path), recipe.decimals) if path.is_file() else None
    HASHES.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def main(given: Sequence[str] | None = None, fetcher: Fetcher | None = None) -> int:
    """Obtain the sets; 1 if one is missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = [*RECIPES, *NOT_FETCHED]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"sets, all without one: {', '.join(known)}")
    parser.add_argument("--keep-different", action="store_true", help="also write sets whose hash differs")
    parser.add_argument("--hashes", action="store_true", help="write the hashes of the sets in the folder")
    options = parser.parse_args(given)
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"NAME: {', '.join(unknown)}: must be one of {', '.join(known)}")
    if options.hashes:
        write_hashes(folder())
        return 0
    missing = []
    for name in options.names or known:
        there, said = obtain(name, fetcher or Internet(), folder(), keep_different=options.keep_different)
        print(f"{name}: {said}", flush=True)
        if not there:
            missing.append(name)
    if missing:
        print(f"Not obtained: {', '.join(missing)}. Scripts that need them end with a message.")
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main())
