//! Kernel matching pursuit: how the error falls with the number of kernel functions.
//!
//! ```sh
//! cargo run --example few_functions
//! ```

use ndarray::Array2;
use svmarrow::{MatchingPursuit, Result};

fn main() -> Result<()> {
    let n = 400;
    let x = Array2::from_shape_fn((n, 2), |(i, k)| (0.61 * i as f64 + 1.9 * k as f64 * i as f64).sin());
    let labels: Vec<bool> = x.rows().into_iter().map(|row| row[0] * row[1] > 0.0).collect();
    let mut errors = Vec::new();
    for n_vectors in [2, 5, 10, 20, 40] {
        let model = MatchingPursuit::builder(n_vectors).gamma(2.0).build()?.fit_classifier(&x, &labels)?;
        let wrong = model.predict(&x)?.iter().zip(&labels).filter(|(a, b)| a != b).count();
        println!(
            "{n_vectors:2} functions: {:.1} % of the samples are wrong",
            100.0 * wrong as f64 / n as f64
        );
        errors.push(wrong);
    }
    assert!(errors[4] < errors[0]);
    Ok(())
}
