//! An operator as the runtime sees it, of a kernel as we write it.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

use super::api::{Api, CustomOp, FLOAT, Opaque, Status, VERSION};

/// One node of a network, ready to run.
pub(super) trait Kernel: Sized + Sync {
    /// Of the operator, in the domain `asr`.
    const NAME: &'static CStr;
    /// Element types of its inputs.
    const INPUTS: &'static [c_int];

    /// Read a node's attributes and constants.
    fn new(api: &'static Api, info: *const Opaque) -> Result<Self, Status>;

    /// Compute its one output, of floats.
    fn run(&self, context: *mut Opaque) -> Result<(), Status>;
}

/// The operator whose nodes are of this kind.
pub(super) const fn describe<K: Kernel>() -> CustomOp {
    CustomOp {
        version: VERSION,
        create_kernel: 0,
        name: name::<K>,
        provider: any_provider,
        input_type: input_type::<K>,
        input_count: input_count::<K>,
        output_type: float,
        output_count: one,
        compute: 0,
        destroy: destroy::<K>,
        input_characteristic: zero, // required
        output_characteristic: zero,
        input_memory: zero, // this computer's
        variadic: [0; 4],
        create_kernel_v2: create::<K>,
        compute_v2: compute::<K>,
        infer_shape: 0,
        start_version: 0,
        end_version: 0,
    }
}

extern "C" fn name<K: Kernel>(_: *const CustomOp) -> *const c_char {
    K::NAME.as_ptr()
}

extern "C" fn any_provider(_: *const CustomOp) -> *const c_char {
    null() // the CPU's
}

extern "C" fn input_type<K: Kernel>(_: *const CustomOp, index: usize) -> c_int {
    K::INPUTS[index]
}

extern "C" fn input_count<K: Kernel>(_: *const CustomOp) -> usize {
    K::INPUTS.len()
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

unsafe extern "C" fn create<K: Kernel>(
    _: *const CustomOp,
    api: *const Api,
    info: *const Opaque,
    kernel: *mut *mut c_void,
) -> Status {
    // SAFETY: the runtime passes its table, which lives as long as its library.
    let api: &'static Api = unsafe { &*api };
    match K::new(api, info) {
        Ok(made) => {
            // SAFETY: the runtime passes a place for the result.
            unsafe { kernel.write(Box::into_raw(Box::new(made)).cast()) };
            null_mut()
        }
        Err(status) => status,
    }
}

unsafe extern "C" fn destroy<K: Kernel>(kernel: *mut c_void) {
    // SAFETY: `create` made it, and the runtime destroys it once.
    drop(unsafe { Box::from_raw(kernel.cast::<K>()) });
}

unsafe extern "C" fn compute<K: Kernel>(kernel: *const c_void, context: *mut Opaque) -> Status {
    // SAFETY: `create` made it, and nobody changes it.
    let kernel: &K = unsafe { &*kernel.cast() };
    kernel.run(context).err().unwrap_or(null_mut())
}
