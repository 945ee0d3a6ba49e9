//! What a line asks for, and the lines that are no transcript.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{Error, Kind, Result};
use crate::listen::Wanted;

/// Longer lines are refused: no request is.
pub(super) const MOST_LINE: usize = 1 << 16;
/// 16 bits at 16 kHz: 35 minutes. More is for a file, or a stream.
pub(super) const MOST_BYTES: u64 = 1 << 26;

/// One line.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    /// Comes back in every answer.
    #[serde(default)]
    pub(super) id: Value,
    /// A WAV file on this machine.
    pub(super) file: Option<String>,
    /// So many bytes of samples follow the line: 16 bits, little endian, one channel.
    pub(super) bytes: Option<u64>,
    /// Of these samples; the recipe's where nothing is said.
    pub(super) rate_hz: Option<u32>,
    /// The samples go on those before: answers come when somebody has finished speaking.
    #[serde(default)]
    pub(super) stream: bool,
    /// The stream ends with these samples.
    #[serde(default)]
    pub(super) last: bool,
    pub(super) language: Option<String>,
    #[serde(default)]
    pub(super) itn: bool,
    /// Only answer.
    #[serde(default)]
    pub(super) ping: bool,
}

impl Request {
    /// Understand a line.
    ///
    /// # Errors
    /// [`Kind::Usage`] with what is wrong.
    pub(super) fn parse(line: &[u8]) -> Result<Self> {
        let refuse = |what: String| Error::new(Kind::Usage, format!("request: {what}"));
        let found: Self = serde_json::from_slice(line).map_err(|e| refuse(e.to_string()))?;
        let asked = [found.ping, found.file.is_some(), found.bytes.is_some()];
        if asked.iter().filter(|asked| **asked).count() != 1 {
            return Err(refuse("expected one of ping, file, bytes".into()));
        }
        if found.stream && found.bytes.is_none() {
            return Err(refuse("expected bytes with stream, found none".into()));
        }
        Ok(found)
    }

    /// What is asked of the pipeline.
    pub(super) fn wanted(&self) -> Wanted {
        Wanted {
            language: self.language.clone(),
            itn: self.itn,
        }
    }
}

/// The request could not be answered.
pub(super) fn failed(id: Option<&Value>, error: &Error) -> String {
    let told = json!({"code": error.code(), "message": error.to_string()});
    line(&json!({"id": id, "error": told}))
}

/// The queue is full: ask again later.
pub(super) fn busy(id: Option<&Value>) -> String {
    line(&json!({"id": id, "busy": true}))
}

/// All is well.
pub(super) fn pong(id: &Value) -> String {
    line(&json!({"id": id, "ok": true}))
}

/// A stream has ended, and everything in it has been answered.
pub(super) fn ended(id: &Value, audio_s: f64) -> String {
    line(&json!({"id": id, "end": true, "audio_s": audio_s}))
}

fn line(value: &Value) -> String {
    value.to_string() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_asks_for_one_thing() {
        let good = [
            r#"{"ping":true}"#,
            r#"{"id":7,"file":"a"}"#,
            r#"{"bytes":4,"stream":true}"#,
        ];
        for line in good {
            assert!(Request::parse(line.as_bytes()).is_ok(), "{line}");
        }
        let bad = [
            "",
            "[]",
            "{}",
            r#"{"file":"a","bytes":1}"#,
            r#"{"file":"a","stream":true}"#,
            r#"{"bytes":-1}"#,
            r#"{"ping":true,"what":1}"#,
        ];
        for line in bad {
            assert_eq!(
                Kind::Usage,
                Request::parse(line.as_bytes()).unwrap_err().kind,
                "{line}"
            );
        }
    }
}
