//! Training and test data: rows of features, or kernel values with the serial number of each row. A [`Problem`] has been checked:
//! its samples, targets and options fit together.
//!
//! Rows of features have columns counted from the index 1. Rows of a precomputed kernel have columns counted from the index 0,
//! whose number is the serial number of the training row; the value of the index j belongs to the training row j.

use super::classes::{Classes, pairs};
use super::failure::{Failure, Outcome};
use super::folds::{GlibcRandom, plain_folds, stratified_folds};
use super::options::TrainOptions;
use crate::context::Context;
use crate::data::{OwnedRows, Rows};
use crate::error::{Error, Result};
use crate::io::libsvm_model::SvmType;
use crate::io::svmlight::{IndexBase, ReadOptions, SvmlightData, read};
use crate::memory::{BYTES_PER_ITEM, Reservation, reserve, try_zero_matrix};
use ndarray::{Array2, Axis};
use std::path::Path;

/// The maximum difference of two mirrored values of a kernel matrix, as a share of the largest value.
pub const MAX_ASYMMETRY: f64 = 1e-5;
/// The size of the tiles in which mirrored values are compared.
const TILE: usize = 64;

/// Reads a data file with at least one row, and reserves memory for vectors over its rows and columns.
pub(super) fn read_data(
    path: &Path,
    base: IndexBase,
    ctx: Context<'_>,
) -> Outcome<(SvmlightData, Reservation)> {
    let options = ReadOptions { base, ..ReadOptions::default() };
    let data = read(path, &options, ctx)?;
    if data.targets.is_empty() {
        return Err(Failure::input(format!("{}: the file has no rows", path.display())));
    }
    let bytes = data.rows.view().vector_lengths().saturating_mul(BYTES_PER_ITEM);
    let reservation = reserve("the vectors of a program", bytes)?;
    Ok((data, reservation))
}

/// Returns the base of the indices of features or of kernel values.
pub(super) fn index_base(is_precomputed: bool) -> IndexBase {
    if is_precomputed { IndexBase::Zero } else { IndexBase::One }
}

/// Returns some columns of the listed rows; columns that a row lacks are zeros. The memory does not depend on the largest
/// index.
pub(super) fn columns_of(
    rows: Rows<'_>,
    list: impl ExactSizeIterator<Item = usize>,
    columns: &[usize],
    ctx: Context<'_>,
) -> Result<Array2<f64>> {
    let mut order: Vec<(usize, usize)> = columns.iter().copied().zip(0..).collect();
    order.sort_unstable();
    let mut values = try_zero_matrix("kernel values", (list.len(), columns.len()))?;
    let interrupts = ctx.interrupts();
    for (i, mut line) in list.zip(values.axis_iter_mut(Axis(0))) {
        interrupts.charge(columns.len())?;
        let mut indices = order.iter().peekable();
        rows.for_each_in_row(i, |k, v| {
            while indices.next_if(|(column, _)| *column < k).is_some() {}
            while let Some(&(_, place)) = indices.next_if(|(column, _)| *column == k) {
                line[place] = v;
            }
        });
    }
    Ok(values)
}

/// Samples, targets and options that fit together.
pub struct Problem<'a> {
    pub(super) rows: Rows<'a>,
    pub(super) y: &'a [f64],
    pub(super) options: &'a TrainOptions,
    /// The column of each row of a precomputed kernel, counted from 0; empty for rows of features.
    pub(super) columns: Vec<usize>,
}

/// The folds of a cross-validation of a classifier.
pub struct Folds {
    /// Labels in LIBSVM's order.
    pub labels: Vec<i32>,
    /// The index of the label of each sample.
    pub classes: Vec<usize>,
    /// The samples of each fold.
    pub folds: Vec<Vec<usize>>,
    /// The values of a precomputed kernel between all samples.
    pub kernel_values: Option<OwnedRows>,
}

impl<'a> Problem<'a> {
    /// Checks samples and targets against the options.
    ///
    /// # Errors
    /// [`Failure::Input`] and [`Failure::Library`] for data that the options do not fit.
    pub fn new(rows: Rows<'a>, y: &'a [f64], options: &'a TrainOptions, ctx: Context<'_>) -> Outcome<Self> {
        Error::check_len("rows of x", y.len(), rows.rows())?;
        if y.is_empty() {
            return Err(Failure::input("the training data has no rows: at least one is needed"));
        }
        let mut problem = Self { rows, y, options, columns: Vec::new() };
        if options.is_precomputed() {
            problem.columns = problem.columns_of_serials(ctx)?;
            problem.check_symmetry(ctx)?;
        } else if problem.n_features() == 0 {
            return Err(Failure::input(
                "the training data has no features: at least one value must not be 0",
            ));
        }
        problem.check_nu()?;
        Ok(problem)
    }

    /// Returns the number of features or of kernel values of a row.
    pub(super) fn n_features(&self) -> usize {
        self.rows.cols().saturating_sub(usize::from(self.options.is_precomputed()))
    }

