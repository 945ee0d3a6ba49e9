//! An allocator that counts, for test builds: what the boundary costs is measured, not claimed.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

/// Every allocation of this module goes through here.
#[global_allocator]
pub(crate) static COUNTER: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;
