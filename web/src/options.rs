//! The options of a call: a JSON object with the names that parameters have in Python. Unknown names are errors.

use serde_json::{Map, Value};
use svmarrow::kernels::Kernel;
use svmarrow::{Error, Result};

/// Options that have not been read yet.
pub(crate) struct Options(Map<String, Value>);

impl Options {
    /// Parses a JSON object.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self> {
        match serde_json::from_slice(bytes) {
            Ok(Value::Object(options)) => Ok(Self(options)),
            _ => Err(Error::param("options", String::from_utf8_lossy(bytes), "an object")),
        }
    }

    fn take<T>(
        &mut self,
        name: &'static str,
        rule: &str,
        convert: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>> {
        match self.0.remove(name) {
            None => Ok(None),
            Some(value) => convert(&value).map(Some).ok_or_else(|| Error::param(name, value, rule)),
        }
    }

    /// Returns a number, if there is one. Infinities and NaN are null in JSON, and refused.
    pub(crate) fn number(&mut self, name: &'static str) -> Result<Option<f64>> {
        self.take(name, "a finite number", Value::as_f64)
    }

    pub(crate) fn integer(&mut self, name: &'static str) -> Result<Option<u64>> {
        self.take(name, "an integer that is not negative", |value| {
            value.as_u64().or_else(|| {
                value
                    .as_f64()
                    .filter(|x| *x >= 0.0 && *x < 2.0_f64.powi(53) && x.fract() == 0.0)
                    .map(|x| x as u64)
            })
        })
    }

    pub(crate) fn flag(&mut self, name: &'static str) -> Result<Option<bool>> {
        self.take(name, "true or false", Value::as_bool)
    }

    pub(crate) fn text(&mut self, name: &'static str) -> Result<Option<String>> {
        self.take(name, "a text", |value| value.as_str().map(str::to_owned))
    }

    /// Returns the kernel; `None` is the RBF kernel with gamma="scale".
    pub(crate) fn kernel(&mut self) -> Result<Option<Kernel>> {
        let name = self.text("kernel")?.unwrap_or_else(|| "rbf".to_owned());
        if self.0.get("gamma").and_then(Value::as_str) == Some("scale") {
            self.0.remove("gamma");
        }
        let gamma = self.number("gamma")?;
        let coef0 = self.number("coef0")?.unwrap_or(0.0);
        let degree = self.integer("degree")?.unwrap_or(3);
        let degree = u32::try_from(degree).map_err(|_| Error::param("degree", degree, "below 2^32"))?;
        if gamma.is_none() && name == "rbf" {
            return Ok(None);
        }
        let needs_none = name == "linear" || name == "precomputed";
        if gamma.is_none() && !needs_none {
            return Kernel::from_name(&name, 1.0, coef0, degree).and_then(|_| {
                Err(Error::param("gamma", "\"scale\"", format!("a number for the kernel {name}")))
            });
        }
        Kernel::from_name(&name, gamma.unwrap_or(1.0), coef0, degree).map(Some)
    }

    /// Checks that all options have been read.
    pub(crate) fn finish(self, of: &str) -> Result<()> {
        match self.0.into_iter().next() {
            None => Ok(()),
            Some((name, value)) => {
                Err(Error::param("options", format!("{name}: {value}"), format!("parameters of {of}")))
            }
        }
    }
}
