//! Strategies of splitting a leaf and their names; `split` implements them.
//!
//! | strategy | partition |
//! |---|---|
//! | joint, nearest (ZPQ) | z = the n/2 rows with the smallest c_p - c_q; new rows follow their nearest neighbor |
//! | joint, linear (WPQ) | w = -d/|d|, d = sum_i (c_p - c_q)(x_i) x_i/|x_i|; z = [w'x > median] |
//! | explaining (PLS) | w = the direction along which the rows explain the outputs best; z = [w'x/\|x\| > median] |
//! | random (RNDW) | a random hyperplane through the median |
//! | balanced (BAL) | k(x, b_j) <= median, the b_j whose split costs least |
//! | entropy (ENT) | the b_j with the least entropy of the labels of a side |

/// The rule that divides the rows between the children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partition {
    /// PLS: a hyperplane through the median, normal to the first direction of partial least squares.
    Explaining,
    /// RNDW: a random hyperplane through the median.
    RandomHyperplane,
    /// BAL: the vector whose split costs least.
    Balanced,
    /// ENT: the vector with the least entropy of the labels of its purer side.
    Entropy,
}

/// The rule that selects the children's vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// RNDS: at random.
    Random,
    /// INDS: the vectors that the branching rule sends to the side; if they are too many, the newest.
    Induced,
    /// OPTS: by the quadratic programs.
    Optimised,
}

/// Strategy of splitting a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// WPQ: jointly, with a linear rule.
    JointLinear,
    /// ZPQ: jointly, with a nearest-neighbor rule.
    JointNearest,
    /// A partition crossed with a selection.
    Heuristic(Partition, Selection),
}

impl Strategy {
    /// Returns the strategy with a name: "wpq", "zpq", or a partition and a selection such as "bal-opts"; all but
    /// "pls" are the paper's.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "wpq" => return Some(Self::JointLinear),
            "zpq" => return Some(Self::JointNearest),
            _ => {}
        }
        let (partition, selection) = name.split_once('-')?;
        let partition = match partition {
            "pls" => Partition::Explaining,
            "rndw" => Partition::RandomHyperplane,
            "bal" => Partition::Balanced,
            "ent" => Partition::Entropy,
            _ => return None,
        };
        let selection = match selection {
            "rnds" => Selection::Random,
            "inds" => Selection::Induced,
            "opts" => Selection::Optimised,
            _ => return None,
        };
        Some(Self::Heuristic(partition, selection))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_paper() {
        assert_eq!(Strategy::from_name("zpq"), Some(Strategy::JointNearest));
        assert_eq!(
            Strategy::from_name("bal-opts"),
            Some(Strategy::Heuristic(Partition::Balanced, Selection::Optimised))
        );
        assert_eq!(Strategy::from_name("bal"), None);
    }
}
