//! The module `asr._rust_fe`: arrays in and out, nothing else.
//!
//! Inputs are borrowed without a copy, results are handed over without a copy, and the
//! interpreter lock is released around the work.

use std::ops::Deref;

use numpy::ndarray::Array2;
use numpy::{
    Element, IntoPyArray, PyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray,
    PyUntypedArray, PyUntypedArrayMethods, ndarray::Dimension,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType, PyWeakrefReference};

use crate::config::{FbankConfig, Window};
use crate::ctc::Decoded;
use crate::error::Error;
use crate::fbank::Fbank;
use crate::phrases::{Mode, Phrases};
use crate::simd::Backend;
use crate::{cmvn, ctc, lfr};

/// Turn an error into the class of `asr.errors` that fits, imported only now.
fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let class = match error {
        Error::Scores { .. } | Error::NonFiniteScore { .. } => "DecodeError",
        Error::Config { .. }
        | Error::Backend { .. }
        | Error::NonFiniteSample { .. }
        | Error::Shape { .. } => "FrontEndError",
    };
    raise_as(py, class, error.to_string())
}

fn raise_as(py: Python<'_>, class: &str, message: String) -> PyErr {
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
fn without_lock<T: Send>(py: Python<'_>, work: impl Send + FnOnce() -> T) -> T {
    if cfg!(feature = "hold-lock") {
        return work();
    }
    py.detach(work)
}

/// An argument borrowed as it lies in memory, for as long as the call lasts.
struct Borrowed<'py, T: Element, D: Dimension> {
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
fn borrow<'py, T: Element, D: Dimension>(
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
fn matrix<'a>(array: &'a Borrowed<'_, f32, numpy::Ix2>) -> PyResult<(&'a [f32], usize, usize)> {
    Ok((array.as_slice()?, array.shape()[0], array.shape()[1]))
}

fn into_matrix<T: Element>(
    py: Python<'_>,
    values: Vec<T>,
    rows: usize,
    columns: usize,
) -> Bound<'_, PyArray2<T>> {
    let array = Array2::from_shape_vec((rows, columns), values);
    array.expect("the core returns whole rows").into_pyarray(py)
}

fn backend(py: Python<'_>, name: Option<&str>) -> PyResult<Backend> {
    match name {
        None => Ok(Backend::best()),
        Some(name) => Backend::by_name(name).map_err(|error| raise(py, &error)),
    }
}

/// Log mel filter bank energies, as Kaldi computes them.
#[pyclass(frozen, name = "Fbank", module = "asr._rust_fe")]
struct PyFbank(Fbank);

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
        let backend = self::backend(py, backend)?;
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
fn py_lfr<'py>(
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
fn py_cmvn<'py>(
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

const LOGITS: &str = "a float32 array of shape (T, V)";

/// Rows and tokens; per hit six whole numbers; per hit four scores.
type PyFound<'py> = (
    PyDecoded<'py>,
    Bound<'py, PyArray2<i32>>,
    Bound<'py, PyArray2<f64>>,
);

type PyDecoded<'py> = (
    Bound<'py, PyArray1<i32>>,
    Bound<'py, PyArray1<f32>>,
    Bound<'py, PyArray1<f32>>,
    Bound<'py, PyArray1<i32>>,
    Bound<'py, PyArray1<i32>>,
    Bound<'py, PyArray1<i32>>,
    Bound<'py, PyArray1<f32>>,
    Bound<'py, PyArray1<f32>>,
);

/// Greedy CTC over scores float32 (T, V), with statistics for every row.
#[pyfunction]
#[pyo3(signature = (logits, blank_id, prompt_frames, backend=None))]
fn ctc_greedy<'py>(
    py: Python<'py>,
    logits: &Bound<'py, PyAny>,
    blank_id: i64,
    prompt_frames: usize,
    backend: Option<&str>,
) -> PyResult<PyDecoded<'py>> {
    let backend = self::backend(py, backend)?;
    let logits = borrow(logits, "DecodeError", "logits", LOGITS)?;
    let (values, _, vocab) = matrix(&logits)?;
    let decoded = without_lock(py, || {
        ctc::greedy(values, vocab, blank_id, prompt_frames, backend)
    })
    .map_err(|error| raise(py, &error))?;
    Ok(into_arrays(py, decoded))
}

