//! Trains on svmlight text, keeps a few vectors, writes a model file and reads it again.
//!
//! ```sh
//! cargo run --release --example train_compress_save -- train.svm 20 small.safetensors
//! ```
//!
//! Without arguments it makes two noisy half moons of its own and writes beside other temporary files.

use ndarray::Array2;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use svmarrow::Result;
use svmarrow::context::Context;
use svmarrow::data::{OwnedRows, Rows};
use svmarrow::expansion::KernelExpansion;
use svmarrow::io::safetensors::{Contents, read, write};
use svmarrow::io::svmlight;
use svmarrow::kernels::{Evaluator, Kernel};
use svmarrow::path::path_coefficients;
use svmarrow::random::Random;
use svmarrow::reduced_set::{PursuitParams, pursuit};
use svmarrow::svm::{Classification, SvmParams, fit_classifier};

/// Two half moons, one above the other, with noise.
fn moons(n: usize) -> (OwnedRows, Vec<f64>) {
    let mut random = Random::new(0);
    let targets: Vec<f64> = (0..n).map(|i| if i % 2 == 0 { -1.0 } else { 1.0 }).collect();
    let mut rows = Array2::zeros((n, 2));
    for (mut row, target) in rows.rows_mut().into_iter().zip(&targets) {
        let angle = std::f64::consts::PI * random.uniform();
        row[0] = target * angle.cos() + 0.5 * (1.0 - target) + 0.15 * random.normal();
        row[1] = target * angle.sin() - 0.25 * target + 0.15 * random.normal();
    }
    (rows.into(), targets)
}

/// The share of the rows on which an expansion has the sign of the label.
fn right(expansion: &KernelExpansion, rows: Rows<'_>, labels: &[usize]) -> Result<f64> {
    let outputs = Evaluator::new(&expansion.view())?.evaluate(rows, Context::default())?;
    let hits = outputs.column(0).iter().zip(labels).filter(|&(&f, &label)| (f > 0.0) == (label == 1)).count();
    Ok(hits as f64 / labels.len() as f64)
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (owned, targets) = match arguments.first() {
        Some(file) => {
            let data =
                svmlight::read(Path::new(file), &svmlight::ReadOptions::default(), Context::default())?;
            (data.rows, data.targets)
        }
        None => moons(1000),
    };
    let keep =
        arguments.get(1).map_or(20, |text| text.parse().expect("the second argument is a number of vectors"));
    let path = arguments
        .get(2)
        .map_or_else(|| std::env::temp_dir().join("svmarrow-example.safetensors"), PathBuf::from);

    // The core knows classes by their numbers.
    let classes: BTreeSet<i64> = targets.iter().map(|&target| target as i64).collect();
    assert_eq!(classes.len(), 2, "this example tells two classes apart");
    let labels: Vec<usize> =
        targets.iter().map(|&target| usize::from(Some(&(target as i64)) == classes.last())).collect();

    let (rows, kernel) = (owned.view(), Kernel::Rbf { gamma: 2.0 });
    let costs = vec![1.0; labels.len()];
    let task = Classification::new(&labels, 2, &costs);
    let fit = fit_classifier(kernel, rows, &task, &SvmParams::default(), Context::default())?;
    println!("gap {:.1e} after {} pair steps", fit.certificates[0].gap, fit.certificates[0].iterations);
    let machine = KernelExpansion::new(kernel, rows.gather(&fit.support)?, fit.coefficients, fit.intercepts)?;

    let found = pursuit(&machine.view(), None, &PursuitParams::new(keep), Context::default())?;
    let size = found.order.len();
    let kept = machine.view().vectors.gather(&found.order)?;
    let coefficients = path_coefficients(&found.view(), size)?;
    let small = KernelExpansion::new(kernel, kept, coefficients, machine.intercepts.clone())?;
    for (name, expansion) in [("full", &machine), ("small", &small)] {
        let share = 100.0 * right(expansion, rows, &labels)?;
        println!(
            "{name}: {} vectors, {share:.1} % of the training rows right",
            expansion.view().vectors.rows()
        );
    }

    write(&path, &Contents::of(&small.view(), "trained by the example"), Context::default())?;
    assert_eq!(read(&path, Context::default())?.expansions[""], small);
    println!("written: {}", path.display());
    Ok(())
}
