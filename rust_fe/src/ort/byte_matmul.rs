//! `asr.ByteMatMul`: panels of columns side by side.

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};

use super::api::{Api, FLOAT, INT8, INT32, Opaque, Status};
use super::operator::Kernel;
use super::tensor::{constant, input, output};
use super::{check, refuse};
use crate::simd::{ByteMatrix, ByteProduct, ByteRows, ColumnsMut};

/// Panels that go over the rows together: rows are fetched once for all of them.
const GROUP: usize = 4;

thread_local! {
    /// Memory of one thread, kept for its next call: a fresh page costs more than it takes to fill.
    static ROWS: Cell<ByteRows> = Cell::default();
}

pub(super) struct ByteMatMul {
    api: &'static Api,
    product: ByteProduct,
    matrix: ByteMatrix<'static>,
    relu: bool,
}

impl Kernel for ByteMatMul {
    const NAME: &'static CStr = c"ByteMatMul";
    const INPUTS: &'static [c_int] = &[FLOAT, INT8, FLOAT, INT32, INT32, FLOAT];

    fn new(api: &'static Api, info: *const Opaque) -> Result<Self, Status> {
        let (mut columns, mut relu) = (0i64, 0i64);
        // SAFETY: the node's description, and a place for the result.
        check(unsafe { (api.attribute_int64)(info, c"columns".as_ptr(), &raw mut columns) })?;
        // SAFETY: the same.
        check(unsafe { (api.attribute_int64)(info, c"relu".as_ptr(), &raw mut relu) })?;
        let mut depth = 0i64;
        // SAFETY: the same.
        check(unsafe { (api.attribute_int64)(info, c"depth".as_ptr(), &raw mut depth) })?;
        let shape = [depth, columns].map(|n| usize::try_from(n).unwrap_or(0));
        // SAFETY: `INPUTS` says that it is of bytes.
        let weights = unsafe { constant::<i8>(api, info, 1) }?;
        // SAFETY: `INPUTS` says that it is of floats.
        let scales = unsafe { constant::<f32>(api, info, 2) }?;
        // SAFETY: `INPUTS` says that it is of integers.
        let sums = unsafe { constant::<i32>(api, info, 3) }?;
        // SAFETY: the same.
        let zeros = unsafe { constant::<i32>(api, info, 4) }?;
        // SAFETY: `INPUTS` says that it is of floats.
        let bias = unsafe { constant::<f32>(api, info, 5) }?;
        let Some(matrix) = ByteMatrix::new(weights, shape, scales, sums, zeros, bias) else {
            return Err(refuse(
                api,
                c"asr.ByteMatMul: expected constants of one depth and number of columns, in whole \
                  panels",
            ));
        };
        let Some(product) = ByteProduct::new() else {
            return Err(refuse(
                api,
                c"asr.ByteMatMul: expected a CPU with AVX-512 VNNI, found one without; prepare the \
                  network there",
            ));
        };
        Ok(Self {
            api,
            product,
            matrix,
            relu: relu != 0,
        })
    }

    fn run(&self, context: *mut Opaque) -> Result<(), Status> {
        let (values, shape) = input(self.api, context, 0)?;
        if shape.last() != self.matrix.depth() {
            return Err(refuse(
                self.api,
                c"asr.ByteMatMul: expected rows as long as the matrix is deep",
            ));
        }
        let columns = self.matrix.columns();
        let output = output(self.api, context, &shape.with_last(columns))?;
        if values.is_empty() {
            return Ok(());
        }
        let mut rows = ROWS.take();
        self.product
            .quantise(values, self.matrix.depth(), &mut rows);
        let mut panels = Panels {
            kernel: self,
            rows: &rows,
            output,
        };
        let data = (&raw mut panels).cast();
        let count = self.matrix.panels().div_ceil(GROUP);
        // SAFETY: `group` is called with `data` and numbers below the total, and all calls have
        // ended when this returns.
        let done = check(unsafe { (self.api.parallel_for)(context, group, count, 0, data) });
        ROWS.set(rows);
        done
    }
}

/// Panels of one product, to be computed side by side.
struct Panels<'a> {
    kernel: &'a ByteMatMul,
    rows: &'a ByteRows,
    output: *mut f32,
}

/// Panels that go over the rows together.
unsafe extern "C" fn group(data: *mut c_void, index: usize) {
    // SAFETY: `run` passes its own, and waits.
    let all: &Panels<'_> = unsafe { &*data.cast() };
    let ByteMatMul { matrix, .. } = all.kernel;
    let panels = index * GROUP..matrix.panels().min((index + 1) * GROUP);
    let columns = matrix.columns_of(panels.clone());
    let (rows, width) = (all.rows.rows(), matrix.columns());
    // SAFETY: the output has as many rows and columns, and each call has columns of its own.
    let mut out = unsafe { ColumnsMut::new(all.output, rows, width, columns.start, columns.len()) };
    all.kernel
        .product
        .panels(all.rows, matrix, panels, all.kernel.relu, &mut out);
}
