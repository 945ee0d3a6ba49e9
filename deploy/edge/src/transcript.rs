//! What was said: the members of `docs/transcript.schema.json`, in its order.

use serde::Serialize;

/// A piece of text and where it was said.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs, reason = "docs/json.md says what each member means")]
pub struct Token {
    pub text: String,
    pub start_s: f64,
    pub end_s: f64,
    pub confidence: f64,
    pub entropy: f64,
}

/// A word, or one character where the script writes no spaces.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs, reason = "as above")]
pub struct Word {
    pub text: String,
    pub start_s: f64,
    pub end_s: f64,
    pub confidence: f64,
    pub entropy: f64,
    pub tokens: Vec<Token>,
}

/// A stretch of speech that the network heard in one call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs, reason = "as above")]
pub struct Segment {
    pub text: String,
    pub start_s: f64,
    pub end_s: f64,
    pub confidence: Option<f64>,
    pub entropy: Option<f64>,
    pub words: Vec<Word>,
    pub rejected: bool,
}

/// What was said in one source.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
#[allow(missing_docs, reason = "as above")]
pub struct Transcript {
    pub text: String,
    pub language: Option<String>,
    pub emotion: Option<String>,
    pub event: Option<String>,
    pub itn: Option<bool>,
    pub segments: Vec<Segment>,
    pub confidence: Option<f64>,
    pub entropy: Option<f64>,
    pub no_speech: bool,
    pub no_speech_score: Option<f64>,
    pub rejected: bool,
    pub reason: Option<&'static str>,
    pub audio_s: f64,
    pub wall_s: f64,
    pub warnings: Vec<String>,
    pub channel: Option<u32>,
}

impl Transcript {
    /// The whole from its parts; without segments `reason` says why.
    #[must_use]
    pub fn of(segments: Vec<Segment>, reason: Option<&'static str>, audio_s: f64) -> Self {
        let tokens = || {
            let words = segments.iter().flat_map(|s| &s.words);
            words.flat_map(|w| &w.tokens)
        };
        let (confidence, entropy) = summary(tokens()).unzip();
        Self {
            text: join(segments.iter().map(|s| s.text.as_str())),
            confidence,
            entropy,
            no_speech: segments.is_empty(),
            reason,
            audio_s,
            segments,
            ..Self::default()
        }
    }

    /// Nothing was heard.
    #[must_use]
    pub fn silent(score: Option<f64>, audio_s: f64, reason: &'static str) -> Self {
        Self {
            no_speech_score: score,
            ..Self::of(Vec::new(), Some(reason), audio_s)
        }
    }

    /// The same without its text; the segments stay.
    #[must_use]
    pub fn withheld(mut self) -> Self {
        for segment in &mut self.segments {
            segment.rejected = true;
        }
        self.text.clear();
        self.rejected = true;
        self.reason = Some("low_confidence");
        self
    }

    /// The texts of the segments, withheld ones too.
    #[must_use]
    pub fn spoken(&self) -> String {
        join(self.segments.iter().map(|s| s.text.as_str()))
    }

    /// The transcripts of one source's pieces, in order.
    #[must_use]
    pub fn merge(parts: Vec<Self>, audio_s: f64) -> Self {
        let Some(first) = parts
            .iter()
            .find(|p| !p.segments.is_empty())
            .or(parts.first())
        else {
            return Self::silent(Some(1.0), audio_s, "silence");
        };
        let silent = first.segments.is_empty();
        let scores: Vec<f64> = parts.iter().filter_map(|p| p.no_speech_score).collect();
        let withheld = parts.iter().any(|p| p.rejected);
        let mut whole = Self {
            language: first.language.clone(),
            emotion: first.emotion.clone(),
            event: first.event.clone(),
            itn: first.itn,
            no_speech_score: (silent && !scores.is_empty())
                .then(|| scores.iter().sum::<f64>() / scores.len() as f64),
            ..Self::of(
                parts.iter().flat_map(|p| p.segments.clone()).collect(),
                silent.then_some("silence"),
                audio_s,
            )
        };
        for warning in parts.iter().flat_map(|p| &p.warnings) {
            if !whole.warnings.contains(warning) {
                whole.warnings.push(warning.clone());
            }
        }
        let text = join(parts.iter().map(|p| p.text.as_str()));
        if withheld && text.is_empty() {
            return whole.withheld();
        }
        if withheld {
            whole.warnings.push("partly_withheld".into());
        }
        whole.text = text;
        whole
    }
}

/// Confidence = exp(mean log-probability), entropy = mean; none of no token.
pub(crate) fn summary<'a>(tokens: impl Iterator<Item = &'a Token>) -> Option<(f64, f64)> {
    let (mut count, mut log_prob, mut entropy) = (0_u32, 0.0, 0.0);
    for token in tokens {
        count += 1;
        log_prob += token.confidence.ln();
        entropy += token.entropy;
    }
    let count = f64::from(count);
    (count > 0.0).then(|| ((log_prob / count).exp(), entropy / count))
}

/// Join texts with a space, unless both neighbours are of a script written without spaces.
#[must_use]
pub fn join<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut joined = String::new();
    for text in texts {
        let glue = match (joined.chars().next_back(), text.chars().next()) {
            (_, None) | (None, _) => true,
            (Some(before), Some(after)) => is_unspaced(before) && is_unspaced(after),
        };
        if !glue {
            joined.push(' ');
        }
        joined.push_str(text);
    }
    joined
}

/// Whether a character belongs to a script written without spaces: CJK, kana; not Hangul.
#[must_use]
pub fn is_unspaced(character: char) -> bool {
    matches!(
        u32::from(character),
        0x2E80..=0x303F
            | 0x3040..=0x30FF
            | 0x31F0..=0x31FF
            | 0x3400..=0x4DBF
            | 0x4E00..=0x9FFF
            | 0xF900..=0xFAFF
            | 0xFF00..=0xFFEF
            | 0x20000..=0x3FFFF
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(text: &str) -> Transcript {
        let segment = Segment {
            text: text.into(),
            start_s: 0.0,
            end_s: 1.0,
            confidence: None,
            entropy: None,
            words: Vec::new(),
            rejected: false,
        };
        Transcript::of(vec![segment], None, 1.0)
    }

    #[test]
    fn pieces_without_words_are_silence_and_withheld_ones_are_unsure() {
        let silent = || Transcript::silent(Some(0.5), 1.0, "silence");
        let whole = |parts| Transcript::merge(parts, 2.0);
        let found = whole(vec![silent(), silent()]);
        assert_eq!((Some("silence"), false), (found.reason, found.rejected));
        assert_eq!(Some(0.5), found.no_speech_score);
        let found = whole(vec![silent(), piece("one").withheld()]);
        assert_eq!(
            (Some("low_confidence"), true),
            (found.reason, found.rejected)
        );
        let found = whole(vec![piece("one").withheld(), piece("two")]);
        assert_eq!(("two", None), (found.text.as_str(), found.reason));
        assert_eq!(["partly_withheld"], found.warnings[..]);
        assert_eq!("one two", found.spoken());
    }

    #[test]
    fn scripts_without_spaces_are_joined_without() {
        assert_eq!("one two", join(["one", "", "two"].into_iter()));
        assert_eq!(
            "\u{4e00}\u{4e8c} a",
            join(["\u{4e00}", "\u{4e8c}", "a"].into_iter())
        );
    }
}
