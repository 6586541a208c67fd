//! Finds outliers with a one-class support vector machine.
//!
//! ```sh
//! cargo run --example novelty
//! ```

use ndarray::{Array2, arr2};
use svmarrow::{OneClassSvm, Result};

fn main() -> Result<()> {
    // A spiral that fills a disc.
    let x = Array2::from_shape_fn((300, 2), |(i, k)| {
        let (radius, angle) = ((i as f64 / 300.0).sqrt(), 2.4 * i as f64);
        radius * if k == 0 { angle.cos() } else { angle.sin() }
    });
    let detector = OneClassSvm::builder().nu(0.05).gamma(1.0).build()?.fit(&x)?;
    let outliers = detector.predict(&x)?.iter().filter(|inlier| !**inlier).count();
    println!("{outliers} of {} training samples are outliers", x.nrows());

    let points = arr2(&[[0.0, 0.0], [0.5, -0.5], [3.0, 0.0]]);
    let outputs = detector.decision_function(&points)?;
    for (point, output) in points.rows().into_iter().zip(&outputs) {
        println!("{point}: {}", if *output >= 0.0 { "inlier" } else { "outlier" });
    }
    assert!(outputs[0] > 0.0 && outputs[2] < 0.0 && outliers <= 30);
    Ok(())
}
