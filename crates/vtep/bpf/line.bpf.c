/* SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only */
/* A line on a device's egress: when each packet departs. The fq queueing discipline behind it (net/sched/sch_fq.c) holds
 * packets back until then. See src/line.rs. */
#include "kernel.h"

/* Bits of a nanosecond's fraction: its time lasts 4.5 years since the machine's start. */
enum { FRACTION = 7, COST_FRACTION = 16, ATTEMPTS = 16, MAX_LINKS = 8 /* wirecost_model::cell */ };

/* What the line is like; mirrored in src/line.rs. */
struct line {
	__u64 cost;   /* of a byte on the line, in ns << (FRACTION + COST_FRACTION) */
	__u64 step;   /* ns between two releases */
	__u64 limit;  /* most that waits, in ns of the line */
	__u32 header; /* of each frame of a super-packet, in bytes */
	__u32 payload; /* most in one frame */
	__u32 unseen; /* bytes of a frame on the line that a packet's length lacks */
	__u32 shortest;
	__u32 links;   /* lines like this one, among which flows are divided */
	__u32 classes; /* only their class is set */
};

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, __u32);
	MAP_TYPE(value, struct line);
} line SEC(".maps");

/* When each link has sent all that it was given, in ns << FRACTION. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, MAX_LINKS);
	MAP_TYPE(key, __u32);
	MAP_TYPE(value, __u64);
} idle_from SEC(".maps");

/* wirecost_wire::size_table::FrameSizes::wire_bytes. */
INLINE __u64 wire_bytes(const struct line *on, __u32 len)
{
	__u32 more = len > on->header && on->payload ? (len - on->header - 1) / on->payload : 0;

	if (!more)
		return (len > on->shortest ? len : on->shortest) + on->unseen;
	return len + (__u64)more * on->header + (__u64)(more + 1) * on->unseen;
}

/* Which of several links a packet takes: as a bond of Linux with `xmit_hash_policy layer3+4` (bond_ip_hash in
 * drivers/net/bonding/bond_main.c), by addresses and ports, so that a flow keeps to one link. Its lowest bit is not used:
 * ports that are chosen one after the other are even. Of IPv6 the last words of the addresses, without a header of options. */
INLINE __u32 link_of(struct __sk_buff *skb, __u32 links)
{
	__u32 at = ETH_BYTES, ports = 0, address[2] = { 0, 0 }, hash, last = 0;
	__u16 type = 0;
	__u8 first = 0, protocol = 0;

	if (links < 2 || bpf_skb_load_bytes(skb, 12, &type, 2))
		return 0;
	if (type == NET16(ETHERTYPE_VLAN)) {
		at += TAG_BYTES;
		if (bpf_skb_load_bytes(skb, 12 + TAG_BYTES, &type, 2))
			return 0;
	}
	if (type == NET16(ETHERTYPE_IPV4)) {
		if (bpf_skb_load_bytes(skb, at, &first, 1) || bpf_skb_load_bytes(skb, at + 9, &protocol, 1) ||
		    bpf_skb_load_bytes(skb, at + 12, address, 8))
			return 0;
		at += (first & 15) * 4;
	} else if (type == NET16(ETHERTYPE_IPV6)) {
		if (bpf_skb_load_bytes(skb, at + 6, &protocol, 1) || bpf_skb_load_bytes(skb, at + 20, &address[0], 4) ||
		    bpf_skb_load_bytes(skb, at + 36, &last, 4))
			return 0;
		address[1] = last;
		at += IPV6_BYTES;
	} else {
		return 0;
	}
	if ((protocol == PROTO_TCP || protocol == PROTO_UDP) && bpf_skb_load_bytes(skb, at, &ports, 4))
		ports = 0;
	hash = NET32(ports) ^ NET32(address[0]) ^ NET32(address[1]);
	hash ^= hash >> 16;
	hash ^= hash >> 8;
	return (hash >> 1) % links & (MAX_LINKS - 1);
}

/* Whoever sends takes the line's time from where it is free. On an idle line a packet leaves at once; what has to wait
 * leaves at the first step after its turn. Others may send from other cores meanwhile. */
SEC("classifier")
int depart(struct __sk_buff *skb)
{
	__u32 zero = 0, link;
	struct line *on = bpf_map_lookup_elem(&line, &zero);
	__u64 now = bpf_ktime_get_ns() << FRACTION, takes, from, start, at, *idle;

	if (!on)
		return NEXT;
	link = link_of(skb, on->links);
	if (on->classes) {
		skb->priority = 1 << 16 | (link + 1);
		return NEXT;
	}
	idle = bpf_map_lookup_elem(&idle_from, &link);
	if (!idle)
		return NEXT;
	takes = wire_bytes(on, skb->len) * on->cost >> COST_FRACTION;
	for (int i = 0; i < ATTEMPTS; i++) {
		from = *(volatile __u64 *)idle;
		start = from > now ? from : now;
		if (start - now > on->limit << FRACTION)
			return DROP;
		if (__sync_val_compare_and_swap(idle, from, start + takes) != from)
			continue;
		at = start >> FRACTION;
		if (start > now && on->step)
			at = (at + on->step - 1) / on->step * on->step;
		skb->tstamp = at;
		return NEXT;
	}
	return DROP;
}

char terms[] SEC("license") = "Dual MIT/GPL";
