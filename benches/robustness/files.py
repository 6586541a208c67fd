"""Damaged files of every kind: refused in words, or read as something that works.

    python benches/robustness/files.py                 # 400 mutations and many cuts of each kind, a table
    python benches/robustness/files.py --cases 4000    # ten times as many
    python benches/robustness/files.py --only svmlight # kinds whose name holds a word

A file is cut at a byte, has bytes changed, or has a value of its JSON replaced by another: a wrong kind, a
negative count, a huge number. Then one of these comes of it:

- ``refused``: a `ValueError` from the reader (`FormatError` for models);
- ``works``: what was read answers, learns on and is saved, or refuses rows with a `ValueError`; what is
  saved is read again and saved to the same bytes;
- anything else is a fault: an error of another kind, a crash, a file that is read but cannot be saved.

A part of the cases, the same every time, runs in ``tests/io/test_damage.py``.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import io
import json
import struct
import sys
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from reports import keep

import svmarrow
from helpers.data import IRIS, KIND
from helpers.estimators import EXAMPLES, example
from svmarrow.cli.data import DataOptions, read_data
from svmarrow.exceptions import FormatError
from svmarrow.io import load_libsvm_model, load_svmlight, save_libsvm_model, save_svmlight

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: What takes the place of a value.
INSTEAD: list[Any] = [
    *(None, True, 0, -1, 2**31, 2**70, 1e308, -0.5, "rbf", "", [], {}, [[0]], {"dict": []}, {"tuple": []}),
    *({"float": "nan"}, {"float": "-inf"}, {"same": 0}, {"array": "vectors"}, {"array": "coefficients"}),
    *({"random": None}, {"range": [0, 9, 1]}, {"strings": ["a"]}),
    {"schema": "svc/1"},
]


class Kind:
    """Files of one kind: the bytes of a sound one, and what is done with another."""

    def __init__(self, name: str, sound: bytes, use: Callable[[Path], None]) -> None:
        self.name, self.sound, self.use = name, sound, use


def _saved(save: Callable[[Path], None]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        save(Path(folder) / "file")
        return (Path(folder) / "file").read_bytes()


def _use_model(path: Path, X: Any, y: Any) -> None:
    model = svmarrow.load(path)
    again = path.with_name("again")
    svmarrow.save(model, again)
    first = again.read_bytes()
    svmarrow.save(svmarrow.load(again), again)
    if again.read_bytes() != first:
        raise AssertionError("a model that was read is saved to other bytes the second time")
    for name in ("predict", "decision_function", "partial_fit"):
        if hasattr(model, name):
            with contextlib.suppress(ValueError):  # in words
                getattr(model, name)(*((X, y) if name == "partial_fit" else (X,)))


def _kinds() -> Iterator[Kind]:
    for name, (_, X) in EXAMPLES.items():
        model = example(name)
        y = getattr(model, "classes_", np.array([0.0, 1.0]))
        labels = np.resize(y if getattr(y, "ndim", 1) == 1 else np.arange(2), X.shape[0])

        def use(path: Path, X: Any = X, labels: Any = labels) -> None:
            _use_model(path, X, labels)

        yield Kind(f"model {name}", _saved(lambda path, model=model: svmarrow.save(model, path)), use)  # type: ignore[misc]

    def libsvm(path: Path) -> None:
        model = load_libsvm_model(path)
        with contextlib.suppress(ValueError):  # in words
            model.predict(IRIS)
        save_libsvm_model(model, path.with_name("again"))

    svc = svmarrow.SVC().fit(IRIS[::5], KIND[::5])
    yield Kind("LIBSVM model", _saved(lambda path: save_libsvm_model(svc, path)), libsvm)

    def svmlight(path: Path) -> None:
        X, y = load_svmlight(path)
        save_svmlight(X, y, path.with_name("again"))
        again, labels = load_svmlight(path.with_name("again"), X.shape[1] or None)
        assert (again != X).nnz == 0
        assert (labels == y).all()

    yield Kind("svmlight", _saved(lambda path: save_svmlight(IRIS[::9], KIND[::9], path)), svmlight)
    table = io.StringIO()
    np.savetxt(
        table,
        np.column_stack([IRIS, KIND])[::9],
        fmt="%g",
        delimiter=",",
        header="a,b,c,d,label",
        comments="",
    )
    yield Kind("CSV", table.getvalue().encode(), lambda path: _read(path, "csv"))
    for name, save in (("npz", np.savez), ("npz, compressed", np.savez_compressed)):
        archive = io.BytesIO()
        save(archive, X=IRIS[::9], y=KIND[::9])
        yield Kind(name, archive.getvalue(), lambda path: _read(path, "npz"))
    archive = io.BytesIO()
    np.savez(archive, data=[1.0, 2.0], indices=[0, 1], indptr=[0, 1, 2], shape=[2, 2], y=[0, 1])
    yield Kind("npz, sparse", archive.getvalue(), lambda path: _read(path, "npz"))


def _read(path: Path, form: Any) -> None:
    data = read_data(path, DataOptions(format=form))
    assert data.X.shape[0] == len(data.labels)


def _places(described: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Ways to all values of a JSON."""
    for key, item in described.items() if isinstance(described, dict) else enumerate(described):
        yield (*path, key)
        if isinstance(item, (dict, list)):
            yield from _places(item, (*path, key))


