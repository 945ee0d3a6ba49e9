//! Another rate, with a filter that lets nothing fold back: a windowed sinc, one phase per output.

use std::f64::consts::PI;

/// Zero crossings of the filter on either side, at the lower of the two rates.
const CROSSINGS: f64 = 72.0;
/// Kaiser's parameter: what lies beyond the stop band is below -100 dB.
const BETA: f64 = 10.0;
/// The filter's middle, as a part of the lower Nyquist: passband to 0.91.
const MIDDLE: f64 = 0.955;

/// Changes the rate of a sound that comes in blocks; joined, what one call would give.
#[derive(Debug)]
pub struct Resampler {
    /// Output and input samples in a period.
    up: usize,
    down: usize,
    /// Input samples on either side that an output sample needs.
    half: usize,
    /// `up` filters of `2 * half` taps.
    taps: Vec<f32>,
    held: Vec<f32>,
    /// Place of the first sample held, counted from `half` samples before the sound.
    first: usize,
    /// Samples in, samples out.
    taken: usize,
    given: usize,
}

impl Resampler {
    /// At the beginning of a sound.
    #[must_use]
    pub fn new(from_hz: u32, to_hz: u32) -> Self {
        let divisor = gcd(from_hz as usize, to_hz as usize);
        let (up, down) = (to_hz as usize / divisor, from_hz as usize / divisor);
        let same = up == down;
        let lower = (up as f64 / down as f64).min(1.0);
        let half = if same {
            0
        } else {
            (CROSSINGS / lower).ceil() as usize
        };
        let cut = lower * MIDDLE;
        let mut taps = Vec::with_capacity(if same { 0 } else { 2 * half * up });
        for phase in 0..if same { 0 } else { up } {
            let part = phase as f64 / up as f64;
            for k in 0..2 * half {
                let t = k as f64 + 1.0 - half as f64 - part;
                let window = 1.0 - (t / half as f64).powi(2);
                let window = bessel(BETA * window.max(0.0).sqrt()) / bessel(BETA);
                taps.push((cut * sinc(cut * t) * window) as f32);
            }
        }
        Self {
            up,
            down,
            half,
            taps,
            held: vec![0.0; half],
            first: 0,
            taken: 0,
            given: 0,
        }
    }

    /// Take the next samples; what is known now, the rest of it where these are the last.
    #[must_use]
    pub fn feed(&mut self, samples: Vec<f32>, last: bool) -> Vec<f32> {
        if self.up == self.down {
            return samples;
        }
        self.taken += samples.len();
        self.held.extend(samples);
        let mut ready = self.taken.saturating_sub(self.half) * self.up / self.down;
        if last {
            ready = (self.taken * self.up).div_ceil(self.down);
            self.held.resize(self.held.len() + self.half + 1, 0.0);
        }
        let width = 2 * self.half;
        let mut out = Vec::with_capacity(ready.saturating_sub(self.given));
        while self.given < ready {
            let place = self.given * self.down;
            // `half` zeros lie before the sound, so this is the first of the taps' samples.
            let at = place / self.up + 1 - self.first;
            let taps = &self.taps[place % self.up * width..][..width];
            let sound = &self.held[at..at + width];
            out.push(taps.iter().zip(sound).map(|(a, b)| a * b).sum());
            self.given += 1;
        }
        let needed = (self.given * self.down / self.up).saturating_sub(self.first);
        let needed = needed.min(self.held.len());
        self.held.drain(..needed);
        self.first += needed;
        out
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a.max(1) } else { gcd(b, a % b) }
}

fn sinc(x: f64) -> f64 {
    if x == 0.0 {
        1.0
    } else {
        (PI * x).sin() / (PI * x)
    }
}

/// Modified Bessel function of order 0, by its series.
fn bessel(x: f64) -> f64 {
    let (mut sum, mut term, mut k) = (1.0, 1.0, 1.0);
    while term > sum * 1e-12 {
        term *= (x / (2.0 * k)).powi(2);
        sum += term;
        k += 1.0;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(hz: f64, rate: f64, count: usize) -> Vec<f32> {
        let sample = |i: usize| (2.0 * PI * hz * i as f64 / rate).sin() as f32;
        (0..count).map(sample).collect()
    }

    #[test]
    fn a_tone_keeps_its_shape_and_blocks_do_not_matter() {
        for rate in [8000, 22050, 44100, 48000] {
            let sound = tone(1000.0, f64::from(rate), rate as usize);
            let whole = Resampler::new(rate, 16000).feed(sound.clone(), true);
            assert_eq!(16000, whole.len());
            let wanted = tone(1000.0, 16000.0, 16000);
            for i in 500..15_500 {
                assert!((whole[i] - wanted[i]).abs() < 1e-4, "{rate} at {i}");
            }
            let mut resampler = Resampler::new(rate, 16000);
            let (first, second) = sound.split_at(777);
            let mut joined = resampler.feed(first.to_vec(), false);
            joined.extend(resampler.feed(second[..5000].to_vec(), false));
            joined.extend(resampler.feed(second[5000..].to_vec(), true));
            assert_eq!(whole, joined);
        }
    }

    #[test]
    fn what_cannot_be_heard_at_the_lower_rate_disappears() {
        let sound = tone(11_000.0, 48000.0, 48000);
        let found = Resampler::new(48000, 16000).feed(sound, true);
        assert!(found[500..15_500].iter().all(|v| v.abs() < 1e-4));
    }
}
