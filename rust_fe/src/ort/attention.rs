//! `asr.SelfAttention`: heads side by side.

use std::ffi::{CStr, c_int, c_void};

use super::api::{Api, FLOAT, Opaque, Status};
use super::operator::Kernel;
use super::tensor::{input, output};
use super::{check, refuse};
use crate::simd::{Attention, Columns, ColumnsMut};

pub(super) struct SelfAttention {
    api: &'static Api,
    attention: Attention,
    heads: usize,
    scale: f32,
}

impl Kernel for SelfAttention {
    const NAME: &'static CStr = c"SelfAttention";
    const INPUTS: &'static [c_int] = &[FLOAT; 3];

    fn new(api: &'static Api, info: *const Opaque) -> Result<Self, Status> {
        let (mut heads, mut scale) = (0i64, 0.0f32);
        // SAFETY: the node's description, and a place for the result.
        check(unsafe { (api.attribute_int64)(info, c"num_heads".as_ptr(), &raw mut heads) })?;
        // SAFETY: the same.
        check(unsafe { (api.attribute_float)(info, c"scale".as_ptr(), &raw mut scale) })?;
        let heads = usize::try_from(heads).unwrap_or(0);
        if heads == 0 || !scale.is_finite() || scale <= 0.0 {
            return Err(refuse(
                api,
                c"asr.SelfAttention: expected num_heads of at least 1 and a finite scale above 0",
            ));
        }
        let Some(attention) = Attention::new() else {
            return Err(refuse(
                api,
                c"asr.SelfAttention: expected a CPU with AVX-512 BF16, found one without; use the \
                  model from before asr optimize --attention bf16",
            ));
        };
        Ok(Self {
            api,
            attention,
            heads,
            scale,
        })
    }

    fn run(&self, context: *mut Opaque) -> Result<(), Status> {
        let api = self.api;
        let (query, shape) = input(api, context, 0)?;
        let (key, key_shape) = input(api, context, 1)?;
        let (value, value_shape) = input(api, context, 2)?;
        let Some([batch, frames, width]) = shape.three() else {
            return Err(refuse(
                api,
                c"asr.SelfAttention: expected inputs of three dimensions (batch, frames, columns)",
            ));
        };
        if shape != key_shape || shape != value_shape || !width.is_multiple_of(self.heads) {
            return Err(refuse(
                api,
                c"asr.SelfAttention: expected query, key and value of one shape (batch, frames, \
                  columns), as many columns for each head",
            ));
        }
        let output = output(api, context, &shape)?;
        if query.is_empty() {
            return Ok(());
        }
        let mut heads = Heads {
            kernel: self,
            inputs: [query, key, value],
            output,
            frames,
            width,
        };
        let data = (&raw mut heads).cast();
        // SAFETY: `head` is called with `data` and numbers below the total, and all calls have
        // ended when this returns.
        check(unsafe { (api.parallel_for)(context, head, batch * self.heads, 0, data) })
    }
}

/// Heads of all clips, to be computed side by side.
struct Heads<'a> {
    kernel: &'a SelfAttention,
    inputs: [&'a [f32]; 3],
    output: *mut f32,
    frames: usize,
    width: usize,
}

/// One head of one clip.
unsafe extern "C" fn head(data: *mut c_void, index: usize) {
    // SAFETY: `run` passes its own, and waits.
    let all: &Heads<'_> = unsafe { &*data.cast() };
    let Heads { frames, width, .. } = *all;
    let (clip, head) = (index / all.kernel.heads, index % all.kernel.heads);
    let columns = width / all.kernel.heads;
    let first = clip * frames * width;
    let [query, key, value] = all.inputs.map(|input| {
        Columns::new(
            &input[first..first + frames * width],
            width,
            head * columns,
            columns,
        )
    });
    let output = all.output.wrapping_add(first);
    // SAFETY: the output has the inputs' shape, and each call has columns of its own.
    let mut out = unsafe { ColumnsMut::new(output, frames, width, head * columns, columns) };
    all.kernel
        .attention
        .head(query, key, value, all.kernel.scale, &mut out);
}
