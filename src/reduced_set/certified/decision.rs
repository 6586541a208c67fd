//! The class that is certain, from outputs and bounds on their errors.
//!
//! Invariant: a bound that is not a number decides nothing. Cost: O(k^2) for the pairs of k classes.

use crate::argmax::argmax;
use crate::reduced_set::coding::Coding;

/// The rule from outputs to a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// The meaning of the outputs.
    pub coding: Coding,
    /// For pairs: whether the sums of the outputs break ties of the votes.
    pub break_ties: bool,
}

/// Returns the class of k that wins the votes of the pairs for all outputs within their bounds.
pub(super) fn certain_winner(
    k: usize,
    break_ties: bool,
    f: &[f64],
    bound: impl Fn(usize) -> f64,
) -> Option<usize> {
    let (mut certain, mut possible) = (vec![0.0; k], vec![0.0; k]);
    let (mut confidence, mut doubt) = (vec![0.0; k], vec![0.0; k]);
    let mut pair = 0;
    for a in 0..k {
        for c in a + 1..k {
            let (value, error) = (f[pair], bound(pair));
            pair += 1;
            if value.abs() > error {
                let winner = if value > 0.0 { a } else { c };
                certain[winner] += 1.0;
                possible[winner] += 1.0;
            } else {
                possible[a] += 1.0;
                possible[c] += 1.0;
            }
            confidence[a] += value;
            confidence[c] -= value;
            // The sums of the outputs are rounded too.
            let error = error + 1e-12 * (value.abs() + error);
            doubt[a] += error;
            doubt[c] += error;
        }
    }
    let best = argmax(certain.iter().copied());
    // Votes, and the sum squeezed into (-1/3, 1/3) as scikit-learn's break_ties has it.
    let score = |votes: f64, sum: f64| votes + sum / (3.0 * (sum.abs() + 1.0));
    let beats = |c: usize| {
        if certain[best] > possible[c] {
            return true;
        }
        if break_ties {
            let low = score(certain[best], confidence[best] - doubt[best]);
            low > score(possible[c], confidence[c] + doubt[c]) + 1e-9
        } else {
            best < c && certain[best] == possible[c]
        }
    };
    (0..k).all(|c| c == best || beats(c)).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn votes_are_certain_only_where_no_output_can_change_them() {
        // Pairs (0, 1), (0, 2), (1, 2): class 0 wins twice.
        let f = [1.0, 0.2, 1.0];
        assert_eq!(certain_winner(3, false, &f, |_| 0.1), Some(0));
        // With (0, 2) open all three could have one vote each; the first would win, unless ties are broken by sums.
        assert_eq!(certain_winner(3, false, &f, |j| if j == 1 { 0.3 } else { 0.1 }), Some(0));
        assert_eq!(certain_winner(3, true, &f, |j| if j == 1 { 0.3 } else { 0.1 }), Some(0));
        assert_eq!(certain_winner(3, true, &[0.2, 0.2, 1.0], |j| if j == 1 { 0.3 } else { 0.1 }), None);
        // The last class needs a clear lead.
        assert_eq!(certain_winner(3, false, &[1.0, -1.0, -0.2], |j| if j == 2 { 0.3 } else { 0.1 }), None);
        assert_eq!(certain_winner(3, false, &[f64::NAN, 1.0, 1.0], |_| 0.1), None);
    }
}
