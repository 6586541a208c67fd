//! LIBSVM models against `svm-train` and `svm-predict` (3.2 or newer): a test that needs them says so and passes
//! where they are missing.

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use ndarray::{Array2, arr2};
use proptest::prelude::*;
use svmarrow::context::Context;
use svmarrow::data::OwnedRows;
use svmarrow::expansion::{ExpansionView, KernelExpansion};
use svmarrow::io::libsvm_model::{self, LibsvmModel, ProbabilityParams, SvmType};
use svmarrow::io::svmlight::{self, IndexBase, ReadOptions};
use svmarrow::kernels::{Kernel, Smoothness};
use svmarrow::{Error, Result};

use super::{IRIS, Scratch, dense, iris, numbers};

fn libsvm_is_here() -> bool {
    let found = ["svm-train", "svm-predict"]
        .iter()
        .all(|tool| Command::new(tool).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok());
    if !found {
        println!("skipped: svm-train and svm-predict are not installed");
    }
    found
}

/// A model without probabilities.
fn none() -> ProbabilityParams {
    ProbabilityParams::default()
}

fn run(tool: &str, options: &str, files: &[&Path]) {
    let done = Command::new(tool).args(options.split_whitespace()).args(files).output().unwrap();
    assert!(done.status.success(), "{tool} {options}: {}", String::from_utf8_lossy(&done.stderr));
}

fn svm_predict(scratch: &Scratch, data: &Path, model: &Path) -> Vec<f64> {
    let out = scratch.path("predicted");
    run("svm-predict", "-q", &[data, model, &out]);
    std::fs::read_to_string(out).unwrap().lines().map(|line| line.parse().unwrap()).collect()
}

/// The kernel's formula, written down once more and without any of the crate's code.
fn naive_kernel(kernel: Kernel, x: &[f64], z: &[f64]) -> f64 {
    let dot: f64 = x.iter().zip(z).map(|(a, b)| a * b).sum();
    match kernel {
        Kernel::Linear => dot,
        Kernel::Polynomial { degree, gamma, coef0 } => (gamma * dot + coef0).powi(degree as i32),
        Kernel::Rbf { gamma } => (-gamma * x.iter().zip(z).map(|(a, b)| (a - b).powi(2)).sum::<f64>()).exp(),
        Kernel::Sigmoid { gamma, coef0 } => (gamma * dot + coef0).tanh(),
        Kernel::Precomputed => x[z[0] as usize],
        other => panic!("{other:?}"),
    }
}

fn outputs(expansion: &ExpansionView<'_>, x: &[f64]) -> Vec<f64> {
    let mut f = expansion.intercepts.to_vec();
    for (z, weights) in dense(expansion.vectors).iter().zip(expansion.coefficients.rows()) {
        let value = naive_kernel(expansion.kernel, x, z);
        f.iter_mut().zip(weights).for_each(|(f, w)| *f += w * value);
    }
    f
}

/// LIBSVM's decision: the first class with the most votes, the sign, or the value.
fn decide(svm_type: SvmType, labels: &[i32], f: &[f64]) -> f64 {
    if !svm_type.is_classifier() {
        return if svm_type == SvmType::OneClass { if f[0] > 0.0 { 1.0 } else { -1.0 } } else { f[0] };
    }
    let mut votes = vec![0; labels.len()];
    let mut f = f.iter();
    for a in 0..labels.len() {
        for b in a + 1..labels.len() {
            votes[if *f.next().unwrap() > 0.0 { a } else { b }] += 1;
        }
    }
    let best = (0..votes.len()).rev().max_by_key(|&c| votes[c]).unwrap();
    f64::from(labels[best])
}

fn predict(svm_type: SvmType, labels: &[i32], expansion: &ExpansionView<'_>, x: &[Vec<f64>]) -> Vec<f64> {
    x.iter().map(|x| decide(svm_type, labels, &outputs(expansion, x))).collect()
}

fn assert_close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        // older versions of svm-predict print six digits
        assert!((a - b).abs() <= 2e-5 * b.abs().max(1.0), "row {i}: {a} and {b}");
    }
}

