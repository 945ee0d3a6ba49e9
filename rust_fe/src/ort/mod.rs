//! The operator `asr.SelfAttention` for ONNX Runtime: the only code that knows the runtime.
//!
//! The library that holds this crate is also a library of custom operators: whoever loads a network
//! with the operator registers that library first (`register_custom_ops_library` in Python,
//! `RegisterCustomOpsLibrary_V2` in C).
//!
//! ```text
//! asr.SelfAttention(query, key, value) -> result      float32 (batch, frames, heads * columns)
//! num_heads: int; heads lie side by side; those of a multiple of 16 columns waste nothing
//! scale: float, of the products of queries and keys
//! ```
#![allow(
    unsafe_code,
    reason = "the second fence: the runtime's C interface, which nothing else talks to"
)]

mod api;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::{Mutex, PoisonError};

use crate::simd::{Attention, Columns, ColumnsMut};
use api::{Api, ApiBase, CustomOp, FLOAT, INVALID_ARGUMENT, Kernel, Opaque, Status, VERSION};

/// Names of the operators that this CPU can run.
#[must_use]
pub fn operators() -> Vec<&'static str> {
    if Attention::new().is_some() {
        vec!["asr.SelfAttention"]
    } else {
        Vec::new()
    }
}

static SELF_ATTENTION: CustomOp = CustomOp {
    version: VERSION,
    create_kernel: 0,
    name,
    provider: any_provider,
    input_type: float,
    input_count: three,
    output_type: float,
    output_count: one,
    compute: 0,
    destroy,
    input_characteristic: zero, // required
    output_characteristic: zero,
    input_memory: zero, // this computer's
    variadic: [0; 4],
    create_kernel_v2: create,
    compute_v2: compute,
    infer_shape: 0,
    start_version: 0,
    end_version: 0,
};

extern "C" fn name(_: *const CustomOp) -> *const c_char {
    c"SelfAttention".as_ptr()
}

extern "C" fn any_provider(_: *const CustomOp) -> *const c_char {
    null() // the CPU's
}

extern "C" fn float(_: *const CustomOp, _: usize) -> c_int {
    FLOAT
}

extern "C" fn zero(_: *const CustomOp, _: usize) -> c_int {
    0
}

extern "C" fn one(_: *const CustomOp) -> usize {
    1
}

extern "C" fn three(_: *const CustomOp) -> usize {
    3
}

/// Make the operator known to a session that is about to be created.
///
/// # Safety
/// As the runtime calls it: `options` of a session, and the runtime's own function table.
#[unsafe(export_name = "RegisterCustomOps")]
pub unsafe extern "C" fn register(options: *mut c_void, base: *const c_void) -> *mut c_void {
    // SAFETY: the caller passes the runtime's table, whose two entries never changed.
    let base: &ApiBase = unsafe { &*base.cast() };
    // SAFETY: any version may be asked for; null means that the runtime is older.
    let api = unsafe { (base.get_api)(VERSION) };
    // SAFETY: the runtime's tables live as long as its library.
    let Some(api) = (unsafe { api.as_ref() }) else {
        return null_mut(); // such a runtime then names the operator it does not know
    };
    let added = domain(api).and_then(|domain| {
        // SAFETY: both were made by this runtime.
        check(unsafe { (api.add_domain)(options.cast(), domain) })
    });
    added.err().unwrap_or(null_mut()).cast()
}

/// The operators of one runtime: made once, because sessions refer to them as long as they live.
fn domain(api: &'static Api) -> Result<*mut Opaque, Status> {
    static DOMAINS: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());
    let key = std::ptr::from_ref(api).addr();
    let mut domains = DOMAINS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&(_, domain)) = domains.iter().find(|(of, _)| *of == key) {
        return Ok(std::ptr::with_exposed_provenance_mut(domain));
    }
    let mut domain = null_mut();
    // SAFETY: a name that ends in zero, and a place for the result.
    check(unsafe { (api.create_domain)(c"asr".as_ptr(), &raw mut domain) })?;
    // SAFETY: a fresh domain, and an operator that lives for ever.
    check(unsafe { (api.domain_add)(domain, &raw const SELF_ATTENTION) })?;
    domains.push((key, domain.expose_provenance()));
    Ok(domain)
}

fn check(status: Status) -> Result<(), Status> {
    if status.is_null() {
        Ok(())
    } else {
        Err(status)
    }
}

fn refuse(api: &Api, message: &CStr) -> Status {
    // SAFETY: the runtime copies the message.
    unsafe { (api.create_status)(INVALID_ARGUMENT, message.as_ptr()) }
}

