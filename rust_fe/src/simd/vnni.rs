//! Products of bytes with AVX-512 VNNI: sixty-four in one instruction.
//!
//! A tile is up to [`TILE`] rows times a panel of 32 columns; its sums stay in registers from the
//! first product to the last.

use std::arch::x86_64::*;
use std::ops::Range;

use super::attention::ColumnsMut;
use super::byte_product::{ByteMatrix, ByteRows, PANEL};

/// Proof that this CPU has AVX-512F, BW and VNNI: only [`Vnni::new`] makes one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Vnni(());

/// Rows of a tile: twice as many vectors of sums, two of weights and one of a row are 27 of the
/// CPU's 32.
const TILE: usize = 12;

/// A line of the cache, bytes.
const LINE: usize = 64;

impl Vnni {
    /// Ask the CPU.
    #[must_use]
    pub(super) fn new() -> Option<Self> {
        let has = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vnni");
        has.then_some(Self(()))
    }

    /// See [`super::byte_product::ByteProduct::quantise`].
    pub(super) fn quantise(self, values: &[f32], depth: usize, rows: &mut ByteRows) {
        // SAFETY: `self` is the proof that the CPU has these features.
        unsafe { quantise(values, depth, rows) }
    }

    /// See [`super::byte_product::ByteProduct::panels`].
    pub(super) fn panels(
        self,
        rows: &ByteRows,
        matrix: &ByteMatrix<'_>,
        panels: Range<usize>,
        relu: bool,
        out: &mut ColumnsMut,
    ) {
        // SAFETY: `self` is the proof that the CPU has these features.
        unsafe { run(rows, matrix, panels, relu, out) }
    }
}

/// Smallest and largest value, 0 among them.
#[target_feature(enable = "avx512f")]
fn range(values: &[f32]) -> (f32, f32) {
    let (mut least, mut most) = ([_mm512_setzero_ps(); 4], [_mm512_setzero_ps(); 4]);
    let (blocks, rest) = values.as_chunks::<64>();
    for block in blocks {
        for (i, (least, most)) in least.iter_mut().zip(&mut most).enumerate() {
            // SAFETY: the block holds four times sixteen floats.
            let value = unsafe { _mm512_loadu_ps(block.as_ptr().wrapping_add(i * 16)) };
            *least = _mm512_min_ps(*least, value);
            *most = _mm512_max_ps(*most, value);
        }
    }
    let least = least
        .into_iter()
        .fold(_mm512_setzero_ps(), |a, b| _mm512_min_ps(a, b));
    let most = most
        .into_iter()
        .fold(_mm512_setzero_ps(), |a, b| _mm512_max_ps(a, b));
    rest.iter().fold(
        (_mm512_reduce_min_ps(least), _mm512_reduce_max_ps(most)),
        |(least, most), &value| (least.min(value), most.max(value)),
    )
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn quantise(values: &[f32], depth: usize, rows: &mut ByteRows) {
    let (least, most) = range(values);
    let scale = if most == least {
        1.0
    } else {
        (most - least) / 255.0
    };
    let zero = (0.0 - least / scale).clamp(0.0, 255.0).round_ties_even();
    rows.scale = scale;
    rows.zero = zero as i32;
    rows.depth = depth;
    // An odd number of lines: the same place of many rows must not share a set of the cache.
    rows.stride = (depth.div_ceil(LINE) | 1) * LINE;
    let count = values.len() / depth;
    rows.bytes.resize(count * rows.stride, 0);
    rows.sums.resize(count, 0);
    let (scale, zero) = (_mm512_set1_ps(scale), _mm512_set1_ps(zero));
    let (least, most) = (
        _mm512_sub_ps(_mm512_setzero_ps(), zero),
        _mm512_sub_ps(_mm512_set1_ps(255.0), zero),
    );
    let whole = _mm512_cvtps_epi32(zero);
    let lines = values
        .chunks_exact(depth)
        .zip(rows.bytes.chunks_exact_mut(rows.stride));
    for ((from, to), total) in lines.zip(&mut rows.sums) {
        let mut sum = _mm512_setzero_si512();
        for (from, to) in from.chunks(16).zip(to.as_chunks_mut::<16>().0) {
            let mask = ((1u32 << from.len()) - 1) as u16;
            // SAFETY: only the floats of the slice are read.
            let value = unsafe { _mm512_maskz_loadu_ps(mask, from.as_ptr()) };
            let value = _mm512_div_ps(value, scale);
            let value = _mm512_min_ps(_mm512_max_ps(value, least), most);
            // Zeros beyond the row: weights there are 0, but they would count in the sum.
            let byte = _mm512_maskz_add_epi32(mask, _mm512_cvtps_epi32(value), whole);
            sum = _mm512_add_epi32(sum, byte);
            let bytes = _mm512_cvtepi32_epi8(byte);
            // SAFETY: the array has room for sixteen bytes.
            unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), bytes) };
        }
        *total = _mm512_reduce_add_epi32(sum);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn run(
    rows: &ByteRows,
    matrix: &ByteMatrix<'_>,
    panels: Range<usize>,
    relu: bool,
    out: &mut ColumnsMut,
) {
    let count = rows.rows();
    let tiles = count.div_ceil(TILE);
    let size = matrix.depth.div_ceil(4) * 4 * PANEL;
    // The next panels come from memory while these are at work.
    let behind = matrix.weights.as_ptr().wrapping_add(panels.len() * size);
    // Tiles as equal as can be: one of few rows would wait for its own sums.
    for tile in 0..tiles {
        let (first, end) = (count * tile / tiles, count * (tile + 1) / tiles);
        for panel in panels.clone() {
            let columns = panel * PANEL..(panel + 1) * PANEL;
            let job = Job {
                rows,
                weights: &matrix.weights[panel * size..][..size],
                ahead: behind.wrapping_add(panel * size + tile.min(1) * LINE),
                scales: &matrix.scales[columns.clone()],
                sums: &matrix.sums[columns.clone()],
                zeros: matrix.zeros.get(columns.clone()),
                bias: &matrix.bias[columns],
                relu,
                first,
                column: (panel - panels.start) * PANEL,
            };
            match end - first {
                1 => job.tile::<1>(out),
                2 => job.tile::<2>(out),
                3 => job.tile::<3>(out),
                4 => job.tile::<4>(out),
                5 => job.tile::<5>(out),
                6 => job.tile::<6>(out),
                7 => job.tile::<7>(out),
                8 => job.tile::<8>(out),
                9 => job.tile::<9>(out),
                10 => job.tile::<10>(out),
                11 => job.tile::<11>(out),
                _ => job.tile::<TILE>(out),
            }
        }
    }
}