fn predict_read(model: &LibsvmModel, x: &[Vec<f64>]) -> Vec<f64> {
    predict(model.svm_type, &model.labels, &model.expansion.view(), x)
}

fn binary_iris() -> String {
    IRIS.lines().filter(|line| !line.starts_with('0')).flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn models_of_svm_train_are_read_and_written_back() {
    if !libsvm_is_here() {
        return;
    }
    let scratch = Scratch::new();
    let iris = scratch.file("iris", IRIS);
    let binary = scratch.file("binary", binary_iris());
    let (model, again) = (scratch.path("model"), scratch.path("again"));
    let kernels = ["-t 0", "-t 1 -r 0.5 -d 2 -g 0.3", "-t 2 -g 0.7", "-t 3 -g 0.01 -r -0.1"];
    for (options, data, outputs, probability) in [
        ("-s 0 -c 1", &iris, 3, false),
        ("-s 0 -c 3 -b 1", &iris, 3, true),
        ("-s 0 -c 2", &binary, 1, false),
        ("-s 1 -n 0.3", &iris, 3, false),
        ("-s 2 -n 0.2", &iris, 1, false),
        ("-s 3 -p 0.2", &iris, 1, false),
        ("-s 4 -n 0.4 -b 1", &iris, 1, true),
        ("-s 4 -n 0.4", &iris, 1, false),
    ] {
        for kernel in kernels {
            run("svm-train", &format!("-q {options} {kernel}"), &[data, &model]);
            let read = libsvm_model::read(&model, Some(4), IndexBase::Auto, Context::default()).unwrap();
            assert_eq!(
                (read.expansion.intercepts.len(), !read.probability.is_empty()),
                (outputs, probability)
            );
            let rows = svmlight::read(data, &ReadOptions::default(), Context::default()).unwrap();
            let expected = svm_predict(&scratch, data, &model);
            assert_close(&predict_read(&read, &dense(rows.rows.view())), &expected);

            let LibsvmModel { svm_type, expansion, labels, class_counts, probability, .. } = &read;
            libsvm_model::write(
                &again,
                *svm_type,
                &expansion.view(),
                labels,
                class_counts,
                probability,
                Context::default(),
            )
            .unwrap();
            let back = libsvm_model::read(&again, Some(4), IndexBase::Auto, Context::default()).unwrap();
            assert_eq!(back, read, "{options} {kernel}");
            assert_eq!(svm_predict(&scratch, data, &again), expected, "{options} {kernel}");

            // Without the counts the signs tell the classes; the order within the file may change, not the model.
            libsvm_model::write(
                &again,
                *svm_type,
                &expansion.view(),
                labels,
                &[],
                &none(),
                Context::default(),
            )
            .unwrap();
            let back = libsvm_model::read(&again, Some(4), IndexBase::Auto, Context::default()).unwrap();
            assert_eq!(back.expansion.view().len(), expansion.view().len());
            assert_close(&svm_predict(&scratch, data, &again), &expected);
        }
    }
}

#[test]
fn a_precomputed_kernel_of_svm_train() {
    if !libsvm_is_here() {
        return;
    }
    let scratch = Scratch::new();
    let x = iris();
    let gram: Vec<Vec<f64>> = x
        .iter()
        .map(|a| x.iter().map(|b| naive_kernel(Kernel::Rbf { gamma: 0.5 }, a, b)).collect())
        .collect();
    let mut text = String::new();
    for (i, (row, line)) in gram.iter().zip(IRIS.lines()).enumerate() {
        write!(text, "{} 0:{}", &line[..1], i + 1).unwrap();
        for (j, value) in row.iter().enumerate() {
            write!(text, " {}:{value:?}", j + 1).unwrap();
        }
        text.push('\n');
    }
    let data = scratch.file("gram", text);
    let (model, again) = (scratch.path("model"), scratch.path("again"));
    run("svm-train", "-q -t 4 -c 2", &[&data, &model]);
    let read = libsvm_model::read(&model, Some(150), IndexBase::Auto, Context::default()).unwrap();
    let expected = svm_predict(&scratch, &data, &model);
    assert_close(&predict_read(&read, &gram), &expected);
    libsvm_model::write(
        &again,
        read.svm_type,
        &read.expansion.view(),
        &read.labels,
        &read.class_counts,
        &none(),
        Context::default(),
    )
    .unwrap();
    assert_eq!(libsvm_model::read(&again, None, IndexBase::Auto, Context::default()).unwrap(), read);
    assert_eq!(svm_predict(&scratch, &data, &again), expected);
    assert!(
        libsvm_model::read(&model, Some(100), IndexBase::Auto, Context::default())
            .unwrap_err()
            .to_string()
            .contains("training row")
    );
}

/// An expansion as joint compression makes it: any vector may have weight in any pair.
fn joint(k: usize, m: usize, kernel: Kernel, filled: f64) -> KernelExpansion {
    let q = k * (k - 1) / 2;
    let rows: Vec<usize> = (0..m).map(|i| i * 7 % 150).collect();
    let x = iris();
    let data = rows.iter().flat_map(|&i| x[i].clone()).collect();
    let mut random = numbers((k * 1000 + m) as u64);
    let mut weight = || if random.next().unwrap().abs() < filled { random.next().unwrap() } else { 0.0 };
    let coefficients = Array2::from_shape_simple_fn((m, q), &mut weight);
    let intercepts = numbers(5).take(q).collect();
    KernelExpansion::new(
        kernel,
        Array2::from_shape_vec((m, 4), data).unwrap().into(),
        coefficients,
        intercepts,
    )
    .unwrap()
}

#[test]
fn compressed_models_keep_their_outputs() {
    let scratch = Scratch::new();
    let data = scratch.file("iris", IRIS);
    let model = scratch.path("model");
    let x = iris();
    let has_libsvm = libsvm_is_here();
    let kernels = [
        Kernel::Linear,
        Kernel::Polynomial { degree: 3, gamma: 0.1, coef0: 1.0 / 3.0 },
        Kernel::Rbf { gamma: 0.1 },
        Kernel::Sigmoid { gamma: 0.01, coef0: -0.5 },
    ];
    for (case, (k, m, filled)) in
        [(2, 5, 1.0), (3, 20, 1.0), (3, 20, 0.3), (6, 12, 0.2), (10, 30, 1.0), (3, 0, 1.0)]
            .into_iter()
            .enumerate()
    {
        let expansion = joint(k, m, kernels[case % 4], filled);
        let labels: Vec<i32> = (0..k as i32).map(|c| 7 - 3 * c).collect();
        libsvm_model::write(
            &model,
            SvmType::CSvc,
            &expansion.view(),
            &labels,
            &[],
            &none(),
            Context::default(),
        )
        .unwrap();
        let read = libsvm_model::read(&model, Some(4), IndexBase::Auto, Context::default()).unwrap();
        assert_eq!((&read.labels, read.expansion.kernel), (&labels, expansion.kernel));
        assert!(read.expansion.view().len() <= m * (k - 1), "more than k - 1 copies of a vector");

        // Each coefficient exactly once: summed over equal vectors, the file's B is ours bit for bit.
        let written = dense(read.expansion.vectors.view());
        let q = expansion.intercepts.len();
        for (i, z) in dense(expansion.vectors.view()).iter().enumerate() {
            for p in 0..q {
                let sum: f64 = (0..written.len())
                    .filter(|&w| &written[w] == z)
                    .map(|w| read.expansion.coefficients[[w, p]])
                    .sum();
                assert_eq!(sum, expansion.coefficients[[i, p]], "vector {i}, output {p}");
            }
        }
        assert_eq!(read.expansion.intercepts, expansion.intercepts);
        let expected = predict(SvmType::CSvc, &labels, &expansion.view(), &x);
        assert_close(&predict_read(&read, &x), &expected);
        if has_libsvm {
            assert_eq!(svm_predict(&scratch, &data, &model), expected, "{k} classes, {m} vectors");
        }
    }
}

#[test]
fn a_vector_is_listed_as_seldom_as_its_pairs_allow() {
    let scratch = Scratch::new();
    let path = scratch.path("model");
    // Pairs of 4 classes: 01 02 03 12 13 23. A star at class 2, a single pair seen from its negative side, a
    // triangle (two classes cover it), two separate pairs, nothing.
    let coefficients = arr2(&[
        [0.0, -1.0, 0.0, 2.0, 0.0, 3.0],
        [0.0, 0.0, 0.0, 0.0, -1.0, 0.0],
        [1.0, 1.0, 0.0, 1.0, 0.0, 0.0],
        [1.0, 0.0, 0.0, 0.0, 0.0, 1.0],
        [0.0; 6],
    ]);
    let vectors = Array2::from_shape_vec((5, 1), vec![1.0, 2.0, 3.0, 4.0, 5.0]).unwrap().into();
    let expansion = KernelExpansion::new(Kernel::Linear, vectors, coefficients, vec![0.0; 6]).unwrap();
    libsvm_model::write(
        &path,
        SvmType::CSvc,
        &expansion.view(),
        &[1, 2, 3, 4],
        &[],
        &none(),
        Context::default(),
    )
    .unwrap();
    let read = libsvm_model::read(&path, None, IndexBase::Auto, Context::default()).unwrap();
    let mut listed: Vec<f64> = dense(read.expansion.vectors.view()).concat();
    listed.sort_by(f64::total_cmp);
    assert_eq!(listed, [1.0, 2.0, 3.0, 3.0, 4.0, 4.0, 5.0]);
    // the star is in the block of class 2, the single pair 13 in that of class 3
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("\n-1 2 3 1:1 \n") && text.contains("\n0 -1 0 1:2 \n"), "{text}");
}

