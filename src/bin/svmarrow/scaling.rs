//! `svm-scale`: features and the target are moved to an interval.

use crate::arguments::{Failure, Outcome, general, leading, number, value};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use svmarrow::context::Context;
use svmarrow::io::atomic;
use svmarrow::io::svmlight::{IndexBase, ReadOptions, SvmlightData, read};

pub(crate) const USAGE: &str = "\
Usage: svm-scale [options] data_filename
-l lower      lower limit of the features (default -1)
-u upper      upper limit of the features (default 1)
-y low high   limits of the target (default: not scaled)
-s file       save the ranges of the features
-r file       restore saved ranges
";

/// Limits of scaling, and the ranges of the features and the target.
struct Ranges {
    lower: f64,
    upper: f64,
    /// Smallest and largest value of each feature by its index.
    features: BTreeMap<usize, (f64, f64)>,
    /// Limits and range of the target.
    target: Option<[f64; 4]>,
}

/// Runs the program.
pub(crate) fn run(arguments: &[String]) -> Outcome {
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
    let mut options = ReadOptions::default();
    options.base = IndexBase::Zero;
    let data = read(Path::new(path), &options, Context::default())?;
    if data.targets.is_empty() {
        return Err(Failure::input(format!("{path}: the file has no rows")));
    }
    let found = ranges_of(&data, lower, upper, limits);
    let ranges = match &restore {
        None => found,
        Some(file) => {
            let ranges = read_ranges(file)?;
            for (index, (low, high)) in &found.features {
                if low != high && !ranges.features.contains_key(index) {
                    eprintln!(
                        "WARNING: feature index {index} appeared in file {path} was not seen in the scaling factor file {file}. The feature is scaled to 0."
                    );
                }
            }
            ranges
        }
    };
    if let Some(file) = save {
        write_ranges(&file, &ranges)?;
    }
    write_scaled(&data, &ranges)
}

/// Returns the ranges of the features of some rows; a feature that a row does not have is 0 there.
fn ranges_of(data: &SvmlightData, lower: f64, upper: f64, limits: Option<(f64, f64)>) -> Ranges {
    let rows = data.rows.view();
    // Features that occur, however large their indices are; the others are 0 in all rows.
    let mut ranges: BTreeMap<usize, (f64, f64, usize)> = BTreeMap::new();
    for i in 0..rows.rows() {
        rows.for_each_in_row(i, |k, v| {
            let (low, high, count) = ranges.entry(k).or_insert((f64::INFINITY, f64::NEG_INFINITY, 0));
            (*low, *high, *count) = (low.min(v), high.max(v), *count + 1);
        });
    }
    let features = ranges.into_iter().map(|(index, (low, high, count))| {
        (index, if count < rows.rows() { (low.min(0.0), high.max(0.0)) } else { (low, high) })
    });
    let of_target = |start: f64, pick: fn(f64, f64) -> f64| data.targets.iter().copied().fold(start, pick);
    let target = limits.map(|(low, high)| {
        [low, high, of_target(f64::INFINITY, f64::min), of_target(f64::NEG_INFINITY, f64::max)]
    });
    Ranges { lower, upper, features: features.collect(), target }
}

fn write_ranges(path: &str, ranges: &Ranges) -> Outcome {
    let exact = |value: f64| general(value, 17);
    atomic::save(Path::new(path), Context::default(), |out| {
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

fn read_ranges(path: &str) -> Outcome<Ranges> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::input(format!("{path}: {error}")))?;
    let mut lines = text.lines().enumerate().peekable();
    let numbers = |line: Option<(usize, &str)>, count: usize| -> Outcome<Vec<f64>> {
        let (at, line) = line.unwrap_or((text.lines().count(), ""));
        let found: Option<Vec<f64>> =
            line.split_whitespace().map(|word| word.parse().ok().filter(|v: &f64| v.is_finite())).collect();
        let found = found.filter(|found| found.len() == count);
        found.ok_or_else(|| {
            Failure::input(format!("{path}, line {}: expected {count} finite numbers", at + 1))
        })
    };
    let mut target = None;
    if lines.next_if(|(_, line)| line.trim() == "y").is_some() {
        let (limits, range) = (numbers(lines.next(), 2)?, numbers(lines.next(), 2)?);
        target = Some([limits[0], limits[1], range[0], range[1]]);
    }
    let at = lines.peek().map_or(text.lines().count(), |(at, _)| *at) + 1;
    if lines.next_if(|(_, line)| line.trim() == "x").is_none() {
        return Err(Failure::input(format!("{path}, line {at}: expected the line 'x'")));
    }
    let limits = numbers(lines.next(), 2)?;
    let mut features = BTreeMap::new();
    while let Some(line) = lines.next_if(|(_, line)| !line.trim().is_empty()) {
        let found = numbers(Some(line), 3)?;
        if found[0].trunc() != found[0] || found[0] < 0.0 {
            return Err(Failure::input(format!("{path}, line {}: the index must be an integer", line.0 + 1)));
        }
        features.insert(found[0] as usize, (found[1], found[2]));
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
fn write_scaled(data: &SvmlightData, ranges: &Ranges) -> Outcome {
    let rows = data.rows.view();
    let used: Vec<(usize, (f64, f64))> = ranges
        .features
        .iter()
        .filter(|(_, (low, high))| low != high)
        .map(|(i, range)| (*i, *range))
        .collect();
    let mut row = Vec::new();
    let (mut before, mut after) = (0_usize, 0_usize);
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut line = String::new();
    for (i, target) in data.targets.iter().enumerate() {
        row.clear();
        rows.for_each_in_row(i, |k, v| row.push((k, v)));
        before += row.len();
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
        writeln!(out, "{line}").map_err(Failure::output)?;
    }
    out.flush().map_err(Failure::output)?;
    if after > before {
        eprintln!(
            "WARNING: original #nonzeros {before}\n         new      #nonzeros {after}\nUse -l 0 if many original feature values are zeros"
        );
    }
    Ok(())
}
