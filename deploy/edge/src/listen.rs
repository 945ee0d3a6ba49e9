//! Sound -> transcript: the pipeline of `asr.recognizer`, one line per stage.

use std::path::Path;
use std::time::Instant;

use ort::session::Session;
use rust_fe::ctc;
use rust_fe::fbank::Fbank;
use rust_fe::simd::Backend;
use rust_fe::{cmvn, lfr};

use crate::bundle::{Bundle, DETECTOR};
use crate::dump::Dump;
use crate::engine::{self, Engine, Load};
use crate::error::{Error, Kind, Result};
use crate::listed::{self, Listed};
use crate::resample::Resampler;
use crate::show;
use crate::sound::Reader;
use crate::split::{self, Detector, Splitter};
use crate::text::{self, Place, Rows};
use crate::threads;
use crate::tokens::Vocabulary;
use crate::transcript::Transcript;
use crate::watch::{Stage, Watch};

/// What fbank returns where no mel bin holds energy: ln(FLT_EPSILON), rounded as `NumPy` does.
const LOG_FLOOR: f32 = -15.942_385;

/// What one call asks for.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// A language the model knows; none lets it choose.
    pub language: Option<String>,
    /// Digits and punctuation.
    pub itn: bool,
}

/// How long loading took, nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs, reason = "phases of the load, docs/edge.md")]
pub struct Loaded {
    pub runtime_ns: u64,
    pub bundle_ns: u64,
    pub session_create_ns: u64,
}

/// A bundle ready to transcribe.
pub struct Listener {
    /// What it was loaded from.
    pub bundle: Bundle,
    /// Threads of the network.
    pub threads: usize,
    /// How long that took.
    pub loaded: Loaded,
    engine: Engine,
    fbank: Fbank,
    neg_mean: Vec<f32>,
    inv_stddev: Vec<f32>,
    vocabulary: Vocabulary,
    phrases: Option<Listed>,
    silero: Option<Session>,
}

impl Listener {
    /// Load a bundle; `threads` of none takes the fast cores.
    ///
    /// # Errors
    /// [`Kind::Missing`] without ONNX Runtime; [`Kind::Model`] for a bundle that cannot be used.
    pub fn load(folder: &Path, threads: Option<usize>) -> Result<Self> {
        let start = Instant::now();
        let library = engine::load_runtime()?;
        let runtime_ns = nanoseconds(start);
        let bundle = Bundle::open(folder)?;
        let description = &bundle.description;
        let how = match &description.prepared {
            None => Load::Rewrite,
            Some(made_for) => {
                crate::prepare::check(made_for, &library)?;
                Load::Prepared
            }
        };
        let fbank = Fbank::new(description.recipe.fbank()?, Backend::best())?;
        let (neg_mean, inv_stddev) = bundle.cmvn()?;
        let vocabulary = Vocabulary::read(&bundle.tokens()?, description.vocab_size)?;
        let phrases = match bundle.phrases()? {
            None => None,
            Some(file) => Some(Listed::new(file, &vocabulary, description.blank_id)?),
        };
        let bundle_ns = nanoseconds(start) - runtime_ns;
        let threads = threads.unwrap_or_else(threads::default_threads);
        let engine = Engine::load(&bundle, threads, how)?;
        let loaded = Loaded {
            runtime_ns,
            bundle_ns,
            session_create_ns: nanoseconds(start) - runtime_ns - bundle_ns,
        };
        Ok(Self {
            threads,
            loaded,
            engine,
            fbank,
            neg_mean,
            inv_stddev,
            vocabulary,
            phrases,
            silero: None,
            bundle,
        })
    }

