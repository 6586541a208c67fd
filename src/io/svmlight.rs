//! svmlight data, the text format of the field: `target index:value ... # comment`, one row a line.
//!
//! The reader streams: it holds one line besides the result. Indices grow within a row, absent ones are zeros.
//! A `qid:number` after the target (the query of ranking data) is skipped, as no learner here uses it. Lines that
//! are blank or hold only a comment are no rows. Each error names the line and the token.
//!
//! Files are one-based (LIBSVM) or zero-based (scikit-learn writes such); nothing in a file says which. The
//! automatic choice is scikit-learn's: zero-based when an index 0 occurs.

use std::io::{self, BufRead, Write};
use std::path::Path;
use std::str::FromStr;

use super::atomic;
use super::columns::Columns;
pub use super::columns::IndexBase;
use super::lines::{Lines, Number, SparseBuilder, check_columns, excerpt, finite, push};
use super::monitored;
use crate::context::Context;
use crate::data::{Element, OwnedRows, Rows};
use crate::error::{Error, Result};

/// Options for reading a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Index of the first column.
    pub base: IndexBase,
    /// Number of columns; without it the largest index decides. A larger index is an error.
    pub n_features: Option<usize>,
    /// Keep the values in single precision.
    pub single_precision: bool,
}

/// Rows and targets.
#[derive(Debug, Clone, PartialEq)]
pub struct SvmlightData {
    /// (n, d), [`OwnedRows::CsrF64`] or, if requested, [`OwnedRows::CsrF32`]; zeros written out stay stored.
    pub rows: OwnedRows,
    /// (n,), the first number of each line.
    pub targets: Vec<f64>,
}

/// Reads a file.
///
/// # Errors
/// [`Error::Io`] from the system; [`Error::Format`] with the line for everything that does not follow the format,
/// a list of targets (multilabel data), a number that is not finite, and an index beyond `n_features` or 32 bits;
/// [`Error::Memory`]; [`Error::Stopped`] where the monitor, asked before every block, says so.
pub fn read(path: &Path, options: &ReadOptions, ctx: Context<'_>) -> Result<SvmlightData> {
    read_from(monitored::open_text(path, ctx)?, path, options)
}

/// Reads a stream; `path` is what its errors call it.
///
/// ```
/// use svmarrow::io::svmlight::{ReadOptions, read_from};
///
/// let text = "+1 1:0.5 3:2 # first\n-1 2:1\n";
/// let data = read_from(text.as_bytes(), "example".as_ref(), &ReadOptions::default())?;
/// assert_eq!(data.targets, [1.0, -1.0]);
/// assert_eq!((data.rows.view().rows(), data.rows.view().cols()), (2, 3));
/// # Ok::<(), svmarrow::Error>(())
/// ```
pub fn read_from(reader: impl BufRead, path: &Path, options: &ReadOptions) -> Result<SvmlightData> {
    let lines = Lines::new(reader, path);
    if options.single_precision {
        let (SparseBuilder { indptr, indices, values }, cols, targets) = parse::<f32>(lines, options)?;
        Ok(SvmlightData { rows: OwnedRows::CsrF32 { indptr, indices, values, cols }, targets })
    } else {
        let (SparseBuilder { indptr, indices, values }, cols, targets) = parse::<f64>(lines, options)?;
        Ok(SvmlightData { rows: OwnedRows::CsrF64 { indptr, indices, values, cols }, targets })
    }
}

fn parse<T: Element + FromStr>(
    mut lines: Lines<'_, impl BufRead>,
    options: &ReadOptions,
) -> Result<(SparseBuilder<T>, usize, Vec<f64>)> {
    let (mut rows, mut targets) = (SparseBuilder::new(), Vec::new());
    let mut columns = Columns::new(options.base, options.n_features);
    while lines.advance()? {
        let mut tokens = lines.before_comment()?.split_ascii_whitespace().peekable();
        let Some(first) = tokens.next() else { continue };
        push(&mut targets, target(first).map_err(|message| lines.error(message))?)?;
        tokens.next_if(|token| token.starts_with("qid:"));
        if let Some((low, high)) =
            rows.push_row(tokens).map_err(|content_error| lines.error(content_error))?
        {
            columns.add(low, high, lines.number()).map_err(|message| lines.error(message))?;
        }
    }
    if !columns.are_zero_based() {
        rows.shift();
    }
    let count = columns.count().map_err(|(line, message)| lines.error_at(line, message))?;
    Ok((rows, count, targets))
}

fn target(token: &str) -> Result<f64, String> {
    if token.contains(':') {
        return Err(format!("the line starts with {}: its target is missing", excerpt(token)));
    }
    if token.contains(',') {
        return Err(format!("the target {} is a list: multilabel data is not supported", excerpt(token)));
    }
    finite(token).map_err(|message| format!("the target {message}"))
}

