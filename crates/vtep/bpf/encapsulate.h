/* SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only */
/* What a guest sends: to a MAC address here, to the remote that has it, or to everyone. */
#ifndef VTEP_ENCAPSULATE_H
#define VTEP_ENCAPSULATE_H

#include "send.h"

INLINE __u32 source_port(struct __sk_buff *skb, const __u8 *l2)
{
	__u32 hash = bpf_get_hash_recalc(skb);

	if (!hash) { /* not IP: the addresses will do (FNV-1a) */
		hash = 2166136261U;
#pragma unroll
		for (int i = 0; i < 12; i++)
			hash = (hash ^ l2[i]) * 16777619U;
	}
	/* The upper bits choose, as in the kernel's udp_flow_src_port(). */
	hash ^= hash << 16;
	return port_min + (__u32)((__u64)hash * (port_max - port_min + 1) >> 32);
}

/* A tag lies beside the frame here, not in it. What the tunnel carries has it inside again. */
INLINE int read_l2(struct __sk_buff *skb, struct outgoing *out)
{
	__u16 proto = NET16(ETHERTYPE_VLAN), tci = 0;

	if (load(skb, 0, out->l2, ETH_BYTES))
		return SHORT;
	out->l2_bytes = ETH_BYTES;
	if (skb->vlan_present) {
		if (inner_tag)
			return GUEST_TAG;
		proto = skb->vlan_proto;
		tci = skb->vlan_tci;
		if (bpf_skb_vlan_pop(skb))
			return KERNEL_REFUSED;
	} else if (inner_tag) {
		tci = inner_tag - 1;
	} else {
		return 0;
	}
	out->l2[16] = out->l2[12];
	out->l2[17] = out->l2[13];
	out->l2[12] = proto;
	out->l2[13] = proto >> 8;
	out->l2[14] = tci >> 8;
	out->l2[15] = tci;
	out->l2_bytes = L2_MAX;
	return 0;
}

/* The longest IP packet that leaves of this frame. */
INLINE __u32 packet_bytes(struct __sk_buff *skb, const struct inner *inner)
{
	if (!skb->gso_size)
		return skb->len - ETH_BYTES;
	return inner->l3_bytes + transport_bytes(skb, ETH_BYTES + inner->l3_bytes, inner->protocol) + skb->gso_size;
}

/* How many bytes one datagram covers and what they sum to. Segments of equal length have equal checksums but for
 * what their own checksums make up for; the kernel copies the outer header to each of them. A shorter last
 * segment would get a wrong one: 1 says that the super-packet must be segmented first. */
INLINE int cover(struct __sk_buff *skb, struct outgoing *out, struct inner *inner)
{
	__u32 overhead = UDP_BYTES + (header_len - ETH_BYTES - (family == FAMILY_IPV4 ? IPV4_BYTES : IPV6_BYTES) -
				      UDP_BYTES) + out->l2_bytes;
	__u32 l4 = ETH_BYTES + inner->l3_bytes;
	__u64 sum = (__u32)bpf_csum_diff(NULL, 0, (__u32 *)out->l2, 20, 0);
	__s64 payload;

	if (skb->gso_size) {
		__u32 headers = transport_bytes(skb, l4, inner->protocol);
		__u32 segment = headers + skb->gso_size;

		if (!headers || (skb->len - l4 - headers) % skb->gso_size)
			return 1;
		out->covered = overhead + inner->l3_bytes + segment;
		sum += (__u16)~folded(inner->pseudo_sum + NET16(segment));
		/* An IPv4 header sums to nothing; IPv6 has no checksum, and the length of a segment. */
		if (inner->l3_bytes == IPV6_BYTES)
			sum += inner->header_sum + (__u16)~NET16(inner->l4_bytes) + NET16(segment);
	} else {
		out->covered = out->datagram;
		payload = inner->l3_bytes ? payload_sum(skb, l4, skb->len - ETH_BYTES, inner) : -1;
		if (payload >= 0) {
			sum += inner->header_sum + payload;
		} else {
			payload = sum_bytes(skb, ETH_BYTES, skb->len - ETH_BYTES);
			if (payload < 0)
				return -1;
			sum += payload;
		}
	}
	out->inner_sum = sum;
	return 0;
}

/* As the guest sent it, or with the underlay's tag. */
INLINE int send_plain(struct __sk_buff *skb)
{
	if (format == FORMAT_VLAN) {
		if (skb->vlan_present)
			return drop(GUEST_TAG);
		if (bpf_skb_vlan_push(skb, NET16(ETHERTYPE_VLAN), vlan))
			return drop(KERNEL_REFUSED);
	}
	count(ENCAPSULATED);
	return bpf_redirect(underlay, 0);
}

/* Copies of a frame to ports of its VNI. */
struct copies {
	struct __sk_buff *skb;
	const struct flood *flood;
	__u32 except; /* a port that gets none */
};

static long copy_to_port(__u32 i, struct copies *copies)
{
	__u32 ifindex;

	if (i >= MAX_PORTS)
		return 1;
	ifindex = copies->flood->ifindex[i];
	if (ifindex != copies->except) {
		bpf_clone_redirect(copies->skb, ifindex, 0);
		count(FLOODED);
	}
	return 0;
}

