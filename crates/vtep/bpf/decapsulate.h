/* SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only */
/* What the underlay brings: is it ours, is it whole, whose is it. */
#ifndef VTEP_DECAPSULATE_H
#define VTEP_DECAPSULATE_H

#include "deliver.h"

/* The tunnel's headers in one frame. */
struct incoming {
	__u32 udp;       /* offset of the UDP header */
	__u32 end;       /* of the datagram in the frame */
	__u32 tunnel;    /* bytes of the tunnel's header, options included */
	__u32 vni;
	__u32 damaged;   /* the outer IPv4 header's own checksum is wrong */
	__u16 check;
	__u64 pseudo;    /* over the outer addresses and the protocol */
};

/* 0, NEXT where it is not for the tunnel, or why it is dropped. */
INLINE int read_outer(struct __sk_buff *skb, struct incoming *in)
{
	__u32 source[4] = {}, available, fragment;
	__u16 udp[4] WORDS;

	if (family == FAMILY_IPV4) {
		union {
			struct ipv4 header;
			__u32 words[IPV4_BYTES / 4];
		} v4;

		if (skb->protocol != NET16(ETHERTYPE_IPV4) || load(skb, ETH_BYTES, &v4, IPV4_BYTES))
			return NEXT;
		if (v4.header.protocol != PROTO_UDP || v4.header.daddr != local_address[0] ||
		    (v4.header.frag_off & NET16(0x1fff)) || v4.header.version_ihl < 0x45)
			return NEXT;
		/* With options it is left: addresses and length are covered by the UDP checksum too. */
		in->damaged = v4.header.version_ihl == 0x45 && folded(words(v4.words, IPV4_BYTES / 4)) != 0xffff;
		in->udp = ETH_BYTES + (v4.header.version_ihl & 0xf) * 4;
		in->end = ETH_BYTES + NET16(v4.header.tot_len);
		fragment = v4.header.frag_off & NET16(0x2000);
		source[0] = v4.header.saddr;
		in->pseudo = (__u64)v4.header.saddr + v4.header.daddr + NET16(PROTO_UDP);
	} else {
		struct ipv6 ip;

		if (skb->protocol != NET16(ETHERTYPE_IPV6) || load(skb, ETH_BYTES, &ip, IPV6_BYTES))
			return NEXT;
		if (ip.nexthdr != PROTO_UDP || ip.daddr[0] != local_address[0] ||
		    ip.daddr[1] != local_address[1] || ip.daddr[2] != local_address[2] ||
		    ip.daddr[3] != local_address[3])
			return NEXT;
		in->udp = ETH_BYTES + IPV6_BYTES;
		in->end = in->udp + NET16(ip.payload_len);
		fragment = 0;
		__builtin_memcpy(source, ip.saddr, 16);
		in->pseudo = words(ip.saddr, 8) + NET16(PROTO_UDP);
	}
	if (load(skb, in->udp, udp, sizeof(udp)) || udp[1] != NET16(udp_port))
		return NEXT;
	if (fragment)
		return FRAGMENT;
	if (!bpf_map_lookup_elem(&sources, source))
		return UNKNOWN_REMOTE;
	/* A super-packet that was never on a wire may be longer than its 16-bit lengths. */
	available = skb->len - in->udp;
	if (skb->gso_size) {
		in->end = skb->len;
	} else {
		if (in->end > skb->len || in->end < in->udp || NET16(udp[2]) > in->end - in->udp ||
		    NET16(udp[2]) > available)
			return SHORT;
		in->end = in->udp + NET16(udp[2]);
	}
	if (in->end < in->udp + UDP_BYTES + TUNNEL_BYTES)
		return SHORT;
	in->check = udp[3];
	return 0;
}

INLINE int is_known_option(__u32 option)
{
	for (__u32 i = 0; i < KNOWN_OPTIONS && i < known_options; i++)
		if (known_option[i] == option)
			return 1;
	return 0;
}

/* Options on the way through them. */
struct walk {
	struct __sk_buff *skb;
	__u32 offset;
	__u32 bytes;
	__u32 why;
};

