//! Model files: those of estimators and of expansions that `svmarrow.save` writes in Python, if plain numbers are their input.
//!
//! A field that changes predictions and is not supported here is an error, so that no model predicts differently in a browser.

use crate::model::{Model, Predictor};
use serde_json::{Map, Value, json};
use std::path::Path;
use svmarrow::estimators::{Classifier, Detector, Regressor, Strategy};
use svmarrow::io::safetensors::{Array, Contents, Dtype, ModelFile, from_bytes, to_bytes};
use svmarrow::{Error, Result};

/// The name of the file in messages: a page has bytes and no path.
const FILE: &str = "model file";

/// Fields that change predictions, with the values of plain models.
const PLAIN: [(&str, &[Value]); 6] = [
    ("break_ties", &[Value::Bool(false)]),
    ("code", &[Value::Null]),
    ("decoder", &[Value::Null]),
    ("functions", &[Value::Null]),
    ("class_kernels", &[Value::Null]),
    ("offset", &[Value::Null]),
];

fn refuse(message: impl Into<String>) -> Error {
    Error::Format { path: Path::new(FILE).to_path_buf(), line: 0, message: message.into() }
}

pub(crate) fn load(bytes: &[u8]) -> Result<Model> {
    let mut file = from_bytes(bytes, Path::new(FILE))?;
    let description: Value =
        serde_json::from_str(&file.extra).map_err(|error| refuse(format!("extra is not JSON: {error}")))?;
    let schema = description["schema"].as_str().unwrap_or_default();
    let no_fields = Map::new();
    let parts = description.as_object().unwrap_or(&no_fields);
    for (name, plain) in PLAIN {
        if let Some(value) = parts.get(name).filter(|value| !plain.contains(value)) {
            return Err(refuse(format!("{name}={value} is not supported in a browser")));
        }
    }
    if parts.get("predict_by").is_some_and(|by| by != "scores") {
        return Err(refuse("predict_by must be \"scores\""));
    }
    let decoding = parts.get("decoding").or_else(|| parts.get("decoding_"));
    let strategy = match (schema, decoding.and_then(Value::as_str)) {
        ("classifier/1" | "svc/1" | "nu-svc/1", Some("binary" | "ovo")) => Some(Strategy::OneVsOne),
        ("classifier/1" | "svc/1" | "nu-svc/1", Some("ovr")) => Some(Strategy::OneVsRest),
        ("rls-classifier/1" | "kmp-classifier/1", _) => Some(Strategy::OneVsRest),
        (
            "regressor/1" | "detector/1" | "svr/1" | "nu-svr/1" | "one-class-svm/1" | "rls-regressor/1"
            | "kmp-regressor/1",
            _,
        ) => None,
        _ => {
            return Err(refuse(format!(
                "its schema {schema:?} is of another kind or number, or its decoding is not supported: save \
                 as_expansion(model) instead"
            )));
        }
    };
    let expansion = file
        .expansions
        .remove("")
        .ok_or_else(|| refuse("a sum or a tree of several expansions is not supported in a browser"))?;
    if !file.expansions.is_empty() {
        return Err(refuse("several expansions are not supported in a browser"));
    }
    let columns = expansion.vectors.view().cols();
    let preparation = preparation(parts.get("preparation"), &file, columns)?;
    let predictor = if let Some(strategy) = strategy {
        let labels = labels(parts.get("classes").or_else(|| parts.get("classes_")), &file)?;
        let classes = (0..labels.len()).collect();
        let model = Classifier::new(expansion, classes, strategy, Vec::new())
            .map_err(|error| refuse(error.to_string()))?;
        return Ok(Model::new(Predictor::Classifier(model), labels, preparation));
    } else if schema == "detector/1" || schema == "one-class-svm/1" {
        Predictor::Detector(Detector::new(expansion, None)?)
    } else {
        Predictor::Regressor(Regressor::new(expansion, None)?)
    };
    Ok(Model::new(predictor, Vec::new(), preparation))
}

