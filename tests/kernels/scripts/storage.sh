# Storage by the kernel alone: machine 2 (10.50.0.2) has the targets, machine 1 the initiators. iSCSI and NVMe/TCP have a RAM
# disk of 64 MiB each, NFS a tmpfs.
until_there() { # FILE
    for try in $(seq 100); do [ -e $1 ] && return; sleep 0.2; done
    echo "no $1"; dmesg | tail -n 20; exit 1
}
disks() {
    modprobe brd rd_nr=2 rd_size=65536 && modprobe configfs || exit 1
    grep -q configfs /proc/mounts || mount -t configfs none /sys/kernel/config || exit 1
}

# NVMe/TCP (Linux, drivers/nvme/target/configfs.c).
subsystem=/sys/kernel/config/nvmet/subsystems/wirecost
port=/sys/kernel/config/nvmet/ports/1
nvme_target() {
    disks
    modprobe nvmet-tcp || exit 1
    mkdir -p $subsystem/namespaces/1 $port || exit 1
    echo 1 >$subsystem/attr_allow_any_host
    printf /dev/ram0 >$subsystem/namespaces/1/device_path
    echo 1 >$subsystem/namespaces/1/enable || exit 1
    echo tcp >$port/addr_trtype; echo ipv4 >$port/addr_adrfam
    echo 10.50.0.2 >$port/addr_traddr; echo 4420 >$port/addr_trsvcid
    ln -s $subsystem $port/subsystems/wirecost || exit 1
}
nvme_attach() {
    modprobe nvme-tcp || exit 1
    until_there /dev/nvme-fabrics
    printf transport=tcp,traddr=10.50.0.2,trsvcid=4420,nqn=wirecost >/dev/nvme-fabrics || { dmesg | tail -n 20; exit 1; }
    until_there /dev/nvme0n1
}
nvme_detach() { echo 1 >/sys/class/nvme/nvme0/delete_controller; }

# iSCSI (Linux, Documentation/target/tcm_mod_builder.rst; drivers/target/iscsi/iscsi_target_configfs.c).
core=/sys/kernel/config/target/core/iblock_0
iscsi=/sys/kernel/config/target/iscsi
name=iqn.2026-01.test.wirecost:disk
iscsi_target() {
    disks
    for module in target_core_mod target_core_iblock iscsi_target_mod; do modprobe $module || exit 1; done
    mkdir -p $core/disk || exit 1
    echo udev_path=/dev/ram1 >$core/disk/control
    echo 1 >$core/disk/enable || exit 1
    mkdir -p $iscsi/$name/tpgt_1/lun/lun_0 || exit 1
    ln -s $core/disk $iscsi/$name/tpgt_1/lun/lun_0/disk || exit 1
    mkdir $iscsi/$name/tpgt_1/np/10.50.0.2:3260 || exit 1
    for set in authentication:0 generate_node_acls:1 cache_dynamic_acls:1 demo_mode_write_protect:0; do
        echo ${set#*:} >$iscsi/$name/tpgt_1/attrib/${set%:*}
    done
    echo 1 >$iscsi/$name/tpgt_1/enable || exit 1
}
# The session stays with the kernel when iscsistart has ended.
iscsi_attach() {
    for module in sd_mod iscsi_tcp; do modprobe $module || exit 1; done
    iscsistart -i iqn.2026-01.test.wirecost:initiator -t $name -g 1 -a 10.50.0.2 -p 3260 || { dmesg | tail -n 20; exit 1; }
    until_there /dev/sda
}
iscsi_detach() { echo 1 >/sys/block/sda/device/delete; }

# NFS 4.2. What rpc.mountd would tell the kernel (fs/nfsd/export.c, net/sunrpc/svcauth_unix.c): the client's domain; the
# export with fsid 0 (0x2000), no_subtree_check (0x400) and insecure (2); its file handle. Version 4 needs no other daemon.
nfs_server() {
    modprobe nfsd || exit 1
    mkdir -p /srv/export
    mount -t tmpfs none /srv/export && mount -t nfsd none /proc/fs/nfsd || exit 1
    cd /proc/net/rpc
    echo 'nfsd 10.50.0.1 2147483647 *' >auth.unix.ip/channel
    echo '* /srv/export 2147483647 9218 65534 65534 0' >nfsd.export/channel
    printf '%s\n' '* 1 \x00000000 2147483647 /srv/export' >nfsd.fh/channel
    cd /proc/fs/nfsd
    echo 10 >nfsv4gracetime; echo 10 >nfsv4leasetime
    echo '-3 +4 +4.1 +4.2' >versions
    echo 'tcp 2049' >portlist || exit 1
    echo 4 >threads || exit 1
    # An error where no client's state is kept and nothing is waited for.
    echo Y >v4_end_grace 2>/dev/null || true
}
nfs_mount() {
    modprobe nfsv4 || exit 1
    mkdir -p /mnt/nfs
    mount -t nfs4 -o vers=4.2,addr=10.50.0.2,clientaddr=10.50.0.1 10.50.0.2:/ /mnt/nfs || { dmesg | tail -n 20; exit 1; }
}
# The kernel may hold it for a moment after the last file was closed.
nfs_unmount() { for i in $(seq 50); do umount /mnt/nfs 2>/dev/null && return; sleep 0.2; done; umount /mnt/nfs; }
