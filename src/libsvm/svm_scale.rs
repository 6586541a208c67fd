//! `svm-scale`: features and the target are moved to an interval.
//!
//! The rows of the output are written one after the other; the memory depends on the features that occur and not on their indices.

use super::arguments::{leading, number, value};
use super::failure::{Failure, Outcome};
use super::numbers::general;
use super::problem::read_data;
use super::streams::Streams;
use crate::context::Context;
use crate::error::Error;
use crate::io::atomic;
use crate::io::svmlight::{IndexBase, SvmlightData};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

pub(super) const USAGE: &str = "\
Usage: svm-scale [options] data_filename
-l lower      lower limit of the features (default -1)
-u upper      upper limit of the features (default 1)
-y low high   limits of the target (default: not scaled)
-s file       save the ranges of the features
-r file       restore saved ranges
";

/// Approximate number of multiplications in the time that an entry takes: a binary search, or the digits of a number.
const WORK_PER_ENTRY: usize = 256;

/// Limits of scaling, and the ranges of the features and the target.
struct Ranges {
    lower: f64,
    upper: f64,
    /// Smallest and largest value of each feature by its index.
    features: BTreeMap<usize, (f64, f64)>,
    /// Limits and range of the target.
    target: Option<[f64; 4]>,
}

pub(super) fn run(arguments: &[OsString], streams: &mut Streams<'_>, ctx: Context<'_>) -> Outcome {
    let (mut lower, mut upper, mut limits) = (-1.0, 1.0, None);
    let (mut save, mut restore) = (None, None);
    let paths = leading(arguments, |option, following| {
        match option {
            "-l" => lower = number(option, value(option, following)?)?,
            "-u" => upper = number(option, value(option, following)?)?,
            "-s" => save = Some(value(option, following)?.to_owned()),
            "-r" => restore = Some(value(option, following)?.to_owned()),
            "-y" => {
                let [low, high, ..] = following else { return Err("-y needs two values".to_owned()) };
                limits = Some((number(option, low)?, number(option, high)?));
                return Ok(2);
            }
            _ => return Err(format!("unknown option: {option}")),
        }
        Ok(1)
    })?;
    let [path] = paths else {
        return Err(Failure::usage("give one data_filename, after the options"));
    };
    if !(upper > lower && limits.is_none_or(|(low, high)| high > low)) {
        let rule = "inconsistent lower/upper specification: the upper limit must be above the lower";
        return Err(Failure::usage(rule));
    }
    if save.is_some() && restore.is_some() {
        return Err(Failure::usage("cannot use -r and -s simultaneously"));
    }
    let (data, _reservation) = read_data(Path::new(path), IndexBase::Zero, ctx)?;
    let data_ranges = ranges_of(&data, lower, upper, limits, ctx)?;
    let ranges = match &restore {
        None => data_ranges,
        Some(file) => {
            let ranges = read_ranges(Path::new(file))?;
            let unseen = data_ranges
                .features
                .iter()
                .filter(|(index, (low, high))| low != high && !ranges.features.contains_key(*index));
            for (index, _) in unseen {
                streams.warn(format_args!(
                    "feature index {index} appeared in file {} was not seen in the scaling factor file {}. The feature is \
                     scaled to 0.",
                    Path::new(path).display(),
                    Path::new(file).display()
                ))?;
            }
            ranges
        }
    };
    if let Some(file) = save {
        write_ranges(Path::new(&file), &ranges, ctx)?;
    }
    write_scaled(&data, &ranges, streams, ctx)
}

/// Returns the ranges of the features of some rows; a feature that a row does not have is 0 there.
fn ranges_of(
    data: &SvmlightData,
    lower: f64,
    upper: f64,
    limits: Option<(f64, f64)>,
    ctx: Context<'_>,
) -> Outcome<Ranges> {
    let rows = data.rows.view();
    let mut counter = ctx.counter("range", rows.rows());
    // Features that occur, however large their indices are; the others are 0 in all rows.
    let mut ranges: BTreeMap<usize, (f64, f64, usize)> = BTreeMap::new();
    for i in 0..rows.rows() {
        let mut n_entries = 0;
        rows.for_each_in_row(i, |k, v| {
            n_entries += 1;
            let (low, high, count) = ranges.entry(k).or_insert((f64::INFINITY, f64::NEG_INFINITY, 0));
            (*low, *high, *count) = (low.min(v), high.max(v), *count + 1);
        });
        counter.charge_row(n_entries * WORK_PER_ENTRY)?;
    }
    let features = ranges.into_iter().map(|(index, (low, high, count))| {
        (index, if count < rows.rows() { (low.min(0.0), high.max(0.0)) } else { (low, high) })
    });
    let extreme = |start: f64, pick: fn(f64, f64) -> f64| data.targets.iter().copied().fold(start, pick);
    let target = limits.map(|(low, high)| {
        [low, high, extreme(f64::INFINITY, f64::min), extreme(f64::NEG_INFINITY, f64::max)]
    });
    Ok(Ranges { lower, upper, features: features.collect(), target })
}

