//! Vectors to and from memory.

use std::arch::x86_64::*;

/// A vector of bf16 pairs.
pub(super) type Pairs = [u32; 16];

/// Up to sixteen floats from memory, zeros behind.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load(values: &[f32]) -> __m512 {
    if values.len() >= 16 {
        // SAFETY: the slice holds sixteen floats.
        return unsafe { _mm512_loadu_ps(values.as_ptr()) };
    }
    let mask = (1 << values.len()) - 1;
    // SAFETY: only the floats of the slice are read.
    unsafe { _mm512_maskz_loadu_ps(mask, values.as_ptr()) }
}

/// Sixteen floats to memory.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store(to: &mut [f32; 16], values: __m512) {
    // SAFETY: the array has room for sixteen floats.
    unsafe { _mm512_storeu_ps(to.as_mut_ptr(), values) }
}

/// Sixteen pairs from memory.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load_pairs(pairs: &Pairs) -> __m512i {
    // SAFETY: the array holds sixteen pairs.
    unsafe { _mm512_loadu_si512(pairs.as_ptr().cast()) }
}

/// Sixteen pairs to memory.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store_pairs(to: &mut Pairs, pairs: __m512i) {
    // SAFETY: the array has room for sixteen pairs.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), pairs) }
}

/// Sixteen values, rounded, to memory as eight pairs.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub(super) fn store_rounded(to: &mut [u32; 8], values: __m512) {
    let rounded = bits(values);
    // SAFETY: the array has room for eight pairs.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), rounded) }
}

/// Sixteen values rounded to bf16, nearest even.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub(super) fn bits(values: __m512) -> __m256i {
    let rounded = _mm512_cvtneps_pbh(values);
    // SAFETY: both are 256 bits.
    unsafe { std::mem::transmute::<__m256bh, __m256i>(rounded) }
}

/// The same bits as pairs.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn as_pairs(bits: __m512i) -> __m512bh {
    // SAFETY: both are 512 bits.
    unsafe { std::mem::transmute::<__m512i, __m512bh>(bits) }
}
