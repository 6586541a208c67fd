//! Vectors and coefficients in the layouts that the passes read, each made when a pass first needs it.
//!
//! Invariant: vectors are packed once for the precision of the rows. Rows that leave this precision need the vectors in double
//! precision too: these are kept only if they are few, and otherwise shared by the calls that need them at the same time.

use super::super::Kernel;
use super::super::bytes::Unit;
use super::super::pack::Panels;
use super::super::product::{PackedCoefficients, units};
use super::super::standardization::Standardization;
use super::super::weights::Weights;
use crate::context::Context;
use crate::data::Rows;
use crate::error::Result;
use crate::expansion::ExpansionView;
use crate::fast_gauss::FastGaussTransform;
use crate::memory::{self};
use crate::once::OnceCell;
use crate::simd::Real;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Context reported when the allocation of a model fails.
const MODEL: &str = "a packed model";
/// Maximum number of bytes of a second packed copy that is kept.
const MAX_SECOND_COPY_BYTES: usize = 1 << 20;

/// Vectors packed for the passes that read kernel values.
#[derive(Default)]
pub(super) struct PackedVectors {
    standardization: OnceCell<Arc<Standardization>>,
    /// `None` if the vectors are not multiples of one unit.
    pub(super) bytes: OnceCell<Option<Panels<f32>>>,
    /// `None` if single precision does not suffice for the vectors.
    pub(super) single: OnceCell<Option<Panels<f32>>>,
    pub(super) double: OnceCell<Panels<f64>>,
    /// Vectors in double precision that are freed after the last call that uses them.
    shared: Mutex<Weak<OnceCell<Panels<f64>>>>,
}

impl PackedVectors {
    /// Returns no packed vectors, with the standardization of these if it is known.
    pub(super) fn without_vectors(&self) -> Self {
        let standardization = self.standardization.get().map(|known| OnceCell::from(Arc::clone(known)));
        Self { standardization: standardization.unwrap_or_default(), ..Self::default() }
    }

    /// Takes vectors that were packed in single precision or bytes elsewhere.
    pub(super) fn adopt(&self, other: Self) {
        if let Some(panels) = other.bytes.into_inner() {
            self.bytes.set(panels);
        }
        if let Some(panels) = other.single.into_inner() {
            self.single.set(panels);
        }
    }

    pub(super) fn standardization(
        &self,
        kernel: &Kernel,
        vectors: Rows<'_>,
    ) -> Result<&Arc<Standardization>> {
        self.standardization.get_or_try_init(|| Standardization::new(kernel, vectors).map(Arc::new))
    }

    /// Packs all vectors, as bytes if a unit is given.
    fn pack<T: Real>(
        &self,
        kernel: &Kernel,
        vectors: Rows<'_>,
        unit: Option<Unit>,
        ctx: Context<'_>,
    ) -> Result<Panels<T>> {
        let all: Vec<usize> = (0..vectors.rows()).collect();
        Panels::pack(vectors, &all, self.standardization(kernel, vectors)?, unit, ctx)
    }

    /// Packs the vectors as bytes, if they are multiples of one unit.
    pub(super) fn pack_bytes(
        &self,
        kernel: &Kernel,
        vectors: Rows<'_>,
        ctx: Context<'_>,
    ) -> Result<Option<Panels<f32>>> {
        Unit::find(kernel, vectors, ctx).map(|unit| self.pack(kernel, vectors, Some(unit), ctx)).transpose()
    }

    /// Packs the vectors in single precision, if that suffices for them.
    pub(super) fn pack_single(
        &self,
        kernel: &Kernel,
        vectors: Rows<'_>,
        ctx: Context<'_>,
    ) -> Result<Option<Panels<f32>>> {
        let panels: Panels<f32> = self.pack(kernel, vectors, None, ctx)?;
        Ok(panels.is_single().then_some(panels))
    }

