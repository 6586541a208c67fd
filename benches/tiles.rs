//! Kernel values per second: rows for the solver ([`KernelRows::compute`]) and prediction
//! ([`Evaluator::evaluate`]) at the widths of four common sets: 2, 22, 123 and 784 features, and for
//! 784 pixels; kernel rows for a Matérn kernel too.
//!
//! `cargo bench --bench tiles`; throughput is in kernel values. `SVMARROW_SIMD` forces an instruction set.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ndarray::ArrayView2;
use svmarrow::context::Context;
use svmarrow::data::Rows;
use svmarrow::expansion::ExpansionView;
use svmarrow::kernels::{Evaluator, Kernel, KernelRows, Precision, Smoothness};

/// Widths, and whether the numbers are pixels: multiples of 1/255.
const FEATURES: [(usize, bool); 5] = [(2, false), (22, false), (123, false), (784, false), (784, true)];
/// Columns of a kernel row, and vectors of an expansion.
const VECTORS: usize = 2048;
/// Rows fetched together, and rows predicted together.
const ROWS: usize = 256;

/// Numbers in [-1, 1) that look random: the splitmix generator's first outputs.
fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    (0..count)
        .map(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
        })
        .collect()
}

/// As [`numbers`], or as many pixels.
fn numbers_or_pixels(count: usize, seed: u64, pixels: bool) -> Vec<f32> {
    let pixel = |v: f32| ((v + 1.0) * 127.5).round() / 255.0;
    numbers(count, seed).into_iter().map(|v| if pixels { pixel(v) } else { v }).collect()
}

fn name(features: usize, pixels: bool) -> String {
    format!("{features}{}", if pixels { " pixels" } else { "" })
}

fn view(data: &[f32], rows: usize, features: usize) -> Rows<'_> {
    Rows::from_shape((rows, features), data).expect("the sizes are this file's")
}

/// RBF and Matérn kernels of a width that gives values between 0 and 1.
fn kernels(features: usize) -> [Kernel; 2] {
    let gamma = 1.0 / features as f64;
    [Kernel::Rbf { gamma }, Kernel::Matern { smoothness: Smoothness::FiveHalves, gamma: gamma.sqrt() }]
}

fn kernel_rows(criterion: &mut Criterion) {
    for index in 0..2 {
        kernel_rows_of(criterion, index);
    }
}

fn kernel_rows_of(criterion: &mut Criterion, index: usize) {
    let mut group = criterion.benchmark_group(["kernel_rows", "kernel_rows matern52"][index]);
    group.throughput(Throughput::Elements((ROWS * VECTORS) as u64));
    for (features, pixels) in FEATURES {
        let data = numbers_or_pixels(VECTORS * features, 1, pixels);
        let kernel = kernels(features)[index];
        let columns: Vec<usize> = (0..VECTORS).collect();
        let source = KernelRows::new(
            kernel,
            view(&data, VECTORS, features),
            &columns,
            Precision::Single,
            Context::default(),
        )
        .expect("the columns fit in memory");
        let wanted: Vec<usize> = (0..ROWS).map(|i| i * VECTORS / ROWS).collect();
        let mut values = vec![0.0_f32; ROWS * VECTORS];
        group.bench_function(BenchmarkId::from_parameter(name(features, pixels)), |bencher| {
            bencher.iter(|| {
                let mut out: Vec<&mut [f32]> = values.chunks_exact_mut(VECTORS).collect();
                source.compute(black_box(&wanted), &mut out, Context::default())
            });
        });
    }
    group.finish();
}

fn evaluator(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("evaluator");
    group.throughput(Throughput::Elements((ROWS * VECTORS) as u64));
    for (features, pixels) in FEATURES {
        let vectors = numbers_or_pixels(VECTORS * features, 1, pixels);
        let rows = numbers_or_pixels(ROWS * features, 2, pixels);
        for outputs in [1, 10] {
            let coefficients: Vec<f64> = numbers(VECTORS * outputs, 3).into_iter().map(f64::from).collect();
            let expansion = ExpansionView::new(
                Kernel::Rbf { gamma: 1.0 / features as f64 },
                view(&vectors, VECTORS, features),
                ArrayView2::from_shape((VECTORS, outputs), &coefficients).expect("the sizes are this file's"),
                &[0.0; 10][..outputs],
            )
            .expect("a valid expansion");
            let evaluator = Evaluator::new(&expansion).expect("a valid expansion");
            group.bench_function(
                BenchmarkId::new(format!("outputs={outputs}"), name(features, pixels)),
                |bencher| {
                    bencher.iter(|| {
                        evaluator.evaluate(black_box(view(&rows, ROWS, features)), Context::default())
                    });
                },
            );
        }
    }
    group.finish();
}

criterion_group!(benches, kernel_rows, evaluator);
criterion_main!(benches);
