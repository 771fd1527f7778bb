//! Tests of the program as its users meet it: one binary, one module a topic.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at what it did not expect"
)]
#![allow(
    clippy::too_many_lines,
    clippy::similar_names,
    reason = "whole outputs are long, and what is compared has the name of what it is"
)]

#[path = "../common/mod.rs"]
mod common;

mod bad_input;
mod devices;
mod exec;
mod golden;
mod ipv6;
mod preflight;
mod quoting;
mod readme;
mod recorded;
mod resolving;
mod secrets;
mod settings;
mod streams;
mod verbose;
mod views;
