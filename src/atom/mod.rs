//! What is known of ATOM's own command line, as data, and how its parser reads words.
//!
//! Nothing here starts a process, opens a file or reads a variable: words and texts go in, findings come out.

pub mod argparse;
pub mod help;
pub mod table;
