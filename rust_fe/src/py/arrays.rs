//! How arrays and errors cross the boundary.

use std::ops::Deref;

use numpy::ndarray::{Array2, Dimension};
use numpy::{
    Element, IntoPyArray, PyArray, PyArray2, PyArrayMethods, PyReadonlyArray, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::types::{PyType, PyWeakrefReference};

use crate::error::Error;
use crate::simd::Backend;

/// Turn an error into the class of `asr.errors` that fits, imported only now.
pub(super) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let class = match error {
        Error::Scores { .. } | Error::NonFiniteScore { .. } => "DecodeError",
        Error::Config { .. }
        | Error::Backend { .. }
        | Error::NonFiniteSample { .. }
        | Error::Shape { .. } => "FrontEndError",
    };
    raise_as(py, class, error.to_string())
}

pub(super) fn raise_as(py: Python<'_>, class: &str, message: String) -> PyErr {
    let class = py
        .import("asr.errors")
        .and_then(|errors| errors.getattr(class));
    match class.and_then(|class| Ok(class.cast_into::<PyType>()?)) {
        Ok(class) => PyErr::from_type(class, message),
        Err(import_failed) => import_failed,
    }
}

/// Work with the interpreter lock released; the feature `hold-lock` keeps it, so that a test can
/// see its own check fail.
pub(super) fn without_lock<T: Send>(py: Python<'_>, work: impl Send + FnOnce() -> T) -> T {
    if cfg!(feature = "hold-lock") {
        return work();
    }
    py.detach(work)
}

/// An argument borrowed as it lies in memory, for as long as the call lasts.
pub(super) struct Borrowed<'py, T: Element, D: Dimension> {
    array: PyReadonlyArray<'py, T, D>,
    /// `NumPy` refuses to resize an array that a weak reference points to, even with
    /// `refcheck=False`; without it another thread could free the memory under a running call.
    _keeps_its_size: Bound<'py, PyWeakrefReference>,
}

impl<'py, T: Element, D: Dimension> Deref for Borrowed<'py, T, D> {
    type Target = PyReadonlyArray<'py, T, D>;

    fn deref(&self) -> &Self::Target {
        &self.array
    }
}

/// Borrow an argument as it lies in memory, or say what was expected and what was found.
pub(super) fn borrow<'py, T: Element, D: Dimension>(
    value: &Bound<'py, PyAny>,
    error_class: &str,
    name: &str,
    expected: &str,
) -> PyResult<Borrowed<'py, T, D>> {
    let problem = match value.cast::<PyArray<T, D>>() {
        Err(_) => "",
        Ok(array) if !array.is_c_contiguous() => " that is not contiguous",
        Ok(array) if !array.is_aligned() => " at an unaligned address",
        Ok(array) => match array.try_readonly() {
            Ok(borrowed) => {
                let _keeps_its_size = PyWeakrefReference::new(value)?;
                return Ok(Borrowed {
                    array: borrowed,
                    _keeps_its_size,
                });
            }
            Err(_) => " that is being written to",
        },
    };
    // Only now: describing an array takes longer than adding up a short one.
    let found = match value.cast::<PyUntypedArray>() {
        Ok(array) => format!(
            "{} {} with strides {}",
            array.dtype(),
            value.getattr("shape")?,
            value.getattr("strides")?
        ),
        Err(_) => value.get_type().name()?.to_string(),
    };
    let message = format!("{name}: expected {expected}, C-contiguous, found {found}{problem}");
    Err(raise_as(value.py(), error_class, message))
}

/// Rows and columns of a borrowed matrix, and its values.
pub(super) fn matrix<'a>(
    array: &'a Borrowed<'_, f32, numpy::Ix2>,
) -> PyResult<(&'a [f32], usize, usize)> {
    Ok((array.as_slice()?, array.shape()[0], array.shape()[1]))
}

pub(super) fn into_matrix<T: Element>(
    py: Python<'_>,
    values: Vec<T>,
    rows: usize,
    columns: usize,
) -> Bound<'_, PyArray2<T>> {
    let array = Array2::from_shape_vec((rows, columns), values);
    array.expect("the core returns whole rows").into_pyarray(py)
}

pub(super) fn backend_named(py: Python<'_>, name: Option<&str>) -> PyResult<Backend> {
    match name {
        None => Ok(Backend::best()),
        Some(name) => Backend::by_name(name).map_err(|error| raise(py, &error)),
    }
}
