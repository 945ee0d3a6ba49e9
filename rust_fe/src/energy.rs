//! Scores per window from the energy alone: what cuts sound where there is no speech network.

use std::collections::VecDeque;

/// What a score means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// 0 to 1: how far the window rises above the quietest place within 2 s of it.
    Speech,
    /// 0.5 to 1: how loud the window is. All of it is to be heard; cuts fall where it is quietest.
    Loudness,
}

/// Windows on either side among which the background is looked for: 2 s.
const REACH: usize = 62;
/// Windows over which the background is averaged, so that one gap between samples is none.
const SMOOTH: usize = 3;
/// So far above the background a score is 1; speech begins halfway.
const RISE_DB: f32 = 9.0;
/// What is quieter than this is background.
const FLOOR_DB: f32 = -80.0;

/// Levels of windows of sound, and scores made of them.
///
/// The result does not depend on how the samples are cut into calls. A level is that of the
/// deviation from the window's mean, so an offset hides nothing.
#[derive(Debug)]
pub struct Energy {
    meaning: Meaning,
    window: usize,
    count: usize,
    sum: f64,
    squares: f64,
    /// Levels of the windows within reach of the next score.
    levels: VecDeque<f32>,
    /// How many of `levels` come before the next score's own window.
    before: usize,
}

impl Energy {
    /// Scores of windows of so many samples, at least 1.
    #[must_use]
    pub fn new(window: usize, meaning: Meaning) -> Self {
        Self {
            meaning,
            window: window.max(1),
            count: 0,
            sum: 0.0,
            squares: 0.0,
            levels: VecDeque::with_capacity(2 * REACH + 2),
            before: 0,
        }
    }

    /// Take samples; add the scores that are known now, 2 s behind for [`Meaning::Speech`].
    pub fn feed(&mut self, samples: &[f32], scores: &mut Vec<f32>) {
        for &sample in samples {
            let sample = f64::from(sample);
            self.sum += sample;
            self.squares += sample * sample;
            self.count += 1;
            if self.count == self.window {
                self.end_window(scores);
            }
        }
    }

    /// The sound ends: add the scores that are left. A part of a window counts as one.
    pub fn finish(&mut self, scores: &mut Vec<f32>) {
        if self.count > 0 {
            self.end_window(scores);
        }
        while self.levels.len() > self.before {
            self.score(scores);
        }
        self.levels.clear();
        self.before = 0;
    }

    fn end_window(&mut self, scores: &mut Vec<f32>) {
        let count = self.count as f64;
        let mean = self.sum / count;
        let power = (self.squares / count - mean * mean).max(1e-10);
        let level = (10.0 * power.log10()) as f32;
        (self.count, self.sum, self.squares) = (0, 0.0, 0.0);
        if self.meaning == Meaning::Loudness {
            scores.push((0.5 + (level + 100.0) / 200.0).clamp(0.5, 1.0));
            return;
        }
        self.levels.push_back(level);
        if self.levels.len() > self.before + REACH {
            self.score(scores);
        }
    }

    fn score(&mut self, scores: &mut Vec<f32>) {
        let smooth = SMOOTH.min(self.levels.len());
        let background = (0..=self.levels.len() - smooth)
            .map(|i| self.levels.range(i..i + smooth).sum::<f32>() / smooth as f32)
            .fold(f32::INFINITY, f32::min);
        let rise = self.levels[self.before] - background.max(FLOOR_DB);
        scores.push((rise / RISE_DB).clamp(0.0, 1.0));
        if self.before == REACH {
            self.levels.pop_front();
        } else {
            self.before += 1;
        }
    }
}
