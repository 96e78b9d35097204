//! Faults of a hop beside its MTU: what is lost by port or by chance, and what is late.

use wirecost_model::transit::Hop;

use crate::error::BuildError;
use crate::underlay::node::Node;

/// Plants a hop's faults.
pub(super) fn plant(_node: &mut Node, _hop: &Hop) -> Result<(), BuildError> {
    Ok(())
}
