//! Orders in which a chase visits the lines of a buffer. Pure arithmetic: the engine writes them into memory.
