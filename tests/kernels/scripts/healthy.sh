# Paths over devices that need these drivers and that are all right: no finding.
. /scripts/pair.sh
# A bond of two, each member to a port of one switch.
pair 1500
for host in a b; do
    ip -n $host link del eth0 2>/dev/null
    ip -n $host link add bond0 type bond mode active-backup miimon 100 || failed=1
done
for n in 1 2; do
    ip -n a link add m$n type veth peer name m$n netns b
    for host in a b; do ip -n $host link set m$n master bond0 || failed=1; done
done
for host in a b; do ip -n $host link set bond0 mtu 9000; done
up a bond0 10.9.0.1; up b bond0 10.9.0.2
sleep 1
check 0 "a bond"
gone

# A tag on either end, through a bridge that filters by it.
ip netns add a; ip netns add b; ip netns add sw
ip -n sw link add bridge0 type bridge vlan_filtering 1
for host in a b; do
    ip -n $host link add eth0 mtu 9000 type veth peer name to-$host mtu 9000 netns sw
    ip -n sw link set to-$host master bridge0 up
    bridge -n sw vlan add dev to-$host vid 7 || failed=1
    ip -n $host link set eth0 up
    ip -n $host link add link eth0 name tag7 type vlan id 7 || failed=1
done
ip -n sw link set bridge0 mtu 9000 up
up a tag7 10.9.0.1; up b tag7 10.9.0.2
check 0 "a VLAN through a filtering bridge"
ip netns del sw
gone

# A router whose ports are in a VRF.
ip netns add a; ip netns add b; ip netns add sw
ip -n sw link add red type vrf table 10 || failed=1
ip -n sw link set red up
ip netns exec sw sysctl -q -w net.ipv4.ip_forward=1
n=0
for host in a b; do
    ip -n $host link add eth0 mtu 9000 type veth peer name to-$host mtu 9000 netns sw
    ip -n sw link set to-$host master red up || failed=1
    ip -n sw addr add 10.9.$n.254/24 dev to-$host
    n=$((n + 1))
done
up a eth0 10.9.0.1; up b eth0 10.9.1.2
ip -n a route add default via 10.9.0.254; ip -n b route add default via 10.9.1.254
to=10.9.1.2
check 0 "a VRF"
ip netns del sw
gone
exit $failed
