//! One client: its requests are read here, its streams cut here.

use std::io::{BufRead, Read, Write};
use std::sync::mpsc::TrySendError;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde_json::Value;

use super::request::{self, MOST_BYTES, MOST_LINE, Request};
use super::worker::{Job, Sound};
use super::{Shared, timed_out};
use crate::error::{Error, Kind, Result};
use crate::listen::Wanted;
use crate::resample::Resampler;
use crate::sound::RATES_HZ;
use crate::split::Splitter;

/// Where answers go; the worker and the connection write whole lines.
pub(super) type Output = Arc<Mutex<Box<dyn Write + Send>>>;

/// Write one line. Who has gone, or takes no answer in time, gets none.
pub(super) fn send(output: &Output, line: &str) {
    let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = output
        .write_all(line.as_bytes())
        .and_then(|()| output.flush());
}

/// A client.
pub(super) struct Connection<R> {
    shared: Arc<Shared>,
    input: R,
    output: Output,
    stream: Option<Stream>,
}

/// Sound that is being spoken.
struct Stream {
    id: Value,
    wanted: Wanted,
    rate_hz: u32,
    resampler: Resampler,
    splitter: Splitter<'static>,
    taken: usize,
}

impl<R: BufRead> Connection<R> {
    pub(super) fn new(shared: Arc<Shared>, input: R, output: Output) -> Self {
        Self {
            shared,
            input,
            output,
            stream: None,
        }
    }

    /// Read requests until the client goes.
    pub(super) fn run(mut self) {
        let mut line = Vec::new();
        while self.line(&mut line) {
            if line.trim_ascii().is_empty() {
                continue;
            }
            let (id, done) = match Request::parse(&line) {
                Ok(request) => (Some(request.id.clone()), self.answer(&request)),
                Err(error) => (None, Ok(Some(error))),
            };
            match done {
                Ok(None) => {}
                Ok(Some(refusal)) => send(&self.output, &request::failed(id.as_ref(), &refusal)),
                Err(broken) => {
                    // What follows cannot be told from samples any more.
                    send(&self.output, &request::failed(id.as_ref(), &broken));
                    return;
                }
            }
        }
    }

    /// The next line; false behind the last. A client may be silent between requests.
    fn line(&mut self, line: &mut Vec<u8>) -> bool {
        line.clear();
        loop {
            let most = (MOST_LINE - line.len()) as u64;
            match (&mut self.input).take(most).read_until(b'\n', line) {
                Ok(0) => return !line.is_empty(),
                Ok(_) if line.ends_with(b"\n") => return true,
                Ok(_) if line.len() < MOST_LINE => return true, // the end, without a line break
                Ok(_) => {
                    // Too long: what is left of it is passed over, the beginning is refused.
                    return self.input.skip_until(b'\n').is_ok();
                }
                Err(error) if timed_out(&error) && line.is_empty() => {}
                Err(_) => return false,
            }
        }
    }

    /// Do what is asked; the inner error is an answer, the outer one ends the connection.
    fn answer(&mut self, request: &Request) -> Result<Option<Error>> {
        if request.ping {
            send(&self.output, &request::pong(&request.id));
            return Ok(None);
        }
        if let Some(path) = &request.file {
            self.queue(request, Sound::File(path.clone()));
            return Ok(None);
        }
        let bytes = request.bytes.unwrap_or(0);
        if bytes > MOST_BYTES || bytes % 2 == 1 {
            self.skip(bytes)?;
            return Ok(Some(Error::new(
                Kind::Usage,
                format!(
                    "request: bytes: expected an even number up to {MOST_BYTES}, found {bytes}"
                ),
            )));
        }
        let samples = self.samples(bytes)?;
        let rate_hz = request.rate_hz.unwrap_or(self.shared.rate_hz);
        if !RATES_HZ.contains(&rate_hz) {
            return Ok(Some(Error::new(
                Kind::Usage,
                format!("request: rate_hz: expected 4000 to 384000, found {rate_hz}"),
            )));
        }
        if request.stream {
            return Ok(self.block(request, &samples, rate_hz).err());
        }
        self.queue(request, Sound::Whole(samples, rate_hz));
        Ok(None)
    }

    /// Read the samples behind a line.
    fn samples(&mut self, bytes: u64) -> Result<Vec<i16>> {
        let mut data = vec![0; bytes as usize];
        self.input.read_exact(&mut data).map_err(|error| {
            let why = if timed_out(&error) {
                "nothing came in time"
            } else {
                "the input ended"
            };
            Error::new(
                Kind::Audio,
                format!("request: expected {bytes} bytes, but {why}"),
            )
        })?;
        let sample = |b: &[u8]| i16::from_le_bytes([b[0], b[1]]);
        Ok(data.chunks_exact(2).map(sample).collect())
    }

    fn skip(&mut self, bytes: u64) -> Result<()> {
        let copied = std::io::copy(&mut (&mut self.input).take(bytes), &mut std::io::sink());
        match copied {
            Ok(found) if found == bytes => Ok(()),
            _ => Err(Error::new(
                Kind::Audio,
                format!("request: expected {bytes} bytes, but the input ended"),
            )),
        }
    }

    /// Hand a request to the worker, or say that there is no place.
    fn queue(&self, request: &Request, sound: Sound) {
        let job = self.job(&request.id, sound, request.wanted());
        if let Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) =
            self.shared.jobs.try_send(job)
        {
            send(&self.output, &request::busy(Some(&job.id)));
        }
    }

    fn job(&self, id: &Value, sound: Sound, wanted: Wanted) -> Job {
        Job {
            id: id.clone(),
            sound,
            wanted,
            since: Instant::now(),
            output: Arc::clone(&self.output),
        }
    }

    /// The next samples of a stream: what has been said to its end goes to the worker.
    ///
    /// Here a full queue makes the client wait: its sound is not lost.
    fn block(&mut self, request: &Request, samples: &[i16], rate_hz: u32) -> Result<()> {
        let mut stream = match self.stream.take() {
            Some(stream) if stream.id == request.id && stream.rate_hz == rate_hz => stream,
            Some(other) => {
                let message = format!(
                    "request: expected samples of stream {} at {} Hz, or its last",
                    other.id, other.rate_hz
                );
                self.stream = Some(other);
                return Err(Error::new(Kind::Usage, message));
            }
            None => self.open(request, rate_hz)?,
        };
        stream.taken += samples.len();
        let sound = samples.iter().map(|s| f32::from(*s) / 32768.0).collect();
        let sound = stream.resampler.feed(sound, request.last);
        for piece in stream.splitter.feed(&sound, request.last)? {
            let start_s = piece.start as f64 / f64::from(self.shared.rate_hz);
            let sound = Sound::Piece(piece.samples, start_s);
            let _ = self
                .shared
                .jobs
                .send(self.job(&stream.id, sound, stream.wanted.clone()));
        }
        if request.last {
            let sound = Sound::End(stream.taken as f64 / f64::from(rate_hz));
            let _ = self
                .shared
                .jobs
                .send(self.job(&stream.id, sound, Wanted::default()));
        } else {
            self.stream = Some(stream);
        }
        Ok(())
    }

    fn open(&self, request: &Request, rate_hz: u32) -> Result<Stream> {
        let shared = &self.shared;
        Ok(Stream {
            id: request.id.clone(),
            wanted: request.wanted(),
            rate_hz,
            resampler: Resampler::new(rate_hz, shared.rate_hz),
            splitter: Splitter::new(shared.detector(), shared.rate_hz, shared.piece_s)?,
            taken: 0,
        })
    }
}
