"""Facts and limits of machines in public bug reports, whose first answer was wrong."""

import json

import pytest
from tests.unit.machine.hosts import DATA, files_of, gpu_host, gpus, host

from peakmark import limits
from peakmark.limits.base import Question
from peakmark.machine import gpu, hardware, network, storage
from peakmark.machine.host import possible

NET = "/sys/class/net"
ROUTE = "{}\t00000000\t0100000A\t0003\t0\t0\t{}\t00000000\t0\t0\t0\n"


def links(**ports):
    """Interfaces: name -> Mbit/s, or names of the interfaces below; a trailing ``-`` is a guest's."""
    lines = []
    for name, below in ports.items():
        lines.append(f"{NET}/{name}/type 1")
        if isinstance(below, int):
            lines += [f"{NET}/{name}/speed {below}", f"{NET}/{name}/device/vendor 0x15b3"]
        else:
            lines += [f"{NET}/{name}/lower_{one} ->../{one}" for one in below.split()]
            lines.append(f"{NET}/{name}/speed 50000")
    return "\n".join(lines)


BOND = (
    links(bond0="ens1 ens2", ens1=25000, ens2=25000)
    + f"""
    {NET}/bond0/bonding/slaves ens1 ens2
    {NET}/bond0/bonding/mode """
)
LACP, STRIPED = f"{BOND}802.3ad 4", f"{BOND}balance-rr 0"
POLICY = f"{NET}/bond0/bonding/xmit_hash_policy"
GUESTS = f"""{links(fwpr100p0="", tap101i0="", vmbr0="fwpr100p0 nic0 tap101i0")}
    {NET}/vmbr0/bridge/bridge_id 8000.0"""


@pytest.mark.parametrize(("files", "name", "gigabits", "stream"), [
    (LACP + links(vlan="bond0"), "vlan", 50, 25),
    (LACP + links(vlan="bond0", br0="vlan tap0", tap0=""), "br0", 50, 25),
    (STRIPED + links(vlan="bond0"), "vlan", 50, None),
    (links(team0="eth1 eth2", eth1=25000, eth2=25000), "team0", 50, 25),
    (GUESTS + links(nic0=1000), "vmbr0", 1, None),
    (GUESTS + links(nic0="enp3s0", enp3s0=10000), "vmbr0", 10, None),
    (GUESTS + links(nic0=""), "vmbr0", None, None),
    (GUESTS + links(nic0=-1), "vmbr0", None, None),
    (links(br0="eth1 eth2", eth1=1000, eth2=-1) + f"\n{NET}/eth2/operstate down", "br0", 1, None),
    (f"{LACP}\n{POLICY} layer3+4 1", "bond0", 50, 25), (f"{LACP}\n{POLICY} layer2+3 2", "bond0", 25, 25),
    (f"{BOND}active-backup 1", "bond0", 25, 25), (f"{BOND}balance-alb 6", "bond0", 25, 25),
    (links(eth0=65535), "eth0", None, None), (links(eth0=4294967295), "eth0", None, None),
    (links(eth0=10000) + f"\n{NET}/eth0/device/driver ->../../../../vmxnet3\n/sys/vmxnet3/x 1", "eth0", None, None),
])  # fmt: skip
def test_interfaces_above_a_bond_or_a_device(tmp_path, files, name, gigabits, stream):
    files = files.replace(f"{NET}/", f"\n{NET}/")
    facts = network.collect(host(tmp_path, files), name)
    assert facts["speed_bps"] == (gigabits and gigabits * 1e9)
    assert facts.get("stream_bps") == (stream and stream * 1e9)
    known = {"network": {**facts, "mtu": 1500}}
    row = Question("network", "TCP", "", None, 1, "throughput", known)
    rate = stream or gigabits
    assert limits.for_row(row).value == (rate and pytest.approx(rate * 1e9 * 1448 / 1538))


def test_a_bridge_of_unlike_ports_has_no_rate(tmp_path):
    files = links(br0="eth1 eth2", eth1=1000, eth2=10000) + f"\n{NET}/br0/bridge/bridge_id 8000.0"
    assert "differ in speed" in network.collect(host(tmp_path, files), "br0")["speed_note"]


