//! The traffic engine