/// A node of a network: read its attributes.
unsafe extern "C" fn create(
    _: *const CustomOp,
    api: *const Api,
    info: *const Opaque,
    kernel: *mut *mut Kernel,
) -> Status {
    // SAFETY: the runtime passes its table, which lives as long as its library.
    let api: &'static Api = unsafe { &*api };
    match attributes(api, info) {
        Ok(made) => {
            // SAFETY: the runtime passes a place for the result.
            unsafe { kernel.write(Box::into_raw(Box::new(made))) };
            null_mut()
        }
        Err(status) => status,
    }
}

fn attributes(api: &'static Api, info: *const Opaque) -> Result<Kernel, Status> {
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
    Ok(Kernel {
        api,
        attention,
        heads,
        scale,
    })
}

unsafe extern "C" fn destroy(kernel: *mut Kernel) {
    // SAFETY: `create` made it, and the runtime destroys it once.
    drop(unsafe { Box::from_raw(kernel) });
}

unsafe extern "C" fn compute(kernel: *const Kernel, context: *mut Opaque) -> Status {
    // SAFETY: `create` made it, and nobody changes it.
    let kernel = unsafe { &*kernel };
    run(kernel, context).err().unwrap_or(null_mut())
}

/// Heads of all clips, to be computed side by side.
struct Heads<'a> {
    kernel: &'a Kernel,
    inputs: [&'a [f32]; 3],
    output: *mut f32,
    frames: usize,
    width: usize,
}

fn run(kernel: &Kernel, context: *mut Opaque) -> Result<(), Status> {
    let api = kernel.api;
    let (query, shape) = input(api, context, 0)?;
    let (key, key_shape) = input(api, context, 1)?;
    let (value, value_shape) = input(api, context, 2)?;
    let [batch, frames, width] = shape.map(|n| usize::try_from(n).unwrap_or(0));
    if shape != key_shape || shape != value_shape || !width.is_multiple_of(kernel.heads) {
        return Err(refuse(
            api,
            c"asr.SelfAttention: expected query, key and value of one shape (batch, frames, \
              columns), as many columns for each head",
        ));
    }
    let mut result = null_mut();
    // SAFETY: three dimensions, and a place for the result.
    check(unsafe { (api.output)(context, 0, shape.as_ptr(), shape.len(), &raw mut result) })?;
    let mut output = null_mut();
    // SAFETY: the tensor just made, and a place for the result.
    check(unsafe { (api.tensor_data)(result, &raw mut output) })?;
    if query.is_empty() {
        return Ok(());
    }
    let mut heads = Heads {
        kernel,
        inputs: [query, key, value],
        output,
        frames,
        width,
    };
    let data = (&raw mut heads).cast();
    // SAFETY: `head` is called with `data` and numbers below the total, and all calls have ended
    // when this returns.
    check(unsafe { (api.parallel_for)(context, head, batch * kernel.heads, 0, data) })
}

/// One input: its values, and its shape (batch, frames, columns).
fn input<'a>(
    api: &Api,
    context: *const Opaque,
    index: usize,
) -> Result<(&'a [f32], [i64; 3]), Status> {
    let (mut value, mut info, mut data) = (null(), null_mut(), null_mut());
    let (mut count, mut shape) = (0, [0; 3]);
    // SAFETY: an input that the operator has, and a place for the result.
    check(unsafe { (api.input)(context, index, &raw mut value) })?;
    // SAFETY: the tensor, and a place for the result, which is ours to release.
    check(unsafe { (api.type_and_shape)(value, &raw mut info) })?;
    // SAFETY: the description, and a place for the result.
    let counted = check(unsafe { (api.dimensions_count)(info, &raw mut count) });
    let read = if count == shape.len() {
        // SAFETY: the description, and room for as many dimensions.
        check(unsafe { (api.dimensions)(info, shape.as_mut_ptr(), shape.len()) })
    } else {
        Err(refuse(
            api,
            c"asr.SelfAttention: expected inputs of three dimensions (batch, frames, columns)",
        ))
    };
    // SAFETY: it is ours, and released once.
    unsafe { (api.release_type_and_shape)(info) };
    counted.and(read)?;
    // SAFETY: the tensor, and a place for the result.
    check(unsafe { (api.tensor_data)(value, &raw mut data) })?;
    let len = shape
        .map(|n| usize::try_from(n).unwrap_or(0))
        .iter()
        .product();
    if len == 0 {
        return Ok((&[], shape));
    }
    // SAFETY: a tensor is contiguous; it lives, and nobody writes to it, while the node runs.
    Ok((unsafe { std::slice::from_raw_parts(data, len) }, shape))
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
