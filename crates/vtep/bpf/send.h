/* SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only */
/* From a guest's frame to what goes on the underlay. */
#ifndef VTEP_SEND_H
#define VTEP_SEND_H

#include "toobig.h"

enum { L2_MAX = ETH_BYTES + TAG_BYTES, LOOK_EVERY_NS = 1000000000 };

/* One frame on its way out. */
struct outgoing {
	__u8 l2[20] WORDS; /* Ethernet header as it is carried inside, tag included */
	__u32 l2_bytes;
	__u32 vni;
	__u32 source_port;
	__u32 datagram;   /* bytes of the outer UDP datagram, of the whole super-packet where it is one */
	__u32 covered;    /* bytes of the outer UDP datagram that the checksum is for: those of one segment */
	__u64 inner_sum;  /* over all that the tunnel carries */
	__u32 is_ip;
};

/* Route, next hop and MTU of a remote, looked up once a second: what goes by is sent with what was found.
 * Concurrent writers write the same. The kernel answers only on hosts that forward; on others the loader's
 * answer stays (Vtep::refresh). */
INLINE void look(struct __sk_buff *skb, struct remote *remote)
{
	__u64 now = bpf_ktime_get_coarse_ns();
	struct bpf_fib_lookup fib = { .family = family, .ifindex = underlay, .l4_protocol = PROTO_UDP };

	if (LIKELY(now - remote->looked < LOOK_EVERY_NS))
		return;
	remote->looked = now;
	fib.dport = NET16(udp_port);
	fib.tot_len = 1; /* asks for the MTU in return */
	if (family == FAMILY_IPV4) {
		fib.ipv4_src = remote->source[0];
		fib.ipv4_dst = remote->address[0];
	} else {
		__builtin_memcpy(fib.ipv6_src, remote->source, 16);
		__builtin_memcpy(fib.ipv6_dst, remote->address, 16);
	}
	long found = bpf_fib_lookup(skb, &fib, sizeof(fib), BPF_FIB_LOOKUP_OUTPUT);

	if (found != BPF_FIB_LKUP_RET_SUCCESS) {
		__u32 mtu = 0;

		/* A device that takes less than it did when the loader looked: else all that is larger is lost without a word. */
		if (bpf_check_mtu(skb, underlay, &mtu, 0, 0) >= 0 && mtu && mtu < remote->mtu)
			remote->mtu = mtu;
		/* The last neighbour that was known is tried on. Where there was none, look again with the next frame. */
		if (found == BPF_FIB_LKUP_RET_NO_NEIGH && !remote->resolved)
			remote->looked = 0;
		return;
	}
	if (fib.mtu_result > 1)
		remote->mtu = remote->ceiling && remote->ceiling < fib.mtu_result ? remote->ceiling : fib.mtu_result;
	__builtin_memcpy(remote->header, fib.dmac, 6);
	__builtin_memcpy(remote->header + 6, fib.smac, 6);
	remote->resolved = 1;
}

/* Writes the headers for `remote` over the room in front. */
static __attribute__((noinline)) int write_header(struct __sk_buff *skb, struct remote *remote, struct outgoing *out)
{
	__u32 ip = ETH_BYTES, ip_bytes;
	__u32 udp_at = ETH_BYTES + (family == FAMILY_IPV4 ? IPV4_BYTES : IPV6_BYTES);
	void *data, *end;

	if (bpf_skb_store_bytes(skb, 0, remote->header, header_len, 0))
		return -1;
	data = (void *)(long)skb->data;
	end = (void *)(long)skb->data_end;
	if (data + ETH_BYTES + IPV6_BYTES + UDP_BYTES + TUNNEL_BYTES > end)
		return -1;
	ip_bytes = udp_at - ETH_BYTES + out->datagram;
	if (family == FAMILY_IPV4) {
		struct ipv4 *v4 = data + ip;

		v4->tot_len = NET16(ip_bytes);
		v4->check = ~folded((__u64)remote->ip_sum + NET16(ip_bytes));
	} else {
		struct ipv6 *v6 = data + ip;

		v6->payload_len = NET16(out->datagram);
	}
	__u16 *port = data + udp_at;
	__u32 *id = data + udp_at + UDP_BYTES + 4;

	*id = NET32(out->vni << 8);
	port[0] = NET16(out->source_port);
	port[2] = NET16(out->datagram);
	if (checksum) {
		__u16 length = NET16(out->covered);
		__u16 check = ~folded((__u64)remote->udp_sum + NET16(out->source_port) + length + length +
				      NET32(out->vni << 8) + out->inner_sum);

		port[3] = check ? check : 0xffff; /* 0 would say that there is none (RFC 768) */
	}
	return 0;
}

/* Hands a finished frame to the underlay, for good or as a copy. */
INLINE int transmit(const struct remote *remote, __u32 is_ip)
{
	if (LIKELY(remote->resolved)) {
		count(ENCAPSULATED);
		return bpf_redirect(underlay, 0);
	}
	/* The kernel finds the neighbour, keeping the packet meanwhile; it does so for what is IP throughout. */
	if (is_ip) {
		count(ENCAPSULATED);
		return bpf_redirect_neigh(underlay, NULL, 0, 0);
	}
	return drop(NO_NEIGHBOUR);
}

/* Puts room for all headers in front of the guest's frame; the frame's own Ethernet header goes behind it. */
INLINE int make_room(struct __sk_buff *skb, struct outgoing *out)
{
	__u32 more = header_len + (out->l2_bytes - ETH_BYTES);
	__u64 flags = BPF_F_ADJ_ROOM_FIXED_GSO | BPF_F_ADJ_ROOM_NO_CSUM_RESET | BPF_F_ADJ_ROOM_ENCAP_L4_UDP |
		      BPF_F_ADJ_ROOM_ENCAP_L2_ETH | BPF_F_ADJ_ROOM_ENCAP_L2((__u64)out->l2_bytes);

	flags |= family == FAMILY_IPV4 ? BPF_F_ADJ_ROOM_ENCAP_L3_IPV4 : BPF_F_ADJ_ROOM_ENCAP_L3_IPV6;
	if (!out->is_ip || bpf_skb_adjust_room(skb, more, BPF_ADJ_ROOM_MAC, flags)) {
		/* Not IP, or already marked as encapsulated by whoever sent it: pushed as plain bytes. */
		if (skb->gso_size || bpf_skb_change_head(skb, more, 0))
			return -1;
		out->is_ip = 0;
	}
	if (out->l2_bytes == L2_MAX)
		return bpf_skb_store_bytes(skb, header_len, out->l2, L2_MAX, 0);
	return bpf_skb_store_bytes(skb, header_len, out->l2, ETH_BYTES, 0);
}

#endif
