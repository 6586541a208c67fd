"""What the scripts of this folder share: rows of the real sets, timings, and a report.

A script imports it as ``from common import ...``: it is run as ``python benches/papers/NAME.py``, so its
folder is on the path. The rows come from ``SVMARROW_DATA``, else from ``../shared/data`` beside the
repository.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.ensemble import VotingRegressor
from sklearn.frozen import FrozenEstimator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

ROOT = Path(__file__).resolve().parents[2]
#: Where reports and figures that belong to the documentation are kept.
PAGES = ROOT / "docs" / "papers"


class DataMissingError(Exception):
    """A set is not on this machine."""


class DirtyTreeError(Exception):
    """A page would name a commit that the files differ from."""


def no_sets() -> DataMissingError:
    """Return the error of a script that finds none of its sets."""
    return DataMissingError(
        f"{folder()} has none of the sets. `python benches/papers/data.py` fetches them; SVMARROW_DATA names "
        "another folder of data sets."
    )


@dataclass(frozen=True)
class Rows:
    """A set as its file has it; ``X_test`` and ``y_test`` are None where it has no split of its own."""

    X: Any
    y: np.ndarray
    X_test: Any = None
    y_test: Any = None

    def all(self) -> tuple[Any, np.ndarray]:
        """All rows, the test rows last."""
        if self.X_test is None:
            return self.X, self.y
        stack = sp.vstack if sp.issparse(self.X) else np.vstack
        return stack([self.X, self.X_test]), np.concatenate([self.y, self.y_test])


def folder() -> Path:
    """Where the ``.npz`` files are."""
    named = os.environ.get("SVMARROW_DATA")
    return Path(named) if named else ROOT.parent / "shared" / "data"


def _open(name: str) -> Any:
    path = folder() / f"{name}.npz"
    if not path.is_file():
        raise DataMissingError(
            f"{path} is not here. `python benches/papers/data.py {name}` fetches it, or names where to look "
            "for it; SVMARROW_DATA names another folder of data sets."
        )
    return np.load(path, allow_pickle=False)


def load(name: str, dtype: Any = np.float64) -> Rows:
    """Read a set; dense rows C-contiguous, sparse ones as CSR, values as ``dtype`` and not scaled."""
    with _open(name) as file:
        if "data" in file:

            def rows(prefix: str) -> Any:
                values = file[f"{prefix}data"].astype(dtype)
                parts = (values, file[f"{prefix}indices"], file[f"{prefix}indptr"])
                return sp.csr_array(parts, shape=tuple(int(size) for size in file[f"{prefix}shape"]))

            test = (rows("test_"), file["y_test"]) if "test_data" in file else (None, None)
            return Rows(rows(""), file["y"], *test)
        X = np.ascontiguousarray(file["X"], dtype=dtype)
        if "X_test" in file:
            return Rows(X, file["y"], np.ascontiguousarray(file["X_test"], dtype=dtype), file["y_test"])
        return Rows(X, file["y"])


def splits(name: str) -> Iterator[Rows]:
    """Yield the ten original splits of a Raetsch set, such as ``ratsch_banana``."""
    with _open(name) as file:
        X, y = np.ascontiguousarray(file["X"], dtype=np.float64), file["y"]
        for train, test in zip(file["train_idx"], file["test_idx"], strict=True):
            yield Rows(X[train], y[train], X[test], y[test])


def seconds(work: Callable[[], Any], repeat: int = 3) -> float:
    """Median time of ``repeat`` calls."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _processor_time() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def processor_times(
    works: Sequence[Callable[[], Any]], repeat: int = 3
) -> tuple[list[float], list[list[float]], list[Any]]:
    """Processor time of each work, children included: the median and all rounds, and what each returned last.

    The works take turns, so that a busy machine is busy for all of them: compare within a round. Processor
    time counts all threads; works that are compared should have one each.
    """
    rounds: list[list[float]] = []
    results: list[Any] = []
    for _ in range(repeat):
        times, results = [], []
        for work in works:
            before = _processor_time()
            results.append(work())
            times.append(_processor_time() - before)
        rounds.append(times)
    return [statistics.median(column) for column in zip(*rounds, strict=True)], rounds, results


def chunk_average(machine: Any, X: Any, y: np.ndarray, chunks: Sequence[np.ndarray]) -> Any:
    """The average of a regressor fitted on each of some chunks of the rows, as (5.24)."""
    fitted = [FrozenEstimator(clone(machine).fit(X[chunk], y[chunk])) for chunk in chunks]
    # FrozenEstimator does not fit again, so these rows do not matter.
    first = chunks[0]
    return VotingRegressor([(str(j), each) for j, each in enumerate(fitted)]).fit(X[first], y[first])


def git(*arguments: str) -> str:
    """Return what git prints about this repository."""
    result = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=False)
    return result.stdout.strip()


def uncommitted() -> list[str]:
    """Return the tracked files of the code and of the scripts that differ from the commit."""
    lines = git("status", "--porcelain", "--untracked-files=no", "--", "src", "python", "benches")
    return [line.split(maxsplit=1)[1] for line in lines.splitlines()]


