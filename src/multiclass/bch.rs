//! Codes whose rows are words of a binary Bose-Chaudhuri-Hocquenghem code of length 63 (Dietterich and Bakiri 1995;
//! the BCH-63 codes of Rifkin 2002, 3.6 and 4.2.2).
//!
//! The generator is the product of the minimal polynomials of alpha, alpha^2, ..., alpha^(2t) over GF(64); its code has
//! 2^k words, k = 63 - degree, any two of them at least 2t + 1 apart. The largest t with enough words is taken: k = 7
//! and distance 31 for up to 128 classes. For fewer classes than words the code is shortened to a set of words, the
//! best of many random ones by the distance of the columns; no column may lose a sign. Distances of rows are the
//! code's own, whatever is left out.

use std::collections::HashSet;

use super::code::CodeMatrix;
use super::draws::Draws;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::random::Random;

const WORD_LENGTH: usize = 63;
/// x^6 + x + 1, primitive.
const FIELD_POLYNOMIAL: u8 = 0b100_0011;
/// The word of ones, which every code here has: with a word and its opposite no column loses a sign.
const ONES: u64 = (1 << WORD_LENGTH) - 1;
/// Minimum number of classes for random words, which would rarely keep both signs in all columns of fewer.
const MIN_RANDOM_CLASSES: usize = 6;

/// A code of 63 columns for any number of classes; for two classes the one column that there is.
///
/// # Errors
/// [`Error::Param`] for fewer than two classes, no draws, or more classes than the largest code has words for
/// (2^57); [`Error::Stopped`] where the monitor says so.
pub fn bch(classes: usize, draws: Draws, ctx: Context<'_>) -> Result<CodeMatrix> {
    draws.check()?;
    if classes <= 2 {
        return CodeMatrix::one_vs_rest(classes);
    }
    let Some(generator) = (1..=15).rev().map(generator).find(|g| words(*g) >= classes as u64) else {
        return Err(Error::param("code", format!("bch for {classes} classes"), "for at most 2^57 classes"));
    };
    let of_draw = |number: u64| {
        let messages = sample(words(generator), classes, &mut Random::stream(draws.seed, number));
        let mut chosen: Vec<u64> = messages.into_iter().map(|m| word(generator, m)).collect();
        if classes < MIN_RANDOM_CLASSES {
            chosen[1] = !chosen[0] & ONES;
        }
        CodeMatrix::from_fn(
            classes,
            WORD_LENGTH,
            |(class, bit)| if chosen[class] >> bit & 1 == 1 { 1 } else { -1 },
        )
    };
    let quality = |number, _| match of_draw(number) {
        Ok(code) => Ok(1 + code.twice_column_distance(Context::SEQUENTIAL)?.unwrap_or(0)),
        Err(error @ Error::Memory { .. }) => Err(error),
        Err(_) => Ok(0),
    };
    // Where every word is a class, all draws are the same code.
    let count = if words(generator) == classes as u64 { 1 } else { draws.count };
    let Some(number) = (Draws { count, ..draws }).best(quality, 32 * WORD_LENGTH * classes, ctx)? else {
        let rule = format!("more: no draw of {classes} words kept both signs in every column");
        return Err(Error::param("n_draws", draws.count, rule));
    };
    of_draw(number)
}

/// The generator polynomial that corrects t errors, bit i for x^i.
fn generator(t: usize) -> u64 {
    let mut power = [1_u8; WORD_LENGTH];
    for i in 1..WORD_LENGTH {
        let next = power[i - 1] << 1;
        power[i] = if next & 0b100_0000 == 0 { next } else { next ^ FIELD_POLYNOMIAL };
    }
    let log = |value: u8| power.iter().position(|&p| p == value).unwrap_or(0);
    let times = |a: u8, b: u8| if a == 0 || b == 0 { 0 } else { power[(log(a) + log(b)) % WORD_LENGTH] };
    let mut roots: Vec<usize> = Vec::new();
    for exponent in 1..=2 * t {
        // The conjugates of alpha^exponent.
        let mut conjugate = exponent % WORD_LENGTH;
        while !roots.contains(&conjugate) {
            roots.push(conjugate);
            conjugate = 2 * conjugate % WORD_LENGTH;
        }
    }
    // The product of (x - root), whose coefficients fall back into GF(2).
    let mut product = vec![1_u8];
    for root in roots {
        let mut next = vec![0; product.len() + 1];
        for (i, &c) in product.iter().enumerate() {
            next[i + 1] ^= c;
            next[i] ^= times(c, power[root]);
        }
        product = next;
    }
    product.iter().enumerate().map(|(i, &c)| u64::from(c) << i).sum()
}

/// Number of words of a generator's code.
fn words(generator: u64) -> u64 {
    let degree = generator.ilog2() as usize;
    1 << (WORD_LENGTH - degree)
}

/// The word of a message: the product of both polynomials.
fn word(generator: u64, message: u64) -> u64 {
    (0..WORD_LENGTH).filter(|bit| message >> bit & 1 == 1).fold(0, |sum, bit| sum ^ (generator << bit))
}

/// `count` distinct numbers below `n`, in random order.
fn sample(n: u64, count: usize, random: &mut Random) -> Vec<u64> {
    if n <= 1 << 16 {
        return random.sample(n as usize, count).into_iter().map(|m| m as u64).collect();
    }
    let mut seen = HashSet::new();
    std::iter::repeat_with(|| random.below(n)).filter(|&m| seen.insert(m)).take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_of_the_table() {
        // (k, t) of the binary codes of length 63, for example Lin and Costello, table 6.1.
        for (k, t) in [
            (57, 1),
            (51, 2),
            (45, 3),
            (39, 4),
            (36, 5),
            (30, 6),
            (24, 7),
            (18, 10),
            (16, 11),
            (10, 13),
            (7, 15),
        ] {
            assert_eq!(WORD_LENGTH - generator(t).ilog2() as usize, k, "{t}");
        }
    }

    #[test]
    fn words_are_as_far_apart_as_designed() {
        for t in [15, 13] {
            let g = generator(t);
            // The code is linear: its distance is its least weight.
            let min_distance = (1..words(g)).map(|m| word(g, m).count_ones()).min().unwrap();
            assert!(min_distance as usize > 2 * t, "{t} {min_distance}");
        }
    }

    #[test]
    fn any_number_of_classes() {
        for classes in [3, 6, 10, 20, 26, 100, 128, 129, 300] {
            let code = bch(classes, Draws { count: 50, seed: 3 }, Context::SEQUENTIAL).unwrap();
            assert_eq!((code.classes(), code.columns()), (classes, 63));
            let min_distance = if classes <= 128 { 31 } else { 27 };
            assert!(code.twice_row_distance(Context::default()).unwrap() >= 2 * min_distance, "{classes}");
            assert_eq!(code, bch(classes, Draws { count: 50, seed: 3 }, Context::default()).unwrap());
        }
    }
}
