//! svmarrow's model file: bit for bit, in the library's own container, and safe against strangers.

use std::collections::BTreeMap;
use std::path::Path;

use ndarray::{Array2, ArrayView2, arr2, s};
use proptest::prelude::*;
use serde_json::json;
use svmarrow::Error;
use svmarrow::context::Context;
use svmarrow::data::{CsrView, IndexSlice, OwnedRows, Rows};
use svmarrow::expansion::{ExpansionView, KernelExpansion};
use svmarrow::io::libsvm_model::{self, SvmType};
use svmarrow::io::safetensors::{self as model_file, Array, Contents, Dtype};
use svmarrow::kernels::{Kernel, Smoothness};

use super::{Scratch, dense, iris, numbers};

fn expansions() -> Vec<KernelExpansion> {
    let x: Vec<f64> = iris().into_iter().take(6).flatten().collect();
    let coefficients = Array2::from_shape_vec((6, 3), numbers(1).take(18).collect()).unwrap();
    let intercepts = vec![0.1, -0.0, 1e-300];
    let (indptr, indices) = (vec![0, 2, 2, 3, 3, 4, 4], vec![0, 3, 1, i64::from(i32::MAX) - 1]);
    let cols = i32::MAX as usize;
    let make = |kernel, vectors| {
        KernelExpansion::new(kernel, vectors, coefficients.clone(), intercepts.clone()).unwrap()
    };
    vec![
        make(Kernel::Rbf { gamma: 0.1 }, Array2::from_shape_vec((6, 4), x.clone()).unwrap().into()),
        make(
            Kernel::Polynomial { degree: 3, gamma: 1.0 / 3.0, coef0: -0.7 },
            Array2::from_shape_vec((6, 4), x.iter().map(|&v| v as f32).collect()).unwrap().into(),
        ),
        make(
            Kernel::ChiSquared { gamma: 2.0 },
            Array2::<u8>::from_shape_vec((6, 7), (0..42).collect()).unwrap().into(),
        ),
        make(
            Kernel::Sigmoid { gamma: 5e-324, coef0: 1.0 },
            OwnedRows::from_csr(indptr.clone(), indices.clone(), x[..4].to_vec(), cols).unwrap(),
        ),
        make(
            Kernel::Matern { smoothness: Smoothness::FiveHalves, gamma: 0.1 },
            Array2::from_shape_vec((6, 4), x.clone()).unwrap().into(),
        ),
        make(
            Kernel::Laplacian { gamma: 1.7976931348623157e308 },
            OwnedRows::from_csr(indptr, indices, vec![1.0_f32, -0.0, 0.1, 2.0], cols).unwrap(),
        ),
        make(
            Kernel::Precomputed,
            Array2::from_shape_vec((6, 1), vec![5.0, 0.0, 3.0, 9.0, 8.0, 7.0]).unwrap().into(),
        ),
        KernelExpansion::new(
            Kernel::Linear,
            Array2::<f64>::from_shape_vec((0, 4), vec![]).unwrap().into(),
            Array2::zeros((0, 1)),
            vec![1.0],
        )
        .unwrap(),
    ]
}

fn read(bytes: &[u8]) -> svmarrow::Result<KernelExpansion> {
    Ok(model_file::from_bytes(bytes, Path::new("m"))?.expansions.remove("").unwrap())
}

fn bytes_of<'a>(expansion: &ExpansionView<'a>, extra: &'a str) -> Vec<u8> {
    let scratch = Scratch::new();
    let path = scratch.path("model.safetensors");
    model_file::write(&path, &Contents::of(expansion, extra), Context::default()).unwrap();
    std::fs::read(&path).unwrap()
}

#[test]
fn model_files_come_back_bit_for_bit() {
    let scratch = Scratch::new();
    let path = scratch.path("model.safetensors");
    let extra = "{\"class\": \"é\u{0}\\\"\", 170141183460469231731687303715884105728]";
    for expansion in expansions() {
        model_file::write(&path, &Contents::of(&expansion.view(), extra), Context::default()).unwrap();
        let first = std::fs::read(&path).unwrap();
        let back = model_file::read(&path, Context::default()).unwrap();
        assert!(back.arrays.is_empty());
        assert_eq!(back.extra, extra);
        let back = &back.expansions[""];
        assert_eq!(back, &expansion);
        assert_eq!(bytes_of(&back.view(), extra), first, "equal models are equal files");
        let signs: Vec<bool> = back.intercepts.iter().map(|b| b.is_sign_negative()).collect();
        assert_eq!(signs, expansion.intercepts.iter().map(|b| b.is_sign_negative()).collect::<Vec<_>>());
    }
}

