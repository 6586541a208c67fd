//! Reading: header lines in any order, then the vectors, each line checked where it stands.
//!
//! Memory grows with the bytes read, never with a count that the header claims; only B (m, q) is larger than the
//! text it comes from, and is allocated when all vectors have been seen.

use std::io::BufRead;
use std::path::Path;
use std::str::SplitAsciiWhitespace;

use ndarray::{Array1, Array2, Axis};

use super::{LibsvmModel, ProbabilityParams, SvmType, pair, pairs, repeated};
use crate::context::Context;
use crate::data::OwnedRows;
use crate::error::Result;
use crate::expansion::KernelExpansion;
use crate::io::columns::{Columns, IndexBase};
use crate::io::content_error::ContentError;
use crate::io::lines::{Lines, SparseBuilder, excerpt, finite, push};
use crate::io::monitored;
use crate::kernels::Kernel;
use crate::memory::{TryCollect, try_zeros};

/// Reads a model file.
///
/// `n_features` sets the number of columns, which the file does not know; without it the largest index decides.
/// `base` is the index of the first column, as for svmlight data; it has no meaning for the precomputed kernel.
///
/// `svm-predict` reads whatever stands in a file. What it would read as something else is refused here: indices that do
/// not increase, tokens that are no numbers, blank lines between the vectors, which it takes for vectors.
///
/// # Errors
/// [`Error::Io`] from the system; [`Error::Format`] with the line for everything that is missing, repeated,
/// unknown, out of range or not finite, for a count that the rest of the file contradicts, and for a file that
/// ends too early, also within its last line; [`Error::Memory`]; [`Error::Stopped`] where the monitor, asked before
/// every block, says so.
///
/// [`Error::Io`]: crate::Error::Io
/// [`Error::Format`]: crate::Error::Format
/// [`Error::Memory`]: crate::Error::Memory
/// [`Error::Stopped`]: crate::Error::Stopped
pub fn read(
    path: &Path,
    n_features: Option<usize>,
    base: IndexBase,
    ctx: Context<'_>,
) -> Result<LibsvmModel> {
    read_from(monitored::open_text(path, ctx)?, path, n_features, base)
}

/// Reads a model from a stream; `path` is what its errors call it.
pub fn read_from(
    reader: impl BufRead,
    path: &Path,
    n_features: Option<usize>,
    base: IndexBase,
) -> Result<LibsvmModel> {
    let mut lines = Lines::new(reader, path);
    let header = Header::read(&mut lines)?;
    let layout = header.check().map_err(|message| lines.error(message))?;

    let width = layout.classes.max(2) - 1;
    let mut vectors = SparseBuilder::<f64>::new();
    let mut listed = Vec::new(); // (m, width), as in the file; grows with the file, not with its header
    let mut columns = Columns::new(base, n_features);
    let mut blank = None;
    while lines.advance()? {
        let mut tokens = lines.text()?.split_ascii_whitespace().peekable();
        if tokens.peek().is_none() {
            blank.get_or_insert(lines.number());
            continue;
        }
        let at = |content_error: ContentError| lines.error(content_error);
        if vectors.indptr.len() > layout.total {
            return Err(lines.error(format!("more support vectors than total_sv={}", layout.total)));
        }
        if let Some(line) = blank {
            let rule =
                "a blank line among the support vectors, which svm-predict takes for one: delete the line";
            return Err(lines.error_at(line, rule));
        }
        for count in 0..width {
            let Some(token) = tokens.next_if(|token| !token.contains(':')) else {
                return Err(lines.error(format!("{count} coefficients, expected {width}")));
            };
            push(&mut listed, finite(token).map_err(|m| lines.error(format!("coefficient {m}")))?)?;
        }
        let span = vectors.push_row(tokens).map_err(at)?;
        if layout.kernel == Kernel::Precomputed {
            let serial = *vectors.values.last().unwrap_or(&0.0);
            let count = n_features.map_or(f64::from(i32::MAX), |n| n as f64);
            if span != Some((0, 0)) || serial.trunc() != serial || serial < 1.0 || serial > count {
                return Err(lines
                    .error("a vector of a precomputed kernel is 0:number, the number of its training row"));
            }
        } else if let Some((low, high)) = span {
            columns.add(low, high, lines.number()).map_err(|message| lines.error(message))?;
        }
        if !lines.is_complete() {
            let rule = "the file ends within this line: it may be cut off; end a line that is whole with a line feed";
            return Err(lines.error(rule));
        }
    }
    let count = vectors.indptr.len() - 1;
    if count < layout.total {
        let total = layout.total;
        return Err(lines.error(format!("the file ends after {count} support vectors; total_sv is {total}")));
    }

    let zero_based = layout.kernel != Kernel::Precomputed && columns.are_zero_based();
    let count = columns.count().map_err(|(line, message)| lines.error_at(line, message))?;
    let coefficients = layout.spread(listed).map_err(|content_error| lines.error_at(0, content_error))?;
    let owned = if layout.kernel == Kernel::Precomputed {
        let data: Vec<f64> = vectors.values.iter().map(|serial| serial - 1.0).try_collect_vec()?;
        Array1::from(data).insert_axis(Axis(1)).into()
    } else {
        if !zero_based {
            vectors.shift();
        }
        let SparseBuilder { indptr, indices, values } = vectors;
        OwnedRows::CsrF64 { indptr, indices, values, cols: count }
    };
    Ok(LibsvmModel {
        svm_type: layout.svm_type,
        expansion: KernelExpansion::new(layout.kernel, owned, coefficients, layout.intercepts)?,
        labels: layout.labels,
        class_counts: layout.counts,
        zero_based,
        probability: layout.probability,
    })
}

