//! atom-launch starts AMD's ATOM inference server: typed configuration in, one exact command out, no shell anywhere.
//!
//! Data flows one way:
//!
//! ```text
//! argv, environ, models_atom.yaml, host ─input─▶ typed config ─resolve─▶ plan ─┬─ render ─▶ dry run, explain, plan, diff
//!                                                                (pure)        └─ run ────▶ exec, or a supervised rank
//! ```

pub mod app;
pub mod atom;
pub mod check;
pub mod cli;
pub mod diff;
pub mod domain;
pub mod exit;
pub mod explain;
pub mod input;
pub mod plan;
pub mod rehearse;
pub mod render;
pub mod report;
pub mod resolve;
pub mod run;