@pytest.mark.parametrize(("routes", "name"), [
    ([("*", 0), ("eth1", 0)], "eth1"), ([("wlan0", 600), ("eth1", 100)], "eth1"), ([("*", 0)], None),
])  # fmt: skip
def test_the_default_route_leads_through_an_interface(tmp_path, routes, name):
    text = (
        "".join(ROUTE.format(*route) for route in routes)
        + "tun0\t00000000\t0\t3\t0\t0\t0\t00000080\n"
    )
    assert network.collect(host(tmp_path, {"/proc/net/route": text}))["interface"] == name


ROUTE_6 = "{0} 00 {0} 00 {0} {2} 00000001 00000000 00000003 {1}\n"


@pytest.mark.parametrize(("routes", "name"), [
    ([("lo", "ffffffff"), ("eth1", "00000400"), ("eth2", "00000100")], "eth2"), ([("lo", "ffffffff")], None),
])  # fmt: skip
def test_the_default_route_of_ipv6(tmp_path, routes, name):
    text = "".join(ROUTE_6.format(32 * "0", *route) for route in routes)
    assert network.collect(host(tmp_path, {"/proc/net/ipv6_route": text}))["interface"] == name


@pytest.mark.parametrize(("number", "other", "gigabits"), [
    ("dev_port 1", "", 54.545), ("dev_id 0x1", "dev_port 0", 54.545), ("dev_port 0", "dev_id 0x0", None),
])  # fmt: skip
def test_each_port_of_an_adapter_has_its_own_rate(tmp_path, number, other, gigabits):
    ports = f"{NET}/ib1/device/infiniband/mlx4_0/ports"
    text = f"""
        {NET}/ib1/type 32
        {NET}/ib1/{number}
        {NET}/ib1/{other or "mtu 65520"}
        {ports}/1/rate 10 Gb/sec (4X SDR)
        {ports}/1/state 1: DOWN
        {ports}/2/rate 56 Gb/sec (4X FDR)
        {ports}/2/state 4: ACTIVE
    """
    facts = network.collect(host(tmp_path, text), "ib1")
    assert facts["speed_bps"] == (gigabits and pytest.approx(gigabits * 1e9, rel=1e-4))


def device(kname, *below, kind="disk", size=8, tran=None):
    return {"kname": kname, "type": kind, "tran": tran, "size": size, "children": list(below)}


def stored(tmp_path, files, source, tree, filesystem="xfs"):
    mount = {"target": "/data", "source": source, "fstype": filesystem}
    tools = {"findmnt": json.dumps({"filesystems": [mount]})}
    for name, devices in tree.items():
        tools[f"lsblk -J -b -s -o NAME,KNAME,TYPE,MODEL,TRAN,LOG-SEC,PHY-SEC,SCHED,SIZE {name}"] = (
            json.dumps({"blockdevices": devices})
        )
    facts = storage.collect(host(tmp_path, files, tools), tmp_path)
    row = Question("disk", "RS", "", 1 << 20, 1, "throughput", {"storage": facts})
    return facts, limits.for_row(row).reason


@pytest.mark.parametrize(("controllers", "gigabytes"), [
    ("nvme1", 3.938), ("nvme0", 7.877), ("nvme0 nvme1", None), ("", 7.877),
])  # fmt: skip
def test_a_namespace_names_its_controller(tmp_path, controllers, gigabytes):
    files = ["/sys/block/nvme0n1/device/model M"]
    files += [f"/sys/block/nvme0n1/device/{name}/model M" for name in controllers.split()]
    for name, speed in (("nvme0", "16.0"), ("nvme1", "8.0")):
        place = f"/sys/class/nvme/{name}/device"
        files += [f"{place}/current_link_speed {speed} GT/s PCIe", f"{place}/current_link_width 4"]
    tree = {"/dev/nvme0n1": [device("nvme0n1", tran="nvme")]}
    facts, why = stored(tmp_path, "\n".join(files), "/dev/nvme0n1", tree)
    assert facts["interface_limit"] == (gigabytes and pytest.approx(gigabytes * 1e9, rel=1e-3))
    assert ("has 2 paths" in why) == (" " in controllers)


