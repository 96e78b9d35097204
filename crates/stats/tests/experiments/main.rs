//! What is concluded from the samples of whole experiments.

mod comparable;
mod effects;
mod factorial;
mod findings;
mod small;
