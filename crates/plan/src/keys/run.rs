//! Keys of the plan itself, of its hosts, and of what a run may do there.

use std::ops::Bound::{Included, Unbounded};

use super::Presence::{Default, Required};
use super::{BASE, Key, Kind, ON_OFF, from_to};

keys! {
    NAME "name" Name { presence: Required, example: "jumbo-or-not" }
        "The plan's name; it names the run directory.";
    DESCRIPTION "description" Text { example: "What jumbo frames are worth here." }
        "A paragraph that the report shows.";
    HOSTS "hosts" Map {
        words: &["lab"], presence: Default("lab"), example: "{ a: \"ssh:db1=10.0.0.1\", b: \"ssh:db2=10.0.0.2\" }",
    }
        "Where the hosts come from: `lab` is two network namespaces on this machine; `a`, `b` and others are existing hosts \
         (docs/hosts.md), whose network is measured as `network` says. `--hosts` names them on the command line.";
    HOST_A "hosts.a" Text { presence: Required, example: "ssh:db1=10.0.0.1" }
        "Host a: `local`, `netns:NAME`, `ssh:[USER@]HOST[:PORT]` or `exec:COMMAND`, with `=ADDRESS` for the address that is \
         measured.";
    HOST_B "hosts.b" Text { presence: Required, example: "ssh:db2=10.0.0.2" }
        "Host b likewise.";
    HOST_MORE "hosts.*" Text { example: "ssh:db3=10.0.0.3" }
        "Further hosts, by names of your choice: letters, digits, `_` and `-`. `pairs` says which of them are measured.";
    PAIRS "pairs" Names { factor: true, example: "[[a, b], [a, c]]" }
        "Which two hosts are measured, where there are more than two: a pair, or a list of pairs, which are compared. The \
         first host of a pair is host a in its cells and the second host b, for loads, `on: a` and `on: b`. Without `hosts` \
         they are `a`, `b`, `c` and so on, in the order of `--hosts`.";
    NETWORK "network" Word { words: &["lab", "existing", "tunnel"], example: "existing" }
        "`lab` builds the network; `existing` measures what is there between two hosts and builds nothing; `tunnel` builds \
         guests and tunnels on two hosts, which go over the hosts' own network (docs/hosts.md). Without it, `existing` where \
         `hosts` names hosts.";
    ALLOW_HOST_CHANGES "allow_host_changes" Word { words: ON_OFF, presence: Default("off"), example: "on" }
        "Whether `vary` may change settings of existing hosts, and `datapath: ebpf` attach a program to their devices. \
         Each change is listed before the run. Settings are undone after each sample; the program ends with the \
         agent, before another tunnel is measured.";
    MAX_RATE "max_rate" Rate { words: &["auto", "none"], range: from_to(1e6, 1e13), presence: Default("auto"), example: "5gbit" }
        "The most that all loads together send in each direction between existing hosts, in bit/s of messages: \
         streams and migrations are paced, storage and other requests are delayed where they would exceed it. `auto` \
         is half of the slower device's speed, 1 Gbit/s where that is unknown (a veth's or tap's is), and no limit \
         between hosts of one machine; `none` is no limit.";
    CORES "cores" Word { words: &["split", "shared"], presence: Default("split"), example: "split" }
        "Whether each host has half of the cores, so that sender and receiver CPU can be separated, or both share all. \
         With `split`, three cores or more and a line (`underlay.rate`), the last core is the line's own and the hosts \
         have the others: from Linux 6.3, or as root.";
    SEED "seed" Whole { range: (Included(0.0), Unbounded), example: "1" }
        "Seed of the random order; without it each run draws its own.";
}
