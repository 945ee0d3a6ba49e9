//! Ids -> text with times, as `asr.text` makes it.

use rust_fe::ctc::Decoded;

use crate::tokens::{Token as Piece, Vocabulary};
use crate::transcript::{Segment, Token, Transcript, Word, is_unspaced, summary};

const WORD_MARKER: char = '\u{2581}';

/// Where the frames that the network heard lie in the source, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    /// From the source's start.
    pub start_s: f64,
    /// To the end of the piece.
    pub length_s: f64,
}

/// What the scores were made with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rows {
    /// Seconds from one row to the next.
    pub frame_shift_s: f64,
    /// Rows in front of the speech.
    pub prompt_frames: usize,
    /// The CTC blank.
    pub blank_id: i64,
    /// What the prompt asked for.
    pub itn: bool,
}

/// A token on its way to a word: text with its marker, and its statistics.
struct Unit {
    text: String,
    start_s: f64,
    end_s: f64,
    log_prob: f64,
    entropy: f64,
}

/// Turn ids into text with times, and prompt rows into fields.
#[must_use]
pub fn transcribe(
    decoded: &Decoded,
    vocabulary: &Vocabulary,
    rows: Rows,
    place: Place,
) -> Transcript {
    let prompt = &decoded.argmax[..rows.prompt_frames];
    let tag = |row: usize| prompt.get(row).and_then(|id| vocabulary.tag(*id));
    let language = tag(0);
    let itn = match tag(3) {
        Some("withitn") => Some(true),
        Some("woitn") => Some(false),
        _ => None,
    };
    let silent = language == Some("nospeech");
    let mut units = Units::new(decoded, rows.frame_shift_s, place);
    if !silent {
        units.collect(vocabulary);
    }
    let units = units.found;
    let words = words(&units);
    let heard = !words.is_empty();
    let mut segments = Vec::new();
    if let (Some(first), Some(last)) = (words.first(), words.last()) {
        let (confidence, entropy) = summary(words.iter().flat_map(|w| &w.tokens)).unzip();
        segments.push(Segment {
            text: joined(&units),
            start_s: first.start_s,
            end_s: last.end_s,
            confidence,
            entropy,
            words,
            rejected: false,
        });
    }
    let reason = (!heard).then_some("silence");
    let mut transcript = Transcript {
        language: language.filter(|_| !silent).map(Into::into),
        emotion: tag(1).map(Into::into),
        event: tag(2).map(Into::into),
        itn,
        no_speech_score: (!heard).then(|| mean_blank_probability(decoded, rows)),
        ..Transcript::of(segments, reason, place.length_s)
    };
    if itn.is_some_and(|itn| itn != rows.itn) {
        transcript.warnings.push("itn_not_honoured".into());
    }
    transcript
}

/// One unit per piece of text; a run of byte pieces is joined before it is decoded.
struct Units<'a> {
    decoded: &'a Decoded,
    shift_s: f64,
    place: Place,
    found: Vec<Unit>,
    carry: String,
    bytes: Vec<u8>,
}

impl<'a> Units<'a> {
    fn new(decoded: &'a Decoded, shift_s: f64, place: Place) -> Self {
        Self {
            decoded,
            shift_s,
            place,
            found: Vec::new(),
            carry: String::new(),
            bytes: Vec::new(),
        }
    }

    fn collect(&mut self, vocabulary: &Vocabulary) {
        for (k, id) in self.decoded.token_ids.iter().enumerate() {
            match vocabulary.get(*id) {
                Piece::Byte(byte) => self.bytes.push(*byte),
                other => {
                    self.flush(k);
                    if let Piece::Text(text) = other {
                        self.add(text, k, k);
                    }
                }
            }
        }
        self.flush(self.decoded.token_ids.len());
    }

    /// End the run of bytes in front of a token.
    fn flush(&mut self, k: usize) {
        let bytes = std::mem::take(&mut self.bytes);
        if !bytes.is_empty() {
            self.add(&String::from_utf8_lossy(&bytes), k - bytes.len(), k - 1);
        }
    }

    fn add(&mut self, text: &str, first: usize, last: usize) {
        let mut text = std::mem::take(&mut self.carry) + text;
        if plain(&text).is_empty() {
            std::mem::swap(&mut self.carry, &mut text); // a marker belongs to what follows
            return;
        }
        let count = (last - first + 1) as f64;
        let mean = |values: &[f32]| {
            let sum: f64 = values[first..=last].iter().map(|v| f64::from(*v)).sum();
            sum / count
        };
        let end_s = self.seconds(self.decoded.end_frame[last]);
        self.found.push(Unit {
            text,
            start_s: self.seconds(self.decoded.start_frame[first]),
            end_s: end_s.min(self.place.start_s + self.place.length_s),
            log_prob: mean(&self.decoded.log_probs),
            entropy: mean(&self.decoded.entropies),
        });
    }

