//! The only source of random numbers: a small seeded generator with the same numbers on every platform.
//!
//! SplitMix64 (Steele, Lea and Flood, Fast splittable pseudorandom number generators, OOPSLA 2014): one 64-bit
//! counter through a mixing function. The state is one number, so an online algorithm can be saved between two draws.
//! Logarithm and cosine are the `libm` crate's, since those of C libraries differ in the last digit. The generator is not
//! cryptographic.

/// A generator of random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Starts a generator from a seed, or continues one from its [`Random::state`].
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Starts stream number `index` of a seed. Streams of different indices are independent.
    pub fn stream(seed: u64, index: u64) -> Self {
        let mut mixed = Self::new(seed);
        Self::new(mixed.bits() ^ Self::new(index).bits())
    }

    /// Returns the state from which [`Random::new`] continues.
    pub fn state(&self) -> u64 {
        self.state
    }

    /// Draws 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Draws a number uniformly from [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Draws an integer uniformly from 0, ..., n - 1; n must be positive.
    pub fn below(&mut self, n: u64) -> u64 {
        // The high half of a 128-bit product (Lemire 2019); the bias is below n / 2^64.
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// Draws a standard normal number (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * libm::log(1.0 - self.uniform())).sqrt();
        radius * libm::cos(std::f64::consts::TAU * self.uniform())
    }

    /// Draws an approximately normal number from (-3.47, 3.47) with mean 0 and variance 1: the sum of the four 16-bit parts of
    /// one draw. The arithmetic is exact, and ten times as fast as [`Random::normal`].
    pub fn bell(&mut self) -> f32 {
        // Each part is uniform on 0, ..., 65535 with variance (65536^2 - 1) / 12.
        const SCALE: f32 = 2.642_854_6e-5;
        let bits = self.bits();
        let sum = (bits & 0xFFFF) + (bits >> 16 & 0xFFFF) + (bits >> 32 & 0xFFFF) + (bits >> 48);
        (sum as f32 - 131_070.0) * SCALE
    }

    /// Shuffles a slice.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }

    /// Draws `count` distinct integers from 0, ..., n - 1, in random order; `count` must be at most n.
    pub fn sample(&mut self, n: usize, count: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..n).collect();
        for i in 0..count {
            all.swap(i, i + self.below((n - i) as u64) as usize);
        }
        all.truncate(count);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_published_sequence() {
        // First outputs of the reference implementation for the seed 1234567.
        let mut random = Random::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.bits()).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn normal_numbers_have_the_same_digits_everywhere() {
        let mut random = Random::new(3);
        let mut mixed = 0_u64;
        for _ in 0..10_000 {
            mixed = mixed.rotate_left(7) ^ random.normal().to_bits();
        }
        assert_eq!(mixed, 5237831560611623477);
    }

    #[test]
    fn a_generator_continues_from_its_state() {
        let mut one = Random::new(5);
        one.bits();
        let mut two = Random::new(one.state());
        assert_eq!(one.normal(), two.normal());
        assert_eq!(one.sample(20, 7), two.sample(20, 7));
    }

    #[test]
    fn moments_and_bounds() {
        let mut random = Random::new(1);
        let n = 100_000;
        let (mut sum, mut square) = (0.0, 0.0);
        for _ in 0..n {
            let x = random.normal();
            sum += x;
            square += x * x;
            assert!(random.below(7) < 7 && random.uniform() < 1.0);
        }
        assert!((sum / f64::from(n)).abs() < 0.02 && (square / f64::from(n) - 1.0).abs() < 0.02);
        let bells: Vec<f64> = (0..n).map(|_| f64::from(random.bell())).collect();
        let mean = bells.iter().sum::<f64>() / f64::from(n);
        let variance = bells.iter().map(|v| v * v).sum::<f64>() / f64::from(n);
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
        let mut items: Vec<usize> = (0..50).collect();
        random.shuffle(&mut items);
        assert!(items.windows(2).any(|w| w[0] > w[1]));
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
        assert_ne!(Random::stream(1, 2), Random::stream(1, 3));
        let mut sample = random.sample(10, 10);
        sample.sort_unstable();
        assert_eq!(sample, (0..10).collect::<Vec<_>>());
    }
}
