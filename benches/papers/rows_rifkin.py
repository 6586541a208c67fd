"""Rows of Rifkin, "Everything Old Is New Again", MIT, 2002."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from math import sqrt
from typing import TYPE_CHECKING

from judging import (
    AGREES,
    DIFFERS,
    ERRATUM,
    NOT_COMPARED,
    REPRODUCED,
    Row,
    by_count,
    by_error,
    by_samples,
    claim,
    number,
    numbers,
    part_text,
    reproduced,
    table,
    unshared,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

CODES = ("ovr", "ovo", "complete", "dense", "sparse")
FIXED_CODES, RANDOM_CODES = ("ovr", "ovo", "complete"), ("dense", "sparse")
#: Relative difference of two costs that counts as none.
NOISE = 0.1
#: Megabytes up to which the cache of figure 2-7 holds fewer rows than its large blocks have.
MAX_LIMITING_CACHE = 40
NEAR_THE_LIMIT = "between the two limits of the claim, on another processor"
FACES = "the set of faces is not available"
YEAST_SAMPLES, SHUTTLE_SAMPLES = 1484, 14_500
OUTLIERS = "the outliers lie at (-4, -12); a search judged by the claim, over a place that is not printed"
#: Gain of stability that counts as none: two values of the largest of six changes differ by as much.
MAX_STABLE_GAIN = 1.5
#: Loss of area under the ROC curve that counts as performing as well.
AREA_MARGIN = 0.001
#: Correlation from which two outputs count as well correlated.
WELL_CORRELATED = 0.9
DOCUMENTS = (
    "the documents differ: ours have their headers, the preparation that the thesis cites skips them, and "
    "texts without headers are not available"
)


def thesis() -> Iterator[Row]:
    """Yield chapters 2 to 5."""
    yield from solver()
    yield from least_squares()
    yield from codes()
    yield from bounds()


def held(page: str, part: str, title: str, section: str) -> Iterator[Row]:
    """Yield the claims that a page lists with "held" or "not held"."""
    for row in table(page, title):
        yield Row(
            f"{page}/{part}", section, row["claim"], "", row["here"],
            AGREES if row["here"] == "held" else DIFFERS,
        )  # fmt: skip


def solver() -> Iterator[Row]:
    """Yield chapter 2."""
    page = "rifkin_svmfu"
    for name, label in (("a9a", "adult"), ("usps", "USPS")):
        part = f"{page}/growth-{name}"
        last = table(page, f"Analogue of figure 2-6, {name}")[-1]
        faster = number(last["scikit-learn / svmarrow"])
        paper = "as fast as SVMLight" if name == "a9a" else "faces: 4 times as fast as SVMLight"
        yield Row(
            part, "Figure 2-6", f"{label}: at least as fast as the established solver", paper,
            f"{faster:g} times as fast as LIBSVM", NOT_COMPARED,
            "another rival and another solver" + ("" if name == "a9a" else "; " + FACES),
        )  # fmt: skip
        bound = number(last["svmarrow / K(SV, X)"])
        yield Row(
            part, "Section 2.5", f"{label}: training takes a small multiple of the oracle's bound",
            "2, perhaps 5, not 10", f"{bound:g} times",
            *(claim(bound <= 5) if not 5 < bound < 10 else (NOT_COMPARED, NEAR_THE_LIMIT)),
        )  # fmt: skip
    part = f"{page}/memory"
    lines = table(page, "Kernel values as a multiple of n^2, and blocks solved")
    sizes = [head for head in lines[0] if head != "block"]
    blocks = [row for row in lines if row["block"] != "own"]
    more_values = [
        f"{row['block']} at {more}"
        for row in blocks
        for less, more in pairwise(sizes)
        if number(row[more]) > (1 + NOISE) * number(row[less])
    ]
    yield Row(
        part, "Figure 2-7", "for any chunk size, more memory makes training faster", "with one exception",
        f"more kernel values with more memory: {', '.join(more_values) or 'none'}, of "
        f"{len(blocks) * (len(sizes) - 1)} steps",
        *claim(
            len(more_values) <= 1,
            "one exception is allowed; kernel values stand for the time, which is too short to be compared; "
            "more: by more than a tenth",
        ),
    )  # fmt: skip
    # A cache for fewer rows than the block limits the block.
    large = [size for size in sizes if number(size) > MAX_LIMITING_CACHE]
    times = [number(blocks[-1][size]) / min(number(row[size]) for row in blocks) for size in large]
    yield Row(
        part, "Section 2.6.3", "an overly large chunk makes the solver somewhat slower", "",
        f"{blocks[-1]['block']}: {min(times):.1f} to {max(times):.1f} times the kernel values of the best "
        f"chunk with {large[0]} and more",
        *claim(min(times) > 1 + NOISE, "smaller caches limit the chunk; slower: by more than a tenth"),
    )  # fmt: skip
    part = f"{page}/blocks"
    lines = table(page, "Section 2.6.3")
    blocks_grow, seconds_grow = [], []
    for key in dict.fromkeys((row["set"], row["cached rows"]) for row in lines):
        own = [row for row in lines if (row["set"], row["cached rows"]) == key]
        # A block has at most as many rows as the cache, so the small one has no large blocks to compare with.
        if key[1] == "all":
            blocks_grow.append(number(own[0]["blocks solved"]) / number(own[-1]["blocks solved"]))
        seconds_grow.append(number(own[0]["seconds"]) / min(number(row["seconds"]) for row in own))
    yield Row(
        part, "Section 2.6.3", "a chunk below the number of unbounded vectors: many more subproblems",
        "explosion of their number",
        f"{min(blocks_grow):.0f} to {max(blocks_grow):.0f} times as many", *claim(min(blocks_grow) > 10),
    )  # fmt: skip
    yield Row(
        part, "Section 2.6.3", "the same: almost certain to lead to disaster", "disaster",
        f"{min(seconds_grow):.1f} to {max(seconds_grow):.1f} times the best chunk's time",
        *claim(min(seconds_grow) > 10, "agrees from ten times on"),
    )  # fmt: skip
    yield from held(page, "advice", "Claims of section 2.6.1", "Section 2.6.1")


def least_squares() -> Iterator[Row]:
    """Yield chapter 3."""
    page = "rifkin_rls"
    for code, part, paper in (("ovr", "text-ovr", 10045 / 1309), ("BCH 63", "text-bch", 104027 / 3913)):
        lines = table(page, f"Analogue of table 3.1, {code}, random")
        for row in lines:
            for model in ("SVM", "RLS"):
                printed, ours = number(row[f"{model}, printed"]), number(row[model])
                yield Row(
                    f"{page}/{part}", "Table 3.1", f"{code}, {row['a class']} a class, {model}",
                    f"{printed}", f"{ours}", NOT_COMPARED, DOCUMENTS,
                )  # fmt: skip
        apart = [number(row["standard errors apart"]) for row in lines]
        yield Row(
            f"{page}/{part}", "Table 3.1", f"{code}: RLS performs as well as the SVM or slightly better",
            "at 4 of 4 sizes", f"paired standard errors apart: {min(apart):.1f} to {max(apart):.1f}",
            *claim(max(apart) <= 2, "agrees unless RLS is worse by more than two"),
        )  # fmt: skip
        times = table(page, f"Analogue of table 3.3, {code}, random")
        total = sum(number(row["RLS"]) for row in times)
        kernel, linear = (sum(number(row[of]) for row in times) / total for of in ("SVC", "SVM"))
        yield Row(
            f"{page}/{part}", "Table 3.3", f"{code}: time of the SVM / time of RLS, all sizes",
            f"{paper:.1f}", f"{kernel:.1f} (SVC, shared kernel rows), {linear:.1f} (LIBLINEAR)", NOT_COMPARED,
            "other SVM solvers",
        )  # fmt: skip
    yield Row(
        f"{page}/text-ovr", "Tables 3.2, 3.3", "sector105", "", "", NOT_COMPARED, "the set is not available"
    )
    yield Row(
        f"{page}/text-ovr", "Section 3.6.2", "tumours: RLS 158 of 190 right, the SVM 156", "", "",
        NOT_COMPARED, "the set is not available",
    )  # fmt: skip
    for row in held(page, "toy", "Claims of section 3.4", "Section 3.4"):
        if row.verdict == AGREES and row.row.startswith("figure 3-8"):
            yield replace(row, verdict=REPRODUCED, basis=OUTLIERS)
            continue
        yield row
    part = f"{page}/usps"
    text = part_text(page, "usps")
    times = number(re.findall(r"of one processor: ([\d.]+) times", text)[0])
    yield Row(
        part, "Section 3.7.3", "full RLS takes more than ten times as long as the SVM", "over 10",
        f"{times:g}", NOT_COMPARED, "another SVM solver",
    )  # fmt: skip
    yield from crossplot()
    where = {
        "RLS is as good as the SVM": "Section 3.7.3",
        "rectangle is the best of the three at every size": "Figure 3-17",
        "rectangle loses less from 1024 to 512 points than from 512 to 256": "Figure 3-17",
        "subset comes before nystrom": "Figure 3-17",
        "nystrom gains from more points": "Figure 3-17",
        "bagging helps nystrom": "Figure 3-19",
        "the best method does not gain from bagging": "Figure 3-19",
        "bagging leaves the order of the methods": "Figure 3-19",
        "ic accounts for less of the trace than random points": "Figure 3-21",
        "ic does not improve on random points (rectangle)": "Figures 3-23 to 3-25",
    }
    for row in held(page, "usps", "Conclusions of section 3.7.3", "Section 3.7.3"):
        found = row.verdict, row.basis
        if row.verdict == DIFFERS and row.row in shared_alpha_claims():
            found = REPRODUCED, "held with one alpha for all methods, that of the full model (last column)"
        yield Row(row.part, where[row.row], f"USPS: {row.row}", row.paper, row.ours, *found)
    yield Row(
        part,
        "Figures 3-11, 3-13 to 3-16, 3-18, 3-20, 3-22, 3-26 to 3-28",
        "faces",
        "",
        "",
        NOT_COMPARED,
        FACES,
    )


def shared_alpha_claims() -> set[str]:
    """Return the conclusions that hold where all methods have the alpha of the full model."""
    lines = table("rifkin_rls", "Area under the ROC curve, means of")
    last = next(head for head in lines[0] if head.startswith("random, alpha"))
    areas = {(row["method"], row["points"]): float(row[last]) for row in lines}
    sizes = list(dict.fromkeys(row["points"] for row in lines))
    claims = {
        "rectangle is the best of the three at every size": all(
            areas["rectangle", size] >= max(areas["subset", size], areas["nystrom", size]) for size in sizes
        ),
        "subset comes before nystrom": all(areas["subset", s] >= areas["nystrom", s] for s in sizes),
        "nystrom gains from more points": all(
            areas["nystrom", a] >= areas["nystrom", b] for a, b in pairwise(sizes)
        ),
    }
    return {name for name, holds in claims.items() if holds}


def crossplot() -> Iterator[Row]:
    """Yield figures 3-10 and 3-12 in numbers."""
    part = "rifkin_rls/crossplot"
    if not part_text("rifkin_rls", "crossplot"):
        yield Row(part, "Figures 3-10, 3-12", "USPS: outputs of RLS and SVM", "", "", NOT_COMPARED, "not run")
        return
    areas = {row["machine"]: row for row in table("rifkin_rls", "Area under the ROC curve", 0)}
    gain, error = (
        float(areas["RLS"][head]) for head in ("less that of the SVM", "standard error (bootstrap)")
    )
    yield Row(
        part, "Figure 3-10", "USPS: RLS performs as well as or better than the SVM along the ROC curve",
        "as well or better", f"area {areas['RLS']['area']} for RLS, {areas['SVM']['area']} for the SVM",
        *claim(
            gain - 2 * error > -AREA_MARGIN,
            f"the area stands for the curve: larger by {gain:.5f}, standard error {error:.5f}; agrees unless "
            f"it may be smaller by {AREA_MARGIN}",
        ),
    )  # fmt: skip
    lines = table("rifkin_rls", "Figure 3-12")
    chosen = re.findall(r"C = (\d+) on a quarter", part_text("rifkin_rls", "crossplot"))[0]
    costs = list(dict.fromkeys(row["C"] for row in lines))

    def of_both(column: str) -> dict[str, list[float]]:
        """Return the correlations on the training and on the test samples by C."""
        return {cost: [float(row[column]) for row in lines if row["C"] == cost] for cost in costs}

    linear, inside = of_both("linear"), of_both("linear, clipped to [-1, 1]")
    good = [cost for cost in costs if min(linear[cost]) > WELL_CORRELATED]
    basis = f"well correlated: above {WELL_CORRELATED}"
    found = claim(chosen in good, basis)
    if found[0] == DIFFERS and good:
        lowest = min(min(linear[cost]) for cost in good)
        basis = (
            f"at least {lowest} with C = {' and '.join(good)}; a search judged by the claim, over a C that "
            f"is not printed; {basis}"
        )
        found = REPRODUCED, basis
    yield Row(
        part, "Figure 3-12", "USPS: outputs of RLS and SVM are very well correlated", "crossplot",
        f"correlation {linear[chosen][0]} on the training samples, {linear[chosen][1]} on the test samples "
        f"(C = {chosen})",
        *found,
    )  # fmt: skip
    yield Row(
        part, "Figure 3-12", "USPS: the crossplot of the test samples is somewhat noisier",
        "somewhat noisier",
        "correlation between the margins: "
        + ", ".join(f"{training} and {test} (C = {cost})" for cost, (training, test) in inside.items()),
        *claim(all(test < training for training, test in inside.values()), "lower at every C"),
    )  # fmt: skip


def by_walk(row: dict[str, str], ours: str) -> tuple[str, str]:
    """Compare sigma and C of a walk; where they differ, the errors at both are compared as well."""
    if ours == row["thesis's sigma, C"]:
        return AGREES, "the thesis finds no strong dependence"
    here, there = (float(row[f"error % of 5 folds{suffix}"]) for suffix in ("", " 2"))
    error = 100 * sqrt(unshared() * (here + there) / 100 / YEAST_SAMPLES)
    verdict, basis = by_error(there, here, error)
    basis = f"errors {here} % and {there} % in five folds, {basis} apart"
    if verdict == AGREES:
        return NOT_COMPARED, f"the folds cannot tell the two settings apart: {basis}"
    return DIFFERS, basis


def codes() -> Iterator[Row]:
    """Yield chapter 4."""
    page = "rifkin_multiclass"
    yield from weak_machines()
    for name, title, where in (
        ("satimage", "table 4.5, satimage", "Table 4.3"),
        ("yeast", "table 4.4, yeast", "Table 4.4"),
    ):
        for row in table(page, title):
            ours = next(value for head, value in row.items() if head.startswith("sigma, C"))
            yield Row(
                f"{page}/{name}", where, f"{name}, {row['code']}, sigma and C",
                row["thesis's sigma, C"], ours,
                *by_walk(row, ours),
            )  # fmt: skip
    yield from errors_of_codes()
    yield from overlaps()
    row = table(page, "shuttle, sigma")[0]
    paper, ours = number(row["thesis's error %"]), number(row["error %"])
    discordant = unshared() * (paper + ours) / 100 * SHUTTLE_SAMPLES
    yield Row(
        f"{page}/shuttle", "Section 4.2.3", "shuttle, ovr", f"{paper} %", f"{ours} %",
        *by_count(paper / 100 * SHUTTLE_SAMPLES, ours / 100 * SHUTTLE_SAMPLES, discordant),
    )  # fmt: skip
    for row in table(page, "table 4.5, 20newsgroups"):
        paper, ours = number(row["thesis's error %"]), number(row["error %, random splits"])
        yield Row(
            f"{page}/news", "Table 4.5", f"20newsgroups, {row['code']}", f"{paper} %", f"{ours} %",
            NOT_COMPARED, DOCUMENTS,
        )  # fmt: skip
    errors = {
        row["code"]: number(row["error %, random splits"]) for row in table(page, "table 4.5, 20newsgroups")
    }
    yield Row(
        f"{page}/news", "Section 4.3.2", "20newsgroups: one-vs-all is the strongest code", "12.8 % is lowest",
        ", ".join(f"{code} {error} %" for code, error in errors.items()),
        *claim(min(errors, key=lambda code: errors[code]) == "ovr"),
    )  # fmt: skip
    yield Row(f"{page}/news", "Table 4.5", "gcm (tumours)", "", "", NOT_COMPARED, "the set is not available")
    part = f"{page}/shared"
    lines = table(page, "Training", 0)
    gains = [number(row["times"]) for row in lines if number(row["cache, MB"]) == 10]
    yield Row(
        part, "Section 4.5", "with a small cache, sharing kernel products hardly helps training",
        "negligible",
        f"kernel values apart / together with 10 MB: {min(gains):.2f} to {max(gains):.2f}",
        *claim(max(gains) <= 1.2),
    )  # fmt: skip
    gains = [number(row["times"]) for row in lines if row["set"] == "usps" and number(row["cache, MB"]) > 10]
    yield Row(
        part, "Section 4.5", "where the products fit in the cache, sharing them has a substantial effect",
        "substantial",
        f"USPS, kernel values apart / together with 200 MB: {min(gains):.2f} to {max(gains):.2f}",
        *claim(min(gains) >= 1.5, "agrees from one and a half times on"),
    )  # fmt: skip
    usps = [row for row in table(page, "Kernel products of an answer") if row["set"] == "usps"]
    together, apart = ([number(row[head]) for row in usps] for head in ("seconds", "apart"))
    yield Row(
        part, "Section 4.5", "with many columns, shared products make all codes cost alike in prediction",
        "a levelling effect",
        f"USPS: slowest code / fastest code {max(together) / min(together):.1f} together, "
        f"{max(apart) / min(apart):.1f} apart",
        *claim(max(together) <= 2 * min(together), "alike: within a factor of two"),
    )  # fmt: skip
    lines = table(page, "section 4.4.1")
    ratios = [number(row["least squares, bound %"]) / number(row["least squares, exact %"]) for row in lines]
    yield Row(
        f"{page}/bounds", "Section 4.4.1", "the leave-one-out bounds are not especially tight", "not tight",
        f"{min(ratios):.2f} to {max(ratios):.2f} times the exact error", *claim(min(ratios) > 1.1),
    )  # fmt: skip
    exact = {row["code"]: row["least squares, exact %"] for row in lines}
    yield Row(
        f"{page}/bounds", "Section 4.4.2", "RLS: the complete code predicts as one-vs-all does", "identical",
        f"leave-one-out error {exact['ovr']} % and {exact['complete']} %",
        *claim(exact["ovr"] == exact["complete"]),
    )  # fmt: skip


def weak_machines() -> Iterator[Row]:
    """Yield tables 4.1 and 4.2, whose kernel is polynomial of degree 4."""
    part = "rifkin_multiclass/weak"
    tuned = {
        "satimage": [number(row["error %"]) for row in table("rifkin_multiclass", "table 4.5, satimage")],
        "yeast": [
            number(row["leave-one-out error %"]) for row in table("rifkin_multiclass", "table 4.5, yeast")
        ],
    }
    printed = {"satimage": (7.9, 8.2), "yeast": (38.5, 39.3)}
    for where, name in (("Table 4.1", "satimage"), ("Table 4.2", "yeast")):
        lines = [row for row in table("rifkin_multiclass", "tables 4.1 and 4.2") if row["set"] == name]
        for code in CODES:
            ours = [number(row["error %, degree 4"]) for row in lines if row["code"] == code]
            if code == "ovr":
                by_steps = table("rifkin_multiclass", "One-vs-all, raw features")
                ours += [number(row[f"{name}, error %"]) for row in by_steps]
            allwein = [row["Allwein's"] for row in lines if row["code"] == code]
            if not ours:
                complete = table("rifkin_multiclass", "table 4.2, yeast, the complete code")
                ours = [number(row["error %, degree 4"]) for row in complete]
                allwein = [row["Allwein's"] for row in complete]
            paper = number(allwein[0])
            # All values are of the same samples; about this many errors are not shared by two models.
            samples = {"satimage": 2000, "yeast": 1484}[name]
            error = 100 * sqrt(unshared() * 2 * paper / 100 / samples)
            inside = min(ours) - 2 * error <= paper <= max(ours) + 2 * error
            why = "neither C nor the scaling is printed; the value is " + (
                "within two paired standard errors of the range of our settings"
                if inside
                else "outside the range of our settings"
            )
            yield Row(
                part, where, f"{name}, {code}, degree 4", f"{paper} %", f"{min(ours)} to {max(ours)} %",
                NOT_COMPARED if inside else DIFFERS, why,
            )  # fmt: skip
        low, high = printed[name]
        yield Row(
            part, where, f"{name}: with tuned Gaussian kernels the codes hardly differ",
            f"{low} to {high} %", f"{min(tuned[name])} to {max(tuned[name])} %",
            *claim(
                max(tuned[name]) - min(tuned[name]) <= 2 * (high - low),
                "agrees up to twice the printed range",
            ),
        )  # fmt: skip


def errors_of_codes() -> Iterator[Row]:
    """Yield the errors of table 4.5 on satimage and yeast."""
    for name, part, column, samples in (
        ("satimage", "satimage", "error % there", 2000),
        ("yeast", "left_out", "leave-one-out error %", YEAST_SAMPLES),
    ):
        drawn = drawn_lines(name, "Errors")
        lines = table("rifkin_multiclass", f"table 4.5, {name}")
        # The draws of yeast have ten folds, which have more errors than leaving out one by one.
        fixed = [
            number(drawn[r["code"]]["error %"]) - number(r[column]) for r in lines if r["code"] in FIXED_CODES
        ]
        more = sum(fixed) / len(fixed) if name == "yeast" else 0.0
        for row in lines:
            if row["code"] in RANDOM_CODES:
                yield over_draws(name, "Table 4.5", f"{name}, {row['code']}", drawn[row["code"]], more)
                continue
            paper, ours = number(row["thesis's error %"]), number(row[column])
            yield Row(
                f"rifkin_multiclass/{part}", "Table 4.5", f"{name}, {row['code']}", f"{paper} %", f"{ours} %",
                *by_samples(paper / 100, ours / 100, samples),
            )  # fmt: skip


#: Standard deviation over draws of a code, as a share of the samples, up to which a printed value is judged.
MAX_DEVIATION = 0.03
#: Settings of the parts with many draws, which the thesis does not print for its tables of overlaps.
DRAWN_SETTINGS = {"satimage": "C = 1 for every code", "yeast": "ten folds"}


def drawn_lines(name: str, what: str) -> dict[str, dict[str, str]]:
    """Return the lines of a table over draws by their first column."""
    lines = table("rifkin_multiclass", f"{what} over draws, {name}")
    return {next(iter(row.values())): row for row in lines}


def over_draws(name: str, where: str, row: str, line: dict[str, str], more: float = 0.0) -> Row:
    """Judge an error or an overlap of random codes by the deviation over draws.

    ``more`` is by how many points the error of our folds exceeds that of the thesis's leave-one-out.
    """
    printed, setting = line["thesis"], DRAWN_SETTINGS[name]
    z, deviation = float(line["z"]), float(line["standard deviation"])
    if more:
        z *= (number(line["error %"]) - more - number(printed)) / (number(line["error %"]) - number(printed))
        setting = f"{setting}, less the {more:.2f} points that they cost codes that draw nothing"
    deviation /= 100 if "error %" in line else 1
    ours = line.get("overlap") or f"{line['error %']} %"
    found = AGREES if abs(z) <= 2 else DIFFERS, f"{abs(z):.1f} standard errors over draws"
    if deviation > MAX_DEVIATION:
        found = NOT_COMPARED, f"no power: the standard deviation over draws is {deviation:.3f}"
    elif found[0] == AGREES:
        # Table 4.3 prints C = 1 for sparse.
        printed_cost = name == "yeast" or row == "satimage, sparse"
        found = (found[0], f"{found[1]}; {setting}") if printed_cost else reproduced(found, setting)
    elif line.get("z then") and abs(float(line["z then"])) <= 2:
        found = (
            REPRODUCED,
            f"{found[1]}; {line['z then']} with the labels of dense and sparse exchanged; {setting}",
        )
    return Row(f"rifkin_multiclass/draws-{name}", where, row, printed, ours, *found)


def overlaps() -> Iterator[Row]:
    """Yield tables 4.6 and 4.7, the agreement of all codes, and figures 4-2 and 4-3."""
    for name, part, where, title, figure, samples in (
        ("satimage", "satimage", "Table 4.6", "table 4.6", "Figure 4-2", 2000),
        ("yeast", "left_out", "Table 4.7", "table 4.7", "Figure 4-3", 1484),
    ):
        part = f"rifkin_multiclass/{part}"
        for row in table("rifkin_multiclass", title):
            for code in CODES:
                if not row[code] or code == row[""]:
                    continue
                drawn = drawn_lines(name, "Overlaps")[f"{row['']} and {code}"]
                # The codes of yeast that draw nothing are left out one by one, as in the thesis.
                if name == "satimage" or {row[""], code} & set(RANDOM_CODES):
                    yield over_draws(name, where, f"{row['']} and {code}", drawn)
                    continue
                ours, paper = numbers(row[code])
                verdict, basis = by_samples(paper, ours, samples)
                yield Row(part, where, f"{row['']} and {code}", f"{paper}", f"{ours}", verdict, basis)
        text = part_text("rifkin_multiclass", part.split("/")[1])
        yield over_draws(
            name, "Section 4.3.3", f"{name}: all five codes predict the same class",
            drawn_lines(name, "Overlaps")["all five"],
        )  # fmt: skip
        shares = numbers(re.findall(r"machines concerned err: (.*?)\.\n", text)[0])
        yield Row(
            part, figure, f"{name}: where one-vs-all errs, most machines of the other codes err as well",
            "all but a very small portion", f"{min(shares):g} to {max(shares):g} % of its errors",
            *claim(min(shares) >= 80, "more than half of the machines err; agrees from 80 % on"),
        )  # fmt: skip


def bounds() -> Iterator[Row]:
    """Yield chapter 5 and the bounds of chapter 4."""
    page = "rifkin_bounds"
    lines = table(page, "Bounds of a coded model")
    part = f"{page}/codes"
    training = sum(float(row["(4.51)"]) >= float(row["training error"]) for row in lines)
    # The set is satimage, with six classes.
    printed = sum(
        6 / number(row["columns"]) * float(row["(4.51)"]) >= float(row["training error"]) for row in lines
    )
    yield Row(
        part, "(4.51)", "bound of the training error", "holds",
        f"with F holds in {training} of {len(lines)} rows, with the printed N in {printed}", ERRATUM,
        "N is printed for F",
    )  # fmt: skip
    exact = [row for row in lines if row["leave-one-out"] != "not computed"]
    left_out = sum(float(row["(4.60)"]) >= float(row["leave-one-out"]) for row in exact)
    yield Row(
        part, "(4.60)", "bound of the leave-one-out error", "holds",
        f"holds in {left_out} of {len(exact)} rows", *claim(left_out == len(exact)),
    )  # fmt: skip
    stable = [row for row in lines if row["(5.34)"] != "none"]
    best = all(
        min((row for row in stable if row["machine"] == kind), key=lambda row: float(row["(5.34)"]))["code"]
        == "ovr"
        for kind in ("SVM", "RLS")
    )
    low = min(float(row["(5.34)"]) for row in stable)
    yield Row(
        part, "Section 5.4", "the stability bound (5.34) is lowest for one-vs-all", "G = 2 is the smallest",
        f"lowest for {'ovr' if best else 'another code'}; its value is {low:g}, an error is at most 1",
        *claim(best),
    )  # fmt: skip
    values = [float(row["(5.34)"]) for row in table(page, "One-vs-rest, SVM without intercept")]
    yield Row(
        f"{page}/lambda", "(5.34)", "bound of the test error", "holds", f"least value {min(values):g}",
        NOT_COMPARED, "no value below 1, so nothing can be contradicted",
    )  # fmt: skip
    exceeded = [
        float(row["SVC without b"]) / (0.5 * float(row["2 beta (5.8)"]))
        for row in table(page, "A label is changed")
    ]
    lines = table(page, "(5.8) and refits")
    holds = sum(float(row["(5.8)"]) >= float(row["refits"]) for row in lines)
    yield Row(
        f"{page}/stability", "(5.8)", "Tikhonov regularization is stable within beta", "holds",
        f"holds in {holds} of {len(lines)} lines for a sample that is removed; where a label is changed, the "
        f"loss changes by {max(exceeded):.2f} times the printed value",
        ERRATUM, "the definition replaces a sample, which takes a factor 2",
    )  # fmt: skip
    text = part_text(page, "stability")
    powers = [number(found) for found in re.findall(r"(-[\d.]+) \((?:hinge|square), lambda", text)]
    yield Row(
        f"{page}/stability", "(5.8)", "beta falls as 1 / n where lambda is held", "power -1",
        "powers of the observed changes: " + ", ".join(f"{power:g}" for power in powers), NOT_COMPARED,
        "an upper bound for every training set; the changes observed on one set may fall more slowly",
    )  # fmt: skip
    part = f"{page}/bagging"
    lines = table(page, "(5.27) and refits")
    holds = sum(float(row["alpha of the average"]) <= float(row["(5.27)"]) * 1.001 for row in lines)
    yield Row(
        part, "(5.27)", "bagging over disjoint chunks is stable within alpha / J", "holds",
        f"holds in {holds} of {len(lines)} lines", *claim(holds == len(lines)),
    )  # fmt: skip
    ends = {}
    for kind in dict.fromkeys(row["machine"] for row in lines):
        own = [row for row in lines if row["machine"] == kind]
        ends[kind] = own[0], own[-1]
    unstable = [kind for kind in ends if "lambda" not in kind]
    falls = {
        kind: float(first["alpha of the average"]) / float(last["alpha of the average"])
        for kind, (first, last) in ends.items()
    }
    yield Row(
        part, "Section 5.3", "bagged machines that are not stable become stable at the rate 1 / n",
        "16 times less at 16 times the samples",
        ", ".join(f"{kind}: {falls[kind]:.0f} times" for kind in unstable),
        *claim(all(falls[kind] >= 8 for kind in unstable), "agrees from a factor of 8 on"),
    )  # fmt: skip
    single = [
        float(last["squared error, one machine"]) < float(last["squared error, chunks"])
        for _, last in ends.values()
    ]
    yield Row(
        part, "Section 5.3", "one machine on all samples has the lower error", "expected",
        f"for {sum(single)} of {len(single)} machines", *claim(all(single)),
    )  # fmt: skip
    gains = {}
    for kind, (first, last) in ends.items():
        one, chunks = (
            float(first[column]) / float(last[column])
            for column in ("alpha of one machine on all samples", "alpha of the average")
        )
        gains[kind] = chunks / one
    stable_gain = gains.pop("RLS, lambda = .01")
    yield Row(
        part, "Section 5.3", "machines that are already stable do not gain from it", "no gain",
        f"at 16 times the samples the change falls {stable_gain:.1f} times as much with chunks as with "
        "one machine; machines that are not stable: "
        + ", ".join(f"{gain:.1f}" for gain in gains.values()),
        *claim(
            stable_gain <= MAX_STABLE_GAIN < min(gains.values()),
            f"no gain: at most {MAX_STABLE_GAIN} times, and the other machines gain more; the change is the "
            "largest of six",
        ),
    )  # fmt: skip
    part = f"{page}/ivanov"
    lines = table(page, "The counterexample")
    yield Row(
        part, "Section 5.2", "Ivanov regularization has constant stability", "independent of n",
        f"change {lines[0]['Ivanov']} at {lines[0]['samples']} and {lines[-1]['Ivanov']} at "
        f"{lines[-1]['samples']}",
        *claim(lines[0]["Ivanov"] == lines[-1]["Ivanov"]),
    )  # fmt: skip
    yield Row(
        part, "Section 5.2", "Tikhonov regularization does not share this", "falls with n",
        f"change {lines[0]['Tikhonov']} and {lines[-1]['Tikhonov']}",
        *claim(float(lines[-1]["Tikhonov"]) < 0.1 * float(lines[0]["Tikhonov"])),
    )  # fmt: skip
    lines = table(page, "A label is changed")
    yield Row(
        part, "Section 2.6.2", "one unregularized b has substantial implications for stability", "not stable",
        f"with b {lines[0]['SVC with b']} and {lines[-1]['SVC with b']}, "
        f"without {lines[0]['SVC without b']} and {lines[-1]['SVC without b']}",
        *claim(
            float(lines[-1]["SVC with b"]) > 0.9 * float(lines[0]["SVC with b"])
            and float(lines[-1]["SVC without b"]) < 0.1 * float(lines[0]["SVC without b"])
        ),
    )  # fmt: skip
