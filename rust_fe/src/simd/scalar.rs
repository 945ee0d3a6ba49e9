//! Plain Rust: the definition of right.

use super::RowStats;
use super::lanes::{Frames, GROUP, Lanes, MAX_LANES};
use super::log_mel::{LogMelPlan, log_mel as log_mel_lanes};

/// One frame at a time.
#[derive(Clone, Copy)]
pub(super) struct One(f64);

impl Lanes for One {
    const N: usize = 1;

    #[inline(always)]
    fn splat(value: f64) -> Self {
        Self(value)
    }

    #[inline(always)]
    fn from_lanes(values: &[f64; MAX_LANES]) -> Self {
        Self(values[0])
    }

    #[inline(always)]
    fn load_frames(frames: &Frames<'_>, at: usize) -> [Self; GROUP] {
        std::array::from_fn(|i| Self(f64::from(frames.sample(0, at + i))))
    }

    #[inline(always)]
    fn load_f32(values: &[f32]) -> Self {
        Self(f64::from(values[0]))
    }

    #[inline(always)]
    fn to_lanes(self) -> [f64; MAX_LANES] {
        let mut lanes = [0.0; MAX_LANES];
        lanes[0] = self.0;
        lanes
    }

    #[inline(always)]
    fn store_f32(self, to: &mut [f32]) {
        to[0] = self.0 as f32;
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self(self.0 * other.0)
    }

    // Two roundings: without the instruction, `f64::mul_add` would be a slow library call.
    #[inline(always)]
    fn mul_add(self, factor: Self, summand: Self) -> Self {
        Self(self.0 * factor.0 + summand.0)
    }

    #[inline(always)]
    fn mul_sub(self, factor: Self, subtrahend: Self) -> Self {
        Self(self.0 * factor.0 - subtrahend.0)
    }

    #[inline(always)]
    fn neg_mul_add(self, factor: Self, summand: Self) -> Self {
        Self(summand.0 - self.0 * factor.0)
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Self(if self.0 < other.0 { self.0 } else { other.0 })
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Self(if self.0 > other.0 { self.0 } else { other.0 })
    }

    #[inline(always)]
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
    if row.is_empty() {
        return None;
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