#[test]
fn several_expansions_and_arrays_come_back() {
    let scratch = Scratch::new();
    let path = scratch.path("model.safetensors");
    let [first, .., sparse, _, _] = &expansions()[..] else { unreachable!() };
    let array = |dtype, shape: &[usize], bytes: &'static [u8]| Array {
        dtype,
        shape: shape.to_vec(),
        bytes: bytes.into(),
    };
    let contents = Contents {
        expansions: BTreeMap::from([(String::new(), first.view()), ("a.b".into(), sparse.view())]),
        arrays: BTreeMap::from([
            ("odd".into(), array(Dtype::U8, &[3], b"abc")),
            ("a.single".into(), array(Dtype::U16, &[], b"ab")),
            ("a.nan".into(), array(Dtype::F64, &[1, 1], &[255; 8])),
            ("truth".into(), array(Dtype::Bool, &[2], &[0, 1])),
            ("none".into(), array(Dtype::I32, &[0, 5], b"")),
        ]),
        extra: "text",
    };
    model_file::write(&path, &contents, Context::default()).unwrap();
    let back = model_file::read(&path, Context::default()).unwrap();
    assert_eq!((&back.expansions[""], &back.expansions["a.b"]), (first, sparse));
    assert_eq!((&back.arrays, back.expansions.len()), (&contents.arrays, 2));
    let bytes = std::fs::read(&path).unwrap();
    for (name, tensor) in ::safetensors::SafeTensors::deserialize(&bytes).unwrap().tensors() {
        assert_eq!(
            tensor.data().as_ptr().addr() % 8 % (tensor.dtype().bitsize() / 8),
            0,
            "{name} is aligned"
        );
    }
    for (name, array, part) in [
        ("x", array(Dtype::F64, &[1], b"abc"), "F64 of shape [1]"),
        ("a.b.vectors.indices", array(Dtype::U8, &[1], b"a"), "different names"),
    ] {
        let mut contents = contents.clone();
        contents.arrays.insert(name.into(), array);
        let message = model_file::write(&path, &contents, Context::default()).unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "what fails leaves the old file");
    let tensors = ::safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let truth = tensors.tensor("truth").unwrap().data().as_ptr().addr() - bytes.as_ptr().addr();
    let mut hostile = bytes.clone();
    hostile[truth] = 7;
    let message = model_file::from_bytes(&hostile, Path::new("m")).unwrap_err().to_string();
    assert!(message.contains("truth value"), "{message}");
}

#[test]
fn views_with_strides_and_narrow_indices_are_written() {
    let data: Vec<f32> = (0..20).map(|i| i as f32).collect();
    let data = ArrayView2::from_shape((4, 5), &data).unwrap();
    let strided = Rows::try_from(data.slice(s![.., ..3])).unwrap();
    let csr = CsrView::new(IndexSlice::I32(&[0, 1, 3]), IndexSlice::I32(&[2, 0, 1]), &[1.0_f64, 2.0, 3.0], 3)
        .unwrap();
    for rows in [strided, Rows::from(csr)] {
        let coefficients = Array2::ones((rows.rows(), 1));
        let view = ExpansionView::new(Kernel::Linear, rows, coefficients.view(), &[0.0]).unwrap();
        let back = read(&bytes_of(&view, "")).unwrap();
        assert_eq!(dense(back.vectors.view()), dense(rows));
        assert_eq!(
            (back.vectors.view().is_f64(), back.vectors.view().is_sparse()),
            (rows.is_f64(), rows.is_sparse())
        );
    }
}