/// A tile: rows from `first` on times a panel, to columns from `column` on.
struct Job<'a> {
    rows: &'a ByteRows,
    weights: &'a [i8],
    ahead: *const i8,
    scales: &'a [f32],
    sums: &'a [i32],
    zeros: Option<&'a [i32]>,
    bias: &'a [f32],
    relu: bool,
    first: usize,
    column: usize,
}

impl Job<'_> {
    /// Of `R` rows.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    fn tile<const R: usize>(&self, out: &mut ColumnsMut) {
        let stride = self.rows.stride;
        let rows = &self.rows.bytes[self.first * stride..][..R * stride];
        assert!(
            self.weights.len() <= stride * PANEL,
            "as deep as the rows are long"
        );
        let zero = _mm512_set1_epi32(self.rows.zero.wrapping_neg());
        let start = [0, 16].map(|half| _mm512_mullo_epi32(zero, load_ints(self.sums, half)));
        let mut sums = [start; R];
        for (step, weights) in self
            .weights
            .as_chunks::<{ 4 * PANEL }>()
            .0
            .iter()
            .enumerate()
        {
            prefetch(self.ahead.wrapping_add(step * 2 * LINE));
            // SAFETY: the array holds twice sixty-four bytes.
            let low = unsafe { _mm512_loadu_si512(weights.as_ptr().cast()) };
            // SAFETY: the same.
            let high = unsafe { _mm512_loadu_si512(weights.as_ptr().wrapping_add(LINE).cast()) };
            for (row, sums) in sums.iter_mut().enumerate() {
                // SAFETY: there are `R` rows, and each is as long as the panel is deep.
                let at = unsafe { rows.as_ptr().add(row * stride + step * 4) };
                // SAFETY: the same.
                let four = _mm512_set1_epi32(unsafe { at.cast::<i32>().read_unaligned() });
                sums[0] = _mm512_dpbusd_epi32(sums[0], four, low);
                sums[1] = _mm512_dpbusd_epi32(sums[1], four, high);
            }
        }
        for (row, sums) in sums.into_iter().enumerate() {
            let zeros = self.rows.zero.wrapping_mul(self.rows.depth as i32);
            let of_row = self.rows.sums[self.first + row].wrapping_sub(zeros);
            self.store(sums, of_row, &mut out.row(self.first + row)[self.column..]);
        }
    }

    /// Sums of integers to floats: a row of the panel.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    fn store(&self, sums: [__m512i; 2], of_row: i32, out: &mut [f32]) {
        let scale = _mm512_set1_ps(self.rows.scale);
        for (half, mut sum) in [0, 16].into_iter().zip(sums) {
            if let Some(zeros) = self.zeros {
                let less = _mm512_mullo_epi32(load_ints(zeros, half), _mm512_set1_epi32(of_row));
                sum = _mm512_sub_epi32(sum, less);
            }
            let scale = _mm512_mul_ps(scale, load(self.scales, half));
            let product = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), scale);
            let mut value = _mm512_add_ps(product, load(self.bias, half));
            if self.relu {
                value = _mm512_max_ps(_mm512_setzero_ps(), value); // NaN stays NaN
            }
            let count = out.len().saturating_sub(half).min(16);
            let mask = ((1u32 << count) - 1) as u16;
            // SAFETY: only as many floats are written as the slice still has.
            unsafe { _mm512_mask_storeu_ps(out.as_mut_ptr().wrapping_add(half), mask, value) };
        }
    }
}

/// Half of a panel's floats.
#[inline]
#[target_feature(enable = "avx512f")]
fn load(values: &[f32], at: usize) -> __m512 {
    let values = &values[at..at + 16];
    // SAFETY: the slice holds sixteen floats.
    unsafe { _mm512_loadu_ps(values.as_ptr()) }
}

/// Half of a panel's integers.
#[inline]
#[target_feature(enable = "avx512f")]
fn load_ints(values: &[i32], at: usize) -> __m512i {
    let values = &values[at..at + 16];
    // SAFETY: the slice holds sixteen integers.
    unsafe { _mm512_loadu_si512(values.as_ptr().cast()) }
}

/// Ask for a line before it is needed: a hint, whatever lies there.
#[inline]
#[target_feature(enable = "avx512f")]
fn prefetch(line: *const i8) {
    #[allow(unused_unsafe, reason = "safe to call from Rust 1.94 on")]
    // SAFETY: nothing is read.
    unsafe {
        _mm_prefetch::<_MM_HINT_T1>(line);
    }
}
