//! A whole job on one machine: stand-ins for server and router, and faults on purpose.

pub mod faults;
pub mod http;
