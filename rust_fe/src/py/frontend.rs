//! Samples to features: `Fbank`, `lfr`, `cmvn`.

use numpy::{PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyWeakrefReference;

use super::arrays::{backend_named, borrow, into_matrix, matrix, raise, raise_as, without_lock};
use crate::config::{FbankConfig, Window};
use crate::error::Error;
use crate::fbank::Fbank;
use crate::{cmvn, lfr};

/// Log mel filter bank energies, as Kaldi computes them.
#[pyclass(frozen, name = "Fbank", module = "asr._rust_fe")]
pub(super) struct PyFbank(Fbank);

#[pymethods]
impl PyFbank {
    #[new]
    #[pyo3(signature = (*, sample_rate_hz, frame_length_ms, frame_shift_ms, window, num_mel_bins,
        low_freq_hz, high_freq_hz, preemphasis, sample_scale, backend=None))]
    #[allow(
        clippy::too_many_arguments,
        reason = "one argument per recipe field, all by keyword"
    )]
    fn new(
        py: Python<'_>,
        sample_rate_hz: u32,
        frame_length_ms: f64,
        frame_shift_ms: f64,
        window: &str,
        num_mel_bins: usize,
        low_freq_hz: f64,
        high_freq_hz: f64,
        preemphasis: f64,
        sample_scale: f64,
        backend: Option<&str>,
    ) -> PyResult<Self> {
        let backend = backend_named(py, backend)?;
        Window::from_name(window)
            .and_then(|window| {
                let config = FbankConfig {
                    sample_rate_hz,
                    frame_length_ms,
                    frame_shift_ms,
                    window,
                    num_mel_bins,
                    low_freq_hz,
                    high_freq_hz,
                    preemphasis,
                    sample_scale,
                };
                Fbank::new(config, backend)
            })
            .map(Self)
            .map_err(|error| raise(py, &error))
    }

    /// Name of the instruction set in use.
    #[getter]
    fn backend(&self) -> &'static str {
        self.0.backend().name()
    }

    /// Rows that `compute` gives for so many samples.
    fn num_frames(&self, num_samples: usize) -> usize {
        self.0.num_frames(num_samples)
    }

    /// Compute log mel energies: float32 (N,) to float32 (num_frames, num_mel_bins).
    fn compute<'py>(
        &self,
        py: Python<'py>,
        samples: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let samples = borrow::<f32, numpy::Ix1>(
            samples,
            "FrontEndError",
            "samples",
            "a float32 array of shape (N,)",
        )?;
        let slice = samples.as_slice()?;
        let values =
            without_lock(py, || self.0.compute(slice)).map_err(|error| raise(py, &error))?;
        Ok(into_matrix(
            py,
            values,
            self.0.num_frames(slice.len()),
            self.0.num_mel_bins(),
        ))
    }
}

const FEATURES: &str = "a float32 array of shape (T, D)";

/// Most frames stacked, or skipped; more is a mistaken field, and would be memory for nothing.
const MAX_LFR: usize = 1024;

/// Stack `m` frames every `n` frames: float32 (T, D) to float32 (ceil(T / n), m * D).
#[pyfunction]
#[pyo3(name = "lfr")]
pub(super) fn py_lfr<'py>(
    py: Python<'py>,
    features: &Bound<'py, PyAny>,
    m: usize,
    n: usize,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let features = borrow(features, "FrontEndError", "features", FEATURES)?;
    let (values, rows, dim) = matrix(&features)?;
    let fields = [
        ("lfr m", m, MAX_LFR),
        ("lfr n", n, MAX_LFR),
        ("features dim", dim, usize::MAX),
    ];
    for (field, number, most) in fields {
        if !(1..=most).contains(&number) {
            let expected = if most == MAX_LFR {
                format!("1 to {MAX_LFR}")
            } else {
                "positive".into()
            };
            let found = number.to_string();
            return Err(raise(
                py,
                &Error::Config {
                    field,
                    expected,
                    found,
                },
            ));
        }
    }
    let out = without_lock(py, || lfr::lfr(values, dim, m, n));
    Ok(into_matrix(py, out, rows.div_ceil(n), m * dim))
}

/// Shift and scale each column in place: `(features + neg_mean) * inv_stddev`, float32 (T, D);
/// returns its argument.
#[pyfunction]
#[pyo3(name = "cmvn")]
pub(super) fn py_cmvn<'py>(
    py: Python<'py>,
    features: &Bound<'py, PyAny>,
    neg_mean: &Bound<'py, PyAny>,
    inv_stddev: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    const VECTOR: &str = "a float32 array of shape (D,)";
    const TO_CHANGE: &str = "a writable float32 array of shape (T, D)";
    let neg_mean = borrow::<f32, numpy::Ix1>(neg_mean, "FrontEndError", "neg_mean", VECTOR)?;
    let inv_stddev = borrow::<f32, numpy::Ix1>(inv_stddev, "FrontEndError", "inv_stddev", VECTOR)?;
    // Checked as lent, then taken for writing: the second says so where it is read-only or shared.
    drop(borrow::<f32, numpy::Ix2>(
        features,
        "FrontEndError",
        "features",
        FEATURES,
    )?);
    let _keeps_its_size = PyWeakrefReference::new(features)?;
    let mut array = match features.cast::<PyArray2<f32>>()?.try_readwrite() {
        Ok(array) => array,
        Err(problem) => {
            let message = format!("features: expected {TO_CHANGE}, found one where {problem}");
            return Err(raise_as(py, "FrontEndError", message));
        }
    };
    let dim = array.shape()[1];
    let values = array.as_slice_mut()?;
    let (neg_mean, inv_stddev) = (neg_mean.as_slice()?, inv_stddev.as_slice()?);
    for (name, found) in [
        ("neg_mean", neg_mean.len()),
        ("inv_stddev", inv_stddev.len()),
    ] {
        if found != dim || dim == 0 {
            let expected = format!("as many values as features has columns, {dim}, at least 1");
            return Err(raise(
                py,
                &Error::Shape {
                    name,
                    expected,
                    found: found.to_string(),
                },
            ));
        }
    }
    without_lock(py, || cmvn::cmvn(values, neg_mean, inv_stddev));
    Ok(features.clone())
}