static long check_option(__u32 round, struct walk *walk)
{
	__u8 option[4] WORDS;

	(void)round;
	if (walk->bytes == 0)
		return 1;
	walk->why = OPTION_BEYOND;
	if (walk->bytes < 4 || bpf_skb_load_bytes(walk->skb, walk->offset, option, 4))
		return 1;
	__u32 length = 4 + (option[3] & 0x1f) * 4;

	if (length > walk->bytes)
		return 1;
	if (option[2] & 0x80 && !is_known_option((__u32)option[0] << 16 | (__u32)option[1] << 8 | option[2])) {
		walk->why = CRITICAL_OPTION;
		return 1;
	}
	walk->why = 0;
	walk->offset += length;
	walk->bytes -= length;
	return 0;
}

/* RFC 8926, 3.5: options are walked whether or not the header's C bit tells of critical ones. */
static __attribute__((noinline)) int check_options(struct __sk_buff *skb, __u32 offset, __u32 bytes)
{
	struct walk walk = { .skb = skb, .offset = offset, .bytes = bytes };

	bpf_loop(63, check_option, &walk, 0);
	return walk.why;
}

/* 0, or why the frame is dropped. */
INLINE int read_tunnel(struct __sk_buff *skb, struct incoming *in)
{
	__u32 at = in->udp + UDP_BYTES;
	__u8 header[TUNNEL_BYTES] WORDS;

	if (load(skb, at, header, sizeof(header)))
		return SHORT;
	in->vni = (__u32)header[4] << 16 | (__u32)header[5] << 8 | header[6];
	in->tunnel = TUNNEL_BYTES;
	if (format == FORMAT_VXLAN)
		return header[0] & 0x08 ? 0 : BAD_HEADER; /* without flag I there is no VNI (RFC 7348, 5) */
	/* Version 0, no control packet, Ethernet inside (RFC 8926, 3.4). */
	if (header[0] >> 6 || header[1] & 0x80 || header[2] != ETHERTYPE_TEB >> 8 || header[3] != (ETHERTYPE_TEB & 0xff))
		return BAD_HEADER;
	__u32 options = (header[0] & 0x3f) * 4;

	in->tunnel += options;
	if (in->end < at + in->tunnel)
		return OPTION_BEYOND;
	return options ? check_options(skb, at + TUNNEL_BYTES, options) : 0;
}

/* The outer checksum is right where it is right for a valid inner packet, whose own checksum the guest's stack
 * checks: then no payload is read here. Whatever does not add up that way is summed in full. */
INLINE int checksum_is_wrong(struct __sk_buff *skb, const struct incoming *in, __u32 l3, const struct inner *inner)
{
	__u32 bytes = in->end - in->udp;
	__u64 pseudo = in->pseudo + NET16(bytes);
	__s64 sum, payload;

	/* None; or super-packets, whose checksums are made when they are segmented; or checked by the device; or
	 * left to it by a sender on this machine, which shows in a checksum over the pseudo-header alone. */
	if (!in->check || skb->gso_size || bpf_csum_level(skb, BPF_CSUM_LEVEL_QUERY) >= 0 || in->check == folded(pseudo))
		return 0;
	if (inner->l3_bytes && l3 < in->end) {
		payload = payload_sum(skb, l3 + inner->l3_bytes, in->end - l3, inner);
		if (payload >= 0) {
			sum = sum_bytes(skb, in->udp, l3 - in->udp);
			if (sum >= 0 && folded(pseudo + sum + inner->header_sum + payload) == 0xffff)
				return 0;
		}
	}
	sum = sum_bytes(skb, in->udp, bytes);
	return sum < 0 || folded(pseudo + sum) != 0xffff;
}

