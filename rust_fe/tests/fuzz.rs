//! The fuzz targets over seeded bytes: some executions at every test, any number by `make fuzz`.
//!
//! `RUST_FE_FUZZ_SECONDS` says how long each target runs, `RUST_FE_FUZZ_SEED` where it begins.
#![allow(
    clippy::print_stderr,
    reason = "the counts, and the input that broke a law, are what is wanted"
)]

mod fuzz_targets;

use std::io::Write as _;
use std::time::{Duration, Instant};

use fuzz_targets::TARGETS;

/// Executions of each target in a plain test run.
const EXECUTIONS: u64 = 400;

/// Xorshift: seeded, the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Bytes of which many are small: small numbers reach further than large ones.
    fn bytes(&mut self) -> Vec<u8> {
        let length = self.next() % 600;
        let small = self.next() % 4;
        (0..length)
            .map(|_| match self.next().to_le_bytes() {
                [byte, choice, ..] if u64::from(choice % 4) < small => byte % 8,
                [byte, ..] => byte,
            })
            .collect()
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().expect(name))
}

#[test]
fn no_input_breaks_a_law() {
    let time = number("RUST_FE_FUZZ_SECONDS").map(Duration::from_secs);
    let seed = number("RUST_FE_FUZZ_SEED").unwrap_or(1);
    let mut findings = 0;
    for (name, target) in TARGETS {
        let (start, mut random, mut count) = (Instant::now(), Random(seed * 2 + 1), 0_u64);
        while time.map_or(count < EXECUTIONS, |time| start.elapsed() < time) {
            let data = random.bytes();
            count += 1;
            if std::panic::catch_unwind(|| target(&data)).is_err() {
                findings += 1;
                let _ = writeln!(std::io::stderr(), "finding: {name} {data:?}");
                break;
            }
        }
        // Straight to stderr: the test runner hides what eprintln! writes.
        let _ = writeln!(std::io::stderr(), "fuzz: {name}: {count} executions");
    }
    assert_eq!(0, findings, "the inputs are above");
}
