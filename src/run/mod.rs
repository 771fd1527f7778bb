//! Running: `exec` into the server, or supervise a whole rank. Takes plans, decides nothing about arguments.

pub mod exec;
