/* SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only */
/* A tunnel endpoint on two hooks: what guests send, at the ingress of their devices at this host; what the underlay
 * brings, at its ingress. See docs/encapsulations.md. */
#include "decapsulate.h"
#include "encapsulate.h"

SEC("classifier")
int encapsulate(struct __sk_buff *skb)
{
	__u32 ifindex = skb->ifindex;
	struct port *port;

	if (segmented && ifindex == segmented) {
		ifindex = skb->mark;
		port = bpf_map_lookup_elem(&ports, &ifindex);
		if (!port)
			return DROP; /* what the kernel itself says on a device of its own: nobody's */
	} else {
		port = bpf_map_lookup_elem(&ports, &ifindex);
		if (!port)
			return NEXT;
	}
	return from_guest(skb, port, ifindex);
}

SEC("classifier")
int decapsulate(struct __sk_buff *skb)
{
	return format >= FORMAT_VXLAN ? receive_tunnel(skb) : receive_plain(skb);
}

char terms[] SEC("license") = "Dual MIT/GPL";
