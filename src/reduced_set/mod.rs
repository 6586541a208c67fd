//! Turning an expansion into a shorter one (Weston and Bakir, TR-132, 2004).
//!
//! | file | holds |
//! |---|---|
//! | `pursuit` | hyperplane matching pursuit: basic, back-fitting, pre-fitting; outputs together or apart |
//! | `stepper` | its steps, with all candidates in view or a random few |
//! | `space` | the inner products it needs: in feature space, or of predictions on rows |
//! | `chunking` | any selection from more vectors than it can hold, a part at a time |
//! | `path` | every size of one run: coefficients and decisions |
//! | `selection` | the methods that need the whole kernel matrix, and the path along their order |
//! | `zero_norm` | l0 |
//! | `penalised` | l1, joint l1, LARS-SVM |
//! | `gradient` | vectors and coefficients moved together (compressed SVM, eq. 10) |
//! | `objective` | the losses that they are moved for |
//! | `teacher` | where they are compared with the large machine, and what it says there |
//! | `centres` | where they start |
//! | `certified` | how far a projection's outputs can be from the machine's |
//! | `cascade` | the projection answers where that decides |
//! | `decision` | the class that outputs with bounds are certain of |
//! | `threshold` | the intercept re-optimised on training error |

mod cascade;
mod centres;
mod certified;
mod chunking;
mod decision;
mod gradient;
mod objective;
mod path;
mod penalised;
mod pursuit;
mod selection;
mod space;
mod stepper;
mod teacher;
pub mod threshold;
mod zero_norm;

pub use cascade::{Cascade, CertainAnswers, UNDECIDED};
pub use centres::centres;
pub use certified::{Moments, StageSize, moments};
pub use chunking::{Limits, Reducer, reduce};
pub use decision::Decision;
pub use gradient::{Answers, Construction, GradientParams, gradient_vectors};
pub use objective::{Coding, Loss, Objective};
pub use path::{Form, Path, Steps, path_coefficients, path_decisions, path_outputs};
pub use penalised::Norm;
pub use pursuit::{PursuitParams, Sample, Selection, pursuit};
pub use selection::{LEVELS, Method, select};
pub use space::Criterion;