/* Takes `bytes` out behind the Ethernet header. */
INLINE long strip(struct __sk_buff *skb, __u32 bytes, __u64 flags)
{
	const __u64 other = ADJ_ROOM_DECAP_L3_IPV4 | ADJ_ROOM_DECAP_L3_IPV6;
	const __u32 differ = IPV6_BYTES - IPV4_BYTES;

	if (LIKELY(!bpf_skb_adjust_room(skb, -(__s32)bytes, BPF_ADJ_ROOM_MAC, flags)))
		return 0;
	if (!(flags & other))
		return -1;
	/* Before Linux 6.5 the family is changed by a translation, which puts in or takes out what the headers differ by. */
	if (family == FAMILY_IPV4)
		return bpf_skb_change_proto(skb, NET16(ETHERTYPE_IPV6), 0) ||
		       bpf_skb_adjust_room(skb, -(__s32)(bytes + differ), BPF_ADJ_ROOM_MAC, flags & ~other);
	return bpf_skb_adjust_room(skb, -(__s32)(bytes - differ), BPF_ADJ_ROOM_MAC, flags & ~other) ||
	       bpf_skb_change_proto(skb, NET16(ETHERTYPE_IPV4), 0);
}

INLINE int receive_tunnel(struct __sk_buff *skb)
{
	struct incoming in = {};
	struct fdb_key key = {};
	struct inner inner = {};
	__u8 l2[20] WORDS;
	__u16 type, tag_type = 0, tci = 0;
	__u32 frame, l3;
	__u64 flags = BPF_F_ADJ_ROOM_FIXED_GSO | BPF_F_ADJ_ROOM_NO_CSUM_RESET;
	int why = read_outer(skb, &in);

	if (why == NEXT)
		return NEXT;
	if (!why)
		why = read_tunnel(skb, &in);
	if (why)
		return drop(why);
	frame = in.udp + UDP_BYTES + in.tunnel;
	l3 = frame + ETH_BYTES;
	if (l3 > in.end || load(skb, frame, l2, ETH_BYTES))
		return drop(INNER_TRUNCATED);
	type = l2[12] | (__u16)l2[13] << 8;
	if (type == NET16(ETHERTYPE_VLAN) || type == NET16(ETHERTYPE_QINQ)) {
		l3 += TAG_BYTES;
		if (l3 > in.end || bpf_skb_load_bytes(skb, frame + ETH_BYTES, l2 + ETH_BYTES, TAG_BYTES))
			return drop(INNER_TRUNCATED);
		tag_type = type;
		tci = (__u16)l2[14] << 8 | l2[15];
		type = l2[16] | (__u16)l2[17] << 8;
		l2[12] = l2[16];
		l2[13] = l2[17];
	}
	if (inner_tag && (!tag_type || (tci & 0xfff) != ((inner_tag - 1) & 0xfff)))
		return drop(INNER_TAG);
	if (read_inner(skb, l3, type, &inner) ||
	    (inner.l3_bytes && !skb->gso_size && l3 + inner.l3_bytes + inner.l4_bytes > in.end))
		return drop(INNER_TRUNCATED);
	if (in.damaged || checksum_is_wrong(skb, &in, l3, &inner))
		return drop(BAD_CHECKSUM);

	key.vni = in.vni;
	__builtin_memcpy(key.mac, l2, 6);
	/* The kernel's own idea of the packet must change with the family; what is not IP may also be shorter than
	 * the IPv6 header that the kernel would leave room for. */
	if (family == FAMILY_IPV4 && inner.l3_bytes && type == NET16(ETHERTYPE_IPV6))
		flags |= ADJ_ROOM_DECAP_L3_IPV6;
	if (family == FAMILY_IPV6 && type != NET16(ETHERTYPE_IPV6))
		flags |= ADJ_ROOM_DECAP_L3_IPV4;
	if (strip(skb, l3 - ETH_BYTES, flags) || store_front(skb, l2, ETH_BYTES))
		return drop(KERNEL_REFUSED);
	bpf_csum_level(skb, BPF_CSUM_LEVEL_DEC); /* the outermost checksum is gone */
	if (tag_type && !inner_tag && bpf_skb_vlan_push(skb, tag_type, tci))
		return drop(KERNEL_REFUSED);
	return deliver_frame(skb, &key);
}

#endif
