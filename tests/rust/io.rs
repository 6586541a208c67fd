//! Model files against LIBSVM's own programs, against the safetensors library, and against damage.

mod corpus;
mod libsvm_model;
mod safetensors;
mod stops;

use std::path::{Path, PathBuf};

use svmarrow::data::Rows;
use svmarrow::io::svmlight::{self, ReadOptions};

/// Fisher's iris in LIBSVM's form: 150 rows, 4 columns, labels 0, 1, 2.
const IRIS: &str = include_str!("iris.svmlight");

pub(crate) struct Scratch(tempfile::TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

fn dense(rows: Rows<'_>) -> Vec<Vec<f64>> {
    let mut out = vec![vec![0.0; rows.cols()]; rows.rows()];
    for (i, row) in out.iter_mut().enumerate() {
        rows.for_each_in_row(i, |j, v| row[j] = v);
    }
    out
}

pub(crate) fn iris() -> Vec<Vec<f64>> {
    let data = svmlight::read_from(IRIS.as_bytes(), Path::new("iris"), &ReadOptions::default()).unwrap();
    dense(data.rows.view())
}

/// Numbers in (-1, 1) that look random and are the same everywhere.
fn numbers(seed: u64) -> impl Iterator<Item = f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    })
}
