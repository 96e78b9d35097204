#!/bin/bash
# A VXLAN gateway by Open vSwitch's own emulator (ovs-vtep), between VLAN 100 on `port0` and a logical network of key 5000:
# in the calling network namespace, with its files in the directory $1, over Open vSwitch's userspace datapath. `under0` is
# the underlay, $2 the other end's address. Says `ready` and stays until its input closes.
set -eu
cd "$1"
export OVS_RUNDIR="$1" OVS_LOGDIR="$1" OVS_DBDIR="$1" OVS_SYSCONFDIR="$1" PATH=/usr/bin:/usr/sbin:/bin:/sbin
share=/usr/share/openvswitch

# Tries a command for at least a minute.
await() {
	for _ in $(seq 600); do
		if eval "$1" >/dev/null 2>&1; then return; fi
		sleep 0.1
	done
	echo "never: $1" >&2
	exit 1
}

ovsdb-tool create conf.db $share/vswitch.ovsschema
ovsdb-tool create vtep.db $share/vtep.ovsschema
ovsdb-server --remote=punix:db.sock --log-file --pidfile -vconsole:off conf.db vtep.db >&2 &
await 'ovs-vsctl --no-wait init'
ovs-vswitchd --disable-system --log-file --pidfile -vconsole:off >&2 &
mkdir -p openvswitch

# The tunnel's address is a bridge's in userspace.
ovs-vsctl add-br br-under -- set bridge br-under datapath_type=netdev other_config:hwaddr=02:00:00:00:09:01 \
	-- add-port br-under under0
ip address add 10.9.0.1/24 dev br-under
ip link set br-under up

# The VLAN network: port0 is an access port of VLAN 100, and the gateway sees it tagged on phys0.
ovs-vsctl add-br br-vlan -- set bridge br-vlan datapath_type=netdev -- add-port br-vlan port0 tag=100 \
	-- add-port br-vlan trunk0 -- set interface trunk0 type=patch options:peer=phys0
ovs-vsctl add-br gateway -- set bridge gateway datapath_type=netdev \
	-- add-port gateway phys0 -- set interface phys0 type=patch options:peer=trunk0

# What a controller would write into the hardware_vtep database (vtep(5)).
vtep-ctl add-ps gateway -- set Physical_Switch gateway tunnel_ips=10.9.0.1
/usr/bin/python3 $share/scripts/ovs-vtep gateway --log-file=ovs-vtep.log --pidfile=ovs-vtep.pid >&2 &
await 'vtep-ctl list-ports gateway | grep phys0'
vtep-ctl add-ls network -- set Logical_Switch network tunnel_key=5000
vtep-ctl bind-ls gateway phys0 100 network
vtep-ctl add-mcast-remote network unknown-dst "$2"
await "ovs-ofctl dump-flows gateway_vtep_ls1 | grep 'table=1.*output'"
echo ready
cat >/dev/null
