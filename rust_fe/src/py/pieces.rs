//! Long sound -> pieces: `Cutter` and `Energy`.

use std::sync::{Mutex, PoisonError};

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use super::arrays::{borrow, raise, without_lock};
use crate::cut::{self, Piece};
use crate::energy::{self, Meaning};

/// Cuts sound of any length into pieces by a score per window.
#[pyclass(frozen, name = "Cutter", module = "asr._rust_fe")]
pub(super) struct PyCutter(Mutex<cut::Cutter>);

/// First sample, and one past the last.
fn span(piece: Piece) -> (usize, usize) {
    (piece.start, piece.end)
}

#[pymethods]
impl PyCutter {
    #[new]
    fn new(py: Python<'_>, sample_rate_hz: u32, longest_s: f64) -> PyResult<Self> {
        cut::Cutter::new(sample_rate_hz, longest_s)
            .map(|cutter| Self(Mutex::new(cutter)))
            .map_err(|error| raise(py, &error))
    }

    /// Take scores float32 (N,); the pieces that end with them.
    fn feed(&self, scores: &Bound<'_, PyAny>) -> PyResult<Vec<(usize, usize)>> {
        const EXPECTED: &str = "a float32 array of shape (N,)";
        let scores = borrow::<f32, numpy::Ix1>(scores, "FrontEndError", "scores", EXPECTED)?;
        let mut cutter = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pieces = scores.as_slice()?.iter();
        Ok(pieces
            .filter_map(|&score| cutter.push(score))
            .map(span)
            .collect())
    }

    /// The sound has ended; the last piece, if one is open.
    fn finish(&self, num_samples: usize) -> Option<(usize, usize)> {
        let mut cutter = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cutter.finish(num_samples).map(span)
    }

    /// Samples before this one lie in no piece that is still to come.
    #[getter]
    fn needed_from(&self) -> usize {
        let cutter = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cutter.needed_from()
    }
}

/// Scores per window from the energy alone.
#[pyclass(frozen, name = "Energy", module = "asr._rust_fe")]
pub(super) struct PyEnergy(Mutex<energy::Energy>);

#[pymethods]
impl PyEnergy {
    #[new]
    #[pyo3(signature = (sample_rate_hz, *, loudness))]
    fn new(sample_rate_hz: u32, loudness: bool) -> Self {
        let meaning = if loudness {
            Meaning::Loudness
        } else {
            Meaning::Speech
        };
        let window = cut::window_samples(sample_rate_hz);
        Self(Mutex::new(energy::Energy::new(window, meaning)))
    }

    /// Take samples float32 (N,); the scores known now, the rest of them where this is the last.
    fn feed<'py>(
        &self,
        py: Python<'py>,
        samples: &Bound<'py, PyAny>,
        last: bool,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        const EXPECTED: &str = "a float32 array of shape (N,)";
        let samples = borrow::<f32, numpy::Ix1>(samples, "FrontEndError", "samples", EXPECTED)?;
        let slice = samples.as_slice()?;
        let scores = without_lock(py, || {
            let mut energy = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let mut scores = Vec::new();
            energy.feed(slice, &mut scores);
            if last {
                energy.finish(&mut scores);
            }
            scores
        });
        Ok(scores.into_pyarray(py))
    }
}
