#!/bin/busybox sh
# The first process of a machine of the tests: devices, then commands from the second serial line, one a line.
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/root USER=root
/bin/busybox mkdir -p /proc /sys /dev /run /tmp /sbin /usr/bin /usr/sbin /root /var/run
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs dev /dev
for name in $(/bin/busybox --list); do
    # A command of its own goes before busybox's.
    [ -e /usr/bin/$name ] || [ -e /usr/sbin/$name ] || [ -e /sbin/$name ] || [ -e /bin/$name ] || /bin/busybox ln -s /bin/busybox /bin/$name
done
ln -s /usr/sbin/modprobe /sbin/modprobe 2>/dev/null
mkdir -p /dev/pts /dev/shm /run/netns /var/tmp
mount -t devpts devpts /dev/pts
for at in /run /tmp /dev/shm /var/tmp; do mount -t tmpfs tmpfs $at; done
mkdir -p /run/netns /sys/fs/bpf
mount -t bpf bpf /sys/fs/bpf 2>/dev/null
mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>/dev/null
chmod 1777 /tmp /var/tmp /dev/shm
/usr/sbin/modprobe tun; /usr/sbin/modprobe virtio_pci
busybox ip link set lo up
[ ! -e /start ] || /bin/sh /start
cd /tmp
stty -F /dev/ttyS1 raw -echo 2>/dev/null || busybox stty raw -echo </dev/ttyS1
exec 3<>/dev/ttyS1
echo "@@ ready" >&3
# Not the first process itself: an orphan that ends there interrupts its `read`, which then forgets what it has of a line.
while read -r seconds line <&3; do
    echo "$line" | base64 -d >/run/command
    timeout -k 5 "$seconds" /bin/sh /run/command </dev/null >/run/stdout 2>/run/stderr
    code=$?
    echo "@@ $code $(stat -c %s /run/stdout) $(stat -c %s /run/stderr)" >&3
    cat /run/stdout /run/stderr >&3
done &
wait $!