    /// LFR row i is centred on fbank frame 6 i, so its stretch begins half a row earlier.
    fn seconds(&self, frame: i32) -> f64 {
        let at_s = f64::from(frame) * self.shift_s - self.shift_s / 2.0;
        let seconds = self.place.start_s + at_s.max(0.0).min(self.place.length_s);
        // Six decimals, rounded as Python rounds: on the exact value, half to even.
        format!("{seconds:.6}").parse().unwrap_or(seconds)
    }
}

/// Group units: a marker opens a word, and so does a character written without spaces.
fn words(units: &[Unit]) -> Vec<Word> {
    units
        .chunk_by(|before, after| !opens_word(&before.text, &after.text))
        .map(word)
        .collect()
}

fn opens_word(before: &str, text: &str) -> bool {
    let first = text.chars().next().unwrap_or(' ');
    let last = before.chars().next_back().unwrap_or(' ');
    first == WORD_MARKER || first.is_whitespace() || is_unspaced(first) || is_unspaced(last)
}

fn word(group: &[Unit]) -> Word {
    let token = |unit: &Unit| Token {
        text: plain(&unit.text),
        start_s: unit.start_s,
        end_s: unit.end_s,
        confidence: unit.log_prob.exp(),
        entropy: unit.entropy,
    };
    let tokens: Vec<Token> = group.iter().map(token).collect();
    let (confidence, entropy) = summary(tokens.iter()).unwrap_or_default();
    Word {
        text: joined(group),
        start_s: group[0].start_s,
        end_s: group[group.len() - 1].end_s,
        confidence,
        entropy,
        tokens,
    }
}

fn joined(units: &[Unit]) -> String {
    plain(&units.iter().map(|u| u.text.as_str()).collect::<String>())
}

/// Turn word markers into spaces.
fn plain(marked: &str) -> String {
    marked.replace(WORD_MARKER, " ").trim().into()
}

/// Mean over the speech rows of blank's probability; 0 where another id was best.
fn mean_blank_probability(decoded: &Decoded, rows: Rows) -> f64 {
    let best = &decoded.argmax[rows.prompt_frames..];
    if best.is_empty() {
        return 1.0;
    }
    let of = |(id, log_prob): (&i32, &f32)| {
        if i64::from(*id) == rows.blank_id {
            f64::from(log_prob.exp())
        } else {
            0.0
        }
    };
    let log_probs = &decoded.log_prob[rows.prompt_frames..];
    best.iter().zip(log_probs).map(of).sum::<f64>() / best.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(ids: &[i32]) -> Decoded {
        let count = ids.len() as i32;
        Decoded {
            argmax: [9, 9, 9, 9].iter().chain(ids).copied().collect(),
            log_prob: vec![-0.1; ids.len() + 4],
            entropy: vec![0.2; ids.len() + 4],
            token_ids: ids.to_vec(),
            start_frame: (0..count).collect(),
            end_frame: (1..=count).collect(),
            log_probs: vec![-0.1; ids.len()],
            entropies: vec![0.2; ids.len()],
        }
    }

    fn vocabulary() -> Vocabulary {
        let entries: [(u8, &[u8]); 8] = [
            (3, b"<s>"),
            (0, "\u{2581}on".as_bytes()),
            (0, b"e"),
            (2, b"\xe4"),
            (2, b"\xb8"),
            (2, b"\x80"),
            (0, "\u{2581}".as_bytes()),
            (1, b"en"),
        ];
        let table: Vec<u8> = entries
            .iter()
            .flat_map(|(kind, data)| [&[*kind, data.len() as u8, 0][..], data].concat())
            .collect();
        Vocabulary::read(&table, 8).unwrap()
    }

    fn hear(ids: &[i32]) -> Transcript {
        let rows = Rows {
            frame_shift_s: 0.06,
            prompt_frames: 4,
            blank_id: 0,
            itn: false,
        };
        let place = Place {
            start_s: 1.0,
            length_s: 0.2,
        };
        transcribe(&decoded(ids), &vocabulary(), rows, place)
    }

    #[test]
    fn markers_open_words_and_bytes_are_joined() {
        let found = hear(&[1, 2, 6, 1, 3, 4, 5]);
        assert_eq!("one  on\u{4e00}", found.text);
        let words: Vec<&str> = found.segments[0].words.iter().map(|w| &*w.text).collect();
        assert_eq!(["one", "on", "\u{4e00}"], words[..]);
        let last = &found.segments[0].words[2];
        assert_eq!(1.2, last.end_s, "no time lies beyond the sound's end");
        assert!((last.confidence - (-0.1_f64).exp()).abs() < 1e-7);
    }

    #[test]
    fn no_tokens_are_silence() {
        let found = hear(&[]);
        assert!(found.no_speech && found.text.is_empty());
        assert_eq!(Some("silence"), found.reason);
    }
}
