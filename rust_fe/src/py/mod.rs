//! The module `asr._rust_fe`: arrays in and out, nothing else.
//!
//! Inputs are borrowed without a copy, results are handed over without a copy, and the
//! interpreter lock is released around the work.

mod arrays;
mod decode;
mod frontend;
mod pieces;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::simd::Backend;

/// What this module was built as, and what this CPU can run.
#[pyfunction]
fn build_info(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let info = PyDict::new(py);
    info.set_item("version", env!("CARGO_PKG_VERSION"))?;
    info.set_item(
        "profile",
        if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        },
    )?;
    info.set_item(
        "target",
        format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
    )?;
    let backends: Vec<_> = Backend::available()
        .into_iter()
        .map(Backend::name)
        .collect();
    info.set_item("backends", backends)?;
    info.set_item("compiler", env!("RUST_FE_COMPILER"))?;
    info.set_item("byte_features", crate::cpu::byte_features())?;
    info.set_item("kernel_features", crate::cpu::kernel_features())?;
    info.set_item("operators", crate::ort::operators())?;
    Ok(info)
}

/// Bytes that this module has allocated since it was loaded, freed or not.
#[cfg(feature = "count-allocations")]
#[pyfunction]
fn allocated_bytes() -> usize {
    crate::counter::COUNTER.stats().bytes_allocated
}

/// The compiled half of `asr`: front end and CTC.
#[pymodule(gil_used = false)]
mod _rust_fe {
    #[pymodule_export]
    use super::build_info;
    #[pymodule_export]
    use super::decode::{PyPhrases, ctc_greedy};
    #[pymodule_export]
    use super::frontend::{PyFbank, py_cmvn, py_lfr};
    #[pymodule_export]
    use super::pieces::{PyCutter, PyEnergy};

    #[cfg(feature = "count-allocations")]
    #[pymodule_export]
    use super::allocated_bytes;
}
