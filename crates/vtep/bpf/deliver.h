/* SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only */
/* From the underlay to guests. */
#ifndef VTEP_DELIVER_H
#define VTEP_DELIVER_H

#include "inner.h"

/* Everything goes out through the guest's device, with a tunnel and without one: there frames are joined where the
 * offloads ask for it (veth does, with GRO on the guest's end and no TCP segmentation on this one). */
INLINE int deliver(__u32 ifindex)
{
	count(DECAPSULATED);
	return bpf_redirect(ifindex, 0);
}

/* A frame that is as the guest shall see it. */
INLINE int deliver_frame(struct __sk_buff *skb, struct fdb_key *key)
{
	struct fdb_entry *entry = NULL;
	struct flood *flood;

	if (!(key->mac[0] & 1))
		entry = bpf_map_lookup_elem(&fdb, key);
	if (LIKELY(entry && !entry->remote))
		return deliver(entry->ifindex);
	flood = bpf_map_lookup_elem(&floods, &key->vni);
	if (!flood)
		return drop(UNKNOWN_VNI);
	/* What is for a MAC address at another VTEP was not for us to carry on: no frame goes back to the underlay. */
	if (entry || !flood->ports)
		return drop(NO_DESTINATION);
	for (__u32 i = 1; i < MAX_PORTS && i < flood->ports; i++) {
		bpf_clone_redirect(skb, flood->ifindex[i], 0);
		count(FLOODED);
	}
	count(DECAPSULATED);
	return bpf_redirect(flood->ifindex[0], 0);
}

/* Without a tunnel, or by its tag, the underlay's frames are the guests'. What is for no guest stays the host's. */
INLINE int receive_plain(struct __sk_buff *skb)
{
	struct fdb_key key = {};
	struct fdb_entry *entry;
	struct flood *flood;

	if (load(skb, 0, key.mac, 6))
		return NEXT;
	if (format == FORMAT_VLAN) {
		if (!skb->vlan_present || (skb->vlan_tci & 0xfff) != vlan)
			return NEXT;
		if (bpf_skb_vlan_pop(skb))
			return drop(KERNEL_REFUSED);
		return deliver_frame(skb, &key);
	}
	if (skb->vlan_present)
		return NEXT;
	if (!(key.mac[0] & 1)) {
		entry = bpf_map_lookup_elem(&fdb, &key);
		if (!entry || entry->remote)
			return NEXT;
		return deliver(entry->ifindex);
	}
	flood = bpf_map_lookup_elem(&floods, &key.vni);
	if (!flood)
		return NEXT;
	for (__u32 i = 0; i < MAX_PORTS && i < flood->ports; i++) {
		bpf_clone_redirect(skb, flood->ifindex[i], 0);
		count(FLOODED);
	}
	return NEXT;
}

#endif
