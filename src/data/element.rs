//! Element types of rows: `u8`, `f32` or `f64`.

/// An element of rows.
pub trait Element: Copy + Into<f64> + Send + Sync + sealed::Sealed + 'static {
    /// Returns the exact value in double precision.
    #[inline]
    fn to_f64(self) -> f64 {
        self.into()
    }
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! element {
    ($($type:ty),*) => {$(
        impl sealed::Sealed for $type {}

        impl Element for $type {}
    )*};
}

element!(u8, f32, f64);
