//! Plain types of the domain: no file, no environment variable, no process.

pub mod codes;
pub mod command;
pub mod diagnostic;
pub mod environment;
pub mod models;
pub mod provenance;
pub mod secret;
pub mod settings;
pub mod source;
pub mod topology;
pub mod visible;
