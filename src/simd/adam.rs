//! One step of Adam (Kingma and Ba, 2015, algorithm 1) on a slice of parameters.

use super::vectorized;

/// Decay of the mean of the gradients.
pub(crate) const MEAN_DECAY: f32 = 0.9;
/// Decay of the mean of their squares.
pub(crate) const SQUARE_DECAY: f32 = 0.99;

/// Moves `parameters` against the running mean of their gradients, divided by the root of the running mean of the squares.
///
/// `rate` includes the correction of the running means for their start at zero, see [`corrected`].
pub(crate) fn step(
    rate: f32,
    gradient: &[f32],
    means: &mut [f32],
    squares: &mut [f32],
    parameters: &mut [f32],
) {
    let n = parameters.len();
    assert!(gradient.len() == n && means.len() == n && squares.len() == n);
    vectorized!([] (rate: f32, gradient: &[f32], means: &mut [f32], squares: &mut [f32], parameters: &mut [f32]) {
        // Far below any gradient that matters; avoids 0 / 0.
        const TINY: f32 = 1e-18;
        let state = means.iter_mut().zip(squares);
        for ((parameter, &slope), (mean, square)) in parameters.iter_mut().zip(gradient).zip(state) {
            *mean += (1.0 - MEAN_DECAY) * (slope - *mean);
            *square += (1.0 - SQUARE_DECAY) * (slope * slope - *square);
            *parameter -= rate * *mean / (square.sqrt() + TINY);
        }
    });
}

/// Returns `rate` times sqrt(1 - b2^t) / (1 - b1^t) for step t = 1, 2, ...
pub(crate) fn corrected(rate: f64, t: usize) -> f32 {
    let power = |decay: f32| 1.0 - f64::from(decay).powi(t.min(1 << 20) as i32);
    (rate * power(SQUARE_DECAY).sqrt() / power(MEAN_DECAY)) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_bottom_of_a_badly_scaled_bowl() {
        let scales: Vec<f32> = (0..37).map(|i| 10.0_f32.powi(i % 5 - 2)).collect();
        let mut x = vec![1.0_f32; 37];
        let (mut means, mut squares) = (vec![0.0; 37], vec![0.0; 37]);
        for t in 1..=2000 {
            let gradient: Vec<f32> = x.iter().zip(&scales).map(|(x, s)| s * (x - 3.0)).collect();
            let rate = corrected(0.05 * (1.0 - f64::from(t) / 2001.0), t as usize);
            step(rate, &gradient, &mut means, &mut squares, &mut x);
        }
        assert!(x.iter().all(|x| (x - 3.0).abs() < 1e-2), "{x:?}");
    }

    #[test]
    fn the_first_step_has_the_length_of_the_rate() {
        let (mut x, mut means, mut squares) = (vec![0.0_f32; 5], vec![0.0; 5], vec![0.0; 5]);
        step(corrected(0.25, 1), &[4.0, -1.0, 1e-6, 100.0, 0.0], &mut means, &mut squares, &mut x);
        for (x, expected) in x.iter().zip([-0.25, 0.25, -0.25, -0.25, 0.0]) {
            assert!((x - expected).abs() < 1e-5, "{x} {expected}");
        }
    }
}
