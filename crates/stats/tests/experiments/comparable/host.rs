//! Which Open vSwitch carried the cells, and whether receive work was steered.

use wirecost_model::effect::{RemarkKind, Verdict};
use wirecost_model::metric::Metric;
use wirecost_model::switch::{OpenVswitch, OvsDatapath};

use super::Planted;

fn switched(key: &str, levels: [&str; 2], datapaths: [OvsDatapath; 2]) -> Planted {
    let switch = |datapath| OpenVswitch {
        version: "3.1.0".into(),
        datapath,
        ovn: None,
    };
    let [from, to] = datapaths.map(switch);
    Planted::of(key, levels)
        .sampled(0, |sample| sample.open_vswitch = Some(from.clone()))
        .sampled(1, |sample| sample.open_vswitch = Some(to.clone()))
}

#[test]
fn open_vswitchs_datapaths_are_compared_where_the_datapath_is_the_factor_alone() {
    const BOTH: [OvsDatapath; 2] = [OvsDatapath::Userspace, OvsDatapath::Kernel];
    let vxlan = switched("encapsulation", ["none", "vxlan"], BOTH);
    assert_eq!(
        vxlan.not_comparable(Metric::Throughput),
        Some(RemarkKind::NotInEffect)
    );
    let factor = switched("datapath", ["ovs", "ovs-kernel"], BOTH);
    assert_eq!(factor.effect(Metric::Throughput).verdict, Verdict::Pays);
    let same = [OvsDatapath::Kernel; 2];
    let same = switched("encapsulation", ["none", "vxlan"], same);
    assert_eq!(same.not_comparable(Metric::Throughput), None);
}

#[test]
fn a_cell_that_was_steered_is_not_compared_with_one_that_was_not() {
    let planted = |not_steered: [bool; 2]| {
        Planted::of("encapsulation", ["none", "vxlan"])
            .sampled(0, |sample| sample.not_steered = not_steered[0])
            .sampled(1, |sample| sample.not_steered = not_steered[1])
    };
    for metric in [Metric::Throughput, Metric::ReceiverCpu] {
        let barred = planted([false, true]).not_comparable(metric);
        assert_eq!(barred, Some(RemarkKind::NotInEffect));
        assert_eq!(planted([true, true]).not_comparable(metric), None);
    }
}
