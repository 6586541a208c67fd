//! Writing: under which classes each vector is listed, then the text.
//!
//! Cost of the listing: O(k^2) for each class that a vector is listed under; k is the number of classes.

use std::io::{self, Write};
use std::path::Path;

use super::{ProbabilityParams, SvmType, pair, pairs, repeated, training_rows};
use crate::context::Context;
use crate::data::{Rows, row};
use crate::error::{Error, Result};
use crate::expansion::ExpansionView;
use crate::io::atomic;
use crate::io::lines::{Number, check_columns};
use crate::kernels::Kernel;
use crate::memory::try_filled;

/// Writes a model file, all or nothing.
///
/// `labels` (k,) and the outputs are in the order of the module's header; both `labels` and `class_counts` are
/// empty for a model that is no classifier. `class_counts` says that the vectors are listed class after class, as
/// in a model that was read; without it (empty) each vector goes where its signs suggest: in a trained model a
/// vector's coefficients are positive in the pairs a < b of its class a, and negative where its class is b. `probability` is
/// empty for a model without probabilities.
///
/// # Errors
/// [`Error::Param`] for a kernel that LIBSVM does not have, labels that repeat, outputs that are not one for each
/// pair of classes, counts that do not add up, and columns beyond LIBSVM's 32 bits; [`Error::NotFinite`];
/// [`Error::Io`] from the system, [`Error::Memory`], [`Error::Stopped`].
pub fn write(
    path: &Path,
    svm_type: SvmType,
    expansion: &ExpansionView<'_>,
    labels: &[i32],
    class_counts: &[usize],
    probability: &ProbabilityParams,
    ctx: Context<'_>,
) -> Result<()> {
    atomic::save(path, ctx, checked_writer(svm_type, expansion, labels, class_counts, probability, ctx)?)
}

/// Writes the text of [`write()`] to a stream; `path` is what its errors call it.
pub fn write_to(
    out: &mut dyn Write,
    path: &Path,
    svm_type: SvmType,
    expansion: &ExpansionView<'_>,
    labels: &[i32],
    class_counts: &[usize],
    probability: &ProbabilityParams,
) -> Result<()> {
    checked_writer(svm_type, expansion, labels, class_counts, probability, Context::default())?(out)
        .map_err(|source| Error::io(path, source))
}

/// Checks what is to be written, and gives what writes it.
fn checked_writer<'a>(
    svm_type: SvmType,
    expansion: &'a ExpansionView<'_>,
    labels: &'a [i32],
    class_counts: &[usize],
    probability: &'a ProbabilityParams,
    ctx: Context<'_>,
) -> Result<impl FnOnce(&mut dyn Write) -> io::Result<()> + 'a> {
    let ExpansionView { kernel, vectors, coefficients, intercepts } = *expansion;
    ExpansionView::new(kernel, vectors, coefficients, intercepts)?;
    let kernel_lines = kernel_lines(kernel)?;
    let serials = check_vectors(kernel, vectors)?;
    check_outputs(svm_type, expansion, labels, class_counts)?;
    check_probability(probability, labels.len())?;

    let (m, k) = (vectors.rows(), labels.len());
    let ranks = Ranks::new(expansion, k, class_counts, ctx)?;
    let counts: Vec<usize> = (0..k).map(|class| (0..m).filter(|&i| ranks.lists(i, class)).count()).collect();
    let total = if k == 0 { m } else { counts.iter().sum() };
    Ok(move |out: &mut dyn Write| {
        writeln!(out, "svm_type {}\n{kernel_lines}", svm_type.name())?;
        writeln!(out, "nr_class {}\ntotal_sv {total}", k.max(2))?;
        write_list(out, "rho", intercepts.iter().map(|b| Number(-b)))?;
        if k > 0 {
            write_list(out, "label", labels.iter())?;
        }
        for (key, values) in [("probA", &probability.prob_a), ("probB", &probability.prob_b)] {
            if !values.is_empty() {
                write_list(out, key, values.iter().map(|value| Number(*value)))?;
            }
        }
        if k > 0 {
            write_list(out, "nr_sv", counts.iter())?;
        }
        writeln!(out, "SV")?;
        for class in 0..k.max(1) {
            for i in (0..m).filter(|&i| ranks.lists(i, class)) {
                for other in (0..k.max(2)).filter(|&other| other != class) {
                    write!(out, "{} ", Number(ranks.coefficient(expansion, i, class, other)))?;
                }
                match &serials {
                    Some(serials) => write!(out, "0:{} ", serials[i] + 1)?,
                    None => write_vector(out, vectors, i)?,
                }
                writeln!(out)?;
            }
        }
        Ok(())
    })
}

fn write_list<T: std::fmt::Display>(
    out: &mut dyn Write,
    key: &str,
    values: impl Iterator<Item = T>,
) -> std::io::Result<()> {
    write!(out, "{key}")?;
    for value in values {
        write!(out, " {value}")?;
    }
    writeln!(out)
}

fn write_vector(out: &mut dyn Write, vectors: Rows<'_>, row: usize) -> std::io::Result<()> {
    let mut written = Ok(());
    vectors.for_each_in_row(row, |column, value| {
        if value != 0.0 && written.is_ok() {
            written = write!(out, "{}:{} ", column + 1, Number(value));
        }
    });
    written
}

