//! The workloads, a table of functions for each.

use crate::ops::WorkloadOps;
use crate::options::{Load, Workload};

mod migration;
mod storage;
mod storage_path;
mod tcp_bidirectional;
mod tcp_crr;
mod tcp_rr;
mod tcp_stream;
mod udp_rr;
mod udp_stream;

/// The functions of a load's workload.
pub(crate) fn ops(load: &Load) -> &'static WorkloadOps {
    match load.workload {
        Workload::Storage if load.path.is_some() => &storage_path::OPS,
        Workload::TcpStream => &tcp_stream::OPS,
        Workload::TcpBidirectional => &tcp_bidirectional::OPS,
        Workload::TcpRr => &tcp_rr::OPS,
        Workload::TcpCrr => &tcp_crr::OPS,
        Workload::UdpStream => &udp_stream::OPS,
        Workload::UdpRr => &udp_rr::OPS,
        Workload::Storage => &storage::OPS,
        Workload::Migration => &migration::OPS,
    }
}
