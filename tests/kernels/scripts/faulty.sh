# Faults on devices that need these drivers, each to be named.
. /scripts/pair.sh
named() { # FINDING
    grep -q "\"$1\"" /run/check.json || { echo "not named: $1"; sed -n '/"findings"/,$p' /run/check.json | head -n 60; failed=1; }
}
# A member of a bond that was reset to 1500.
pair 1500
for host in a b; do
    ip -n $host link del eth0 2>/dev/null
    ip -n $host link add bond0 type bond mode balance-rr miimon 100
done
for n in 1 2; do
    ip -n a link add m$n type veth peer name m$n netns b
    for host in a b; do ip -n $host link set m$n master bond0; done
done
for host in a b; do ip -n $host link set bond0 mtu 9000; done
up a bond0 10.9.0.1; up b bond0 10.9.0.2
ip -n a link set m2 mtu 1500
sleep 1
check 1 "a bond's member at 1500"
named bond-member-differs
gone

# A tag that the bridge in between does not let through.
ip netns add a; ip netns add b; ip netns add sw
ip -n sw link add bridge0 type bridge vlan_filtering 1
for host in a b; do
    ip -n $host link add eth0 mtu 9000 type veth peer name to-$host mtu 9000 netns sw
    ip -n sw link set to-$host master bridge0 up
    ip -n $host link set eth0 up
    ip -n $host link add link eth0 name tag7 type vlan id 7
done
bridge -n sw vlan add dev to-a vid 7
ip -n sw link set bridge0 mtu 9000 up
up a tag7 10.9.0.1; up b tag7 10.9.0.2
check 1 "a port without the tag"
named path-dead
ip netns del sw
gone

# A switch's port of 1500 behind netem's delay.
ip netns add a; ip netns add b; ip netns add sw
ip -n sw link add bridge0 type bridge
for host in a b; do
    ip -n $host link add eth0 mtu 9000 type veth peer name to-$host mtu 9000 netns sw
    ip -n sw link set to-$host master bridge0 up
    ip -n $host link set eth0 up
    up $host eth0 10.9.0.$([ $host = a ] && echo 1 || echo 2)
    ip netns exec $host tc qdisc add dev eth0 root netem delay 5ms 1ms
done
ip -n sw link set to-b mtu 1500
ip -n sw link set bridge0 up
check 1 "a port of 1500 at 10 ms"
# A veth passes a tag's four bytes more than its MTU.
grep -q '"mtu": 150[04],' /run/check.json || { echo "1500 not found"; grep -E '"(mtu|kind|id|evidence)"' /run/check.json | sort | uniq -c; failed=1; }
ip netns del sw
gone
exit $failed