fn kernel_lines(kernel: Kernel) -> Result<String> {
    Ok(match kernel {
        Kernel::Linear => "kernel_type linear".into(),
        Kernel::Polynomial { degree, gamma, coef0 } => {
            if i32::try_from(degree).is_err() {
                return Err(Error::param("degree", degree, "at most 2147483647 in a LIBSVM model"));
            }
            let (gamma, coef0) = (Number(gamma), Number(coef0));
            format!("kernel_type polynomial\ndegree {degree}\ngamma {gamma}\ncoef0 {coef0}")
        }
        Kernel::Rbf { gamma } => format!("kernel_type rbf\ngamma {}", Number(gamma)),
        Kernel::Sigmoid { gamma, coef0 } => {
            format!("kernel_type sigmoid\ngamma {}\ncoef0 {}", Number(gamma), Number(coef0))
        }
        Kernel::Precomputed => "kernel_type precomputed".into(),
        Kernel::Laplacian { .. } | Kernel::ChiSquared { .. } | Kernel::Matern { .. } => {
            let rule = "one that LIBSVM has: linear, poly, rbf, sigmoid, precomputed";
            return Err(Error::param("kernel", kernel.name(), rule));
        }
    })
}

/// Finite vectors; for the precomputed kernel also their training rows.
fn check_vectors(kernel: Kernel, vectors: Rows<'_>) -> Result<Option<Vec<usize>>> {
    vectors.check_finite("vectors")?;
    if kernel == Kernel::Precomputed {
        return training_rows(vectors).map(Some);
    }
    check_columns(vectors)?;
    Ok(None)
}

fn check_outputs(
    svm_type: SvmType,
    expansion: &ExpansionView<'_>,
    labels: &[i32],
    class_counts: &[usize],
) -> Result<()> {
    if !svm_type.is_classifier() {
        Error::check_len("labels of a model that is no classifier", 0, labels.len())?;
        Error::check_len("class counts of a model that is no classifier", 0, class_counts.len())?;
        return Error::check_len("outputs of a model that is no classifier", 1, expansion.outputs());
    }
    if labels.len() < 2 {
        return Err(Error::param("labels", format!("{labels:?}"), "at least two"));
    }
    if let Some(label) = repeated(labels) {
        return Err(Error::param("labels", label, "distinct, but it appears twice"));
    }
    if pairs(labels.len()) != Some(expansion.outputs()) {
        let rule = format!("one for each pair of the {} classes (one-vs-one)", labels.len());
        return Err(Error::param("outputs", expansion.outputs(), rule));
    }
    if !class_counts.is_empty() {
        Error::check_len("class counts (one a label)", labels.len(), class_counts.len())?;
        let sum = class_counts.iter().try_fold(0_usize, |sum, &n| sum.checked_add(n)).unwrap_or(usize::MAX);
        Error::check_len("sum of the class counts", expansion.len(), sum)?;
    }
    Ok(())
}

fn check_probability(probability: &ProbabilityParams, k: usize) -> Result<()> {
    for values in [&probability.prob_a, &probability.prob_b] {
        if let Some(value) = values.iter().find(|value| !value.is_finite()) {
            return Err(Error::param("probability", value, "finite numbers"));
        }
    }
    let lengths = format!("{:?}", (probability.prob_a.len(), probability.prob_b.len()));
    probability.check(k).map_err(|rule| Error::param("probability", lengths, rule))
}

/// Which classes list a vector: `ranks[i * k + c]` is the order in which class c was chosen for vector i, or
/// `UNLISTED`. The coefficient of a pair is written under the one of its classes that was chosen first.
struct Ranks {
    ranks: Vec<u32>,
    k: usize,
}

const UNLISTED: u32 = u32::MAX;

/// Vectors between two checks of the monitor.
const VECTORS_PER_CHECK: usize = 16;

impl Ranks {
    fn new(
        expansion: &ExpansionView<'_>,
        k: usize,
        class_counts: &[usize],
        ctx: Context<'_>,
    ) -> Result<Self> {
        let m = expansion.len();
        let mut ranks = try_filled("the classes of each vector", m * k, UNLISTED)?;
        let mut home =
            class_counts.iter().enumerate().flat_map(|(class, &count)| std::iter::repeat_n(class, count));
        for i in 0..if k == 0 { 0 } else { m } {
            if i % VECTORS_PER_CHECK == 0 {
                ctx.check("write", i, m)?;
            }
            cover(row(&expansion.coefficients, i), &mut ranks[i * k..(i + 1) * k], home.next());
        }
        Ok(Self { ranks, k })
    }

    fn lists(&self, i: usize, class: usize) -> bool {
        self.k == 0 || self.ranks[i * self.k + class] != UNLISTED
    }

    fn coefficient(&self, expansion: &ExpansionView<'_>, i: usize, class: usize, other: usize) -> f64 {
        if self.k == 0 {
            return expansion.coefficients[[i, 0]];
        }
        if self.ranks[i * self.k + class] > self.ranks[i * self.k + other] {
            return 0.0;
        }
        expansion.coefficients[[i, pair(self.k, class.min(other), class.max(other))]]
    }
}

/// Greedy vertex cover of the non-zero pairs of one vector; a vector without any is listed once.
///
/// Ties go to `home`, the class the vector comes from, else to the class with whose signs more pairs agree.
fn cover(row: &[f64], ranks: &mut [u32], home: Option<usize>) {
    let k = ranks.len();
    for rank in 0.. {
        let mut best = (0, false, 0);
        let mut choice = home.unwrap_or(0);
        for class in (0..k).filter(|&class| ranks[class] == UNLISTED) {
            let (mut left, mut agree) = (0_usize, 0_usize);
            for other in (0..k).filter(|&other| other != class && ranks[other] == UNLISTED) {
                let value = row[pair(k, class.min(other), class.max(other))];
                left += usize::from(value != 0.0);
                agree += usize::from(if class < other { value > 0.0 } else { value < 0.0 });
            }
            let score = (left, home == Some(class), agree);
            if left > 0 && score > best {
                (best, choice) = (score, class);
            }
        }
        if best.0 == 0 && rank > 0 {
            return;
        }
        ranks[choice] = rank;
    }
}
