//! The answer for a row, and what a mistake on it adds.
//!
//! With two classes there is one output, positive for class 1; with more there is one a class, the largest answers, and
//! a mistake adds the row to its own class and takes it from the largest other one, its rival.

/// What a row adds to the coefficients when it is learnt: 1 for its class, -1 for the rival; with two classes its sign.
#[derive(Debug, Clone, Copy)]
pub(super) struct Update {
    pub(super) class: usize,
    /// None where there is one output.
    pub(super) rival: Option<usize>,
}

impl Update {
    /// What a row of a class with such outputs would add, and the margin by which its class wins.
    pub(super) fn of(scores: &[f64], class: usize) -> (Self, f64) {
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

    /// The outputs that change, and by how much.
    pub(super) fn coefficients(self) -> impl Iterator<Item = (usize, f64)> {
        let own = match self.rival {
            None => (0, if self.class == 1 { 1.0 } else { -1.0 }),
            Some(_) => (self.class, 1.0),
        };
        std::iter::once(own).chain(self.rival.map(|rival| (rival, -1.0)))
    }
}

/// Number of outputs for so many classes.
pub(super) fn outputs(classes: usize) -> usize {
    if classes == 2 { 1 } else { classes }
}
