//! A transcript as a line of JSON: `docs/transcript.schema.json`.

use serde::Serialize;
use serde_json::Value;

use crate::error::{Error, Kind, Result};
use crate::transcript::Transcript;

#[derive(Serialize)]
struct Line<'a, T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Value>,
    schema: &'static str,
    source: &'a str,
    #[serde(flatten)]
    transcript: &'a Transcript,
    #[serde(skip_serializing_if = "Option::is_none")]
    timings: Option<T>,
}

/// One object and a line break; `id` in front where a request gave one, `timings` behind.
///
/// # Errors
/// [`Kind::Model`] where a number has no place in JSON.
pub fn line<T: Serialize>(
    transcript: &Transcript,
    source: &str,
    id: Option<&Value>,
    timings: Option<T>,
) -> Result<String> {
    let line = Line {
        id,
        schema: "asr-transcript/1",
        source,
        transcript,
        timings,
    };
    let text = serde_json::to_string(&line)
        .map_err(|error| Error::new(Kind::Model, format!("{source}: {error}")))?;
    Ok(text + "\n")
}