def test_a_subsystem_without_controllers_has_no_link(tmp_path):
    files = """
        /sys/class/nvme/nvme0/device/current_link_speed 16.0 GT/s PCIe
        /sys/class/nvme/nvme0/device/current_link_width 4
        /sys/devices/nvme-subsys0/model M
        /sys/block/nvme0n1/device ->../../devices/nvme-subsys0
    """
    tree = {"/dev/nvme0n1": [device("nvme0n1", tran="nvme")]}
    assert stored(tmp_path, files, "/dev/nvme0n1", tree)[0]["interface_limit"] is None


@pytest.mark.parametrize("above", [(), ("part",), ("part", "crypt")])
def test_paths_are_one_disk(tmp_path, above):
    tree = device("dm-0", *(device(f"sd{letter}", tran="fc") for letter in "abcd"), kind="mpath")
    for number, kind in enumerate(above):
        tree = device(f"dm-{number + 1}", tree, kind=kind, size=7)
    facts, why = stored(tmp_path, "", "/dev/mapper/mpatha", {"/dev/mapper/mpatha": [tree]})
    assert (facts["members"], facts["size"], facts["interface"]) == (["dm-0"], 8, "fc")
    assert "4 paths" in why


@pytest.mark.parametrize(
    ("members", "count", "size"), [("sda1 sdb1", 2, None), ("sdc1 sdd1", 1, 8)]
)
def test_btrfs_on_two_disks(tmp_path, members, count, size):
    files = "\n".join(f"/sys/fs/btrfs/9f3a/devices/{name}/size 1" for name in members.split())
    one, two = (device(f"sd{x}1", device(f"sd{x}", tran="sata"), kind="part") for x in "ab")
    tree = {"/dev/sda1 /dev/sdb1": [one, two], "/dev/sda1": [one]}
    facts, why = stored(tmp_path, files, "/dev/sda1[/@home]", tree, "btrfs")
    assert (len(facts["members"]), facts["size"]) == (count, size)
    assert ("2 disks hold the file system" in why) == (count == 2)


def memory_row(threads, facts, **more):
    return limits.for_row(
        Question("memory", "RS", "pool", None, threads, "throughput", facts, **more)
    )


@pytest.mark.parametrize(("texts", "is_guest"), [
    (("Amazon EC2", "m6g.large"), True), (("Amazon EC2", "m6g.metal"), False),
    (("Microsoft Corporation", "Virtual Machine"), True), (("QEMU", "KVM Virtual Machine"), True),
    (("GIGABYTE", "R272-P30-JG"), False), (("Microsoft Corporation", "C2080"), False),
    (("", "", "linux,dummy-virt"), True), (("", "", "xen,xenvm"), True), (("Nutanix", "AHV"), True),
])  # fmt: skip
def test_a_guest_on_arm_has_no_limit_of_the_socket(tmp_path, texts, is_guest):
    system = "/sys/devices/system/cpu"
    dmi = "/sys/class/dmi/id"
    names = (f"{dmi}/sys_vendor", f"{dmi}/product_name", "/proc/device-tree/compatible")
    files = dict(zip(names, texts, strict=False))
    files["/proc/cpuinfo"] = (
        "processor: 0\nFeatures: asimd\nCPU implementer: 0x41\nCPU part: 0xd0c\n"
    )
    lscpu = '{"lscpu": [{"field": "Model name:", "data": "Neoverse-N1"}]}'
    this = host(tmp_path, {**files, f"{system}/online": "0-1"}, {"lscpu -J": lscpu})
    facts = hardware.collect_cpu(this)
    assert facts["virtualised"] == ((texts[0] or "unknown hypervisor") if is_guest else None)
    assert memory_row(2, {"cpu": facts}).value is None