#[test]
fn the_container_is_that_of_the_safetensors_library() {
    for expansion in expansions() {
        let bytes = bytes_of(&expansion.view(), "a");
        let (_, header) = ::safetensors::SafeTensors::read_metadata(&bytes).unwrap();
        let theirs = ::safetensors::SafeTensors::deserialize(&bytes).unwrap();
        assert_eq!(
            theirs.tensor("coefficients").unwrap().shape(),
            [expansion.view().len(), expansion.view().outputs()]
        );
        for (name, tensor) in theirs.tensors() {
            let start = header.info(&name).unwrap().data_offsets.0;
            assert_eq!(start % (tensor.dtype().bitsize() / 8), 0, "{name} is aligned");
        }
        // and what the library writes, in its own order, is read
        let again = ::safetensors::serialize(theirs.iter(), header.metadata().clone()).unwrap();
        assert_eq!(read(&again).unwrap(), expansion);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn parameters_survive(gamma in prop::num::f64::POSITIVE, coef0 in prop::num::f64::NORMAL, degree in any::<u32>()) {
        prop_assume!(gamma.is_finite());
        let mut expansion = expansions().swap_remove(0);
        expansion.kernel = Kernel::Polynomial { degree, gamma, coef0 };
        prop_assert_eq!(read(&bytes_of(&expansion.view(), "")).unwrap(), expansion);
    }

    #[test]
    fn damage_is_an_error_or_another_sound_model(
        which in 0_usize..8,
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        in_header in any::<bool>(),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = bytes_of(&expansions()[which].view(), "a");
        let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let reach = if in_header { header } else { bytes.len() };
        for (at, value) in flips {
            bytes[at.index(reach)] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        match model_file::from_bytes(&bytes, Path::new("m")) {
            Ok(model) => for expansion in model.expansions.into_values() {
                prop_assert!(ExpansionView::new(
                    expansion.kernel,
                    expansion.vectors.view(),
                    expansion.coefficients.view(),
                    &expansion.intercepts,
                ).is_ok());
            },
            Err(Error::Format { .. }) => {}
            Err(other) => prop_assert!(false, "{other:?}"),
        }
    }

}

#[test]
fn every_cut_of_a_model_file_is_an_error() {
    for expansion in expansions() {
        let bytes = bytes_of(&expansion.view(), "");
        for end in 0..bytes.len() {
            let message = model_file::from_bytes(&bytes[..end], Path::new("m")).unwrap_err().to_string();
            assert!(
                message.contains("cut off") || message.contains("not a safetensors file"),
                "{end}: {message}"
            );
        }
    }
}

/// A container from a header and data.
fn container(header: &serde_json::Value, data: &[u8]) -> Vec<u8> {
    let header = header.to_string().into_bytes();
    [&(header.len() as u64).to_le_bytes(), &header[..], data].concat()
}

/// A sound model of one vector in three columns, its header, and its data.
fn parts() -> (serde_json::Value, Vec<u8>) {
    let header = json!({
        "__metadata__": {
            "format": "svmarrow", "version": "1", "extra": "{}", "kernel": "{\"name\":\"rbf\",\"gamma\":1.0}",
            "vectors.shape": "[1,3]",
        },
        "intercepts": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]},
        "coefficients": {"dtype": "F64", "shape": [1, 1], "data_offsets": [8, 16]},
        "vectors.indptr": {"dtype": "I64", "shape": [2], "data_offsets": [16, 32]},
        "vectors.indices": {"dtype": "I64", "shape": [2], "data_offsets": [32, 48]},
        "vectors.values": {"dtype": "F64", "shape": [2], "data_offsets": [48, 64]},
    });
    let numbers = [1.0_f64.to_bits(), 2.0_f64.to_bits(), 0, 2, 0, 2, 3.0_f64.to_bits(), 4.0_f64.to_bits()];
    (header, numbers.iter().flat_map(|n| n.to_le_bytes()).collect())
}