fn write_ranges(path: &Path, ranges: &Ranges, ctx: Context<'_>) -> Outcome {
    let exact = |value: f64| general(value, 17);
    atomic::save(path, ctx, |out| {
        if let Some([lower, upper, low, high]) = ranges.target.map(|numbers| numbers.map(exact)) {
            write!(out, "y\n{lower} {upper}\n{low} {high}\n")?;
        }
        writeln!(out, "x\n{} {}", exact(ranges.lower), exact(ranges.upper))?;
        for (index, (low, high)) in ranges.features.iter().filter(|(_, (low, high))| low != high) {
            writeln!(out, "{index} {} {}", exact(*low), exact(*high))?;
        }
        Ok(())
    })?;
    Ok(())
}

/// Reads the file of `-s`.
fn read_ranges(path: &Path) -> Outcome<Ranges> {
    let bytes = std::fs::read(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
    let name = path.display();
    let text =
        String::from_utf8(bytes).map_err(|_| Failure::input(format!("{name}: the file is no text")))?;
    let mut lines = text.lines().enumerate().peekable();
    let numbers = |line: Option<(usize, &str)>, count: usize| -> Outcome<Vec<f64>> {
        let (index, line) = line.unwrap_or((text.lines().count(), ""));
        let words = line.split_whitespace();
        let numbers: Option<Vec<f64>> =
            words.map(|word| word.parse().ok().filter(|v: &f64| v.is_finite())).collect();
        let numbers = numbers.filter(|numbers| numbers.len() == count);
        numbers.ok_or_else(|| {
            Failure::input(format!("{name}, line {}: expected {count} finite numbers", index + 1))
        })
    };
    let mut target = None;
    if lines.next_if(|(_, line)| line.trim() == "y").is_some() {
        let (limits, range) = (numbers(lines.next(), 2)?, numbers(lines.next(), 2)?);
        target = Some([limits[0], limits[1], range[0], range[1]]);
    }
    let line_number = lines.peek().map_or(text.lines().count(), |(index, _)| *index) + 1;
    if lines.next_if(|(_, line)| line.trim() == "x").is_none() {
        return Err(Failure::input(format!("{name}, line {line_number}: expected the line 'x'")));
    }
    let limits = numbers(lines.next(), 2)?;
    let mut features = BTreeMap::new();
    while let Some(line) = lines.next_if(|(_, line)| !line.trim().is_empty()) {
        let range = numbers(Some(line), 3)?;
        if range[0].trunc() != range[0] || range[0] < 0.0 {
            return Err(Failure::input(format!("{name}, line {}: the index must be an integer", line.0 + 1)));
        }
        features.insert(range[0] as usize, (range[1], range[2]));
    }
    Ok(Ranges { lower: limits[0], upper: limits[1], features, target })
}

fn interpolate(value: f64, (low, high): (f64, f64), (lower, upper): (f64, f64)) -> f64 {
    if value == low {
        lower
    } else if value == high {
        upper
    } else {
        lower + (upper - lower) * (value - low) / (high - low)
    }
}

/// Prints the scaled rows; features without a range, or whose range is a point, are left out.
fn write_scaled(
    data: &SvmlightData,
    ranges: &Ranges,
    streams: &mut Streams<'_>,
    ctx: Context<'_>,
) -> Outcome {
    let rows = data.rows.view();
    let used: Vec<(usize, (f64, f64))> = ranges
        .features
        .iter()
        .filter(|(_, (low, high))| low != high)
        .map(|(i, range)| (*i, *range))
        .collect();
    let mut row = Vec::new();
    let (mut before, mut after) = (0_usize, 0_usize);
    let mut counter = ctx.counter("scale", rows.rows());
    let mut line = String::new();
    for (i, target) in data.targets.iter().enumerate() {
        row.clear();
        rows.for_each_in_row(i, |k, v| row.push((k, v)));
        before += row.len();
        counter.charge_row((used.len() + row.len()) * WORK_PER_ENTRY)?;
        let mut entries = row.iter().peekable();
        let target = match ranges.target {
            Some([lower, upper, low, high]) => interpolate(*target, (low, high), (lower, upper)),
            None => *target,
        };
        line.clear();
        line.push_str(&general(target, 17));
        line.push(' ');
        for &(index, range) in &used {
            while entries.next_if(|(k, _)| *k < index).is_some() {}
            let value = entries.next_if(|(k, _)| *k == index).map_or(0.0, |(_, v)| *v);
            let scaled = interpolate(value, range, (ranges.lower, ranges.upper));
            if scaled != 0.0 {
                after += 1;
                let _ = write!(line, "{index}:{} ", general(scaled, 6));
            }
        }
        streams.print(&line)?;
    }
    if after > before {
        streams.warn(format_args!(
            "original #nonzeros {before}\n         new      #nonzeros {after}\nUse -l 0 if many original feature values are zeros"
        ))?;
    }
    Ok(())
}
