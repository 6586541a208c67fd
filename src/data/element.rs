//! What a matrix of rows may hold: `u8`, `f32` or `f64`.

/// An element of rows.
pub trait Element: Copy + Send + Sync + sealed::Sealed + 'static {
    /// The exact value in double precision.
    fn to_f64(self) -> f64;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! element {
    ($($type:ty),*) => {$(
        impl sealed::Sealed for $type {}

        impl Element for $type {
            #[inline]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
        }
    )*};
}

element!(u8, f32, f64);
