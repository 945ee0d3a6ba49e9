//! Long sound -> pieces that the network can hear in one call, cut at pauses.
//!
//! A state machine: a score per window goes in, pieces come out. It holds the scores of one piece
//! and no samples, so memory does not grow with the sound.

use std::collections::VecDeque;

use crate::error::Error;

/// Length of a window: 512 samples at 16 kHz, what Silero VAD takes.
pub const WINDOW_MS: usize = 32;
/// A window with this score is speech, whatever came before.
pub const THRESHOLD: f32 = 0.5;
/// Speech goes on as long as scores stay above this.
pub const RELEASE: f32 = 0.35;
/// A pause of this length ends a piece: 608 ms.
pub const PAUSE: usize = 19;
/// So much is kept in front of speech: 96 ms. More would let a network that puts its first token
/// at the beginning of a piece say a time that is too early.
pub const LEAD: usize = 3;
/// So much is kept behind speech: 192 ms.
pub const TAIL: usize = 6;
/// Where no pause is long enough, the cut falls into the middle of the least speech: 224 ms.
const DIP: usize = 7;

/// A stretch of samples that may hold speech.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// First sample.
    pub start: usize,
    /// One past the last sample.
    pub end: usize,
}

/// Cuts sound of any length into pieces, in order, none longer than asked.
///
/// Every window with a score of at least [`THRESHOLD`] lies in a piece. A piece ends in a pause of
/// [`PAUSE`] windows, or, when it would get too long, at the place of least speech in its second
/// half; the next piece then begins where it ends.
#[derive(Debug)]
pub struct Cutter {
    window: usize,
    longest: usize,
    /// Scores of the windows from `base` on.
    scores: VecDeque<f32>,
    base: usize,
    next: usize,
    /// Windows before this lie in a piece that is out already.
    free: usize,
    open: Option<Open>,
    speaking: bool,
}

/// A piece that has begun.
#[derive(Debug)]
struct Open {
    start: usize,
    /// One past the last window of speech.
    spoken: usize,
}

/// Samples in a window.
#[must_use]
pub fn window_samples(sample_rate_hz: u32) -> usize {
    sample_rate_hz as usize * WINDOW_MS / 1000
}

impl Cutter {
    /// A cutter at the beginning of a sound.
    ///
    /// # Errors
    /// [`Error::Config`] where the longest piece has less than 1 s, or the rate less than 1 kHz.
    pub fn new(sample_rate_hz: u32, longest_s: f64) -> Result<Self, Error> {
        let refuse = |field, expected: &str, found: String| {
            let expected = expected.into();
            Err(Error::Config {
                field,
                expected,
                found,
            })
        };
        if sample_rate_hz < 1000 {
            let found = sample_rate_hz.to_string();
            return refuse("sample rate", "at least 1000 Hz", found);
        }
        if !(1.0..=3600.0).contains(&longest_s) {
            let found = longest_s.to_string();
            return refuse("longest piece", "1 to 3600 seconds", found);
        }
        let window = window_samples(sample_rate_hz);
        let longest = (longest_s * f64::from(sample_rate_hz)) as usize / window;
        Ok(Self {
            window,
            longest,
            scores: VecDeque::with_capacity(longest),
            base: 0,
            next: 0,
            free: 0,
            open: None,
            speaking: false,
        })
    }

    /// Take the score of the next window, 0 no speech to 1 speech; a piece may end with it.
    ///
    /// What is no number counts as speech: nothing that could be speech is dropped.
    pub fn push(&mut self, score: f32) -> Option<Piece> {
        let score = if score.is_nan() { 1.0 } else { score };
        self.scores.push_back(score);
        self.next += 1;
        self.speaking = score >= if self.speaking { RELEASE } else { THRESHOLD };
        if self.speaking {
            let start = self.free.max((self.next - 1).saturating_sub(LEAD));
            let open = self.open.get_or_insert(Open { start, spoken: 0 });
            open.spoken = self.next;
        }
        let piece = self.due();
        let keep = self.needed_window();
        self.scores.drain(..keep - self.base);
        self.base = keep;
        piece
    }

    /// The piece that ends now, if one does.
    fn due(&mut self) -> Option<Piece> {
        let open = self.open.as_mut()?;
        if self.next - open.spoken >= PAUSE {
            return self.close(usize::MAX);
        }
        if self.next - open.start < self.longest {
            return None;
        }
        // The rest keeps enough for the network to hear: a dip's length.
        let first = open.start + self.longest / 2;
        let cut = (first..=self.next - DIP)
            .min_by(|&a, &b| self.speech_around(a).total_cmp(&self.speech_around(b)))?;
        let open = self.open.as_mut()?;
        if open.spoken <= cut {
            return self.close(usize::MAX);
        }
        let start = std::mem::replace(&mut open.start, cut);
        self.free = cut;
        Some(Piece {
            start: start * self.window,
            end: cut * self.window,
        })
    }

    /// Sum of the scores in the middle of which a cut before this window would fall.
    fn speech_around(&self, cut: usize) -> f32 {
        let first = cut - DIP / 2 - self.base;
        self.scores.range(first..first + DIP).sum()
    }

    fn close(&mut self, num_samples: usize) -> Option<Piece> {
        let open = self.open.take()?;
        let end = self.next.min(open.spoken + TAIL);
        self.free = end;
        Some(Piece {
            start: open.start * self.window,
            end: num_samples.min(end * self.window),
        })
    }

    /// The sound ends after so many samples in all; the last piece, if one is open.
    ///
    /// The last window may be a part of one. The cutter is then as at its beginning.
    pub fn finish(&mut self, num_samples: usize) -> Option<Piece> {
        let piece = self.close(num_samples);
        self.scores.clear();
        (self.base, self.next, self.free, self.speaking) = (0, 0, 0, false);
        piece
    }

    fn needed_window(&self) -> usize {
        match &self.open {
            Some(open) => open.start,
            None => self.free.max(self.next.saturating_sub(LEAD)),
        }
    }

    /// Samples before this one lie in no piece that is still to come.
    #[must_use]
    pub fn needed_from(&self) -> usize {
        self.needed_window() * self.window
    }
}
