//! A rank's whole life: preflight, servers, router, workload, teardown, record.
//!
//! ```text
//! signals, health, logs, smoke ─▶ one channel ─▶ driver ─ event ─▶ supervisor (pure)
//!                                                driver ◀─ actions ─┘
//! ```
//!
//! [`supervisor`] decides and does nothing; [`driver`] does and decides nothing. Everything else is one piece of the world.

pub mod clock;
pub mod collect;
pub mod console;
pub mod driver;
pub mod engine_watch;
pub mod event;
pub mod exec;
pub mod health;
pub mod launch;
pub mod lines;
pub mod logs;
pub mod manifest;
pub mod ports;
pub mod preflight;
pub mod process;
pub mod procfs;
pub mod records;
pub mod signals;
pub mod smoke;
pub mod supervisor;
pub mod talk;
pub mod wait;

pub use driver::run;
pub use preflight::preflight;
