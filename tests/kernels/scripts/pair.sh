# Two hosts: named namespaces a and b, joined by a veth `eth0`, 10.9.0.1 and 10.9.0.2.
pair() { # MTU
    ip netns add a; ip netns add b
    ip -n a link add eth0 mtu $1 type veth peer name eth0 mtu $1 netns b
    up a eth0 10.9.0.1; up b eth0 10.9.0.2
}
up() { # HOST DEVICE ADDRESS
    ip -n $1 link set lo up
    ip -n $1 link set $2 up
    ip -n $1 addr add $3/24 dev $2
}
gone() {
    ip netns del a; ip netns del b
    # The kernel takes its time to drop them.
    sleep 0.3
}
# The check's exit code, and the findings that are faults.
check() { # CODE WHAT [OPTIONS]
    expected=$1; what=$2; shift 2
    wirecost check netns:a=10.9.0.1 netns:b=$to --json "$@" >/run/check.json 2>/run/check.err
    code=$?
    if [ $code != $expected ]; then
        echo "$what: exit code $code instead of $expected"
        sed -n '/"findings"/,$p' /run/check.json | head -n 60
        cat /run/check.err
        failed=1
    else
        echo "$what: $code"
    fi
}
failed=0
to=10.9.0.2