#[test]
fn hostile_model_files_are_told_what_is_wrong() {
    let (header, data) = parts();
    assert!(model_file::from_bytes(&container(&header, &data), Path::new("m")).is_ok());
    let huge = 1_u64 << 61;
    for (pointer, value, part) in [
        ("/__metadata__", json!(3), "__metadata__ is not an object"),
        ("/__metadata__/format", json!("other"), "not a svmarrow model"),
        ("/__metadata__/version", json!("4"), "version \"4\": this build reads \"1\""),
        ("/__metadata__/version", json!(1), "\"version\" is not a string"),
        ("/__metadata__/extra", json!({}), "\"extra\" is not a string"),
        ("/__metadata__/kernel", json!("{"), "kernel is not JSON"),
        ("/__metadata__/kernel", json!("[".repeat(1_000_000)), "kernel is not JSON"),
        ("/__metadata__/kernel", json!("{}"), "kernel: no name"),
        ("/__metadata__/kernel", json!("{\"name\":\"spline\"}"), "kernel=\"spline\""),
        ("/__metadata__/kernel", json!("{\"name\":\"rbf\"}"), "rbf needs gamma"),
        ("/__metadata__/kernel", json!("{\"name\":\"rbf\",\"gamma\":-1}"), "gamma=-1"),
        (
            "/__metadata__/kernel",
            json!("{\"name\":\"poly\",\"gamma\":1,\"coef0\":0,\"degree\":-1}"),
            "poly needs degree",
        ),
        ("/__metadata__/vectors.shape", json!("[1]"), "two sizes"),
        ("/__metadata__/vectors.shape", json!("[18446744073709551615,3]"), "2 entries"),
        ("/__metadata__/vectors.shape", json!("[1,2]"), "column 2 of 2"),
        ("/intercepts/dtype", json!("BF16"), "dtype \"BF16\""),
        ("/intercepts/dtype", json!("I64"), "\"intercepts\" is I64, expected F64"),
        ("/intercepts/shape", json!([huge, 8]), "overflow"),
        ("/intercepts/shape", json!([huge, 0]), "needs 0 bytes"),
        ("/intercepts/shape", json!([-1]), "list of sizes"),
        ("/intercepts/shape", json!([1, 1]), "expected 1 sizes"),
        ("/intercepts/data_offsets", json!([8, 16]), "expected"),
        ("/intercepts/data_offsets", json!([8, 0]), "cut off"),
        ("/intercepts/data_offsets", json!([0]), "two offsets"),
        ("/vectors.values/data_offsets", json!([48, u64::MAX]), "cut off"),
        ("/coefficients/shape", json!([1]), "expected 2 sizes"),
    ] {
        let mut header = header.clone();
        *header.pointer_mut(pointer).unwrap() = value.clone();
        let message =
            model_file::from_bytes(&container(&header, &data), Path::new("m")).unwrap_err().to_string();
        assert!(message.contains(part), "{pointer}: {message}");
    }
    for name in ["intercepts", "coefficients", "vectors.values", "__metadata__"] {
        let mut header = header.clone();
        header.as_object_mut().unwrap().remove(name);
        assert!(model_file::from_bytes(&container(&header, &data), Path::new("m")).is_err(), "{name}");
    }
    for (at, number, part) in [
        (0, f64::NAN.to_bits(), "intercepts holds a value that is not finite"),
        (1, f64::INFINITY.to_bits(), "coefficients holds a value that is not finite"),
        (2, 1, "indptr starts at 1"),
        (3, u64::MAX, "indptr ends at"),
        (3, 1, "indptr ends at 1"),
        (4, 2, "not strictly increasing"),
        (5, u64::MAX, "has column"),
        (7, f64::NEG_INFINITY.to_bits(), "vectors holds a value that is not finite"),
    ] {
        let mut data = data.clone();
        data[at * 8..][..8].copy_from_slice(&number.to_le_bytes());
        let message =
            model_file::from_bytes(&container(&header, &data), Path::new("m")).unwrap_err().to_string();
        assert!(message.contains(part), "{at}: {message}");
    }
}

