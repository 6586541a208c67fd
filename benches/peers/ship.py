"""Small models that ship: bytes, microseconds a row and error of one model in all the forms that it can take.

    python benches/peers/ship.py [--sets satimage usps letter] [--json FILE] [--picture FILE]

A support vector machine (one-vs-rest) is trained, compressed by construction, and kept in bytes; each is
timed in Python (all test rows in one call, and row by row), in onnxruntime and, where gcc is here, as C (one
row after the other in a loop), on one thread. Beside them stand scikit-learn's SVC and HistGradientBoosting,
m2cgen's C of that SVC and emlearn's C of a random forest, where those packages are. "Bytes" are the file:
safetensors, ONNX, the tables of the C header, the pickle of scikit-learn's models; of the C of others what
`size` counts as text and data. On an emulated Cortex-M4 instructions a row are counted.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import platform
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import cortex
import numpy as np
from sklearn import svm as peer_svm
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from threadpoolctl import threadpool_limits

import svmarrow
from svmarrow.export import to_c, to_onnx

#: C, gamma after scaling to 0 ... 1, vectors of the small model.
SETS = {"satimage": (16.0, 4.0, 100), "usps": (10.0, 0.02, 100), "letter": (16.0, 6.0, 250)}
SECONDS = 0.3


def data(name):
    """Training and test rows, scaled to 0 ... 1 by the training rows, and labels."""
    folder = Path(os.environ.get("SVMARROW_DATA", "../shared/data"))
    with np.load(folder / f"{name}.npz") as file:
        X, y, X_test, y_test = (file[key] for key in ("X", "y", "X_test", "y_test"))
    scaler = MinMaxScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(X_test), y_test


def best(work, rows):
    """Microseconds a row, the least of several calls."""
    work()
    times = []
    while len(times) < 3 or sum(times) < SECONDS:
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return 1e6 * min(times) / rows


C_LOOP = """#include <stdio.h>
#include <stdlib.h>
#include <time.h>
{include}
static float rows[{n}][{d}];
static int answers[{n}];
int main(int argc, char **argv) {{
    FILE *file = fopen(argv[1], "rb");
    struct timespec a, b;
    double least = 1e9;
    int i, turn;
    (void)argc;
    if (fread(rows, sizeof rows, 1, file) != 1) {{
        return 1;
    }}
    for (turn = 0; turn < 3; ++turn) {{
        clock_gettime(CLOCK_MONOTONIC, &a);
        for (i = 0; i < {n}; ++i) {{
            answers[i] = {call};
        }}
        clock_gettime(CLOCK_MONOTONIC, &b);
        double took = (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
        least = took < least ? took : least;
    }}
    printf("%.9g\\n", 1e6 * least / {n});
    for (i = 0; i < {n}; ++i) {{
        printf("%d\\n", answers[i]);
    }}
    return 0;
}}
"""


def run_c(text, include, call, X, timeout=120):
    """Microseconds a row, numbers of the classes, bytes of text and data of the object file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model.h").write_text(text)
        loop = C_LOOP.format(include=include, call=call, n=len(X), d=X.shape[1])
        (folder / "main.c").write_text(loop)
        np.ascontiguousarray(X, np.float32).tofile(folder / "rows")
        flags = ["-std=gnu99", "-O2", "-I", folder, "-I", emlearn_folder()]
        command = ["gcc", *flags, folder / "main.c", "-o", folder / "main", "-lm"]
        subprocess.run(command, check=True, timeout=timeout)
        sizes = subprocess.run(["size", folder / "main"], capture_output=True, text=True, check=True)
        done = subprocess.run(
            [folder / "main", folder / "rows"], capture_output=True, text=True, check=True, timeout=timeout
        )
    lines = done.stdout.split()
    text_bytes, data_bytes = sizes.stdout.splitlines()[1].split()[:2]
    return float(lines[0]), np.array(lines[1:], dtype=int), int(text_bytes) + int(data_bytes)


def emlearn_folder():
    """Where emlearn's headers are."""
    try:
        import emlearn
    except ImportError:
        return "."
    return emlearn.includedir


def onnx_rows(model, X, y, dtype):
    """A row of the table for onnxruntime, all rows at once, and one by one."""
    import onnxruntime

    made = to_onnx(model, dtype=dtype)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(made.SerializeToString(), options)
    rows = np.ascontiguousarray(X, dtype)
    labels = session.run(["label"], {"X": rows})[0]
    singles = rows[:200]
    return {
        "bytes": len(made.SerializeToString()),
        "error": float((labels != y).mean()),
        "batch": best(lambda: session.run(["label"], {"X": rows}), len(rows)),
        "single": best(
            lambda: [session.run(["label"], {"X": singles[i : i + 1]}) for i in range(len(singles))],
            len(singles),
        ),
    }


def own_rows(model, X, y):
    """A row of the table for svmarrow: the estimator on all rows, the compiled model row by row."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.safetensors"
        svmarrow.save(model, file)
        size = file.stat().st_size
    model.set_params(n_jobs=1)
    predict, rows = model.compiled().predict, X[:200].tolist()
    return {
        "bytes": size,
        "error": float((model.predict(X) != y).mean()),
        "batch": best(lambda: model.predict(X), len(X)),
        "single": best(lambda: [predict(row) for row in rows], len(rows)),
        "estimator": best(lambda: [model.predict(X[i : i + 1]) for i in range(50)], 50),
    }


def peer_rows(model, X, y):
    """A row of the table for an estimator of scikit-learn."""
    return {
        "bytes": len(pickle.dumps(model)),
        "error": float((model.predict(X) != y).mean()),
        "batch": best(lambda: model.predict(X), len(X)),
        "single": best(lambda: [model.predict(X[i : i + 1]) for i in range(50)], 50),
    }


def study(name):
    """All forms of the models of one set."""
    C, gamma, vectors = SETS[name]
    X, y, X_test, y_test = data(name)
    svc = svmarrow.SVC(C=C, gamma=gamma, multi_class="ovr").fit(X, y)
    full = svmarrow.as_expansion(svc)
    started = time.perf_counter()
    small = svmarrow.compress(svc, X, y, n_vectors=vectors, method="gradient", random_state=0)
    seconds = time.perf_counter() - started
    bytes_ = svmarrow.quantize(small, dtype="int8", X=X)
    kinds = {"full": full, "compressed": small, "int8": bytes_}
    print(f"{name}: {full.expansion_.n_vectors} vectors to {vectors} in {seconds:.1f} s", flush=True)
    table = {}
    for kind, model in kinds.items():
        table[f"svmarrow, {kind}"] = own_rows(model, X_test, y_test)
        if kind != "int8":
            table[f"onnxruntime, {kind}"] = onnx_rows(model, X_test, y_test, "float32")
    if shutil.which("gcc"):
        for kind, dtype in (("compressed", "float32"), ("int8", "int8")):
            made = to_c(small, prefix="p", dtype=dtype, X=X, y=y)
            took, numbers, _ = run_c(made.text, '#include "model.h"', "p_predict(rows[i])", X_test)
            row = {"bytes": made.flash, "single": took}
            row["error"] = float((small.classes_[numbers] != y_test).mean())
            if not cortex.missing():
                with tempfile.TemporaryDirectory() as folder:
                    found = cortex.run(made.text, X_test[:100], Path(folder))
                row["cortex"] = {
                    "flash": found.flash,
                    "instructions": found.instructions,
                    "same labels as here": float((found.numbers == numbers[:100]).mean()),
                }
            table[f"C, {kind}"] = row
    peer = peer_svm.SVC(C=C, gamma=gamma).fit(X, y)
    table["scikit-learn SVC"] = peer_rows(peer, X_test, y_test)
    trees = HistGradientBoostingClassifier(random_state=0).fit(X, y)
    table["HistGradientBoosting"] = peer_rows(trees, X_test, y_test)
    table |= foreign_c(peer, X, y, X_test, y_test)
    return {"vectors": [full.expansion_.n_vectors, vectors], "compress_seconds": seconds, "rows": table}


def foreign_c(peer, X, y, X_test, y_test):
    """C of other packages, where they are and come to an end."""
    found = {}
    classes = np.unique(y)
    if shutil.which("gcc") is None:
        return found
    try:
        import m2cgen

        text = m2cgen.export_to_c(peer)
        k = len(classes)
        wrapper = (
            '#include "model.h"\nstatic int m2cgen_predict(const float *x) {\n'
            f"    double row[{X.shape[1]}], out[{k}];\n    int j, best = 0;\n"
            f"    for (j = 0; j < {X.shape[1]}; ++j) row[j] = x[j];\n    score(row, out);\n"
            f"    for (j = 1; j < {k}; ++j) if (out[j] > out[best]) best = j;\n    return best;\n}}\n"
        )
        took, numbers, size = run_c(text, wrapper, "m2cgen_predict(rows[i])", X_test)
        error = float((classes[numbers] != y_test).mean())
        found["m2cgen, C of scikit-learn's SVC"] = {"bytes": size, "single": took, "error": error}
    except ImportError:
        print("m2cgen is not here", flush=True)
    except (subprocess.SubprocessError, RecursionError, MemoryError) as error:
        found["m2cgen, C of scikit-learn's SVC"] = {"failed": type(error).__name__}
    try:
        import emlearn

        forest = RandomForestClassifier(30, max_depth=12, random_state=0)
        pipeline = make_pipeline(forest).fit((X * 1000).astype(np.int16), y)
        made = emlearn.convert(pipeline.steps[-1][1], method="inline", dtype="int16_t")
        text = made.save(name="forest")
        d = X.shape[1]
        wrapper = (
            "#include <stdint.h>\n" + '#include "model.h"\nstatic int emlearn_predict(const float *x) {\n'
            f"    int16_t row[{d}];\n    int j;\n"
            f"    for (j = 0; j < {d}; ++j) row[j] = (int16_t)(x[j] * 1000.0f);\n"
            f"    return forest_predict(row, {d});\n}}\n"
        )
        took, numbers, size = run_c(text, wrapper, "emlearn_predict(rows[i])", X_test)
        error = float((classes[numbers] != y_test).mean())
        found["emlearn, C of a random forest"] = {"bytes": size, "single": took, "error": error}
    except ImportError:
        print("emlearn is not here", flush=True)
    except subprocess.SubprocessError as error:
        found["emlearn, C of a random forest"] = {"failed": type(error).__name__}
    return found


def show(results):
    """The tables as text."""
    for name, result in results.items():
        print(f"\n{name}: {result['vectors'][0]:,} vectors to {result['vectors'][1]}")
        print(f"{'':34s} {'kB':>9s} {'us, batch':>10s} {'us, single':>11s} {'error %':>8s}  Cortex-M4")
        for label, row in result["rows"].items():
            if "failed" in row:
                print(f"{label:34s} did not finish: {row['failed']}")
                continue
            numbers = [f"{row['bytes'] / 1000:9.1f}"]
            numbers += [
                f"{row[key]:{width}.2f}" if key in row else " " * width
                for key, width in (("batch", 10), ("single", 11))
            ]
            about = row.get("cortex")
            told = f"  {about['instructions']:,} instructions, {about['flash']:,} bytes" if about else ""
            print(f"{label:34s} {' '.join(numbers)} {100 * row['error']:8.2f}{told}")


def picture(results, path):
    """Error against bytes, a panel a set."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(results), figsize=(5.2 * len(results), 4.4), squeeze=False)
    for ax, (name, result) in zip(axes[0], results.items(), strict=True):
        for label, row in result["rows"].items():
            if "failed" in row:
                continue
            took = row.get("single", row.get("batch"))
            ours = label.startswith(("svmarrow", "C,", "onnxruntime"))
            named = f"{label} ({100 * row['error']:.1f} %)"
            ax.plot(row["bytes"] / 1000, took, "o" if ours else "s", markersize=7, label=named)
        ax.set(xscale="log", yscale="log", xlabel="kB", ylabel="microseconds for a single row", title=name)
        ax.legend(fontsize=7, loc="upper left", bbox_to_anchor=(0.0, -0.14), ncols=2, frameon=False)
    figure.suptitle("One model in all its forms, and others (error on the test rows)")
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def main():
    """Run the study and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--redraw", action="store_true", help="take the numbers from --json")
    arguments = parser.parse_args()
    if arguments.redraw:
        picture(json.loads(arguments.json.read_text())["sets"], arguments.picture)
        return
    with threadpool_limits(1):
        results = {name: study(name) for name in arguments.sets}
    show(results)
    if arguments.json:
        about = {"machine": platform.processor() or platform.machine(), "cores": os.cpu_count()}
        about |= {"python": platform.python_version(), "svmarrow": svmarrow.__version__}
        arguments.json.write_text(json.dumps({"about": about, "sets": results}, indent=1) + "\n")
    if arguments.picture:
        picture(results, arguments.picture)


if __name__ == "__main__":
    main()