#[test]
fn probability_parameters_fit_the_model() {
    let scratch = Scratch::new();
    let path = scratch.path("model");
    let vectors = OwnedRows::from_csr(vec![0, 1], vec![0], vec![1.0], 1).unwrap();
    let expansion = KernelExpansion::new(Kernel::Linear, vectors, Array2::ones((1, 1)), vec![0.0]).unwrap();
    let write = |svm_type, labels: &[i32], prob_a: &[f64], prob_b: &[f64]| {
        let given = ProbabilityParams::new(prob_a.to_vec(), prob_b.to_vec());
        libsvm_model::write(&path, svm_type, &expansion.view(), labels, &[], &given, Context::default())?;
        let read = libsvm_model::read(&path, None, IndexBase::One, Context::default())?;
        assert_eq!(read.probability, given);
        Ok::<_, Error>(())
    };
    write(SvmType::CSvc, &[1, 2], &[-1.0 / 3.0], &[1e-300]).unwrap();
    write(SvmType::NuSvr, &[], &[0.25], &[]).unwrap();
    for (svm_type, labels, prob_a, prob_b) in [
        (SvmType::CSvc, &[1, 2][..], &[1.0][..], &[][..]),
        (SvmType::CSvc, &[1, 2], &[1.0, 2.0], &[1.0, 2.0]),
        (SvmType::CSvc, &[1, 2], &[f64::NAN], &[1.0]),
        (SvmType::EpsilonSvr, &[], &[1.0], &[1.0]),
        (SvmType::EpsilonSvr, &[], &[1.0, 2.0], &[]),
    ] {
        assert!(matches!(write(svm_type, labels, prob_a, prob_b), Err(Error::Param { .. })));
    }
    let text = std::fs::read_to_string(&path).unwrap();
    for (line, message) in [
        ("probA 1 2", "probA and probB have 2 and 0 values, expected 1 and 0"),
        ("probB 1", "probA and probB have 0 and 1 values"),
        ("probA x", "probA"),
        ("probA nan", "probA"),
    ] {
        let changed = text.replace("probA 0.25", line);
        let error = small(&changed).unwrap_err().to_string();
        assert!(error.contains(message), "{line}: {error}");
    }
}

