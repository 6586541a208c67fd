//! Streams that ask the monitor before every block, so that Ctrl-C ends the reading and writing of large files.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::ops::ControlFlow;
use std::path::Path;

use crate::control::{Monitor, Progress};
use crate::data::Rows;
use crate::error::{Error, Result};

/// Bytes between two looks at the monitor.
const BLOCK: usize = 1 << 16;

/// A stream that fails when the monitor says so.
pub(super) struct Watched<'a, S> {
    stream: S,
    phase: &'static str,
    bytes: u64,
    total: Option<u64>,
    monitor: &'a dyn Monitor,
}

impl<'a, S> Watched<'a, S> {
    pub(super) fn new(stream: S, phase: &'static str, total: Option<u64>, monitor: &'a dyn Monitor) -> Self {
        Self { stream, phase, bytes: 0, total, monitor }
    }

    pub(super) fn into_inner(self) -> S {
        self.stream
    }

    fn block(&mut self, work: impl FnOnce(&mut S) -> io::Result<usize>) -> io::Result<usize> {
        let Self { phase, bytes: done, total, .. } = *self;
        match self.monitor.tick(&Progress { phase, done, total, gap: f64::NAN, steps: 0 }) {
            ControlFlow::Continue(()) => {
                let count = work(&mut self.stream)?;
                self.bytes += count as u64;
                Ok(count)
            }
            ControlFlow::Break(_) => Err(io::Error::other(Error::Cancelled)),
        }
    }
}

impl<S: Read> Read for Watched<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(16 * BLOCK);
        self.block(|stream| stream.read(&mut buffer[..most]))
    }
}

impl<S: Write> Write for Watched<'_, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let most = bytes.len().min(16 * BLOCK);
        self.block(|stream| stream.write(&bytes[..most]))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// [`Rows::check_finite`] with looks at the monitor.
pub(super) fn check_finite(rows: Rows<'_>, what: &'static str, monitor: &dyn Monitor) -> Result<()> {
    let n = rows.rows();
    let step = (16 * BLOCK / rows.cols().max(1)).max(1);
    for start in (0..n).step_by(step) {
        monitor.go_on("check", start, n)?;
        rows.check_finite_within(what, start..n.min(start + step))?;
    }
    Ok(())
}

/// Opens a file to be read, and tells its length; a pipe has 0.
pub(super) fn open<'a>(path: &Path, monitor: &'a dyn Monitor) -> Result<(Watched<'a, File>, u64)> {
    let failed = |source| Error::io(path, source);
    let file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    Ok((Watched::new(file, "read", (length > 0).then_some(length), monitor), length))
}

/// As [`open`], for text.
pub(super) fn open_text<'a>(path: &Path, monitor: &'a dyn Monitor) -> Result<BufReader<Watched<'a, File>>> {
    Ok(BufReader::with_capacity(BLOCK, open(path, monitor)?.0))
}
