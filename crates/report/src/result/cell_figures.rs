//! Figures that a sample has once, whatever its loads: each is a column of `--csv`, and of a cell its summary.

use serde::Serialize;
use wirecost_model::metric::{
    retransmits, segments_per_packet, stack_packets_per_second, wire_frames_per_second,
};
use wirecost_model::sample::Sample;
use wirecost_stats::{Summary, summary};

/// The figure of a sample; `None` where it does not have it.
pub(crate) type Figure = fn(&Sample) -> Option<f64>;

/// Declares each figure once: what it is, its name in `--csv` and `--json`, and the function of a sample.
macro_rules! cell_figures {
    ($($(#[$meaning:meta])+ $name:ident: $figure:expr,)+) => {
        /// The figures by name.
        pub(crate) const CELL_FIGURES: &[(&str, Figure)] = &[$((stringify!($name), $figure),)+];

        /// Values of a cell's valid samples that have the figure, in the order in which they were taken.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub(crate) struct CellColumns {
            $($name: Vec<f64>,)+
        }

        impl CellColumns {
            pub(crate) fn add(&mut self, sample: &Sample) {
                $(
                    let figure: Figure = $figure;
                    self.$name.extend(figure(sample));
                )+
            }

            pub(crate) fn summaries(&self) -> CellFigures {
                CellFigures { $($name: summary(self.$name.iter().copied()),)+ }
            }
        }

        /// Summaries of a cell's columns; `null` without a value.
        #[derive(Debug, Clone, Copy, PartialEq, Serialize)]
        pub struct CellFigures {
            $($(#[$meaning])+ pub $name: Option<Summary>,)+
        }
    };
}

cell_figures! {
    /// Frames on the wire per second, both directions.
    wire_frames_per_s: wire_frames_per_second,
    /// Packets per second as the receiving guest's TCP handled them.
    stack_packets_per_s: stack_packets_per_second,
    /// Segments on the wire per packet that the receiving guest's TCP handled.
    segments_per_packet: segments_per_packet,
    /// TCP segments retransmitted within a window.
    retransmits: |sample| Some(retransmits(sample)? as f64),
}