    fn columns_of_serials(&self, ctx: Context<'_>) -> Outcome<Vec<usize>> {
        let m = self.n_features();
        let serials = columns_of(self.rows, 0..self.y.len(), &[0], ctx)?;
        let column = |serial: &f64| {
            let is_valid = serial.trunc() == *serial && *serial >= 1.0 && *serial <= m as f64;
            is_valid.then(|| *serial as usize - 1)
        };
        serials.iter().map(column).collect::<Option<_>>().ok_or_else(|| {
            Failure::input(format!(
                "the serial numbers (index 0) of a precomputed kernel must be integers from 1 to the number of columns, {m}"
            ))
        })
    }

    fn check_symmetry(&self, ctx: Context<'_>) -> Outcome {
        let all: Vec<usize> = (0..self.y.len()).collect();
        let columns: Vec<usize> = self.columns.iter().map(|&column| column + 1).collect();
        let values = columns_of(self.rows, all.iter().copied(), &columns, ctx)?;
        let limit = MAX_ASYMMETRY * values.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
        let interrupts = ctx.interrupts();
        // Tiles, so that both mirrored values are in the cache.
        for top in all.iter().step_by(TILE) {
            for left in all[..=*top].iter().step_by(TILE) {
                interrupts.charge(TILE * TILE)?;
                for i in *top..(top + TILE).min(all.len()) {
                    for j in *left..(left + TILE).min(i) {
                        let (value, mirrored) = (values[[i, j]], values[[j, i]]);
                        if (value - mirrored).abs() > limit {
                            return Err(Failure::input(format!(
                                "the kernel matrix is not symmetric: rows {} and {} have the values {value:?} and {mirrored:?}, \
                                 and {MAX_ASYMMETRY:?} of the largest value may differ",
                                j + 1,
                                i + 1
                            )));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn check_nu(&self) -> Outcome {
        let nu = self.options.nu;
        if self.options.svm_type != SvmType::NuSvc {
            return Ok(());
        }
        let counts = Classes::new(self.y)?.counts();
        for (a, b) in pairs(counts.len()) {
            if nu * (counts[a] + counts[b]) as f64 / 2.0 > counts[a].min(counts[b]) as f64 {
                return Err(Failure::input(format!(
                    "-n {nu:?}: the specified nu is infeasible, since two classes have {} and {} samples: lower it",
                    counts[a], counts[b]
                )));
            }
        }
        Ok(())
    }

    /// Returns the warnings about options that have no effect on the data.
    pub fn warnings(&self) -> Outcome<Vec<String>> {
        if self.options.svm_type != SvmType::CSvc {
            return Ok(Vec::new());
        }
        let labels = Classes::new(self.y)?.labels;
        let absent = self.options.weights.iter().filter(|(label, _)| !labels.contains(label));
        Ok(absent.map(|(label, _)| format!("class label {label} specified in weight is not found")).collect())
    }

    /// Returns the listed samples as the solver takes them.
    pub(super) fn training_rows(&self, list: &[usize], ctx: Context<'_>) -> Result<OwnedRows> {
        if !self.options.is_precomputed() {
            return self.rows.gather(list);
        }
        let columns: Vec<usize> = list.iter().map(|&i| self.columns[i] + 1).collect();
        Ok(columns_of(self.rows, list.iter().copied(), &columns, ctx)?.into())
    }

    /// Returns the targets of the listed samples.
    pub(super) fn targets(&self, list: &[usize]) -> Vec<f64> {
        list.iter().map(|&i| self.y[i]).collect()
    }

    /// Returns the folds of `-v` for a classifier.
    ///
    /// # Errors
    /// [`Failure::Input`] for labels that are not integers of 32 bits, and [`Failure::Library`].
    pub fn classifier_folds(&self, ctx: Context<'_>) -> Outcome<Folds> {
        let all: Vec<usize> = (0..self.y.len()).collect();
        let Classes { labels, of_samples } = Classes::new(self.y)?;
        let n_folds = self.options.n_folds.unwrap_or(1);
        let folds = self.folds(&all, n_folds, &mut GlibcRandom::new())?;
        let is_precomputed = self.options.is_precomputed();
        let kernel_values = is_precomputed.then(|| self.training_rows(&all, ctx)).transpose()?;
        Ok(Folds { labels, classes: of_samples, folds, kernel_values })
    }

    /// Returns the positions in the list of each fold: stratified for a classifier, unless each sample is a fold.
    pub(super) fn folds(
        &self,
        list: &[usize],
        n_folds: usize,
        random: &mut GlibcRandom,
    ) -> Outcome<Vec<Vec<usize>>> {
        let n_folds = n_folds.min(list.len());
        if !self.options.svm_type.is_classifier() || n_folds == list.len() {
            return Ok(plain_folds(list.len(), n_folds, random));
        }
        let Classes { labels, of_samples } = Classes::new(&self.targets(list))?;
        Ok(stratified_folds(&of_samples, labels.len(), n_folds, random))
    }
}