def _other_value(sound: bytes, random: np.random.Generator) -> bytes:
    """A model file with another value somewhere in its description."""
    (length,) = struct.unpack("<Q", sound[:8])
    header = json.loads(sound[8 : 8 + length])
    described = json.loads(header["__metadata__"]["extra"])
    ways = list(_places(described))
    inner, way = described, ways[random.integers(len(ways))]
    for key in way[:-1]:
        inner = inner[key]
    inner[way[-1]] = INSTEAD[random.integers(len(INSTEAD))]
    header["__metadata__"]["extra"] = json.dumps(described)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + sound[8 + length :]


def _other_bytes(sound: bytes, random: np.random.Generator) -> bytes:
    changed = bytearray(sound)
    for place in random.integers(0, len(sound), random.integers(1, 4)):
        way = random.integers(4)
        if way == 0:
            changed[place % len(changed)] ^= 1 << random.integers(8)
        elif way == 1:
            changed[place : place + 8] = b"\xff" * len(changed[place : place + 8])
        elif way == 2:
            changed[place:place] = changed[place // 2 : place // 2 + 9]
        else:
            del changed[place : place + 5]
    return bytes(changed)


def mutations(kind: Kind, cases: int, random: np.random.Generator) -> Iterator[bytes]:
    """Cut and changed files."""
    cuts = (
        range(len(kind.sound))
        if cases >= len(kind.sound)
        else random.integers(0, len(kind.sound), cases // 4)
    )
    for end in cuts:
        yield kind.sound[:end]
    for case in range(cases):
        other = _other_value if kind.name.startswith("model") and case % 4 else _other_bytes
        yield other(kind.sound, random)


def run(kind: Kind, cases: int, seed: int = 0) -> tuple[collections.Counter[str], list[tuple[str, bytes]]]:
    """What came of the files, and the faults with their bytes."""
    outcomes: collections.Counter[str] = collections.Counter()
    faults = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        path = Path(folder) / "file"
        path.write_bytes(kind.sound)
        kind.use(path)
        refusals = (FormatError,) if kind.name.startswith("model") else (ValueError,)
        for data in mutations(kind, cases, np.random.default_rng(seed)):
            path.write_bytes(data)
            try:
                kind.use(path)
                outcomes["works"] += 1
            except refusals:
                outcomes["refused"] += 1
            except Exception as error:  # noqa: BLE001 - every other error is a fault
                outcomes["fault"] += 1
                faults.append((f"{type(error).__name__}: {error}"[:200], data))
    return outcomes, faults


def kinds(only: str = "") -> list[Kind]:
    """The kinds whose name holds a word."""
    return [kind for kind in _kinds() if only in kind.name]


def _told(outcomes: collections.Counter[str]) -> str:
    return "  ".join(f"{name} {count}" for name, count in sorted(outcomes.items()))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--output", type=Path, help="JSON file to write")
    parser.add_argument("--keep", type=Path, help="folder for the files that made a fault")
    options = parser.parse_args()
    total: collections.Counter[str] = collections.Counter()
    results = {}
    for kind in kinds(options.only):
        outcomes, faults = run(kind, options.cases, options.seed)
        total += outcomes
        results[kind.name] = dict(sorted(outcomes.items()))
        print(
            f"{kind.name:40} " + "  ".join(f"{name} {count}" for name, count in sorted(outcomes.items())),
            flush=True,
        )
        for number, (words, data) in enumerate(faults):
            print(f"    {words}")
            if options.keep:
                options.keep.mkdir(parents=True, exist_ok=True)
                (options.keep / f"{kind.name.replace(' ', '-')}-{number}").write_bytes(data)
    print(f"{'all':40} {_told(total)}")
    keep(options.output, {"all": dict(sorted(total.items())), **results})
    return 1 if total["fault"] else 0


if __name__ == "__main__":
    sys.exit(main())
