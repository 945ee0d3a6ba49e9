//! Speech to text on a board, from a bundle (docs/bundle.md), without Python.
//!
//! `listen` is the pipeline, one line per stage. Front end, decoding and cutting are the crate
//! `rust_fe`'s; ONNX Runtime is loaded from a file.

pub mod board;
pub mod bundle;
pub mod capi;
pub mod dump;
pub mod engine;
pub mod error;
pub mod json;
mod listed;
pub mod listen;
pub mod prepare;
pub mod resample;
pub mod serve;
mod show;
pub mod sound;
pub mod split;
pub mod text;
pub mod threads;
pub mod tokens;
pub mod transcript;
pub mod watch;
pub mod wav;
