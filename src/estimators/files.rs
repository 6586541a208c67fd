//! Saving and loading of fitted models. The files are those of the Python package, which reads and writes the same.

use super::model::{Classifier, Detector, Model, Regressor, Strategy};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::expansion::KernelExpansion;
use crate::io::safetensors::{Array, Contents, Dtype, ModelFile, read, write};
use serde_json::{Value, json};
use std::path::Path;

/// The array of the labels in a file.
const CLASSES: &str = "classes";

/// The number of the schemas that this crate reads and writes; `docs/file-format.md` lists them.
const NUMBER: &str = "1";

/// Fields that change no label and no output.
const IGNORED: [&str; 15] = [
    "about",
    "calibration",
    "classes",
    "decision_function_shape",
    "decoding",
    "distillation_",
    "expansion",
    "feature_names",
    "flat",
    "loss_bound_",
    "n_features",
    "n_jobs",
    "quantization_",
    "schema",
    "weighted",
];

/// Fields that change the predictions of a model, with the values that models of this crate have.
const PLAIN: [(&str, Value); 4] = [
    ("break_ties", Value::Bool(false)),
    ("code", Value::Null),
    ("decoder", Value::Null),
    ("preparation", Value::Null),
];

fn save(
    path: &Path,
    expansion: &KernelExpansion,
    schema: &str,
    mut description: Value,
    classes: Option<Array<'_>>,
) -> Result<()> {
    description["schema"] = format!("{schema}/{NUMBER}").into();
    description["expansion"] = json!({ "schema": format!("expansion/{NUMBER}") });
    let extra = description.to_string();
    let mut contents = Contents::of(&expansion.view(), &extra);
    contents.arrays.extend(classes.map(|array| (CLASSES.to_owned(), array)));
    write(path, &contents, Context::default())
}

/// Reads a file and returns its expansion, the description of its model, and what else the file holds.
fn load(path: &Path, schema: &str) -> Result<(KernelExpansion, Value, ModelFile)> {
    let mut file = read(path, Context::default())?;
    let refuse = |message: String| Error::Format { path: path.to_path_buf(), line: 0, message };
    let description: Value =
        serde_json::from_str(&file.extra).map_err(|error| refuse(format!("extra is not JSON: {error}")))?;
    let expected = format!("{schema}/{NUMBER}");
    if description["schema"] != *expected {
        return Err(refuse(format!("it holds schema {}, expected {expected:?}", description["schema"])));
    }
    let of_one = format!("expansion/{NUMBER}");
    if description["expansion"]["schema"] != *of_one {
        return Err(refuse(format!(
            "its expansion is of schema {}, expected {of_one:?}",
            description["expansion"]["schema"]
        )));
    }
    for (name, value) in description.as_object().into_iter().flatten() {
        let is_plain = PLAIN.iter().any(|(plain, default)| plain == name && default == value)
            || (name == "predict_by" && value == "scores");
        if !is_plain && !IGNORED.contains(&name.as_str()) {
            return Err(refuse(format!("{name}={value} of schema {expected:?} is not supported")));
        }
    }
    let expansion = file
        .expansions
        .remove("")
        .ok_or_else(|| refuse("a sum or a tree of several expansions is not supported here".to_owned()))?;
    Ok((expansion, description, file))
}

impl<L: Copy + TryInto<i64>> Classifier<L> {
    /// Saves the model, all or nothing; `svmarrow.load` reads the file in Python. Labels must be integers.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Param`] for a label beyond 64 bits, [`Error::Memory`].
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let mut bytes = Vec::new();
        for label in self.classes() {
            let number: i64 = (*label)
                .try_into()
                .map_err(|_| Error::param("labels", "a label", "an integer of 64 bits"))?;
            bytes.extend(number.to_le_bytes());
        }
        let classes = Array { dtype: Dtype::I64, shape: vec![self.classes().len()], bytes: bytes.into() };
        let decoding = match self.strategy() {
            _ if self.classes().len() == 2 => "binary",
            Strategy::OneVsOne => "ovo",
            Strategy::OneVsRest => "ovr",
        };
        let description = json!({ "classes": { "array": CLASSES }, "decoding": decoding });
        save(path.as_ref(), self.expansion(), "classifier", description, Some(classes))
    }
}

impl Classifier<i64> {
    /// Loads a classifier that [`Classifier::save`] or `svmarrow.save` in Python has written. Labels must be integers; codes and
    /// steps of a pipeline are not supported.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Format`] for another kind of model or file, [`Error::Memory`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let (expansion, description, file) = load(path, "classifier")?;
        let refuse =
            |message: &str| Error::Format { path: path.to_path_buf(), line: 0, message: message.to_owned() };
        let strategy = match description["decoding"].as_str() {
            Some("binary" | "ovo") => Strategy::OneVsOne,
            Some("ovr") => Strategy::OneVsRest,
            _ => return Err(refuse("decoding must be binary, ovo or ovr")),
        };
        let array = description["classes"]["array"].as_str().and_then(|name| file.arrays.get(name));
        let Some(Array { dtype: Dtype::I64, bytes, .. }) = array else {
            return Err(refuse("the labels must be integers of 64 bits"));
        };
        let classes: Vec<i64> = bytes.as_chunks().0.iter().map(|label| i64::from_le_bytes(*label)).collect();
        if !classes.is_sorted_by(|a, b| a < b) {
            return Err(refuse("the labels must be distinct and in ascending order"));
        }
        Self::new(expansion, classes, strategy, Vec::new()).map_err(|error| refuse(&error.to_string()))
    }
}

impl Regressor {
    /// Saves the model, all or nothing; `svmarrow.load` reads the file in Python.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Memory`].
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        save(path.as_ref(), self.expansion(), "regressor", json!({ "flat": true }), None)
    }

    /// Loads a regressor with one output that [`Regressor::save`] or `svmarrow.save` in Python has written.
    ///
    /// # Errors
    /// The errors of [`Classifier::load`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        Self::new(load(path.as_ref(), "regressor")?.0, None)
    }
}

impl Detector {
    /// Saves the model, all or nothing; `svmarrow.load` reads the file in Python.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Memory`].
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        save(path.as_ref(), self.expansion(), "detector", json!({}), None)
    }

    /// Loads a detector that [`Detector::save`] or `svmarrow.save` in Python has written.
    ///
    /// # Errors
    /// The errors of [`Classifier::load`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        Self::new(load(path.as_ref(), "detector")?.0, None)
    }
}