    /// Name of the SIMD path in use.
    #[must_use]
    pub fn backend(&self) -> &'static str {
        self.fbank.backend().name()
    }

    /// The rate that the network was trained on.
    #[must_use]
    pub fn rate_hz(&self) -> u32 {
        self.bundle.description.recipe.sample_rate_hz
    }

    /// Turn sound into text; sound longer than a piece is read in blocks and heard in pieces.
    ///
    /// # Errors
    /// [`Kind::Audio`], [`Kind::System`] from reading; [`Kind::Model`] from the network;
    /// [`Kind::Usage`] for a language the model does not know.
    pub fn transcribe(
        &mut self,
        reader: &mut Reader,
        wanted: &Wanted,
    ) -> Result<(Transcript, Watch)> {
        let start = Instant::now();
        let mut watch = Watch::new(Dump::wanted(reader.name()));
        let prompt = self.prompt(wanted)?;
        let mut transcript = self.run(reader, prompt, &mut watch)?;
        transcript.warnings.splice(0..0, reader.warnings.drain(..));
        transcript.wall_s = start.elapsed().as_secs_f64();
        Ok((transcript, watch))
    }

    /// Hear a piece of a stream, at the recipe's rate; times count from the stream's start.
    ///
    /// # Errors
    /// As [`Listener::transcribe`].
    pub fn hear_piece(
        &mut self,
        samples: &[f32],
        start_s: f64,
        wanted: &Wanted,
    ) -> Result<Transcript> {
        let start = Instant::now();
        let prompt = self.prompt(wanted)?;
        let length_s = samples.len() as f64 / f64::from(self.rate_hz());
        let mut watch = Watch::new(Dump::wanted("stream"));
        let mut heard = self.piece(samples, start_s, length_s, prompt, &mut watch)?;
        heard.wall_s = start.elapsed().as_secs_f64();
        Ok(heard)
    }

    /// Rows of the prompt embedding: language, ITN; and whether ITN was asked for.
    fn prompt(&self, wanted: &Wanted) -> Result<(i32, i32, bool)> {
        let description = &self.bundle.description;
        let language = wanted.language.as_deref().unwrap_or("auto");
        let ids = &description.language_ids;
        let itn = &description.itn_ids;
        match ids.get(language) {
            Some(id) => Ok((
                *id,
                if wanted.itn { itn.with } else { itn.without },
                wanted.itn,
            )),
            None => {
                let known: Vec<&str> = ids.keys().map(String::as_str).collect();
                let known = known.join(", ");
                Err(Error::new(
                    Kind::Usage,
                    format!("unknown language {language:?}: expected one of {known}"),
                ))
            }
        }
    }

    fn run(
        &mut self,
        reader: &mut Reader,
        prompt: (i32, i32, bool),
        watch: &mut Watch,
    ) -> Result<Transcript> {
        let (piece_s, min_audio_s) = {
            let description = &self.bundle.description;
            (description.piece_s, description.min_audio_s)
        };
        let mut block = Vec::new();
        let mut more = true;
        while more && reader.read_s() <= piece_s {
            more = watch.step(Stage::Read, || reader.next(&mut block))?;
        }
        let audio_s = reader.read_s();
        watch.show(Stage::Read, || {
            show::sound(&block, reader.rate_hz(), reader.name())
        });
        if audio_s < min_audio_s {
            return Ok(Transcript::silent(None, audio_s, "too_short"));
        }
        let mut resampler = Resampler::new(reader.rate_hz(), self.rate_hz());
        if audio_s <= piece_s {
            let sound = watch.step(Stage::Resample, || resampler.feed(block, true));
            return self.piece(&sound, 0.0, audio_s, prompt, watch);
        }
        let rate_hz = self.rate_hz();
        let mut silero = self.take_silero()?;
        let detector = match &mut silero {
            Some(session) => Detector::silero(session),
            None => Detector::energy(rate_hz),
        };
        let mut splitter = Splitter::new(detector, rate_hz, piece_s)?;
        let mut heard = Vec::new();
        loop {
            // The block behind this one tells whether it is the last.
            let mut following = Vec::new();
            if more {
                more = watch.step(Stage::Read, || reader.next(&mut following))?;
            }
            let last = following.is_empty();
            let sound = watch.step(Stage::Resample, || resampler.feed(block, last));
            for stretch in watch.step(Stage::Vad, || splitter.feed(&sound, last))? {
                let start_s = stretch.start as f64 / f64::from(rate_hz);
                let length_s = stretch.samples.len() as f64 / f64::from(rate_hz);
                let length_s = length_s.min(reader.read_s() - start_s);
                heard.push(self.piece(&stretch.samples, start_s, length_s, prompt, watch)?);
            }
            if last {
                break;
            }
            block = following;
        }
        drop(splitter);
        self.silero = silero;
        Ok(Transcript::merge(heard, reader.read_s()))
    }

    /// The detector's network, loaded when long sound first comes.
    fn take_silero(&mut self) -> Result<Option<Session>> {
        if self.silero.is_none() && self.bundle.has(DETECTOR) && self.rate_hz() == split::SILERO_HZ
        {
            self.silero = Some(split::load_silero(&self.bundle.path(DETECTOR))?);
        }
        Ok(self.silero.take())
    }

    /// Hear one piece in one call of the network; times count from the source's start.
    fn piece(
        &mut self,
        samples: &[f32],
        offset_s: f64,
        source_s: f64,
        (language_id, itn_id, itn): (i32, i32, bool),
        watch: &mut Watch,
    ) -> Result<Transcript> {
        let description = &self.bundle.description;
        let recipe = &description.recipe;
        let frame_shift_s = recipe.frame_shift_ms / 1000.0;
        let row_shift_s = frame_shift_s * recipe.lfr_n as f64;
        let mels = recipe.num_mel_bins;
        let mut features = watch.step(Stage::Fbank, || self.fbank.compute(samples))?;
        watch.show(Stage::Fbank, || {
            show::matrix(&features, mels, frame_shift_s)
        });
        let (first, end) = sounding(&features, mels, description.kept_frames, recipe.lfr_n);
        if first == end {
            return Ok(Transcript::silent(Some(1.0), source_s, "silence"));
        }
        let skipped_s = first as f64 * frame_shift_s;
        let place = Place {
            start_s: offset_s + skipped_s,
            length_s: source_s - skipped_s,
        };
        features = watch.step(Stage::Lfr, || {
            lfr::lfr(
                &features[first * mels..end * mels],
                mels,
                recipe.lfr_m,
                recipe.lfr_n,
            )
        });
        watch.show(Stage::Lfr, || {
            show::matrix(&features, recipe.dim(), row_shift_s)
        });
        watch.step(Stage::Cmvn, || {
            cmvn::cmvn(&mut features, &self.neg_mean, &self.inv_stddev);
        });
        watch.show(Stage::Cmvn, || {
            show::matrix(&features, recipe.dim(), row_shift_s)
        });
        let rows = Rows {
            frame_shift_s: row_shift_s,
            prompt_frames: description.prompt_frames,
            blank_id: description.blank_id,
            itn,
        };
        let thresholds = description.rejection;
        let (name, vocab) = self.engine.scores();
        let outputs = watch.step(Stage::Infer, || {
            self.engine.run(&features, language_id, itn_id)
        })?;
        let scores = engine::scores_of(&outputs, &name, vocab)?;
        watch.show(Stage::Infer, || show::scores(scores, vocab, rows));
        let (decoded, hits) = watch.step(Stage::Decode, || match &self.phrases {
            None => Ok((
                ctc::greedy(
                    scores,
                    vocab,
                    rows.blank_id,
                    rows.prompt_frames,
                    Backend::best(),
                )?,
                None,
            )),
            Some(listed) => listed
                .decode(scores, vocab, rows)
                .map(|(d, h)| (d, Some(h))),
        })?;
        watch.show(Stage::Decode, || show::decoded(&decoded, rows));
        let mut transcript = watch.step(Stage::Text, || {
            let heard = text::transcribe(&decoded, &self.vocabulary, rows, place);
            match hits {
                Some(label) => listed::judge(heard, label),
                None => reject(heard, thresholds),
            }
        });
        transcript.audio_s = source_s;
        Ok(transcript)
    }
}

