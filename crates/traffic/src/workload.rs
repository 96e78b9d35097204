//! The workloads, a table of functions for each.

use crate::ops::WorkloadOps;
use crate::options::Workload;

mod migration;
mod storage;
mod tcp_bidirectional;
mod tcp_crr;
mod tcp_rr;
mod tcp_stream;
mod udp_rr;
mod udp_stream;

/// The table of a workload.
pub(crate) fn ops(workload: Workload) -> &'static WorkloadOps {
    match workload {
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
