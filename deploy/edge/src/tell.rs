//! What is printed: text, JSON, timings.

use std::fmt::Write;
use std::path::Path;

use serde::Serialize;

use asr_edge::board::Board;
use asr_edge::error::Result;
use asr_edge::json;
use asr_edge::listen::Listener;
use asr_edge::transcript::Transcript;
use asr_edge::watch::STAGES;

/// Nanoseconds by stage, and of the whole call.
pub(crate) type Call = ([u64; STAGES.len()], u64);

/// Where the time went, milliseconds.
#[derive(Debug, Serialize)]
pub(crate) struct Timings {
    unit: &'static str,
    audio_s: f64,
    threads: usize,
    backend: &'static str,
    /// Only for the first file: a process is cold only once.
    load: Option<Load>,
    /// Every call, in order; `total` is reading to text.
    calls: Vec<Rows>,
    rtf: Rtf,
    peak_rss_bytes: u64,
    board: Board,
}

#[derive(Debug, Serialize)]
struct Load {
    runtime: f64,
    bundle: f64,
    session_create: f64,
}

/// Seconds per second of sound.
#[derive(Debug, Serialize)]
struct Rtf {
    first: f64,
    /// Median of the calls after the first; none with one call.
    warm: Option<f64>,
    /// The network alone, median of the same calls.
    infer: Option<f64>,
}

impl Timings {
    pub(crate) fn new(listener: &Listener, calls: &[Call], audio_s: f64, first: bool) -> Self {
        let loaded = listener.loaded;
        let after = &calls[1.min(calls.len())..];
        let rtf = |ns: u64| ns as f64 / 1e9 / audio_s.max(1e-9);
        let middle = |of: &dyn Fn(&Call) -> u64| {
            let mut all: Vec<u64> = after.iter().map(of).collect();
            all.sort_unstable();
            all.get(all.len() / 2).map(|ns| rtf(*ns))
        };
        let infer = STAGES
            .iter()
            .position(|stage| *stage == "infer")
            .unwrap_or(0);
        Self {
            unit: "ms",
            audio_s,
            threads: listener.threads,
            backend: listener.backend(),
            load: first.then(|| Load {
                runtime: ms(loaded.runtime_ns),
                bundle: ms(loaded.bundle_ns),
                session_create: ms(loaded.session_create_ns),
            }),
            calls: calls.iter().map(rows).collect(),
            rtf: Rtf {
                first: rtf(calls.first().map_or(0, |call| call.1)),
                warm: middle(&|call| call.1),
                infer: middle(&|call| call.0[infer]),
            },
            peak_rss_bytes: peak_rss_bytes(),
            board: Board::now(Path::new("/")),
        }
    }
}

/// Milliseconds by name, in order.
#[derive(Debug)]
struct Rows(Vec<(&'static str, f64)>);

impl Serialize for Rows {
    fn serialize<S: serde::Serializer>(
        &self,
        serializer: S,
    ) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

/// One call by stage; stages that did not happen are left out, `unaccounted` closes the sum.
fn rows((stages, total): &Call) -> Rows {
    let named = STAGES.iter().zip(stages).filter(|(_, ns)| **ns > 0);
    let mut rows: Vec<_> = named.map(|(stage, ns)| (*stage, ms(*ns))).collect();
    rows.push(("unaccounted", ms(total.saturating_sub(stages.iter().sum()))));
    rows.push(("total", ms(*total)));
    Rows(rows)
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// The most memory that this process has held.
fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// A transcript as a line of text, or of JSON; timings behind it.
pub(crate) fn answer(
    transcript: &Transcript,
    source: &str,
    json: bool,
    timings: Option<&Timings>,
) -> Result<String> {
    if json {
        return json::line(transcript, source, None, timings);
    }
    let mut text = transcript.text.clone() + "\n";
    if let Some(timings) = timings {
        table(&mut text, timings);
    }
    Ok(text)
}

fn table(text: &mut String, timings: &Timings) {
    // Writing to a string does not fail.
    if let Some(load) = &timings.load {
        let _ = writeln!(
            text,
            "load            {:10.3} ms  runtime {:.3}, bundle {:.3}, session {:.3}",
            load.runtime + load.bundle + load.session_create,
            load.runtime,
            load.bundle,
            load.session_create
        );
    }
    if let Some(last) = timings.calls.last() {
        for (stage, value) in &last.0 {
            let _ = writeln!(text, "{stage:<15} {:10.3} ms", value);
        }
    }
    let _ = writeln!(
        text,
        "rtf             {:10.4}     first {:.4}; {} threads, {}, peak {:.1} MB",
        timings.rtf.warm.unwrap_or(timings.rtf.first),
        timings.rtf.first,
        timings.threads,
        timings.backend,
        timings.peak_rss_bytes as f64 / 1e6
    );
}