fn into_arrays(py: Python<'_>, decoded: Decoded) -> PyDecoded<'_> {
    let Decoded {
        argmax,
        log_prob,
        entropy,
        token_ids,
        start_frame,
        end_frame,
        log_probs,
        entropies,
    } = decoded;
    (
        argmax.into_pyarray(py),
        log_prob.into_pyarray(py),
        entropy.into_pyarray(py),
        token_ids.into_pyarray(py),
        start_frame.into_pyarray(py),
        end_frame.into_pyarray(py),
        log_probs.into_pyarray(py),
        entropies.into_pyarray(py),
    )
}

/// A list of phrases as a graph of pieces.
#[pyclass(frozen, name = "Phrases", module = "asr._rust_fe")]
struct PyPhrases(Phrases);

#[pymethods]
impl PyPhrases {
    #[new]
    fn new(
        py: Python<'_>,
        pieces: Vec<Vec<u8>>,
        blank_id: i64,
        texts: Vec<Vec<Vec<u8>>>,
        groups: Vec<usize>,
    ) -> PyResult<Self> {
        without_lock(py, || Phrases::new(&pieces, blank_id, &texts, &groups))
            .map(Self)
            .map_err(|error| raise(py, &error))
    }

    /// Per phrase: whether the pieces can spell it.
    #[getter]
    fn spelled(&self) -> Vec<bool> {
        self.0.spelled().to_vec()
    }

    /// Prefixes in the graph.
    #[getter]
    fn num_nodes(&self) -> usize {
        self.0.num_nodes()
    }

    /// Pieces in the graph.
    #[getter]
    fn num_arcs(&self) -> usize {
        self.0.num_arcs()
    }

    /// Find phrases in scores float32 (T, V).
    #[pyo3(signature = (logits, prompt_frames, *, many, backend=None))]
    fn decode<'py>(
        &self,
        py: Python<'py>,
        logits: &Bound<'py, PyAny>,
        prompt_frames: usize,
        many: bool,
        backend: Option<&str>,
    ) -> PyResult<PyFound<'py>> {
        let backend = self::backend(py, backend)?;
        let logits = borrow(logits, "DecodeError", "logits", LOGITS)?;
        let (values, _, vocab) = matrix(&logits)?;
        let mode = if many { Mode::Many } else { Mode::One };
        let found = without_lock(py, || {
            self.0.decode(values, vocab, prompt_frames, mode, backend)
        })
        .map_err(|error| raise(py, &error))?;
        let hits = found.hits.iter();
        let facts: Vec<i32> = hits
            .clone()
            .flat_map(|hit| {
                [
                    hit.phrase as i32,
                    hit.runner_up.map_or(-1, |phrase| phrase as i32),
                    hit.num_tokens as i32,
                    hit.first_frame as i32,
                    hit.end_frame as i32,
                    hit.speech_frames as i32,
                ]
            })
            .collect();
        let scores: Vec<f64> = hits
            .flat_map(|hit| [hit.log_prob, hit.free_log_prob, hit.margin, hit.posterior])
            .collect();
        let rows = found.hits.len();
        Ok((
            into_arrays(py, found.decoded),
            into_matrix(py, facts, rows, 6),
            into_matrix(py, scores, rows, 4),
        ))
    }
}

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
    use super::{PyFbank, PyPhrases, build_info, ctc_greedy, py_cmvn, py_lfr};

    #[cfg(feature = "count-allocations")]
    #[pymodule_export]
    use super::allocated_bytes;
}
