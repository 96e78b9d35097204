//! The catalogue of faults that `wirecost check` must name: each a file of a network, a fault in it, and what a check
//! has to say of it and nothing besides. Reads the files, builds their networks, compares answers.
//!
//! No part of the program: the whole-program tests and the bench use it. The list grows by adding a file to
//! `catalogue/`; its README says what stands in one.

mod answer;
mod build;
mod fault;
mod lab;
mod read;
mod rules;

pub use answer::{Answer, Finding, Path};
pub use fault::{
    Bridge, EqualPaths, Expect, ExpectedFinding, ExpectedPath, Fault, Namespace, NamespaceCommand,
    Vxlan, Wire,
};
pub use lab::{Lab, LabError};
pub use read::{FaultError, catalogue, directory, read};
