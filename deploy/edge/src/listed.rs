//! A closed list of phrases: read, searched, judged, as `asr.phrases` does.

use rust_fe::ctc::{self, Decoded};
use rust_fe::phrases::{Mode, Phrases};
use rust_fe::simd::Backend;

use crate::bundle::PhraseFile;
use crate::error::Result;
use crate::text::Rows;
use crate::tokens::Vocabulary;
use crate::transcript::Transcript;

/// A phrase list, ready to search.
pub(crate) struct Listed {
    file: PhraseFile,
    graph: Phrases,
}

impl Listed {
    pub(crate) fn new(file: PhraseFile, vocabulary: &Vocabulary, blank_id: i64) -> Result<Self> {
        let mut labels: Vec<&str> = Vec::new();
        let mut groups = Vec::new();
        for phrase in &file.phrases {
            let known = labels.iter().position(|label| *label == phrase.label);
            groups.push(known.unwrap_or(labels.len()));
            if known.is_none() {
                labels.push(&phrase.label);
            }
        }
        let bytes = |text: &String| text.as_bytes().to_vec();
        let texts: Vec<Vec<Vec<u8>>> = file
            .phrases
            .iter()
            .map(|phrase| phrase.spellings.iter().map(bytes).collect())
            .collect();
        let graph = Phrases::new(&vocabulary.spellings(blank_id), blank_id, &texts, &groups)?;
        Ok(Self { file, graph })
    }

    /// The tokens of the phrases, and their labels; no labels where they are not sure enough.
    pub(crate) fn decode(
        &self,
        scores: &[f32],
        vocab: usize,
        rows: Rows,
    ) -> Result<(Decoded, Option<String>)> {
        let mode = if self.file.many {
            Mode::Many
        } else {
            Mode::One
        };
        let backend = Backend::best();
        let found = self
            .graph
            .decode(scores, vocab, rows.prompt_frames, mode, backend)?;
        let mut decoded = found.decoded;
        if found.hits.is_empty() {
            decoded = ctc::greedy(scores, vocab, rows.blank_id, rows.prompt_frames, backend)?;
        }
        for log_prob in &mut decoded.log_probs {
            *log_prob = log_prob.max(self.file.lowest_log_prob);
        }
        let sure = |hit: &rust_fe::phrases::Hit| {
            let score = (hit.log_prob - hit.free_log_prob) / hit.speech_frames as f64;
            score >= self.file.min_score && hit.posterior >= self.file.min_posterior
        };
        let accepted = !found.hits.is_empty() && found.hits.iter().all(sure);
        let label = |hit: &rust_fe::phrases::Hit| self.file.phrases[hit.phrase].label.as_str();
        let labels: Vec<&str> = found.hits.iter().map(label).collect();
        Ok((decoded, accepted.then(|| labels.join(" "))))
    }
}

/// Put the labels of a list in the place of the text, or withhold it.
pub(crate) fn judge(mut heard: Transcript, label: Option<String>) -> Transcript {
    if heard.no_speech {
        return heard;
    }
    match label {
        None => heard.withheld(),
        Some(label) => {
            heard.text = label;
            heard
        }
    }
}
