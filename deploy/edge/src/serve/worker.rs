//! The thread that holds the network: one job after another.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::connection::{Output, send};
use super::request;
use crate::error::{Error, Kind, Result};
use crate::json;
use crate::listen::{Listener, Wanted};
use crate::sound::Reader;

/// What is to be heard.
pub(super) enum Sound {
    /// A file of this machine.
    File(String),
    /// Samples of 16 bits, and their rate.
    Whole(Vec<i16>, u32),
    /// A piece of a stream, at the recipe's rate, and where it begins, seconds.
    Piece(Vec<f32>, f64),
    /// The stream has ended after so many seconds.
    End(f64),
}

/// A request that waits.
pub(super) struct Job {
    pub(super) id: Value,
    pub(super) sound: Sound,
    pub(super) wanted: Wanted,
    pub(super) since: Instant,
    pub(super) output: Output,
}

/// Answer jobs until nobody can send any more.
pub(super) fn run(mut listener: Listener, jobs: &Receiver<Job>, timeout: Duration) {
    for job in jobs {
        // A panic is our bug; it costs one answer, not the process.
        let told = catch_unwind(AssertUnwindSafe(|| answer(&mut listener, &job, timeout)))
            .unwrap_or_else(|_| Err(Error::new(Kind::Bug, "internal error, please report it")));
        let line = told.unwrap_or_else(|error| request::failed(Some(&job.id), &error));
        send(&job.output, &line);
    }
}

fn answer(listener: &mut Listener, job: &Job, timeout: Duration) -> Result<String> {
    let stale = job.since.elapsed() > timeout;
    if stale && !matches!(job.sound, Sound::Piece(..) | Sound::End(_)) {
        let message = format!("request: waited longer than {} s", timeout.as_secs());
        return Err(Error::new(Kind::System, message));
    }
    let (transcript, source) = match &job.sound {
        Sound::End(audio_s) => return Ok(request::ended(&job.id, *audio_s)),
        Sound::Piece(samples, start_s) => (
            listener.hear_piece(samples, *start_s, &job.wanted)?,
            "stream".to_string(),
        ),
        Sound::Whole(samples, rate_hz) => {
            let mut reader = Reader::of_samples(samples, *rate_hz, "samples")?;
            (
                listener.transcribe(&mut reader, &job.wanted)?.0,
                "samples".into(),
            )
        }
        Sound::File(path) => {
            let mut reader = Reader::open(path, None)?;
            (
                listener.transcribe(&mut reader, &job.wanted)?.0,
                path.clone(),
            )
        }
    };
    json::line::<()>(&transcript, &source, Some(&job.id), None)
}
