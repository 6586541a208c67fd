//! Trains a classifier of three classes and prints what its certificates guarantee.
//!
//! ```sh
//! cargo run --example classification
//! ```

use ndarray::Array2;
use svmarrow::{Result, Svc};

fn main() -> Result<()> {
    // Three rings of different radii.
    let labels: Vec<&str> = (0..600).map(|i| ["inner", "middle", "outer"][i % 3]).collect();
    let angle = |i: usize| 0.7 * i as f64;
    let radius = |i: usize| 1.0 + (i % 3) as f64 + 0.3 * (1.3 * i as f64).sin();
    let x = Array2::from_shape_fn((600, 2), |(i, k)| {
        radius(i) * if k == 0 { angle(i).cos() } else { angle(i).sin() }
    });
    let (training, test) = (x.slice(ndarray::s![..400, ..]), x.slice(ndarray::s![400.., ..]));

    let model = Svc::builder().c(10.0).gamma(1.0).build()?.fit(training, &labels[..400])?;
    let predicted = model.predict(test)?;
    let correct = predicted.iter().zip(&labels[400..]).filter(|(a, b)| a == b).count();
    println!("classes {:?}: {correct} of {} test samples are correct", model.classes(), predicted.len());
    for (machine, certificate) in model.certificates().iter().enumerate() {
        println!(
            "machine {machine}: {} support vectors, dual {:.4} <= optimum <= primal {:.4}",
            certificate.support, certificate.dual, certificate.primal
        );
    }
    assert!(correct >= 190);
    Ok(())
}
