//! The inner loops, once per instruction set.
//!
//! The algorithms (`butterfly`, `fft`, `log_mel`, `row`) are written once; a file per instruction set supplies
//! vectors and the function that enables the feature. A backend is a value that only its own CPU
//! check can make: holding one is the proof that its code may run. Outside this folder only `ort`
//! holds `unsafe`. `attention` with `bf16` and `byte_product` with `vnni` are for
//! the operators that `ort` offers.
#![allow(
    unsafe_code,
    reason = "the fence: no instruction outside this folder needs it"
)]

use crate::error::Error;

#[cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, reason = "no other CPU has a backend for it")
)]
mod attention;
mod butterfly;
#[cfg_attr(
    not(target_arch = "x86_64"),
    allow(
        dead_code,
        unused_variables,
        reason = "no other CPU has a backend for it"
    )
)]
mod byte_product;
mod fft;
mod lanes;
mod log_mel;
mod row;
mod scalar;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod bf16;
#[cfg(target_arch = "x86_64")]
mod cpuid;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "x86_64")]
mod vnni;

pub use attention::{Attention, Columns, ColumnsMut};
pub use byte_product::{ByteMatrix, ByteProduct, ByteRows};
#[cfg(target_arch = "x86_64")]
pub(crate) use cpuid::cpuid;
pub use log_mel::LogMelPlan;

/// Statistics of one row of scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowStats {
    /// Column of the largest score, the lowest one on ties.
    pub argmax: usize,
    /// Natural logarithm of the probability of `argmax`, at most 0.
    pub log_prob: f32,
    /// Entropy of the row in nats, at least 0.
    pub entropy: f32,
}

impl RowStats {
    /// From `sum` of `exp(x - max)` and `weighted` sum of `(x - max) exp(x - max)`.
    ///
    /// ```text
    /// log_prob = -ln sum        entropy = ln sum - weighted / sum
    /// ```
    fn new(argmax: usize, sum: f64, weighted: f64) -> Self {
        let log_sum = sum.ln();
        Self {
            argmax,
            log_prob: (0.0 - log_sum) as f32,
            entropy: (log_sum - weighted / sum) as f32,
        }
    }
}

/// What every backend can do; the methods are safe because the value is the proof.
trait Available {
    fn log_mel(self, plan: &LogMelPlan, samples: &[f32], out: &mut [f32]) -> Result<(), usize>;
    fn row_stats(self, row: &[f32]) -> Option<RowStats>;
}

/// A set of inner loops that this CPU can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backend(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Avx512),
    #[cfg(target_arch = "aarch64")]
    Neon(neon::Neon),
}

impl Backend {
    /// Plain Rust, the definition of right.
    pub const SCALAR: Self = Self(Kind::Scalar);

    /// Every backend this CPU can run, best first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let kinds = [
            #[cfg(target_arch = "x86_64")]
            avx512::Avx512::new().map(Kind::Avx512),
            #[cfg(target_arch = "x86_64")]
            avx2::Avx2::new().map(Kind::Avx2),
            #[cfg(target_arch = "aarch64")]
            neon::Neon::new().map(Kind::Neon),
            Some(Kind::Scalar),
        ];
        kinds.into_iter().flatten().map(Self).collect()
    }

    /// The best backend this CPU can run.
    #[must_use]
    pub fn best() -> Self {
        Self::available()[0]
    }

    /// Find a backend by name.
    ///
    /// # Errors
    /// [`Error::Backend`] if this CPU cannot run it, or nobody can.
    pub fn by_name(name: &str) -> Result<Self, Error> {
        let available = Self::available();
        available
            .iter()
            .copied()
            .find(|backend| backend.name() == name)
            .ok_or_else(|| Error::Backend {
                name: name.into(),
                available: available.iter().map(|backend| backend.name()).collect(),
            })
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512(_) => "avx512",
            #[cfg(target_arch = "aarch64")]
            Kind::Neon(_) => "neon",
        }
    }

    /// Log mel energies of all frames: fill `out`, (frames, bins).
    ///
    /// # Errors
    /// The first frame that holds a sample that is not finite.
    ///
    /// # Panics
    /// If `samples` is too short for the frames that `out` has room for.
    pub fn log_mel(self, plan: &LogMelPlan, samples: &[f32], out: &mut [f32]) -> Result<(), usize> {
        match self.0 {
            Kind::Scalar => scalar::log_mel(plan, samples, out),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2(backend) => backend.log_mel(plan, samples, out),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512(backend) => backend.log_mel(plan, samples, out),
            #[cfg(target_arch = "aarch64")]
            Kind::Neon(backend) => backend.log_mel(plan, samples, out),
        }
    }

    /// Statistics of one row, or `None` if it is empty or a score is not finite.
    ///
    /// ```text
    /// m = max x        S = sum exp(x - m)        W = sum (x - m) exp(x - m)
    /// log_prob = -ln S                           entropy = ln S - W / S
    /// ```
    #[must_use]
    pub fn row_stats(self, row: &[f32]) -> Option<RowStats> {
        match self.0 {
            Kind::Scalar => scalar::row_stats(row),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2(backend) => backend.row_stats(row),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512(backend) => backend.row_stats(row),
            #[cfg(target_arch = "aarch64")]
            Kind::Neon(backend) => backend.row_stats(row),
        }
    }
}