def place() -> str:
    """The commit, with a + where files have changed since, the machine, and the day."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    model = names[0] if names else platform.processor() or platform.machine()
    commit = git("rev-parse", "--short", "HEAD") or "unknown"
    machine = f"{model}, {os.cpu_count()} processors"
    return f"commit {commit}{'+' if uncommitted() else ''}; {machine}; {time.strftime('%Y-%m-%d')}"


def plain_ticks(axis: Any, at: Sequence[float]) -> None:
    """Ticks at these values of a logarithmic axis, written out."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axis.set_minor_locator(NullLocator())
    axis.set_major_locator(FixedLocator(at))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


class Report:
    """Tables and sentences in Markdown, printed as they come; with ``--save`` a page of the documentation.

    A page is made of the script's parts. A run of some of them (``--only``) renews these and leaves the
    others of the page as they are; a part is saved as soon as it is done.
    """

    def __init__(self, name: str, title: str, options: argparse.Namespace) -> None:
        self.numbers: dict[str, Any] = {}
        self._name = name
        # Pictures of a run that is not saved belong to no page: they go where builds go.
        self._folder = (
            Path(__file__).parents[2] / "target" / "papers" if options.save is None else options.save
        )
        self._options = options
        # At the start: files may change while a long run goes on.
        self._place = place()
        if options.save is not None and (changed := uncommitted()):
            raise DirtyTreeError(
                f"--save={options.save} is not allowed: the page would name a commit that these files differ "
                f"from: {', '.join(changed)}. Commit them first, or run without --save"
            )
        self._page: dict[str, list[str]] = {} if options.save is None else self._read()
        self._part = ""
        self._page[""] = []
        self.say(f"# {title}")

    def say(self, text: str) -> None:
        """Add a paragraph or a heading."""
        self._page[self._part].append(text.strip())
        print(text.strip() + "\n", flush=True)

    def table(self, title: str, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Add a table; numbers get four digits."""

        def cell(value: Any) -> str:
            return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)

        if any(len(row) != len(head) for row in rows):
            raise ValueError(f"table {title!r} has {len(head)} columns, and a line of another length")
        lines = [f"**{title}**", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        lines += ["| " + " | ".join(cell(value) for value in row) + " |" for row in rows]
        self.say("\n".join(lines))

    def figure(self, figure: Any, label: str) -> None:
        """Save a Matplotlib figure beside the page; in ``target/papers`` where none is saved."""
        path = self._folder / f"{self._name}-{label}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110, bbox_inches="tight")
        self.say(f"![{label}]({path.name})")

    def run(self, parts: Mapping[str, Callable[[Report, argparse.Namespace], None]]) -> int:
        """Run the parts that were asked for one after the other, save after each; the exit code."""
        for name in self._options.only:
            self._part = name
            self._page[name] = []
            start = time.perf_counter()
            parts[name](self, self._options)
            took = time.perf_counter() - start
            quick = " --quick" if self._options.quick else ""
            command = f"python benches/papers/{self._name}.py --only {name}{quick} --save"
            self.say(f"*{name}: {took:.0f} s by `{command}`; {self._place}.*")
            self._save()
        return 0

    def _save(self) -> None:
        if self._options.save is not None:
            path = self._folder / f"{self._name}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            texts = []
            for part in ("", *self._options.parts):
                if part in self._page:
                    mark = [f"<!-- part: {part} -->"] if part else []
                    texts += mark + self._page[part]
            path.write_text("\n\n".join(texts) + "\n", encoding="utf-8")
        if self._options.json is not None:
            numbers = json.dumps(self.numbers, indent=1, default=float)
            self._options.json.write_text(numbers + "\n", encoding="utf-8")

    def _read(self) -> dict[str, list[str]]:
        """Return the parts of the page that is there."""
        path = self._folder / f"{self._name}.md"
        if not path.is_file():
            return {}
        pieces = re.split(r"^<!-- part: (\S+) -->$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        return {name: [text.strip()] for name, text in zip(pieces[1::2], pieces[2::2], strict=True)}


def arguments(doc: str, parts: Sequence[str]) -> argparse.ArgumentParser:
    """Return a parser with what all scripts take; ``parts`` are the names of the tables and figures."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=parts, default=list(parts), help="these parts only")
    parser.add_argument("--quick", action="store_true", help="few rows and repeats: shows that it runs")
    parser.add_argument(
        "--save",
        nargs="?",
        type=Path,
        const=PAGES,
        help="write figures there, and these parts of the page (docs/papers)",
    )
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    parser.set_defaults(parts=tuple(parts))
    return parser


def run(main: Callable[[], int]) -> None:
    """Leave the process; a missing set or uncommitted changes end it with one line of advice."""
    try:
        sys.exit(main())
    except (DataMissingError, DirtyTreeError) as refusal:
        print(refusal, file=sys.stderr)
        sys.exit(2)
