//! The speech front end and the CTC decoders, without Python.
//!
//! Floors, imports only go down: `error`; `config` `simd`; `cpu` `frame` `mel` `lfr` `cmvn` `ctc` `cut` `energy` `ort`; `fbank` `phrases`; `py`.
//! Only `simd` (instructions) and `ort` (the runtime's C interface) hold `unsafe`, only `py` knows
//! Python.

pub mod cmvn;
pub mod config;
#[cfg(feature = "count-allocations")]
mod counter;
pub mod cpu;
pub mod ctc;
pub mod cut;
pub mod energy;
pub mod error;
pub mod fbank;
pub mod frame;
pub mod lfr;
pub mod mel;
pub mod ort;
pub mod phrases;
#[cfg(feature = "python")]
mod py;
pub mod simd;
