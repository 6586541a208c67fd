//! What holds for every file, whatever its bytes: one check a reader.
//!
//! Each reads the bytes and panics where a promise is broken. A reader never panics; it holds at most [`FOLD`] times
//! the bytes it was given, and [`FLOOR`]; what it accepts is finite, and is written to bytes that are read as the same
//! and written to the same bytes again. The fuzzing targets call these functions, and so does `cargo test` with the
//! files of `fuzz/corpus`.

mod stream;

use std::path::Path;

use svmarrow::data::Rows;
use svmarrow::expansion::KernelExpansion;
use svmarrow::io::libsvm_model::{self, LibsvmModel};
use svmarrow::io::safetensors::{self, Contents, ModelFile};
use svmarrow::io::svmlight::{self, IndexBase, ReadOptions, SvmlightData};

pub use stream::{perceptron, tree};

/// Most bytes that a reader holds for each byte of its input.
const FOLD: u64 = 16;
/// What it may hold besides: buffers of a fixed size, tables of names.
const FLOOR: u64 = 1 << 14;

/// What `read` gives, after a look at the memory it held at most.
pub(crate) fn measured<T>(input: u64, read: impl FnOnce() -> T) -> T {
    let mut result = None;
    let held = allocation_counter::measure(|| result = Some(read())).bytes_max;
    assert!(held <= FOLD * input + FLOOR, "{held} bytes held for {input} bytes of input");
    result.expect("measure calls its function")
}

pub(crate) fn all_finite<'a>(numbers: impl IntoIterator<Item = &'a f64>) -> bool {
    numbers.into_iter().all(|number| number.is_finite())
}

fn assert_sound(expansion: &KernelExpansion) {
    assert!(all_finite(&expansion.coefficients) && all_finite(&expansion.intercepts));
    expansion.vectors.view().check_finite("vectors").expect("what is read is finite");
    expansion.kernel.check().expect("what is read has a kernel");
}

fn model_bytes(model: &ModelFile) -> Vec<u8> {
    let expansions = model.expansions.iter().map(|(name, own)| (name.clone(), own.view())).collect();
    let contents = Contents { expansions, arrays: model.arrays.clone(), extra: &model.extra };
    safetensors::to_bytes(&contents).expect("what was read can be written")
}

/// svmarrow's model file.
pub fn model(bytes: &[u8]) {
    let path = Path::new("model");
    let Ok(model) = measured(bytes.len() as u64, || safetensors::from_bytes(bytes, path)) else { return };
    model.expansions.values().for_each(assert_sound);
    let written = model_bytes(&model);
    let again = safetensors::from_bytes(&written, path).expect("what was written can be read");
    assert_eq!(model_bytes(&again), written);
}

fn libsvm_text(model: &LibsvmModel) -> Vec<u8> {
    let mut text = Vec::new();
    let LibsvmModel { svm_type, expansion, labels, class_counts, probability, .. } = model;
    let (path, view) = (Path::new("m"), expansion.view());
    libsvm_model::write_to(&mut text, path, *svm_type, &view, labels, class_counts, probability)
        .expect("what was read can be written");
    text
}

/// LIBSVM's model text. Its coefficients, one for each vector and pair of classes, may be larger than the text by any
/// factor, since a line has one for each class only.
pub fn libsvm(bytes: &[u8]) {
    for n_features in [None, Some(4)] {
        let mut read = None;
        let held = allocation_counter::measure(|| {
            read = Some(libsvm_model::read_from(bytes, Path::new("m"), n_features, IndexBase::Auto));
        });
        let Some(Ok(model)) = read else {
            assert!(
                held.bytes_max <= FOLD * bytes.len() as u64 + FLOOR,
                "{held:?} for a text that is refused"
            );
            continue;
        };
        let matrix = 8 * model.expansion.coefficients.len() as u64;
        assert!(held.bytes_max <= FOLD * bytes.len() as u64 + matrix + FLOOR, "{held:?}");
        assert_sound(&model.expansion);
        let text = libsvm_text(&model);
        let again = libsvm_model::read_from(&text[..], Path::new("m"), n_features, IndexBase::Auto);
        let again = again.expect("what was written can be read");
        assert_eq!(again.expansion.coefficients, model.expansion.coefficients);
        assert_eq!(again.probability, model.probability);
        assert_eq!(libsvm_text(&again), text);
    }
}

fn svmlight_text(data: &SvmlightData) -> Vec<u8> {
    let mut text = Vec::new();
    svmlight::write_to(&mut text, Path::new("m"), data.rows.view(), &data.targets)
        .expect("what was read can be written");
    text
}

fn stored(rows: Rows<'_>) -> Vec<(usize, usize, f64)> {
    let mut all = Vec::new();
    for row in 0..rows.rows() {
        rows.for_each_in_row(row, |column, value| {
            if value != 0.0 {
                all.push((row, column, value));
            }
        });
    }
    all
}

fn options(base: IndexBase, n_features: Option<usize>, single_precision: bool) -> ReadOptions {
    let mut options = ReadOptions::default();
    (options.base, options.n_features, options.single_precision) = (base, n_features, single_precision);
    options
}

/// svmlight data, with columns counted in every way, in both precisions.
pub fn svmlight(bytes: &[u8]) {
    for base in [IndexBase::One, IndexBase::Zero, IndexBase::Auto] {
        for (single_precision, n_features) in [(false, None), (true, None), (false, Some(3))] {
            let found = options(base, n_features, single_precision);
            let read = || svmlight::read_from(bytes, Path::new("m"), &found);
            let Ok(data) = measured(bytes.len() as u64, read) else { continue };
            assert!(all_finite(&data.targets));
            data.rows.view().check_finite("rows").expect("what is read is finite");
            assert_eq!(data.rows.view().rows(), data.targets.len());
            let text = svmlight_text(&data);
            let found = options(IndexBase::One, n_features, single_precision);
            let again = svmlight::read_from(&text[..], Path::new("m"), &found);
            let again = again.expect("what was written can be read");
            assert_eq!(again.targets, data.targets);
            assert_eq!(stored(again.rows.view()), stored(data.rows.view()));
            assert_eq!(svmlight_text(&again), text);
        }
    }
}
