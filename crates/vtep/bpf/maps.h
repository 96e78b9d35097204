/* SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only */
/* What the loader tells the programs. Layouts are mirrored in src/layout.rs. */
#ifndef VTEP_MAPS_H
#define VTEP_MAPS_H

#include "counters.h"
#include "kernel.h"

enum { MAX_HEADER = 328, MAX_REMOTES = 64, MAX_PORTS = 64, MAX_FDB_ENTRIES = 4096, KNOWN_OPTIONS = 64 };
enum { FORMAT_NONE, FORMAT_VLAN, FORMAT_VXLAN, FORMAT_GENEVE };

/* Fixed before the verifier sees the programs, so that it prunes what a format does not need. Volatile, or
 * clang would take the zeros for their values. */
const volatile __u32 format = 0;
const volatile __u32 family = 0;      /* of the outer addresses: FAMILY_IPV4, FAMILY_IPV6 */
const volatile __u32 underlay = 0;    /* ifindex */
const volatile __u32 segmenter = 0;   /* ifindex where super-packets are sent to be segmented, or 0 */
const volatile __u32 segmented = 0;   /* ifindex where their segments arrive, or 0 */
const volatile __u32 header_len = 0;  /* all that is put in front of the guest's frame, outer Ethernet first */
const volatile __u32 port_min = 0;    /* outer source ports, both ends included */
const volatile __u32 port_max = 0;
const volatile __u32 udp_port = 0;    /* outer destination port */
const volatile __u32 checksum = 0;    /* whether outer UDP checksums are computed */
const volatile __u32 vlan = 0;        /* the tag of FORMAT_VLAN */
const volatile __u32 inner_tag = 0;   /* TCI + 1 of the tag carried inside; 0: the guest's own, if any */
const volatile __u32 known_options = 0;
const volatile __u32 known_option[KNOWN_OPTIONS] = {}; /* class << 8 | type */
const volatile __u32 local_address[4] = {}; /* as it stands in a packet */

/* A guest's device at this host. */
struct port {
	__u32 vni;
};

struct fdb_key {
	__u32 vni;
	__u8 mac[6];
	__u16 zero;
};

/* Where a MAC address is. */
struct fdb_entry {
	__u32 remote;  /* index into remotes, or 0 */
	__u32 ifindex; /* of the guest's device, where remote is 0 */
};

/* Another VTEP; the first entry is no remote and has the MTU for the formats without one. */
struct remote {
	__u8 header[MAX_HEADER]; /* lengths, checksums, source port, VNI and MACs to be filled in */
	__u32 address[4];
	__u32 source[4];
	__u32 udp_sum;  /* over addresses, protocol, ports but the source's, tunnel header but the VNI */
	__u32 ip_sum;   /* over the IPv4 header */
	__u32 mtu;      /* largest IP packet for the way there */
	__u32 resolved; /* whether the header's MACs are known */
	__u64 looked;   /* when the route and the neighbour were last looked up, in ns */
	__u32 ceiling;  /* `mtu` never grows beyond this; 0: no limit of its own */
	__u32 used;     /* 0: no such remote any more */
};

/* To whom a VNI's frames for everyone go. */
struct flood {
	__u32 remotes;
	__u32 ports;
	__u32 remote[MAX_REMOTES];
	__u32 ifindex[MAX_PORTS];
};

struct budget {
	__u64 filled; /* ns */
	__u64 tokens;
};

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
	MAP_NUMBER(max_entries, MAX_PORTS);
	MAP_TYPE(key, __u32);
	MAP_TYPE(value, struct port);
} ports SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
	MAP_NUMBER(max_entries, MAX_FDB_ENTRIES);
	MAP_TYPE(key, struct fdb_key);
	MAP_TYPE(value, struct fdb_entry);
} fdb SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, MAX_REMOTES + 1);
	MAP_TYPE(key, __u32);
	MAP_TYPE(value, struct remote);
} remotes SEC(".maps");

/* Outer source address -> 1: frames of others are not taken. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
	MAP_NUMBER(max_entries, MAX_REMOTES);
	MAP_TYPE(key, __u32[4]);
	MAP_TYPE(value, __u32);
} sources SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
	MAP_NUMBER(max_entries, MAX_PORTS);
	MAP_TYPE(key, __u32);
	MAP_TYPE(value, struct flood);
} floods SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	MAP_NUMBER(max_entries, COUNTERS);
	MAP_TYPE(key, __u32);
	MAP_TYPE(value, __u64);
} counters SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, __u32);
	MAP_TYPE(value, struct budget);
} budgets SEC(".maps");

INLINE void count(__u32 what)
{
	__u64 *counter = bpf_map_lookup_elem(&counters, &what);

	if (counter)
		(*counter)++;
}

INLINE int drop(__u32 why)
{
	count(why);
	return DROP;
}

#endif