#[test]
fn what_libsvm_cannot_hold_is_refused() {
    let scratch = Scratch::new();
    let path = scratch.file("model", "old");
    let vectors = |cols| OwnedRows::from_csr::<f64>(vec![0, 0], vec![], vec![], cols).unwrap();
    let write = |kernel, cols, q: usize, svm_type, labels: &[i32], counts: &[usize]| {
        let expansion =
            KernelExpansion::new(kernel, vectors(cols), Array2::ones((1, q)), vec![0.0; q]).unwrap();
        libsvm_model::write(&path, svm_type, &expansion.view(), labels, counts, &none(), Context::default())
            .unwrap_err()
            .to_string()
    };
    let rbf = Kernel::Rbf { gamma: 1.0 };
    let matern = Kernel::Matern { smoothness: Smoothness::Half, gamma: 1.0 };
    for (message, part) in [
        (write(Kernel::Laplacian { gamma: 1.0 }, 1, 1, SvmType::CSvc, &[0, 1], &[]), "kernel=laplacian"),
        (write(Kernel::ChiSquared { gamma: 1.0 }, 1, 1, SvmType::CSvc, &[0, 1], &[]), "kernel=chi2"),
        (write(matern, 1, 1, SvmType::CSvc, &[0, 1], &[]), "kernel=matern12"),
        (write(rbf, 1 << 40, 1, SvmType::CSvc, &[0, 1], &[]), "columns=1099511627776"),
        (write(rbf, 1, 4, SvmType::CSvc, &[0, 1, 2, 3], &[]), "outputs=4"),
        (write(rbf, 1, 1, SvmType::NuSvc, &[0], &[]), "labels=[0]"),
        (write(rbf, 1, 1, SvmType::NuSvc, &[3, 3], &[]), "labels=3"),
        (write(rbf, 1, 1, SvmType::CSvc, &[0, 1], &[1]), "class counts"),
        (write(rbf, 1, 1, SvmType::CSvc, &[0, 1], &[1, 1]), "sum of the class counts"),
        (write(rbf, 1, 1, SvmType::CSvc, &[0, 1], &[usize::MAX, 2]), "sum of the class counts"),
        (write(rbf, 1, 2, SvmType::EpsilonSvr, &[], &[]), "outputs"),
        (write(rbf, 1, 1, SvmType::OneClass, &[1], &[]), "labels"),
        (write(Kernel::Precomputed, 2, 1, SvmType::CSvc, &[0, 1], &[]), "precomputed"),
    ] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
}