@pytest.mark.parametrize(("nodes", "count"), [
    (["0-71", *[""] * 8], 1), (["0-79", "80-159", "", "", "", ""], 2), ([""], 1),
])  # fmt: skip
def test_numa_nodes_have_cores(tmp_path, nodes, count):
    files = "".join(
        f"/sys/devices/system/node/node{n}/cpulist {cpus}\n" for n, cpus in enumerate(nodes)
    )
    assert hardware.collect_cpu(host(tmp_path, files))["numa_nodes"] == count


@pytest.mark.parametrize(("kind", "rated", "configured", "rate"), [
    ("DDR3", 1600, 800, None), ("DDR4", 2400, 1200, None), ("DDR4", 2133, 1067, None),
    ("DDR5", 2400, 2400, None), ("DDR4", "Unknown", 65535, None), ("DDR4", "Unknown", 2400, 2400),
    ("DDR5", 5600, 4400, 4400), ("DDR4", 2133, 1333, 1333), ("DDR4", 3200, 1467, None),
    ("DDR4", 1600, 1600, None), ("DDR4", "Unknown", 1333, None), ("DDR3", 1066, 1066, 1066),
    ("LPDDR5", 3200, 3200, None), ("Unknown", 1600, 1600, None), ("DDR2", 400, 400, None),
])  # fmt: skip
def test_the_clock_of_a_module_is_not_its_rate(tmp_path, kind, rated, configured, rate):
    slot = {"TYPE": kind, "SIZE": 1 << 32, "BANK_LOCATOR": "CHANNEL A", "FORM_FACTOR": "DIMM"}
    slot |= {"SPEED_MTS": rated, "CONFIGURED_SPEED_MTS": configured}
    text = "\n".join(f"MEMORY_DEVICE_0_{key}={word}" for key, word in slot.items())
    facts = hardware.collect_memory(host(tmp_path, "", {"udevadm": text}))
    assert facts["speed_mts"] == rate
    found = memory_row(1, {"cpu": {}, "memory": facts})
    assert found.value == (rate and rate * 8e6)
    assert rate or "that can be right" in found.reason


@pytest.mark.parametrize(("design", "model", "sockets"), [
    ("Zen 4", "AMD Instinct MI300A Accelerator", 4), ("Zen 4", "AMD Instinct MI300A Accelerator", 1),
    ("Zen 4", "AMD EPYC 9V64H 88-Core Processor", 2), ("Sapphire Rapids", "Intel(R) Xeon(R) CPU Max 9480", 2),
    ("Zen 4", "some board", 4), ("Knights Landing", "Intel(R) Xeon Phi(TM) CPU 7250 @ 1.40GHz", 1),
])  # fmt: skip
def test_memory_in_the_package_is_not_that_of_the_channels(design, model, sockets):
    cpu = {"microarchitecture": design, "model_name": model, "sockets": sockets}
    modules = {"channels": 16, "speed_mts": 4800, "type": "DDR5"} if model != "some board" else {}
    found = memory_row(96, {"cpu": cpu, "memory": modules})
    assert found.value is None and found.bound is None and found.reason


@pytest.mark.parametrize(("count", "caches", "empty", "placed", "share"), [
    (4, 4, "", [0], None), (4, 8, "", [0], 1 / 4), (2, 2, "", [0, 1], 1), (4, 2, "", [0, 1], 1 / 2),
    (4, 8, "1", [0, 1], None), (4, 8, "1", [0], 1 / 3),
])  # fmt: skip
def test_the_share_of_numa_nodes(count, caches, empty, placed, share):
    """L3 as NUMA, nodes of a socket, whole sockets; and nodes without memory, whose threads use others'."""
    numa = [
        {"node": n, "cpus": str(n), "memory": None if str(n) in empty else 1} for n in range(count)
    ]
    cache = {"level": 3, "type": "unified", "size": 1 << 25, "count": caches}
    facts = {"cpu": {"numa": numa, "caches": [cache], "sockets": 1}}
    facts["memory"] = {"channels": 8, "speed_mts": 3200}
    found = memory_row(8, facts, placed={"numa_nodes": placed})
    assert found.value == (share and pytest.approx(share * 204.8e9))


