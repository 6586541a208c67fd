//! A clock and the number of the process. WebAssembly in a browser has neither, and the functions of `std` panic there.

use std::time::Instant;

const IS_BROWSER: bool = cfg!(all(target_family = "wasm", target_os = "unknown"));

/// Returns the number of this process, 0 if there are no processes.
pub(crate) fn process_id() -> u32 {
    if IS_BROWSER { 0 } else { std::process::id() }
}

/// A start, from which seconds are counted: for measurements, which decide nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Option<Instant>);

impl Stopwatch {
    /// Starts to count.
    pub(crate) fn start() -> Self {
        Self((!IS_BROWSER).then(Instant::now))
    }

    /// Returns the seconds since the start, 0 without a clock.
    pub(crate) fn seconds(self) -> f64 {
        self.0.map_or(0.0, |start| start.elapsed().as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::Stopwatch;
    use std::time::Duration;

    #[test]
    fn seconds_are_counted_from_the_start() {
        let stopwatch = Stopwatch::start();
        std::thread::sleep(Duration::from_millis(2));
        assert!(stopwatch.seconds() >= 0.002);
    }
}