const SMALL: &str = "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 3\ntotal_sv 3\nrho 0.1 0.2 0.3\n\
                     label 1 2 3\nnr_sv 1 1 1\nSV\n1 0.5 1:1 \n-1 0.25 2:1 \n-0.5 -0.25 1:-1 3:2 \n";

fn small(text: &str) -> Result<LibsvmModel> {
    libsvm_model::read_from(text.as_bytes(), Path::new("m"), None, IndexBase::One)
}

#[test]
fn the_small_model() {
    let model = small(SMALL).unwrap();
    let expected = arr2(&[[1.0, 0.5, 0.0], [-1.0, 0.0, 0.25], [0.0, -0.5, -0.25]]);
    assert_eq!(model.expansion.coefficients, expected);
    assert_eq!(model.expansion.intercepts, [-0.1, -0.2, -0.3]);
    assert_eq!((model.labels, model.class_counts), (vec![1, 2, 3], vec![1, 1, 1]));
    assert!(small(&SMALL.replace('\n', "\r\n")).is_ok());
}

#[test]
fn hostile_libsvm_models_get_an_error_with_its_line() {
    for (from, to, line, part) in [
        ("c_svc", "c_swc", 1, "svm_type \"c_swc\""),
        ("c_svc", "c_svc c_svc", 1, "one value, found 2"),
        ("kernel_type rbf", "kernel_type \u{1}", 9, "kernel_type \"\\u{1}\""),
        ("kernel_type rbf\n", "", 8, "no line kernel_type"),
        ("gamma 0.5", "coef0 0.5", 9, "no line gamma"),
        ("gamma 0.5", "gamma nan", 3, "not a finite number"),
        ("gamma 0.5", "gamma -1", 9, "gamma=-1"),
        ("gamma 0.5", "gamma 0.5\ngamma 0.5", 4, "twice"),
        ("gamma 0.5", "gamma", 3, "found 0"),
        ("gamma 0.5", "<html>", 3, "\"<html>\" is no header line"),
        ("nr_class 3", "nr_class 1", 9, "nr_class=1"),
        ("nr_class 3", "nr_class 18446744073709551615", 9, "label has 3"),
        ("nr_class 3", "nr_class 99999999999999999999", 4, "not a count"),
        ("nr_class 3", "nr_class -3", 4, "not a count"),
        ("total_sv 3", "total_sv 1000000000000000000", 9, "do not add up"),
        ("rho 0.1 0.2", "rho 0.1", 9, "rho has 2"),
        ("label 1 2 3", "label 1 2 2", 9, "label 2 appears twice"),
        ("label 1 2 3", "label 1 2 3.5", 7, "label \"3.5\""),
        ("label 1 2 3\n", "", 8, "no line label"),
        ("nr_sv 1 1 1", "nr_sv 1 1 2", 9, "do not add up"),
        ("nr_sv 1 1 1", "nr_sv 18446744073709551615 2 2", 9, "do not add up"),
        ("1 0.5 1:1", "1 1:1", 10, "1 coefficients, expected 2"),
        ("1 0.5 1:1", "1 inf 1:1", 10, "coefficient \"inf\""),
        ("1 0.5 1:1", "1 0.5 0.5 1:1", 10, "no colon"),
        ("1 0.5 1:1", "1 0.5 0:1", 10, "index 0"),
        ("1 0.5 1:1", "1 0.5 1:1 1:1", 10, "twice"),
        ("1 0.5 1:1", "1 0.5 3:1 1:1 3:2", 10, "index 3 appears twice"),
        ("SV\n", "SV\n\n", 10, "blank line"),
        ("-1 0.25 2:1 \n", "", 11, "after 2 support vectors"),
        ("3:2 \n", "3:2 \n1 1 1:1\n", 13, "more support vectors"),
        ("3:2 \n", "3:2", 12, "ends within"),
        ("3:2 \n", "3:", 12, "not a number"),
        ("SV\n", "", 9, "is no header line"),
    ] {
        assert!(SMALL.contains(from), "{from}");
        let message = small(&SMALL.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(message.starts_with(&format!("m:{line}: ")) && message.contains(part), "{to}: {message}");
    }
    let huge = "svm_type one_class\nkernel_type linear\nnr_class 2\ntotal_sv 1000000000000000000\nrho 1\nSV\n1 1:1\n";
    assert_eq!(
        small(huge).unwrap_err().to_string(),
        "m:7: the file ends after 1 support vectors; total_sv is 1000000000000000000"
    );
    assert!(small("").unwrap_err().to_string().contains("before the line SV"));
    assert!(
        small("svm_type epsilon_svr\nkernel_type linear\nnr_class 2\ntotal_sv 0\nrho 1\nlabel 1 2\nSV\n")
            .is_err()
    );
}

#[test]
fn every_cut_of_a_libsvm_model_is_an_error() {
    for end in 0..SMALL.len() {
        assert!(small(&SMALL[..end]).is_err(), "{:?}", &SMALL[..end]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn damaged_text_is_an_error_or_another_sound_model(
        flips in prop::collection::vec((any::<prop::sample::Index>(), "[-0-9a-z.: \n]"), 1..5),
    ) {
        let mut bytes = SMALL.as_bytes().to_vec();
        for (at, value) in flips {
            let at = at.index(bytes.len());
            bytes[at] = value.as_bytes()[0];
        }
        match libsvm_model::read_from(&bytes[..], Path::new("m"), None, IndexBase::Auto) {
            Ok(model) => {
                let view = model.expansion.view();
                prop_assert!(ExpansionView::new(view.kernel, view.vectors, view.coefficients, view.intercepts).is_ok());
            }
            Err(Error::Format { .. }) => {}
            Err(other) => prop_assert!(false, "{other:?}"),
        }
    }
}
