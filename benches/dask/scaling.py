"""Exact fits over partitions on one and two workers with one thread each, beside the fit on one machine.

    python benches/dask/scaling.py [--rows 100000 300000 1000000] [--mnist] --json docs/benchmarks/dask.json

Rounds, bytes, processor seconds of workers and driver, seconds on the clock; then a cost model fitted to all
rounds, and what it says of 10^8 rows on 100 workers. Processor seconds are what the model is fitted to: they
do not depend on what else runs on the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np

#: One machine's share of the work is one thread here, as one worker's is.
os.environ["OMP_NUM_THREADS"] = "1"

#: Seconds a byte on the way between driver and workers: 10 Gbit/s.
WIRE = 8.0 / 10e9
PARTITIONS = 8


def moons(n):
    from sklearn.datasets import make_moons

    return make_moons(n, noise=0.2, random_state=0)


def mnist():
    folder = Path(os.environ.get("SVMARROW_DATA", "../shared/data"))
    with np.load(folder / "mnist.npz") as found:
        return found["X"].astype(np.float32) / 255.0, found["y"]


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


def cost_model(found):
    """Seconds = values x columns x a / workers + b x pairs on the driver + bytes on the wire.

    ``a``: processor seconds of a kernel value and column on a worker; ``b``: of the driver for a pair of its
    rows, each round; both as means over all rounds, for few columns and for many.
    """
    model = {}
    for name, columns in (("few", range(64)), ("many", range(64, 100_000))):
        of = [run for run in found if run["columns"] in columns]
        rounds = [(run, each) for run in of for fit in run["partitions"] for each in fit["rounds"]]
        if not rounds:
            continue
        values = sum(run["rows"] * each["changed"] * run["columns"] for run, each in rounds)
        pairs = sum(each["rows"] ** 2 for _, each in rounds if each["driver"])
        model[name] = {
            "worker": sum(each["workers"] for _, each in rounds) / values,
            "driver": sum(each["driver"] for _, each in rounds) / pairs,
            "begin": sum(each["begin"] for _, each in rounds)
            / sum((run["rows"] / PARTITIONS) ** 2 * PARTITIONS for run in of for _ in run["partitions"]),
        }
    return model


def carried(model, rows, workers, share, columns, rounds=4, per_partition=100_000):
    """What an exact fit of so many rows takes where a share of them is support vectors, in hours."""
    support, own = share * rows, model["few" if columns < 64 else "many"]
    partitions = rows / per_partition
    begin = own["begin"] * per_partition**2 * partitions / workers
    # The first and the last round look at all support vectors, the others at a tenth.
    evaluations = 2.0 + 0.1 * (rounds - 2)
    work = own["worker"] * rows * support * columns * evaluations / workers
    driver = own["driver"] * support**2 * rounds
    wire = WIRE * support * columns * 8.0 * (evaluations * workers + 1.0)
    return {
        "rows": rows,
        "workers": workers,
        "columns": columns,
        "support": support,
        "hours_begin": begin / 3600,
        "hours_workers": work / 3600,
        "hours_driver": driver / 3600,
        "hours_wire": wire / 3600,
        "hours": (begin + work + driver + wire) / 3600,
        "gigabytes_of_the_driver": support * (columns * 8.0 * 3.0 + 100.0) / 1e9,
    }


def low_rank(model, rows, workers, columns, m=1000):
    """The same for the sums of a rectangle with m points: kernel values, and m^2 / 2 products a row."""
    own = model["few" if columns < 64 else "many"]
    # A product of the sums costs about what a column of a kernel value does.
    return own["worker"] * rows * m * (columns + m / 2.0) / workers / 3600


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="*", default=[100_000, 300_000, 1_000_000])
    parser.add_argument("--mnist", action="store_true")
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    tasks = [(f"moons {n}", lambda n=n: moons(n), {"C": 1.0, "gamma": 2.0}) for n in arguments.rows]
    if arguments.mnist:
        tasks.append(("mnist", mnist, {"C": 10.0, "gamma": 0.02}))
    found = []
    for name, load, options in tasks:
        X, y = load()
        run = {"name": name, "rows": len(X), "columns": X.shape[1], "options": options}
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
    kind = "few" if "few" in model else "many"
    columns = 2 if kind == "few" else 784
    table = [
        carried(model, 1e8, 100, share, columns) | {"hours_low_rank": low_rank(model, 1e8, 100, columns)}
        for share in (1e-4, 1e-3, 1e-2, 1e-1)
    ]
    for line in table:
        print(
            f"10^8 rows, 100 workers, {line['support']:.0e} support vectors: {line['hours']:.3g} h "
            f"(workers {line['hours_workers']:.3g}, driver {line['hours_driver']:.3g}), driver "
            f"{line['gigabytes_of_the_driver']:.3g} GB; low rank {line['hours_low_rank']:.3g} h"
        )
    if arguments.json:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
        about = {
            "command": "python " + " ".join(sys.argv),
            "commit": commit.stdout.strip(),
            "machine": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "load": os.getloadavg()[0],
            "partitions": PARTITIONS,
        }
        text = json.dumps({"about": about, "runs": found, "model": model, "carried": table}, indent=1)
        arguments.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
