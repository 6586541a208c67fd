//! Numbered lines of a text file, and the `index:value` grammar that svmlight data and LIBSVM models share.
//!
//! Numbers are decimal, and must be finite. One line is in memory at a time. A line may be as long as its row needs, up to a
//! bound that no row reaches, so that a stream without line ends does not fill the memory. Cost: a pass over the bytes.

use std::fmt;
use std::io::{self, BufRead};
use std::path::Path;
use std::str::FromStr;

use super::content_error::ContentError;
use crate::data::{Element, Rows};
use crate::error::{Error, Result};
use crate::memory::TryCollect;

/// Bytes in the longest line that is read.
const MAX_LINE_BYTES: usize = 1 << 30;

/// Maximum number of columns of sparse rows in a file: LIBSVM and SciPy index them by signed integers of 32 bits.
pub(super) const MAX_COLUMNS: usize = i32::MAX as usize;

/// Refuses rows that a file could not have.
pub(super) fn check_columns(rows: Rows<'_>) -> Result<()> {
    let rule = format!("at most {MAX_COLUMNS} in a file");
    Error::check_param(rows.cols() <= MAX_COLUMNS, "columns", rows.cols(), rule)
}

/// Characters of an offending token that an error repeats.
const EXCERPT: usize = 40;

/// A reader of lines that are numbered from 1.
pub(crate) struct Lines<'p, R> {
    reader: R,
    path: &'p Path,
    buffer: Vec<u8>,
    number: usize,
}

impl<'p, R: BufRead> Lines<'p, R> {
    /// `path` is for messages only.
    pub(crate) fn new(reader: R, path: &'p Path) -> Self {
        Self { reader, path, buffer: Vec::new(), number: 0 }
    }

    /// Reads the next line; `false` at the end.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        self.buffer.clear();
        loop {
            let block = match self.reader.fill_buf() {
                Ok(block) => block,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(Error::io(self.path, source)),
            };
            let end = block.iter().position(|&byte| byte == b'\n');
            let part = &block[..end.map_or(block.len(), |at| at + 1)];
            if part.is_empty() {
                break;
            }
            reserve_more(&mut self.buffer, part.len())?;
            self.buffer.extend_from_slice(part);
            let read = part.len();
            self.reader.consume(read);
            if end.is_some() {
                break;
            }
            if self.buffer.len() >= MAX_LINE_BYTES {
                self.number += 1;
                return Err(self.error(format!("the line is longer than {MAX_LINE_BYTES} bytes")));
            }
        }
        self.number += usize::from(!self.buffer.is_empty());
        Ok(!self.buffer.is_empty())
    }

    /// Number of the current line, from 1.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Returns true if the current line ends with a line feed.
    pub(crate) fn is_complete(&self) -> bool {
        self.buffer.last() == Some(&b'\n')
    }

    /// The current line.
    pub(crate) fn text(&self) -> Result<&str> {
        self.utf8(&self.buffer)
    }

    /// The current line up to `#`; what follows may be in any encoding.
    pub(crate) fn before_comment(&self) -> Result<&str> {
        let end = self.buffer.iter().position(|&b| b == b'#').unwrap_or(self.buffer.len());
        self.utf8(&self.buffer[..end])
    }

    fn utf8<'b>(&self, bytes: &'b [u8]) -> Result<&'b str> {
        std::str::from_utf8(bytes).map_err(|error| {
            let at = error.valid_up_to();
            self.error(format!("byte {} of the line, {:#04x}, is not UTF-8", at + 1, bytes[at]))
        })
    }

    /// An error at the current line.
    pub(crate) fn error(&self, content_error: impl Into<ContentError>) -> Error {
        self.error_at(self.number, content_error)
    }

    /// An error at another line.
    pub(crate) fn error_at(&self, line: usize, content_error: impl Into<ContentError>) -> Error {
        content_error.into().at(self.path, line)
    }
}

/// Reserves memory for more items, a quarter of the present ones at a time: doubling would take three times the memory of the
/// items while they are moved.
fn reserve_more<T>(values: &mut Vec<T>, more: usize) -> Result<()> {
    if values.capacity() - values.len() < more {
        let capacity = (values.len() / 4).max(more).max(1 << 8);
        values.try_reserve_exact(capacity).map_err(|_| {
            let bytes = (values.len() + capacity) * size_of::<T>();
            Error::Memory { what: "the numbers of a text file", bytes, remedy: "" }
        })?;
    }
    Ok(())
}

/// Returns copies of the items at some places.
fn selected<T: Copy>(values: &[T], places: &[usize]) -> Result<Vec<T>> {
    places.iter().map(|&place| values[place]).try_collect_vec()
}

/// Appends an item to a vector that grows with the file.
pub(crate) fn push<T>(values: &mut Vec<T>, item: T) -> Result<()> {
    reserve_more(values, 1)?;
    values.push(item);
    Ok(())
}

