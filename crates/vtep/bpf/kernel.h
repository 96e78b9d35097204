/* SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only */
/* What the programs take from the kernel: types of include/uapi/linux, helpers by their number there
 * (BPF_FUNC_*), flags that the headers of older distributions lack. No libbpf is needed to build. */
#ifndef VTEP_KERNEL_H
#define VTEP_KERNEL_H

#include <linux/bpf.h>
#include <linux/types.h>

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define NULL ((void *)0)

/* The members of a map's definition in BTF. */
#define MAP_NUMBER(name, value) int (*name)[value]
#define MAP_TYPE(name, value) typeof(value) *name

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NET16(x) ((__u16)__builtin_bswap16(x))
#define NET32(x) ((__u32)__builtin_bswap32(x))
#else
#define NET16(x) ((__u16)(x))
#define NET32(x) ((__u32)(x))
#endif

enum { DROP = 2, NEXT = -1 }; /* TCX_DROP and TCX_NEXT; TC_ACT_SHOT and TC_ACT_UNSPEC on clsact */

/* Linux 6.5; refused before. */
#define ADJ_ROOM_DECAP_L3_IPV4 (1ULL << 7)
#define ADJ_ROOM_DECAP_L3_IPV6 (1ULL << 8)

enum { ETHERTYPE_IPV4 = 0x0800, ETHERTYPE_IPV6 = 0x86dd, ETHERTYPE_VLAN = 0x8100, ETHERTYPE_QINQ = 0x88a8,
       ETHERTYPE_TEB = 0x6558 };
enum { PROTO_ICMP = 1, PROTO_TCP = 6, PROTO_UDP = 17, PROTO_ICMPV6 = 58 };
enum { FAMILY_IPV4 = 2, FAMILY_IPV6 = 10 }; /* AF_INET, AF_INET6 */
enum { ETH_BYTES = 14, TAG_BYTES = 4, IPV4_BYTES = 20, IPV6_BYTES = 40, UDP_BYTES = 8, TUNNEL_BYTES = 8 };
enum { PACKET_HOST = 0 };

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static __u64 (*bpf_ktime_get_ns)(void) = (void *)BPF_FUNC_ktime_get_ns; /* CLOCK_MONOTONIC */
static __u64 (*bpf_ktime_get_coarse_ns)(void) = (void *)BPF_FUNC_ktime_get_coarse_ns;
static __u32 (*bpf_get_hash_recalc)(struct __sk_buff *skb) = (void *)BPF_FUNC_get_hash_recalc;
static long (*bpf_skb_load_bytes)(const void *skb, __u32 offset, void *to, __u32 len) =
	(void *)BPF_FUNC_skb_load_bytes;
static long (*bpf_skb_store_bytes)(struct __sk_buff *skb, __u32 offset, const void *from, __u32 len,
				   __u64 flags) = (void *)BPF_FUNC_skb_store_bytes;
static long (*bpf_skb_adjust_room)(struct __sk_buff *skb, __s32 diff, __u32 mode, __u64 flags) =
	(void *)BPF_FUNC_skb_adjust_room;
static long (*bpf_skb_change_proto)(struct __sk_buff *skb, __u16 proto, __u64 flags) =
	(void *)BPF_FUNC_skb_change_proto;
static long (*bpf_skb_change_head)(struct __sk_buff *skb, __u32 len, __u64 flags) =
	(void *)BPF_FUNC_skb_change_head;
static long (*bpf_skb_change_tail)(struct __sk_buff *skb, __u32 len, __u64 flags) =
	(void *)BPF_FUNC_skb_change_tail;
static long (*bpf_skb_change_type)(struct __sk_buff *skb, __u32 type) = (void *)BPF_FUNC_skb_change_type;
static long (*bpf_skb_vlan_push)(struct __sk_buff *skb, __u16 proto, __u16 tci) =
	(void *)BPF_FUNC_skb_vlan_push;
static long (*bpf_skb_vlan_pop)(struct __sk_buff *skb) = (void *)BPF_FUNC_skb_vlan_pop;
static long (*bpf_skb_pull_data)(struct __sk_buff *skb, __u32 len) = (void *)BPF_FUNC_skb_pull_data;
static __s64 (*bpf_csum_diff)(const void *from, __u32 from_len, const void *to, __u32 to_len, __u32 seed) =
	(void *)BPF_FUNC_csum_diff;
static long (*bpf_csum_level)(struct __sk_buff *skb, __u64 what) = (void *)BPF_FUNC_csum_level;
static long (*bpf_redirect)(__u32 ifindex, __u64 flags) = (void *)BPF_FUNC_redirect;
static long (*bpf_redirect_neigh)(__u32 ifindex, struct bpf_redir_neigh *next, int len, __u64 flags) =
	(void *)BPF_FUNC_redirect_neigh;
static long (*bpf_clone_redirect)(struct __sk_buff *skb, __u32 ifindex, __u64 flags) =
	(void *)BPF_FUNC_clone_redirect;
static long (*bpf_check_mtu)(void *ctx, __u32 ifindex, __u32 *mtu, __s32 diff, __u64 flags) =
	(void *)BPF_FUNC_check_mtu;
static long (*bpf_fib_lookup)(void *ctx, struct bpf_fib_lookup *params, int len, __u32 flags) =
	(void *)BPF_FUNC_fib_lookup;
/* Linux 5.17. Its function is verified once, whatever the number of rounds; a loop is, round by round, for each call. */
static long (*bpf_loop)(__u32 rounds, void *function, void *state, __u64 flags) = (void *)BPF_FUNC_loop;

#endif
