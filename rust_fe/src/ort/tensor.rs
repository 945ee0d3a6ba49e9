//! Tensors of the runtime as slices.

use std::ptr::{null, null_mut};

use super::api::{Api, Opaque, Status};
use super::{check, refuse};

/// Dimensions of a tensor, at most four.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    dims: [i64; 4],
    count: usize,
}

impl Shape {
    /// All of them.
    pub(super) fn dims(&self) -> &[i64] {
        &self.dims[..self.count]
    }

    /// The last one, 0 without any.
    pub(super) fn last(&self) -> usize {
        self.dims().last().map_or(0, |&n| size(n))
    }

    /// The same with another last one.
    pub(super) fn with_last(mut self, last: usize) -> Self {
        self.dims[self.count - 1] = last as i64;
        self
    }

    /// Exactly three.
    pub(super) fn three(&self) -> Option<[usize; 3]> {
        <[i64; 3]>::try_from(self.dims())
            .ok()
            .map(|dims| dims.map(size))
    }

    fn len(&self) -> usize {
        self.dims().iter().map(|&n| size(n)).product()
    }
}

fn size(dim: i64) -> usize {
    usize::try_from(dim).unwrap_or(0)
}

/// An input of floats: its values, and its shape.
pub(super) fn input<'a>(
    api: &Api,
    context: *const Opaque,
    index: usize,
) -> Result<(&'a [f32], Shape), Status> {
    let mut value = null();
    // SAFETY: an input that the operator has, and a place for the result.
    check(unsafe { (api.input)(context, index, &raw mut value) })?;
    // SAFETY: the operator's inputs of floats are asked for as such.
    unsafe { read(api, value) }
}

/// A constant of the network, which lives as long as the node does.
///
/// # Safety
/// The operator says that input `index` is of `T`.
pub(super) unsafe fn constant<T>(
    api: &Api,
    info: *const Opaque,
    index: usize,
) -> Result<&'static [T], Status> {
    let (mut is_constant, mut value) = (0, null());
    // SAFETY: an input that the operator has, and places for the results.
    check(unsafe { (api.constant)(info, index, &raw mut is_constant, &raw mut value) })?;
    if is_constant == 0 || value.is_null() {
        return Err(refuse(
            api,
            c"asr: expected a constant, found something computed",
        ));
    }
    // SAFETY: the caller vouches for the type.
    unsafe { read(api, value) }.map(|(values, _)| values)
}

/// # Safety
/// `value` is a tensor of `T`.
unsafe fn read<'a, T>(api: &Api, value: *const Opaque) -> Result<(&'a [T], Shape), Status> {
    let (mut info, mut data) = (null_mut(), null_mut());
    let mut shape = Shape {
        dims: [0; 4],
        count: 0,
    };
    // SAFETY: the tensor, and a place for the result, which is ours to release.
    check(unsafe { (api.type_and_shape)(value, &raw mut info) })?;
    // SAFETY: the description, and a place for the result.
    let counted = check(unsafe { (api.dimensions_count)(info, &raw mut shape.count) });
    let read = if shape.count <= shape.dims.len() {
        // SAFETY: the description, and room for as many dimensions.
        check(unsafe { (api.dimensions)(info, shape.dims.as_mut_ptr(), shape.count) })
    } else {
        Err(refuse(
            api,
            c"asr: expected a tensor of at most four dimensions",
        ))
    };
    // SAFETY: it is ours, and released once.
    unsafe { (api.release_type_and_shape)(info) };
    counted.and(read)?;
    // SAFETY: the tensor, and a place for the result.
    check(unsafe { (api.tensor_data)(value, &raw mut data) })?;
    if shape.len() == 0 {
        return Ok((&[], shape));
    }
    // SAFETY: a tensor is contiguous; it lives, and nobody writes to it, while the node may run.
    Ok((
        unsafe { std::slice::from_raw_parts(data.cast(), shape.len()) },
        shape,
    ))
}

/// The output, of floats, to be filled.
pub(super) fn output(api: &Api, context: *mut Opaque, shape: &Shape) -> Result<*mut f32, Status> {
    let (mut result, mut data) = (null_mut(), null_mut());
    // SAFETY: as many dimensions, and a place for the result.
    check(unsafe {
        (api.output)(
            context,
            0,
            shape.dims().as_ptr(),
            shape.count,
            &raw mut result,
        )
    })?;
    // SAFETY: the tensor just made, and a place for the result.
    check(unsafe { (api.tensor_data)(result, &raw mut data) })?;
    Ok(data.cast())
}