/// Reads the labels of the classes: integers, floating-point numbers, truth values or texts.
fn labels(value: Option<&Value>, file: &ModelFile) -> Result<Vec<Value>> {
    let wrong = || refuse("the labels must be numbers, truth values or texts");
    let value = value.ok_or_else(wrong)?;
    if let Some(texts) = value["strings"].as_array() {
        return Ok(texts.clone());
    }
    let name = value["array"].as_str().or_else(|| value["text"].as_str()).ok_or_else(wrong)?;
    let Array { dtype, shape, bytes } = file.arrays.get(name).ok_or_else(wrong)?;
    if value["text"].is_string() && *dtype == Dtype::U32 {
        let length = shape.last().copied().unwrap_or(0);
        let points = bytes.as_chunks().0.iter().map(|point| u32::from_le_bytes(*point));
        let points: Vec<char> = points.map(char::from_u32).collect::<Option<_>>().ok_or_else(wrong)?;
        let text = |points: &[char]| {
            let end = points.iter().rposition(|point| *point != '\0').map_or(0, |last| last + 1);
            Value::from(points[..end].iter().collect::<String>())
        };
        return Ok(if length == 0 { Vec::new() } else { points.chunks(length).map(text).collect() });
    }
    macro_rules! numbers {
        ($type:ty) => {
            bytes.as_chunks().0.iter().map(|number| Value::from(<$type>::from_le_bytes(*number))).collect()
        };
    }
    Ok(match dtype {
        Dtype::I64 => numbers!(i64),
        Dtype::I32 => numbers!(i32),
        Dtype::U8 => numbers!(u8),
        Dtype::F64 => numbers!(f64),
        Dtype::Bool => bytes.iter().map(|byte| Value::from(*byte == 1)).collect(),
        _ => return Err(wrong()),
    })
}

/// Reads the center and the scale of each column.
fn preparation(
    value: Option<&Value>,
    file: &ModelFile,
    columns: usize,
) -> Result<Option<(Vec<f64>, Vec<f64>)>> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(None) };
    if value["schema"] != "affine/1" || !value["matrix"].is_null() || !value["offset"].is_null() {
        return Err(refuse("its preparation is more than a center and a scale of each column"));
    }
    let numbers = |name: &str| -> Result<Vec<f64>> {
        let array = value[name]["array"].as_str().and_then(|name| file.arrays.get(name));
        let Some(Array { dtype: Dtype::F64, bytes, .. }) = array else {
            return Err(refuse(format!("{name} of its preparation is not an array of numbers")));
        };
        let numbers: Vec<f64> =
            bytes.as_chunks().0.iter().map(|number| f64::from_le_bytes(*number)).collect();
        Error::check_len("columns of the preparation", columns, numbers.len())?;
        Ok(numbers)
    };
    Ok(Some((numbers("centre")?, numbers("scale")?)))
}

/// Writes a model that `svmarrow.load` reads in Python.
pub(crate) fn save(model: &Model) -> Result<Vec<u8>> {
    let mut description = json!({ "expansion": { "schema": "expansion/1" } });
    let mut arrays: Vec<(&str, Array<'_>)> = Vec::new();
    let mut vector = |name: &'static str, numbers: Vec<u8>, dtype: Dtype| {
        arrays
            .push((name, Array { dtype, shape: vec![numbers.len() / dtype.bytes()], bytes: numbers.into() }));
        json!({ "array": name })
    };
    description["schema"] = match &model.predictor {
        Predictor::Classifier(_) => {
            let integers: Option<Vec<i64>> = model.labels.iter().map(Value::as_i64).collect();
            let texts = model.labels.iter().all(Value::is_string);
            description["classes"] = match integers {
                Some(labels) => vector(
                    "classes",
                    labels.iter().flat_map(|label| label.to_le_bytes()).collect(),
                    Dtype::I64,
                ),
                None if texts => json!({ "strings": model.labels }),
                None => {
                    return Err(Error::param(
                        "labels",
                        "numbers or truth values",
                        "integers or texts in a file",
                    ));
                }
            };
            description["decoding"] = model.decoding().into();
            "classifier/1"
        }
        Predictor::Regressor(_) => {
            description["flat"] = true.into();
            "regressor/1"
        }
        Predictor::Detector(_) => "detector/1",
    }
    .into();
    if let Some((centre, scale)) = &model.preparation {
        let mut column = |name, numbers: &[f64]| {
            vector(name, numbers.iter().flat_map(|number| number.to_le_bytes()).collect(), Dtype::F64)
        };
        let (centre, scale) = (column("preparation.centre", centre), column("preparation.scale", scale));
        description["preparation"] = json!({ "schema": "affine/1", "centre": centre, "scale": scale });
    }
    let extra = description.to_string();
    let expansion = model.expansion();
    let mut contents = Contents::of(&expansion.view(), &extra);
    contents.arrays.extend(arrays.into_iter().map(|(name, array)| (name.to_owned(), array)));
    to_bytes(&contents)
}