#[test]
fn sizes_that_take_no_room_are_not_believed() {
    let huge = 1_u64 << 62;
    let nothing =
        |dtype: &str, shape: [u64; 2]| json!({"dtype": dtype, "shape": shape, "data_offsets": [0, 0]});
    let metadata = |shape: &str| json!({"format": "svmarrow", "version": "1", "extra": "", "kernel": "{\"name\":\"linear\"}", "vectors.shape": shape});
    let none = json!({"dtype": "F64", "shape": [0], "data_offsets": [0, 0]});
    let (_, data) = parts();
    for (header, data, part) in [
        (
            json!({
                "__metadata__": metadata(""), "intercepts": none,
                "coefficients": nothing("F64", [huge, 0]), "vectors": nothing("U8", [huge, 0]),
            }),
            &[][..],
            "too large",
        ),
        (
            json!({
                "__metadata__": metadata(""), "intercepts": none,
                "coefficients": nothing("F64", [9, 0]), "vectors": nothing("U8", [9, 0]),
            }),
            &[],
            "no intercepts",
        ),
        (
            json!({"__metadata__": metadata("[1,1099511627776]"),
                "intercepts": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]},
                "coefficients": {"dtype": "F64", "shape": [1, 1], "data_offsets": [8, 16]},
                "vectors.indptr": {"dtype": "I64", "shape": [2], "data_offsets": [16, 32]},
                "vectors.indices": {"dtype": "I64", "shape": [2], "data_offsets": [32, 48]},
                "vectors.values": {"dtype": "F64", "shape": [2], "data_offsets": [48, 64]},
            }),
            &data,
            "more than 2147483647 columns",
        ),
    ] {
        let error = model_file::from_bytes(&container(&header, data), Path::new("m")).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
    let vectors = OwnedRows::from_csr::<f64>(vec![0], vec![], vec![], 1 << 40).unwrap();
    let coefficients = Array2::zeros((0, 1));
    let view = ExpansionView::new(Kernel::Linear, vectors.view(), coefficients.view(), &[0.0]).unwrap();
    let error = model_file::to_bytes(&Contents::of(&view, "")).unwrap_err();
    assert!(error.to_string().contains("columns=1099511627776"), "{error}");
}

#[test]
fn other_files_are_not_models() {
    let scratch = Scratch::new();
    for (bytes, part) in [
        (&b""[..], "too few"),
        (b"svm_type c_svc\n", "not a safetensors file"),
        (b"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00pickle", "not a safetensors file"),
        (b"\xff\xff\xff\xff\xff\xff\xff\xff{}", "not a safetensors file"),
        (b"\xff\x00\x00\x00\x00\x00\x00\x00{}", "cut off"),
        (b"\x02\x00\x00\x00\x00\x00\x00\x00{}", "not a svmarrow model"),
        (b"\x02\x00\x00\x00\x00\x00\x00\x00{}more", "the file at 4"),
        (b"\x03\x00\x00\x00\x00\x00\x00\x00{\xff}", "not JSON"),
    ] {
        let path = scratch.file("other", bytes);
        let error = model_file::read(&path, Context::default()).unwrap_err();
        assert!(matches!(error, Error::Format { .. }) && error.to_string().contains(part), "{error}");
    }
    assert!(matches!(model_file::read(&scratch.path("absent"), Context::default()), Err(Error::Io { .. })));
    assert!(matches!(
        model_file::read(Path::new("/"), Context::default()),
        Err(Error::Io { .. } | Error::Format { .. })
    ));
}

#[test]
fn a_model_that_is_not_sound_is_not_written() {
    let scratch = Scratch::new();
    let path = scratch.file("model", "old");
    let vectors = OwnedRows::from(arr2(&[[f64::NAN]]));
    for (vectors, coefficients) in [
        (&vectors, arr2(&[[1.0]])),
        (&OwnedRows::from(arr2(&[[1_u8]])), arr2(&[[f64::INFINITY]])),
        (&OwnedRows::from(arr2(&[[1_u8]])), Array2::zeros((0, 1))),
    ] {
        let view = ExpansionView {
            kernel: Kernel::Linear,
            vectors: vectors.view(),
            coefficients: coefficients.view(),
            intercepts: &[0.0],
        };
        assert!(model_file::write(&path, &Contents::of(&view, ""), Context::default()).is_err());
        assert!(
            libsvm_model::write(
                &path,
                SvmType::EpsilonSvr,
                &view,
                &[],
                &[],
                &libsvm_model::ProbabilityParams::default(),
                Context::default()
            )
            .is_err()
        );
    }
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
}
