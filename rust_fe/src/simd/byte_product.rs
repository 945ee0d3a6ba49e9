//! Rows quantised to bytes as they come, times a matrix of signed bytes, for the operator that
//! runs inside the network (`ort`).
//!
//! ```text
//! byte = round(value / scale) + zero          one scale and zero for all rows
//! out = (sum (byte - zero) (weight - weight_zero)) * (scale * weight_scale) + bias
//! ```
//!
//! The sum is an exact integer, everything else is rounded where ONNX Runtime's
//! `DynamicQuantizeMatMul` rounds it: the results are the same bits.

use std::ops::Range;

use super::attention::ColumnsMut;
#[cfg(target_arch = "x86_64")]
use super::vnni::Vnni;

/// Columns of a panel.
pub(super) const PANEL: usize = 32;

/// Rows deep at which a sum of products of bytes could leave 32 bits.
const DEEPEST: usize = i32::MAX as usize / (255 * 255);

/// A matrix of signed bytes in the kernel's order, with what belongs to its columns.
#[derive(Debug, Clone, Copy)]
pub struct ByteMatrix<'a> {
    pub(super) weights: &'a [i8],
    pub(super) depth: usize,
    pub(super) columns: usize,
    pub(super) scales: &'a [f32],
    pub(super) sums: &'a [i32],
    pub(super) zeros: &'a [i32],
    pub(super) bias: &'a [f32],
}

impl<'a> ByteMatrix<'a> {
    /// A matrix of `depth` rows and `columns` columns.
    ///
    /// `weights` are panels of [`PANEL`] columns; in a panel four values of a column lie side by
    /// side: (panels, `depth` / 4, `PANEL`, 4), zeros beyond the edges. Per column of the panels:
    /// `scales`; `sums` of its weights; `zeros`, or none if all are 0; `bias`.
    ///
    /// `None` if a length does not fit.
    #[must_use]
    pub fn new(
        weights: &'a [i8],
        [depth, columns]: [usize; 2],
        scales: &'a [f32],
        sums: &'a [i32],
        zeros: &'a [i32],
        bias: &'a [f32],
    ) -> Option<Self> {
        let padded = columns.next_multiple_of(PANEL);
        let fits = (1..=DEEPEST).contains(&depth)
            && columns > 0
            && weights.len() == padded * depth.next_multiple_of(4)
            && [scales.len(), sums.len(), bias.len()] == [padded; 3]
            && (zeros.is_empty() || zeros.len() == padded);
        fits.then_some(Self {
            weights,
            depth,
            columns,
            scales,
            sums,
            zeros,
            bias,
        })
    }

    /// Rows of the matrix.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Columns of the matrix.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Panels of the matrix.
    #[must_use]
    pub fn panels(&self) -> usize {
        self.columns.div_ceil(PANEL)
    }

    /// Columns of some panels, the last of which may be narrower.
    ///
    /// # Panics
    /// If there are none, or not as many.
    #[must_use]
    pub fn columns_of(&self, panels: Range<usize>) -> Range<usize> {
        assert!(panels.start < panels.end && panels.end <= self.panels());
        panels.start * PANEL..self.columns.min(panels.end * PANEL)
    }
}

/// Rows as unsigned bytes; its memory is kept for the next ones.
#[derive(Debug, Default)]
pub struct ByteRows {
    pub(super) bytes: Vec<u8>,
    pub(super) sums: Vec<i32>,
    pub(super) stride: usize,
    pub(super) depth: usize,
    pub(super) scale: f32,
    pub(super) zero: i32,
}

impl ByteRows {
    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.sums.len()
    }
}

/// Proof that this CPU multiplies and adds bytes: only [`ByteProduct::new`] makes one.
#[derive(Debug, Clone, Copy)]
pub struct ByteProduct(Kind);

#[derive(Debug, Clone, Copy)]
enum Kind {
    #[cfg(target_arch = "x86_64")]
    Vnni(Vnni),
}

impl ByteProduct {
    /// Ask the CPU.
    #[must_use]
    pub fn new() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        return Vnni::new().map(|backend| Self(Kind::Vnni(backend)));
        #[cfg(not(target_arch = "x86_64"))]
        None
    }

    /// Quantise rows of `depth` values, side by side in `values`, as ONNX's
    /// `DynamicQuantizeLinear` does.
    ///
    /// # Panics
    /// If the rows are not whole.
    pub fn quantise(self, values: &[f32], depth: usize, rows: &mut ByteRows) {
        assert!(
            depth > 0 && values.len().is_multiple_of(depth),
            "whole rows"
        );
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Vnni(backend) => backend.quantise(values, depth, rows),
        }
    }

    /// Some panels' columns of the product; with `relu` nothing below 0.
    ///
    /// # Panics
    /// If the shapes do not fit one another.
    pub fn panels(
        self,
        rows: &ByteRows,
        matrix: &ByteMatrix<'_>,
        panels: Range<usize>,
        relu: bool,
        out: &mut ColumnsMut,
    ) {
        assert_eq!(
            rows.depth, matrix.depth,
            "rows as long as the matrix is deep"
        );
        let columns = matrix.columns_of(panels.clone());
        assert_eq!(out.shape(), (rows.rows(), columns.len()));
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Vnni(backend) => backend.panels(rows, matrix, panels, relu, out),
        }
    }
}
