//! Streams that check the monitor before every block, so that Ctrl-C ends the reading and writing of large files.
//!
//! Pipes are opened without blocking and polled, because a thread that the system blocks at a pipe without another end, or without
//! data, never sees the monitor: Ctrl-C would not end the call as long as the pipe is silent. Regular files are read directly.
//!
//! Cost: a check for each block of 64 kB to 1 MB, and ten a second while a pipe is awaited.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::path::Path;
use std::time::Duration;

use crate::context::{Context, Progress};
use crate::data::Rows;
use crate::error::{Error, Result};

/// Number of bytes of a buffer of text; a block between two checks of the monitor has at most 16 times as many.
const BYTES_PER_CHECK: usize = 1 << 16;
/// Time between two checks of the monitor while a pipe is awaited.
const PIPE_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// A stream that fails if the monitor asks for a stop.
pub(super) struct Monitored<'a, S> {
    stream: S,
    phase: &'static str,
    bytes: u64,
    total: Option<u64>,
    ctx: Context<'a>,
}

impl<'a, S> Monitored<'a, S> {
    pub(super) fn new(stream: S, phase: &'static str, total: Option<u64>, ctx: Context<'a>) -> Self {
        Self { stream, phase, bytes: 0, total, ctx }
    }

    pub(super) fn into_inner(self) -> S {
        self.stream
    }

    fn block(&mut self, work: impl FnOnce(&mut S) -> io::Result<usize>) -> io::Result<usize> {
        let Self { phase, bytes: done, total, .. } = *self;
        let progress = Progress { phase, done, total, gap: f64::NAN, steps: 0 };
        self.ctx.tick(&progress).map_err(io::Error::other)?;
        let count = work(&mut self.stream)?;
        self.bytes += count as u64;
        Ok(count)
    }
}

impl<S: Read> Read for Monitored<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let max_bytes = buffer.len().min(16 * BYTES_PER_CHECK);
        self.block(|stream| stream.read(&mut buffer[..max_bytes]))
    }
}

impl<S: Write> Write for Monitored<'_, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let max_bytes = bytes.len().min(16 * BYTES_PER_CHECK);
        self.block(|stream| stream.write(&bytes[..max_bytes]))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// [`Rows::check_finite`] with checks of the monitor.
pub(super) fn check_finite(rows: Rows<'_>, what: &'static str, ctx: Context<'_>) -> Result<()> {
    let n = rows.rows();
    let step = (16 * BYTES_PER_CHECK / rows.cols().max(1)).max(1);
    for start in (0..n).step_by(step) {
        ctx.check("check", start, n)?;
        rows.check_finite_within(what, start..n.min(start + step))?;
    }
    Ok(())
}

/// Direction in which a pipe is awaited.
#[derive(Clone, Copy)]
enum Direction {
    Read,
    Write,
}

/// An open file or pipe. While it waits for the other end of a pipe, it checks the monitor ten times a second.
pub(super) struct OpenFile<'a> {
    file: File,
    is_pipe: bool,
    ctx: Context<'a>,
}

impl<'a> OpenFile<'a> {
    fn new(file: File, ctx: Context<'a>) -> io::Result<Self> {
        let is_pipe = !file.metadata()?.is_file();
        Ok(Self { file, is_pipe, ctx })
    }

    /// Opens an existing file or pipe to be written, without truncation; a pipe without a reader is awaited.
    pub(super) fn to_write(path: &Path, ctx: Context<'a>) -> io::Result<Self> {
        loop {
            match without_blocking(OpenOptions::new().write(true)).open(path) {
                Err(error) if is_pipe_without_reader(path, &error) => {
                    check_monitor(ctx)?;
                    std::thread::sleep(PIPE_CHECK_INTERVAL);
                }
                file => return Self::new(file?, ctx),
            }
        }
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Repeats `work` until it does not ask to wait.
    fn waiting<T>(
        &mut self,
        direction: Direction,
        mut work: impl FnMut(&mut File) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            if self.is_pipe {
                while !is_ready(&self.file, direction)? {
                    check_monitor(self.ctx)?;
                }
            }
            match work(&mut self.file) {
                Err(error) if self.is_pipe && error.kind() == ErrorKind::WouldBlock => {}
                done => return done,
            }
        }
    }
}

impl Read for OpenFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.waiting(Direction::Read, |file| file.read(buffer))
    }
}

impl Write for OpenFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting(Direction::Write, |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn check_monitor(ctx: Context<'_>) -> io::Result<()> {
    ctx.check("wait", 0, 0).map_err(io::Error::other)
}

/// Makes the opening of a pipe return at once, whether or not it has another end; regular files are not affected.
#[cfg(unix)]
fn without_blocking(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
}

#[cfg(not(unix))]
fn without_blocking(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

#[cfg(unix)]
fn is_pipe_without_reader(path: &Path, error: &io::Error) -> bool {
    use std::os::unix::fs::FileTypeExt;
    error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error())
        && path.metadata().is_ok_and(|metadata| metadata.file_type().is_fifo())
}

#[cfg(not(unix))]
fn is_pipe_without_reader(_: &Path, _: &io::Error) -> bool {
    false
}

/// Waits for at most [`PIPE_CHECK_INTERVAL`] until a pipe can be read or written.
#[cfg(unix)]
fn is_ready(file: &File, direction: Direction) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let flags = match direction {
        Direction::Read => PollFlags::IN,
        Direction::Write => PollFlags::OUT,
    };
    let limit = Timespec { tv_sec: 0, tv_nsec: PIPE_CHECK_INTERVAL.subsec_nanos().into() };
    match poll(&mut [PollFd::new(file, flags)], Some(&limit)) {
        Ok(count) => Ok(count > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(unix))]
fn is_ready(_: &File, _: Direction) -> io::Result<bool> {
    Ok(true)
}

/// Opens a file for reading, and returns its length; a pipe has 0.
pub(super) fn open<'a>(path: &Path, ctx: Context<'a>) -> Result<(Monitored<'a, OpenFile<'a>>, u64)> {
    let failed = |source| Error::io(path, source);
    let file = without_blocking(OpenOptions::new().read(true)).open(path).map_err(failed)?;
    let file = OpenFile::new(file, ctx).map_err(failed)?;
    let length = file.file.metadata().map_err(failed)?.len();
    Ok((Monitored::new(file, "read", (length > 0).then_some(length), ctx), length))
}

pub(super) fn open_text<'a>(path: &Path, ctx: Context<'a>) -> Result<BufReader<Monitored<'a, OpenFile<'a>>>> {
    Ok(BufReader::with_capacity(BYTES_PER_CHECK, open(path, ctx)?.0))
}