@pytest.mark.parametrize(("compute", "clocks"), [
    ("8.7", (1.3e9, 3.2e9)), ("12.1", (2.4e9, 4.3e9)), ("9.9", (1.3e9, 1.3e9)),
])  # fmt: skip
def test_an_integrated_gpu_has_no_memory_of_its_own(compute, clocks):
    one = gpus(compute=compute, clock_hz=clocks[0], memory_clock_hz=clocks[1])["gpus"]
    row = Question("gpu", "RS", "", None, 1, "throughput", {"gpu": {"gpus": one}})
    assert "integrated" in limits.for_row(row).reason


@pytest.mark.parametrize(("value", "unit", "is_possible"), [
    (7e9, "Hz", False), (6.2e9, "Hz", True), (0, "Hz", False), (4294967, "W", False), (700, "W", True),
    (65535, "MT/s", False),
])  # fmt: skip
def test_numbers_that_cannot_be_are_unknown(value, unit, is_possible):
    assert (possible(value, unit) is not None) == is_possible


@pytest.mark.parametrize(("part", "before", "after"), [
    ("<power_readings><enforced_power_limit>420.00 W</enforced_power_limit></power_readings>", "", ""),
    ("<power_readings><power_limit>420.00 W</power_limit></power_readings>", "Warning: x\n", "\nWARNING: y"),
    ("<gpu_power_readings><current_power_limit>420.00 W</current_power_limit></gpu_power_readings>", "", "z"),
])  # fmt: skip
def test_the_power_cap_of_older_drivers(tmp_path, part, before, after):
    log = f'<nvidia_smi_log><gpu id="00000000:00:06.0">{part}</gpu></nvidia_smi_log>'
    this = gpu_host(tmp_path, gpus(), f"{before}{log}{after}")
    assert gpu.collect(this, tmp_path / "gpubench")["power_cap_watts"] == 420


def test_virtio_network_tells_no_speed(tmp_path):
    other = "Iface\tDestination\tGateway\neth1\t000200C0\t0\n"
    host(tmp_path, {"/proc/net/route": other + ROUTE.format("eth0", 100)})
    files = """
        /sys/class/net/eth0/type 1
        /sys/class/net/eth0/mtu 1400
        /sys/class/net/eth0/speed -1
        /sys/class/net/eth0/device/uevent x
    """
    this = host(tmp_path, files, {"ethtool -i": (DATA / "ethtool/virtio-i.txt").read_text()})
    facts = network.collect(this)
    assert (facts["interface"], facts["kind"]) == ("eth0", "ethernet")
    assert (facts["driver"], facts["mtu"]) == ("virtio_net", 1400)
    assert facts["speed_bps"] is None
    assert "network.speed_bps" in this.unknown


@pytest.mark.parametrize(("interface", "speed", "note"), [
    ("veth0", None, "virtual"),
    ("br0", 25e9, "eno1"),
    ("ib0", pytest.approx(54.545e9, rel=1e-4), "FDR"),
    ("ib1", 40e9, "FDR10"),  # what it carries
    ("ib2", None, "no InfiniBand port"),  # without a cable
    ("bond0", 50e9, "single stream"),
    ("lo", None, "loopback"),
])  # fmt: skip
def test_speed_is_that_of_a_wire(tmp_path, interface, speed, note):
    this = host(tmp_path, files_of("wires"))
    facts = network.collect(this, interface)
    assert facts["speed_bps"] == speed
    assert note in facts["speed_note"]
    assert facts["loopback"] == (interface == "lo")
    assert network.collect(this, "nic9")["speed_bps"] is None
    assert "nic9" in this.unknown["network.interface"]


def test_what_tc_slows_down_is_told(tmp_path):
    for printed, shaping in {
        "qdisc tbf 1: root refcnt 2 rate 100Mbit burst 32Kb lat 50ms": "tbf rate 100Mbit",
        "qdisc netem 8001: root limit 1000 delay 10ms  2ms loss 1%": "netem delay 10ms loss 1%",
        "qdisc fq_codel 0: root refcnt 2 limit 10240p rate 1": None,
        "": None,
    }.items():
        assert network.shaping(host(tmp_path, "", {"tc qdisc": printed}), "eth0") == shaping
