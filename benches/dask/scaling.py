"""Exact fits over partitions on one and two workers with one thread each, beside the fit on one machine.

    python benches/dask/scaling.py --rows 100000 300000 1000000 --mnist --json docs/benchmarks/dask.json

Rounds, bytes, processor seconds of workers and driver, seconds on the clock; then a cost model fitted to all
rounds, and what it says of 10^8 rows on 100 workers, with the number of support vectors from which on low
rank takes less time. Processor seconds are what the model is fitted to: they depend little on what else runs
on the machine. Rounds, and the shares that `svmarrow.dask.partition` counts with, are means over these fits.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

#: One machine's share of the work is one thread here, as one worker's is.
os.environ["OMP_NUM_THREADS"] = "1"

from svmarrow.dask.partition import DRIVER_ROWS_PER_VECTOR, EXPECTED_ROUNDS, estimate_work

#: Seconds a byte on the way between driver and workers: 10 Gbit/s.
WIRE = 8.0 / 10e9
PARTITIONS = 8
#: Points of the low-rank machine that the exact one is compared with.
POINTS = 1000


def moons(n):
    from sklearn.datasets import make_moons

    return make_moons(n, noise=0.2, random_state=0)


def mnist(n):
    folder = Path(os.environ.get("SVMARROW_DATA", "../shared/data"))
    with np.load(folder / "mnist.npz") as found:
        return found["X"][:n].astype(np.float32) / 255.0, found["y"][:n]


def local(X, y, options):
    from svmarrow import SVC

    began, busy = time.perf_counter(), time.process_time()
    svc = SVC(n_jobs=1, **options).fit(X, y)
    return {
        "seconds": time.perf_counter() - began,
        "processor": time.process_time() - busy,
        "support": int(svc.support_.size),
        "dual": svc.certificate_.dual,
        "gap": svc.certificate_.gap,
    }


def over_partitions(X, y, options, workers):
    import dask.array as da
    from distributed import Client, LocalCluster

    from svmarrow.dask import DaskSVC

    place = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    chunk = -(-len(X) // PARTITIONS)
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, **place) as cluster,
        Client(cluster) as client,
    ):
        # The rows lie on the workers before the clock starts, as those of a cluster's users do.
        rows = client.persist([da.from_array(X, chunks=(chunk, -1)), da.from_array(y, chunks=chunk)])
        client.run(__import__, "svmarrow.dask")
        for each in rows:
            each.sum().compute()
        began = time.perf_counter()
        svc = DaskSVC(n_jobs=1, **options).fit(*rows)
        seconds = time.perf_counter() - began
    rounds = [asdict(each) for each in svc.rounds_]
    driver = sum(each["driver"] for each in rounds)
    busy = sum(each["workers"] + each["begin"] for each in rounds)
    return {
        "workers": workers,
        "seconds": seconds,
        "processor_driver": driver,
        "processor_workers": busy,
        "share_of_driver": driver / (driver + busy / workers),
        "bytes": sum(each["sent"] * workers + each["received"] for each in rounds),
        "support": int(svc.support_.size),
        "dual": svc.certificate_.dual,
        "gap": svc.certificate_.gap,
        "stop": svc.certificate_.stop,
        "rounds": rounds,
    }


#: What is fitted of a round: its seconds, the pairs of rows that are met, and where each is done.
PARTS = ("begin", "driver", "worker")


def pairs(run, number, each):
    """Pairs of rows whose kernel values a round asks for in each part, about."""
    first = number == 0
    return {
        # The partitions' vectors, nearly all that the driver begins with, against their own partitions.
        "begin": run["rows"] / PARTITIONS * each["n_samples"] if first else 0,
        "driver": each["n_samples"] * each["changed"],
        "worker": run["rows"] * each["changed"],
    }


def cost_model(found):
    """Seconds of one core for a pair of rows: ``pair`` + ``column`` x (columns + outputs), for each part.

    Least squares of relative errors over all rounds, neither constant negative.
    """
    model = {}
    for part in PARTS:
        lines = []
        for run in found:
            depth = run["columns"] + run["outputs"]
            for fit in run["partitions"]:
                for number, each in enumerate(fit["rounds"]):
                    seconds = each["workers" if part == "worker" else part]
                    count = pairs(run, number, each)[part]
                    # What takes no time tells none.
                    if count and seconds > 0.02:
                        lines.append((count / seconds, count * depth / seconds))
        (pair, column), _ = nnls(np.array(lines), np.ones(len(lines)))
        model[part] = {"pair": pair, "column": column}
    rounds = [each for run in found for fit in run["partitions"] for each in [fit["rounds"]]]
    model["rounds"] = float(np.mean([len(each) for each in rounds]))
    model["changed"] = float(
        np.mean([sum(r["changed"] for r in each[1:]) / each[-1]["support"] for each in rounds])
    )
    model["held"] = float(
        np.mean([max(r["n_samples"] for r in each) / each[-1]["support"] for each in rounds])
    )
    # Seconds of a round on the clock in which neither a worker nor the driver computes.
    model["idle"] = float(
        np.median(
            [
                max(0.0, r["seconds"] - r["driver"] - (r["workers"] + r["begin"]) / fit["workers"])
                for run in found
                for fit in run["partitions"]
                for r in fit["rounds"]
            ]
        )
    )
    return model


def of_a_pair(model, part, columns, outputs=1):
    return model[part]["pair"] + model[part]["column"] * (columns + outputs)


def carried(model, rows, workers, support, columns, per_partition=100_000):
    """What an exact fit of so many rows takes where so many of them are support vectors, in hours."""
    work = estimate_work(rows, support, 8.0 * columns, 1)
    # Vectors are the same share of a partition as of all rows.
    begin = rows * support * (per_partition / rows) * of_a_pair(model, "begin", columns) / workers
    evaluation = work["worker_values"] * of_a_pair(model, "worker", columns) / workers
    driver = work["driver_values"] * of_a_pair(model, "driver", columns)
    wire = WIRE * (work["sent_bytes"] * workers + work["received_bytes"])
    return {
        "rows": rows,
        "workers": workers,
        "columns": columns,
        "support": support,
        "hours_begin": begin / 3600,
        "hours_workers": evaluation / 3600,
        "hours_driver": driver / 3600,
        "hours_wire": wire / 3600,
        "hours": (begin + evaluation + driver + wire + EXPECTED_ROUNDS * model["idle"]) / 3600,
        "gigabytes_of_the_driver": DRIVER_ROWS_PER_VECTOR * support * (columns * 8.0 * 3.0 + 100.0) / 1e9,
        "hours_low_rank": low_rank(model, rows, workers, columns),
    }


def low_rank(model, rows, workers, columns, m=POINTS):
    """The sums of a subset of regressors with m points: kernel values, and m^2 / 2 products a row."""
    pair, column = model["worker"]["pair"], model["worker"]["column"]
    # A product of the sums costs about what a column of a kernel value does.
    return rows * m * (pair + column * columns + column * m / 2.0) / workers / 3600


def crossing(slower, least=1e2, most=1e9):
    """The number of support vectors from which on something is true, by bisection on their logarithm."""
    low, high = math.log(least), math.log(most)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if slower(math.exp(middle)) else (middle, high)
    return math.exp(high)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="*", default=[100_000, 300_000, 1_000_000])
    parser.add_argument("--mnist", type=int, nargs="?", const=60_000, help="rows of mnist; none without it")
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    started = time.perf_counter()
    tasks = [(f"moons {n}", lambda n=n: moons(n), {"C": 1.0, "gamma": 2.0}) for n in arguments.rows]
    if arguments.mnist:
        rows = arguments.mnist
        tasks.append((f"mnist {rows}", lambda: mnist(rows), {"C": 10.0, "gamma": 0.02}))
    found = []
    for name, load, options in tasks:
        X, y = load()
        k = len(np.unique(y))
        outputs = k * (k - 1) // 2
        run = {"name": name, "rows": len(X), "columns": X.shape[1], "outputs": outputs, "options": options}
        run["local"] = local(X, y, options)
        print(f"{name}: one machine {run['local']['processor']:.1f} s of one core", flush=True)
        run["partitions"] = []
        for workers in arguments.workers:
            fit = over_partitions(X, y, options, workers)
            run["partitions"].append(fit)
            apart = abs(fit["dual"] - run["local"]["dual"]) / abs(run["local"]["dual"])
            print(
                f"  {workers} workers: {len(fit['rounds'])} rounds, {fit['processor_workers']:.1f} s of the "
                f"workers, "
                f"{fit['processor_driver']:.1f} s of the driver, {fit['bytes'] / 1e6:.1f} MB, duals apart "
                f"{apart:.1e}, "
                f"{fit['seconds']:.1f} s",
                flush=True,
            )
        found.append(run)
    model = cost_model(found)
    rows, workers, columns = 10**8, 100, 2
    table = [carried(model, rows, workers, support, columns) for support in (10**4, 10**5, 10**6, 10**7)]
    for line in table:
        print(
            f"10^8 rows, 100 workers, {line['support']:.0e} support vectors: {line['hours']:.3g} h "
            f"(workers {line['hours_workers']:.3g}, driver {line['hours_driver']:.3g}), driver "
            f"{line['gigabytes_of_the_driver']:.3g} GB; low rank {line['hours_low_rank']:.3g} h"
        )

    def at(support):
        return carried(model, rows, workers, support, columns)

    crossings = {
        "low_rank": crossing(lambda support: at(support)["hours"] > at(support)["hours_low_rank"]),
        "driver": crossing(lambda support: at(support)["hours_driver"] > at(support)["hours_workers"]),
        "points": POINTS,
    }
    print(crossings)
    if arguments.json:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
        about = {
            "command": "python " + " ".join(sys.argv),
            "commit": commit.stdout.strip(),
            "machine": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "load": os.getloadavg()[0],
            "partitions": PARTITIONS,
            "seconds": time.perf_counter() - started,
        }
        text = json.dumps(
            {"about": about, "runs": found, "model": model, "carried": table, "crossings": crossings},
            indent=1,
        )
        arguments.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
