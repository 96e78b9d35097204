/* SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only */
/* What is to be known of a guest's frame, on either side of the tunnel. */
#ifndef VTEP_INNER_H
#define VTEP_INNER_H

#include "checksum.h"

struct ipv4 {
	__u8 version_ihl, tos;
	__u16 tot_len, id, frag_off;
	__u8 ttl, protocol;
	__u16 check;
	__u32 saddr, daddr;
};

struct ipv6 {
	__u32 version;
	__u16 payload_len;
	__u8 nexthdr, hop_limit;
	__u32 saddr[4], daddr[4];
};

struct inner {
	__u32 l3_bytes;  /* IP header; 0: not IP, or too short to be what it says */
	__u32 l4_bytes;  /* IP payload as the header has it */
	__u32 protocol;  /* of a packet that is no fragment, extension headers aside; else 0 */
	__u32 later;     /* a fragment but the first */
	__u64 header_sum;  /* over the IP header */
	__u64 pseudo_sum;  /* over addresses and protocol, as transport checksums have it */
};

/* Reads the IP header at `offset`. 0, or -1 where it is cut off or no IP header of that type. */
INLINE int read_inner(struct __sk_buff *skb, __u32 offset, __u16 type, struct inner *inner)
{
	union {
		struct ipv4 v4;
		struct ipv6 v6;
		__u32 words[10];
	} ip;

	*inner = (struct inner){};
	if (type == NET16(ETHERTYPE_IPV4)) {
		if (load(skb, offset, &ip.v4, IPV4_BYTES))
			return -1;
		__u32 header = (ip.v4.version_ihl & 0xf) * 4;
		__u32 total = NET16(ip.v4.tot_len);

		/* A total of 0 is that of a super-packet beyond 64 KiB (BIG TCP). */
		if (ip.v4.version_ihl >> 4 != 4 || header < IPV4_BYTES || (total && total < header))
			return -1;
		inner->l3_bytes = header;
		inner->l4_bytes = total - header;
		inner->later = (ip.v4.frag_off & NET16(0x1fff)) != 0;
		/* Options are rare enough to be summed the long way. */
		if (header == IPV4_BYTES && !(ip.v4.frag_off & NET16(0x3fff)))
			inner->protocol = ip.v4.protocol;
		inner->header_sum = words(ip.words, IPV4_BYTES / 4);
		inner->pseudo_sum = (__u64)ip.v4.saddr + ip.v4.daddr + NET16(ip.v4.protocol);
	} else if (type == NET16(ETHERTYPE_IPV6)) {
		if (load(skb, offset, &ip.v6, IPV6_BYTES))
			return -1;
		if ((ip.v6.version & NET32(0xf0000000)) != NET32(0x60000000))
			return -1;
		inner->l3_bytes = IPV6_BYTES;
		inner->l4_bytes = NET16(ip.v6.payload_len);
		inner->protocol = ip.v6.nexthdr;
		inner->header_sum = words(ip.words, IPV6_BYTES / 4);
		inner->pseudo_sum = words(ip.v6.saddr, 8) + NET16(ip.v6.nexthdr);
	}
	return 0;
}

/* Bytes of the transport header at `offset`; 0 where there is none that is known. */
INLINE __u32 transport_bytes(struct __sk_buff *skb, __u32 offset, __u32 protocol)
{
	__u8 data_offset WORDS;

	if (protocol == PROTO_UDP)
		return UDP_BYTES;
	if (protocol != PROTO_TCP || load(skb, offset + 12, &data_offset, 1))
		return 0;
	return (data_offset >> 4) * 4;
}

/* What the payload of a valid IP packet sums to, known without reading it: its own checksum makes it so, be it
 * computed already or left to the device (Documentation/networking/checksum-offloads.rst, "LCO"). -1 where it
 * has none, is a fragment, or lies in a frame with something behind it. */
INLINE __s64 payload_sum(struct __sk_buff *skb, __u32 l4, __u32 frame_l3_bytes, const struct inner *inner)
{
	__u16 check WORDS;

	if (!inner->protocol || inner->l3_bytes + inner->l4_bytes != frame_l3_bytes)
		return -1;
	switch (inner->protocol) {
	case PROTO_ICMP:
		return inner->l3_bytes == IPV4_BYTES ? 0xffff : -1;
	case PROTO_UDP: /* 0: the sender made none */
		if (load(skb, l4 + 6, &check, 2) || check == 0)
			return -1;
		break;
	case PROTO_ICMPV6:
		if (inner->l3_bytes != IPV6_BYTES)
			return -1;
		break;
	case PROTO_TCP:
		break;
	default:
		return -1;
	}
	return (__u16)~folded(inner->pseudo_sum + NET16(inner->l4_bytes));
}

#endif
