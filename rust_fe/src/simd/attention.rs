//! Self-attention of one head, for the operator that runs inside the network (`ort`).

#[cfg(target_arch = "x86_64")]
use super::bf16::Bf16;

/// One head's columns of a matrix whose rows hold all heads side by side.
#[derive(Debug, Clone, Copy)]
pub struct Columns<'a> {
    values: &'a [f32],
    stride: usize,
    first: usize,
    count: usize,
}

impl<'a> Columns<'a> {
    /// `count` columns from `first` on, of rows of `stride` values.
    ///
    /// # Panics
    /// If the columns do not lie within a row, or the rows are not whole.
    #[must_use]
    pub fn new(values: &'a [f32], stride: usize, first: usize, count: usize) -> Self {
        assert!(count > 0 && first + count <= stride, "columns of a row");
        assert!(values.len().is_multiple_of(stride), "whole rows");
        Self {
            values,
            stride,
            first,
            count,
        }
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(self) -> usize {
        self.values.len() / self.stride
    }

    /// Values in a row.
    pub(super) fn count(self) -> usize {
        self.count
    }

    /// One row.
    #[inline(always)]
    pub(super) fn row(self, index: usize) -> &'a [f32] {
        &self.values[index * self.stride + self.first..][..self.count]
    }
}

/// As [`Columns`], to write to. Heads are computed side by side, so each writer has a pointer to
/// the whole matrix and keeps to its own columns.
#[derive(Debug)]
pub struct ColumnsMut {
    start: *mut f32,
    rows: usize,
    stride: usize,
    count: usize,
}

impl ColumnsMut {
    /// `count` columns from `first` on, of `rows` rows of `stride` values.
    ///
    /// # Safety
    /// `matrix` points to `rows * stride` floats that outlive the value, and nobody else reads or
    /// writes these columns meanwhile.
    ///
    /// # Panics
    /// If the columns do not lie within a row.
    #[must_use]
    pub unsafe fn new(
        matrix: *mut f32,
        rows: usize,
        stride: usize,
        first: usize,
        count: usize,
    ) -> Self {
        assert!(first + count <= stride, "columns of a row");
        Self {
            start: matrix.wrapping_add(first),
            rows,
            stride,
            count,
        }
    }

    /// Rows and columns.
    pub(super) fn shape(&self) -> (usize, usize) {
        (self.rows, self.count)
    }

    /// One row.
    #[inline(always)]
    pub(super) fn row(&mut self, index: usize) -> &mut [f32] {
        assert!(index < self.rows, "a row of the matrix");
        let start = self.start.wrapping_add(index * self.stride);
        // SAFETY: the row lies within the matrix, and `new`'s caller vouched for the rest.
        unsafe { std::slice::from_raw_parts_mut(start, self.count) }
    }
}

/// Proof that this CPU multiplies pairs of bf16: only [`Attention::new`] makes one.
#[derive(Debug, Clone, Copy)]
pub struct Attention(Kind);

#[derive(Debug, Clone, Copy)]
enum Kind {
    #[cfg(target_arch = "x86_64")]
    Bf16(Bf16),
}

impl Attention {
    /// Ask the CPU.
    #[must_use]
    pub fn new() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        return Bf16::new().map(|backend| Self(Kind::Bf16(backend)));
        #[cfg(not(target_arch = "x86_64"))]
        None
    }

    /// One head: `out = softmax(scale * query key^T) value`, without a mask.
    ///
    /// Factors of both products are rounded to bf16, sums kept in single precision. A NaN or an
    /// infinity in a row of `query` makes that row of `out` NaN; one in `key` or `value` spreads
    /// as the sums spread it.
    ///
    /// # Panics
    /// If the matrices differ in shape, or `scale` is not above 0.
    pub fn head(
        self,
        query: Columns<'_>,
        key: Columns<'_>,
        value: Columns<'_>,
        scale: f32,
        out: &mut ColumnsMut,
    ) {
        assert!(scale > 0.0, "the largest product has the largest weight");
        for other in [key, value] {
            assert_eq!(query.rows(), other.rows(), "as many rows");
            assert_eq!(query.count, other.count, "as many columns");
        }
        assert_eq!((query.rows(), query.count), out.shape());
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Bf16(backend) => backend.attention(query, key, value, scale, out),
        }
    }
}
