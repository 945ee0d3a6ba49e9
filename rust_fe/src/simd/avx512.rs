//! AVX-512: eight frames, sixteen scores at a time.

use std::arch::x86_64::*;

use super::lanes::{Frames, GROUP, Lanes, MAX_LANES, ln_fused};
use super::log_mel::{LogMelPlan, log_mel};
use super::row::row_stats;
use super::{Available, RowStats};

/// Proof that this CPU has AVX-512F, BW, DQ and VL: only [`Avx512::new`] makes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Avx512(());

impl Avx512 {
    /// Ask the CPU.
    #[must_use]
    pub(super) fn new() -> Option<Self> {
        let has = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        has.then_some(Self(()))
    }
}

impl Available for Avx512 {
    fn log_mel(self, plan: &LogMelPlan, samples: &[f32], out: &mut [f32]) -> Result<(), usize> {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
        fn inner(plan: &LogMelPlan, samples: &[f32], out: &mut [f32]) -> Result<(), usize> {
            log_mel::<Eight>(plan, samples, out)
        }
        // SAFETY: `self` is the proof that the CPU has these features.
        unsafe { inner(plan, samples, out) }
    }

    fn row_stats(self, row: &[f32]) -> Option<RowStats> {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
        fn inner(row: &[f32]) -> Option<RowStats> {
            row_stats(row)
        }
        // SAFETY: `self` is the proof that the CPU has these features.
        unsafe { inner(row) }
    }
}

/// Eight frames; private, and used only inside the functions above that enable the features.
#[derive(Clone, Copy)]
struct Eight(__m512d);

/// Four samples of one frame.
#[inline(always)]
fn load(frames: &Frames<'_>, lane: usize, at: usize) -> __m128 {
    // SAFETY: `group` points to four floats, and the features are enabled.
    unsafe { _mm_loadu_ps(frames.group(lane, at).cast()) }
}

/// An instruction that only needs its feature.
macro_rules! op {
    ($($call:tt)*) => {
        // SAFETY: `Eight` is used only inside functions that enable AVX-512F, BW, DQ and VL.
        unsafe { $($call)* }
    };
}

impl Lanes for Eight {
    const N: usize = 8;

    #[inline(always)]
    fn splat(value: f64) -> Self {
        Self(op!(_mm512_set1_pd(value)))
    }

    #[inline(always)]
    fn from_lanes(values: &[f64; MAX_LANES]) -> Self {
        // SAFETY: `values` holds eight doubles, and the features are enabled.
        Self(unsafe { _mm512_loadu_pd(values.as_ptr()) })
    }

    #[inline(always)]
    fn load_frames(frames: &Frames<'_>, at: usize) -> [Self; GROUP] {
        // Frames 0 and 4, 1 and 5, ... share a vector; then a transposition within its halves.
        let a = op!(_mm256_set_m128(load(frames, 4, at), load(frames, 0, at)));
        let b = op!(_mm256_set_m128(load(frames, 5, at), load(frames, 1, at)));
        let c = op!(_mm256_set_m128(load(frames, 6, at), load(frames, 2, at)));
        let d = op!(_mm256_set_m128(load(frames, 7, at), load(frames, 3, at)));
        let (ab_low, ab_high) = (op!(_mm256_unpacklo_ps(a, b)), op!(_mm256_unpackhi_ps(a, b)));
        let (cd_low, cd_high) = (op!(_mm256_unpacklo_ps(c, d)), op!(_mm256_unpackhi_ps(c, d)));
        [
            Self(op!(_mm512_cvtps_pd(_mm256_shuffle_ps::<0b01_00_01_00>(
                ab_low, cd_low
            )))),
            Self(op!(_mm512_cvtps_pd(_mm256_shuffle_ps::<0b11_10_11_10>(
                ab_low, cd_low
            )))),
            Self(op!(_mm512_cvtps_pd(_mm256_shuffle_ps::<0b01_00_01_00>(
                ab_high, cd_high
            )))),
            Self(op!(_mm512_cvtps_pd(_mm256_shuffle_ps::<0b11_10_11_10>(
                ab_high, cd_high
            )))),
        ]
    }

    #[inline(always)]
    fn load_f32(values: &[f32]) -> Self {
        let values = &values[..Self::N];
        // SAFETY: `values` holds eight floats, and the features are enabled.
        let values = unsafe { _mm256_loadu_ps(values.as_ptr()) };
        Self(op!(_mm512_cvtps_pd(values)))
    }

    #[inline(always)]
    fn to_lanes(self) -> [f64; MAX_LANES] {
        let mut lanes = [0.0; MAX_LANES];
        // SAFETY: `lanes` has room for eight doubles, and the features are enabled.
        unsafe { _mm512_storeu_pd(lanes.as_mut_ptr(), self.0) };
        lanes
    }

    #[inline(always)]
    fn store_f32(self, to: &mut [f32]) {
        let to = &mut to[..Self::N];
        let rounded = op!(_mm512_cvtpd_ps(self.0));
        // SAFETY: `to` has room for eight floats, and the features are enabled.
        unsafe { _mm256_storeu_ps(to.as_mut_ptr(), rounded) };
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(op!(_mm512_add_pd(self.0, other.0)))
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(op!(_mm512_sub_pd(self.0, other.0)))
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self(op!(_mm512_mul_pd(self.0, other.0)))
    }

    #[inline(always)]
    fn mul_add(self, factor: Self, summand: Self) -> Self {
        Self(op!(_mm512_fmadd_pd(self.0, factor.0, summand.0)))
    }

    #[inline(always)]
    fn mul_sub(self, factor: Self, subtrahend: Self) -> Self {
        Self(op!(_mm512_fmsub_pd(self.0, factor.0, subtrahend.0)))
    }

    #[inline(always)]
    fn neg_mul_add(self, factor: Self, summand: Self) -> Self {
        Self(op!(_mm512_fnmadd_pd(self.0, factor.0, summand.0)))
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Self(op!(_mm512_min_pd(self.0, other.0)))
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Self(op!(_mm512_max_pd(self.0, other.0)))
    }

    #[inline(always)]
    fn ln(values: &mut [f32]) {
        ln_fused(values);
    }
}
