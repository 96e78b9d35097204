/* SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only */
/* The answer to a packet that does not fit: ICMP "fragmentation needed" (RFC 792, RFC 1191) or ICMPv6 "packet
 * too big" (RFC 4443), made of the packet itself. A bridge has no address of its own on the guest's network, so it
 * comes from whom the packet was for, as the kernel's skb_tunnel_check_pmtu() does it. */
#ifndef VTEP_TOOBIG_H
#define VTEP_TOOBIG_H

#include "inner.h"

/* As net.ipv4.icmp_msgs_per_sec and icmp_msgs_burst, for each CPU. */
enum { ANSWERS_PER_SECOND = 1000, ANSWERS_AT_ONCE = 50 };
enum { NS_PER_ANSWER = 1000000000 / ANSWERS_PER_SECOND };
enum { QUOTED = 96, ICMP_BYTES = 8 };

struct icmp {
	__u8 type, code;
	__u16 check;
	__u32 mtu;
};

struct too_big {
	union {
		struct {
			struct ipv4 ip;
			struct icmp icmp;
			__u8 quoted[QUOTED];
		} v4;
		struct {
			struct ipv6 ip;
			struct icmp icmp;
			__u8 quoted[QUOTED];
		} v6;
		__u32 words[(IPV6_BYTES + ICMP_BYTES + QUOTED) / 4];
	};
};

INLINE int may_answer(void)
{
	__u32 zero = 0;
	struct budget *budget = bpf_map_lookup_elem(&budgets, &zero);
	__u64 now = bpf_ktime_get_coarse_ns();

	if (!budget)
		return 0;
	__u64 earned = (now - budget->filled) / NS_PER_ANSWER;

	if (earned) {
		budget->tokens = budget->tokens + earned > ANSWERS_AT_ONCE ? ANSWERS_AT_ONCE : budget->tokens + earned;
		budget->filled = now;
	}
	if (!budget->tokens)
		return 0;
	budget->tokens--;
	return 1;
}

INLINE int is_icmp_error(__u32 version, __u32 protocol, __u8 type)
{
	if (version == 4 && protocol == PROTO_ICMP)
		return type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
	return version == 6 && protocol == PROTO_ICMPV6 && type < 128;
}

/* Gives the frame the length `bytes`, Ethernet included, with room to be written over. Sending super-packets
 * and a transport checksum left to the device must go too: trimming ends the one, pulling the headers that
 * checksum starts in ends the other. */
INLINE int reshape(struct __sk_buff *skb, __u32 bytes, __u32 kept)
{
	if (bpf_skb_change_tail(skb, ETH_BYTES + QUOTED, 0))
		return -1;
	if (bpf_skb_adjust_room(skb, -(__s32)(QUOTED - kept), BPF_ADJ_ROOM_MAC, 0))
		return -1;
	return bpf_skb_adjust_room(skb, bytes - ETH_BYTES - kept, BPF_ADJ_ROOM_MAC, 0);
}

