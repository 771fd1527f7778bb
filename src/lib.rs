//! atom-launch starts AMD's ATOM inference server: typed configuration in, one exact command out, no shell anywhere.
//!
//! Data flows one way:
//!
//! ```text
//! argv, environ, models_atom.yaml, host ─input─▶ typed config ─resolve─▶ plan ─┬─ render ─▶ dry run, explain, plan, diff
//!                                                                (pure)        └─ run ────▶ exec, or a supervised rank
//! ```
//!
//! | module | what it has |
//! |---|---|
//! | [`domain`] | plain types and the rules that all need: settings, origins, findings, secrets, quoting |
//! | [`exit`] | the exit codes |
//! | [`atom`] | what is known of ATOM's own options and variables, and its argument parser |
//! | [`cli`] | the command line as types |
//! | [`plan`] | what every worker and the router run; `plan::node`: what one rank has to do |
//! | [`explain`] | where each argument of a command comes from |
//! | [`input`] | the only one that reads what decides: arguments, variables, files, the host |
//! | [`resolve`] | typed inputs → plan, all of it pure |
//! | [`diff`] | two models files → what changes in the commands |
//! | [`check`] | what is wrong with a models file, a command or a job, before anything starts |
//! | [`render`] | all of these as text, JSON, a job script |
//! | [`run`] | becomes the server, or lives a rank's life: a pure state machine and what surrounds it |
//! | [`report`] | the records of a job as a table or a page |
//! | [`rehearse`] | a whole job on one machine, with stand-ins for server and router |
//! | [`app`] | one function a subcommand, which strings the others together |
//!
//! A module names only those above it in this table, and not all of them: `tests/architecture.rs` has the list and holds the tree to it. It
//! also keeps files and clocks out of what computes, questions to the surroundings inside `input`, and files short enough to read.

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