/// Header lines as they come; each at most once, in any order.
#[derive(Default)]
struct Header {
    svm_type: Option<SvmType>,
    kernel: Option<String>,
    degree: Option<u32>,
    gamma: Option<f64>,
    coef0: Option<f64>,
    classes: Option<usize>,
    total: Option<usize>,
    rho: Option<Vec<f64>>,
    labels: Option<Vec<i32>>,
    counts: Option<Vec<usize>>,
    prob_a: Option<Vec<f64>>,
    prob_b: Option<Vec<f64>>,
}

/// A value for each token.
fn list<T>(
    tokens: SplitAsciiWhitespace<'_>,
    value: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, ContentError> {
    let mut values = Vec::new();
    for token in tokens {
        push(&mut values, value(token)?)?;
    }
    Ok(values)
}

/// A header without contradictions.
struct Layout {
    svm_type: SvmType,
    kernel: Kernel,
    /// k, or 0 if the model is no classifier.
    classes: usize,
    total: usize,
    intercepts: Vec<f64>,
    labels: Vec<i32>,
    counts: Vec<usize>,
    probability: ProbabilityParams,
}

impl Header {
    /// Reads up to the line `SV`.
    fn read(lines: &mut Lines<'_, impl BufRead>) -> Result<Self> {
        let mut header = Self::default();
        while lines.advance()? {
            let mut tokens = lines.text()?.split_ascii_whitespace();
            let Some(key) = tokens.next() else { continue };
            if key == "SV" && tokens.clone().next().is_none() {
                return Ok(header);
            }
            header.set(key, tokens).map_err(|content_error| lines.error(content_error))?;
        }
        Err(lines.error("the file ends before the line SV: it is no LIBSVM model or it is cut off"))
    }

    fn set(&mut self, key: &str, values: SplitAsciiWhitespace<'_>) -> Result<(), ContentError> {
        let count_of = |token: &str| match token.parse() {
            Ok(value) => Ok(value),
            Err(_) => Err(format!("{key}: {} is not a count", excerpt(token))),
        };
        let single_value = || {
            let mut values = values.clone();
            match (values.next(), values.next()) {
                (Some(value), None) => Ok(value),
                (first, _) => {
                    let count = if first.is_none() { 0 } else { 2 + values.count() };
                    Err(format!("{key} takes one value, found {count}"))
                }
            }
        };
        let real = |token: &str| finite::<f64>(token).map_err(|message| format!("{key}: {message}"));
        let fresh = match key {
            "svm_type" => {
                let name = single_value()?;
                let known = SvmType::ALL.into_iter().find(|t| t.name() == name);
                let known = known.ok_or_else(|| format!("svm_type {} is not known", excerpt(name)))?;
                self.svm_type.replace(known).is_none()
            }
            "kernel_type" => self.kernel.replace(single_value()?.to_owned()).is_none(),
            "degree" => {
                let token = single_value()?;
                let degree =
                    token.parse().map_err(|_| format!("degree {} is not a count", excerpt(token)))?;
                self.degree.replace(degree).is_none()
            }
            "gamma" => self.gamma.replace(real(single_value()?)?).is_none(),
            "coef0" => self.coef0.replace(real(single_value()?)?).is_none(),
            "nr_class" => self.classes.replace(count_of(single_value()?)?).is_none(),
            "total_sv" => self.total.replace(count_of(single_value()?)?).is_none(),
            "rho" => self.rho.replace(list(values, real)?).is_none(),
            "nr_sv" => self.counts.replace(list(values, count_of)?).is_none(),
            "label" => {
                let label =
                    |t: &str| t.parse().map_err(|_| format!("label {} is not an integer", excerpt(t)));
                self.labels.replace(list(values, label)?).is_none()
            }
            "probA" => self.prob_a.replace(list(values, real)?).is_none(),
            "probB" => self.prob_b.replace(list(values, real)?).is_none(),
            // The marks of one-class SVM of later versions of LIBSVM are not used.
            "prob_density_marks" => true,
            _ => return Err(format!("{} is no header line of a LIBSVM model", excerpt(key)).into()),
        };
        if fresh { Ok(()) } else { Err(format!("{key} appears twice").into()) }
    }

    fn check(self) -> Result<Layout, String> {
        fn need<T>(value: Option<T>, key: &str) -> Result<T, String> {
            value.ok_or_else(|| format!("the header has no line {key}"))
        }
        let svm_type = need(self.svm_type, "svm_type")?;
        let (gamma, coef0) = (|| need(self.gamma, "gamma"), || need(self.coef0, "coef0"));
        let kernel = match need(self.kernel, "kernel_type")?.as_str() {
            "linear" => Kernel::Linear,
            "polynomial" => {
                Kernel::Polynomial { degree: need(self.degree, "degree")?, gamma: gamma()?, coef0: coef0()? }
            }
            "rbf" => Kernel::Rbf { gamma: gamma()? },
            "sigmoid" => Kernel::Sigmoid { gamma: gamma()?, coef0: coef0()? },
            "precomputed" => Kernel::Precomputed,
            other => return Err(format!("kernel_type {} is not known", excerpt(other))),
        };
        kernel.check().map_err(|error| error.to_string())?;
        let (classes, total) = (need(self.classes, "nr_class")?, need(self.total, "total_sv")?);
        let rho = need(self.rho, "rho")?;
        let (mut labels, mut counts) = (Vec::new(), Vec::new());
        if svm_type.is_classifier() {
            (labels, counts) = (need(self.labels, "label")?, need(self.counts, "nr_sv")?);
            if classes < 2 {
                return Err(format!("nr_class={classes}: a classifier without two classes decides nothing"));
            }
            for (key, count) in [("label", labels.len()), ("nr_sv", counts.len())] {
                if count != classes {
                    return Err(format!("{key} has {count} values, nr_class is {classes}"));
                }
            }
            if let Some(label) = repeated(&labels) {
                return Err(format!("label {label} appears twice"));
            }
            if counts.iter().try_fold(0_usize, |sum, &n| sum.checked_add(n)) != Some(total) {
                return Err(format!("the counts of nr_sv do not add up to total_sv={total}"));
            }
        } else if classes != 2 || self.labels.is_some() || self.counts.is_some() {
            return Err(format!("{} has nr_class 2 and neither label nor nr_sv", svm_type.name()));
        }
        if pairs(classes) != Some(rho.len()) {
            return Err(format!("rho has {} values, which does not fit nr_class={classes}", rho.len()));
        }
        let classes = labels.len();
        let probability = ProbabilityParams {
            prob_a: self.prob_a.unwrap_or_default(),
            prob_b: self.prob_b.unwrap_or_default(),
        };
        probability.check(classes)?;
        let intercepts = rho.into_iter().map(|r| 0.0 - r).collect();
        Ok(Layout { svm_type, kernel, classes, total, intercepts, labels, counts, probability })
    }
}

impl Layout {
    /// B (m, q) from the (m, k-1) coefficients of the file.
    fn spread(&self, listed: Vec<f64>) -> Result<Array2<f64>, ContentError> {
        let (k, q) = (self.classes, self.intercepts.len());
        let matrix = |values| {
            Array2::from_shape_vec((self.total, q), values).map_err(|error| error.to_string().into())
        };
        if k == 0 {
            return matrix(listed);
        }
        // q grows with the square of k: a small file can ask for much.
        let mut coefficients = try_zeros("the coefficients of a LIBSVM model", self.total.saturating_mul(q))?;
        let class_of = self.counts.iter().enumerate().flat_map(|(class, &n)| std::iter::repeat_n(class, n));
        for ((row, class), values) in
            coefficients.chunks_exact_mut(q).zip(class_of).zip(listed.chunks_exact(k - 1))
        {
            for (other, &value) in (0..k).filter(|&other| other != class).zip(values) {
                row[pair(k, class.min(other), class.max(other))] = value;
            }
        }
        matrix(coefficients)
    }
}
