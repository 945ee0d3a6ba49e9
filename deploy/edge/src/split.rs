//! Long sound, block by block -> pieces to hear in one call: `asr.vad` with Silero or the energy.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use ort::session::Session;
use ort::value::TensorRef;
use rust_fe::cut::{Cutter, Piece, window_samples};
use rust_fe::energy::{Energy, Meaning};

use crate::engine::{self, Load, failed};
use crate::error::Result;

/// The rate at which the network is asked.
pub const SILERO_HZ: u32 = 16000;
/// Samples of a window, and of what lies before it that the network also wants.
const WINDOW: usize = 512;
const CONTEXT: usize = 64;
/// As `asr.vad.silero`: stretches of 4 s side by side, each after a second to settle in.
const LANES: usize = 16;
const LANE: usize = 128;
const WARM_UP: usize = 32;
const STATE: usize = 128;
const BEHIND: usize = WARM_UP * WINDOW + CONTEXT;

/// A stretch of sound with its place in the source.
#[derive(Debug, Clone, PartialEq)]
pub struct Stretch {
    /// First sample.
    pub start: usize,
    /// The samples.
    pub samples: Vec<f32>,
}

/// What scores windows of 32 ms.
pub enum Detector<'a> {
    /// How far a window rises above the quietest place near it.
    Energy(Energy),
    /// The network, on sound that is there already.
    Silero(Silero<'a>),
    /// The network, window by window as they are spoken.
    Live(Live),
}

impl<'a> Detector<'a> {
    /// The energy, at a rate.
    #[must_use]
    pub fn energy(rate_hz: u32) -> Self {
        Self::Energy(Energy::new(window_samples(rate_hz), Meaning::Speech))
    }

    /// The network, at the beginning of a sound.
    #[must_use]
    pub fn silero(session: &'a mut Session) -> Self {
        Self::Silero(Silero {
            session,
            held: vec![0.0; BEHIND],
        })
    }

    /// The network, for sound that is being spoken; the session may be shared.
    #[must_use]
    pub fn live(session: Arc<Mutex<Session>>) -> Self {
        Self::Live(Live {
            session,
            state: vec![0.0; 2 * STATE],
            held: vec![0.0; CONTEXT],
        })
    }

    fn feed(&mut self, samples: &[f32], last: bool) -> Result<Vec<f32>> {
        let mut scores = Vec::new();
        match self {
            Self::Energy(energy) => {
                energy.feed(samples, &mut scores);
                if last {
                    energy.finish(&mut scores);
                }
            }
            Self::Silero(silero) => silero.feed(samples, last, &mut scores)?,
            Self::Live(live) => live.feed(samples, last, &mut scores)?,
        }
        Ok(scores)
    }
}

/// Load Silero's network.
///
/// # Errors
/// [`crate::error::Kind::Model`] if the runtime refuses it.
pub fn load_silero(path: &Path) -> Result<Session> {
    engine::session(path, 1, Load::Rewrite)
}

/// Silero's network on one sound.
pub struct Silero<'a> {
    session: &'a mut Session,
    /// Samples from the warm-up of the first window without a score on.
    held: Vec<f32>,
}

impl Silero<'_> {
    fn feed(&mut self, samples: &[f32], last: bool, scores: &mut Vec<f32>) -> Result<()> {
        self.held.extend_from_slice(samples);
        let full = LANES * LANE * WINDOW;
        while self.held.len() - BEHIND >= full {
            self.side_by_side(LANES, scores)?;
            self.held.drain(..full);
        }
        let rest = self.held.len() - BEHIND;
        if last && rest > 0 {
            let windows = rest.div_ceil(WINDOW);
            let lanes = windows.div_ceil(LANE);
            self.held.resize(BEHIND + lanes * LANE * WINDOW, 0.0);
            let before = scores.len();
            self.side_by_side(lanes, scores)?;
            scores.truncate(before + windows);
        }
        Ok(())
    }

    /// Scores of lanes * LANE windows behind the warm-up of the first.
    fn side_by_side(&mut self, lanes: usize, scores: &mut Vec<f32>) -> Result<()> {
        const WIDE: usize = CONTEXT + WINDOW;
        let first = scores.len();
        scores.resize(first + lanes * LANE, 0.0);
        let mut state = vec![0.0; 2 * lanes * STATE];
        let mut input = vec![0.0; lanes * WIDE];
        for step in 0..WARM_UP + LANE {
            for (lane, window) in input.chunks_exact_mut(WIDE).enumerate() {
                let at = (lane * LANE + step) * WINDOW;
                window.copy_from_slice(&self.held[at..at + WIDE]);
            }
            let found = ask(self.session, &input, lanes, &mut state)?;
            if step >= WARM_UP {
                for (lane, score) in found.iter().enumerate() {
                    scores[first + lane * LANE + step - WARM_UP] = *score;
                }
            }
        }
        Ok(())
    }
}