/// A token as an error shows it: quoted, escaped and not too long.
pub(crate) fn excerpt(token: &str) -> String {
    match token.char_indices().nth(EXCERPT) {
        Some((end, _)) => format!("{:?}...", &token[..end]),
        None => format!("{token:?}"),
    }
}

/// Parses a decimal number, which must be finite.
pub(crate) fn finite<T: Element + FromStr>(token: &str) -> Result<T, String> {
    match token.parse::<T>() {
        Ok(value) if value.to_f64().is_finite() => Ok(value),
        Ok(_) => Err(format!("{} is not a finite number", excerpt(token))),
        Err(_) => Err(format!("{} is not a number", excerpt(token))),
    }
}

/// Sparse rows as they are read; indices are those of the file.
pub(crate) struct SparseBuilder<T> {
    pub(crate) indptr: Vec<i64>,
    pub(crate) indices: Vec<i64>,
    pub(crate) values: Vec<T>,
}

impl<T: Element + FromStr> SparseBuilder<T> {
    pub(crate) fn new() -> Self {
        Self { indptr: vec![0], indices: Vec::new(), values: Vec::new() }
    }

    /// Appends one row of `index:value` tokens, sorted, and returns its smallest and largest index.
    ///
    /// Indices are not negative, distinct, and at most `MAX_COLUMNS`. Blanks may follow a colon.
    pub(crate) fn push_row<'t>(
        &mut self,
        tokens: impl Iterator<Item = &'t str>,
    ) -> Result<Option<(i64, i64)>, ContentError> {
        let start = self.indices.len();
        let (mut previous, mut is_sorted) = (-1, true);
        let mut tokens = tokens.peekable();
        while let Some(token) = tokens.next() {
            let Some((left, mut right)) = token.split_once(':') else {
                let token = excerpt(token);
                return Err(format!("{token} has no colon: features are written index:value").into());
            };
            let index = match left.parse::<i64>() {
                Ok(index) if (0..=MAX_COLUMNS as i64).contains(&index) => index,
                _ => {
                    let (left, token) = (excerpt(left), excerpt(token));
                    let rule = format!("it must be a whole number from 0 to {MAX_COLUMNS}");
                    return Err(format!("{left} is not an index, in {token}: {rule}").into());
                }
            };
            is_sorted &= index > previous;
            previous = index;
            if right.is_empty() {
                right = tokens.next_if(|next| !next.contains(':')).unwrap_or_default();
            }
            let value = finite(right).map_err(|message| format!("{message}, in {}", excerpt(token)))?;
            push(&mut self.indices, index)?;
            push(&mut self.values, value)?;
        }
        if !is_sorted {
            self.sort_row(start)?;
        }
        push(&mut self.indptr, self.indices.len() as i64)?;
        Ok(self.indices[start..].first().copied().zip(self.indices.last().copied()))
    }

    /// Sorts the entries of the last row, which begin at `start`, by their indices.
    fn sort_row(&mut self, start: usize) -> Result<(), ContentError> {
        let mut order: Vec<usize> = (start..self.indices.len()).try_collect_vec()?;
        order.sort_unstable_by_key(|&entry| self.indices[entry]);
        let indices = selected(&self.indices, &order)?;
        if let Some([index, ..]) = indices.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("index {index} appears twice").into());
        }
        let values = selected(&self.values, &order)?;
        self.indices[start..].copy_from_slice(&indices);
        self.values[start..].copy_from_slice(&values);
        Ok(())
    }

    /// Lowers every index by one.
    pub(crate) fn shift(&mut self) {
        self.indices.iter_mut().for_each(|index| *index -= 1);
    }
}

/// A number in the fewest digits that read back as the same `f64`.
pub(crate) struct Number(pub(crate) f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0;
        if value.abs() < 1e15 && value.trunc() == value {
            write!(f, "{}", value as i64) // also turns -0 into 0
        } else {
            write!(f, "{value:?}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_short() {
        for (value, text) in
            [(1.0, "1"), (-0.0, "0"), (0.1, "0.1"), (-3.0, "-3"), (1e300, "1e300"), (5e-324, "5e-324")]
        {
            assert_eq!(Number(value).to_string(), text);
        }
    }

    #[test]
    fn excerpts_are_short_and_escaped() {
        assert_eq!(excerpt("a\u{0}b"), "\"a\\0b\"");
        assert_eq!(excerpt(&"é".repeat(1000)).chars().count(), 45);
    }

    #[test]
    fn a_stream_without_line_ends_is_refused() {
        let endless = std::io::BufReader::new(std::io::repeat(b'1'));
        let mut lines = Lines::new(endless, Path::new("x"));
        assert!(lines.advance().unwrap_err().to_string().contains("longer than"));
    }

    proptest! {
        #[test]
        fn numbers_read_back(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            prop_assert_eq!(Number(value).to_string().parse::<f64>().unwrap(), value);
        }
    }
}