/// Withhold a text whose least sure word, or whose entropy, is not what the model's thresholds ask.
fn reject(heard: Transcript, thresholds: Option<crate::bundle::Thresholds>) -> Transcript {
    let (Some(least), false) = (thresholds, heard.no_speech) else {
        return heard;
    };
    let words = heard.segments.iter().flat_map(|s| &s.words);
    let word = words.map(|w| w.confidence).reduce(f64::min);
    let sure = word.is_some_and(|word| word >= least.word_confidence)
        && heard
            .entropy
            .is_some_and(|e| least.entropy.is_none_or(|most| e <= most));
    if sure { heard } else { heard.withheld() }
}

/// First frame to hear, and one past the last: long digital silence at the ends is left out.
fn sounding(values: &[f32], mels: usize, kept: usize, lfr_n: usize) -> (usize, usize) {
    let frames = values.len() / mels;
    let loud = |row: &[f32]| row.iter().any(|v| *v > LOG_FLOOR);
    let rows = || values.chunks_exact(mels);
    let (Some(first), Some(last)) = (rows().position(loud), rows().rposition(loud)) else {
        return (0, 0);
    };
    let first = first.saturating_sub(kept);
    (first - first % lfr_n, frames.min(last + 1 + kept))
}

fn nanoseconds(start: Instant) -> u64 {
    start.elapsed().as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digital_silence_at_the_ends_is_left_out_in_whole_rows() {
        let frames = |loud: std::ops::Range<usize>, count: usize| -> Vec<f32> {
            let level = |i: usize| if loud.contains(&i) { 1.0 } else { LOG_FLOOR };
            (0..count).flat_map(|i| [LOG_FLOOR, level(i)]).collect()
        };
        assert_eq!((0, 0), sounding(&frames(0..0, 50), 2, 30, 6));
        assert_eq!((0, 50), sounding(&frames(0..50, 50), 2, 30, 6));
        assert_eq!((66, 141), sounding(&frames(100..111, 300), 2, 30, 6));
        assert_eq!(LOG_FLOOR, f32::EPSILON.ln());
    }
}
