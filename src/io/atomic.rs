//! Saving that never leaves half a file behind.
//!
//! The bytes go to a temporary file in the target's directory, are flushed to the disk, and only then take the
//! target's name; a rename within one directory is atomic. Whatever fails before (a full disk, a crash, the
//! writer itself), the old file is as it was and the temporary file is gone (after a crash: left as `.svmarrow-*`).

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::monitored::{Monitored, OpenFile};
use crate::context::Context;
use crate::error::{Error, Result};

/// Writes a file through `write` and gives it the name `path` when everything is on the disk.
///
/// A new file gets the permissions of any new file (the process's umask); an existing one keeps its own. A
/// symbolic link stays one: the file behind it is replaced. What is not a regular file, such as a pipe or
/// `/dev/stdout`, is written straight through.
///
/// # Errors
/// [`Error::Io`] with `path` for whatever the system or `write` reports, also when the existing file or its
/// directory may not be written; [`Error::Stopped`] where the monitor, asked before every block, says so.
///
/// ```
/// # fn main() -> svmarrow::Result<()> {
/// use svmarrow::context::Context;
///
/// let path = std::env::temp_dir().join("svmarrow-doc-atomic.txt");
/// svmarrow::io::atomic::save(&path, Context::default(), |out| out.write_all(b"all or nothing"))?;
/// assert_eq!(std::fs::read(&path).unwrap(), b"all or nothing");
/// # std::fs::remove_file(&path).unwrap();
/// # Ok(())
/// # }
/// ```
pub fn save(
    path: &Path,
    ctx: Context<'_>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    replace(path, ctx, write).map_err(|source| Error::io(path, source))
}

fn replace(
    path: &Path,
    ctx: Context<'_>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let existing = match OpenFile::to_write(path, ctx) {
        // Opening without truncation asks the system whether the old file may be written at all; the rename
        // below would not.
        Ok(file) => Some(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let existing_metadata = existing.as_ref().map(|opened| opened.file().metadata()).transpose()?;
    if let Some(file) = existing.filter(|_| existing_metadata.as_ref().is_some_and(|m| !m.is_file())) {
        return finish(file, ctx, write).map(drop);
    }
    let target = if existing_metadata.is_some() { fs::canonicalize(path)? } else { path.to_path_buf() };
    let directory = match target.parent() {
        Some(parent) if parent != Path::new("") => parent.to_path_buf(),
        _ => PathBuf::from("."),
    };

    // A missing directory is reported as the system words it, not as the failure of a temporary file.
    fs::metadata(&directory)?;

    let mut builder = tempfile::Builder::new();
    builder.prefix(".svmarrow-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666)); // less the umask
    let (file, temporary) = builder.tempfile_in(&directory)?.into_parts();
    let file = finish(file, ctx, write)?;
    if let Some(metadata) = existing_metadata {
        file.set_permissions(metadata.permissions())?;
    }
    file.sync_all()?;
    drop(file); // Windows renames closed files only
    temporary.persist(&target).map_err(|failed| failed.error)?;
    // The file is complete with or without this: it makes the new name survive a power failure.
    #[cfg(unix)]
    let _ = File::open(&directory).and_then(|d| d.sync_all());
    Ok(())
}

fn finish<S: Write>(
    file: S,
    ctx: Context<'_>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<S> {
    let mut out = BufWriter::with_capacity(1 << 16, Monitored::new(file, "write", None, ctx));
    let written = write(&mut out).and_then(|()| out.flush());
    // After a failure the rest of the buffer must not be tried again when it is dropped.
    let (file, _) = out.into_parts();
    written.map(|()| file.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(directory).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_failing_writer_leaves_the_old_file_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("model");
        save(&path, Context::default(), |out| out.write_all(b"old")).unwrap();
        let failed = save(&path, Context::default(), |out| {
            out.write_all(&vec![7; 1 << 20])?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        });
        assert!(matches!(failed, Err(Error::Io { path: p, .. }) if p == path));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(directory.path()), ["model"]);
    }

    #[test]
    fn a_panicking_writer_leaves_the_old_file_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("model");
        save(&path, Context::default(), |out| out.write_all(b"old")).unwrap();
        let panicked =
            std::panic::catch_unwind(|| save(&path, Context::default(), |_| panic!("in the writer")));
        assert!(panicked.is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(directory.path()), ["model"]);
    }

    #[test]
    fn a_missing_directory_is_named() {
        let path = Path::new("/nowhere/at/all/model");
        let message = save(path, Context::default(), |_| Ok(())).unwrap_err().to_string();
        assert!(message.starts_with("/nowhere/at/all/model: "), "{message}");
    }

    #[cfg(unix)]
    #[test]
    fn modes_and_links_are_kept() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let directory = tempfile::tempdir().unwrap();
        let (path, link) = (directory.path().join("model"), directory.path().join("link"));
        let plain = directory.path().join("plain");
        File::create(&plain).unwrap();
        let mode = |p: &Path| fs::metadata(p).unwrap().permissions().mode() & 0o777;

        save(&path, Context::default(), |out| out.write_all(b"1")).unwrap();
        assert_eq!(mode(&path), mode(&plain));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("model", &link).unwrap();
        save(&link, Context::default(), |out| out.write_all(b"2")).unwrap();
        assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"2".to_vec(), 0o640));
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(names(directory.path()), ["link", "model", "plain"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_device_is_an_error() {
        let full = save(Path::new("/dev/full"), Context::default(), |out| out.write_all(&[0; 100]));
        assert!(matches!(full, Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::StorageFull));
        save(Path::new("/dev/null"), Context::default(), |out| out.write_all(&[0; 100])).unwrap();
    }
}
