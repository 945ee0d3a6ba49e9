//! Our operators for ONNX Runtime: the only code that knows the runtime.
//!
//! The library that holds this crate is also a library of custom operators: whoever loads a network
//! with one of them registers that library first (`register_custom_ops_library` in Python,
//! `RegisterCustomOpsLibrary_V2` in C).
//!
//! ```text
//! asr.SelfAttention(query, key, value) -> result      float32 (batch, frames, heads * columns)
//! num_heads: int; heads lie side by side; those of a multiple of 16 columns waste nothing
//! scale: float, of the products of queries and keys
//!
//! asr.ByteMatMul(rows, weights, scales, sums, zeros, bias) -> result   float32 (..., columns)
//! rows: float32 (..., depth), quantised together; the others are constants in the order that
//!     `simd::ByteMatrix` describes
//! depth, columns: int, of the matrix; relu: int, 1 if nothing below 0 comes out
//! ```
#![allow(
    unsafe_code,
    reason = "the second fence: the runtime's C interface, which nothing else talks to"
)]

mod api;
mod attention;
mod byte_matmul;
mod operator;
mod tensor;

use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

use self::attention::SelfAttention;
use self::byte_matmul::ByteMatMul;
use crate::simd::{Attention, ByteProduct};
use api::{Api, ApiBase, CustomOp, INVALID_ARGUMENT, Opaque, Status, VERSION};

/// Names of the operators that this CPU can run.
#[must_use]
pub fn operators() -> Vec<&'static str> {
    let found = [
        ("asr.SelfAttention", Attention::new().is_some()),
        ("asr.ByteMatMul", ByteProduct::new().is_some()),
    ];
    found.iter().filter(|f| f.1).map(|f| f.0).collect()
}

static OPERATORS: [CustomOp; 2] = [
    operator::describe::<SelfAttention>(),
    operator::describe::<ByteMatMul>(),
];

/// Make the operators known to a session that is about to be created.
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
    for operator in &OPERATORS {
        // SAFETY: a fresh domain, and an operator that lives for ever.
        check(unsafe { (api.domain_add)(domain, operator) })?;
    }
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
