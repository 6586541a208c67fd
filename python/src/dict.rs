//! Structs of the core as dicts.

/// A dict of fields of a struct, under their own names.
macro_rules! fields {
    ($py:expr, $of:expr, $($field:ident),+) => {{
        let dict = pyo3::types::PyDict::new($py);
        $(dict.set_item(stringify!($field), $of.$field)?;)+
        dict
    }};
}

pub(crate) use fields;
