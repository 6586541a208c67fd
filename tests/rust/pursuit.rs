//! The pursuit against fresh least-squares solutions, and its invariants.

use crate::reference::{Numbers, blobs, changed, gram, matrix, rows};
use ndarray::Axis;
use svmarrow::context::Context;
use svmarrow::data::Rows;
use svmarrow::expansion::ExpansionView;
use svmarrow::kernels::{Evaluator, Kernel};
use svmarrow::path::{Form, Path, PathView, path_coefficients, path_decisions};
use svmarrow::reduced_set::{PursuitParams, Selection, pursuit};

const KERNEL: Kernel = Kernel::Rbf { gamma: 0.5 };

fn target(m: usize, q: usize) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let (z, _) = blobs(m, 3, 2, 7);
    let mut numbers = Numbers::new(3);
    let coefficients = (0..m * q).map(|_| numbers.next() - 0.5).collect();
    (z, coefficients, (0..q).map(|j| j as f64 * 0.1).collect())
}

fn run(
    view: &ExpansionView<'_>,
    candidates: Option<Rows<'_>>,
    max_vectors: usize,
    selection: Selection,
) -> Path {
    let params = changed(PursuitParams::new(max_vectors), |p| p.selection = selection);
    pursuit(view, candidates, &params, Context::default()).unwrap()
}

/// ||sum_i a_i phi(z_i) - sum_t b_t phi(s_t)||^2 over all outputs.
fn distance(z: Rows<'_>, a: &[f64], s: Rows<'_>, b: &[f64], q: usize) -> f64 {
    let form = |x: Rows<'_>, a: &[f64], y: Rows<'_>, b: &[f64]| -> f64 {
        let k = gram(&KERNEL, x, y);
        let m = y.rows();
        (0..x.rows())
            .map(|i| {
                (0..m)
                    .map(|t| k[i * m + t] * (0..q).map(|j| a[i * q + j] * b[t * q + j]).sum::<f64>())
                    .sum::<f64>()
            })
            .sum()
    };
    form(z, a, z, a) - 2.0 * form(z, a, s, b) + form(s, b, s, b)
}

#[test]
fn every_size_is_the_least_squares_solution() {
    for q in [1, 4] {
        let (z, coefficients, intercepts) = target(60, q);
        let z = rows(&z, 60);
        let view = ExpansionView::new(KERNEL, z, matrix(&coefficients, 60), &intercepts).unwrap();
        for selection in [Selection::BackFitting, Selection::PreFitting] {
            let path = run(&view, None, 40, selection);
            let m = path.order.len();
            assert_eq!(m, 40);
            assert!(path.residual_norms.windows(2).all(|w| w[1] <= w[0]));
            for size in [0, 1, 7, 40] {
                let kept = z.gather(&path.order[..size]).unwrap();
                let b = path_coefficients(&path.view(), size).unwrap();
                let fresh = distance(z, &coefficients, kept.view(), b.as_slice().unwrap(), q);
                assert!(
                    (fresh - path.residual_norms[size].powi(2)).abs()
                        < 1e-9 * (1.0 + path.residual_norms[0].powi(2))
                );
                // Optimal: the residual is orthogonal to every kept vector.
                let (to_z, to_kept) =
                    (gram(&KERNEL, kept.view(), z), gram(&KERNEL, kept.view(), kept.view()));
                for t in 0..size {
                    for j in 0..q {
                        let wanted: f64 = (0..60).map(|i| to_z[t * 60 + i] * coefficients[i * q + j]).sum();
                        let got: f64 = (0..size).map(|i| to_kept[t * size + i] * b[[i, j]]).sum();
                        assert!((wanted - got).abs() < 1e-8);
                    }
                }
            }
        }
    }
}