INLINE void copy_to_ports(struct __sk_buff *skb, const struct flood *flood, __u32 except)
{
	struct copies copies = { .skb = skb, .flood = flood, .except = except };

	bpf_loop(flood->ports, copy_to_port, &copies, 0);
}

/* A frame on its way to all remotes of its VNI. */
struct spread {
	struct __sk_buff *skb;
	struct outgoing *out;
	const struct flood *flood;
};

static long copy_to_remote(__u32 i, struct spread *spread)
{
	struct remote *remote;
	__u32 index;

	if (i >= MAX_REMOTES)
		return 1;
	index = spread->flood->remote[i];
	remote = bpf_map_lookup_elem(&remotes, &index);
	if (!remote)
		return 0;
	look(spread->skb, remote);
	if (write_header(spread->skb, remote, spread->out)) {
		count(KERNEL_REFUSED);
		return 1;
	}
	if (!remote->resolved) {
		count(NO_NEIGHBOUR);
		return 0;
	}
	bpf_clone_redirect(spread->skb, underlay, 0);
	count(ENCAPSULATED);
	count(FLOODED);
	return 0;
}

/* The frame itself goes to the last of them, copies to the others. */
INLINE int copy_to_remotes(struct __sk_buff *skb, struct outgoing *out, const struct flood *flood)
{
	struct spread spread = { .skb = skb, .out = out, .flood = flood };
	__u32 last = flood->remotes - 1, index;
	struct remote *remote;

	if (last >= MAX_REMOTES)
		return DROP;
	bpf_loop(last, copy_to_remote, &spread, 0);
	index = flood->remote[last];
	remote = bpf_map_lookup_elem(&remotes, &index);
	if (!remote)
		return DROP;
	look(skb, remote);
	if (write_header(skb, remote, out))
		return drop(KERNEL_REFUSED);
	return transmit(remote, out->is_ip);
}

INLINE int from_guest(struct __sk_buff *skb, struct port *port, __u32 ifindex)
{
	struct outgoing out = { .vni = port->vni };
	struct fdb_key key = { .vni = port->vni };
	struct fdb_entry *entry = NULL;
	struct flood *flood = NULL;
	struct remote *remote;
	struct inner inner = {};
	__u32 index = 0, limit, fixed;
	int why;

	if (load(skb, 0, key.mac, 6))
		return drop(SHORT);
	if (!(key.mac[0] & 1))
		entry = bpf_map_lookup_elem(&fdb, &key);
	if (entry && !entry->remote) {
		count(SWITCHED);
		return bpf_redirect(entry->ifindex, 0);
	}
	if (entry)
		index = entry->remote;
	else
		flood = bpf_map_lookup_elem(&floods, &port->vni);
	if (flood) {
		copy_to_ports(skb, flood, ifindex);
		if (format >= FORMAT_VXLAN) {
			if (!flood->remotes)
				return flood->ports > 1 ? DROP : drop(NO_DESTINATION);
			index = flood->remote[0];
		}
	}
	remote = bpf_map_lookup_elem(&remotes, &index);
	if (!remote)
		return drop(NO_DESTINATION);
	if (format >= FORMAT_VXLAN)
		look(skb, remote);

	read_inner(skb, ETH_BYTES, skb->protocol, &inner);
	fixed = format >= FORMAT_VXLAN ? header_len + (skb->vlan_present || inner_tag ? TAG_BYTES : 0) : 0;
	limit = remote->mtu - fixed;
	if (UNLIKELY((__s32)limit < (__s32)packet_bytes(skb, &inner)))
		return inner.l3_bytes && (__s32)limit > 0 ? answer_too_big(skb, limit, inner.later, ifindex) :
							     drop(TOO_BIG_UNANSWERED);
	if (format < FORMAT_VXLAN)
		return send_plain(skb);

	out.is_ip = inner.l3_bytes != 0;
	why = read_l2(skb, &out);
	if (why)
		return drop(why);
	out.datagram = skb->len - ETH_BYTES + out.l2_bytes + header_len - ETH_BYTES -
		       (family == FAMILY_IPV4 ? IPV4_BYTES : IPV6_BYTES);
	if (checksum) {
		why = cover(skb, &out, &inner);
		if (why < 0)
			return drop(SHORT);
		if (why > 0) {
			if (!segmenter || skb->ifindex == segmented)
				return drop(KERNEL_REFUSED);
			if (out.l2_bytes == L2_MAX && !inner_tag &&
			    bpf_skb_vlan_push(skb, *(__u16 *)(out.l2 + 12), out.l2[14] << 8 | out.l2[15]))
				return drop(KERNEL_REFUSED);
			skb->mark = ifindex;
			count(RESEGMENTED);
			return bpf_redirect(segmenter, 0);
		}
	}
	out.source_port = source_port(skb, out.l2);
	if (make_room(skb, &out))
		return drop(KERNEL_REFUSED);
	if (flood)
		return copy_to_remotes(skb, &out, flood);
	if (write_header(skb, remote, &out))
		return drop(KERNEL_REFUSED);
	return transmit(remote, out.is_ip);
}

#endif
