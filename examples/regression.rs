//! Compares support vector regression and regularized least squares on a noisy sine.
//!
//! ```sh
//! cargo run --example regression
//! ```

use ndarray::Array2;
use svmarrow::estimators::Model;
use svmarrow::{LeastSquares, Result, Svr};

fn main() -> Result<()> {
    let n = 500;
    let x = Array2::from_shape_fn((n, 1), |(i, _)| 10.0 * i as f64 / n as f64);
    let truth: Vec<f64> = x.iter().map(|x| x.sin()).collect();
    let noisy: Vec<f64> = truth.iter().enumerate().map(|(i, y)| y + 0.1 * (12.9 * i as f64).sin()).collect();

    let machine = Svr::builder().c(10.0).epsilon(0.1).gamma(1.0).build()?.fit(&x, &noisy)?;
    let squares = LeastSquares::builder().alpha(0.1).gamma(1.0).build()?.fit(&x, &noisy)?;
    for (name, model) in [("support vector regression", &machine), ("least squares", &squares)] {
        let predicted = model.predict(&x)?;
        let squared: f64 = predicted.iter().zip(&truth).map(|(f, y)| (f - y) * (f - y)).sum();
        let error = (squared / n as f64).sqrt();
        println!("{name}: {} vectors, root mean square error {error:.4}", model.expansion().view().len());
        assert!(error < 0.1);
    }
    Ok(())
}