/// Writes rows and targets as one-based svmlight text, all or nothing.
///
/// Zeros are not written, numbers have the digits that read back as the same double. Columns behind the last
/// non-zero one are lost in this format: read with `n_features` to have them back.
///
/// # Errors
/// [`Error::Shape`] when the targets are not as many as the rows, [`Error::NotFinite`] for NaN and infinities,
/// [`Error::Io`] from the system, [`Error::Stopped`].
pub fn write(path: &Path, rows: Rows<'_>, targets: &[f64], ctx: Context<'_>) -> Result<()> {
    atomic::save(path, ctx, checked_writer(rows.reborrow(), targets)?)
}

/// Writes the text of [`write()`] to a stream; `path` is what its errors call it.
pub fn write_to(out: &mut dyn Write, path: &Path, rows: Rows<'_>, targets: &[f64]) -> Result<()> {
    checked_writer(rows.reborrow(), targets)?(out).map_err(|source| Error::io(path, source))
}

/// Checks what is to be written, and gives what writes it.
fn checked_writer<'a>(
    rows: Rows<'a>,
    targets: &'a [f64],
) -> Result<impl FnOnce(&mut dyn Write) -> io::Result<()> + 'a> {
    Error::check_len("targets (one a row)", rows.rows(), targets.len())?;
    check_columns(rows)?;
    rows.check_finite("rows")?;
    if let Some(row) = targets.iter().position(|t| !t.is_finite()) {
        return Err(Error::NotFinite { what: "targets", row });
    }
    Ok(move |out: &mut dyn Write| {
        for (row, &target) in targets.iter().enumerate() {
            write!(out, "{}", Number(target))?;
            let mut written = Ok(());
            rows.for_each_in_row(row, |column, value| {
                if value != 0.0 && written.is_ok() {
                    written = write!(out, " {}:{}", column + 1, Number(value));
                }
            });
            written?;
            out.write_all(b"\n")?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array1, Array2, Axis};
    use proptest::prelude::*;

    fn parse(text: &[u8], options: ReadOptions) -> Result<SvmlightData> {
        read_from(text, Path::new("data.txt"), &options)
    }

    fn one_based(text: &str) -> Result<SvmlightData> {
        parse(text.as_bytes(), ReadOptions::default())
    }

    fn csr(data: &SvmlightData) -> (&[i64], &[i64], &[f64], usize) {
        match &data.rows {
            OwnedRows::CsrF64 { indptr, indices, values, cols } => (indptr, indices, values, *cols),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn everything_the_format_allows() {
        let text = b"# head \xff\r\n\r\n+1 qid:7 1:.5 3:-2e3\t 7:0 #tail\r\n   \n-1.5\n2e0 2:1";
        let data = parse(text, ReadOptions::default()).unwrap();
        assert_eq!(data.targets, [1.0, -1.5, 2.0]);
        let expected: (&[i64], &[i64], &[f64], usize) =
            (&[0, 3, 3, 4], &[0, 2, 6, 1], &[0.5, -2000.0, 0.0, 1.0], 7);
        assert_eq!(csr(&data), expected);
        assert_eq!(data.rows.view().rows(), 3);
    }

    #[test]
    fn entries_of_a_row_may_be_in_any_order() {
        let data = one_based("1 3:1 1:2 2:3\n-1 2:5 1:4").unwrap();
        let expected: (&[i64], &[i64], &[f64], usize) =
            (&[0, 3, 5], &[0, 1, 2, 0, 1], &[2.0, 3.0, 1.0, 4.0, 5.0], 3);
        assert_eq!(csr(&data), expected);
    }

    #[test]
    fn nothing_is_no_rows() {
        for text in ["", "\n", "# only a comment"] {
            let data = one_based(text).unwrap();
            assert_eq!((data.rows.view().rows(), data.targets.len()), (0, 0));
        }
    }

    #[test]
    fn single_precision_rounds_once() {
        let options = ReadOptions { single_precision: true, ..Default::default() };
        let data = parse(b"0 1:0.1 2:16777217.000000001", options).unwrap();
        let OwnedRows::CsrF32 { values, .. } = &data.rows else { panic!("{:?}", data.rows) };
        assert_eq!(values, &[0.1_f32, 16777218.0]);
        let message = parse(b"0 1:1e39", options).unwrap_err().to_string();
        assert_eq!(message, "data.txt:1: \"1e39\" is not a finite number, in \"1:1e39\"");
    }

    #[test]
    fn bases() {
        let read = |text: &str, base, n_features| {
            parse(text.as_bytes(), ReadOptions { base, n_features, ..Default::default() })
        };
        let columns = |text: &str, base, n| read(text, base, n).map(|d| csr(&d).3).map_err(|e| e.to_string());
        assert_eq!(columns("1 2:1", IndexBase::One, None), Ok(2));
        assert_eq!(columns("1 2:1", IndexBase::Zero, None), Ok(3));
        assert_eq!(columns("1 2:1", IndexBase::Auto, None), Ok(2));
        assert_eq!(columns("1 2:1\n1 0:1", IndexBase::Auto, None), Ok(3));
        assert_eq!(columns("1 2:1", IndexBase::One, Some(9)), Ok(9));
        assert_eq!(columns("1 2:1", IndexBase::Auto, Some(2)), Ok(2));
        assert_eq!(columns("1 2:1", IndexBase::Zero, Some(usize::MAX)), Ok(usize::MAX));
        for (text, base, line) in [
            ("1 1:1\n1 3:1", IndexBase::One, 2),
            ("1 1:1\n1 2:1", IndexBase::Zero, 2),
            ("1 1:1\n1 3:1", IndexBase::Auto, 2),
            ("1 2:1\n1 1:1\n1 0:1", IndexBase::Auto, 1),
        ] {
            let message = columns(text, base, Some(2)).unwrap_err();
            assert!(message.starts_with(&format!("data.txt:{line}: index ")), "{message}");
            assert!(message.contains("beyond the 2 features"), "{message}");
        }
    }

    #[test]
    fn wrong_lines_are_named() {
        let long = format!("1 1:{}", "9".repeat(10_000));
        for (line, part) in [
            ("1 2", "\"2\" has no colon"),
            ("1 1:1 1:2", "index 1 appears twice"),
            ("1 3:1 1:1 3:2", "index 3 appears twice"),
            ("1 1:nan", "\"nan\" is not a finite number"),
            ("1 1:-Inf", "\"-Inf\" is not a finite number"),
            (&long, "99\"... is not a finite number"),
            ("1 1:", "\"\" is not a number, in \"1:\""),
            ("1 1:0x1p-1", "\"0x1p-1\" is not a number, in \"1:0x1p-1\""),
            ("1 1:2:3", "\"2:3\" is not a number"),
            ("1 :3", "\"\" is not an index"),
            ("1 -1:3", "\"-1\" is not an index"),
            ("1 1.5:3", "\"1.5\" is not an index"),
            ("1 0:3", "index 0"),
            (
                "1 2147483648:3",
                "is not an index, in \"2147483648:3\": it must be a whole number from 0 to 2147483647",
            ),
            ("1 99999999999999999999:3", "is not an index"),
            ("1 1:1 qid:3", "\"qid\" is not an index"),
            ("1,2 1:1", "multilabel"),
            ("1:1 2:1", "target is missing"),
            ("nan 1:1", "the target \"nan\" is not a finite number"),
            ("class 1:1", "the target \"class\" is not a number"),
        ] {
            let message = one_based(&format!("# head\n0 1:1\n{line}\n0 1:1\n")).unwrap_err().to_string();
            assert!(message.starts_with("data.txt:3: ") && message.contains(part), "{line:.20}: {message}");
            assert!(message.len() < 250, "{message}");
        }
        let message = parse(b"1 1:1\n1 2:\xc3\x28", ReadOptions::default()).unwrap_err().to_string();
        assert_eq!(message, "data.txt:2: byte 5 of the line, 0xc3, is not UTF-8");
    }

    #[test]
    fn writing_checks_its_arguments() {
        let path = Path::new("/nowhere/at/all");
        let rows = |values: Vec<f64>| OwnedRows::from(Array1::from(values).insert_axis(Axis(0)));
        assert!(matches!(
            write(path, rows(vec![1.0]).view(), &[], Context::default()),
            Err(Error::Shape { .. })
        ));
        assert!(matches!(
            write(path, rows(vec![f64::NAN]).view(), &[1.0], Context::default()),
            Err(Error::NotFinite { .. })
        ));
        assert!(matches!(
            write(path, rows(vec![1.0]).view(), &[f64::INFINITY], Context::default()),
            Err(Error::NotFinite { .. })
        ));
        assert!(matches!(
            write(path, rows(vec![1.0]).view(), &[1.0], Context::default()),
            Err(Error::Io { .. })
        ));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn what_is_written_is_read(
            data in prop::collection::vec(prop_oneof![Just(0.0), prop::num::f64::NORMAL], 12),
            targets in prop::collection::vec(prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL, 4),
        ) {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("data");
            let rows = OwnedRows::from(Array2::from_shape_vec((4, 3), data.clone()).unwrap());
            write(&path, rows.view(), &targets, Context::default()).unwrap();
            let options = ReadOptions { n_features: Some(3), ..Default::default() };
            let back = read(&path, &options, Context::default()).unwrap();
            prop_assert_eq!(&back.targets, &targets);
            let mut dense = vec![0.0; 12];
            for row in 0..4 {
                back.rows.view().for_each_in_row(row, |column, value| dense[row * 3 + column] = value);
            }
            prop_assert_eq!(dense, data);
        }

        #[test]
        fn any_bytes_are_data_or_an_error(text in "[-+0-9a:.,#e \t\r\n\u{e9}]{0,80}", flips in prop::collection::vec((0_usize..80, any::<u8>()), 0..4)) {
            let mut bytes = text.into_bytes();
            for (at, value) in flips {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = value;
                }
            }
            for base in [IndexBase::One, IndexBase::Zero, IndexBase::Auto] {
                if let Ok(data) = parse(&bytes, ReadOptions { base, ..Default::default() }) {
                    prop_assert_eq!(data.rows.view().rows(), data.targets.len());
                }
            }
        }
    }
}