    /// Returns the vectors in double precision, if they are kept.
    pub(super) fn known_double(&self) -> Option<DoublePanels<'_>> {
        self.double.get().map(DoublePanels::Kept)
    }

    /// Returns the vectors in double precision, which are kept.
    pub(super) fn double(
        &self,
        kernel: &Kernel,
        vectors: Rows<'_>,
        ctx: Context<'_>,
    ) -> Result<DoublePanels<'_>> {
        self.double.get_or_try_init(|| self.pack(kernel, vectors, None, ctx)).map(DoublePanels::Kept)
    }

    /// Returns the vectors in double precision for the rows that single precision does not cover. They are kept only if they
    /// are few or if there is no other copy.
    pub(super) fn double_for_rest(
        &self,
        kernel: &Kernel,
        vectors: Rows<'_>,
        ctx: Context<'_>,
    ) -> Result<DoublePanels<'_>> {
        let single_bytes = self.single.get().and_then(Option::as_ref).map_or(0, Panels::bytes);
        if 2 * single_bytes <= MAX_SECOND_COPY_BYTES || self.double.get().is_some() {
            return self.double(kernel, vectors, ctx);
        }
        let cell = {
            let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            shared.upgrade().unwrap_or_else(|| {
                let cell = Arc::default();
                *shared = Arc::downgrade(&cell);
                cell
            })
        };
        cell.get_or_try_init(|| self.pack(kernel, vectors, None, ctx))?;
        Ok(DoublePanels::Shared(cell))
    }
}

/// Vectors in double precision.
pub(super) enum DoublePanels<'a> {
    /// Kept with the model.
    Kept(&'a Panels<f64>),
    /// Freed after the last call that uses them.
    Shared(Arc<OnceCell<Panels<f64>>>),
}

impl Deref for DoublePanels<'_> {
    type Target = Panels<f64>;

    fn deref(&self) -> &Panels<f64> {
        match self {
            Self::Kept(panels) => panels,
            Self::Shared(cell) => cell.get().expect("shared vectors are packed before they are returned"),
        }
    }
}

/// The part of an expansion that can be exchanged without packing its vectors again.
pub(super) struct Coefficients {
    /// (m, q), row-major.
    pub(super) values: Vec<f64>,
    pub(super) intercepts: Vec<f64>,
    /// True if the errors of outputs in single precision are too large.
    pub(super) needs_double: OnceCell<bool>,
    /// For the linear kernel; with the units of the outputs.
    pub(super) weights: OnceCell<Option<(Weights, Vec<f64>)>>,
    /// For Gaussians in few columns.
    pub(super) fast_gauss: OnceCell<Option<FastGaussTransform>>,
    pub(super) single: OnceCell<PackedCoefficients<f32>>,
    pub(super) double: OnceCell<PackedCoefficients<f64>>,
}

impl Coefficients {
    pub(super) fn new(expansion: &ExpansionView<'_>) -> Result<Self> {
        Ok(Self {
            values: memory::try_to_vec(MODEL, expansion.flat())?,
            intercepts: expansion.intercepts.to_vec(),
            needs_double: OnceCell::default(),
            weights: OnceCell::default(),
            fast_gauss: OnceCell::default(),
            single: OnceCell::default(),
            double: OnceCell::default(),
        })
    }

    /// Computes the weights of the columns, in units of each output; `None` if they are not worth it.
    pub(super) fn collapse(
        &self,
        vectors: Rows<'_>,
        ctx: Context<'_>,
    ) -> Result<Option<(Weights, Vec<f64>)>> {
        let q = self.intercepts.len();
        let (units, mut scaled) = (units(&self.values, q), memory::try_to_vec(MODEL, &self.values)?);
        for line in scaled.chunks_exact_mut(q) {
            line.iter_mut().zip(&units).for_each(|(c, unit)| *c /= unit);
        }
        Ok(Weights::new(vectors, &scaled, q, ctx)?.map(|weights| (weights, units)))
    }
}
