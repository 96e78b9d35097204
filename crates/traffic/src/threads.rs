//! How many threads each end of a load has where its options do not say it (docs/loads.md).

use crate::ops::ThreadPolicy;
use crate::options::{Options, WaitMode};
use crate::workload;

/// Up to this number of tasks (directions of TCP streams), each has a thread of its own.
const FEW_STREAMS: u32 = 32;
/// Request/response flows of each thread. Fewer flows have two threads all the same.
const FLOWS_EACH: u32 = 8;

/// Threads at each end, given the processors that the calling thread may use.
pub(crate) fn threads(options: &Options) -> u32 {
    let cpus = wirecost_sys::process::allowed_cpus().map_or(1, |cpus| cpus.len().max(1) as u32);
    threads_on(options, cpus)
}

fn threads_on(options: &Options, cpus: u32) -> u32 {
    let ops = workload::ops(&options.load);
    let tasks_per_flow = options.load.connections() * ops.tasks_per_flow;
    let usual = match ops.threads {
        ThreadPolicy::TasksUpToProcessors => {
            // Threads that spin have a processor each, or preempt each other.
            let few = match options.load.waiting {
                WaitMode::Sleep => FEW_STREAMS.max(cpus),
                WaitMode::Spin => cpus,
            };
            if tasks_per_flow <= few {
                tasks_per_flow
            } else {
                cpus
            }
        }
        // Fewer than processors, so that a thread has several flows and not every answer is a wake-up.
        ThreadPolicy::SharedFlows => options.load.streams.div_ceil(FLOWS_EACH).max(2).min(cpus),
        ThreadPolicy::Processors => cpus,
        ThreadPolicy::PerFlow => return tasks_per_flow,
    };
    options.load.threads.unwrap_or(usual).min(tasks_per_flow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Workload;

    #[test]
    fn threads_are_as_many_as_docs_loads_says() {
        let threads = |workload, streams, cpus| {
            let mut options = Options::new(workload, [0; 16]);
            options.load.streams = streams;
            threads_on(&options, cpus)
        };
        let of = |workload, streams| [1, 2, 64].map(|cpus| threads(workload, streams, cpus));
        assert_eq!(of(Workload::TcpStream, 32), [32; 3]);
        assert_eq!(of(Workload::TcpStream, 64), [1, 2, 64]);
        assert_eq!(of(Workload::TcpBidirectional, 16), [32; 3]);
        assert_eq!(of(Workload::TcpBidirectional, 40), [1, 2, 64]);
        for workload in [Workload::TcpRr, Workload::UdpRr] {
            assert_eq!(of(workload, 1), [1; 3]);
            assert_eq!(of(workload, 4), [1, 2, 2]);
            assert_eq!(of(workload, 64), [1, 2, 8]);
            assert_eq!(of(workload, 1024), [1, 2, 64]);
        }
        assert_eq!(of(Workload::TcpCrr, 4), [1, 2, 4]);
        assert_eq!(of(Workload::UdpStream, 64), [1, 2, 64]);
        let spinning = Options::new(Workload::TcpStream, [0; 16]).with(|load| {
            load.streams = 4;
            load.waiting = WaitMode::Spin;
        });
        assert_eq!(
            [1, 2, 64].map(|cpus| threads_on(&spinning, cpus)),
            [1, 2, 4]
        );
        let options = Options::new(Workload::TcpRr, [0; 16]).with(|load| load.threads = Some(9));
        assert_eq!(threads_on(&options, 2), 1, "one flow");
    }
}
