//! The part of ONNX Runtime's C interface that an operator needs, written down by hand.
//!
//! Source: `onnxruntime_c_api.h`. The table of functions only ever grows at its end, so a place in
//! it, once given, is for ever; version 17 (ONNX Runtime 1.17) has all that is used here.

use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;

/// Version of the interface that is asked for.
pub(super) const VERSION: u32 = 17;

/// `ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT` and its like.
pub(super) const FLOAT: c_int = 1;
pub(super) const INT8: c_int = 3;
pub(super) const INT32: c_int = 6;

/// `ORT_INVALID_ARGUMENT`.
pub(super) const INVALID_ARGUMENT: c_int = 2;

/// Things that only the runtime looks into.
pub(super) enum Opaque {}

/// Null, or what went wrong; the runtime frees it.
pub(super) type Status = *mut Opaque;

/// What the runtime hands to `RegisterCustomOps`.
#[repr(C)]
pub(super) struct ApiBase {
    pub(super) get_api: unsafe extern "C" fn(version: u32) -> *const Api,
    _get_version_string: usize,
}

/// `OrtApi`: functions, of which those not used here are left without a name.
#[repr(C)]
pub(super) struct Api {
    pub(super) create_status: unsafe extern "C" fn(code: c_int, message: *const c_char) -> Status,
    _1: [usize; 25],
    pub(super) create_domain:
        unsafe extern "C" fn(name: *const c_char, domain: *mut *mut Opaque) -> Status,
    pub(super) domain_add: unsafe extern "C" fn(domain: *mut Opaque, op: *const CustomOp) -> Status,
    pub(super) add_domain:
        unsafe extern "C" fn(options: *mut Opaque, domain: *mut Opaque) -> Status,
    _29: [usize; 22],
    pub(super) tensor_data:
        unsafe extern "C" fn(value: *const Opaque, data: *mut *mut c_void) -> Status,
    _52: [usize; 9],
    pub(super) dimensions_count:
        unsafe extern "C" fn(info: *const Opaque, count: *mut usize) -> Status,
    pub(super) dimensions:
        unsafe extern "C" fn(info: *const Opaque, dims: *mut i64, count: usize) -> Status,
    _63: [usize; 2],
    pub(super) type_and_shape:
        unsafe extern "C" fn(value: *const Opaque, info: *mut *mut Opaque) -> Status,
    _66: [usize; 19],
    pub(super) attribute_float:
        unsafe extern "C" fn(info: *const Opaque, name: *const c_char, value: *mut f32) -> Status,
    pub(super) attribute_int64:
        unsafe extern "C" fn(info: *const Opaque, name: *const c_char, value: *mut i64) -> Status,
    _87: [usize; 3],
    pub(super) input: unsafe extern "C" fn(
        context: *const Opaque,
        index: usize,
        value: *mut *const Opaque,
    ) -> Status,
    pub(super) output: unsafe extern "C" fn(
        context: *mut Opaque,
        index: usize,
        dims: *const i64,
        count: usize,
        value: *mut *mut Opaque,
    ) -> Status,
    _92: [usize; 7],
    pub(super) release_type_and_shape: unsafe extern "C" fn(info: *mut Opaque),
    _100: [usize; 149],
    pub(super) constant: unsafe extern "C" fn(
        info: *const Opaque,
        index: usize,
        is_constant: *mut c_int,
        value: *mut *const Opaque,
    ) -> Status,
    _250: [usize; 24],
    pub(super) parallel_for: unsafe extern "C" fn(
        context: *const Opaque,
        run: unsafe extern "C" fn(data: *mut c_void, index: usize),
        total: usize,
        batches: usize,
        data: *mut c_void,
    ) -> Status,
}

const WORD: usize = size_of::<usize>();
const _: () = assert!(offset_of!(Api, create_domain) == 26 * WORD);
const _: () = assert!(offset_of!(Api, tensor_data) == 51 * WORD);
const _: () = assert!(offset_of!(Api, dimensions_count) == 61 * WORD);
const _: () = assert!(offset_of!(Api, type_and_shape) == 65 * WORD);
const _: () = assert!(offset_of!(Api, attribute_float) == 85 * WORD);
const _: () = assert!(offset_of!(Api, input) == 90 * WORD);
const _: () = assert!(offset_of!(Api, release_type_and_shape) == 99 * WORD);
const _: () = assert!(offset_of!(Api, constant) == 249 * WORD);
const _: () = assert!(offset_of!(Api, parallel_for) == 274 * WORD);

/// `OrtCustomOp` of version 17: an operator as the runtime sees it.
#[repr(C)]
pub(super) struct CustomOp {
    pub(super) version: u32,
    /// Of older interfaces, which cannot fail.
    pub(super) create_kernel: usize,
    pub(super) name: extern "C" fn(*const CustomOp) -> *const c_char,
    pub(super) provider: extern "C" fn(*const CustomOp) -> *const c_char,
    pub(super) input_type: extern "C" fn(*const CustomOp, usize) -> c_int,
    pub(super) input_count: extern "C" fn(*const CustomOp) -> usize,
    pub(super) output_type: extern "C" fn(*const CustomOp, usize) -> c_int,
    pub(super) output_count: extern "C" fn(*const CustomOp) -> usize,
    /// Of older interfaces, which cannot fail.
    pub(super) compute: usize,
    pub(super) destroy: unsafe extern "C" fn(*mut c_void),
    pub(super) input_characteristic: extern "C" fn(*const CustomOp, usize) -> c_int,
    pub(super) output_characteristic: extern "C" fn(*const CustomOp, usize) -> c_int,
    pub(super) input_memory: extern "C" fn(*const CustomOp, usize) -> c_int,
    /// Numbers of inputs and outputs that vary; there are none.
    pub(super) variadic: [usize; 4],
    pub(super) create_kernel_v2: unsafe extern "C" fn(
        *const CustomOp,
        *const Api,
        *const Opaque,
        *mut *mut c_void,
    ) -> Status,
    pub(super) compute_v2: unsafe extern "C" fn(*const c_void, *mut Opaque) -> Status,
    /// Shape inference and versions of the operator; null means none.
    pub(super) infer_shape: usize,
    pub(super) start_version: usize,
    pub(super) end_version: usize,
}
