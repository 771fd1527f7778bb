//! What is known of ATOM's own command line, as data, and how its parser reads words.
