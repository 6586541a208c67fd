"""The account of each part of the papers' pages: claim, differences in setting, result, verdict, why.

``rows.py`` writes them at the head of the parts, in this order; result and verdict follow from the rows. The
parts of a page that no paper has a counterpart for come last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from judging import number, numbers, table

if TYPE_CHECKING:
    from collections.abc import Callable

    from judging import Row

NO_CLAIM = "The paper makes no such claim; this is a measurement of our own."
NO_VERDICT = "There is nothing in the paper to compare with."


@dataclass(frozen=True)
class Account:
    """The fixed sentences of a part; ``result`` computes the result where the rows alone do not give it."""

    title: str
    claim: str
    differences: str
    why: str
    result: Callable[[list[Row]], str] | None = None
    verdict: str = NO_VERDICT
    own: bool = False


def own(
    title: str, differences: str, result: Callable[[list[Row]], str] | str, why: str, claim: str = NO_CLAIM
) -> Account:
    """Return the account of a measurement of our own."""
    said = result if callable(result) else lambda _rows, text=result: text
    return Account(title, claim, differences, why, said, own=True)


def span(page: str, title: str, column: str, at: int = 0) -> str:
    """Return the range of a column of a table."""
    values = [number(row[column]) for row in table(page, title, at) if numbers(row[column])]
    return f"{min(values):.3g} to {max(values):.3g}"


def targets_met(_rows: list[Row]) -> str:
    """Return how many targets of the construction are met."""
    lines = table("compressed_svm", "Test error of one-vs-rest RBF")
    met = sum(row["met"] == "yes" for row in lines)
    return f"{met} of {len(lines)} targets are met."


def kmp_speed(_rows: list[Row]) -> str:
    """Return the speed of pre-fitting beside two peers."""
    lines = {row[""]: row["times"] for row in table("kmp", "500 of 7291 functions")}
    omp = lines["OrthogonalMatchingPursuit on the matrix"]
    plain = next(value for name, value in lines.items() if name.startswith("NumPy"))
    peer = "`OrthogonalMatchingPursuit`"
    return f"Pre-fitting is {omp} times as fast as {peer} and {plain} times as fast as NumPy."


def kmp_losses(_rows: list[Row]) -> str:
    """Return which loss has the lowest error on each set."""
    lines = table("kmp", "Test errors in percent with standard errors")
    best = {
        name: min(lines, key=lambda row, key=name: number(row[key]))["loss"] for name in list(lines[0])[1:]
    }
    return "The lowest errors: " + ", ".join(f"{name} {loss}" for name, loss in best.items()) + "."


def svmarrow_times(page: str, title: str, column: str, what: str) -> Callable[[list[Row]], str]:
    """Return a sentence with the range of a column."""
    return lambda _rows: f"{what}: {span(page, title, column)}."


def drawn_codes(_rows: list[Row]) -> str:
    """Return the errors of the sparse codes by both rules."""
    lines = table("rifkin_multiclass", "The sparse rows of table 4.5")
    return (
        "; ".join(f"{row['set']}, {row['draws']}: {row['error %']} % ({row['range']})" for row in lines) + "."
    )


def finishes_of_figure3(_rows: list[Row]) -> str:
    """Return the mean errors of all methods on each set."""
    lines = table("compressed_svm_figure3", "A tenth of the vectors")
    return (
        "Mean test errors in percent: "
        + "; ".join(
            f"{name}: " + ", ".join(f"{row['method']} {row['mean']}" for row in lines if row["set"] == name)
            for name in dict.fromkeys(row["set"] for row in lines)
        )
        + "."
    )


def zero_norm_readings(_rows: list[Row]) -> str:
    """Return by reading at how many sizes the pursuit has the lower and the higher objective."""
    lines = table("tr132", "Figure 3: readings of the lossy zero norm")
    counts: dict[str, list[int]] = {}
    for row in lines:
        z = number(row["difference"].lstrip("+")) / number(row["standard error"])
        count = counts.setdefault(f"{row['penalty']}, {row['coefficients']}", [0, 0, 0])
        count[0] += 1
        count[1] += z < -2
        count[2] += z > 2
    readings = (f"{name}: {lower} and {higher} of {n}" for name, (n, lower, higher) in counts.items())
    return f"Sizes at which the pursuit has the lower and the higher objective: {'; '.join(readings)}."


ACCOUNTS: dict[str, Account] = {
    "tr132/figure1": Account(
        "Figure 1: a linear SVM on two clouds in ten dimensions",
        "The number of support vectors grows linearly with the number of training samples. Any reduced set "
        "method needs 10 vectors and loses no accuracy.",
        "The paper shows l0 minimisation with lambda = 0. We also run the rank method, the pursuit and the "
        "basic pursuit without back-fitting, which the paper does not run here. The value of C is not "
        "printed; we use C = 1.",
        "A linear function in ten dimensions is a combination of any ten independent vectors. The basic "
        "pursuit never solves for its coefficients again and therefore needs more vectors.",
    ),
    "tr132/two-class": Account(
        "Tables 2 and 3, figures 2 and 3: two classes",
        "The three methods perform similarly. The pursuit has a slightly lower test error at high "
        "compression on Waveform and Image, a lower training error and objective on Waveform, and is 9 to "
        "68 times as fast for ten levels of compression.",
        "The paper draws ten splits of the sizes in its table 1; ours have the same sizes and are drawn "
        "independently. The table also has the first ten original splits of Raetsch, which have fewer "
        "training samples. Our l1 follows the exact path, and each of the ten levels is a run of its own, "
        "as in the paper. The paper's programs are written in Matlab.",
        "The times differ in both directions: our l1 solves the same problem by an exact path, which is "
        "faster than a quadratic program, and our l0 gains less from a compiled language than the pursuit "
        "does. From a fifth of the vectors on our l0 has a lower objective than the pursuit, in contrast "
        "to the printed curve; the next part has the other readings of l0. The error rate on German is lower "
        "than the printed one over 100 splits, so the draw of the splits does not explain it.",
    ),
    "tr132/zero-norm": Account(
        "Figure 3: readings of the lossy zero norm",
        "The objective is lowest for the pursuit on Waveform.",
        "The report prints the lossy step of l0 with the penalty gamma times the sum of lambda_i beta_i, and "
        "says that it is the trick of l1. We run four readings, with the coefficients of the last round and "
        "with the best ones on the same vectors.",
        "As printed the penalty has no absolute values, and no coefficient becomes zero. With absolute "
        "values it does not depend on beta, so that l0 is l1. Both other readings, which penalise the log "
        "of the coefficients, have a lower objective than the pursuit from a tenth or a fifth of the vectors "
        "on, whichever coefficients they keep.",
        zero_norm_readings,
        "The claim is judged in the part above.",
    ),
    "tr132/multi-class": Account(
        "Table 2, figure 4, section 4.3: many classes",
        "Selecting vectors for all outputs at once needs far fewer kernel evaluations than selecting for "
        "each output.",
        "The paper tries parameters until its error rates match published ones. For USPS we read its "
        "width as gamma = 1/128, for Letter as gamma = 1/32 on standardised features. A vector counts "
        "once for all classes. All thresholds are chosen again on the training samples. The separate "
        "pursuits of the paper have as many vectors for each output as its l1; ours have the same number "
        "for every output.",
        "The SVM of the paper on USPS has far fewer support vectors, because its images are smoothed (next "
        "part). Separate l1 selects the vectors of an output's own class first, at a "
        "pace that differs from class to class; at some sizes one class loses most of its samples to the "
        "others. The table of scales below shows this. Joint selection and joint refitting have no such "
        "sizes.",
    ),
    "tr132/smoothed": Account(
        "Table 2, figure 4 and section 4.3 with smoothed images: USPS",
        "The SVM on USPS has 1,526 support vectors and an error rate of 4.16 %. Joint l1 of Schoelkopf and "
        "others (1999) has an error rate of 5.5 % with 570 vectors, where separate l1 had 10.8 %. Separate "
        "pursuits have a lower error than separate l1 at high compression.",
        "The report does not mention preprocessing. Work on this set by Schoelkopf and others, whom it "
        "cites, smooths the images by a Gaussian of width .75; outside of an image is background. We "
        "read its sigma = 128 as gamma = 1/128. All thresholds are chosen again on the training "
        "samples. The separate models have the same number of vectors for every output. The part above "
        "has the same machine without smoothing.",
        "Smoothing removes differences of neighbouring pixels, so fewer samples are support vectors: with "
        "it the number is the printed one. No parameter was searched for. Separate l1 stays far above the "
        "printed error at 570 vectors, with as many vectors for every output and with one penalty for all "
        "outputs.",
    ),
    "tr132/regression": Account(
        "Table 2, figure 5: kernel ridge regression",
        "Ridge regression has a mean squared error of .410 on Abalone and .6187 on Kin-32nm, and the pursuit "
        "with 59 random candidates a step compresses it much, since its solution is not sparse.",
        "The paper has one split, chooses its parameters on the test samples and does not describe the "
        "scaling of the features. Kin-32nm is not available; kin8nm is another problem. We choose gamma "
        "and alpha on a quarter of the training samples, and also run all readings of the paper's "
        "parameters.",
        "The error on Abalone varies between splits by more than the difference from the paper.",
    ),
    "tr132/growth": own(
        "Growth of the pursuit's time",
        "An SVM on USPS with ten outputs, and random vectors for the chunks.",
        svmarrow_times("tr132", "USPS, ten outputs", "seconds", "Seconds by pool and number of vectors"),
        "Each step of the pursuit updates one product for each vector of the pool. The target was less than "
        "half a second for 800 of 2,641 vectors.",
    ),
    "tr132/mnist": own(
        "MNIST",
        "An SVM with C = 10 and gamma = 0.02 on all 60,000 training samples.",
        svmarrow_times("tr132", "The pursuit; ", "seconds", "Seconds for 800 vectors"),
        "This is the largest pool of the page. The target was less than 20 seconds.",
    ),
    "compressed_svm/figure2": Account(
        "Figure 2: a ring around a cloud",
        "The full SVM has 80 support vectors, 8 of which are kept. The boundary of LARS-SVM is a poor "
        "approximation; after 2,560 iterations of moving the vectors it is very close to the full one.",
        "The radius and the noise of the ring, C and the width are not printed; ours are our own choice. "
        "We move vectors by Adam, the paper by conjugate gradients. Our LARS-SVM solves for the "
        "coefficients again on the chosen vectors and chooses the threshold on the training samples; the "
        "paper keeps the coefficients of the path. Agreement is measured on a grid over the picture, most "
        "of which has no samples.",
        "The number of support vectors depends on the noise and on C, which we had to choose.",
    ),
    "compressed_svm/targets": own(
        "Targets for the default settings",
        "One-vs-rest SVMs with an RBF kernel, means over seeds in both precisions, one thread. Every run "
        "is in [compressed_svm.json](../benchmarks/compressed_svm.json).",
        targets_met,
        "The targets were set before the measurement. Those that are missed are missed by at most two tenths "
        "of a point.",
    ),
    "compressed_svm/starts": own(
        "Where the vectors start",
        "USPS, 50 vectors, 20,000 steps; started from LARS, from the pursuit and from cluster centres.",
        svmarrow_times(
            "compressed_svm",
            "usps, 50 vectors, 20,000",
            "default loss",
            "Test errors in percent after moving",
        ),
        "The start matters much before the vectors are moved and little afterwards.",
    ),
    "compressed_svm/path": own(
        "The sizes of a path",
        "Letter, one-vs-rest, 20,000 steps for each size; every size is constructed independently.",
        svmarrow_times("compressed_svm", "letter, one-vs-rest", "error", "Test errors in percent"),
        "A construction of one size does not start from that of another.",
    ),
    "compressed_svm/bytes": own(
        "Coefficients of one byte",
        "Files of the full model, of the constructed one, and of the same with coefficients of one byte.",
        svmarrow_times(
            "compressed_svm",
            "Files of the full model",
            "labels changed, %",
            "Predictions that change, in percent",
        ),
        "The rounding of the coefficients is small compared with the margin of most samples.",
    ),
    "compressed_svm/room": own(
        "A model in a given number of bytes",
        "One-vs-rest SVMs on Letter in 8 KiB and on MNIST in 64 KiB.",
        svmarrow_times(
            "compressed_svm",
            "One-vs-rest SVMs; constructed",
            "error, % 3",
            "Test errors of the rounded models in percent",
        ),
        "The coefficients are tuned again after the vectors are rounded.",
    ),
    "compressed_svm/optimiser": own(
        "Conjugate gradients and Adam",
        "USPS, 50 vectors, half the squared distance between outputs at the support vectors. The paper uses "
        "conjugate gradients.",
        svmarrow_times("compressed_svm", "usps, 50 vectors: half", "loss", "Loss at the end of the six runs"),
        "With 800 iterations conjugate gradients have a higher loss than Adam after 8,000 steps, and take "
        "longer. Why was not tested.",
    ),
    "compressed_svm/search": own(
        "Size and parameters together",
        "satimage; the smallest model within half a point of the best, by cross-validation.",
        svmarrow_times("compressed_svm", "satimage: the smallest", "error, %", "Test errors in percent"),
        "The paper suggests a constrained joint search and does not run one.",
    ),
}

FIGURE3_CLAIM = (
    "The compressed model keeps close to the same accuracy with a tenth of the support vectors, and CVM "
    "significantly improves over all baselines (Reduced-SVM and LARS-SVM)."
)
FIGURE3_DIFFERENCES = (
    "The figure has curves without numbers. Our CVM starts from LARS-SVM as the paper's and matches "
    "outputs at the support vectors, but moves vectors by Adam on batches; conjugate gradients are run "
    "once, at a tenth. Our LARS-SVM solves for the coefficients again on the chosen vectors and chooses "
    "its thresholds on the training samples; the paper keeps the coefficients of the path. Reduced-SVM "
    "selects its vectors at random in one step, the paper's in several steps by a heuristic; the last part "
    "has more minimizers and the heuristic on Magic. "
)
ACCOUNTS |= {
    "compressed_svm_figure3/mnist": Account(
        "MNIST",
        FIGURE3_CLAIM,
        FIGURE3_DIFFERENCES + "We train on the first 10,000 samples, the paper on 60,000.",
        "Moving the vectors pays most where few of them are kept; at a tenth the full accuracy is reached.",
    ),
    "compressed_svm_figure3/magic": Account(
        "Magic",
        FIGURE3_CLAIM,
        FIGURE3_DIFFERENCES
        + "The split is our own; C and gamma are chosen on a fifth of the training samples: the smallest C "
        "within a standard error of the lowest error.",
        "With the squared hinge of the paper and C = 1 the outputs at the support vectors are small, and "
        "few moved vectors are as good as the full model. With the plain hinge and C = 1000, where an "
        "earlier run had its C, CVM was worse than Reduced-SVM at most sizes.",
    ),
    "compressed_svm_figure3/page_blocks": Account(
        "Pageblocks",
        FIGURE3_CLAIM,
        FIGURE3_DIFFERENCES
        + "The split is our own and has all five classes; the paper's table 1 lists two. C and gamma are "
        "chosen on a fifth of the training samples: the smallest C within a standard error of the lowest "
        "error.",
        "At a tenth CVM errs less than the full SVM and than both baselines. At 2 and 5 % the test set of "
        "1,642 samples is too small to tell the three apart.",
    ),
    "compressed_svm_figure3/letter": Account(
        "Letters",
        FIGURE3_CLAIM,
        FIGURE3_DIFFERENCES + "C and gamma are those of our other experiments on this set.",
        "At a tenth CVM has the error of Reduced-SVM. With fewer vectors it errs more: all 325 outputs are "
        "matched at the support vectors, whereas Reduced-SVM trains each of its machines on the labels. CVM "
        "does not improve over all baselines on this set.",
    ),
    "compressed_svm_figure3/news": Account(
        "20news",
        FIGURE3_CLAIM,
        FIGURE3_DIFFERENCES
        + "The documents have their headers, and their tf-idf vectors are reduced to 200 components; C and "
        "gamma are those of our other experiments on this set.",
        "The 190 outputs are matched at the support vectors.",
    ),
    "compressed_svm_figure3/path": Account(
        "One path of LARS for all outputs; DMOZ",
        FIGURE3_CLAIM,
        "A joint path of LARS for the 325 outputs of Letters and the 190 of 20news had not selected a tenth "
        "of the vectors after 450 seconds of one processor; the parts above have a path for each binary "
        "machine. DMOZ is not available. The table has the cost of a joint path for fewer classes.",
        "Every step of the path concerns all outputs, and the number of outputs grows with the square of "
        "the number of classes.",
    ),
    "compressed_svm_figure3/finishes": own(
        "Other minimizers, seeds, and a selected basis",
        "Magic at a tenth of the vectors, with C and gamma of the part above. Conjugate "
        "gradients and L-BFGS start from LARS, as Adam does. The selected basis of Reduced-SVM is that of "
        "Keerthi, Chapelle and DeCoste (2006).",
        finishes_of_figure3,
        "The paper moves vectors by conjugate gradients and does not print the number of iterations.",
        FIGURE3_CLAIM,
    ),
    "kmp/table1": Account(
        "Table 1: USPS, each digit against the others",
        "With as many vectors as the SVM, squared-error KMP performs as well as the SVM, unlike an RBF "
        "network with k-means centres; with half of the vectors the loss is slight.",
        "The paper's digits are preprocessed in a way it does not describe. It repeats an experiment of "
        "Schoelkopf and others (1997), who have gamma = 1/76.8 and smooth the images by a Gaussian. "
        "Neither prints the width; ours is that of four which gives the SVM (C = 10) the numbers of "
        "support vectors nearest to the printed ones, on the training samples. Our KMP has no intercept, "
        "as the paper's dictionary of kernels. Our k-means network fits its weights by least squares with "
        "alpha = .001; that of the paper was trained by gradient descent (Schoelkopf and others, 1997), "
        "which the last table has for three numbers of steps. The test samples are the same.",
        "With this width all ten numbers of support vectors agree, and so do the errors of the SVM and of "
        "KMP. With least squares the k-means network errs less than the printed one. Gradient descent "
        "approaches these weights slowly: after 100,000 steps it errs more than the printed network, after "
        "1,000,000 less.",
    ),
    "kmp/table2": Account(
        "Table 2: Mushrooms by the number of training samples",
        "KMP needs fewer vectors than the SVM, and no difference of error rates is significant.",
        "The paper uses the splits of Delve; ours have the same sizes and are drawn at random. The paper "
        "does not print its grids. We choose gamma and the size of KMP by 10-fold cross-validation: the "
        "smallest size of the lowest error. A second choice, by the lowest loss, has at most 200 vectors "
        "and no counterpart in the paper. Our KMP has an intercept; the paper names the constant function "
        "as an option and does not say whether it was used here. The second table has both.",
        "The cross-validated error is the same for many sizes, 38 to 164 at 1,024 samples, and the "
        "printed size is among them at every size of the training set. Our SVM has fewer vectors than "
        "the paper's because our cross-validation chooses a wider kernel; at gamma = .1 to .2 the "
        "numbers are those of the paper. The "
        "intercept makes little difference: without it the errors are lower, by three standard errors of the "
        "paired difference at 128 samples, with about as many vectors.",
    ),
    "kmp/table3": Account(
        "Table 3: four sets of the UCI repository",
        "Error rates do not differ significantly, and KMP needs far fewer vectors than the SVM; the loss "
        "after tanh gives no significant improvement.",
        "The 50 random splits are our own. The paper does not describe the scaling of Wisconsin and Pima; we "
        "standardise their features. Our KMP has an intercept; the paper does not say whether its KMP has "
        "one. The last table has both. The size is the smallest with the lowest validation error; the table "
        "of ties has both ends for a path of 100 functions that is not stopped.",
        "The numbers of vectors depend on how the size is stopped, which the paper describes only as "
        "early stopping on the validation set. KMP-tanh on Sonar stops at far fewer vectors in the paper "
        "than here; with as many vectors our error is the printed one. No single rule gives all the printed "
        "numbers of vectors. The intercept decides Ionosphere: without it the "
        "error is 11.8 % and not 6.9 % (printed: 6.87 %), so the paper's dictionary must have had the "
        "constant function there. Elsewhere the difference is small.",
    ),
    "kmp/figure5": Account(
        "Figure 5: losses against the margin",
        "The figure draws the losses of boosting and of SVMs beside the squared error and the squared "
        "error after tanh. It has no experiment.",
        "We also minimise each loss on the sets of table 3: steepest descent selects the functions, all "
        "coefficients are fitted again every five steps, and the size has the lowest validation error. "
        "The models of this part have no intercept. The corner of the soft margin is replaced by a "
        "parabola from m = .9 on.",
        "The errors below are our own and extend the figure.",
        kmp_losses,
    ),
    "kmp/figure6": Account(
        "Figure 6: three kinds of pursuit in two dimensions",
        "After 100 iterations the basic pursuit does not separate the samples; back-fitting and "
        "pre-fitting do with 7 vectors, as many as the SVM has.",
        "The samples of the paper are not printed. We chose ours, and the width, among 36 settings so "
        "that they show the effect; with narrower kernels the basic pursuit separates its samples as well.",
        "The basic pursuit returns to vectors it already has in order to correct their weights.",
    ),
    "kmp/figure7": Account(
        "Figure 7: a cluster far on its own side",
        "Squared error misclassifies samples near the line; the SVM and the squared error after tanh do not.",
        "The samples of the paper are not printed; ours were drawn to show the effect.",
        "Squared error penalises large margins and follows the far cluster.",
    ),
    "kmp/speed": own(
        "Speed of pre-fitting",
        "500 of 7,291 functions on USPS; `OrthogonalMatchingPursuit` is given the kernel matrix, and the "
        "NumPy version of the paper's figure 3 is timed on its first steps.",
        kmp_speed,
        "The number of multiply-adds is N M l in any order of the work, and most of them are bound by "
        "memory. The matching pursuit forms the Gram matrix once, which is bound by arithmetic. The "
        "target was five times the speed of both.",
    ),
    "kmp/peer": own(
        "Processor time on one thread",
        "Our time includes the kernel values; the peer is given its matrix, and the last two columns add the "
        "time of that matrix. Back-fitting is the same algorithm as the peer's.",
        svmarrow_times("kmp", "One thread, processor seconds", "back-fitting, with", "Peer's time / ours"),
        "Our pursuit does not form the Gram matrix of the dictionary.",
    ),
    "kmp/growth": own(
        "Growth with functions, candidates and samples",
        "MNIST; N functions, M candidates, l samples, each doubled in turn.",
        svmarrow_times("kmp", "Growth on MNIST", "ns", "Nanoseconds for each of N M l"),
        "The time is nearly proportional to the product of the three.",
    ),
}