#[test]
fn the_choice_is_the_greedy_one() {
    let (z, coefficients, intercepts) = target(30, 2);
    let z = rows(&z, 30);
    let view = ExpansionView::new(KERNEL, z, matrix(&coefficients, 30), &intercepts).unwrap();
    // Pre-fitting minimises the residual of the next size over all candidates.
    let path = run(&view, None, 5, Selection::PreFitting);
    for step in 0..5 {
        for p in 0..30 {
            let mut order = path.order[..step].to_vec();
            if order.contains(&p) {
                continue;
            }
            order.push(p);
            let fixed = z.gather(&order).unwrap();
            let other = run(&view, Some(fixed.view()), step + 1, Selection::PreFitting);
            assert!(path.residual_norms[step + 1] <= other.residual_norms[step + 1] + 1e-9);
        }
    }
}

#[test]
fn all_vectors_give_the_target_back() {
    let (z, coefficients, intercepts) = target(25, 3);
    let z = rows(&z, 25);
    let view = ExpansionView::new(KERNEL, z, matrix(&coefficients, 25), &intercepts).unwrap();
    let path = run(&view, None, 25, Selection::BackFitting);
    let sizes: Vec<usize> = (0..=25).collect();
    let kept = z.gather(&path.order).unwrap();
    let (x, _) = blobs(40, 3, 2, 11);
    let x = rows(&x, 40);
    let f = path_decisions(&KERNEL, kept.view(), &path.view(), &intercepts, x, &sizes, Context::default())
        .unwrap();
    let full = Evaluator::new(&view).unwrap().evaluate(x, Context::SEQUENTIAL).unwrap();
    for (a, b) in f.index_axis(Axis(0), 25).iter().zip(&full) {
        assert!((a - b).abs() < 1e-6);
    }
    for size in [0, 3, 12] {
        let b = path_coefficients(&path.view(), size).unwrap();
        let small = z.gather(&path.order[..size]).unwrap();
        let small = ExpansionView::new(KERNEL, small.view(), b.view(), &intercepts).unwrap();
        let expected = Evaluator::new(&small).unwrap().evaluate(x, Context::SEQUENTIAL).unwrap();
        for (a, b) in f.index_axis(Axis(0), size).iter().zip(&expected) {
            assert!((a - b).abs() < 1e-9);
        }
    }
}

#[test]
fn duplicates_are_not_chosen_twice() {
    let (half, coefficients, intercepts) = target(20, 1);
    let z: Vec<f64> = half.iter().chain(&half).copied().collect();
    let b: Vec<f64> = coefficients.iter().chain(&coefficients).copied().collect();
    let view = ExpansionView::new(KERNEL, rows(&z, 40), matrix(&b, 40), &intercepts).unwrap();
    let path = run(&view, None, 40, Selection::BackFitting);
    assert!(path.order.len() <= 20);
    assert!(path.residual_norms.last().unwrap() < &1e-3);
}

#[test]
fn bad_input_is_named() {
    let (z, coefficients, intercepts) = target(10, 1);
    let view = ExpansionView::new(KERNEL, rows(&z, 10), matrix(&coefficients, 10), &intercepts).unwrap();
    let error = |max_vectors, tolerance, view: &ExpansionView<'_>| {
        let params = changed(PursuitParams::new(max_vectors), |p| p.tolerance = tolerance);
        pursuit(view, None, &params, Context::SEQUENTIAL).unwrap_err().to_string()
    };
    assert!(error(11, 0.0, &view).contains("max_vectors=11") && error(11, 0.0, &view).contains("10"));
    assert!(error(0, 0.0, &view).contains("max_vectors=0"));
    assert!(error(1, 1.5, &view).contains("tolerance=1.5"));
    assert!(error(1, 0.0, &ExpansionView { kernel: Kernel::Precomputed, ..view }).contains("precomputed"));
    let path = PathView { projections: matrix(&[1.0], 1), form: Form::Factored(matrix(&[1.0], 1)) };
    assert!(path_coefficients(&path, 2).is_err());
    assert_eq!(path_coefficients(&path, 1).unwrap(), matrix(&[1.0], 1));
    for (vector_of_step, steps_of_size) in
        [(&[0, 1][..], &[2][..]), (&[0], &[1]), (&[0, 0], &[3]), (&[0, 0], &[2, 1])]
    {
        let form = Form::Basic { vector_of_step, steps_of_size };
        assert!(path_coefficients(&PathView { projections: matrix(&[1.0, 2.0], 2), form }, 1).is_err());
    }
}
