"""Each row of the papers' tables beside ours, with a verdict: ``python benches/papers/rows.py``.

It runs no experiment: it reads the pages that the other scripts have written and writes
``docs/papers/rows.md``, so that the list says what the pages say. A row *agrees* where our error lies within
two standard errors of the difference from the paper's: binomial ones of both error rates on as many test
rows, or those that the page gives. Else it *differs*, and what is known to differ in the setting stands
beside it; what is not had says so.
"""

from __future__ import annotations

import argparse
import re
import sys
from math import sqrt
from typing import TYPE_CHECKING

from common import PAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Paper's table, row, quantity, the paper's value, ours, the verdict.
Row = tuple[str, str, str, str, str]


def table(page: str, title: str, at: int = 0) -> list[dict[str, str]]:
    """The lines of a table of a page, by its headings; of several with one title the one at this place."""
    lines = (PAGES / f"{page}.md").read_text(encoding="utf-8").splitlines()
    begins = [i for i, line in enumerate(lines) if line.startswith(f"**{title}")]
    if len(begins) <= at:
        raise ValueError(f"{page}.md has no table {title!r}")
    found, first = [], begins[at] + 2
    head = cells(lines[first])
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        found.append(dict(zip(unique(head), cells(line), strict=True)))
    return found


def cells(line: str) -> list[str]:
    """What stands between the bars."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def unique(names: list[str]) -> list[str]:
    """Names, the second of two that are equal with a 2 behind it."""
    return [
        f"{name} {names[:i].count(name) + 1}" if name in names[:i] else name for i, name in enumerate(names)
    ]


def number(text: str) -> float:
    """The first number of a cell."""
    return float(re.findall(r"-?[\d.]+(?:e-?\d+)?", text.replace(",", ""))[0])


def verdict(paper: float, ours: float, error: float, why: str = "") -> str:
    """Agrees within two standard errors of the difference; else the setting that differs."""
    if abs(ours - paper) <= 2 * error:
        return "agrees"
    better = "lower" if ours < paper else "higher"
    return f"differs, {better}{': ' + why if why else ''}"


def binomial(paper: float, ours: float, rows: int) -> float:
    """Standard error of the difference of two error rates on so many rows each."""
    return sqrt((paper * (1 - paper) + ours * (1 - ours)) / rows)


def tr132() -> Iterator[Row]:
    """Tables 2 and 3, section 4.3 and figure 1."""
    for row in table("tr132", "Table 2: the machines, means"):
        error, paper = row["test error"], number(row["paper 2"])
        mean, spread = (float(part) for part in error.split(" +- "))
        said = verdict(paper, mean, sqrt(2) * spread, "splits drawn anew")
        yield (
            "Table 2",
            row["set"],
            f"{paper}, {row['paper']} vectors",
            f"{mean}, {row['vectors']} vectors",
            said,
        )
    sizes = {"USPS": 2007, "Letter": 4000}
    for row in table("tr132", "Table 2: the machines", 1):
        paper, ours = number(row["paper 2"]), number(row["test error"])
        said = verdict(paper, ours, binomial(paper, ours, sizes[row["set"]]))
        if abs(number(row["vectors"]) - number(row["paper"])) > 0.1 * number(row["paper"]):
            said += " in error; differs in vectors"
        yield (
            "Table 2",
            row["set"],
            f"{paper}, {row['paper']} vectors",
            f"{ours}, {row['vectors']} vectors",
            said,
        )
    lines = table("tr132", "Abalone at the paper's")
    kinds = ("ridge 1e-5", "ridge 1e-5 n")
    spans = [tuple(map(float, re.findall(r"[\d.]+", row[kind]))) for row in lines for kind in kinds]
    within = sum(low <= 0.41 <= high for _, low, high in spans)
    said = "agrees" if within else "differs"
    yield (
        "Table 2",
        "Abalone",
        "0.41",
        f"{min(spans)[0]} to {max(spans)[0]}",
        f"{said}: between the extremes of five splits for {within} of {len(spans)} readings of the setting",
    )
    yield "Table 2", "Kin-32nm", "0.6187", "", "not to be had; the page has kin8nm"
    for row in table("tr132", "Table 3: milliseconds"):
        for which, paper in (("l1", "paper"), ("l0", "paper 2")):
            ours = number(row[f"{which} / pursuit"])
            said = (
                "agrees that the pursuit is faster, not by how much"
                if ours > 1
                else "differs: the pursuit is slower"
            )
            why = ": our l1 follows an exact path, the paper's solves programs"
            yield (
                "Table 3",
                f"{row['set']}, {which} / pursuit",
                row[paper],
                f"{ours:g}",
                said + (why if which == "l1" else ""),
            )
    together = {
        row["vectors"]: row["error"] for row in table("tr132", "Figure 4") if row["how"] == "together"
    }
    yield (
        "Section 4.3",
        "USPS, joint selection",
        "0.055 with 570 vectors",
        f"{together['400']} with 400, {together['800']} with 800",
        "agrees" if number(together["800"]) <= 0.055 <= number(together["400"]) else "differs",
    )
    kept = {row["l0, lossless"] for row in table("tr132", "Vectors, and the largest change")}
    said = "agrees" if kept == {"10"} else "differs"
    yield (
        "Figure 1",
        "linear machine in ten dimensions",
        "10 vectors, no loss",
        f"{', '.join(kept)} vectors",
        said,
    )


def compressed() -> Iterator[Row]:
    """Figure 3, which has curves and one claim."""
    text = (PAGES / "compressed_svm_figure3.md").read_text(encoding="utf-8")
    names = {
        "letter": "letter",
        "news": "20 newsgroups",
        "mnist": "MNIST (10,000 rows)",
        "magic": "magic",
        "page_blocks": "page blocks",
    }
    claim = "close to the full accuracy with a tenth of the vectors"
    for name, told in names.items():
        if f"<!-- part: {name} -->" not in text:
            yield "Figure 3", told, claim, "", "not run at a tenth; a growing run is on the page beside it"
            continue
        last = table("compressed_svm_figure3", f"{name}: test error")[-1]
        part = text.split(f"<!-- part: {name} -->")[1].split("<!-- part:")[0]
        full = number(re.findall(r"the full machine's ([\d.]+)", part)[0])
        cvm, own = number(last["CVM"]), number(last["default"])
        said = (
            "agrees" if cvm <= full + 0.5 else f"differs: half a point is not reached; ours {own - full:+.2f}"
        )
        yield "Figure 3", told, claim, f"{cvm} %, full {full} %; ours {own} %", said
    yield "Figure 3", "DMOZ", claim, "", "not to be had"


def kmp() -> Iterator[Row]:
    """Tables 1, 2 and 3."""
    for row in table("kmp", "Table 1"):
        for model in ("SVM", "k-means RBF", "KMP, same", "KMP, half"):
            paper, ours = (float(part) for part in row[model].split(" / "))
            rows = 2007
            said = verdict(paper, ours, rows * binomial(paper / rows, ours / rows, rows))
            yield "Table 1", f"digit {row['digit']}, {model}", f"{paper:g} errors", f"{ours:g} errors", said
    for row in table("kmp", "Table 2"):
        rows = 8124 - int(row["rows"])
        for model in ("KMP", "SVM"):
            paper, ours = (float(part.split(",")[0]) for part in row[model].split(" / "))
            # The spread over the splits is not told: binomial on the test rows is the least that it is.
            said = verdict(paper, ours, 100 * binomial(paper / 100, ours / 100, rows), "splits drawn anew")
            yield "Table 2", f"{row['rows']} rows, {model}", f"{paper} %", f"{ours} %", said
    rows_of = {"breast_cancer_wisconsin": 683, "sonar": 208, "pima_diabetes": 768, "ionosphere": 351}
    for row in table("kmp", "Table 3"):
        for model in ("SVM", "KMP-mse", "KMP-tanh"):
            paper, ours = (float(part.split("(")[0]) for part in row[model].split(" / ")[:2])
            said = verdict(paper, ours, 100 * binomial(paper / 100, ours / 100, rows_of[row["set"]]))
            yield "Table 3", f"{row['set']}, {model}", f"{paper} %", f"{ours} %", said


def thesis() -> Iterator[Row]:
    """Chapters 3 and 4."""
    why = "18,846 documents with headers here; without, and with the thesis's duplicates, not to be had"
    for code in ("ovr", "BCH 63"):
        for row in table("rifkin_rls", f"Table 3.1 in kind, {code}, random"):
            for model in ("SVM", "RLS"):
                paper, ours = number(row[f"{model}, printed"]), number(row[model])
                said = verdict(paper, ours, binomial(paper, ours, 3993), why)
                yield "Table 3.1", f"{code}, {row['a class']} a class, {model}", f"{paper}", f"{ours}", said
    yield "Table 3.2", "sector105", "", "", "not to be had"
    for code, paper in (("ovr", "7.7"), ("BCH 63", "26.6")):
        lines = table("rifkin_rls", f"Table 3.3 in kind, {code}, random")
        least = sum(number(row["RLS"]) for row in lines)
        linear, kernel = (sum(number(row[of]) for row in lines) / least for of in ("SVM", "SVC"))
        yield (
            "Table 3.3",
            f"{code}, all sizes, SVM / RLS",
            paper,
            f"{linear:.2g} (LIBLINEAR), {kernel:.2g} (SVC)",
            "differs, lower: other solvers and machines",
        )
    for table_of, name in (("Table 4.1", "satimage"), ("Table 4.2", "yeast")):
        lines = [row for row in table("rifkin_multiclass", "tables 4.1 and 4.2") if row["set"] == name]
        for code in dict.fromkeys(row["code"] for row in lines):
            ours = [number(row["error %, degree 4"]) for row in lines if row["code"] == code]
            paper = next(row["Allwein's"] for row in lines if row["code"] == code)
            inside = min(ours) <= number(paper) <= max(ours)
            yield (
                table_of,
                f"{code}, degree 4 (C and scaling not told)",
                f"{paper} %",
                f"{min(ours)} to {max(ours)} %",
                "within the settings tried" if inside else "differs: outside of the settings tried",
            )
    for row in table("rifkin_multiclass", "table 4.5, satimage"):
        paper, ours = number(row["thesis's error %"]), number(row["error % there"])
        said = verdict(paper, ours, 100 * binomial(paper / 100, ours / 100, 2000))
        yield "Table 4.5", f"satimage, {row['code']}", f"{paper} %", f"{ours} %", said
    known: set[str] = set()
    page = (PAGES / "rifkin_multiclass.md").read_text(encoding="utf-8")
    # Of codes that several tables have, the first, which leaves out the most rows.
    for at, left_out in enumerate(re.findall(r"^\*\*table 4\.5, yeast, (\d+) of", page, re.MULTILINE)):
        for row in table("rifkin_multiclass", "table 4.5, yeast", at):
            if row["code"] in known:
                continue
            known.add(row["code"])
            rows = int(left_out)
            paper, ours = number(row["thesis's error %"]), number(row["leave-one-out error %"])
            said = verdict(paper, ours, 100 * binomial(paper / 100, ours / 100, rows))
            told = "" if rows == 1484 else f" ({rows} of 1484 rows)"
            yield "Table 4.5", f"yeast, {row['code']}{told}", f"{paper} %", f"{ours} %", said
    for row in table("rifkin_multiclass", "table 4.5, 20newsgroups"):
        paper, ours = number(row["thesis's error %"]), number(row["error %, random splits"])
        said = verdict(paper, ours, 100 * binomial(paper / 100, ours / 100, 3769), why)
        yield "Table 4.5", f"20newsgroups, {row['code']}", f"{paper} %", f"{ours} %", said
    yield "Table 4.5", "gcm (tumours)", "", "", "not to be had"
    for table_of, title, rows in (("Table 4.6", "table 4.6", 2000), ("Table 4.7", "table 4.7", 1484)):
        lines = table("rifkin_multiclass", title)
        for row in lines:
            for code, cell in list(row.items())[1:]:
                if not cell or cell.startswith("1.000"):
                    continue
                ours, paper = (float(part) for part in re.findall(r"[\d.]+", cell))
                random = {row[""], code} & {"dense", "sparse"}
                drawn = "random codes, drawn anew" if random else ""
                said = verdict(paper, ours, binomial(paper, ours, rows), drawn)
                yield table_of, f"{row['']} and {code}", f"{paper}", f"{ours}", said
    for name, title, where in (
        ("satimage", "table 4.5, satimage", "4.3"),
        ("yeast", "table 4.4, yeast", "4.4"),
    ):
        for row in table("rifkin_multiclass", title):
            ours = next(value for key, value in row.items() if key.startswith("sigma, C"))
            paper = row["thesis's sigma, C"]
            said = "agrees" if ours == paper else "differs: the thesis finds no strong dependence"
            yield f"Table {where}", f"{name}, {row['code']}, sigma and C", paper, ours, said
    for of, title in (
        ("rifkin_svmfu", "Claims of section 2.6.1"),
        ("rifkin_rls", "Claims of section 3.4"),
        ("rifkin_rls", "Conclusions of section 3.7.3"),
    ):
        for row in table(of, title):
            said = "agrees" if row["here"] == "held" else "differs; figures on the page"
            yield f"Section {title.split()[-1]}", row["claim"], "", row["here"], said
    yield "Figures 2-6, 3-11 to 3-28", "faces", "", "", "not to be had; the pages have USPS"


def perceptrons() -> Iterator[Row]:
    """Figures 1 and 2, which have curves and claims in the text."""
    for row in table("perceptron_trees", "What the paper's text says of figure 1"):
        yield (
            "Figure 1",
            row["the paper"],
            "",
            "; ".join(f"{k}: {v}" for k, v in list(row.items())[1:]),
            "ranks",
        )
    claims = {
        "a9a": ("WPQ errs least of all", lambda at: at["wpq"] <= at["perceptron"]),
        "ijcnn1": (
            "WPQ slightly more than the Projectron",
            lambda at: at["best"] <= at["wpq"] < 1.5 * at["best"],
        ),
        "cod_rna": ("the Projectron is best", lambda at: at["best"] <= at["wpq"]),
    }
    for name, (claim, holds) in claims.items():
        lines = {row["method"]: row for row in table("perceptron_trees", f"{name}, by mistakes")}
        at = {method: number(lines[method]["test error"]) for method in ("wpq", "perceptron")}
        at["best"] = min(number(row["test error"]) for m, row in lines.items() if m.startswith("projectron"))
        said = "agrees" if holds(at) else "differs: the page, and the one of what was tried"
        ours = f"WPQ {at['wpq']}, perceptron {at['perceptron']}, best Projectron {at['best']}"
        yield "Figure 2", f"{name}: {claim}", "", ours, said


PAPERS: dict[str, Callable[[], Iterator[Row]]] = {
    "Reduced set selection (TR-132)": tr132,
    "Compressed support vector machines": compressed,
    "Kernel matching pursuit": kmp,
    "Everything Old Is New Again (the thesis)": thesis,
    "Perceptron trees": perceptrons,
}


def page() -> str:
    """The whole page."""
    parts = [
        "# Row by row",
        (
            "Each row of the papers' tables, and the claims of what has no table, ours beside it. *Agrees*: "
            "our error lies within two standard errors of the difference from the paper's, binomial ones on "
            "as many test rows, or those of the splits where the page has them; of a hundred rows that are "
            "alike some five differ by chance. Behind *differs* stands what is known to differ in the "
            "setting, no more. Settings and figures are on the [pages of the papers](index.md), from which "
            "`python benches/papers/rows.py` writes this list."
        ),
    ]
    for paper, rows in PAPERS.items():
        found = list(rows())
        agree = sum(row[4].startswith("agrees") for row in found)
        differ = sum(row[4].startswith("differs") for row in found)
        rest = len(found) - agree - differ
        lines = [
            f"## {paper}",
            "",
            f"{len(found)} rows: {agree} agree, {differ} differ, {rest} have no figure to compare.",
        ]
        lines += ["", "| where | row | paper | ours | verdict |", "|---|---|---|---|---|"]
        lines += ["| " + " | ".join(row) + " |" for row in found]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def main() -> int:
    """Write the page, or say whether it is that of today's pages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if the page would change")
    options = parser.parse_args()
    path, text = PAGES / "rows.md", page()
    if options.check:
        return int(not path.is_file() or path.read_text(encoding="utf-8") != text)
    path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