/* `guest`: the device that the answer goes out by. */
static __attribute__((noinline)) int answer_too_big(struct __sk_buff *skb, __u32 mtu, __u32 later, __u32 guest)
{
	struct too_big answer = {};
	__u8 mac[12], swapped[12];
	__u32 bytes, offset, type_offset;
	__u8 type = 0;

	if (bpf_skb_load_bytes(skb, 0, mac, sizeof(mac)))
		return drop(SHORT);
	/* Nobody is told of what goes to many (RFC 1122, 3.2.2; ICMPv6 could, but not from a group's address). */
	if (mac[0] & 1 || later || !may_answer())
		return drop(TOO_BIG_UNANSWERED);
	__builtin_memcpy(swapped, mac + 6, 6);
	__builtin_memcpy(swapped + 6, mac, 6);

	if (skb->protocol == NET16(ETHERTYPE_IPV4)) {
		struct ipv4 *was = (struct ipv4 *)answer.v4.quoted;

		if (bpf_skb_load_bytes(skb, ETH_BYTES, answer.v4.quoted, QUOTED))
			return drop(SHORT);
		type_offset = ETH_BYTES + (was->version_ihl & 0xf) * 4;
		if (bpf_skb_load_bytes(skb, type_offset, &type, 1) || is_icmp_error(4, was->protocol, type) || !was->saddr)
			return drop(TOO_BIG_UNANSWERED);
		answer.v4.ip.version_ihl = 0x45;
		answer.v4.ip.tot_len = NET16(IPV4_BYTES + ICMP_BYTES + QUOTED);
		answer.v4.ip.ttl = 64;
		answer.v4.ip.protocol = PROTO_ICMP;
		answer.v4.ip.saddr = was->daddr;
		answer.v4.ip.daddr = was->saddr;
		answer.v4.ip.check = ~folded(words(answer.words, IPV4_BYTES / 4));
		answer.v4.icmp.type = 3;
		answer.v4.icmp.code = 4;
		answer.v4.icmp.mtu = NET32(mtu & 0xffff);
		answer.v4.icmp.check = ~folded(
			(__u32)bpf_csum_diff(NULL, 0, (__u32 *)&answer.v4.icmp, ICMP_BYTES + QUOTED, 0));
		bytes = ETH_BYTES + IPV4_BYTES + ICMP_BYTES + QUOTED;
		if (reshape(skb, bytes, IPV4_BYTES) ||
		    bpf_skb_store_bytes(skb, ETH_BYTES, &answer.v4, IPV4_BYTES + ICMP_BYTES + QUOTED, 0))
			return drop(KERNEL_REFUSED);
	} else {
		struct ipv6 *was = (struct ipv6 *)answer.v6.quoted;

		if (bpf_skb_load_bytes(skb, ETH_BYTES, answer.v6.quoted, QUOTED))
			return drop(SHORT);
		offset = ETH_BYTES + IPV6_BYTES;
		if (bpf_skb_load_bytes(skb, offset, &type, 1) || is_icmp_error(6, was->nexthdr, type) ||
		    !(was->saddr[0] | was->saddr[1] | was->saddr[2] | was->saddr[3]))
			return drop(TOO_BIG_UNANSWERED);
		answer.v6.ip.version = NET32(0x60000000);
		answer.v6.ip.payload_len = NET16(ICMP_BYTES + QUOTED);
		answer.v6.ip.nexthdr = PROTO_ICMPV6;
		answer.v6.ip.hop_limit = 255;
		__builtin_memcpy(answer.v6.ip.saddr, was->daddr, 16);
		__builtin_memcpy(answer.v6.ip.daddr, was->saddr, 16);
		answer.v6.icmp.type = 2;
		answer.v6.icmp.mtu = NET32(mtu);
		answer.v6.icmp.check = ~folded(
			(__u64)(__u32)bpf_csum_diff(NULL, 0, (__u32 *)&answer.v6.icmp, ICMP_BYTES + QUOTED, 0) +
			words(answer.v6.ip.saddr, 8) + NET16(PROTO_ICMPV6) + NET16(ICMP_BYTES + QUOTED));
		bytes = ETH_BYTES + IPV6_BYTES + ICMP_BYTES + QUOTED;
		if (reshape(skb, bytes, IPV6_BYTES) ||
		    bpf_skb_store_bytes(skb, ETH_BYTES, &answer.v6, IPV6_BYTES + ICMP_BYTES + QUOTED, 0))
			return drop(KERNEL_REFUSED);
	}
	/* A guest's own tag stays with the frame and leads the answer back. */
	if (bpf_skb_store_bytes(skb, 0, swapped, sizeof(swapped), 0))
		return drop(KERNEL_REFUSED);
	count(TOO_BIG_ANSWERED);
	return bpf_redirect(guest, 0);
}

#endif
