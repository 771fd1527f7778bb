//! Plain types of the domain: no file, no environment variable, no process.
//!
//! Role, mode and layout derive clap's `ValueEnum`: it only lists the variants with their names, and a second enum for the command line
//! would be a second list to keep. Nothing else here knows of clap.

pub mod codes;
pub mod command;
pub mod date;
pub mod delay;
pub mod diagnostic;
pub mod environment;
pub mod json;
pub mod models;
pub mod provenance;
pub mod secret;
pub mod settings;
pub mod slurm;
pub mod source;
pub mod topology;
pub mod visible;
pub mod words;
