//! The answer for a row, and the update that a mistake makes.
//!
//! With two classes there is one output, positive for class 1. With more there is one output per class, and the largest
//! answers; a mistake adds the row to its own class and subtracts it from the largest other one, its rival.

/// The coefficients of a learned row: 1 for its class and -1 for the rival; with two classes its sign.
#[derive(Debug, Clone, Copy)]
pub(super) struct Update {
    pub(super) class: usize,
    /// None if there is one output.
    pub(super) rival: Option<usize>,
}

impl Update {
    /// Returns the update for a row with the given outputs, and the margin of its class.
    pub(super) fn new(scores: &[f64], class: usize) -> (Self, f64) {
        if scores.len() == 1 {
            return (Self { class, rival: None }, if class == 1 { scores[0] } else { -scores[0] });
        }
        let mut rival = usize::from(class == 0);
        for (other, &score) in scores.iter().enumerate() {
            if other != class && score > scores[rival] {
                rival = other;
            }
        }
        (Self { class, rival: Some(rival) }, scores[class] - scores[rival])
    }

    /// Returns the outputs that change, each with its coefficient.
    pub(super) fn coefficients(self) -> impl Iterator<Item = (usize, f64)> {
        let of_class = match self.rival {
            None => (0, if self.class == 1 { 1.0 } else { -1.0 }),
            Some(_) => (self.class, 1.0),
        };
        std::iter::once(of_class).chain(self.rival.map(|rival| (rival, -1.0)))
    }
}

/// Returns the number of outputs for a number of classes.
pub(super) fn outputs(classes: usize) -> usize {
    if classes == 2 { 1 } else { classes }
}
