//! Errors of checking requests.

use std::path::PathBuf;

/// A request that no controller of this version sends; nothing of it is executed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// A number or size above its bound.
    #[error("{number} {what}: at most {most}")]
    TooMany {
        /// What is counted, such as "guests".
        what: &'static str,
        /// The number in the request.
        number: usize,
        /// The bound.
        most: usize,
    },
    /// The number of a core is above those that a kernel has.
    #[error("there is no core {0}")]
    NoCore(u32),
    /// A level has a name or value that no plan can have.
    #[error("the level `{label}` of `{factor}`: {fault}")]
    Level {
        /// The level.
        label: String,
        /// Its factor.
        factor: String,
        /// What is wrong.
        fault: String,
    },
    /// The path is not that of a socket that a process of the run has open.
    #[error("`{}` is no socket of OVN's databases", .0.display())]
    NotOvn(PathBuf),
    /// A load has a value or address that none can have.
    #[error("load {name}: {problem}")]
    Load {
        /// Name of the load.
        name: String,
        /// What is wrong.
        problem: String,
    },
}
