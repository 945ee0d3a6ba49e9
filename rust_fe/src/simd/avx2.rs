//! AVX2 with FMA: four frames, eight scores at a time.

use std::arch::x86_64::*;

use super::lanes::{GROUP, Lanes, MAX_LANES, ln_fused};
use super::log_mel::{LogMelPlan, log_mel};
use super::row::row_stats;
use super::{Available, RowStats};

/// Proof that this CPU has AVX2 and FMA: only [`Avx2::new`] makes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Avx2(());

impl Avx2 {
    /// Ask the CPU.
    #[must_use]
    pub(super) fn new() -> Option<Self> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")).then_some(Self(()))
    }
}

impl Available for Avx2 {
    fn log_mel(self, plan: &LogMelPlan, samples: &[f32], out: &mut [f32]) -> Result<(), usize> {
        #[target_feature(enable = "avx2,fma")]
        fn inner(plan: &LogMelPlan, samples: &[f32], out: &mut [f32]) -> Result<(), usize> {
            log_mel::<Four>(plan, samples, out)
        }
        // SAFETY: `self` is the proof that the CPU has these features.
        unsafe { inner(plan, samples, out) }
    }

    fn row_stats(self, row: &[f32]) -> Option<RowStats> {
        #[target_feature(enable = "avx2,fma")]
        fn inner(row: &[f32]) -> Option<RowStats> {
            row_stats(row)
        }
        // SAFETY: `self` is the proof that the CPU has these features.
        unsafe { inner(row) }
    }
}

/// Four frames; private, and used only inside the functions above that enable the features.
#[derive(Clone, Copy)]
struct Four(__m256d);

/// An instruction that only needs its feature.
macro_rules! op {
    ($($call:tt)*) => {
        // SAFETY: `Four` is used only inside functions that enable AVX2 and FMA.
        unsafe { $($call)* }
    };
}

impl Lanes for Four {
    const N: usize = 4;

    #[inline(always)]
    fn splat(value: f64) -> Self {
        Self(op!(_mm256_set1_pd(value)))
    }

    #[inline(always)]
    fn from_lanes(values: &[f64; MAX_LANES]) -> Self {
        // SAFETY: `values` holds at least four doubles, and the features are enabled.
        Self(unsafe { _mm256_loadu_pd(values.as_ptr()) })
    }

    #[inline(always)]
    fn load_frames(samples: &[f32], starts: &[usize; MAX_LANES], at: usize) -> [Self; GROUP] {
        let load = |lane: usize| {
            let from = &samples[starts[lane] + at..][..GROUP];
            // SAFETY: `from` holds four floats, and the features are enabled.
            unsafe { _mm_loadu_ps(from.as_ptr()) }
        };
        let (a, b, c, d) = (load(0), load(1), load(2), load(3));
        let (ab_low, ab_high) = (op!(_mm_unpacklo_ps(a, b)), op!(_mm_unpackhi_ps(a, b)));
        let (cd_low, cd_high) = (op!(_mm_unpacklo_ps(c, d)), op!(_mm_unpackhi_ps(c, d)));
        let columns = [
            op!(_mm_movelh_ps(ab_low, cd_low)),
            op!(_mm_movehl_ps(cd_low, ab_low)),
            op!(_mm_movelh_ps(ab_high, cd_high)),
            op!(_mm_movehl_ps(cd_high, ab_high)),
        ];
        columns.map(|column| Self(op!(_mm256_cvtps_pd(column))))
    }

    #[inline(always)]
    fn store_f32(self, to: &mut [f32]) {
        let to = &mut to[..Self::N];
        let rounded = op!(_mm256_cvtpd_ps(self.0));
        // SAFETY: `to` has room for four floats, and the features are enabled.
        unsafe { _mm_storeu_ps(to.as_mut_ptr(), rounded) };
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(op!(_mm256_add_pd(self.0, other.0)))
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(op!(_mm256_sub_pd(self.0, other.0)))
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self(op!(_mm256_mul_pd(self.0, other.0)))
    }

    #[inline(always)]
    fn mul_add(self, factor: Self, summand: Self) -> Self {
        Self(op!(_mm256_fmadd_pd(self.0, factor.0, summand.0)))
    }

    #[inline(always)]
    fn neg_mul_add(self, factor: Self, summand: Self) -> Self {
        Self(op!(_mm256_fnmadd_pd(self.0, factor.0, summand.0)))
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Self(op!(_mm256_min_pd(self.0, other.0)))
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Self(op!(_mm256_max_pd(self.0, other.0)))
    }

    #[inline(always)]
    fn ln(values: &mut [f32]) {
        ln_fused(values);
    }
}
