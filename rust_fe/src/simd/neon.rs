//! NEON: two frames, four scores at a time.

use std::arch::aarch64::*;

use super::lanes::{Frames, GROUP, Lanes, MAX_LANES, ln_fused};
use super::log_mel::{LogMelPlan, log_mel};
use super::row::row_stats;
use super::{Available, RowStats};

/// Proof that this CPU has NEON: only [`Neon::new`] makes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Neon(());

impl Neon {
    /// Ask the CPU.
    #[must_use]
    pub(super) fn new() -> Option<Self> {
        std::arch::is_aarch64_feature_detected!("neon").then_some(Self(()))
    }
}

impl Available for Neon {
    fn log_mel(self, plan: &LogMelPlan, samples: &[f32], out: &mut [f32]) -> Result<(), usize> {
        #[target_feature(enable = "neon")]
        fn inner(plan: &LogMelPlan, samples: &[f32], out: &mut [f32]) -> Result<(), usize> {
            log_mel::<Two>(plan, samples, out)
        }
        // SAFETY: `self` is the proof that the CPU has these features.
        unsafe { inner(plan, samples, out) }
    }

    fn row_stats(self, row: &[f32]) -> Option<RowStats> {
        #[target_feature(enable = "neon")]
        fn inner(row: &[f32]) -> Option<RowStats> {
            row_stats(row)
        }
        // SAFETY: `self` is the proof that the CPU has these features.
        unsafe { inner(row) }
    }
}

/// Two frames; private, and used only inside the functions above that enable the feature.
#[derive(Clone, Copy)]
struct Two(float64x2_t);

/// Four samples of one frame.
#[inline(always)]
fn load(frames: &Frames<'_>, lane: usize, at: usize) -> float32x4_t {
    // SAFETY: `group` points to four floats, and the feature is enabled.
    unsafe { vld1q_f32(frames.group(lane, at).cast()) }
}

/// An instruction that only needs its feature.
macro_rules! op {
    ($($call:tt)*) => {
        // SAFETY: `Two` is used only inside functions that enable NEON.
        unsafe { $($call)* }
    };
}

impl Lanes for Two {
    const N: usize = 2;

    #[inline(always)]
    fn splat(value: f64) -> Self {
        Self(op!(vdupq_n_f64(value)))
    }

    #[inline(always)]
    fn from_lanes(values: &[f64; MAX_LANES]) -> Self {
        // SAFETY: `values` holds at least two doubles, and the feature is enabled.
        Self(unsafe { vld1q_f64(values.as_ptr()) })
    }

    #[inline(always)]
    fn load_frames(frames: &Frames<'_>, at: usize) -> [Self; GROUP] {
        let (a, b) = (load(frames, 0, at), load(frames, 1, at));
        let (low, high) = (op!(vzip1q_f32(a, b)), op!(vzip2q_f32(a, b)));
        [
            Self(op!(vcvt_f64_f32(vget_low_f32(low)))),
            Self(op!(vcvt_high_f64_f32(low))),
            Self(op!(vcvt_f64_f32(vget_low_f32(high)))),
            Self(op!(vcvt_high_f64_f32(high))),
        ]
    }

    #[inline(always)]
    fn load_f32(values: &[f32]) -> Self {
        let values = &values[..Self::N];
        // SAFETY: `values` holds two floats, and the feature is enabled.
        let values = unsafe { vld1_f32(values.as_ptr()) };
        Self(op!(vcvt_f64_f32(values)))
    }

    #[inline(always)]
    fn to_lanes(self) -> [f64; MAX_LANES] {
        let mut lanes = [0.0; MAX_LANES];
        // SAFETY: `lanes` has room for eight doubles, and the feature is enabled.
        unsafe { vst1q_f64(lanes.as_mut_ptr(), self.0) };
        lanes
    }

    #[inline(always)]
    fn store_f32(self, to: &mut [f32]) {
        let to = &mut to[..Self::N];
        let rounded = op!(vcvt_f32_f64(self.0));
        // SAFETY: `to` has room for two floats, and the feature is enabled.
        unsafe { vst1_f32(to.as_mut_ptr(), rounded) };
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(op!(vaddq_f64(self.0, other.0)))
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(op!(vsubq_f64(self.0, other.0)))
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self(op!(vmulq_f64(self.0, other.0)))
    }

    #[inline(always)]
    fn mul_add(self, factor: Self, summand: Self) -> Self {
        Self(op!(vfmaq_f64(summand.0, self.0, factor.0)))
    }

    #[inline(always)]
    fn mul_sub(self, factor: Self, subtrahend: Self) -> Self {
        Self(op!(vnegq_f64(vfmsq_f64(subtrahend.0, self.0, factor.0))))
    }

    #[inline(always)]
    fn neg_mul_add(self, factor: Self, summand: Self) -> Self {
        Self(op!(vfmsq_f64(summand.0, self.0, factor.0)))
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Self(op!(vminnmq_f64(self.0, other.0)))
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Self(op!(vmaxnmq_f64(self.0, other.0)))
    }

    #[inline(always)]
    fn ln(values: &mut [f32]) {
        ln_fused(values);
    }
}
