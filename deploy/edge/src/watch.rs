//! The stages of a call, seen from outside: their times, and what each returned where `ASR_DUMP`
//! names a folder.

use std::time::Instant;

use crate::dump::{Array, Dump};

/// The contract's stages in order; a dump file's number is the stage's place, counted from 1.
pub const STAGES: [&str; 10] = [
    "read", "resample", "vad", "fbank", "lfr", "cmvn", "bind", "infer", "decode", "text",
];

/// A stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "docs/architecture.md, the contract")]
pub enum Stage {
    Read,
    Resample,
    Vad,
    Fbank,
    Lfr,
    Cmvn,
    Bind,
    Infer,
    Decode,
    Text,
}

/// Two clock reads around each stage; a stage of long sound is the sum over its blocks or pieces.
#[derive(Debug, Default)]
pub struct Watch {
    /// Nanoseconds by stage.
    pub ns: [u64; STAGES.len()],
    dump: Option<Dump>,
}

impl Watch {
    /// With a dump, if one is wanted.
    #[must_use]
    pub fn new(dump: Option<Dump>) -> Self {
        Self {
            dump,
            ..Self::default()
        }
    }

    /// Do one stage.
    pub fn step<T>(&mut self, stage: Stage, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let value = work();
        self.ns[stage as usize] += start.elapsed().as_nanos() as u64;
        value
    }

    /// Show what a stage returned; `arrays` is asked only if somebody looks.
    pub fn show(&mut self, stage: Stage, arrays: impl FnOnce() -> Vec<(&'static str, Array)>) {
        if let Some(dump) = &mut self.dump {
            dump.write(stage as usize + 1, STAGES[stage as usize], &arrays());
        }
    }

    /// Why a dump could not be written, if one could not.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        self.dump.as_ref()?.trouble()
    }
}
