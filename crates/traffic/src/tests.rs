//! Whole loads, both ends in this process. Every wait is bounded, none is measured.

mod migration;
mod path;
mod peers;
mod ports;
mod post_copy;
mod rings;
mod storage;
mod streams;
mod virtual_machines;
mod workloads;
