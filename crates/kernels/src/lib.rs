//! Timed loops and the few instructions that measuring needs, one file per instruction set with the same names in each.
