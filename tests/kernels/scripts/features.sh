# Each driver by making what it makes: `NAME yes` or `NAME no`.
tells() { # NAME COMMAND
    name=$1; shift
    "$@" >/dev/null 2>&1 && echo "$name yes" || echo "$name no"
}
device() { # KIND
    ip link add try0 type "$@" && ip link del try0
}
queueing() { # QDISC
    ip link add try0 type veth peer name try1 && tc qdisc add dev try0 "$@"
    made=$?
    ip link del try0
    return $made
}
tells bond device bond
tells team device team
tells vrf device vrf table 99
tells clsact queueing clsact
tells openvswitch modprobe openvswitch
tells rps_default_mask test -e /proc/sys/net/core/rps_default_mask
