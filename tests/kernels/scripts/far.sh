# Paths without a fault that are far, slow, policed or lossy: nothing is found but that there is a netem, and loss where
# there is some.
. /scripts/pair.sh
# Two hosts at a switch.
switch() { # MTU
    ip netns add a; ip netns add b; ip netns add sw
    ip -n sw link add bridge0 type bridge
    for host in a b; do
        ip -n $host link add eth0 mtu $1 type veth peer name to-$host mtu $1 netns sw
        ip -n sw link set to-$host master bridge0 up
    done
    ip -n sw link set bridge0 mtu $1 up
    up a eth0 10.9.0.1; up b eth0 10.9.0.2
}
# Its check: no finding but these.
only() { # WHAT
    wirecost check netns:a=10.9.0.1 netns:b=10.9.0.2 --json >/run/check.json 2>/run/check.err
    code=$?
    others=$(sed -n '/"findings"/,/"simulations"/p' /run/check.json | grep '"id"' | grep -v impairment-qdisc)
    took=$(sed -n 's/^  "seconds": \([0-9]*\).*/\1/p' /run/check.json)
    echo "$1: exit code $code, $took s" $others
    if [ $code -gt 1 ] || [ -n "$others" ]; then
        cat /run/check.err
        grep '"evidence": "netns' /run/check.json
        failed=1
    fi
    ip netns del sw
    gone
}
netem() { # WORDS
    switch 9000
    for host in a b; do
        ip netns exec sw tc qdisc add dev to-$host root netem limit 20000 "$@" || { echo "netem $*: not here"; failed=1; }
    done
    only "netem $*"
    [ $code = 1 ] || { echo "netem $*: not named"; failed=1; }
}
netem delay 1ms
netem delay 50ms 10ms
netem delay 150ms
netem delay 450ms
netem delay 1500ms
netem delay 20ms reorder 25% 50% duplicate 5%
netem delay 10ms loss 1%
netem delay 10ms loss 3%
netem delay 10ms loss 5%
# What a container's bandwidth plugin does.
for rate in 1mbit 2mbit 10mbit; do
    for mtu in 1500 9000; do
        switch $mtu
        tc -n a qdisc add dev eth0 root tbf rate $rate burst 10000 latency 20ms || failed=1
        only "a shaper of $rate at $mtu"
    done
done
for rate in 125 1250; do
    switch 1500
    ip netns exec sw nft -f - <<END || failed=1
table netdev f {
    chain i { type filter hook ingress device "to-a" priority 0; policy accept;
        limit rate over $rate kbytes/second burst 10 kbytes drop
    }
}
END
    only "a policer of $rate kB/s"
done
exit $failed
