//! Whole ranks as real processes with fakes around them, on loopback.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "what goes wrong here fails a test"
)]

mod faults;
mod harness;
mod life;
mod output;
mod signals;
