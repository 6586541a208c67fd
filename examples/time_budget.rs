//! Reports the progress of a fit and stops it after half a second. A machine that was stopped is still a model, and its certificate
//! bounds how far it is from the optimum.
//!
//! ```sh
//! cargo run --example time_budget
//! ```

use ndarray::Array2;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use svmarrow::context::{Budget, Context, Interruption, Monitor, Progress};
use svmarrow::{Result, Svc};

/// Counts the reports and prints every hundredth.
struct Printer(AtomicU64);

impl Monitor for Printer {
    fn tick(&self, progress: &Progress) -> ControlFlow<Interruption> {
        if self.0.fetch_add(1, Ordering::Relaxed).is_multiple_of(100) {
            println!("{}: {} steps, gap {:.3e}", progress.phase, progress.steps, progress.gap);
        }
        ControlFlow::Continue(())
    }
}

fn main() -> Result<()> {
    // Labels that nobody can learn, so that the fit takes long.
    let x = Array2::from_shape_fn((6000, 4), |(i, k)| (1.7 * i as f64 + 3.1 * (k * i) as f64).sin());
    let labels: Vec<u8> = (0..6000).map(|i| u8::from((7919 * i) % 104_729 > 52_000)).collect();

    let printer = Printer(AtomicU64::new(0));
    let budget = Budget::new(&printer, None, Some(Duration::from_millis(500)));
    let svc = Svc::builder().c(1000.0).gamma(5.0).build()?;
    let model = svc.fit_in(&x, &labels, Context::default().with_monitor(&budget))?;
    let certificate = &model.certificates()[0];
    println!("{}: the gap is {:.3e}", certificate.stop.name(), certificate.gap);
    Ok(())
}
