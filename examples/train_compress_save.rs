//! Trains on svmlight text, keeps a few vectors, writes a model file and reads it again.
//!
//! ```sh
//! cargo run --release --example train_compress_save -- train.svm 20 small.safetensors
//! ```
//!
//! Without arguments it makes two noisy half moons and writes to the folder of temporary files.

use ndarray::Array2;
use std::path::{Path, PathBuf};
use svmarrow::context::Context;
use svmarrow::data::OwnedRows;
use svmarrow::estimators::{Classifier, Model};
use svmarrow::io::svmlight;
use svmarrow::{Reduction, Result, Svc};

/// Two half moons, one above the other, with a wave in the place of noise.
fn moons(n: usize) -> (OwnedRows, Vec<i64>) {
    let labels: Vec<i64> = (0..n).map(|i| if i % 2 == 0 { -1 } else { 1 }).collect();
    let x = Array2::from_shape_fn((n, 2), |(i, k)| {
        let (sign, angle) = (labels[i] as f64, std::f64::consts::PI * i as f64 / n as f64);
        let noise = 0.2 * (17.3 * (i + 1) as f64 * (k + 1) as f64).sin();
        noise
            + if k == 0 { sign * angle.cos() + 0.5 * (1.0 - sign) } else { sign * angle.sin() - 0.25 * sign }
    });
    (x.into(), labels)
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (x, labels) = match arguments.first() {
        Some(file) => {
            let data =
                svmlight::read(Path::new(file), &svmlight::ReadOptions::default(), Context::default())?;
            (data.rows, data.targets.iter().map(|&target| target as i64).collect())
        }
        None => moons(1000),
    };
    let n_vectors =
        arguments.get(1).map_or(20, |text| text.parse().expect("the second argument is a number of vectors"));
    let path = arguments
        .get(2)
        .map_or_else(|| std::env::temp_dir().join("svmarrow-example.safetensors"), PathBuf::from);

    let machine = Svc::builder().c(1.0).gamma(2.0).build()?.fit(x.view(), &labels)?;
    let small = Reduction::builder(n_vectors).build()?.apply(&machine)?;
    for (name, model) in [("full", &machine), ("small", &small)] {
        let correct = model.predict(x.view())?.iter().zip(&labels).filter(|(a, b)| a == b).count();
        println!(
            "{name}: {} vectors, {:.1} % of the training samples are correct",
            model.expansion().view().len(),
            100.0 * correct as f64 / labels.len() as f64
        );
    }

    small.save(&path)?;
    assert_eq!(Classifier::load(&path)?.predict(x.view())?, small.predict(x.view())?);
    println!("written: {}", path.display());
    Ok(())
}
