//! A stopwatch for measurements, which decide nothing. WebAssembly in a browser has no clock, and `Instant::now` panics there.

use std::time::Instant;

/// A start, from which seconds are counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Option<Instant>);

impl Stopwatch {
    /// Starts to count.
    pub(crate) fn start() -> Self {
        let has_clock = cfg!(not(all(target_family = "wasm", target_os = "unknown")));
        Self(has_clock.then(Instant::now))
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
