# Whoever is killed while a run measures, nothing is left: no process, device, namespace, program, file.
cat >/tmp/kill.yaml <<'END'
name: kill
underlay: { mtu: 9000, rate: 100mbit }
guest_mtu: 1500
encapsulation: [vxlan]
datapath: [kernel, ebpf]
offload: none
repeat: { rounds: 20, seconds: 0.5, warmup: 0.1 }
END
programs() { # Loaded eBPF programs hold descriptors of this kind.
    ls -l /proc/[0-9]*/fd 2>/dev/null | grep -c bpf-prog
}
# Of a name's processes those that live.
living() {
    for at in /proc/[0-9]*; do
        tr '\0' ' ' <$at/cmdline 2>/dev/null | grep -q '^[^ ]*wirecost ' && echo ${at#/proc/}
    done
}
before=$(ip -o link | wc -l; ls /run/netns | wc -l; ls /tmp /var/tmp /dev/shm | grep -v '^run-' | wc -l; programs)
for whom in controller agent all; do
    rm -rf /tmp/run-$whom
    wirecost run /tmp/kill.yaml --out /tmp/run-$whom >/run/shown-$whom 2>&1 &
    controller=$!
    waited=0
    until [ -s /tmp/run-$whom/samples.jsonl ]; do
        sleep 0.2
        waited=$((waited + 1))
        [ $waited -lt 900 ] || { echo "$whom: no sample within 180 s"; cat /run/shown-$whom; exit 1; }
    done
    agents=$(living | grep -vx $controller)
    [ $(echo $agents | wc -w) -ge 2 ] || { echo "$whom: agents: $agents"; exit 1; }
    case $whom in
    controller) kill -9 $controller ;;
    agent) kill -9 $(echo $agents | cut -d ' ' -f 1) ;;
    all) kill -9 $controller $agents ;;
    esac
    wait $controller
    code=$?
    case $whom in
    agent) [ $code = 3 ] || { echo "agent killed: exit code $code"; cat /run/shown-$whom; exit 1; } ;;
    *) [ $code = 137 ] || { echo "$whom killed: exit code $code"; exit 1; } ;;
    esac
    waited=0
    while [ -n "$(living)" ]; do
        sleep 0.2
        waited=$((waited + 1))
        [ $waited -lt 300 ] || { echo "$whom killed: still there: $(living)"; ps; exit 1; }
    done
    sleep 1
    after=$(ip -o link | wc -l; ls /run/netns | wc -l; ls /tmp /var/tmp /dev/shm | grep -v '^run-' | wc -l; programs)
    [ "$before" = "$after" ] || { echo "$whom killed: links, namespaces, files, programs were" $before, are $after; ls /tmp; ip link; exit 1; }
done
rm -rf /tmp/run-*
