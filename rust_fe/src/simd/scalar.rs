//! Plain Rust: the definition of right.

use super::RowStats;
use super::lanes::{GROUP, Lanes, MAX_LANES};
use super::log_mel::{LogMelPlan, log_mel as log_mel_lanes};

/// One frame at a time.
#[derive(Clone, Copy)]
struct One(f64);

impl Lanes for One {
    const N: usize = 1;

    fn splat(value: f64) -> Self {
        Self(value)
    }

    fn from_lanes(values: &[f64; MAX_LANES]) -> Self {
        Self(values[0])
    }

    fn load_frames(samples: &[f32], starts: &[usize; MAX_LANES], at: usize) -> [Self; GROUP] {
        let from = starts[0] + at;
        std::array::from_fn(|i| Self(f64::from(samples[from + i])))
    }

    fn store_f32(self, to: &mut [f32]) {
        to[0] = self.0 as f32;
    }

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }

    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }

    fn mul(self, other: Self) -> Self {
        Self(self.0 * other.0)
    }

    // Two roundings: without the instruction, `f64::mul_add` would be a slow library call.
    fn mul_add(self, factor: Self, summand: Self) -> Self {
        Self(self.0 * factor.0 + summand.0)
    }

    fn neg_mul_add(self, factor: Self, summand: Self) -> Self {
        Self(summand.0 - self.0 * factor.0)
    }

    fn min(self, other: Self) -> Self {
        Self(if self.0 < other.0 { self.0 } else { other.0 })
    }

    fn max(self, other: Self) -> Self {
        Self(if self.0 > other.0 { self.0 } else { other.0 })
    }

    fn ln(values: &mut [f32]) {
        for value in values {
            *value = f64::from(*value).ln() as f32;
        }
    }
}

/// Log mel energies; see [`super::Backend::log_mel`].
pub(super) fn log_mel(plan: &LogMelPlan, samples: &[f32], out: &mut [f32]) -> Result<(), usize> {
    log_mel_lanes::<One>(plan, samples, out)
}

/// Statistics of one row; see [`super::Backend::row_stats`].
pub(super) fn row_stats(row: &[f32]) -> Option<RowStats> {
    let (mut argmax, mut max) = (0, f32::NEG_INFINITY);
    for (column, &score) in row.iter().enumerate() {
        if !score.is_finite() {
            return None;
        }
        if score > max {
            (argmax, max) = (column, score);
        }
    }
    let (mut sum, mut weighted) = (0.0f64, 0.0f64);
    for &score in row {
        let below = f64::from(score) - f64::from(max);
        let e = below.exp();
        sum += e;
        weighted += below * e;
    }
    Some(RowStats::new(argmax, sum, weighted))
}