/// Silero's network on sound as it comes: a score per window, 32 ms behind.
pub struct Live {
    session: Arc<Mutex<Session>>,
    state: Vec<f32>,
    held: Vec<f32>,
}

impl Live {
    fn feed(&mut self, samples: &[f32], last: bool, scores: &mut Vec<f32>) -> Result<()> {
        const WIDE: usize = CONTEXT + WINDOW;
        self.held.extend_from_slice(samples);
        if last && self.held.len() > CONTEXT {
            let windows = (self.held.len() - CONTEXT).div_ceil(WINDOW);
            self.held.resize(CONTEXT + windows * WINDOW, 0.0);
        }
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let mut at = 0;
        while at + WIDE <= self.held.len() {
            let input = &self.held[at..at + WIDE];
            scores.extend(ask(&mut session, input, 1, &mut self.state)?);
            at += WINDOW;
        }
        self.held.drain(..at);
        Ok(())
    }
}

/// One call of the network: a score per lane; the state goes on.
fn ask(session: &mut Session, input: &[f32], lanes: usize, state: &mut [f32]) -> Result<Vec<f32>> {
    let rate = [i64::from(SILERO_HZ)];
    let wide = input.len() / lanes;
    let inputs = ort::inputs![
        "input" => TensorRef::from_array_view(([lanes, wide], input)).map_err(failed)?,
        "state" => TensorRef::from_array_view(([2, lanes, STATE], &*state)).map_err(failed)?,
        "sr" => TensorRef::from_array_view(((), &rate[..])).map_err(failed)?,
    ];
    let outputs = session.run(inputs).map_err(failed)?;
    let (_, found) = outputs["output"]
        .try_extract_tensor::<f32>()
        .map_err(failed)?;
    let (_, next) = outputs["stateN"]
        .try_extract_tensor::<f32>()
        .map_err(failed)?;
    let found = found.to_vec();
    state.copy_from_slice(next);
    Ok(found)
}

/// Holds what no piece has yet, and gives out pieces.
pub struct Splitter<'a> {
    detector: Detector<'a>,
    cutter: Cutter,
    held: Vec<f32>,
    /// Place of the first sample held.
    first: usize,
}

impl<'a> Splitter<'a> {
    /// At the beginning of a sound.
    ///
    /// # Errors
    /// [`crate::error::Kind::Model`] for a rate or length that cannot be.
    pub fn new(detector: Detector<'a>, rate_hz: u32, piece_s: f64) -> Result<Self> {
        Ok(Self {
            detector,
            cutter: Cutter::new(rate_hz, piece_s)?,
            held: Vec::new(),
            first: 0,
        })
    }

    /// Take the next samples; the pieces that are complete, in order.
    ///
    /// # Errors
    /// [`crate::error::Kind::Model`] if the detector fails.
    pub fn feed(&mut self, samples: &[f32], last: bool) -> Result<Vec<Stretch>> {
        self.held.extend_from_slice(samples);
        let scores = self.detector.feed(samples, last)?;
        let mut spans: Vec<Piece> = Vec::new();
        spans.extend(scores.iter().filter_map(|score| self.cutter.push(*score)));
        if last {
            spans.extend(self.cutter.finish(self.first + self.held.len()));
        }
        let cut = |span: &Piece| Stretch {
            start: span.start,
            samples: self.held[span.start - self.first..span.end - self.first].to_vec(),
        };
        let pieces = spans.iter().map(cut).collect();
        if !last {
            let needed = self.cutter.needed_from();
            self.held.drain(..needed - self.first);
            self.first = needed;
        }
        Ok(pieces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_energy_finds_a_tone_however_the_blocks_fall() {
        let tone = |i: usize| (i as f32 * 0.3).sin() * 0.3;
        let loud = 40_000..60_000;
        let sound: Vec<f32> = (0..160_000)
            .map(|i| if loud.contains(&i) { tone(i) } else { 0.0 })
            .collect();
        let pieces = |block: usize| {
            let mut splitter = Splitter::new(Detector::energy(16000), 16000, 20.0).unwrap();
            let mut found = Vec::new();
            for (i, part) in sound.chunks(block).enumerate() {
                let last = (i + 1) * block >= sound.len();
                found.extend(splitter.feed(part, last).unwrap());
            }
            found
        };
        let whole = pieces(sound.len());
        assert_eq!(1, whole.len());
        assert!(whole[0].start <= 40_000 && whole[0].start > 30_000);
        assert!(whole[0].start + whole[0].samples.len() >= 60_000);
        for block in [1000, 7777] {
            assert_eq!(whole, pieces(block));
        }
    }
}
